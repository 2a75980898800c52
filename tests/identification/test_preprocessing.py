import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from mechsmith.identification.preprocessing import (
    Decimation,
    butterworth_zero_phase,
    decimate,
    differentiate,
    drop,
    resample,
)
from mechsmith.identification.record import Record
from mechsmith.identification.record_checks import RecordError

PERIOD = 1e-3


def _record(n: int = 2001) -> Record:
    time = np.arange(n) * PERIOD
    return Record.from_arrays(
        time,
        {"a": (np.sin(2 * np.pi * 2 * time), "rad"), "b": (np.sin(2 * np.pi * 7 * time + 1), "rad")},
    )


def test_filter_does_not_move_the_phase() -> None:
    """Trap D7: a pulse that is symmetric in time stays so, and its peak stays where it is."""
    n = 2001
    time = np.arange(n) * PERIOD
    pulse = np.exp(-(((time - 1.0) / 0.02) ** 2))
    record = Record.from_arrays(time, {"x": (pulse, "m")})
    filtered = butterworth_zero_phase(record, ["x"], order=4, cutoff_hz=20.0)["x"]
    assert int(np.argmax(filtered)) == 1000
    # one pass each way leaves the order of the two visible only through the ends, where the pulse is below
    # 1e-300
    np.testing.assert_allclose(filtered, filtered[::-1], atol=1e-12)
    one_pass = signal.sosfilt(signal.butter(4, 0.04, output="sos"), pulse)
    assert int(np.argmax(one_pass)) > 1010  # what a filter that moves the phase does


def test_every_named_column_is_filtered_the_last_too() -> None:
    """Trap D7: the last joint's acceleration was lost elsewhere. Here it is that of sin(2 pi 7 t + 1)."""
    record = butterworth_zero_phase(_record(), ["a", "b"], order=4, cutoff_hz=100.0)
    for joint, frequency, phase in (("a", 2.0, 0.0), ("b", 7.0, 1.0)):
        record = differentiate(record, joint, f"{joint}_v")
        record = differentiate(record, f"{joint}_v", f"{joint}_a", "rad/s^2")
        exact = -((2 * np.pi * frequency) ** 2) * np.sin(2 * np.pi * frequency * record.time + phase)
        # two central differences: relative error (w h)^2 / 3 = 6e-4 at 7 Hz; the filter's is (7/100)^8 =
        # 6e-10. The padding disturbs the ends, so that 0.1 s are left out.
        inner = slice(100, -100)
        np.testing.assert_allclose(
            record[f"{joint}_a"][inner], exact[inner], atol=7e-4 * (2 * np.pi * frequency) ** 2
        )
    assert record.units["b_v"] == "rad/s"
    assert record.units["b_a"] == "rad/s^2"


def test_columns_not_named_are_kept() -> None:
    record = _record()
    filtered = butterworth_zero_phase(record, ["a"], order=2, cutoff_hz=5.0)
    np.testing.assert_array_equal(filtered["b"], record["b"])
    assert np.max(np.abs(filtered["a"] - record["a"])) > 1e-3
    assert "order 2, 5 Hz, forward and backward, odd extension of 6 samples" in filtered.provenance[-1]


def test_gain_at_the_cut_off_is_a_half() -> None:
    time = np.arange(8001) * PERIOD
    record = Record.from_arrays(time, {"x": (np.sin(2 * np.pi * 25 * time), "m")})
    middle = butterworth_zero_phase(record, ["x"], order=4, cutoff_hz=25.0)["x"][3000:5000]
    # each pass has 1/sqrt 2 at the cut-off; 2,000 samples are 50 whole periods, so the root mean square is
    # exact
    assert math.sqrt(2 * np.mean(middle**2)) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("order", "cutoff", "pattern"),
    [
        (4, 500.0, "below 500 Hz"),
        (4, 0.0, "cutoff_hz is 0"),
        (0, 10.0, "order is 0"),
        (4, float("nan"), "cutoff_hz is nan"),
    ],
)
def test_filter_options(order: int, cutoff: float, pattern: str) -> None:
    with pytest.raises(RecordError, match=pattern):
        butterworth_zero_phase(_record(), ["a"], order=order, cutoff_hz=cutoff)


