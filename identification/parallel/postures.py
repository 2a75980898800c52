"""Configurations of mechanisms whose coordinates are algebraic unknowns: along a path, all of them, near singularities.

Everything here works on functions with unknowns (`mechsmith.symbolic.parallel.closure`) and knows no mechanism.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet, FunctionSetError
from mechsmith.codegen.unknowns import UnknownsSolver

Array = NDArray[np.float64]
# A step along a path is halved at most this often; then the path is said to end there.
HALVINGS = 12
# A corrector that moves further than this share of the predictor's own step may have met another branch.
CORRECTION = 0.5
# Starting values of exactly zero are moved by this: the accuracy of Newton's method is relative to its start.
NUDGE = 1e-3
# Unknowns that agree so well are one posture: the root of the solver's accuracy, as at a double root.
SAME = 1e-6


@dataclass(frozen=True, eq=False)
class Path:
    """Unknowns along a path of inputs on one branch.

    Parameters
    ----------
    values : array
        Shape (reached, nz).
    reached : int
        How many of the points were reached.
    status : str
        Empty when all were; else what ended the path.
    """

    values: Array
    reached: int
    status: str = ""


@dataclass(frozen=True, eq=False)
class Postures:
    """All solutions found for one point.

    Parameters
    ----------
    values : array
        Shape (k, nz), in the order of the first unknown.
    hits : array of int
        How many starts ended at each, shape (k,). Where the least is small, more starts may find more.
    starts : int
        How many there were.
    """

    values: Array
    hits: NDArray[np.intp]
    starts: int


@dataclass(frozen=True)
class Singularity:
    """Distances from the kinds of singularity (Gosselin, Angeles 1990, IEEE Trans. Robotics and Automation 6, 281-290).

    Parameters
    ----------
    serial : float
        Smallest over largest singular value of g by everything but the platform's coordinates: zero where joints can
        move with the platform held (first kind; the boundary of the workspace).
    parallel : float
        The same of g by everything but the motors' coordinates: zero where the platform can move with motors held (second
        kind). Both vanish at the third kind.
    """

    serial: float
    parallel: float

    def kind(self, tolerance: float = 1e-6) -> str:
        """Return ``regular``, ``serial``, ``parallel`` or ``both``."""
        serial, parallel = self.serial < tolerance, self.parallel < tolerance
        return {(False, False): "regular", (True, False): "serial", (False, True): "parallel"}.get(
            (serial, parallel), "both"
        )


def solve_near(functions: FunctionSet, u: Array, p: Array, start: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the unknowns for inputs (n, nu) from starts (nz,) or (n, nz), and which were found."""
    begin = np.where(np.abs(start) < NUDGE, np.where(start < 0.0, -NUDGE, NUDGE), start)
    none = np.zeros((1, 0))
    count = len(begin) if begin.ndim == 2 else 1
    points = np.atleast_2d(u)
    points = np.broadcast_to(points, (max(count, len(points)), points.shape[1]))
    found = UnknownsSolver(functions).solve(none, none, points, np.atleast_2d(p), start=begin)
    return found.values, np.asarray(found.found, dtype=bool)


def follow(functions: FunctionSet, inputs: Array, p: Array, *, start: Array) -> Path:
    """Follow one branch of the unknowns along a path.

    Each step is predicted along the tangent, corrected by Newton's method, and halved when the correction is not small beside
    the step, so that the path keeps its branch. It ends where the determinant of g by the unknowns changes its sign or steps
    get too small: at a singularity, or where a point can't be reached.

    Parameters
    ----------
    functions : FunctionSet
        With unknowns and inputs only (no states).
    inputs : array
        Shape (n, nu).
    p : array
        Parameters, shape (np,).
    start : array
        Near the unknowns at the first point, shape (nz,): this chooses the branch.
    """
    jacobians = functions.with_jacobians(("constraint", "z"), ("constraint", "u"))
    z, found = solve_near(jacobians, inputs[:1], p, start)
    if not found[0]:
        return Path(np.zeros((0, functions.size("z"))), 0, "no unknowns are found at the first point")
    values = [z[0]]
    sign = _sign(jacobians, values[0], inputs[0], p)
    for k in range(1, len(inputs)):
        reached = _advance(jacobians, values[-1], inputs[k - 1], inputs[k], p, sign)
        if reached is None:
            return Path(np.array(values), k, f"a singularity or the end of the workspace before point {k}")
        values.append(reached)
    return Path(np.array(values), len(values))


def _advance(
    functions: FunctionSet, z: Array, begin: Array, end: Array, p: Array, sign: float
) -> Array | None:
    """Return the unknowns at the end of one step, taken in as many parts as needed; None where that fails."""
    at, share = 0.0, 1.0
    while at < 1.0:
        if share < 0.5**HALVINGS:
            return None
        to = min(at + share, 1.0)
        u, target = begin + at * (end - begin), begin + to * (end - begin)
        predicted = z + _tangent(functions, z, u, p) @ (target - u)
        if np.isfinite(predicted).all():
            corrected, found = solve_near(functions, target[None, :], p, predicted)
            step = float(np.linalg.norm(predicted - z))
            near = np.linalg.norm(corrected[0] - predicted) <= CORRECTION * step + NUDGE
            if found[0] and near and _sign(functions, corrected[0], target, p) == sign:
                z, at, share = corrected[0], to, 2.0 * share
                continue
        share *= 0.5
    return z


