"""The programme of direct collocation: unknown are the parameters and the states at every stage of every substep.

Stages are those of Radau IIA of order 5 (Hairer, Wanner, *Solving Ordinary Differential Equations II*, table IV.5.6),
steps are split where inputs cross zero as in a simulation, so the optimum is that of the simulation. All is CasADi's,
with exact derivatives of both orders; what differs between formulations is the way there. Biegler, *Nonlinear
Programming*, SIAM (2010), chapter 10.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi
import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen import discretise as rules
from mechsmith.codegen import integrators
from mechsmith.codegen.discretise import Discretisation
from mechsmith.identification.method import MethodError
from mechsmith.identification.nlp.motion import (
    first_motion,
    placement,
    require_discretisation,
    state_box,
    state_magnitudes,
)
from mechsmith.identification.nlp.transcription import (
    Transcription,
    parameter_constraints,
    starting_scale,
    symbolic_physical,
)
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]
STAGES = len(integrators.RADAU_NODES)


@dataclass(frozen=True, eq=False)
class Mesh:
    """The substeps of a record, e of them.

    Parameters
    ----------
    length : array
        In s, shape (e,).
    inputs : array
        At the stages, one below another, shape (stages * inputs, e).
    ends : array of int
        The last substep of each sample interval, shape (samples - 1,).
    fraction : array
        Of its sample interval, of each stage, shape (stages, e).
    """

    length: Array
    inputs: Array
    ends: NDArray[np.intp]
    fraction: Array


def collocation(
    problem: Problem, start: Array, *, gauss_newton: bool, state_bounds: Mapping[str, tuple[float, float]]
) -> Transcription:
    """Return the programme; `start` is in physical units, shape (n,).

    Raises
    ------
    MethodError
        If the problem does not suit collocation: it is decimated, or its crossings depend on states.
    """
    discretisation = _require(problem)
    space, n = problem.space, len(problem.names)
    scale = starting_scale(problem, start)
    vector = space.physical(scale.start)
    motions = [first_motion(problem, vector, k) for k in range(len(problem.records))]
    meshes = [_mesh(problem, discretisation, vector, k) for k in range(len(problem.records))]
    magnitude = state_magnitudes(problem.functions, motions)
    stages = [_first_stages(motion, mesh) / magnitude for motion, mesh in zip(motions, meshes, strict=True)]
    decision = np.concatenate([scale.start * scale.columns, *(each.reshape(-1) for each in stages)])
    count = sum(each.shape[0] for each in stages)
    w = casadi.MX.sym("w", len(decision))
    physical = symbolic_physical(problem, scale, w[:n])
    residuals, defects, first = [], [], n
    for k, mesh in enumerate(meshes):
        states = casadi.reshape(w[first : first + stages[k].size], STAGES * len(magnitude), len(mesh.length))
        first += stages[k].size
        compared, missing = _record(problem, discretisation, physical, states, mesh, magnitude, k)
        residuals.append(compared / scale.residual)
        defects.append(missing)
    places, mean, deviation = problem.prior_rows
    residuals += [
        (physical[int(i)] - m) / (s * scale.residual) for i, m, s in zip(places, mean, deviation, strict=True)
    ]
    residual = casadi.vertcat(*residuals)
    relations, least, most = parameter_constraints(problem, physical, scale)
    constraints = casadi.vertcat(relations, *defects)
    zeros = np.zeros(constraints.numel() - len(least))
    lower, upper = (bound / magnitude for bound in state_box(problem.functions, state_bounds))
    return Transcription(
        decision,
        np.concatenate([space.internal_lower * scale.columns, np.tile(lower, count)]),
        np.concatenate([space.internal_upper * scale.columns, np.tile(upper, count)]),
        w,
        0.5 * casadi.sumsqr(residual),
        constraints,
        np.concatenate([least, zeros]),
        np.concatenate([most, zeros]),
        _gauss_newton(w, residual, constraints) if gauss_newton else {},
        scale,
        False,
    )


def _require(problem: Problem) -> Discretisation:
    discretisation = require_discretisation(problem, "collocation")
    if problem.residual.decimation is not None:
        raise MethodError(
            "Ipopt: collocation does not treat decimation. Use formulation='single_shooting' or 'multiple_shooting'."
        )
    if discretisation.crossing == "state":
        raise MethodError(
            f"Ipopt: the crossings of {discretisation.functions.name!r} depend on states, so that the mesh of collocation would "
            "move. Use formulation='single_shooting', or discretise(..., split=False) where the equations are smooth."
        )
    return discretisation


def _mesh(problem: Problem, discretisation: Discretisation, vector: Array, k: int) -> Mesh:
    """Return the mesh of a record; crossings that depend on parameters are taken at a free vector."""
    record = problem.records[k]
    names = discretisation.sample_labels
    samples = np.array([record[name] for name in names]).reshape(len(names), len(record))
    intervals = len(record) - 1
    spacing = np.diff(record.time)
    reconstruct = discretisation.kernels["reconstruct"].map(intervals)

    def inputs(share: float) -> Array:
        return np.asarray(reconstruct(samples[:, :-1], samples[:, 1:], spacing[None, :], share).full())

    least = discretisation.integrator.substeps
    pieces = [[(0.0, 1.0, least)]] * intervals
    if discretisation.crossing == "input":
        p = problem.arguments(vector, k).p
        states = np.zeros(problem.functions.size("x"))
        crossing = discretisation.functions.batch
        w = [crossing("crossing", x=states, u=inputs(s).T, p=p)[:, :, 0] for s in (0.0, 0.5, 1.0)]
        pieces = [rules.cuts(a, b, c, least) for a, b, c in zip(*w, strict=True)]
    places, widths, owners = [], [], []
    for i, own in enumerate(pieces):
        for left, right, number in own:
            size = (right - left) / number
            places += [left + j * size for j in range(number)]
            widths += [size] * number
            owners += [i] * number
    owner, width = np.array(owners), np.array(widths)
    nodes = np.array(integrators.RADAU_NODES)
    fraction = np.array(places)[None, :] + nodes[:, None] * width[None, :]
    every = discretisation.kernels["reconstruct"].map(len(owner))
    before, after, length = samples[:, owner], samples[:, owner + 1], spacing[owner]
    stacked = [np.asarray(every(before, after, length[None, :], row[None, :]).full()) for row in fraction]
    ends = np.searchsorted(owner, np.arange(intervals), side="right") - 1
    return Mesh(length * width, np.vstack(stacked), ends, fraction)


def _first_stages(motion: Array, mesh: Mesh) -> Array:
    """Return states at the stages to start from, (e * stages, nx): on straight lines between the samples."""
    owner = np.repeat(np.arange(len(mesh.ends)), np.diff(np.concatenate([[-1], mesh.ends])))
    share = mesh.fraction.T[:, :, None]
    line = motion[owner][:, None, :] * (1.0 - share) + motion[owner + 1][:, None, :] * share
    return np.asarray(line.reshape(-1, motion.shape[1]))


def _record(
    problem: Problem,
    discretisation: Discretisation,
    physical: casadi.MX,
    states: casadi.MX,
    mesh: Mesh,
    magnitude: Array,
    k: int,
) -> tuple[casadi.MX, casadi.MX]:
    """Return the residuals of a record and the defects of its stage equations, over the states' magnitudes."""
    nx, count = len(magnitude), len(mesh.length)
    to_p, to_x0 = placement(problem, k, "parameter"), placement(problem, k, "state")
    p = to_p.base + casadi.mtimes(casadi.sparsify(casadi.DM(to_p.matrix)), physical)
    x0 = (to_x0.base + casadi.mtimes(casadi.sparsify(casadi.DM(to_x0.matrix)), physical)) / magnitude
    last = states[(STAGES - 1) * nx :, :]
    begin = casadi.horzcat(x0, last[:, : count - 1])
    equations = _stage_equations(discretisation, magnitude).map(count)
    defects = equations(begin, states, mesh.inputs, casadi.repmat(p, 1, count), mesh.length[None, :])
    at_samples = casadi.horzcat(x0, last[:, [int(end) for end in mesh.ends]])
    functions, record = discretisation.functions, problem.records[k]
    rows = problem.comparison.rows
    inputs = np.array([record[name] for name in functions.labels("u")]).reshape(-1, len(record))
    output = _outputs(discretisation, magnitude, rows).map(len(record))
    predicted = output(at_samples, inputs, casadi.repmat(p, 1, len(record)))
    noise = np.tile(problem.comparison.noise[:, None], (1, len(record)))
    return casadi.vec((predicted - problem.measurements[k].T) / noise), casadi.vec(defects)


