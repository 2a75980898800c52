"""The verb: a problem and a method give an Estimate."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.constraints import Constraint
from mechsmith.identification.estimate import Estimate
from mechsmith.identification.method import Method, Solution, check_start, dead_names
from mechsmith.identification.norms import norm
from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.uncertainty import Precision, Uncertainty, precision

Array = NDArray[np.float64]
# Share of a parameter's magnitude (internal units) within which a value counts as at its bound.
AT_BOUND = 1e-6


class IdentificationFailed(RuntimeError):
    """Raised with ``throw=True`` when a method did not converge; `estimate` is what it found."""

    def __init__(self, estimate: Estimate) -> None:
        super().__init__(f"{estimate.method}: {estimate.status} ({estimate.message})")
        self.estimate = estimate


def identify(
    problem: Problem,
    method: Method,
    *,
    start: Estimate | Mapping[str, float] | None = None,
    rng: np.random.Generator | None = None,
    uncertainty: Uncertainty | None = None,
    throw: bool = False,
) -> Estimate:
    """Find the free parameters of a problem.

    Parameters
    ----------
    problem : Problem
        With at least one free name.
    method : Method
        A solver with its options.
    start : Estimate or mapping of name to float, optional
        Where to begin; nominal values, then the middle of bounds, fill what is not given.
    rng : numpy.random.Generator, optional
        Required by methods that draw random numbers.
    uncertainty : Uncertainty, optional
        How precision is judged.
    throw : bool
        Whether to raise `IdentificationFailed` when the method did not converge. By default that is the estimate's
        `success` and `status`.

    Returns
    -------
    Estimate

    Raises
    ------
    ProblemError
        If nothing is free, the residual at the start is not finite, or a free parameter has no effect on it.
    MethodError
        If the method does not suit the problem.
    """
    if not problem.names:
        raise ProblemError("problem: nothing is free. Name at least one parameter or initial state in free.")
    # also what the estimate held fixed: it may be free now
    given = start.parameters if isinstance(start, Estimate) else start
    vector = problem.start_vector(given, required=method.needs_start)
    if method.needs_start:
        check_start(problem, vector)
    dead = dead_names(problem, vector)
    if dead:
        raise ProblemError(
            f"problem: {', '.join(map(repr, dead))} {'has' if len(dead) == 1 else 'have'} no effect on the residual, at the "
            "start or near it. Fix, or use a record that excites it."
        )
    solution = method.solve(problem, vector, rng)
    estimate = make_estimate(problem, solution, repr(method), uncertainty or Uncertainty())
    if throw and not estimate.success:
        raise IdentificationFailed(estimate)
    return estimate


def make_estimate(problem: Problem, solution: Solution, method: str, options: Uncertainty) -> Estimate:
    """Return the estimate of a solution."""
    vector = np.asarray(solution.vector, dtype=float)
    found = precision(problem, vector, options)
    residual = problem.data_residual(vector)
    relative, determination = _fit(problem, vector)
    return Estimate(
        model=problem.functions.name,
        names=problem.names,
        units=problem.units,
        values=vector,
        parameters=problem.all_values(vector),
        status=solution.status,
        success=solution.success,
        message=_message(solution, found),
        method=method,
        samples=residual.size,
        residual_norm=norm(residual),
        residual_deviation=found.residual_deviation,
        relative_error=relative,
        determination=determination,
        condition=found.condition,
        scaled_condition=found.scaled_condition,
        singular_values=found.singular_values,
        null_directions=found.null_directions,
        undetermined=found.undetermined,
        at_bound=_at_bound(problem, vector),
        intervals=np.column_stack([found.lower, found.upper]),
        confidence=options.confidence,
        covariance_white=found.covariance_white,
        covariance_corrected=found.covariance_corrected,
        white=found.white,
        correction_lags=found.lags,
        whiteness=found.whiteness,
        degrees_of_freedom=options.degrees_of_freedom,
        history=solution.history,
        evaluations=solution.evaluations,
        records=tuple(record.source for record in problem.records),
        provenance=tuple(
            f"record {k}: {line}" for k, record in enumerate(problem.records) for line in record.provenance
        ),
    )


def _message(solution: Solution, found: Precision) -> str:
    if not found.undetermined:
        return solution.message
    note = f"the data do not determine {', '.join(found.undetermined)}"
    return f"{solution.message}; {note}" if solution.message else note


def _fit(problem: Problem, vector: Array) -> tuple[float, float]:
    """Return the relative error in % and R^2, each over all records and outputs, weighted by noise."""
    residual = problem.data_residual(vector)
    noise = problem.comparison.noise
    measured = np.concatenate([(m / noise).reshape(-1) for m in problem.measurements])
    centred = np.concatenate([((m - m.mean(axis=0)) / noise).reshape(-1) for m in problem.measurements])
    error, size, variation = norm(residual), norm(measured), norm(centred)
    relative = 100.0 * error / size if size > 0.0 else np.inf
    determination = 1.0 - (error / variation) ** 2 if variation > 0.0 else np.nan
    return float(relative), float(determination)


def _at_bound(problem: Problem, vector: Array) -> tuple[str, ...]:
    space = problem.space
    internal = space.internal(vector)
    low, high = internal - space.internal_lower, space.internal_upper - internal
    near = (low <= AT_BOUND) | (high <= AT_BOUND)
    bounded = tuple(name for name, one in zip(problem.names, near, strict=True) if one)
    matrix, lower, upper = problem.constraint_rows
    value, size = matrix @ vector, np.abs(matrix) @ np.abs(vector)
    active = (value - lower <= AT_BOUND * size) | (upper - value <= AT_BOUND * size)
    texts = [_row_text(problem.names, matrix[i], lower[i], upper[i]) for i in np.flatnonzero(active)]
    return (*bounded, *texts)


def _row_text(names: tuple[str, ...], row: Array, lower: float, upper: float) -> str:
    coefficients = dict(zip(names, map(float, row), strict=True))
    return str(Constraint(coefficients, float(lower), float(upper)))
