"""What every solver is and gives back: options plus one `solve`, and a `Solution`."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.problem import Problem, ProblemError

Array = NDArray[np.float64]


# Of the largest measured value: a column this small is what rounding leaves of one that vanishes.
ROUNDING = 1e-13


class MethodError(ValueError):
    """A method that does not suit the problem. The message says why and which one does."""


@dataclass(frozen=True)
class Progress:
    """One line of a solver's history.

    Parameters
    ----------
    start : int
        Which start, from 0.
    evaluation : int
        Count of iterations or evaluations so far, from 0.
    norm : float
        Norm of the residual (of `Problem.residual_vector`) there, the lowest so far.
    """

    start: int
    evaluation: int
    norm: float


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found.

    Parameters
    ----------
    vector : array
        The free vector in physical units, shape (n,).
    status : str
        The solver's own word for why it ended.
    success : bool
        Whether it converged. A limit on iterations, evaluations or time is never a success.
    message : str
        More in words; may be empty.
    evaluations : int
        Residuals evaluated.
    history : tuple of Progress
        In order.
    """

    vector: Array
    status: str
    success: bool
    message: str = ""
    evaluations: int = 0
    history: tuple[Progress, ...] = ()


class Method(Protocol):
    """A solver: a frozen dataclass of options."""

    @property
    def needs_start(self) -> bool:
        """Whether it begins at a start vector, rather than ignoring it or searching the box."""

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None) -> Solution:
        """Solve from a start in physical units, shape (n,); `rng` is needed by methods that draw numbers."""


def require_rng(rng: np.random.Generator | None, method: str) -> np.random.Generator:
    """Return the generator, or raise `MethodError` when there is none."""
    if rng is None:
        raise MethodError(f"{method} draws random numbers: give rng=numpy.random.default_rng(seed).")
    return rng


def refuse_constraints(problem: Problem, method: str) -> None:
    """Raise `MethodError` when the problem has constraints between parameters, which the method can't keep."""
    if problem.constraints:
        raise MethodError(
            f"{method} can't keep constraints between parameters ({'; '.join(map(str, problem.constraints))}). "
            "Use LeastSquares or Ipopt."
        )


def residual_scale(problem: Problem, vector: Array) -> float:
    """Return a positive number by which residuals are divided so that their squares neither overflow nor vanish.

    The largest residual at the vector; where that is zero, the largest measured value over noise; else 1.
    """
    largest = float(np.max(np.abs(problem.residual_vector(vector)), initial=0.0))
    if largest > 0.0 and np.isfinite(largest):
        return largest
    measured = [np.abs(m / problem.comparison.noise).max(initial=0.0) for m in problem.measurements]
    return float(max(measured)) or 1.0


def check_start(problem: Problem, vector: Array) -> None:
    """Raise `ProblemError` when the residual at the start is not finite; it says where."""
    for k, record in enumerate(problem.records):
        predicted, status = problem.predicted(vector, k)
        values = ", ".join(f"{n} = {v:.6g}" for n, v in zip(problem.names, vector, strict=True))
        if status:
            raise ProblemError(
                f"problem: the simulation of record {record.source!r} fails at the start: {status}. "
                f"Start elsewhere: {values}."
            )
        for what, array in (("predicted", predicted), ("measured", problem.measurements[k])):
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                row, column = bad[0]
                raise ProblemError(
                    f"problem: the {what} {problem.comparison.names[column]!r} of record {record.source!r} is "
                    f"{array[row, column]} at row {row} ({len(bad)} of {array.size} are not finite) at the start: {values}. "
                    "Start elsewhere, or mend the record."
                )


def dead_names(problem: Problem, vector: Array) -> tuple[str, ...]:
    """Return the free names whose column of the Jacobian is zero or rounding at the start and at two points near it.

    A column is rounding where the parameter's whole magnitude would move no residual by more than `ROUNDING` of the largest
    measured value.

    The points lie 5 % and 11 % (steps of the internal box or of 1) away, different ways for neighbouring parameters, so
    that an effect which vanishes at the start alone (a velocity of zero, a symmetric one) is seen.
    """
    space = problem.space
    at = space.inside(space.internal(vector))
    width = np.where(
        np.isfinite(space.internal_upper - space.internal_lower),
        np.minimum(space.internal_upper - space.internal_lower, 1.0),
        1.0,
    )
    signs = np.where(np.arange(len(at)) % 2 == 0, 1.0, -1.0)
    points = [vector, *(space.physical(space.inside(at + share * signs * width)) for share in (0.05, -0.11))]
    alive = np.zeros(len(at), dtype=bool)
    measured = max(float(np.abs(m / problem.comparison.noise).max(initial=0.0)) for m in problem.measurements)
    for point in points:
        size = np.maximum(np.abs(point), space.magnitude)
        # priors are no effect on the residual of data; a column that is not finite is not dead
        with np.errstate(over="ignore"):
            effect = np.abs(problem.data_jacobian(point)).max(axis=0, initial=0.0) * size
        alive |= ~(effect <= ROUNDING * measured)
        if alive.all():
            break
    return tuple(name for name, live in zip(problem.names, alive, strict=True) if not live)
