"""How well the data determine each parameter: covariance, null directions, intervals, whiteness.

Everything is computed from residuals divided by their size and Jacobian columns divided by their norms, so that neither
tiny nor huge units matter.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from mechsmith.identification.metrics import MetricError, ljung_box
from mechsmith.identification.norms import norm, triangular_factor
from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.scaling import Log

Array = NDArray[np.float64]
# A parameter takes part in a null direction when its share of it (squared, of 1) exceeds this.
PARTICIPATION = 1e-6


@dataclass(frozen=True)
class Uncertainty:
    """Options for what an Estimate says about its precision.

    Parameters
    ----------
    degrees_of_freedom : str
        ``samples-parameters`` divides the squared residual by m - n, which is unbiased for white noise;
        ``samples-1`` by m - 1, as some published results do.
    known_noise : bool, optional
        Whether the residual's noise is absolute, so that the covariance is not scaled by the residual found. By default
        only with priors.
    confidence : float
        Of the intervals.
    whiteness_level : float
        Below this p-value of the Ljung-Box test a residual counts as not white, and the covariance is corrected.
    whiteness_lags : int
        Autocorrelations summed in that test, at most a fifth of the samples.
    rank_tolerance : float
        Singular values of the column-scaled Jacobian below this share of the largest are directions the data do not
        determine.
    weak_threshold : float
        A parameter whose standard deviation exceeds this many times its size is undetermined too. The size of a logarithmic
        parameter is its value; of another the largest of its value, its nominal value and half its bounded range. At one half
        a linear 95 % interval reaches zero.
    """

    degrees_of_freedom: Literal["samples-parameters", "samples-1"] = "samples-parameters"
    known_noise: bool | None = None
    confidence: float = 0.95
    whiteness_level: float = 0.01
    whiteness_lags: int = 20
    rank_tolerance: float = 1e-10
    weak_threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.degrees_of_freedom not in ("samples-parameters", "samples-1"):
            raise ProblemError(
                f"uncertainty: degrees_of_freedom is {self.degrees_of_freedom!r}; use 'samples-parameters' or 'samples-1'."
            )
        if not 0.0 < self.confidence < 1.0:
            raise ProblemError(f"uncertainty: confidence is {self.confidence}; it must be between 0 and 1.")


@dataclass(frozen=True)
class Whiteness:
    """The Ljung-Box test of one output's residual in one record."""

    record: int
    output: str
    statistic: float
    lags: int
    p_value: float


@dataclass(frozen=True, eq=False)
class Precision:
    """What the Jacobian and the residual at a solution say.

    Parameters
    ----------
    covariance_white, covariance_corrected : array
        (n, n) in physical units, for white residuals and corrected for their autocorrelation. Infinite variance and NaN
        covariances for parameters in a null direction.
    white : bool
        Whether no residual was found not white.
    whiteness : tuple of Whiteness
        By record and output; residuals that are constant have none.
    singular_values : array
        Of the column-scaled Jacobian, descending.
    condition, scaled_condition : float
        Of the Jacobian in physical units and of the column-scaled one.
    null_directions : tuple of mapping
        Combinations of parameters, in their units, that change no residual to first order; largest coefficient
        relative to its parameter's column first.
    undetermined : tuple of str
        Parameters in null directions, and weak ones.
    lower, upper : array
        Ends of the confidence intervals, symmetric in the logarithm for logarithmic parameters; infinite for what is
        undetermined, but a bounded parameter's lower bound stays.
    residual_deviation : float
        Standard deviation of the residual (over noise where that is given).
    lags : int
        Bandwidth of the corrected covariance, samples.
    """

    covariance_white: Array
    covariance_corrected: Array
    white: bool
    whiteness: tuple[Whiteness, ...]
    singular_values: Array
    condition: float
    scaled_condition: float
    null_directions: tuple[dict[str, float], ...]
    undetermined: tuple[str, ...]
    lower: Array
    upper: Array
    residual_deviation: float
    lags: int