def _stage_equations(discretisation: Discretisation, magnitude: Array) -> casadi.Function:
    """Return X_i - x - h sum_j a_ij f(X_j, u_j), over the magnitudes, as a function of (x, X, v, p, h)."""
    functions = discretisation.functions
    nx, nu = functions.size("x"), functions.size("u")
    sym = casadi.SX.sym
    x, stages, v = sym("x", nx), sym("X", STAGES * nx), sym("v", STAGES * nu)
    p, h = sym("p", functions.size("p")), sym("h")
    derivative = functions.casadi_function("derivative")
    slopes = []
    for j in range(STAGES):
        state, inputs = stages[j * nx : (j + 1) * nx] * magnitude, v[j * nu : (j + 1) * nu]
        value = derivative(state, [], [], inputs, p)
        if "mass" in functions.functions:
            value = casadi.solve(functions.casadi_function("mass")(state, [], [], inputs, p), value)
        slopes.append(value / magnitude)
    rows = []
    for i, row in enumerate(integrators.RADAU_MATRIX):
        change = sum((a * slope for a, slope in zip(row, slopes, strict=True)), casadi.SX.zeros(nx))
        rows.append(stages[i * nx : (i + 1) * nx] - x - h * change)
    equations = casadi.cse(casadi.vertcat(*rows))
    return casadi.Function("stage_equations", [x, stages, v, p, h], [casadi.densify(equations)])


def _outputs(discretisation: Discretisation, magnitude: Array, rows: NDArray[np.intp]) -> casadi.Function:
    """Return the compared outputs as a function of (x over magnitude, u, p)."""
    functions = discretisation.functions
    x, _, _, u, p = functions.arguments()
    value = functions.casadi_function("output")(x * magnitude, [], [], u, p)[[int(row) for row in rows]]
    return casadi.Function("compared", [x, u, p], [casadi.densify(value)])


def _gauss_newton(w: casadi.MX, residual: casadi.MX, constraints: casadi.MX) -> dict[str, casadi.Function]:
    """Return the Hessian without the curvature of residuals and constraints."""
    none, factor = casadi.MX.sym("none", 0), casadi.MX.sym("factor")
    multipliers = casadi.MX.sym("multipliers", constraints.numel())
    rows = casadi.jacobian(residual, w)
    hessian = casadi.triu(factor * casadi.mtimes(rows.T, rows))
    return {"hess_lag": casadi.Function("nlp_hess_l", [w, none, factor, multipliers], [hessian])}
