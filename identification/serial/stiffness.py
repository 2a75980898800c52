"""Joint compliances from deflections, with what the experiment can't determine named by joint.

Readings are linear in the compliances c = 1/K: Y - Y' = A c, (15) of the source, where Y' is the reading after unloading.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import lsq_linear
from scipy.stats import t as student

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.metrics import wape
from mechsmith.identification.record import Record
from mechsmith.identification.serial.stiffness_record import (
    AFTER,
    READING,
    Regressor,
    StiffnessError,
    stiffness_regressor,
)

Array = NDArray[np.float64]
# Torques and columns below this share of the largest are zero: geometry is known to six digits, arithmetic to 1e-15.
NOTHING = 1e-9
# Huber's constant: 95 % efficient for normal noise. 1.4826 makes the median absolute deviation a standard deviation.
HUBER, NORMAL_MAD = 1.345, 1.4826
ROBUST_ITERATIONS, ROBUST_TOLERANCE = 100, 1e-10


@dataclass(frozen=True)
class Undetermined:
    """A joint whose compliance the readings do not determine, and why.

    Parameters
    ----------
    joint : int
        From 1.
    reason : str
        In words.
    """

    joint: int
    reason: str

    def __str__(self) -> str:
        return f"joint {self.joint}: {self.reason}"


@dataclass(frozen=True, eq=False)
class StiffnessEstimate:
    """Joint compliances found from gauge readings.

    Parameters
    ----------
    names : tuple of str
        ``compliance_1`` and so on.
    compliances : array
        (joints,), rad/(N m); NaN where undetermined.
    shortest : array
        (joints,): the same with numbers for the undetermined ones, the shortest solution. It predicts readings like these.
    covariance : array
        (joints, joints), of the compliances; NaN where undetermined.
    intervals : array
        (joints, 2), of the compliances at `confidence`; infinite where undetermined.
    confidence : float
        Of the intervals.
    rank : int
        Of the regressor.
    singular_values : array
        Of the regressor with each column times its compliance, descending, m: the deflections at stake.
    condition, raw_condition : float
        Of that, and of the regressor as it is.
    undetermined : tuple of Undetermined
        With reasons.
    negative : tuple of int
        Joints whose compliance came out negative: a sign of a wrong frame or of a joint the readings hardly show.
    residual_rms : float
        m, weighted.
    readings : int
        How many.
    backlash_removed : bool
        Whether readings after unloading were subtracted.
    weights : array
        (readings,), final, 1 where neither noise nor robustness changed them.
    success : bool
        Whether robust iterations converged; always true without them.
    """

    names: tuple[str, ...]
    compliances: Array
    shortest: Array
    covariance: Array
    intervals: Array
    confidence: float
    rank: int
    singular_values: Array
    condition: float
    raw_condition: float
    undetermined: tuple[Undetermined, ...]
    negative: tuple[int, ...]
    residual_rms: float
    readings: int
    backlash_removed: bool
    weights: Array
    success: bool

    @property
    def stiffness(self) -> Array:
        """1/c by joint, N m/rad; NaN where undetermined."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.compliances

    @property
    def stiffness_intervals(self) -> Array:
        """(joints, 2); the upper end is infinite where the compliance may be zero or less."""
        low, high = self.intervals.T
        with np.errstate(divide="ignore"):
            upper = np.where(low > 0.0, 1.0 / low, np.inf)
            lower = np.where((high > 0.0) & np.isfinite(high), 1.0 / high, 0.0)
        return np.column_stack([lower, upper])

    @property
    def relative_deviations(self) -> Array:
        """Standard deviations of the compliances over their values, (joints,); those of K to first order."""
        return np.sqrt(np.diag(self.covariance)) / np.abs(self.compliances)

    @property
    def parameters(self) -> Mapping[str, float]:
        """The determined compliances by name, to put into a model."""
        return {n: float(c) for n, c in zip(self.names, self.compliances, strict=True) if np.isfinite(c)}

    def table(self) -> str:
        """Return the estimate as text for reading."""
        lines = [f"{'joint':>5}  {'K, N m/rad':>12}  {'sd %':>6}  {100 * self.confidence:g} % interval"]
        rows = zip(self.stiffness, self.relative_deviations, self.stiffness_intervals, strict=True)
        for i, (stiffness, deviation, (low, high)) in enumerate(rows, start=1):
            lines.append(f"{i:>5}  {stiffness:>12.6g}  {100 * deviation:>6.3g}  [{low:.6g}, {high:.6g}]")
        lines.append(
            f"residual {1e6 * self.residual_rms:.4g} um rms, {self.readings} readings, rank {self.rank} of {len(self.names)}, "
            f"condition {self.condition:.4g} (raw {self.raw_condition:.4g})"
        )
        lines += [f"undetermined: {one}" for one in self.undetermined]
        lines += [
            f"joint {j}: negative stiffness, a sign of a wrong frame or a poor experiment"
            for j in self.negative
        ]
        return "\n".join(lines)


