"""The programme whose only unknowns are the free parameters: every cost is a whole simulation."""

from collections.abc import Callable

import casadi
import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.method import MethodError
from mechsmith.identification.nlp.transcription import (
    Guard,
    Numeric,
    Transcription,
    parameter_constraints,
    starting_scale,
    symbolic_physical,
)
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]


class Memory:
    """The last value of a function of a vector, since cost, gradient and Hessian are asked for one after another."""

    def __init__(self, compute: Callable[[Array], Array]) -> None:
        self.compute, self.key, self.value = compute, b"", np.zeros(0)

    def __call__(self, point: Array) -> Array:
        """Return the value, computed when the point is new."""
        key = point.tobytes()
        if key != self.key:
            # kept only once it is whole: an interrupt may come in between
            value = self.compute(point)
            self.key, self.value = key, value
        return self.value


def single_shooting(problem: Problem, start: Array, *, exact: bool, guard: Guard) -> Transcription:
    """Return the programme; `start` is in physical units, shape (n,).

    The gradient is exact: from the sensitivities of the simulation, or the Jacobian of the functions. The Hessian is
    Gauss and Newton's J'J, or with `exact` the true one (`EquationError` with CasADi's functions, not decimated).

    Raises
    ------
    MethodError
        If the exact Hessian is asked for and can't be had.
    """
    space, n = problem.space, len(problem.names)
    scale = starting_scale(problem, start)
    columns = scale.columns
    residual = Memory(lambda x: problem.residual_vector(space.physical(x)) / scale.residual)
    jacobian = Memory(lambda x: problem.jacobian(space.physical(x)) / scale.residual * space.slopes(x))
    second = _second_order(problem, scale.residual) if exact else None

    def cost(w: Array) -> Array:
        value = residual(w / columns)
        return np.array([0.5 * float(value @ value)])

    def gradient(w: Array) -> Array:
        return np.asarray(jacobian(w / columns).T @ residual(w / columns) / columns)

    def hessian(w: Array) -> Array:
        rows = jacobian(w / columns)
        product = np.asarray(rows.T @ rows)
        if second is not None:
            product += second(w / columns, rows.T @ residual(w / columns))
        return product / np.outer(columns, columns)

    functions = numeric_cost(cost, gradient, hessian, n, guard)
    w = casadi.MX.sym("w", n)
    constraints, low, high = parameter_constraints(problem, symbolic_physical(problem, scale, w), scale)
    return Transcription(
        scale.start * columns,
        space.internal_lower * columns,
        space.internal_upper * columns,
        w,
        functions[0](w),
        constraints,
        low,
        high,
        cost_derivatives(functions, w, constraints, exact=exact),
        scale,
        True,
        functions,
    )


def numeric_cost(
    cost: Callable[[Array], Array],
    gradient: Callable[[Array], Array],
    hessian: Callable[[Array], Array],
    size: int,
    guard: Guard,
) -> tuple[Numeric, Numeric, Numeric]:
    """Return cost, gradient and Hessian (all of it, dense) as CasADi functions of the decision vector."""
    dense = casadi.Sparsity.dense
    return (
        Numeric("cost", cost, size, dense(1, 1), guard),
        Numeric("cost_gradient", gradient, size, dense(size, 1), guard),
        Numeric("cost_hessian", hessian, size, dense(size, size), guard),
    )