def precision(problem: Problem, vector: Array, options: Uncertainty) -> Precision:
    """Return how well a solution, shape (n,) in physical units, is determined."""
    residuals = [problem.record_residual(vector, k) for k in range(len(problem.records))]
    jacobian = problem.jacobian(vector)
    if not np.isfinite(jacobian).all():
        return _nothing_known(problem, residuals, options)
    weight = np.array([norm(column) for column in jacobian.T])
    weight[weight == 0.0] = 1.0
    # the triangular factor has the same singular values; it is small, and square also where residuals are few
    factor = triangular_factor(jacobian / weight)
    _, singular, right = np.linalg.svd(factor)
    kept = singular > options.rank_tolerance * singular[0]
    null = right[~kept]
    in_null = np.sum(null**2, axis=0) > PARTICIPATION
    inverse = (right[kept].T / singular[kept] ** 2) @ right[kept]
    rank = int(kept.sum())
    white, corrected, lags = _covariances(problem, jacobian, weight, inverse, residuals, rank, options)
    for matrix in (white, corrected):
        matrix[in_null, :] = matrix[:, in_null] = np.nan
        matrix[in_null, in_null] = np.inf
    tests = _tests(problem, residuals, options)
    is_white = all(test.p_value >= options.whiteness_level for test in tests)
    chosen = white if is_white else corrected
    weak = in_null | _weak(problem, vector, np.sqrt(np.diag(chosen)), options)
    freedom = max(sum(r.size for r in residuals) - rank, 1)
    low, high = _intervals(problem, vector, chosen, weak, freedom, options)
    return Precision(
        covariance_white=white,
        covariance_corrected=corrected,
        white=is_white,
        whiteness=tests,
        singular_values=singular,
        condition=_ratio(np.linalg.svd(factor * (weight / max(weight)), compute_uv=False)),
        scaled_condition=_ratio(singular),
        null_directions=tuple(_direction(problem, row / weight, row) for row in null),
        undetermined=tuple(name for name, one in zip(problem.names, weak, strict=True) if one),
        lower=low,
        upper=high,
        residual_deviation=_residual_deviation(residuals, rank, options),
        lags=lags,
    )


def _covariances(
    problem: Problem,
    jacobian: Array,
    weight: Array,
    inverse: Array,
    residuals: list[Array],
    rank: int,
    options: Uncertainty,
) -> tuple[Array, Array, int]:
    """Return the covariance for white residuals, the corrected one, and the latter's bandwidth.

    The corrected one is the sandwich H^-1 S H^-1 of the inverse of H = J'J (`inverse`, column-scaled) around the long-run sum S of
    the scores, times m / (m - rank) as the white one's.
    """
    samples = sum(r.size for r in residuals)
    scaled = jacobian / weight
    known = options.known_noise if options.known_noise is not None else bool(problem.priors)
    spread = 1.0 if known else _residual_deviation(residuals, rank, options)
    subtracted = 1 if options.degrees_of_freedom == "samples-1" else rank
    scores, lags = _scores(scaled, residuals)
    middle = sum((_long_run(s, lags) for s in scores), np.zeros_like(inverse))
    middle *= samples / max(samples - subtracted, 1)
    sandwich, scale = inverse @ middle @ inverse, _scale_of(residuals)
    # the factors are applied to rows and columns in turn: their squares could overflow
    white = (inverse * (spread / weight)[:, None]) * (spread / weight)
    corrected = (sandwich * (scale / weight)[:, None]) * (scale / weight)
    if len(scaled) > samples:
        prior_rows = scaled[samples:]
        added = inverse @ (prior_rows.T @ prior_rows) @ inverse
        corrected = corrected + added / weight[:, None] / weight
    return white, corrected, lags


def _nothing_known(problem: Problem, residuals: list[Array], options: Uncertainty) -> Precision:
    n = len(problem.names)
    unknown = np.full((n, n), np.nan)
    np.fill_diagonal(unknown, np.inf)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    deviation = _residual_deviation(residuals, n, options)
    values = np.full(n, np.nan)
    return Precision(
        unknown, unknown, False, (), values, np.nan, np.nan, (), problem.names, low, high, deviation, 0
    )


def _scale_of(residuals: list[Array]) -> float:
    return max(float(np.abs(r).max(initial=0.0)) for r in residuals) or 1.0


def _residual_deviation(residuals: list[Array], rank: int, options: Uncertainty) -> float:
    stacked = np.concatenate([r.reshape(-1) for r in residuals])
    subtracted = 1 if options.degrees_of_freedom == "samples-1" else rank
    if len(stacked) <= subtracted:
        return math.inf
    return norm(stacked) / math.sqrt(len(stacked) - subtracted)


def _ratio(singular: Array) -> float:
    return float(singular[0] / singular[-1]) if singular[-1] > 0.0 else math.inf


def _scores(jacobian: Array, residuals: list[Array]) -> tuple[list[Array], int]:
    """Return each record's products of residual and Jacobian row, summed over outputs, (rows, n), and the bandwidth."""
    scale = _scale_of(residuals)
    scores, begin = [], 0
    for residual in residuals:
        rows = jacobian[begin : begin + residual.size].reshape(*residual.shape, -1)
        begin += residual.size
        scores.append(np.einsum("ty,tyn->tn", residual / scale, rows))
    return scores, max(bandwidth(score) for score in scores)


