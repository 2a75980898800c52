import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechsmith.identification.record import Record
from mechsmith.identification.record_checks import RecordError


def _record() -> Record:
    time = np.arange(5) * 0.25
    return Record.from_arrays(
        time, {"q": (np.arange(5.0), "rad"), "tau": ([5, 4, 3, 2, 1], "N*m")}, source="bench"
    )


def test_from_arrays_converts_and_says_so() -> None:
    record = Record.from_arrays([0, 1], {"angle": ([180, 90], "deg"), "current": ([1.0, 2.0], "mA")})
    # one rounding of the factor and one of the product
    np.testing.assert_allclose(record["angle"], [np.pi, np.pi / 2], rtol=4e-16)
    np.testing.assert_allclose(record["current"], [1e-3, 2e-3], rtol=4e-16)
    assert dict(record.units) == {"angle": "rad", "current": "A"}
    assert record.provenance[0].startswith("angle: deg to rad (times 0.0174532925199433")


def test_everything_is_read_only_and_a_copy() -> None:
    values = np.arange(3.0)
    record = Record.from_arrays([0, 1, 2], {"x": (values, "m")})
    values[0] = 99.0
    assert record["x"][0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        record["x"][0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        record.time[0] = 1.0
    with pytest.raises(TypeError):
        record.columns["x"] = values  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        record.source = "other"  # type: ignore[misc]


def test_pickles_and_stays_read_only() -> None:
    record = _record()
    copy = pickle.loads(pickle.dumps(record))
    assert (copy.source, copy.provenance, dict(copy.units)) == (
        record.source,
        record.provenance,
        dict(record.units),
    )
    np.testing.assert_array_equal(copy["tau"], record["tau"])
    assert not copy["tau"].flags.writeable


def test_sample_period_is_the_mean_without_gaps() -> None:
    time = np.concatenate((np.arange(10) * 0.01, 5.0 + np.arange(10) * 0.01))
    record = Record.from_arrays(time, {"x": (time, "m")})
    # times near 5 carry rounding of 5 * 2^-53 each, 1e-13 of the period
    assert record.sample_period == pytest.approx(0.01, rel=1e-12)
    with pytest.raises(RecordError, match="no period"):
        record.slice(0, 1).sample_period  # noqa: B018


def test_slice_select_rename_take() -> None:
    record = _record()
    part = record.slice(1, -1)
    np.testing.assert_array_equal(part.time, [0.25, 0.5, 0.75])
    assert len(part) == 3
    assert part.provenance[-1] == "samples 1 to 3 (from 0) of 5 kept"
    renamed = record.rename({"q": "position"})
    assert list(renamed.columns) == ["position", "tau"]
    assert renamed.units["position"] == "rad"
    assert "q" not in renamed
    assert list(record.select(["tau"]).columns) == ["tau"]
    with pytest.raises(RecordError, match="empty"):
        record.slice(4, 2)
    with pytest.raises(RecordError, match="a name twice"):
        record.rename({"q": "tau"})


def test_rename_can_exchange() -> None:
    record = _record().rename({"q": "tau", "tau": "q"})
    np.testing.assert_array_equal(record["q"], [5, 4, 3, 2, 1])
    assert record.units["q"] == "N*m"


def test_with_column() -> None:
    record = _record().with_column("v", np.full(5, 60.0), "rpm", provenance="v: from the tachometer")
    # the conversion factor's rounding and one more
    np.testing.assert_allclose(record["v"], 2 * np.pi, rtol=4e-16)
    assert record.provenance[0] == "v: from the tachometer"
    with pytest.raises(RecordError, match=r"column 'v' already.*overwrite=True"):
        record.with_column("v", np.zeros(5), "rad/s", provenance="again")
    assert record.with_column("v", np.zeros(5), "rad/s", provenance="again", overwrite=True)["v"][0] == 0.0


def test_errors_name_the_column() -> None:
    with pytest.raises(RecordError, match=r"no column 'nothing'; there are \['q', 'tau'\]"):
        _record()["nothing"]
    with pytest.raises(RecordError, match=r"'x' has 2 samples, time has 3"):
        Record.from_arrays([0, 1, 2], {"x": ([1, 2], "m")})
    with pytest.raises(RecordError, match=r"'x': shape \(3, 1\)"):
        Record.from_arrays([0, 1, 2], {"x": (np.zeros((3, 1)), "m")})
    with pytest.raises(RecordError, match=r"'x'.*'parsec per'"):
        Record.from_arrays([0, 1], {"x": ([1, 2], "parsec per")})
    with pytest.raises(RecordError, match=r"'x' has the unit 'deg'.*'rad'"):
        Record(np.arange(2.0), {"x": np.arange(2.0)}, {"x": "deg"})
    with pytest.raises(RecordError, match="exactly one unit"):
        Record(np.arange(2.0), {"x": np.arange(2.0)}, {})
    with pytest.raises(RecordError, match=r"'x', sample 1 \(from 0\): nan"):
        Record.from_arrays([0, 1], {"x": ([1, np.nan], "m")})


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=20), st.integers(-25, 25), st.integers(-25, 25)
)
def test_slice_is_python_slicing(values: list[float], start: int, stop: int) -> None:
    record = Record.from_arrays(np.arange(len(values)), {"x": (values, "m")})
    expected = values[start:stop]
    if expected:
        assert record.slice(start, stop)["x"].tolist() == expected
    else:
        with pytest.raises(RecordError):
            record.slice(start, stop)
