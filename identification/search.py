"""Nonlinear least squares with exact Jacobians, and many starts of any method."""

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mechsmith.identification.constrained import constrained_least_squares, violated
from mechsmith.identification.method import (
    Method,
    MethodError,
    Progress,
    Solution,
    require_rng,
    residual_scale,
)
from mechsmith.identification.norms import norm, triangular_factor
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]

# At a minimum the residual is orthogonal to each free column of the Jacobian. A larger cosine is a slope, and a smaller
# part of the first residual's norm is an exact fit, whose cosines are rounding.
LARGEST_COSINE = 1e-3
EXACT_FIT = 1e-9


@dataclass(frozen=True)
class LeastSquares:
    """Trust-region least squares (scipy's `trf`) in the internal space, with exact Jacobians.

    Branch, Coleman, Li, *A subspace, interior, and conjugate gradient method for large-scale bound-constrained
    minimization problems*, SIAM J. Sci. Comput. 21 (1999), 1-23. Columns are scaled by the Jacobian, residuals by their size
    at the start. A start on a bound is moved off it first. Where the solution violates constraints between parameters,
    the problem is solved again with them by sequential quadratic programming.

    Parameters
    ----------
    max_evaluations : int
        Of the residual.
    tolerance : float
        Relative change of cost and of parameters, and relative gradient, at which it ends.
    """

    max_evaluations: int = 200
    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        if self.max_evaluations < 1:
            raise MethodError(
                f"LeastSquares: max_evaluations is {self.max_evaluations}, allowed is 1 or more."
            )
        if not 1e-15 <= self.tolerance < 1.0:
            raise MethodError(f"LeastSquares: tolerance is {self.tolerance}, allowed is 1e-15 to 1.")

    @property
    def needs_start(self) -> bool:
        """True."""
        return True

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None = None) -> Solution:
        """Solve from a start, shape (n,), in physical units; nothing is drawn at random."""
        space = problem.space
        begin = space.inside(space.internal(start))
        first = space.physical(begin)
        if not np.isfinite(problem.residual_vector(first)).all():
            return Solution(first, "the residual is not finite at the start", False, evaluations=1)
        scale = residual_scale(problem, first)
        compressed = _Compressed(problem, scale)
        try:
            result: Any = least_squares(
                compressed.residual,
                begin,
                compressed.jacobian,
                bounds=(space.internal_lower, space.internal_upper),
                method="trf",
                x_scale="jac",
                ftol=self.tolerance,
                xtol=self.tolerance,
                gtol=self.tolerance,
                max_nfev=self.max_evaluations,
            )
        except (np.linalg.LinAlgError, ValueError) as error:
            # scipy raises where a Jacobian holds NaN; for us that is how this solve ended
            return Solution(
                first,
                f"{error}",
                False,
                "scipy least_squares failed",
                len(compressed.norms),
                _history(compressed.norms),
            )
        vector = space.physical(result.x)
        stuck = compressed.is_stuck(result.x, np.asarray(result.active_mask) == 0)
        message = f"scipy least_squares trf, status {result.status}"
        if stuck:
            message += "; it stands where steps that lower the residual lead to simulations that fail"
        solution = Solution(
            vector,
            str(result.message),
            bool(result.status > 0) and not stuck,
            message,
            len(compressed.norms),
            _history(compressed.norms),
        )
        if not violated(problem, vector):
            return solution
        kept = constrained_least_squares(problem, vector, scale, self.max_evaluations)
        return replace(
            kept,
            evaluations=kept.evaluations + solution.evaluations,
            history=(*solution.history, *kept.history),
        )


