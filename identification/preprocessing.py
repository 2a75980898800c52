"""Filtering, differentiation, decimation and resampling of records, each step noted in the provenance.

Nothing here moves the phase: filters run forward and backward, differences are central.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import interpolate, signal

from mechsmith.identification.record import Record
from mechsmith.identification.record_checks import RecordError, require_even_sampling
from mechsmith.identification.units import UnitError, conversion, derivative_unit

Array = NDArray[np.float64]
EdgePadding = Literal["odd", "even", "constant"]


def _forward_backward(
    sections: Array, values: Array, order: int, edge_padding: EdgePadding, what: str
) -> Array:
    """Return `values`, shape (n, ...), filtered both ways along the first axis.

    The extension at either end has 3 order samples: three times the number of coefficients less one, as
    MATLAB's filtfilt does (scipy's takes 3 more). Second-order sections are used because the coefficients of
    one polynomial lose digits where the cut-off is low.
    """
    padding = 3 * order
    if values.shape[0] <= padding:
        raise RecordError(
            f"{what}: {values.shape[0]} samples; forward-backward filtering of order {order} needs more than "
            f"{padding}. "
            "Use more samples or a lower order."
        )
    filtered = signal.sosfiltfilt(sections, values, axis=0, padtype=edge_padding, padlen=padding)
    return np.asarray(filtered, dtype=np.float64)


def butterworth_zero_phase(
    record: Record,
    columns: Sequence[str],
    *,
    order: int,
    cutoff_hz: float,
    edge_padding: EdgePadding = "odd",
) -> Record:
    """Return the record with columns low-pass filtered by a Butterworth filter, forward and backward.

    Parameters
    ----------
    record
        Evenly sampled.
    columns
        Names of the columns that are filtered in place; the others are kept as they are.
    order
        Order of the filter for one pass, at least 1; the two passes together have twice the order.
    cutoff_hz
        Cut-off frequency of one pass, Hz, below half the sampling frequency. Both passes together attenuate
        by 6 dB there.
    edge_padding
        How the signal is extended at its ends, by 3 `order` samples: point reflection, reflection, or its end
        value.

    Raises
    ------
    RecordError
        When sampling is uneven, a value is not finite, there are too few samples, or an option is out of
        range.
    """
    require_even_sampling(record, columns, "butterworth_zero_phase")
    nyquist = 0.5 / record.sample_period
    if order < 1:
        raise RecordError(f"butterworth_zero_phase: order is {order}, allowed is 1 or more.")
    if not 0.0 < cutoff_hz < nyquist:
        raise RecordError(
            f"butterworth_zero_phase: cutoff_hz is {cutoff_hz:g}; allowed is above 0 and below {nyquist:.6g} "
            "Hz, half the "
            f"sampling frequency of record {record.source!r}."
        )
    sections = signal.butter(order, cutoff_hz / nyquist, output="sos")
    for name in columns:
        values = _forward_backward(
            sections, record[name], order, edge_padding, f"butterworth_zero_phase of {name!r}"
        )
        line = (
            f"{name}: Butterworth low-pass of order {order}, {cutoff_hz:g} Hz, forward and backward, "
            f"{edge_padding} extension of {3 * order} samples"
        )
        record = record.with_column(name, values, record.units[name], provenance=line, overwrite=True)
    return record


def differentiate(record: Record, column: str, name: str, unit: str | None = None) -> Record:
    """Return the record with the time derivative of a column as a further column.

    Central differences (x[k+1] - x[k-1]) / (2 h), one-sided ones at the two ends, h the sample period.

    Parameters
    ----------
    record
        Evenly sampled, two samples or more.
    column
        The column to differentiate.
    name
        Name of the new column.
    unit
        SI unit of the derivative; by default that of the column divided by s.

    Raises
    ------
    RecordError
        When sampling is uneven, a value is not finite, `name` exists, or `unit` is not that of the
        derivative.
    """
    require_even_sampling(record, (column,), "differentiate")
    derived = derivative_unit(record.units[column])
    target = derived if unit is None else unit
    try:
        change = conversion(derived, "", target)
    except UnitError as error:
        raise RecordError(
            f"differentiate: the derivative of {column!r} is in {derived!r}, asked for is {target!r}: {error}"
        ) from error
    period = record.sample_period
    values = change.factor * np.gradient(record[column], period)
    line = f"{name}: central differences of {column}, one-sided at the ends, sample period {period:.9g} s"
    return record.with_column(name, values, target, provenance=line)


def drop(record: Record, *, first: int = 0, last: int = 0) -> Record:
    """Return the record without its `first` first and `last` last samples; times are kept as they are."""
    if first < 0 or last < 0 or first + last >= len(record):
        raise RecordError(
            f"drop: first={first}, last={last} of {len(record)} samples; both must be 0 or more and leave "
            "one sample."
        )
    line = f"dropped the first {first} and the last {last} of {len(record)} samples"
    return record.take(np.arange(first, len(record) - last), provenance=line)


@dataclass(frozen=True)
class Decimation:
    """Low-pass filter and every `factor`-th sample, aligned on the last one, for arrays.

    A Chebyshev filter of type I with its edge at 0.8 / `factor` of the Nyquist frequency runs forward and
    backward with an odd extension of 3 `order` samples. It is linear, so applied to regressor columns and
    measurement alike (or to residuals) it leaves a linear problem's parameters unbiased.

    Parameters
    ----------
    factor
        Every how many samples one is kept, 2 or more.
    order
        Order of the filter for one pass.
    ripple_db
        Ripple in the pass band, dB, one pass.
    unit_gain
        Whether constants pass unchanged. As published (False), a filter of even order passes constants with
        10^(-2 ripple_db / 20), 0.9886 for 0.05 dB: without effect on the solution of a linear problem, but
        residuals come out smaller by that factor.

    Raises
    ------
    RecordError
        When an option is out of range.
    """

    factor: int
    order: int = 8
    ripple_db: float = 0.05
    unit_gain: bool = False

    def __post_init__(self) -> None:
        if self.factor < 2:
            raise RecordError(f"Decimation: factor is {self.factor}, allowed is 2 or more.")
        if self.order < 1:
            raise RecordError(f"Decimation: order is {self.order}, allowed is 1 or more.")
        if not self.ripple_db > 0.0:
            raise RecordError(f"Decimation: ripple_db is {self.ripple_db}, allowed is above 0.")

    def rows(self, n: int) -> NDArray[np.intp]:
        """Return the indices of the samples that are kept of `n`, shape (m,), m = ceil(n / factor); the "
        "last is n - 1."""
        return np.arange((n - 1) % self.factor, n, self.factor, dtype=np.intp)

    def apply(self, values: Array) -> Array:
        """Return `values`, shape (n,) or (n, k), filtered and decimated to (m,) or (m, k).

        Raises
        ------
        RecordError
            When n is not above 3 `order`. Values that are not finite are passed on, and spread over their
            column.
        """
        array = np.asarray(values, dtype=np.float64)
        sections = signal.cheby1(self.order, self.ripple_db, 0.8 / self.factor, output="sos")
        filtered = _forward_backward(sections, array, self.order, "odd", "Decimation.apply")
        if self.unit_gain and self.order % 2 == 0:
            # an even order has its ripple's minimum at frequency 0; two passes double the decibels
            filtered = filtered * 10.0 ** (2.0 * self.ripple_db / 20.0)
        return np.asarray(filtered[self.rows(array.shape[0])])