def bandwidth(scores: Array) -> int:
    """Return how many autocovariances the corrected covariance sums.

    Andrews, *Heteroskedasticity and autocorrelation consistent covariance matrix estimation*, Econometrica 59 (1991), 817-858,
    eqs. (6.2), (6.4): 1.1447 (a T)^(1/3) for Bartlett weights, where a comes from a first-order autoregression of each column
    of the scores, (T, n); at most T / 4.
    """
    count = len(scores)
    size = np.sqrt(np.mean(scores**2, axis=0))
    columns = scores[:, size > 0.0] / size[size > 0.0]
    if count < 8 or columns.shape[1] == 0:
        return 0
    before, after = columns[:-1], columns[1:]
    rho = np.clip(np.sum(before * after, axis=0) / np.sum(before**2, axis=0), -0.97, 0.97)
    variance = np.mean((after - rho * before) ** 2, axis=0)
    if not variance.any():
        return 0
    top = np.sum(4.0 * rho**2 * variance**2 / ((1.0 - rho) ** 6 * (1.0 + rho) ** 2))
    ratio = top / np.sum(variance**2 / (1.0 - rho) ** 4)
    return int(min(1.1447 * (ratio * count) ** (1.0 / 3.0), count / 4))


def _long_run(scores: Array, lags: int) -> Array:
    """Return the sum of autocovariances of scores with Bartlett weights, (n, n).

    Newey and West, *A simple, positive semi-definite, heteroskedasticity and autocorrelation consistent covariance matrix*,
    Econometrica 55 (1987), 703-708, eq. (5).
    """
    # Bartlett's triangle is a box of lags + 1 samples convolved with itself: one product of moving sums, linear in the samples.
    width = lags + 1
    padded = np.zeros((len(scores) + 2 * width - 1, scores.shape[1]))
    padded[width : width + len(scores)] = scores
    running = np.cumsum(padded, axis=0)
    blocks = running[width:] - running[:-width]
    return np.asarray(blocks.T @ blocks / width)


def _tests(problem: Problem, residuals: list[Array], options: Uncertainty) -> tuple[Whiteness, ...]:
    tests = []
    for k, residual in enumerate(residuals):
        lags = min(options.whiteness_lags, len(residual) // 5)
        for i, name in enumerate(problem.comparison.names):
            try:
                test = ljung_box(residual[:, i], lags)
            except MetricError:
                # a residual of constant value (an exact fit), or too short a record: there is nothing to test
                continue
            tests.append(Whiteness(k, name, test.statistic, test.lags, test.p_value))
    return tuple(tests)


def _weak(problem: Problem, vector: Array, deviations: Array, options: Uncertainty) -> NDArray[np.bool_]:
    weak = np.zeros(len(vector), dtype=bool)
    for i, slot in enumerate(problem.slots):
        size = abs(float(vector[i]))
        if not isinstance(problem.space.transforms[i], Log):
            range_ = 0.5 * (slot.upper - slot.lower)
            size = max(size, abs(slot.nominal or 0.0), range_ if math.isfinite(range_) else 0.0)
        weak[i] = bool(deviations[i] > options.weak_threshold * size) if size > 0.0 else False
    return weak


def _intervals(
    problem: Problem,
    vector: Array,
    covariance: Array,
    open_: NDArray[np.bool_],
    free: int,
    options: Uncertainty,
) -> tuple[Array, Array]:
    quantile = float(student.ppf(0.5 + 0.5 * options.confidence, free))
    half = quantile * np.sqrt(np.diag(covariance))
    low, high = vector - half, vector + half
    for i, transform in enumerate(problem.space.transforms):
        if isinstance(transform, Log) and vector[i] > 0.0 and not open_[i]:
            # the deviation of the logarithm is the relative one, and the interval stays positive
            factor = math.exp(min(half[i] / vector[i], 600.0))
            low[i], high[i] = vector[i] / factor, vector[i] * factor
    bounded = np.where(np.isfinite(problem.space.lower), problem.space.lower, -np.inf)
    return np.where(open_, bounded, low), np.where(open_, np.inf, high)


def _direction(problem: Problem, physical: Array, scaled: Array) -> dict[str, float]:
    """Return a null direction by name, without coefficients that only rounding makes, largest 1."""
    order = np.argsort(-np.abs(scaled), kind="stable")
    chosen = [i for i in order if scaled[i] ** 2 > PARTICIPATION]
    largest = max(abs(physical[i]) for i in chosen)
    sign = 1.0 if physical[chosen[0]] > 0.0 else -1.0
    return {problem.names[i]: float(sign * physical[i] / largest) for i in chosen}
