"""Which poses and loads to measure: significant digits of what will be read, and choice by D- or E-optimality.

Rule (19) of the source, s = t + r - 1, and the information matrix of optimal design (Pukelsheim 1993, Optimal Design
of Experiments) with every column times the compliance expected, so that all joints count by their relative error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.record import Record
from mechsmith.identification.serial.stiffness import find_undetermined
from mechsmith.identification.serial.stiffness_record import (
    Gauge,
    StiffnessError,
    gauge_record,
    stiffness_regressor,
)

Array = NDArray[np.float64]
Criterion = Literal["D", "E"]
# Added to the information while fewer conditions are chosen than joints need, relative to its largest entry.
REGULARISATION = 1e-9
# A count of whole resolutions, 0.063 mm / 0.001 mm = 62.99999999999999, is that whole number.
_COUNTING = 1e-6


def significant_digits(values: ArrayLike, resolution: float) -> NDArray[np.int_]:
    """Return how many significant digits readings have, r = s - t + 1; (19). 0 for a reading of zero.

    Parameters
    ----------
    values : array
        Readings, in the unit of `resolution`.
    resolution : float
        Of the instrument, 10^-s.

    Raises
    ------
    StiffnessError
        If the resolution is not positive.
    """
    if not resolution > 0.0:
        raise StiffnessError(f"significant digits: the resolution is {resolution}. It must be positive.")
    counts = np.floor(np.abs(np.asarray(values, dtype=float)) / resolution + 0.5 + _COUNTING)
    return np.where(counts > 0, np.floor(np.log10(np.maximum(counts, 1.0))) + 1, 0).astype(int)


@dataclass(frozen=True, eq=False)
class PlanCheck:
    """What a plan would give, before anything is measured.

    Parameters
    ----------
    expected : array
        Net deflections, (readings,), m.
    digits : array
        Their significant digits, (readings,).
    weak : array
        Places of the readings with fewer digits than asked for.
    undetermined : tuple of str
        Joints that the plan can't determine, with the reason.
    """

    expected: Array
    digits: NDArray[np.int_]
    weak: NDArray[np.int_]
    undetermined: tuple[str, ...]


def check_plan(
    functions: FunctionSet,
    plan: Record,
    compliances: ArrayLike,
    *,
    resolution: float,
    digits: int = 2,
    parameters: Mapping[str, float] | None = None,
) -> PlanCheck:
    """Return the readings that a plan would give, which have too few digits, and which joints it can't determine.

    Parameters
    ----------
    functions : FunctionSet
        Of `make_gauge`.
    plan : Record
        Of `gauge_record`, without readings.
    compliances : array
        Expected, (joints,).
    resolution : float
        Of the gauges, m.
    digits : int
        Least number of significant digits wanted.
    parameters : mapping of name to float, optional
        Geometry.
    """
    regressor = stiffness_regressor(functions, plan, parameters=parameters)
    expected = regressor.matrix @ np.asarray(compliances, dtype=float)
    found = significant_digits(expected, resolution)
    named = tuple(str(one) for one in find_undetermined(regressor))
    return PlanCheck(expected, found, np.flatnonzero(found < digits), named)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Conditions that could be measured: poses and loads.

    Parameters
    ----------
    positions : array
        (n, joints), rad.
    load : mapping of name to array
        By condition, (n,).
    """

    positions: Array
    load: Mapping[str, Array]

    def take(self, chosen: Sequence[int]) -> "Candidates":
        """Return some of them, in the order given."""
        rows = list(chosen)
        return Candidates(self.positions[rows], {name: values[rows] for name, values in self.load.items()})


def rope_candidates(
    positions: ArrayLike,
    eyebolts: ArrayLike,
    *,
    mass: float,
    length: float,
    directions: int,
    lowest: float,
    radius: float,
    rng: np.random.Generator,
) -> Candidates:
    """Return each pose with ropes in random directions, the pulley a length away from the eyebolt and clear of floor and base.

    Parameters
    ----------
    positions : array
        Poses, (n, joints), rad.
    eyebolts : array
        Loaded points in base axes, (n, 3), m.
    mass : float
        Hanging, kg.
    length : float
        Of the rope to the pulley, m.
    directions : int
        For each pose.
    lowest : float
        Least height of pulley and eyebolt over the base's origin, m.
    radius : float
        Their least distance from the base's z axis, m.
    rng : numpy.random.Generator
        Draws the directions.
    """
    poses, points = np.asarray(positions, dtype=float), np.asarray(eyebolts, dtype=float)
    turned = rng.normal(size=(len(poses), directions, 3))
    turned /= np.linalg.norm(turned, axis=2, keepdims=True)
    pulleys = points[:, None, :] + length * turned
    both = np.minimum(pulleys[:, :, 2], points[:, None, 2]) >= lowest
    both &= np.hypot(pulleys[:, :, 0], pulleys[:, :, 1]) >= radius
    both &= np.hypot(points[:, 0], points[:, 1])[:, None] >= radius
    rows, columns = np.nonzero(both)
    chosen = pulleys[rows, columns]
    load = {f"pulley_{axis}": chosen[:, i] for i, axis in enumerate("xyz")}
    return Candidates(poses[rows], load | {"mass": np.full(len(rows), float(mass))})