def test_too_few_samples_for_the_extension() -> None:
    with pytest.raises(RecordError, match=r"12 samples; .* needs more than 12"):
        butterworth_zero_phase(_record(12), ["a"], order=4, cutoff_hz=100.0)
    assert len(butterworth_zero_phase(_record(13), ["a"], order=4, cutoff_hz=100.0)) == 13


def _uneven(kind: str) -> Record:
    time = np.arange(100) * PERIOD
    values = np.sin(time)
    if kind == "jitter":
        time[50] += 0.1 * PERIOD
    elif kind == "gap":
        time[50:] += PERIOD
    else:
        values[50] = np.nan
    return Record.from_arrays(time, {"a": (values, "m")}, check=False)


@pytest.mark.parametrize(
    ("kind", "pattern"), [("jitter", "uneven"), ("gap", "a gap of"), ("nan", "sample 50.*nan")]
)
def test_uneven_or_broken_data_are_refused(kind: str, pattern: str) -> None:
    record = _uneven(kind)
    with pytest.raises(RecordError, match=pattern):
        butterworth_zero_phase(record, ["a"], order=4, cutoff_hz=100.0)
    with pytest.raises(RecordError, match=pattern):
        differentiate(record, "a", "v")
    with pytest.raises(RecordError, match=pattern):
        decimate(record, 2)


def test_nan_in_another_column_does_not_matter() -> None:
    record = _uneven("nan").with_column("b", np.zeros(100), "m", provenance="b: zero")
    assert len(differentiate(record, "b", "v")) == 100


def test_differences_are_exact_for_a_parabola() -> None:
    time = np.arange(6) * 0.5
    record = differentiate(Record.from_arrays(time, {"x": (time**2, "m")}), "x", "v")
    # one-sided at the ends: 0.5 and 4.5 in place of 0 and 5; binary fractions throughout, so that all is
    # exact
    np.testing.assert_array_equal(record["v"], [0.5, 1.0, 2.0, 3.0, 4.0, 4.5])
    assert record.units["v"] == "m/s"


def test_unit_of_a_derivative() -> None:
    with pytest.raises(RecordError, match=r"derivative of 'a' is in 'rad/s', asked for is 'm/s'"):
        differentiate(_record(), "a", "v", "m/s")
    with pytest.raises(RecordError, match=r"'deg/s' is not coherent SI"):
        differentiate(_record(), "a", "v", "deg/s")
    with pytest.raises(RecordError, match="column 'b' already"):
        differentiate(_record(), "a", "b")


def test_drop() -> None:
    record = drop(_record(10), first=2, last=3)
    np.testing.assert_array_equal(record.time, np.arange(10)[2:7] * PERIOD)
    assert record.provenance[-1] == "dropped the first 2 and the last 3 of 10 samples"
    for first, last in ((-1, 0), (0, -1), (5, 5)):
        with pytest.raises(RecordError, match="leave one sample"):
            drop(_record(10), first=first, last=last)