def identify_stiffness(
    functions: FunctionSet,
    record: Record,
    *,
    parameters: Mapping[str, float] | None = None,
    remove_backlash: bool = True,
    noise: ArrayLike | None = None,
    robust: bool = False,
    positive: bool = False,
    confidence: float = 0.95,
) -> StiffnessEstimate:
    """Return the joint compliances that explain gauge readings best.

    Parameters
    ----------
    functions : FunctionSet
        Of `make_gauge`.
    record : Record
        With columns ``loaded_reading`` and, to remove backlash, ``unloaded_reading``; see `gauge_record`.
    parameters : mapping of name to float, optional
        Geometry; nominal values fill the rest.
    remove_backlash : bool
        Whether to subtract the reading after unloading; (15).
    noise : array, optional
        Standard deviation of each reading, (readings,) or one, m; only ratios count.
    robust : bool
        Huber's weights, by iteration, scale from the median absolute residual.
    positive : bool
        Whether compliances are kept from being negative.
    confidence : float
        Of the intervals, from the covariance of least squares and Student's distribution.

    Raises
    ------
    StiffnessError
        If a column is missing or there are no more readings than joints.
    """
    regressor = stiffness_regressor(functions, record, parameters=parameters)
    measured = _measured(record, remove_backlash)
    base = 1.0 / _noise(noise, len(measured))
    undetermined = find_undetermined(regressor, base)
    rank = regressor_rank(regressor, base)
    if len(measured) <= rank:
        raise StiffnessError(
            f"record {record.source!r}: {len(measured)} readings for {rank} unknowns. Take more."
        )
    weights, found, success = _fit(regressor.matrix, measured, base, robust=robust, positive=positive)
    determined = np.ones(len(found), dtype=bool)
    determined[[one.joint - 1 for one in undetermined]] = False
    residual = (measured - regressor.matrix @ found) * weights
    freedom = len(measured) - rank
    covariance = _covariance(
        regressor.matrix * weights[:, None], float(residual @ residual) / freedom, determined
    )
    compliances = np.where(determined, found, np.nan)
    reach = float(student.ppf(0.5 + 0.5 * confidence, freedom)) * np.sqrt(np.diag(covariance))
    intervals = np.column_stack([found - reach, found + reach])
    intervals[~determined] = [-np.inf, np.inf]
    singular, raw = (scaled_singular_values(regressor, scale) for scale in (found, np.ones(len(found))))
    return StiffnessEstimate(
        names=regressor.names,
        compliances=compliances,
        shortest=found,
        covariance=covariance,
        intervals=intervals,
        confidence=confidence,
        rank=rank,
        singular_values=singular,
        condition=_condition(singular),
        raw_condition=_condition(raw),
        undetermined=undetermined,
        negative=tuple(int(i) + 1 for i in np.flatnonzero(compliances < 0.0)),
        residual_rms=math.sqrt(float(residual @ residual) / len(measured)),
        readings=len(measured),
        backlash_removed=remove_backlash,
        weights=weights,
        success=success,
    )


def _measured(record: Record, remove_backlash: bool) -> Array:
    """Return the readings, net of those after unloading where backlash is removed."""
    needed = (READING, AFTER) if remove_backlash else (READING,)
    missing = [name for name in needed if name not in record.columns]
    if missing:
        raise StiffnessError(
            f"record {record.source!r}: no column {', '.join(missing)}. It has: {', '.join(record.columns)}."
        )
    return np.asarray(record.columns[READING] - (record.columns[AFTER] if remove_backlash else 0.0))


def scaled_singular_values(regressor: Regressor, compliances: ArrayLike) -> Array:
    """Return the singular values of a regressor with each column times its compliance, descending, m.

    They are the deflections at stake: a change of the compliances by a share s, in the direction of one, moves the
    readings by s times it.
    """
    scaled = regressor.matrix * np.abs(np.asarray(compliances, dtype=float))
    return np.asarray(np.linalg.svd(scaled, compute_uv=False), dtype=np.float64)


def _condition(singular: Array) -> float:
    return float(singular[0] / singular[-1]) if singular[-1] > NOTHING * singular[0] else math.inf


def _covariance(matrix: Array, variance: float, determined: NDArray[np.bool_]) -> Array:
    """Return the covariance of least squares; NaN for what is undetermined."""
    size = np.linalg.norm(matrix, axis=0)
    size = np.where(size > NOTHING * size.max(), size, np.inf)
    scaled = matrix / size
    whole = (
        variance * np.linalg.pinv(scaled.T @ scaled, rcond=NOTHING**2, hermitian=True) / np.outer(size, size)
    )
    return np.where(determined[:, None] & determined[None, :], whole, np.nan)


def _noise(noise: ArrayLike | None, count: int) -> Array:
    if noise is None:
        return np.ones(count)
    deviations = np.broadcast_to(np.asarray(noise, dtype=float), (count,))
    if not (deviations > 0.0).all():
        raise StiffnessError("noise: every standard deviation must be positive.")
    return np.asarray(deviations / np.exp(np.log(deviations).mean()))


