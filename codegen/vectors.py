"""Test vectors of generated code: points, and the values that the functions must give there."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import casadi
import numpy

from mechsmith.codegen.discretise import Discretisation
from mechsmith.codegen.functions import ARGUMENTS, Array, FunctionSet, Variable
from mechsmith.codegen.program import make_program
from mechsmith.codegen.simulator import CasadiSimulator

POINTS = 3
STEP = 1e-3  # s, for test vectors of the step function
INPUT_SIZES = (1.0, 0.1, 0.01)  # in SI, for inputs without a nominal value
NEAR_REST = 1e-6  # in SI, for states without a nominal value
DIGITS = 12  # kept of expected values: the last four may differ between math libraries
ROUNDING = {"double": 2.0**-53, "float": 2.0**-24}


@dataclass(frozen=True)
class Vector:
    """One point of one function.

    Parameters
    ----------
    function : str
        ``step`` or the name of a function.
    arguments : dict of name to list
        Flat values of x, d, z, u, p, or of x, d, from, to, p, dt for a step.
    expected : list of float
        Row by row, rounded to `DIGITS` digits.
    sensitivity : list of float
        For each value the sum over all arguments of |derivative times argument|, and of the operations'
        rounding: times the rounding of the number type it bounds the error to first order.
    """

    function: str
    arguments: dict[str, list[float]]
    expected: list[float]
    sensitivity: list[float]

    def tolerances(self, scalar: str) -> list[float]:
        """Return the largest error that each value may have: rounding, and the digits cut off the expected value."""
        unit, cut = ROUNDING[scalar], 0.5 * 10.0 ** (1 - DIGITS)
        return [4.0 * unit * s + cut * abs(e) for s, e in zip(self.sensitivity, self.expected, strict=True)]


def make_vectors(functions: FunctionSet, discretisation: Discretisation | None = None) -> tuple[Vector, ...]:
    """Return test vectors of every function, and of the step where there is a discretisation with states."""
    vectors = []
    for name in functions.functions:
        for point in range(POINTS):
            numbers = _sequence(point)
            arguments = [_point(functions.variables(a), numbers) for a in ARGUMENTS]
            vectors.append(_function_vector(functions, name, arguments))
    if discretisation is not None and discretisation.functions.states:
        vectors += [_solved_step_vector(discretisation, point) for point in range(POINTS)]
    return tuple(vectors)


def as_dictionary(vector: Vector) -> dict[str, Any]:
    """Return a vector as plain data."""
    return {"function": vector.function, "arguments": vector.arguments, "expected": vector.expected}


def _sequence(seed: int) -> Iterator[float]:
    """Yield fractions in (0, 1) that depend on nothing but the seed: multiples of the golden ratio."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    k = 17 * (seed + 1)
    while True:
        k += 1
        yield (k * ratio) % 1.0


def _point(variables: Sequence[Variable], numbers: Iterator[float], size: float = 1.0) -> list[float]:
    return [_value(variable, next(numbers), size) for variable in variables for _ in range(variable.size)]


def _value(variable: Variable, fraction: float, size: float) -> float:
    """Return a value near the nominal one, or within `size` of zero; in bounds, with six digits."""
    value = variable.nominal * (0.75 + 0.5 * fraction) if variable.nominal else size * (2.0 * fraction - 1.0)
    return float(f"{min(max(value, variable.lower), variable.upper):.6g}")


def _round(values: Array) -> list[float]:
    return [float(f"{value:.{DIGITS - 1}e}") for value in values.reshape(-1)]


def _function_vector(functions: FunctionSet, name: str, arguments: list[list[float]]) -> Vector:
    function = functions.casadi_function(name)
    symbols = functions.arguments()
    expression = casadi.vec(function(*symbols).T)
    whole = casadi.vertcat(*symbols)
    jacobian = casadi.Function(
        "jacobian", list(symbols), [casadi.densify(casadi.jacobian(expression, whole))]
    )
    flat = numpy.array([value for argument in arguments for value in argument])
    value = functions.evaluate(name, *arguments)
    slopes = numpy.abs(jacobian(*arguments).full()) @ numpy.abs(flat)
    operations = sum(make_program(function).counts.values())
    sensitivity = slopes + operations * numpy.abs(value).max(initial=0.0)
    return Vector(
        name, dict(zip(ARGUMENTS, arguments, strict=True)), _round(value), [float(s) for s in sensitivity]
    )


def _solved_step_vector(discretisation: Discretisation, point: int) -> Vector:
    """Return a vector of the step, with smaller inputs where Newton's method does not solve it with larger ones."""
    for size in INPUT_SIZES:
        vector = _step_vector(discretisation, _sequence(point), size)
        if isinstance(vector, Vector):
            return vector
    name = discretisation.functions.name
    raise ArithmeticError(
        f"functions {name!r}: no test vector of step from rest, with inputs of {INPUT_SIZES}: {vector}."
    )


def _step_vector(discretisation: Discretisation, numbers: Iterator[float], size: float) -> Vector | str:
    """Return a vector, or the status of a step that failed."""
    functions = discretisation.functions
    # States of unknown size start near rest: a bristle bent by a metre is no test of anything.
    x = _point(functions.states, numbers, NEAR_REST)
    d, p = (_point(functions.variables(a), numbers) for a in ("d", "p"))
    inputs = [_point(functions.inputs, numbers, size) for _ in range(2)]
    labels = functions.labels("u")
    start, stop = list(inputs[0]), list(inputs[1])
    for name, kind in discretisation.reconstruction:
        if kind == "hermite":
            i = labels.index(name)
            start.append(0.0)
            stop.append(float(f"{STEP * (inputs[0][i] + inputs[1][i]) / 2.0:.6g}"))
    held = [float(value) for value in d]
    without_update = _without_update(discretisation)
    simulator = CasadiSimulator(without_update)
    arguments = [numpy.array(a, dtype=float) for a in (x, held, p)]
    samples = numpy.array([start, stop])
    time = numpy.array([0.0, STEP])
    motion = simulator.rollout(time, samples, arguments[0], arguments[1], arguments[2])
    if motion.status:
        return motion.status
    names = {"x": x, "d": held, "from": start, "to": stop, "p": p, "dt": [STEP]}
    sensitivity = _step_sensitivity(simulator, time, samples, arguments, motion.states[1])
    return Vector("step", names, _round(motion.states[1]), sensitivity)


def _without_update(discretisation: Discretisation) -> Discretisation:
    functions = discretisation.functions
    kept = {name: f for name, f in functions.functions.items() if name not in ("update", "output")}
    return dataclasses.replace(discretisation, functions=dataclasses.replace(functions, functions=kept))


def _step_sensitivity(
    simulator: CasadiSimulator, time: Array, samples: Array, arguments: list[Array], state: Array
) -> list[float]:
    """Return |d state / d argument| |argument| summed, by differences of 1e-6: one digit is enough for a tolerance."""
    total = numpy.zeros_like(state)
    whole = [*arguments, samples]
    for which, array in enumerate(whole):
        for index in numpy.ndindex(array.shape):
            changed = [a.copy() for a in whole]
            shift = 1e-6 * max(abs(float(array[index])), 1e-6)
            changed[which][index] += shift
            moved = simulator.rollout(time, changed[3], *changed[:3]).states[1]
            total += numpy.abs(moved - state) / shift * abs(array[index])
    operations = sum(make_program(simulator.discretisation.kernels["substep"]).counts.values())
    return [float(v) for v in total + operations * numpy.abs(state)]