@given(st.integers(1, 400), st.integers(2, 60))
def test_rows_are_aligned_on_the_last(n: int, factor: int) -> None:
    rows = Decimation(factor).rows(n)
    assert rows[-1] == n - 1
    assert 0 <= rows[0] < factor
    assert len(rows) == -(-n // factor)
    assert np.all(np.diff(rows) == factor)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_decimation_is_linear_and_works_column_by_column(seed: int, factor: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((150, 3))
    weights = np.array([2.0, -3.0, 0.5])
    decimation = Decimation(factor)
    together = decimation.apply(matrix)
    # 1e-10: roundings of 1e-16 are amplified by at most 1 / (1 - |pole|), about 1e2 at factor 12, in every
    # section
    np.testing.assert_allclose(decimation.apply(matrix @ weights), together @ weights, atol=1e-10)
    np.testing.assert_allclose(decimation.apply(matrix[:, 1]), together[:, 1], atol=1e-10)


@pytest.mark.parametrize("factor", [2, 10, 100])
def test_gain_for_constants(factor: int) -> None:
    constant = np.ones(2000)
    # 1e-9: the sum of a filter's coefficients, near zero at low cut-off, carries relative roundings of 1e-16
    # / 1e-7
    np.testing.assert_allclose(Decimation(factor).apply(constant), 10 ** (-0.1 / 20), rtol=1e-9)
    np.testing.assert_allclose(Decimation(factor, unit_gain=True).apply(constant), 1.0, rtol=1e-9)
    np.testing.assert_allclose(Decimation(factor, order=7, unit_gain=True).apply(constant), 1.0, rtol=1e-9)


def test_decimation_is_the_polynomial_filter_where_that_is_accurate() -> None:
    """The published recipe uses numerator and denominator; at factor 10 these lose half of the digits, not "
    "more."""
    values = np.cumsum(np.random.default_rng(0).standard_normal(5000))
    values /= np.std(values)
    b, a = signal.cheby1(8, 0.05, 0.8 / 10)
    expected = signal.filtfilt(b, a, values, padlen=24)[Decimation(10).rows(5000)]
    # the polynomial form has a relative error of 5e-9 in its gain at frequency 0 already
    np.testing.assert_allclose(Decimation(10).apply(values), expected, atol=2e-7)


def test_decimation_removes_what_would_alias() -> None:
    time = np.arange(20000) * PERIOD
    fast = Decimation(10).apply(np.sin(2 * np.pi * 90 * time))
    # 90 Hz would appear as 10 Hz with full amplitude; the order-8 filter leaves less than -100 dB in two
    # passes
    assert np.max(np.abs(fast[100:-100])) < 1e-5


def test_decimate_record() -> None:
    time = np.arange(2003) * PERIOD
    record = Record.from_arrays(
        time, {"x": (3.0 + np.sin(2 * np.pi * time), "m"), "flag": (np.arange(2003) % 2, "")}
    )
    small = decimate(record, 10, columns=["x"])
    np.testing.assert_array_equal(small.time, time[2::10])
    np.testing.assert_array_equal(small["flag"], np.arange(2003)[2::10] % 2)
    # the ripple: at most 0.1 dB = 1.2 % of the amplitude 1, away from the ends
    np.testing.assert_allclose(small["x"][20:-20], record["x"][2::10][20:-20], atol=0.012)
    assert "decimated by 10, 2003 to 201 samples" in small.provenance[-1]
    published = decimate(record, 10, unit_gain=False)
    assert np.mean(published["x"]) / np.mean(small["x"]) == pytest.approx(10 ** (-0.1 / 20), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [((1, 8, 0.05), "factor is 1"), ((2, 0, 0.05), "order is 0"), ((2, 8, 0.0), "ripple_db is 0")],
)
def test_decimation_options(options: tuple[int, int, float], pattern: str) -> None:
    with pytest.raises(RecordError, match=pattern):
        Decimation(*options)


def test_resample_mends_jitter() -> None:
    time = np.arange(500) * 0.01 + np.random.default_rng(1).uniform(-0.003, 0.003, 500)
    record = Record.from_arrays(time, {"x": (np.sin(2 * np.pi * time), "m")})
    with pytest.raises(RecordError, match="uneven"):
        differentiate(record, "x", "v")
    for method, tolerance in (("linear", 1.3e-3), ("cubic", 1e-4)):
        even = resample(record, 0.01, method=method)  # type: ignore[arg-type]
        # linear: h^2 w^2 / 8 = 1.3e-3 for the longest h = 0.016 s; the spline's interior error is 5/384 (h
        # w)^4 = 1.3e-6, larger at the ends where its condition is one-sided
        np.testing.assert_allclose(even["x"], np.sin(2 * np.pi * even.time), atol=tolerance)
        assert len(differentiate(even, "x", "v")) == len(even)
        assert (
            f"{method} interpolation, 500 to {len(even)} samples; longest interval bridged"
            in even.provenance[-1]
        )


def test_resample_keeps_the_last_sample_of_an_even_record() -> None:
    record = _record(1001)
    even = resample(record, 0.01)
    np.testing.assert_allclose(
        even["a"], record["a"][::10], atol=1e-13
    )  # slope 12.6 /s times rounding of the time
    assert len(even) == 101


def test_resample_errors() -> None:
    record = _uneven("gap")
    with pytest.raises(RecordError, match=r"sample 49 from 0\) is 0.002 s, allowed is 0.0015 s"):
        resample(record, PERIOD, longest_gap=0.0015)
    assert len(resample(record, PERIOD, longest_gap=0.0021)) == 101
    with pytest.raises(RecordError, match="not finite"):
        resample(_uneven("nan"), PERIOD)
    with pytest.raises(RecordError, match="period 0 s"):
        resample(record, 0.0)
    with pytest.raises(RecordError, match="method is 'spline'"):
        resample(record, PERIOD, method="spline")  # type: ignore[arg-type]