def decimate(
    record: Record,
    factor: int,
    *,
    columns: Sequence[str] | None = None,
    order: int = 8,
    ripple_db: float = 0.05,
    unit_gain: bool = True,
) -> Record:
    """Return the record with every `factor`-th sample, aligned on the last, after an anti-alias filter.

    Parameters
    ----------
    record
        Evenly sampled.
    factor
        2 or more.
    columns
        The columns that are filtered, by default all; from the others samples are taken as they are (flags,
        counters).
    order, ripple_db
        As in `Decimation`.
    unit_gain
        As in `Decimation`, but True by default: a column remains a measurement in its unit, where the
        published filter would make a constant 1.1 % smaller.

    Raises
    ------
    RecordError
        When sampling is uneven, a value is not finite, there are too few samples, or an option is out of
        range.
    """
    chosen = tuple(record.columns) if columns is None else tuple(columns)
    require_even_sampling(record, chosen, "decimate")
    decimation = Decimation(factor, order, ripple_db, unit_gain)
    rows = decimation.rows(len(record))
    values = {
        name: decimation.apply(array) if name in chosen else array[rows]
        for name, array in record.columns.items()
    }
    gain = "unit gain" if unit_gain else "gain as published"
    line = (
        f"decimated by {factor}, {len(record)} to {len(rows)} samples, the last one kept; "
        f"{', '.join(chosen)} filtered by "
        f"Chebyshev I of order {order}, {ripple_db:g} dB, edge {0.8 / factor:.6g} of Nyquist, forward and "
        f"backward, {gain}"
    )
    return Record(record.time[rows], values, record.units, record.source, (*record.provenance, line))