def cost_derivatives(
    functions: tuple[Numeric, Numeric, Numeric],
    x: casadi.MX,
    curved: casadi.MX,
    *,
    exact: bool,
    flat: int = 0,
) -> dict[str, casadi.Function]:
    """Return the derivatives for `casadi.nlpsol`; `curved` constraints come first, then `flat` ones without curvature.

    Beside Gauss and Newton's Hessian of the cost the curvature of the constraints is left out too: it comes from the
    transforms alone, as does a part of the cost's that Gauss and Newton leave out, and at the optimum they cancel.
    """
    cost, gradient, hessian = functions
    none, factor = casadi.MX.sym("none", 0), casadi.MX.sym("factor")
    multipliers = casadi.MX.sym("multipliers", curved.numel() + flat)
    whole = factor * hessian(x)
    if curved.numel() and exact:
        whole = whole + casadi.hessian(casadi.dot(multipliers[: curved.numel()], curved), x)[0]
    return {
        "grad_f": casadi.Function("nlp_grad_f", [x, none], [cost(x), gradient(x)]),
        "hess_lag": casadi.Function(
            "nlp_hess_l", [x, none, factor, multipliers], [casadi.triu(casadi.densify(whole))]
        ),
    }


def has_exact_hessian(problem: Problem) -> bool:
    """Tell whether single shooting can have the exact Hessian."""
    return (
        not problem.residual.simulates
        and problem.residual.decimation is None
        and isinstance(problem.system, FunctionSet)
        and "embeddable" in problem.functions.capabilities
        and not problem.delayed
        and all(slot.kind == "parameter" for slot in problem.slots)
    )


def _second_order(problem: Problem, scale: float) -> Callable[[Array, Array], Array]:
    """Return what the exact Hessian has beyond J'J, as a function of the internal vector and the cost's gradient."""
    functions, slots = problem.functions, problem.slots
    if not has_exact_hessian(problem):
        raise MethodError(
            "Ipopt: an exact Hessian in single shooting needs EquationError on CasADi's functions, neither decimated nor "
            "delayed. Use hessian='gauss_newton'."
        )
    rows = problem.comparison.rows
    symbols = functions.arguments()
    weights = casadi.SX.sym("weights", len(rows))
    outputs = functions.casadi_function("output")(*symbols)[[int(row) for row in rows]]
    curvature = casadi.hessian(casadi.dot(weights, outputs), symbols[4])[0]
    kernel = casadi.Function("curvature", [*symbols, weights], [casadi.densify(curvature)])
    sampled = [_sampled(problem, kernel, record) for record in range(len(problem.records))]
    space = problem.space

    def second(x: Array, gradient: Array) -> Array:
        vector, slopes = space.physical(x), space.slopes(x)
        total = np.zeros((len(x), len(x)))
        for k, evaluate in enumerate(sampled):
            by_p = evaluate(
                vector, problem.record_residual(vector, k) / (problem.comparison.noise * scale**2)
            )
            mine = [(i, slot.index) for i, slot in enumerate(slots) if slot.record in (None, k)]
            places, indices = (np.array(each) for each in zip(*mine, strict=True))
            total[np.ix_(places, places)] += by_p[np.ix_(indices, indices)]
        return total * np.outer(slopes, slopes) + np.diag(gradient * _bending(problem, x))

    return second


def _bending(problem: Problem, x: Array) -> Array:
    """Return second over first derivatives of the physical by the internal values: 1 where logarithmic, else 0."""
    step = 1e-5
    slopes = problem.space.slopes
    return np.asarray((slopes(x + step) - slopes(x - step)) / (2.0 * step) / slopes(x))


def _sampled(problem: Problem, kernel: casadi.Function, k: int) -> Callable[[Array, Array], Array]:
    """Return sum over samples of weight times second derivatives of the outputs by p, (np, np), for one record."""
    functions, record = problem.functions, problem.records[k]
    count = len(record)
    columns = []
    for argument in ("x", "d", "z", "u"):
        labels = functions.labels(argument)
        # the problem has checked that every column which the outputs depend on is there
        found = [record[label] if label in record else np.zeros(count) for label in labels]
        columns.append(np.array(found).reshape(len(labels), count))
    mapped = kernel.map(count)
    size = functions.size("p")

    def evaluate(vector: Array, weights: Array) -> Array:
        p = np.tile(problem.arguments(vector, k).p[:, None], (1, count))
        stacked = np.asarray(mapped(*columns, p, weights.T).full())
        return np.asarray(stacked.reshape(size, count, size).sum(axis=1))

    return evaluate
