"""Continuous time made discrete: integrators, input reconstruction, and steps split where a model switches.

A `Discretisation` holds straight-line kernels; the routine around them, which cuts a sample interval into
substeps, is written once here and printed in C by `mechsmith.codegen.emit_c`. Both give the same numbers.

**Where the interval is cut.** A crossing function w that depends on inputs alone (the velocity of a friction
model) is known along the whole interval: it is cut at the zeros of w, and each piece into so many substeps
that |w| changes by at most `GRADING` of its smaller end in each, between `integrator.substeps` and
`MOST_SUBSTEPS`. A crossing that depends on states is located by the secant method on the length of the substep. Where the rate jumps there,
the derivatives of the state jump by (rate before - rate after) times the derivative of the time of the crossing
(Hiskens & Pai 2000, Trajectory sensitivity analysis of hybrid systems, IEEE Trans. Circuits Syst. I 47(2), eq. 30).
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import casadi
import numpy

from mechsmith.codegen import integrators
from mechsmith.codegen.functions import Array, FunctionSet, FunctionSetError, Variable
from mechsmith.codegen.integrators import Integrator, Radau, RungeKutta4

SX = casadi.SX
Reconstruction = Literal["hold", "linear", "hermite"]

GRADING = 0.05
MOST_SUBSTEPS = 16
ROOT_MARGIN = 1e-6  # of the interval: a zero this near to an end is taken to be at the end
SECANT_STEPS = 20
ASIDE = 1e-6  # of the part of a substep: how far from a crossing the rates before and after it are taken
CHECKED_POINTS = 1000  # of a motion, at which the stability of an explicit integrator is checked
NEWTON_TOLERANCE = 1e-3  # largest relative change in the last Newton iteration that passes as solved


class StiffnessError(FunctionSetError):
    """An explicit integrator would leave its stability region; the message gives the limit and the numbers."""


@dataclass(frozen=True)
class Discretisation:
    """Kernels that advance a model from one sample to the next.

    Parameters
    ----------
    functions : FunctionSet
        The model, with CasADi functions.
    integrator : Integrator
        The method for its continuous states.
    reconstruction : tuple of (input, reconstruction)
        How each scalar input behaves between samples.
    samples : tuple of Variable
        What is given at each sample: the inputs, then the integrals that Hermite reconstruction needs.
    crossing : {"none", "input", "state"}
        Whether steps are split, and on what the crossing functions depend.
    kernels : mapping of str to casadi.Function
        ``reconstruct`` (from, to, length, fraction) -> input; ``substep`` (x, d, v, p, h) -> state, residual with
        v the inputs at the integrator's nodes; ``substep_sensitivity`` adds the derivatives by x, d and p;
        ``rate`` (x, d, u, p) -> dx/dt.
    checks_mass : bool
        Whether the mass matrix depends on the state, so that it may cease to be positive definite: the residual is then
        negative where it has at the beginning of the substep.
    """

    functions: FunctionSet
    integrator: Integrator
    reconstruction: tuple[tuple[str, Reconstruction], ...]
    samples: tuple[Variable, ...]
    crossing: Literal["none", "input", "state"]
    kernels: Mapping[str, casadi.Function]
    checks_mass: bool = False

    @cached_property
    def sample_labels(self) -> tuple[str, ...]:
        """The name of each element of a sample."""
        return tuple(label for variable in self.samples for label in variable.labels)


def discretise(
    functions: FunctionSet,
    integrator: Integrator | None = None,
    *,
    reconstruction: Mapping[str, Reconstruction] | None = None,
    split: bool = True,
) -> Discretisation:
    """Return the kernels that advance a model from one sample to the next.

    Parameters
    ----------
    functions : FunctionSet
        With CasADi functions and no algebraic unknowns.
    integrator : Integrator, optional
        `Radau` when not given.
    reconstruction : mapping of input to {"hold", "linear", "hermite"}, optional
        Hermite is the default for an input whose integral the model names, linear for the others.
    split : bool
        Whether steps are split at the model's crossings.

    Raises
    ------
    FunctionSetError
        If the functions are not CasADi's, have unknowns, or a reconstruction does not fit.
    """
    functions.require("embeddable", "discretise")
    if functions.unknowns:
        names = ", ".join(variable.name for variable in functions.unknowns)
        raise FunctionSetError(
            f"functions {functions.name!r}: discretise does not integrate algebraic unknowns ({names}). "
            "Where they depend on parameters alone, hold them (mechsmith.codegen.held.hold); else differentiate the constraint "
            "and make them states."
        )
    chosen = _reconstructions(functions, reconstruction or {})
    integrals = dict(functions.integrals)
    samples = (*functions.inputs, *(integrals[name] for name, kind in chosen if kind == "hermite"))
    method = Radau() if integrator is None else integrator
    return Discretisation(
        functions=functions,
        integrator=method,
        reconstruction=chosen,
        samples=samples,
        crossing=_crossing_kind(functions) if split else "none",
        kernels={"reconstruct": _reconstruct(functions, chosen), **_substeps(functions, method)},
        checks_mass=_pivot(functions, functions.arguments()) is not None,
    )


def _reconstructions(
    functions: FunctionSet, given: Mapping[str, Reconstruction]
) -> tuple[tuple[str, Reconstruction], ...]:
    labels = functions.labels("u")
    integrals = dict(functions.integrals)
    for name, kind in given.items():
        if (
            name not in labels
            or kind not in ("hold", "linear", "hermite")
            or (kind == "hermite" and name not in integrals)
        ):
            raise FunctionSetError(
                f"functions {functions.name!r}: reconstruction[{name}] = {kind!r} is not allowed. Inputs are "
                f"{', '.join(labels) or 'none'}; kinds are hold, linear, and hermite for {', '.join(integrals) or 'none'}."
            )
    default: Reconstruction = "linear"
    return tuple((label, given.get(label, "hermite" if label in integrals else default)) for label in labels)


def _reconstruct(functions: FunctionSet, chosen: Sequence[tuple[str, Reconstruction]]) -> casadi.Function:
    count = len(chosen) + sum(kind == "hermite" for _, kind in chosen)
    start, stop = SX.sym("from", count), SX.sym("to", count)
    length, fraction = SX.sym("length"), SX.sym("fraction")
    values = []
    integral = len(chosen)
    for i, (_, kind) in enumerate(chosen):
        if kind == "hold":
            values.append(start[i])
        elif kind == "linear":
            values.append(start[i] + fraction * (stop[i] - start[i]))
        else:
            # The derivative of the cubic through both integrals with both values as slopes.
            mean = 6 * (stop[integral] - start[integral]) / length
            linear = mean - 4 * start[i] - 2 * stop[i]
            quadratic = 3 * (start[i] + stop[i]) - mean
            values.append(start[i] + fraction * (linear + fraction * quadratic))
            integral += 1
    result = casadi.vertcat(*values) if values else SX.zeros(0)
    names = ["from", "to", "length", "fraction"]
    return casadi.Function(
        "reconstruct", [start, stop, length, fraction], [casadi.densify(result)], names, ["input"]
    )


def _pivot(functions: FunctionSet, arguments: Sequence[SX]) -> SX | None:
    """Return the smallest pivot of a symmetric mass matrix that depends on the state; else None."""
    if "mass" not in functions.functions:
        return None
    mass = functions.casadi_function("mass")(*arguments)
    return integrators.smallest_pivot(mass) if casadi.depends_on(mass, arguments[0]) else None


def _substeps(functions: FunctionSet, integrator: Integrator) -> dict[str, casadi.Function]:
    if not functions.states:
        return {}
    x, d, _, _, p = functions.arguments()
    size = functions.size("u")
    v, h = SX.sym("v", size * len(integrator.nodes)), SX.sym("h")
    derivative = functions.casadi_function("derivative")
    mass = functions.casadi_function("mass") if "mass" in functions.functions else None

    def rate(state: SX, inputs: SX) -> SX:
        value = derivative(state, d, [], inputs, p)
        return value if mass is None else integrators.solve_mass(mass(state, d, [], inputs, p), value)

    stages = [v[i * size : (i + 1) * size] for i in range(len(integrator.nodes))]
    step = integrator.build(rate, x, stages, h, casadi.vertcat(d, p))
    pivot = _pivot(functions, (x, d, SX.zeros(0), stages[0], p))
    if pivot is not None:
        step = replace(step, residual=casadi.if_else(pivot > 0.0, step.residual, -1.0))
    arguments, names = [x, d, v, p, h], ["x", "d", "v", "p", "h"]
    by_d, by_p = step.by_others[:, : d.numel()], step.by_others[:, d.numel() :]
    plain = [step.state, step.residual]
    full = [*plain, step.by_state, by_d, by_p]
    outputs = ["state", "residual", "by_x", "by_d", "by_p"]
    u = SX.sym("u", size)
    return {
        "substep": _function("substep", arguments, plain, names, outputs[:2]),
        "substep_sensitivity": _function("substep_sensitivity", arguments, full, names, outputs),
        "rate": _function("rate", [x, d, u, p], [rate(x, u)], ["x", "d", "u", "p"], ["rate"]),
    }


def _function(
    name: str, arguments: Sequence[SX], results: Sequence[SX], names: Sequence[str], outputs: Sequence[str]
) -> casadi.Function:
    shared = casadi.cse(list(results))
    return casadi.Function(
        name, list(arguments), [casadi.densify(r) for r in shared], list(names), list(outputs)
    )


def _crossing_kind(functions: FunctionSet) -> Literal["none", "input", "state"]:
    if "crossing" not in functions.functions or not functions.states:
        return "none"
    symbols = functions.arguments()
    expression = functions.casadi_function("crossing")(*symbols)
    return "state" if casadi.depends_on(expression, casadi.vertcat(symbols[0], symbols[1])) else "input"


def cuts(start: Array, middle: Array, stop: Array, least: int) -> list[tuple[float, float, int]]:
    """Return the pieces of an interval, as (from, to, number of substeps) in fractions of it.

    Parameters
    ----------
    start, middle, stop : array (nc,)
        Crossing functions at fractions 0, 1/2 and 1; between them they are taken as quadratic.
    least : int
        The least number of substeps in a piece.
    """
    quadratic = 2.0 * (start + stop - 2.0 * middle)
    linear = stop - start - quadratic
    ends = [0.0, 1.0]
    for w0, w1, c1, c2 in zip(start, stop, linear, quadratic, strict=True):
        ends += _roots(float(w0), float(w1), float(c1), float(c2))
    ends.sort()
    pieces = []
    for left, right in itertools.pairwise(ends):
        most = least
        for w0, c1, c2 in zip(start, linear, quadratic, strict=True):
            at_left, at_right = (abs(w0 + s * (c1 + s * c2)) for s in (left, right))
            low, high = min(at_left, at_right), max(at_left, at_right)
            # A zero of w comes out of the quadratic as a rounding error: both mean "graded as far as allowed".
            if high - low > GRADING * low:
                wanted = (high - low) / (GRADING * low) if low > 0.0 else math.inf
                most = max(most, MOST_SUBSTEPS if wanted > MOST_SUBSTEPS else math.ceil(wanted))
        pieces.append((left, right, most))
    return pieces


def _roots(w0: float, w1: float, c1: float, c2: float) -> list[float]:
    """Return the zeros of w0 + c1 s + c2 s^2 strictly inside (0, 1) where the sign changes."""
    same_sign = w0 * w1 > 0.0
    if same_sign and min(abs(w0), abs(w1)) > 0.25 * abs(c2):
        return []
    discriminant = c1 * c1 - 4.0 * c2 * w0
    if discriminant <= 0.0:
        return []
    half = -0.5 * (c1 + math.copysign(math.sqrt(discriminant), c1))
    candidates = [half / c2] if c2 != 0.0 else []
    candidates += [w0 / half] if half != 0.0 else []
    return [root for root in candidates if ROOT_MARGIN < root < 1.0 - ROOT_MARGIN]


def check_stability(
    discretisation: Discretisation, x: Array, d: Array, u: Array, p: Array, step: float
) -> None:
    """Raise `StiffnessError` when an explicit integrator leaves its stability region at given points.

    Parameters
    ----------
    discretisation : Discretisation
        Only `RungeKutta4` can fail.
    x, d, u : array (n, size)
        Points of the motion.
    p : array (np,)
        Parameters.
    step : float
        Sample period in s.
    """
    method = discretisation.integrator
    if not isinstance(method, RungeKutta4):
        return
    # Eigenvalues cost more than a substep, and along a motion they change from point to point by little.
    x, d, u = (a[:: max(1, len(a) // CHECKED_POINTS)] for a in (x, d, u))
    functions = discretisation.functions.with_jacobians(("derivative", "x"))
    jacobians = functions.batch("derivative_x", x, d, [], u, p)
    if "mass" in functions.functions:
        # At a point where the mass matrix is singular the motion itself will say so.
        masses = functions.batch("mass", x, d, [], u, p)
        regular = numpy.linalg.cond(masses) < 1.0 / numpy.finfo(float).eps
        jacobians = numpy.linalg.solve(masses[regular], numpy.broadcast_to(jacobians, masses.shape)[regular])
    finite = numpy.isfinite(jacobians).all(axis=(1, 2))
    fastest = float(numpy.abs(numpy.linalg.eigvals(jacobians[finite])).max(initial=0.0))
    reached = fastest * step / method.substeps
    if reached > integrators.RUNGE_KUTTA_LIMIT:
        needed = math.ceil(fastest * step / integrators.RUNGE_KUTTA_LIMIT)
        raise StiffnessError(
            f"functions {discretisation.functions.name!r}: RungeKutta4(substeps={method.substeps}) would diverge: "
            f"dt |lambda| reaches {reached:.4g} with dt = {step / method.substeps:.3g} s and lambda = {-fastest:.4g} 1/s, "
            f"the limit is {integrators.RUNGE_KUTTA_LIMIT:.2f}. Use at least {needed} substeps, or Radau()."
        )


def check_motion(
    discretisation: Discretisation,
    states: Array,
    discrete_states: Array,
    samples: Array,
    p: Array,
    time: Array,
) -> None:
    """Raise `StiffnessError` when an explicit integrator left its stability region along a motion that was simulated."""
    reached = numpy.isfinite(states).all(axis=1)
    inputs = samples[:, : discretisation.functions.size("u")]
    largest = float(numpy.diff(time).max())
    check_stability(discretisation, states[reached], discrete_states[reached], inputs[reached], p, largest)
