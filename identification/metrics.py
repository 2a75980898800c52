"""Measures of how well a prediction fits a measurement, and of whether residuals are white."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

Array = NDArray[np.float64]


class MetricError(ValueError):
    """A measure that is not defined for the data it was asked for."""


def _finite(values: ArrayLike, what: str) -> Array:
    """Return `values` as a flat array of finite floats, at least one."""
    array = np.asarray(values, dtype=np.float64).ravel()
    if len(array) == 0:
        raise MetricError(f"{what}: there are no values.")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise MetricError(
            f"{what}: value {int(bad[0])} (from 0) is {array[bad[0]]}, and {len(bad)} are not finite."
        )
    return array


def _pair(predicted: ArrayLike, measured: ArrayLike, what: str) -> tuple[Array, Array]:
    """Return prediction and measurement divided by the largest measured magnitude.

    All measures here are ratios, so the scale drops out; without it squares and sums overflow at 1e300.
    """
    if np.shape(predicted) != np.shape(measured):
        raise MetricError(
            f"{what}: predicted has shape {np.shape(predicted)}, measured {np.shape(measured)}."
        )
    prediction, measurement = _finite(predicted, f"{what}: predicted"), _finite(measured, f"{what}: measured")
    scale = float(np.max(np.abs(measurement)))
    if scale == 0.0:
        raise MetricError(
            f"{what} is not defined: every measured value is 0. Give the error in its unit instead."
        )
    return prediction / scale, measurement / scale


def wape(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Return the weighted absolute percentage error, sum |p - m| / sum |m|, %.

    Parameters
    ----------
    predicted, measured
        The same shape and unit.

    Raises
    ------
    MetricError
        When every measured value is 0, a value is not finite, or shapes differ.
    """
    prediction, measurement = _pair(predicted, measured, "wape")
    return float(100.0 * np.sum(np.abs(prediction - measurement)) / np.sum(np.abs(measurement)))


def max_percentage_error(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Return the largest error relative to the mean magnitude (maxPE), max |p - m| / mean |m|, %.

    Parameters
    ----------
    predicted, measured
        The same shape and unit.

    Raises
    ------
    MetricError
        When every measured value is 0, a value is not finite, or shapes differ.
    """
    prediction, measurement = _pair(predicted, measured, "max_percentage_error")
    return float(100.0 * np.max(np.abs(prediction - measurement)) / np.mean(np.abs(measurement)))


def relative_error(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Return the norm of the error relative to that of the measurement, |p - m| / |m|, %.

    Parameters
    ----------
    predicted, measured
        The same shape and unit.

    Raises
    ------
    MetricError
        When every measured value is 0, a value is not finite, or shapes differ.
    """
    prediction, measurement = _pair(predicted, measured, "relative_error")
    return float(100.0 * np.linalg.norm(prediction - measurement) / np.linalg.norm(measurement))


def autocorrelation(values: ArrayLike, lags: int) -> Array:
    """Return the sample autocorrelation r_0 = 1, r_1, ..., r_lags of a series, shape (lags + 1,).

    r_k = sum_t (x_t - m)(x_{t+k} - m) / sum_t (x_t - m)^2 with the mean m; Box, Jenkins, Reinsel, *Time
    Series Analysis*, section 2.1.

    Parameters
    ----------
    values
        The series, shape (n,), in the order of time.
    lags
        The largest lag, 1 to n - 1.

    Raises
    ------
    MetricError
        When the series is constant, a value is not finite, or `lags` is out of range.
    """
    series = _finite(values, "autocorrelation")
    if not 1 <= lags < len(series):
        raise MetricError(
            f"autocorrelation: lags is {lags}, allowed is 1 to {len(series) - 1} for {len(series)} values."
        )
    scale = float(np.max(np.abs(series)))
    if np.all(series == series[0]):
        raise MetricError(f"autocorrelation is not defined: all {len(series)} values are {series[0]:g}.")
    centred = series / scale - np.mean(series / scale)
    total = float(centred @ centred)
    return np.array([centred[: len(centred) - k] @ centred[k:] / total for k in range(lags + 1)])


@dataclass(frozen=True)
class LjungBox:
    """The result of the test that a series is white.

    Parameters
    ----------
    statistic
        Q = n (n + 2) sum_k r_k^2 / (n - k).
    lags
        How many autocorrelations it sums.
    degrees_of_freedom
        Of the chi-square distribution that Q has when the series is white.
    p_value
        The probability of a Q at least this large if the series were white; small means not white.
    """

    statistic: float
    lags: int
    degrees_of_freedom: int
    p_value: float

    def is_white(self, level: float = 0.05) -> bool:
        """Return whether whiteness is *not* rejected at `level`."""
        return self.p_value >= level


def ljung_box(residual: ArrayLike, lags: int, *, fitted: int = 0) -> LjungBox:
    """Return the Ljung-Box test of a residual against whiteness.

    Ljung and Box, *On a measure of lack of fit in time series models*, Biometrika 65 (1978), 297-303.

    Parameters
    ----------
    residual
        Shape (n,), in the order of time.
    lags
        How many autocorrelations are summed, 1 to n - 1; about min(10, n / 5) is usual.
    fitted
        Number of autoregressive and moving-average parameters fitted to this series, which are subtracted
        from the degrees of freedom. Parameters of a mechanical model are none of these.

    Raises
    ------
    MetricError
        When the residual is constant, a value is not finite, or `lags` or `fitted` is out of range.
    """
    if not 0 <= fitted < lags:
        raise MetricError(f"ljung_box: fitted is {fitted}, allowed is 0 to {lags - 1} for {lags} lags.")
    correlation = autocorrelation(residual, lags)[1:]
    n = int(np.size(residual))
    statistic = float(n * (n + 2) * np.sum(correlation**2 / (n - np.arange(1, lags + 1))))
    return LjungBox(statistic, lags, lags - fitted, float(chi2.sf(statistic, lags - fitted)))
