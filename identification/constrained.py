"""Least squares with linear constraints between parameters, once the unconstrained solution violates them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mechsmith.identification.method import Progress, Solution
from mechsmith.identification.norms import norm
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]
# Relative to the size of the terms: what rounding leaves of an active constraint.
TOLERANCE = 1e-9


def violated(problem: Problem, vector: Array) -> bool:
    """Return whether a free vector violates a constraint by more than rounding."""
    matrix, lower, upper = problem.constraint_rows
    values = matrix @ vector
    size = np.abs(matrix) @ np.abs(vector) + np.where(np.isfinite(lower), np.abs(lower), 0.0)
    slack = TOLERANCE * (size + np.where(np.isfinite(upper), np.abs(upper), 0.0))
    return bool(np.any(values < lower - slack) or np.any(values > upper + slack))


def constrained_least_squares(problem: Problem, start: Array, scale: float, iterations: int) -> Solution:
    """Solve with constraints and bounds by sequential quadratic programming (scipy's SLSQP).

    Kraft, *A software package for sequential quadratic programming*, DFVLR-FB 88-28 (1988). The unknowns are taken in
    the eigenvectors of the Gauss-Newton matrix at `start`, divided by the roots of its eigenvalues, where that matrix
    is the identity with which SLSQP's own approximation begins.

    Parameters
    ----------
    problem : Problem
        With constraints.
    start : array
        The unconstrained solution, shape (n,), physical units.
    scale : float
        Residuals are divided by it.
    iterations : int
        At most.
    """
    space = problem.space
    origin = space.internal(start)
    at_start = problem.jacobian(start) / scale * space.slopes(origin)
    _, singular, rows = np.linalg.svd(at_start, full_matrices=False)
    basis = rows.T / np.maximum(singular, 1e-8 * singular[0])
    matrix, lower, upper = problem.constraint_rows
    history: list[Progress] = []

    def physical(y: Array) -> Array:
        return space.physical(origin + basis @ y)

    def cost(y: Array) -> tuple[float, Array]:
        # below the bounds the internal vector is clipped, where SLSQP may look while it searches a line
        vector = physical(y)
        residual = problem.residual_vector(vector) / scale
        slopes = space.slopes(space.internal(vector))
        gradient = basis.T @ (slopes * ((problem.jacobian(vector) / scale).T @ residual))
        best = min(norm(residual) * scale, history[-1].norm if history else np.inf)
        history.append(Progress(0, len(history), best))
        return 0.5 * float(residual @ residual), gradient

    constraints = _constraints(matrix, lower, upper, physical, space, basis)
    box = np.vstack([np.eye(len(origin)), -np.eye(len(origin))])
    edges = np.concatenate([space.internal_lower - origin, origin - space.internal_upper])
    finite = np.isfinite(edges)
    constraints.append(
        {
            "type": "ineq",
            "fun": lambda y: (box @ (basis @ y) - edges)[finite],
            "jac": lambda y: (box @ basis)[finite],
        }
    )
    result: Any = minimize(
        cost,
        np.zeros(len(origin)),
        jac=True,
        method="SLSQP",
        constraints=constraints,
        options={"maxiter": iterations, "ftol": 1e-15},
    )
    return Solution(
        physical(result.x),
        str(result.message),
        bool(result.success) and not violated(problem, physical(result.x)),
        f"scipy minimize SLSQP with constraints, status {result.status}",
        len(history),
        tuple(history),
    )


def _constraints(
    matrix: Array, lower: Array, upper: Array, physical: Any, space: Any, basis: Array
) -> list[dict[str, Any]]:
    """Return the constraints for SLSQP, each row divided by the size of its terms at the start."""
    start = physical(np.zeros(basis.shape[1]))
    size = np.abs(matrix) @ np.maximum(np.abs(start), 1e-6 * space.magnitude)
    scaled = matrix / size[:, None]

    def slope(y: Array) -> Array:
        return np.asarray((scaled * space.slopes(space.internal(physical(y)))) @ basis)

    equal = lower == upper
    above, below = np.isfinite(lower) & ~equal, np.isfinite(upper) & ~equal
    low, high = lower / size, upper / size
    found: list[dict[str, Any]] = []
    if equal.any():
        found.append(
            {
                "type": "eq",
                "fun": lambda y: (scaled @ physical(y) - low)[equal],
                "jac": lambda y: slope(y)[equal],
            }
        )
    if above.any():
        found.append(
            {
                "type": "ineq",
                "fun": lambda y: (scaled @ physical(y) - low)[above],
                "jac": lambda y: slope(y)[above],
            }
        )
    if below.any():
        found.append(
            {
                "type": "ineq",
                "fun": lambda y: (high - scaled @ physical(y))[below],
                "jac": lambda y: -slope(y)[below],
            }
        )
    return found
