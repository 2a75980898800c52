"""All substeps of a motion at once, where they depend on the inputs alone: one call of CasADi's machine.

The substeps and their numbers are those of the routine in `mechsmith.codegen.simulator`, which goes from sample
to sample; this is how a motion without discrete states and without crossings of states is run fast.
"""

from dataclasses import dataclass

import casadi
import numpy
from numpy.typing import NDArray

from mechsmith.codegen import discretise as rules
from mechsmith.codegen.discretise import Discretisation
from mechsmith.codegen.functions import Array


@dataclass(frozen=True)
class Mesh:
    """The substeps of a motion.

    Parameters
    ----------
    lengths : array (m,)
        In s.
    nodes : array (m, number of nodes times inputs)
        Inputs at the integrator's nodes.
    ends : array (n - 1,)
        For each sample interval its last substep.
    """

    lengths: Array
    nodes: Array
    ends: NDArray[numpy.intp]


@dataclass(frozen=True)
class MeshMotion:
    """States (n, nx), their derivatives by parameters and initial state (n, nx, np + nx), and the samples that failed."""

    states: Array
    derivatives: Array
    not_finite: NDArray[numpy.bool_]
    not_solved: NDArray[numpy.bool_]
    not_definite: NDArray[numpy.bool_]


def has_mesh(discretisation: Discretisation) -> bool:
    """Tell whether the substeps depend on the inputs alone."""
    functions = discretisation.functions
    return bool(functions.states) and not functions.discrete_states and discretisation.crossing != "state"


def make_mesh(discretisation: Discretisation, time: Array, samples: Array, p: Array) -> Mesh:
    """Return the substeps of a motion; samples is (n, number of sample columns)."""
    lengths = numpy.diff(time)
    pieces = _pieces(discretisation, samples, lengths, p)
    counts = numpy.array([sum(count for _, _, count in row) for row in pieces])
    interval = numpy.repeat(numpy.arange(len(lengths)), counts)
    left, width = numpy.empty(len(interval)), numpy.empty(len(interval))
    place = 0
    for row in pieces:
        for start, stop, count in row:
            size = (stop - start) / count
            left[place : place + count] = start + numpy.arange(count) * size
            width[place : place + count] = size
            place += count
    nodes = [
        _inputs(discretisation, samples, lengths, interval, left + node * width)
        for node in discretisation.integrator.nodes
    ]
    return Mesh(lengths[interval] * width, numpy.hstack(nodes), numpy.cumsum(counts) - 1)


def _inputs(
    discretisation: Discretisation,
    samples: Array,
    lengths: Array,
    interval: NDArray[numpy.intp],
    fraction: Array,
) -> Array:
    kernel = discretisation.kernels["reconstruct"].map(len(interval))
    return numpy.asarray(
        kernel(samples[interval].T, samples[interval + 1].T, lengths[interval][None, :], fraction[None, :])
        .full()
        .T
    )


def _pieces(
    discretisation: Discretisation, samples: Array, lengths: Array, p: Array
) -> list[list[tuple[float, float, int]]]:
    least = discretisation.integrator.substeps
    whole = [(0.0, 1.0, least)]
    if discretisation.crossing == "none":
        return [whole] * len(lengths)
    functions = discretisation.functions
    every = numpy.arange(len(lengths))
    rest = numpy.zeros(functions.size("x"))
    start, middle, stop = (
        functions.batch(
            "crossing",
            rest,
            [],
            [],
            _inputs(discretisation, samples, lengths, every, numpy.full(len(lengths), s)),
            p,
        )[:, :, 0]
        for s in (0.0, 0.5, 1.0)
    )
    low, high = numpy.minimum(abs(start), abs(stop)), numpy.maximum(abs(start), abs(stop))
    one_sign = (start * stop > 0.0) & (low > 0.25 * abs(2.0 * (start + stop - 2.0 * middle)))
    at_rest = (start == 0.0) & (middle == 0.0) & (stop == 0.0)
    # Half the allowed change: the ends as computed in `cuts` differ from these by rounding.
    plain = (at_rest | (one_sign & (high - low <= 0.5 * rules.GRADING * low))).all(axis=1)
    return [
        whole if plain[k] else rules.cuts(start[k], middle[k], stop[k], least) for k in range(len(lengths))
    ]


def run_mesh(
    discretisation: Discretisation, mesh: Mesh, x0: Array, p: Array, *, sensitivities: bool
) -> MeshMotion:
    """Return the states at the samples, the first of which is x0."""
    step, begin = _accumulated(discretisation, x0, p, sensitivities=sensitivities)
    count = len(mesh.lengths)
    constant = numpy.broadcast_to(p[:, None], (len(p), count))
    states, residuals = step.mapaccum("motion", count)(begin, mesh.nodes.T, mesh.lengths[None, :], constant)
    whole = numpy.vstack([begin, states.full().T[mesh.ends]])
    first = numpy.concatenate([[0], mesh.ends[:-1] + 1])
    known = numpy.nan_to_num(residuals.full()[0], nan=numpy.inf)
    largest, smallest = (bound.reduceat(known, first) for bound in (numpy.maximum, numpy.minimum))
    nx = len(x0)
    # The derivatives are stacked column by column behind the state.
    derivatives = whole[:, nx:].reshape(len(whole), -1, nx).transpose(0, 2, 1)
    return MeshMotion(
        states=whole[:, :nx],
        derivatives=derivatives,
        not_finite=~numpy.isfinite(whole[:, :nx]).all(axis=1),
        not_solved=numpy.concatenate([[False], largest > rules.NEWTON_TOLERANCE]),
        not_definite=numpy.concatenate([[False], smallest < 0.0]),
    )


def _accumulated(
    discretisation: Discretisation, x0: Array, p: Array, *, sensitivities: bool
) -> tuple[casadi.Function, Array]:
    """Return the substep as a function of (accumulated state, v, h, p), and where it begins."""
    nx, n_p = len(x0), len(p)
    x, theta = casadi.SX.sym("x", nx), casadi.SX.sym("theta", nx, n_p + nx)
    v, h, parameters = (
        casadi.SX.sym("v", discretisation.kernels["substep"].numel_in("v")),
        casadi.SX.sym("h"),
        casadi.SX.sym("p", n_p),
    )
    if not sensitivities:
        state, residual = discretisation.kernels["substep"](x, [], v, parameters, h)
        return casadi.Function("step", [x, v, h, parameters], [state, residual]), x0
    state, residual, by_x, _, by_p = discretisation.kernels["substep_sensitivity"](x, [], v, parameters, h)
    moved = by_x @ theta + casadi.horzcat(by_p, casadi.SX.zeros(nx, nx))
    begin = numpy.concatenate(
        [x0, numpy.hstack([numpy.zeros((nx, n_p)), numpy.eye(nx)]).reshape(-1, order="F")]
    )
    stacked = casadi.vertcat(x, casadi.vec(theta))
    return casadi.Function(
        "step",
        [stacked, v, h, parameters],
        [casadi.densify(casadi.vertcat(state, casadi.vec(moved))), residual],
    ), begin