def resample(
    record: Record,
    period: float,
    *,
    method: Literal["linear", "cubic"] = "linear",
    longest_gap: float | None = None,
) -> Record:
    """Return the record interpolated to evenly spaced times, from its first time on.

    There is no anti-alias filter: with a `period` above the record's own, filter or `decimate` afterwards
    instead.

    Parameters
    ----------
    record
        Times increasing, values finite; jitter and gaps are allowed.
    period
        The new sample period, s.
    method
        Straight lines, or a cubic spline (not-a-knot, four samples or more).
    longest_gap
        The longest interval that may be bridged, s; a longer one is an error. By default none is refused, and
        the provenance tells the longest.

    Raises
    ------
    RecordError
        When times do not increase, a value is not finite, or an option is out of range.
    """
    steps = np.diff(record.time)
    if not period > 0.0 or len(record) < (4 if method == "cubic" else 2):
        raise RecordError(
            f"resample: period {period:g} s, {len(record)} samples, method {method!r}; the period must be "
            "above 0 and "
            "the samples two or more, four or more for 'cubic'."
        )
    finite = all(bool(np.all(np.isfinite(values))) for values in (record.time, *record.columns.values()))
    if not finite or not np.all(steps > 0.0):
        raise RecordError(
            f"resample: record {record.source!r} has values that are not finite, or times that do not "
            "increase. "
            "check_record names them; remove them first."
        )
    widest = int(np.argmax(steps))
    if longest_gap is not None and steps[widest] > longest_gap:
        raise RecordError(
            f"resample: the interval after {record.time[widest]:.9g} s (sample {widest} from 0) is "
            f"{steps[widest]:.6g} s, "
            f"allowed is {longest_gap:g} s. Slice the record there, or allow more."
        )
    # the last grid point may miss the last time by rounding only
    count = int(np.floor((record.time[-1] - record.time[0]) / period * (1.0 + 1e-12) + 1e-9)) + 1
    time = np.minimum(record.time[0] + period * np.arange(count), record.time[-1])
    values = {name: _interpolated(record.time, array, time, method) for name, array in record.columns.items()}
    line = (
        f"resampled to {period:.9g} s by {method} interpolation, {len(record)} to {count} samples; "
        f"longest interval bridged {steps[widest]:.6g} s, after {record.time[widest]:.9g} s"
    )
    return Record(time, values, record.units, record.source, (*record.provenance, line))


def _interpolated(time: Array, values: Array, at: Array, method: str) -> Array:
    """Return `values` interpolated at the times `at`."""
    if method == "linear":
        return np.asarray(np.interp(at, time, values))
    if method == "cubic":
        return np.asarray(interpolate.CubicSpline(time, values)(at))
    raise RecordError(f"resample: method is {method!r}, allowed are 'linear' and 'cubic'.")