def _tangent(functions: FunctionSet, z: Array, u: Array, p: Array) -> Array:
    by_z = functions.evaluate("constraint_z", z=z, u=u, p=p)
    try:
        moved = np.linalg.solve(by_z, functions.evaluate("constraint_u", z=z, u=u, p=p))
        return np.asarray(-moved, dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full((len(z), len(u)), np.nan)


def _sign(functions: FunctionSet, z: Array, u: Array, p: Array) -> float:
    return float(np.linalg.slogdet(functions.evaluate("constraint_z", z=z, u=u, p=p))[0])


def all_postures(
    functions: FunctionSet,
    u: Array,
    p: Array,
    *,
    lower: Array,
    upper: Array,
    starts: int,
    rng: np.random.Generator,
    canonical: Callable[[Array], Array] | None = None,
) -> Postures:
    """Return the real solutions for one point that Newton's method finds from random starts.

    That all are found is not proved; `Postures.hits` tells how likely one was missed.

    Parameters
    ----------
    functions : FunctionSet
        With unknowns and inputs only.
    u, p : array
        Inputs (nu,) and parameters (np,).
    lower, upper : array
        The box of the starts, (nz,).
    starts : int
        How many, all tried together.
    rng : numpy.random.Generator
        Draws the starts.
    canonical : callable, optional
        Maps unknowns (n, nz) to a form that is unique for a posture. By default angles are taken between -pi and pi.
    """
    begin = lower + rng.random((starts, len(lower))) * (upper - lower)
    values, found = solve_near(functions, u[None, :], p, begin)
    unique = canonical or (lambda z: wrapped(z, angle_places(functions)))
    good = unique(values[found])
    good = good[np.isfinite(good).all(axis=1)]
    groups: list[Array] = []
    hits: list[int] = []
    while len(good):
        same = np.max(np.abs(good - good[0]), axis=1) < SAME
        groups.append(good[0])
        hits.append(int(same.sum()))
        good = good[~same]
    size = functions.size("z")
    order = np.argsort([g[0] for g in groups])
    return Postures(np.array(groups).reshape(-1, size)[order], np.array(hits, dtype=np.intp)[order], starts)


def angle_places(functions: FunctionSet) -> list[int]:
    """Return which unknowns are angles (rad)."""
    return [i for i, unit in enumerate(functions.units("z")) if unit == "rad"]


def wrapped(values: Array, places: Sequence[int]) -> Array:
    """Return values (n, nz) with the angles at `places` in (-pi, pi]."""
    result = np.array(values)
    chosen = list(places)
    result[:, chosen] = np.pi - np.mod(np.pi - result[:, chosen], 2.0 * np.pi)
    return result


def canonical_yaw_pitch_roll(values: Array, places: tuple[int, int, int]) -> Array:
    """Return values (n, nz) with yaw, pitch, roll at `places` such that the pitch is within 90 degrees: one for a rotation."""
    result = wrapped(values, places)
    yaw, pitch, roll = places
    turned = np.abs(result[:, pitch]) > 0.5 * np.pi
    result[turned, pitch] = np.pi - result[turned, pitch]
    result[turned, yaw] += np.pi
    result[turned, roll] += np.pi
    return wrapped(result, places)


def singularity(
    functions: FunctionSet, z: Array, u: Array, p: Array, *, platform: Sequence[str], driven: Sequence[str]
) -> Singularity:
    """Return how far a configuration is from the kinds of singularity.

    Parameters
    ----------
    functions : FunctionSet
        The closure of a mechanism for positions; which coordinates are inputs and which unknowns does not matter.
    z, u, p : array
        A configuration that closes the loops.
    platform, driven : sequence of str
        Names of the platform's and of the motors' coordinates.
    """
    jacobians = functions.with_jacobians(("constraint", "z"), ("constraint", "u"))
    names = (*functions.labels("z"), *functions.labels("u"))
    missing = [name for name in (*platform, *driven) if name not in names]
    if missing:
        raise FunctionSetError(
            f"functions {functions.name!r}: no coordinate {', '.join(map(repr, missing))}. They are: {', '.join(names)}."
        )
    whole = np.hstack([jacobians.evaluate(f"constraint_{wrt}", z=z, u=u, p=p) for wrt in ("z", "u")])

    def distance(held: Sequence[str]) -> float:
        values = np.linalg.svd(whole[:, [name not in held for name in names]], compute_uv=False)
        return float(values[-1] / values[0])

    return Singularity(distance(platform), distance(driven))