class _Compressed:
    """The least-squares problem with as many rows as parameters, and one more.

    The triangular factor [R f] of [J r] (`triangular_factor`) has J'J = R'R, J'r = R'f and the same norm of r, which is all that `trf` uses, and
    it decomposes a matrix at each step: a small one instead of one with a row for each sample. The Jacobian comes with
    every residual, since few trials are rejected and a simulation with sensitivities gives both.
    """

    def __init__(self, problem: Problem, scale: float) -> None:
        self.problem, self.scale = problem, scale
        self.norms: list[float] = []
        self.failures = 0
        self.last = np.zeros((len(problem.names) + 1, len(problem.names) + 1))
        self.at = np.full(len(problem.names), np.nan)

    def residual(self, internal: Array) -> Array:
        """Return f; NaN where the residual or its derivative is not finite."""
        space = self.problem.space
        residual, jacobian = self.problem.linearised(space.physical(internal))
        self.norms.append(norm(residual))
        both = np.column_stack([jacobian * space.slopes(internal), residual]) / self.scale
        if np.isfinite(both).all():
            self.last = triangular_factor(both)
        else:
            self.failures += 1
            self.last = np.full_like(self.last, np.nan)
        self.at = internal.copy()
        return np.asarray(self.last[:, -1])

    def jacobian(self, internal: Array) -> Array:
        """Return R."""
        if not np.array_equal(internal, self.at):
            self.residual(internal)
            self.norms.pop()
        return np.asarray(self.last[:, :-1])

    def is_stuck(self, internal: Array, free: NDArray[np.bool_]) -> bool:
        """Tell whether the end is no minimum though steps became small: a wall of failed trials stands around it."""
        if not self.failures:
            return False
        jacobian, residual = self.jacobian(internal)[:, free], self.last[:, -1]
        if norm(residual) <= EXACT_FIT * self.norms[0] / self.scale:
            return False
        with np.errstate(invalid="ignore", divide="ignore"):
            cosines = np.abs(jacobian.T @ residual) / (np.linalg.norm(jacobian, axis=0) * norm(residual))
        return bool(np.nanmax(cosines, initial=0.0) > LARGEST_COSINE)


def _history(norms: list[float]) -> tuple[Progress, ...]:
    best, lines = math.inf, []
    for i, value in enumerate(norms):
        best = min(best, value)
        lines.append(Progress(0, i, best))
    return tuple(lines)


@dataclass(frozen=True)
class MultiStart:
    """A method from several starts, the best of which counts.

    Start 0 is the given one; the others are drawn uniformly from the internal box (log-uniform for positive parameters).
    Every start has its own child of `rng`, so the number of workers changes nothing.

    Parameters
    ----------
    method : Method
        Any other.
    starts : int
        How many, the given one included.
    workers : int
        Processes; they are spawned, so a script that uses more than 1 needs the guard ``if __name__ == "__main__"``.
    """

    method: Method
    starts: int = 8
    workers: int = 1
    needs_start: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.starts < 1 or self.workers < 1:
            raise MethodError(
                f"MultiStart: starts is {self.starts}, workers is {self.workers}; both must be 1 or more."
            )

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None) -> Solution:
        """Solve from every start; the lowest norm among those that converged wins, ties go to the first."""
        children = require_rng(rng, "MultiStart").spawn(self.starts)
        begins = [start, *(problem.space.random(child) for child in children[1:])]
        jobs = [(self.method, problem, begin, child) for begin, child in zip(begins, children, strict=True)]
        if self.workers == 1:
            solutions = [_run(job) for job in jobs]
        else:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(min(self.workers, self.starts), mp_context=context) as pool:
                solutions = list(pool.map(_run, jobs))
        norms = [norm(problem.residual_vector(solution.vector)) for solution in solutions]
        order = sorted(range(self.starts), key=lambda i: (not solutions[i].success, norms[i], i))
        best = order[0]
        near = sum(
            s.success and n <= norms[best] * (1.0 + 1e-6) for s, n in zip(solutions, norms, strict=True)
        )
        converged = sum(solution.success for solution in solutions)
        history = [replace(line, start=i) for i, s in enumerate(solutions) for line in s.history]
        message = f"{converged} of {self.starts} starts converged, {near} to the best (start {best}); {solutions[best].message}"
        return replace(
            solutions[best],
            message=message,
            evaluations=sum(solution.evaluations for solution in solutions),
            history=tuple(history),
        )


def _run(job: tuple[Method, Problem, Array, np.random.Generator]) -> Solution:
    method, problem, start, rng = job
    return method.solve(problem, start, rng)