def random_poses(limits: ArrayLike, count: int, *, rng: np.random.Generator) -> Array:
    """Return poses drawn evenly within joint limits, (count, joints); `limits` (joints, 2), finite."""
    low, high = np.asarray(limits, dtype=float).T
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise StiffnessError("random poses: every joint needs finite limits.")
    return rng.uniform(low, high, (count, len(low)))


@dataclass(frozen=True, eq=False)
class Design:
    """Conditions chosen, and how well they determine the compliances.

    Parameters
    ----------
    chosen : tuple of int
        Places among the candidates.
    criterion : "D" or "E"
        What was maximised: the determinant of the information, or its smallest eigenvalue.
    singular_values : array
        Of the regressor of the chosen with columns times compliances, descending, m.
    exchanges : int
        Swaps that improved it.
    """

    chosen: tuple[int, ...]
    criterion: Criterion
    singular_values: Array
    exchanges: int


def choose_conditions(
    functions: FunctionSet,
    candidates: Candidates,
    gauges: Sequence[Gauge],
    compliances: ArrayLike,
    *,
    count: int,
    criterion: Criterion = "E",
    parameters: Mapping[str, float] | None = None,
    sweeps: int = 20,
) -> Design:
    """Return the conditions whose readings determine the compliances best, by greedy choice and exchange.

    Parameters
    ----------
    functions : FunctionSet
        Of `make_gauge`.
    candidates : Candidates
        What could be measured.
    gauges : sequence of Gauge
        In every condition.
    compliances : array
        Expected, (joints,).
    count : int
        How many conditions to choose; each at most once.
    criterion : "D" or "E"
        Determinant, or smallest eigenvalue.
    parameters : mapping of name to float, optional
        Geometry.
    sweeps : int
        At most this many rounds of exchanges.

    Raises
    ------
    StiffnessError
        If there are too few candidates or the criterion is unknown.
    """
    if criterion not in ("D", "E"):
        raise StiffnessError(f"criterion {criterion!r} is not allowed. Use D or E.")
    total = len(candidates.positions)
    if not 1 <= count <= total:
        raise StiffnessError(f"choice of {count} conditions among {total}: give between 1 and {total}.")
    plan = gauge_record(candidates.positions, candidates.load, gauges)
    regressor = stiffness_regressor(functions, plan, parameters=parameters)
    blocks = (regressor.matrix * np.asarray(compliances, dtype=float)).reshape(total, len(gauges), -1)
    information = np.einsum("nga,ngb->nab", blocks, blocks)
    chosen = _greedy(information, count, criterion)
    chosen, exchanges = _exchange(information, chosen, criterion, sweeps)
    final = np.linalg.svd(blocks[chosen].reshape(-1, blocks.shape[2]), compute_uv=False)
    return Design(tuple(chosen), criterion, np.asarray(final, dtype=np.float64), exchanges)


def _values(information: Array, criterion: Criterion) -> Array:
    """Return the criterion of each information matrix (n, joints, joints)."""
    eigenvalues = np.linalg.eigvalsh(information)
    if criterion == "E":
        return np.asarray(eigenvalues[:, 0])
    return np.asarray(np.log(np.maximum(eigenvalues, 1e-300)).sum(axis=1))


def _greedy(information: Array, count: int, criterion: Criterion) -> list[int]:
    size = information.shape[1]
    total = REGULARISATION * float(information.max()) * np.eye(size)
    chosen: list[int] = []
    for step in range(count):
        # While the choice can't have full rank the determinant tells candidates apart; the smallest eigenvalue not.
        rule: Criterion = "D" if step < size else criterion
        value = _values(total + information, rule)
        value[chosen] = -np.inf
        best = int(np.argmax(value))
        chosen.append(best)
        total = total + information[best]
    return chosen


def _exchange(
    information: Array, chosen: list[int], criterion: Criterion, sweeps: int
) -> tuple[list[int], int]:
    """Exchange one condition for a better one as long as that helps (Fedorov)."""
    exchanges = 0
    current = float(_values(information[chosen].sum(axis=0)[None], criterion)[0])
    for _ in range(sweeps):
        before = exchanges
        for place in range(len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            value = _values(information[others].sum(axis=0) + information, criterion)
            value[others] = -np.inf
            best = int(np.argmax(value))
            if value[best] > current + 1e-12 * abs(current):
                chosen = [*chosen[:place], best, *chosen[place + 1 :]]
                current, exchanges = float(value[best]), exchanges + 1
        if exchanges == before:
            break
    return chosen, exchanges
