"""Traps D6: faults of logs that users of comparable software met, each named with row and column."""

import numpy as np
import pytest

from mechsmith.identification.record import Record
from mechsmith.identification.record_checks import RecordIssue, check_record


def _record(time: object, values: object = None, unit: str = "m") -> Record:
    column = np.zeros(len(np.asarray(time))) if values is None else values
    return Record.from_arrays(np.asarray(time), {"x": (column, unit)}, check=False)  # type: ignore[arg-type]


def _only(record: Record, **limits: float) -> RecordIssue:
    issues = check_record(record, largest=limits)
    assert len(issues) == 1, issues
    return issues[0]


def test_clean_data_have_no_issue() -> None:
    assert check_record(_record(np.arange(1000) * 1e-3)) == ()


def test_repeated_time_stamps() -> None:
    issue = _only(_record([0.0, 1e-3, 1e-3, 2e-3]))
    assert (issue.kind, issue.column, issue.row, issue.severity) == ("repeated_time", "time", 2, "error")
    assert "given 2 times" in issue.message


def test_a_run_of_repeated_stamps_is_one_issue() -> None:
    issue = _only(_record([0.0, 1.0, 2.0, 2.0, 2.0, 3.0]))
    assert (issue.row, "given 3 times" in issue.message) == (3, True)


def test_time_that_goes_back() -> None:
    issue = _only(_record([0.0, 1.0, 2.0, 1.5, 2.5, 3.5]))
    assert (issue.kind, issue.row, issue.severity) == ("non_monotone_time", 3, "error")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(bad: float) -> None:
    issue = _only(_record(np.arange(5), [0, 0, bad, bad, 0]))
    assert (issue.kind, issue.column, issue.row, issue.severity) == ("not_finite", "x", 2, "error")
    assert "sample 2 (from 0) to sample 3" in issue.message


def test_time_that_is_not_finite() -> None:
    assert _only(_record([0.0, 1.0, np.nan, 3.0, 4.0])).column == "time"


def test_jitter_reports_the_largest_and_where() -> None:
    time = np.arange(20) * 0.01
    time[7] += 0.0003
    time[12] += 0.002
    issue = _only(_record(time))
    # 2 ms early at sample 12: the intervals before and after are 12 and 8 ms, 20 % off
    assert (issue.kind, issue.severity) == ("jitter", "warning")
    assert issue.row in (12, 13)
    assert "20 % off" in issue.message
    assert "4 intervals" in issue.message


def test_jitter_of_3_to_80_ms() -> None:
    """The intervals that robot_localization users reported; gaps are those over 1.5 medians, jitter the "
    "rest."""
    steps = np.array([40, 3, 40, 80, 41, 39, 40]) * 1e-3
    issues = check_record(_record(np.concatenate(([0.0], np.cumsum(steps)))))
    assert [(issue.kind, issue.row) for issue in issues] == [("gap", 4), ("jitter", 2)]
    assert "0.003 s" in issues[1].message


def test_rounded_stamps_are_no_jitter() -> None:
    # stamps written to 1 % of the period put intervals at most 1 % off, and 0.7 % here
    time = np.round(np.arange(1000) * 0.0033337, 5)
    assert check_record(_record(time)) == ()


def test_gap() -> None:
    time = np.arange(20) * 0.01
    time[11:] += 0.01
    issue = _only(_record(time))
    assert (issue.kind, issue.row, issue.severity) == ("gap", 11, "warning")
    assert "2 median periods" in issue.message


def test_too_few_samples() -> None:
    assert _only(_record([0.0])).kind == "too_few_samples"
    assert _only(_record(np.zeros(0))).kind == "too_few_samples"


def test_degrees_where_radians_are_declared() -> None:
    issue = _only(_record(np.arange(3), [0.0, 90.0, 170.0], "rad"))
    assert (issue.kind, issue.row, issue.severity) == ("implausible", 2, "warning")
    assert "degrees declared as rad" in issue.message
    assert check_record(_record(np.arange(3), [0.0, 90.0, 170.0], "deg")) == ()


def test_milliampere_where_ampere_are_declared() -> None:
    issue = _only(_record(np.arange(3), [0.0, -1200.0, 900.0], "A"))
    assert (issue.kind, issue.row) == ("implausible", 1)
    assert "mA declared as A" in issue.message


def test_a_stated_limit_is_an_error_and_replaces_the_guess() -> None:
    record = _record(np.arange(3), [0.0, 90.0, 170.0], "rad")
    issue = _only(record, x=3.2)
    assert (issue.kind, issue.column, issue.row, issue.severity) == ("too_large", "x", 1, "error")
    assert check_record(record, largest={"x": 200.0}) == ()


def test_every_fault_is_named_at_once() -> None:
    record = _record([0.0, 1.0, 1.0, 2.0, 6.0, 5.0], [np.nan, 0, 0, 0, np.inf, 0])
    kinds = [issue.kind for issue in check_record(record)]
    assert kinds == ["repeated_time", "non_monotone_time", "gap", "not_finite", "not_finite"]
