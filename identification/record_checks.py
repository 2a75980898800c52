"""What can be wrong with recorded data, each fault named with its row and column."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mechsmith.identification.record import Record

Array = NDArray[np.float64]
Kind = Literal[
    "not_finite",
    "repeated_time",
    "non_monotone_time",
    "too_few_samples",
    "too_large",
    "jitter",
    "gap",
    "implausible",
]
WARNINGS: tuple[Kind, ...] = ("jitter", "gap", "implausible")

JITTER_TOLERANCE = 0.01
"""Intervals further from the median than this part of it are jitter: it makes a difference of two samples
wrong by as much. Time stamps rounded to 1 % of the period stay within it."""

GAP_PERIODS = 1.5
"""An interval longer than this many median periods is a gap: at least one sample is missing."""

PLAUSIBLE: Mapping[str, tuple[float, str]] = MappingProxyType(
    {
        "rad": (40.0 * math.pi, "20 turns; degrees declared as rad? Then the unit is 'deg'"),
        "A": (500.0, "more than a servo drive gives; mA declared as A? Then the unit is 'mA'"),
    }
)
"""Largest magnitude by unit that passes without a warning, and the suspicion. It cannot catch everything (90
deg declared as rad pass): who knows a joint limit or a rated current states it as `ColumnSpec.largest`."""


class RecordError(ValueError):
    """Data that cannot be used as asked; the message names row and column and what to do."""


class RecordWarning(UserWarning):
    """Data that can be used but look suspicious, or will be refused by steps that need even sampling."""


@dataclass(frozen=True)
class RecordIssue:
    """One fault of a record.

    Parameters
    ----------
    kind
        What is wrong.
    column
        The column, or ``"time"``.
    row
        The first row concerned: the line of the file, from 1, for data read from CSV; otherwise the index of
        the sample, from 0. None when the record as a whole is concerned.
    message
        One sentence that says so, with the numbers.
    """

    kind: Kind
    column: str
    row: int | None
    message: str

    @property
    def severity(self) -> Literal["error", "warning"]:
        """`warning` for jitter, gaps and implausible magnitudes, `error` for everything else."""
        return "warning" if self.kind in WARNINGS else "error"


@dataclass(frozen=True)
class Place:
    """How samples and columns are called where the data come from."""

    lines: Sequence[int] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def row(self, index: int) -> int:
        """Return the line of the file, or the index when there are no lines."""
        return int(index) if self.lines is None else int(self.lines[index])

    def where(self, index: int) -> str:
        """Return the row in words."""
        return f"sample {index} (from 0)" if self.lines is None else f"line {self.lines[index]}"

    def name(self, column: str) -> str:
        """Return the column in words, with its name in the file where that differs."""
        label = self.labels.get(column, column)
        return f"column {column!r}" if label == column else f"column {column!r} (in the file {label!r})"


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last index of every run of True in `flags`."""
    edges = np.diff(np.concatenate(([0], flags.astype(np.int8), [0])))
    return list(
        zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True)
    )


def _finite_issues(name: str, values: Array, place: Place) -> list[RecordIssue]:
    """Return one issue for every run of samples that are NaN or infinite."""
    issues = []
    for first, last in _runs(~np.isfinite(values)):
        until = "" if first == last else f" to {place.where(last)}"
        text = f"{place.name(name)}, {place.where(first)}{until}: {values[first]} is not a finite number"
        issues.append(RecordIssue("not_finite", name, place.row(first), text))
    return issues


def _order_issues(time: Array, place: Place) -> list[RecordIssue]:
    """Return one issue for every run of repeated times and for every step back."""
    issues = []
    steps = np.diff(time)
    label = place.name("time")
    for first, last in _runs(steps == 0.0):
        text = (
            f"{label}, {place.where(first + 1)}: the time {time[first]:.9g} s is given {last - first + 2} "
            "times. "
            "Drop the repeated rows, or give sample_period in place of the time column"
        )
        issues.append(RecordIssue("repeated_time", "time", place.row(first + 1), text))
    for index in np.flatnonzero(steps < 0.0).tolist():
        before, after = time[index], time[index + 1]
        text = f"{label}, {place.where(index + 1)}: the time goes back from {before:.9g} s to {after:.9g} s"
        issues.append(RecordIssue("non_monotone_time", "time", place.row(index + 1), text))
    return issues


def _spacing_issues(time: Array, tolerance: float, place: Place) -> list[RecordIssue]:
    """Return gaps, each by itself, and the largest jitter among the other intervals."""
    steps = np.diff(time)
    forward = steps[steps > 0.0]
    if len(forward) == 0:
        return []
    period = float(np.median(forward))
    issues = []
    for index in np.flatnonzero(steps > GAP_PERIODS * period).tolist():
        text = (
            f"{place.name('time')}, {place.where(index + 1)}: a gap of {steps[index]:.6g} s after "
            f"{time[index]:.9g} s, "
            f"{steps[index] / period:.3g} median periods of {period:.6g} s"
        )
        issues.append(RecordIssue("gap", "time", place.row(index + 1), text))
    usual = (steps > 0.0) & (steps <= GAP_PERIODS * period)
    deviation = np.where(usual, np.abs(steps / period - 1.0), 0.0)
    worst = int(np.argmax(deviation))
    if deviation[worst] > tolerance:
        text = (
            f"{place.name('time')}, {place.where(worst + 1)}: uneven sampling, the largest deviation is an "
            "interval of "
            f"{steps[worst]:.6g} s, {100 * deviation[worst]:.3g} % off the median period of {period:.6g} s "
            f"(tolerance {100 * tolerance:g} %, {int(np.sum(deviation > tolerance))} intervals beyond it)"
        )
        issues.append(RecordIssue("jitter", "time", place.row(worst + 1), text))
    return issues


