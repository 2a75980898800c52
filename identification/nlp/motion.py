"""What multiple shooting and collocation need to know of a problem's simulator: kernels, states, and where they may be."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.discretise import Discretisation
from mechsmith.codegen.functions import FunctionSet, FunctionSetError
from mechsmith.identification.method import MethodError
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Placement:
    """An affine map from the free vector to p or to x0 of one record: value = base + matrix @ vector.

    Parameters
    ----------
    base : array
        Shape (size,).
    matrix : array
        Shape (size, n), of zeros and ones.
    """

    base: Array
    matrix: Array


def placement(problem: Problem, record: int, kind: str) -> Placement:
    """Return where the free vector goes in p (``parameter``) or x0 (``state``) of a record."""
    arguments = problem.arguments(np.zeros(len(problem.names)), record)
    base = arguments.p if kind == "parameter" else arguments.x0
    matrix = np.zeros((len(base), len(problem.names)))
    for j, slot in enumerate(problem.slots):
        if slot.kind == kind and slot.record in (None, record):
            matrix[slot.index, j] = 1.0
    return Placement(base, matrix)


def require_discretisation(problem: Problem, who: str) -> Discretisation:
    """Return the kernels of the problem's simulator.

    Raises
    ------
    MethodError
        If there are none, or the problem has what neither formulation treats; it says what to use.
    """
    advice = "Use formulation='single_shooting'."
    found = (
        None if isinstance(problem.system, FunctionSet) else getattr(problem.system, "discretisation", None)
    )
    if not problem.residual.simulates or not isinstance(found, Discretisation):
        raise MethodError(
            f"Ipopt: {who} needs OutputError and a simulator of mechsmith.codegen, whose kernels are at hand. {advice}"
        )
    if not found.functions.states:
        raise MethodError(
            f"Ipopt: {who} is for continuous states; {found.functions.name!r} has none. {advice}"
        )
    if found.functions.discrete_states:
        names = ", ".join(found.functions.labels("d"))
        raise MethodError(f"Ipopt: {who} does not treat discrete states ({names}). {advice}")
    if problem.delayed:
        raise MethodError(f"Ipopt: {who} does not treat dead time ({', '.join(problem.delayed)}). {advice}")
    return found


def state_box(functions: FunctionSet, bounds: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """Return lower and upper bounds of the states, each (nx,), in their units; infinite where none are given."""
    labels = functions.labels("x")
    for name in bounds:
        if name not in labels:
            raise MethodError(f"Ipopt: state_bounds names {name!r}; states are {', '.join(labels)}.")
    pairs = np.array([bounds.get(name, (-np.inf, np.inf)) for name in labels], dtype=float)
    return pairs[:, 0], pairs[:, 1]


def first_motion(problem: Problem, vector: Array, record: int) -> Array:
    """Return states at the sample times to start from, (n, nx): measured where the record has a column, else simulated.

    Where the simulation fails, its last finite values go on.
    """
    functions, data = problem.functions, problem.records[record]
    arguments = problem.arguments(vector, record)
    system = problem.system
    states = np.tile(arguments.x0, (len(data), 1))
    if not isinstance(system, FunctionSet):
        samples = np.column_stack([data[name] for name in system.samples]) if system.samples else None
        inputs = np.zeros((len(data), 0)) if samples is None else samples
        try:
            found = system.rollout(data.time, inputs, arguments.x0, arguments.d0, arguments.p).states
            good = int(np.isfinite(found).all(axis=1).sum())
            states[:good] = found[:good]
            states[good:] = found[good - 1] if good else arguments.x0
        except FunctionSetError:
            # an integrator refuses these parameters; the initial state is the only one known
            pass
    for i, label in enumerate(functions.labels("x")):
        if label in data:
            states[1:, i] = data[label][1:]
    return states


def state_magnitudes(functions: FunctionSet, motions: list[Array]) -> Array:
    """Return typical magnitudes of the states, (nx,): the largest in motions, else the nominal value, else 1."""
    largest = np.max([np.abs(motion).max(axis=0) for motion in motions], axis=0)
    nominal = np.concatenate([[abs(v.nominal or 0.0)] * v.size for v in functions.states])
    return np.where(largest > 0.0, largest, np.where(nominal > 0.0, nominal, 1.0))
