"""Calibration of mechanisms: what the configurations determine, before it is sought, and which configurations to take.

A calibration is a `Problem` whose residual is a model's output, and all of `identify` applies to it. Here is what comes
before: rank, null and weak directions, and the choice of configurations; and the joints' error after.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.norms import triangular_factor
from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.record import Record

Array = NDArray[np.float64]
# Singular values below this share of the largest are zero but for rounding.
RANK_TOLERANCE = 1e-12
# Shares of a direction (of a unit vector) below this are not named.
SHARE = 1e-6
# Added to the information before any configuration is chosen, relative to that of all candidates.
REGULARISATION = 1e-12


@dataclass(frozen=True)
class Direction:
    """A combination of parameters that the data determine alike.

    Parameters
    ----------
    shares : mapping of name to float
        A unit vector in the parameters' units; shares that vanish are left out.
    singular_value : float
        By how much the residual changes for a unit step.
    deviation : float
        Standard deviation along it, for residuals of standard deviation 1 (or the problem's noise); infinite in the null space.
    """

    shares: Mapping[str, float]
    singular_value: float
    deviation: float

    def __str__(self) -> str:
        ordered = sorted(self.shares.items(), key=lambda item: -abs(item[1]))
        return " ".join(f"{share:+.3g} {name}" for name, share in ordered)


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What records determine of the free parameters, by singular values of the Jacobian in physical units.

    Meaningful where all free parameters have one unit, as lengths do.

    Parameters
    ----------
    names : tuple of str
        Of the free parameters.
    rank : int
        How many independent combinations are determined at all.
    directions : tuple of Direction
        Best determined first; those from `rank` on are the null space.
    deviations : array
        Standard deviation of each parameter, (n,): infinite for what takes part in a null direction.
    """

    names: tuple[str, ...]
    rank: int
    directions: tuple[Direction, ...]
    deviations: Array

    @property
    def singular_values(self) -> Array:
        """Shape (n,), descending."""
        return np.array([direction.singular_value for direction in self.directions])

    @property
    def condition(self) -> float:
        """Largest over smallest singular value, without the null space."""
        values = self.singular_values
        return float(values[0] / values[self.rank - 1])

    @property
    def null_directions(self) -> tuple[Direction, ...]:
        """What no residual sees: as many parameters must be frozen, each with a share."""
        return self.directions[self.rank :]

    def weak_directions(self, limit: float) -> tuple[Direction, ...]:
        """Return the directions whose standard deviation exceeds a limit, in the parameters' unit, null space included."""
        return tuple(direction for direction in self.directions if direction.deviation > limit)


def identifiability(problem: Problem, at: Mapping[str, float] | None = None) -> Identifiability:
    """Return what a problem's records determine of its free parameters, to first order.

    Parameters
    ----------
    problem : Problem
        Priors do not count. With a noise in its residual, deviations are for that noise.
    at : mapping of name to float, optional
        Where; nominal values fill what is not given.
    """
    jacobian = problem.data_jacobian(problem.start_vector(at))
    if not np.isfinite(jacobian).all():
        raise ProblemError(
            "identifiability: the Jacobian is not finite there. Give values at which every configuration can be reached."
        )
    _, values, right = np.linalg.svd(triangular_factor(jacobian))
    rank = int((values > RANK_TOLERANCE * values[0]).sum())
    directions = tuple(
        Direction(
            {
                name: float(share)
                for name, share in zip(problem.names, row, strict=True)
                if abs(share) > SHARE
            },
            float(value),
            float(1.0 / value) if k < rank else np.inf,
        )
        for k, (value, row) in enumerate(zip(values, right, strict=True))
    )
    variances = ((right[:rank] / values[:rank, None]) ** 2).sum(axis=0)
    lost = (np.abs(right[rank:]) > SHARE).any(axis=0)
    return Identifiability(problem.names, rank, directions, np.where(lost, np.inf, np.sqrt(variances)))


@dataclass(frozen=True, eq=False)
class Choice:
    """Configurations chosen among candidates.

    Parameters
    ----------
    chosen : array of int
        Places among the candidates, ascending.
    condition : float
        Of the Jacobian of those, in the given units.
    log_determinant : float
        Of the information matrix: what was maximised.
    exchanges : int
        How often one was replaced after the first choice.
    """

    chosen: NDArray[np.intp]
    condition: float
    log_determinant: float
    exchanges: int


def choose_configurations(rows: Array, count: int, *, max_exchanges: int = 200) -> Choice:
    """Choose configurations whose information about the parameters has the largest determinant (D-optimal).

    Greedily one by one, then by exchanges as long as they help (Fedorov 1972, Theory of Optimal Experiments,
    Academic Press, chapter 3). Nothing is drawn at random.

    Parameters
    ----------
    rows : array
        Jacobian of each candidate's residuals by the parameters that are to be found, shape (candidates, residuals, n);
        without the null space (freeze what it tells first).
    count : int
        How many to choose; at least as many residuals as parameters.
    max_exchanges : int
        At most.

    Raises
    ------
    ProblemError
        If there are fewer candidates than `count`, or even all together do not determine the parameters.
    """
    candidates, residuals, n = rows.shape
    least = -(-n // residuals)
    if not least <= count <= candidates:
        raise ProblemError(
            f"choose_configurations: count is {count}; allowed is {least} (for {n} parameters) to {candidates} (candidates)."
        )
    factor = triangular_factor(rows.reshape(-1, n))
    values = np.linalg.svd(factor, compute_uv=False)
    if values[-1] <= RANK_TOLERANCE * values[0]:
        raise ProblemError(
            "choose_configurations: even all candidates do not determine the parameters. Freeze some."
        )
    information = REGULARISATION * factor.T @ factor
    chosen: list[int] = []
    for _ in range(count):
        best, _ = _best(rows, information, chosen)
        chosen.append(best)
        information = information + rows[best].T @ rows[best]
    exchanges = 0
    while exchanges < max_exchanges:
        replaced = _exchange(rows, chosen)
        if replaced is None:
            break
        chosen, exchanges = replaced, exchanges + 1
    order = np.sort(np.array(chosen, dtype=np.intp))
    jacobian = rows[order].reshape(-1, n)
    singular = np.linalg.svd(triangular_factor(jacobian), compute_uv=False)
    return Choice(order, float(singular[0] / singular[-1]), float(2.0 * np.log(singular).sum()), exchanges)


def _gains(rows: Array, information: Array) -> Array:
    """Return by how much the logarithm of the determinant grows with each candidate."""
    reduced = np.linalg.solve(information, rows.transpose(0, 2, 1))
    gram = np.eye(rows.shape[1]) + rows @ reduced
    return np.asarray(np.linalg.slogdet(gram)[1])


def _best(rows: Array, information: Array, taken: list[int]) -> tuple[int, float]:
    gains = _gains(rows, information)
    gains[taken] = -np.inf
    best = int(np.argmax(gains))
    return best, float(gains[best])


def _exchange(rows: Array, chosen: list[int]) -> list[int] | None:
    """Return the choice with its least informative member replaced, or None when that gains nothing."""
    information = np.einsum("cri,crj->ij", rows[chosen], rows[chosen])
    reduced = np.linalg.solve(information, rows[chosen].transpose(0, 2, 1))
    losses = np.linalg.slogdet(np.eye(rows.shape[1]) - rows[chosen] @ reduced)[1]
    least = int(np.argmax(losses))
    remaining = [c for k, c in enumerate(chosen) if k != least]
    without = information - rows[chosen[least]].T @ rows[chosen[least]]
    best, gain = _best(rows, without, remaining)
    if best == chosen[least] or gain <= -losses[least] + 1e-9:
        return None
    return [*remaining, best]


def joint_rmse(
    problem: Problem, values: Mapping[str, float], *, sensors: int, record: Record | None = None
) -> float:
    """Return the root mean square of what remains of the joints' readings, rad: AJ-RMSE, (8.22).

    The problem's residual is the misfit of a configuration, least over what is not measured, so that its square is the sum
    over the sensors.

    Parameters
    ----------
    problem : Problem
        Of a calibration.
    values : mapping of name to float
        Parameters at which to compare; the problem's fixed and nominal values fill the rest.
    sensors : int
        How many readings a configuration has.
    record : Record, optional
        Other configurations than the problem's.
    """
    judged = problem if record is None else dataclasses.replace(problem, records=(record,), per_record=())
    residual = judged.data_residual(judged.start_vector(values)) * judged.comparison.noise[0]
    return float(np.sqrt(np.sum(residual**2) / (sensors * residual.size)))