def _size_issues(
    name: str, values: Array, unit: str, largest: float | None, place: Place
) -> list[RecordIssue]:
    """Return an issue when a magnitude is beyond what was stated, or beyond what is plausible for its "
    "unit."""
    magnitude = np.where(np.isfinite(values), np.abs(values), 0.0)
    if len(magnitude) == 0 or (largest is None and unit not in PLAUSIBLE):
        return []
    limit, why = PLAUSIBLE[unit] if largest is None else (largest, "stated as largest; is the unit right?")
    above = np.flatnonzero(magnitude > limit)
    if len(above) == 0:
        return []
    first = int(above[0])
    kind: Kind = "implausible" if largest is None else "too_large"
    advice = ". If the values are right, state their largest magnitude" if largest is None else ""
    text = (
        f"{place.name(name)}, {place.where(first)}: {values[first]:.6g} {unit} exceeds {limit:.6g} {unit} "
        f"({why}); "
        f"{len(above)} samples do, up to {magnitude.max():.6g} {unit}{advice}"
    )
    return [RecordIssue(kind, name, place.row(first), text)]


def find_issues(
    time: Array,
    columns: Mapping[str, Array],
    units: Mapping[str, str],
    *,
    largest: Mapping[str, float] | None = None,
    jitter_tolerance: float = JITTER_TOLERANCE,
    place: Place | None = None,
) -> tuple[RecordIssue, ...]:
    """Return what is wrong with arrays in SI; see `check_record`."""
    place = Place() if place is None else place
    limits = {} if largest is None else largest
    issues: list[RecordIssue] = []
    if len(time) < 2:
        issues.append(
            RecordIssue(
                "too_few_samples",
                "time",
                None,
                f"{len(time)} sample(s); two are the least that make a record",
            )
        )
    issues += _finite_issues("time", time, place)
    issues += _order_issues(time, place)
    issues += _spacing_issues(time, jitter_tolerance, place)
    for name, values in columns.items():
        issues += _finite_issues(name, values, place)
        issues += _size_issues(name, values, units[name], limits.get(name), place)
    return tuple(issues)


def check_record(
    record: "Record",
    *,
    largest: Mapping[str, float] | None = None,
    jitter_tolerance: float = JITTER_TOLERANCE,
) -> tuple[RecordIssue, ...]:
    """Return everything that is wrong or suspicious in a record, empty when nothing is.

    Parameters
    ----------
    record
        The record.
    largest
        By column the largest magnitude that is possible, in SI: a joint limit, the current of the drive. A
        column that exceeds it is an error. Without it, `PLAUSIBLE` gives a warning for rad and A.
    jitter_tolerance
        The part of the median period by which an interval may differ from it.

    Returns
    -------
    tuple of RecordIssue
        Errors: values that are not finite, repeated and decreasing times, too few samples, magnitudes beyond
        `largest`. Warnings: jitter (the largest, and where), gaps (over 1.5 median periods), implausible
        magnitudes. `row` is the index of the sample, from 0.
    """
    for name in largest or {}:
        record[name]  # raises for an unknown name
    return find_issues(
        record.time, record.columns, record.units, largest=largest, jitter_tolerance=jitter_tolerance
    )


def _first_few(issues: Sequence[RecordIssue], shown: int = 5) -> str:
    """Return the messages of the first few issues, and how many more there are."""
    text = "\n".join(f"  {issue.message}" for issue in issues[:shown])
    return text if len(issues) <= shown else f"{text}\n  and {len(issues) - shown} more"


def raise_errors(issues: Iterable[RecordIssue], what: str) -> tuple[RecordIssue, ...]:
    """Return the warnings among `issues`; raise `RecordError` with the first few errors if there are any."""
    issues = tuple(issues)
    errors = [issue for issue in issues if issue.severity == "error"]
    if errors:
        raise RecordError(f"{what}: {len(errors)} error(s) in the data:\n{_first_few(errors)}")
    return tuple(issue for issue in issues if issue.severity == "warning")


def require_even_sampling(record: "Record", columns: Sequence[str], purpose: str) -> None:
    """Raise `RecordError` unless times are evenly spaced and the named columns are finite.

    Jitter and gaps are errors here, since `purpose` (a filter, a difference) counts samples and not seconds.
    """
    chosen = {name: record[name] for name in columns}
    units = {name: "" for name in chosen}  # magnitudes are not judged again
    issues = find_issues(record.time, chosen, units)
    if issues:
        advice = "Use resample() first where the sampling is uneven."
        raise RecordError(
            f"{purpose} of record {record.source!r} needs evenly sampled, finite "
            f"data:\n{_first_few(issues)}\n{advice}"
        )