def _solve(matrix: Array, measured: Array, weights: Array, positive: bool) -> Array:
    """Return the shortest least-squares solution in scaled columns; 0 for columns of zeros."""
    weighted = matrix * weights[:, None]
    size = np.linalg.norm(weighted, axis=0)
    size = np.where(size > NOTHING * size.max(), size, np.inf)
    if positive:
        found = lsq_linear(weighted / size, measured * weights, (0.0, np.inf), method="bvls", tol=1e-14)
        return np.asarray(found.x / size)
    return np.asarray(np.linalg.lstsq(weighted / size, measured * weights, rcond=NOTHING)[0] / size)


def _fit(
    matrix: Array, measured: Array, base: Array, *, robust: bool, positive: bool
) -> tuple[Array, Array, bool]:
    """Return the final weights, the compliances, and whether robust iterations converged."""
    found = _solve(matrix, measured, base, positive)
    if not robust:
        return base, found, True
    for _ in range(ROBUST_ITERATIONS):
        residual = (measured - matrix @ found) * base
        scale = NORMAL_MAD * float(np.median(np.abs(residual)))
        if scale == 0.0:
            return base, found, True
        ratio = np.maximum(np.abs(residual) / (HUBER * scale), 1.0)
        weights = base / np.sqrt(ratio)
        before, found = found, _solve(matrix, measured, weights, positive)
        if np.abs(found - before).max() <= ROBUST_TOLERANCE * np.abs(found).max():
            return weights, found, True
    return weights, found, False


def regressor_rank(regressor: Regressor, weights: Array | None = None) -> int:
    """Return the number of independent combinations of compliances that readings show."""
    matrix = regressor.matrix if weights is None else regressor.matrix * weights[:, None]
    size = np.linalg.norm(matrix, axis=0)
    alive = size > NOTHING * size.max()
    singular = np.linalg.svd(matrix[:, alive] / size[alive], compute_uv=False)
    return int((singular > NOTHING * singular[0]).sum())


def find_undetermined(regressor: Regressor, weights: Array | None = None) -> tuple[Undetermined, ...]:
    """Return the joints whose compliance readings can't determine, with the reason, whatever is measured.

    Parameters
    ----------
    regressor : Regressor
        Of the readings, taken or planned.
    weights : array, optional
        (readings,); 1 when not given.
    """
    matrix = regressor.matrix if weights is None else regressor.matrix * weights[:, None]
    size, torque = np.linalg.norm(matrix, axis=0), np.abs(regressor.torques).max(axis=0)
    if not size.max() > 0.0:
        raise StiffnessError("stiffness: no reading shows any joint. Is there a load?")
    found = []
    alive = size > NOTHING * size.max()
    for i in np.flatnonzero(~alive):
        unloaded = torque[i] <= NOTHING * torque.max()
        reason = (
            "the force acts on its axis in every pose"
            if unloaded
            else "it moves no gauge along its direction in any pose"
        )
        found.append(Undetermined(int(i) + 1, reason))
    joints = np.flatnonzero(alive)
    _, singular, right = np.linalg.svd(matrix[:, alive] / size[alive], full_matrices=False)
    seen = right[singular > NOTHING * singular[0]]  # right has as many rows as there are singular values
    # What the readings do not see, as a projection: it does not depend on a choice of basis.
    unseen = np.eye(len(joints)) - seen.T @ seen
    for k, joint in enumerate(joints):
        # Entries of 1e-6 are rounding: the null space is exact to 1e-15 over the gap of 1e-9.
        others = [str(int(joints[m]) + 1) for m in np.flatnonzero(np.abs(unseen[k]) > 1e-6) if m != k]
        if others:
            found.append(
                Undetermined(
                    int(joint) + 1,
                    f"it is seen only together with joint{'s' * (len(others) > 1)} {', '.join(others)}",
                )
            )
    return tuple(sorted(found, key=lambda one: one.joint))


def predict_readings(
    functions: FunctionSet,
    estimate: StiffnessEstimate,
    record: Record,
    *,
    parameters: Mapping[str, float] | None = None,
) -> Array:
    """Return the net deflections that an estimate predicts for a record or plan, (readings,), m."""
    regressor = stiffness_regressor(functions, record, parameters=parameters)
    return np.asarray(regressor.matrix @ estimate.shortest)


def errors_by_direction(
    record: Record, predicted: ArrayLike, measured: ArrayLike
) -> Mapping[tuple[float, ...], float]:
    """Return the relative error of predicted readings for each gauge direction, in %: sum |p - m| / sum |m|.

    Parameters
    ----------
    record : Record
        With ``direction_x, _y, _z``.
    predicted, measured : array
        (readings,), m.
    """
    directions = np.column_stack([record.columns[f"direction_{axis}"] for axis in "xyz"])
    p, m = np.asarray(predicted, dtype=float), np.asarray(measured, dtype=float)
    result: dict[tuple[float, ...], float] = {}
    for one in dict.fromkeys(map(tuple, directions.tolist())):
        rows = (directions == one).all(axis=1)
        result[one] = wape(p[rows], m[rows])
    return result
