"""Linear least squares in one step, for functions whose outputs are linear in the free parameters."""

from dataclasses import dataclass

import casadi
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from mechsmith.identification.constrained import constrained_least_squares, violated
from mechsmith.identification.method import MethodError, Progress, Solution, residual_scale
from mechsmith.identification.norms import norm, triangular_factor
from mechsmith.identification.problem import Problem
from mechsmith.identification.residuals import EquationError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearLeastSquares:
    """The least-squares solution by singular values, with bounds and constraints kept where they are active.

    That outputs are linear in the free parameters is checked on CasADi's graph. Columns are scaled to norm 1; where they are
    dependent (a singular value below `rank_tolerance` of the largest) the step from the start is the shortest one.

    Parameters
    ----------
    rank_tolerance : float
        Relative.
    """

    rank_tolerance: float = 1e-12

    @property
    def needs_start(self) -> bool:
        """False: the solution does not depend on it, but for what the data leave undetermined."""
        return False

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None = None) -> Solution:
        """Solve; `start`, shape (n,), only counts in directions that the data do not determine.

        Raises
        ------
        MethodError
            If the problem is not linear; it names the parameters.
        """
        require_linear(problem)
        scale = residual_scale(problem, start)
        residual, jacobian = problem.linearised(start)
        residual = residual / scale
        weight = np.array([norm(column) for column in jacobian.T])
        weight[weight == 0.0] = 1.0
        # the last column of the factor is the residual in the coordinates of the others
        factor = triangular_factor(np.column_stack([jacobian / weight, residual]))
        left, singular, right = np.linalg.svd(factor[:, :-1], full_matrices=False)
        kept = singular > self.rank_tolerance * singular[0]
        step = right[kept].T @ ((left.T[kept] @ -factor[:, -1]) / singular[kept])
        vector = start + step / weight * scale
        lower, upper = problem.space.lower, problem.space.upper
        message = f"rank {int(kept.sum())} of {len(vector)}"
        history = (Progress(0, 0, norm(residual) * scale),)
        if np.any(vector < lower) or np.any(vector > upper):
            bounds = ((lower - start) * weight / scale, (upper - start) * weight / scale)
            found = lsq_linear(factor[:, :-1], -factor[:, -1], bounds, method="bvls", tol=1e-14)
            vector = np.clip(start + found.x / weight * scale, lower, upper)
            message += f"; with bounds: {found.message}"
            if not found.success:
                return Solution(vector, str(found.message), False, message, 1, history)
        if violated(problem, vector):
            return constrained_least_squares(problem, vector, scale, 200)
        after = Progress(0, 1, norm(problem.residual_vector(vector)))
        return Solution(vector, "solved", True, message, 1, (*history, after))


def require_linear(problem: Problem) -> None:
    """Raise `MethodError` unless the residual is linear in the free vector, as far as CasADi's graph shows."""
    if not isinstance(problem.residual, EquationError):
        raise MethodError(
            f"LinearLeastSquares needs EquationError; the residual is {type(problem.residual).__name__}, and a simulation "
            "is not linear in its parameters. Use LeastSquares."
        )
    other = [slot.name for slot in problem.slots if slot.kind != "parameter"]
    if other:
        raise MethodError(
            f"LinearLeastSquares: {', '.join(other)} is no parameter of an output. Use LeastSquares."
        )
    culprits = nonlinear_names(problem)
    if culprits:
        raise MethodError(
            f"LinearLeastSquares: outputs {', '.join(problem.comparison.names)} of {problem.functions.name!r} are not "
            f"linear in {', '.join(map(repr, culprits))}. Fix {'it' if len(culprits) == 1 else 'some'}, or use LeastSquares."
        )


def nonlinear_names(problem: Problem) -> tuple[str, ...]:
    """Return the free parameters on which the derivative of an output by a free parameter depends."""
    functions = problem.functions
    functions.require("embeddable", "the check that outputs are linear in the parameters")
    symbols = functions.arguments()
    outputs = functions.casadi_function("output")(*symbols)[problem.comparison.rows.tolist()]
    labels = functions.labels("p")
    places = sorted({slot.index for slot in problem.slots})
    slopes = casadi.jacobian(outputs, symbols[4])[:, places]
    depends = casadi.which_depends(casadi.vec(slopes), symbols[4], 1, False)
    return tuple(labels[place] for place in places if depends[place])
