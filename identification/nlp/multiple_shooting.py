"""The programme of multiple shooting: unknown are the parameters and the states at the beginnings of segments.

Bock, Plitt, *A multiple shooting algorithm for direct solution of optimal control problems*, IFAC Proc. 17 (1984),
1603-1608; for estimation with Gauss and Newton's Hessian: Bock, Kostina, Schloeder, *Numerical methods for parameter
estimation in nonlinear differential algebraic equations*, GAMM-Mitt. 30 (2007), 376-408.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi
import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.build import CompiledSimulator, build_simulator
from mechsmith.codegen.discretise import Discretisation, discretise
from mechsmith.codegen.functions import CasadiEvaluator, FunctionSetError, make_function
from mechsmith.codegen.simulator import CasadiSimulator, Simulator
from mechsmith.identification.nlp.motion import (
    first_motion,
    require_discretisation,
    state_box,
    state_magnitudes,
)
from mechsmith.identification.nlp.single_shooting import (
    Memory,
    cost_derivatives,
    numeric_cost,
)
from mechsmith.identification.nlp.transcription import (
    Guard,
    Numeric,
    Scale,
    Transcription,
    parameter_constraints,
    starting_scale,
    symbolic_physical,
)
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]


def multiple_shooting(
    problem: Problem,
    start: Array,
    *,
    segments: int,
    state_bounds: Mapping[str, tuple[float, float]],
    guard: Guard,
) -> Transcription:
    """Return the programme; `start` is in physical units, shape (n,).

    The first segment begins at the problem's initial state, which may be free. The curvature of the continuity
    conditions is left out of the Hessian, as that of the residuals is.

    Raises
    ------
    MethodError
        If the problem does not suit multiple shooting.
    """
    discretisation = require_discretisation(problem, "multiple shooting")
    space, n = problem.space, len(problem.names)
    scale = starting_scale(problem, start)
    vector = space.physical(scale.start)
    motions = [first_motion(problem, vector, k) for k in range(len(problem.records))]
    magnitude = state_magnitudes(problem.functions, motions)
    cutting = [_cut(len(record), segments) for record in problem.records]
    nodes = [motion[cut[1:-1]] / magnitude for motion, cut in zip(motions, cutting, strict=True)]
    shots = Shots(problem, _observed(problem, discretisation), tuple(cutting), magnitude, scale)
    lower, upper = (bound / magnitude for bound in state_box(problem.functions, state_bounds))
    count = sum(len(node) for node in nodes)
    decision = np.concatenate([scale.start * scale.columns, *(node.reshape(-1) for node in nodes)])
    low = np.concatenate([space.internal_lower * scale.columns, np.tile(lower, count)])
    high = np.concatenate([space.internal_upper * scale.columns, np.tile(upper, count)])
    w = casadi.MX.sym("w", len(decision))
    functions = numeric_cost(shots.cost, shots.gradient, shots.hessian, len(decision), guard)
    relations, least, most = parameter_constraints(problem, symbolic_physical(problem, scale, w[:n]), scale)
    continuity = _continuity(shots, len(decision), guard)
    constraints = casadi.vertcat(relations, continuity[0](w))
    derivatives = cost_derivatives(functions, w, relations, exact=False, flat=count * len(magnitude))
    none = casadi.MX.sym("none", 0)
    jacobian = casadi.vertcat(casadi.jacobian(relations, w), continuity[1](w))
    derivatives["jac_g"] = casadi.Function("nlp_jac_g", [w, none], [constraints, jacobian])
    zeros = np.zeros(count * len(magnitude))
    return Transcription(
        decision,
        low,
        high,
        w,
        functions[0](w),
        constraints,
        np.concatenate([least, zeros]),
        np.concatenate([most, zeros]),
        derivatives,
        scale,
        False,
        (*functions, *continuity),
    )


def _cut(samples: int, segments: int) -> NDArray[np.intp]:
    """Return the samples at which segments begin and the last sample, evenly spread and distinct."""
    return np.unique(np.linspace(0, samples - 1, min(segments, samples - 1) + 1).round().astype(np.intp))


def _observed(problem: Problem, discretisation: Discretisation) -> Simulator:
    """Return the simulator with the states as further outputs, so that their sensitivities come out as well."""
    functions = discretisation.functions
    symbols = functions.arguments()
    both = casadi.vertcat(functions.casadi_function("output")(*symbols), symbols[0])
    evaluators = {**functions.functions, "output": CasadiEvaluator(make_function("output", symbols, both))}
    states = tuple(dataclasses.replace(v, name=f"{v.name}_observed") for v in functions.states)
    extended = dataclasses.replace(
        functions,
        name=f"{functions.name}_observed",
        outputs=(*functions.outputs, *states),
        functions=evaluators,
    )
    kernels = discretise(
        extended,
        discretisation.integrator,
        reconstruction=dict(discretisation.reconstruction),
        split=discretisation.crossing != "none",
    )
    if isinstance(problem.system, CompiledSimulator):
        return build_simulator(kernels, cache=problem.system.library.parent)
    return CasadiSimulator(kernels)


def _continuity(shots: "Shots", size: int, guard: Guard) -> tuple[Numeric, Numeric]:
    rows = shots.pattern.shape[0]
    if not rows:
        empty = casadi.Sparsity(0, 1), casadi.Sparsity(0, size)
        return (
            Numeric("continuity", lambda w: np.zeros(0), size, empty[0], guard),
            Numeric("continuity_jacobian", lambda w: np.zeros((0, size)), size, empty[1], guard),
        )
    row, column = np.nonzero(shots.pattern)
    sparsity = casadi.Sparsity.triplet(rows, size, row.tolist(), column.tolist())
    return (
        Numeric("continuity", shots.gaps, size, casadi.Sparsity.dense(rows, 1), guard),
        Numeric("continuity_jacobian", shots.gaps_jacobian, size, sparsity, guard),
    )


@dataclass(frozen=True, eq=False)
class Shots:
    """Residuals and gaps of all segments with their derivatives.

    The decision vector is the scaled internal free vector, then for each record the states at the beginnings of its segments
    but the first, over their magnitudes.

    Parameters
    ----------
    problem : Problem
        With `OutputError`.
    observed : Simulator
        The problem's, with the states as further outputs.
    cuts : tuple of array
        For each record the samples at which segments begin, and the last.
    magnitude : array
        Of the states, (nx,).
    scale : Scale
        Of residuals and of the free vector.
    """

    problem: Problem
    observed: Simulator
    cuts: tuple[NDArray[np.intp], ...]
    magnitude: Array
    scale: Scale

    @cached_property
    def _samples(self) -> list[Array]:
        names = self.observed.samples
        return [
            np.column_stack([record[name] for name in names]) if names else np.zeros((len(record), 0))
            for record in self.problem.records
        ]

    @cached_property
    def _first_node(self) -> list[int]:
        """Place in the decision vector of the first node of each record, and of the end."""
        sizes = [(len(cut) - 2) * len(self.magnitude) for cut in self.cuts]
        return [len(self.problem.names) + total for total in np.cumsum([0, *sizes]).tolist()]

    @cached_property
    def pattern(self) -> NDArray[np.bool_]:
        """Which elements of the Jacobian of the gaps may differ from 0, (gaps, w)."""
        nx, n = len(self.magnitude), len(self.problem.names)
        size = self._first_node[-1]
        pattern = np.zeros((size - n, size), dtype=bool)
        pattern[:, :n] = True
        row = 0
        for cut, first in zip(self.cuts, self._first_node, strict=False):
            for s in range(len(cut) - 2):
                rows = slice(row, row + nx)
                if s > 0:
                    pattern[rows, first + (s - 1) * nx : first + s * nx] = True
                pattern[np.arange(row, row + nx), first + s * nx + np.arange(nx)] = True
                row += nx
        return pattern

    @cached_property
    def _values(self) -> Memory:
        """Residuals, then gaps."""
        return Memory(lambda w: self._evaluate(w, derivatives=False)[0])

    @cached_property
    def _rows(self) -> Memory:
        """The Jacobian of `_values`, (m + gaps, w)."""
        return Memory(lambda w: self._evaluate(w, derivatives=True)[1])

    @property
    def _gap_count(self) -> int:
        return self._first_node[-1] - len(self.problem.names)

    def cost(self, w: Array) -> Array:
        """Return half the squared norm of the residuals."""
        residual = self._residual(w)
        return np.array([0.5 * float(residual @ residual)])

    def gradient(self, w: Array) -> Array:
        """Return the gradient of the cost, (w,)."""
        return np.asarray(self._residual_rows(w).T @ self._residual(w))

    def hessian(self, w: Array) -> Array:
        """Return Gauss and Newton's Hessian of the cost, (w, w)."""
        rows = self._residual_rows(w)
        return np.asarray(rows.T @ rows)

    def gaps(self, w: Array) -> Array:
        """Return by how much each segment misses the next, over the states' magnitudes."""
        values = self._values(w)
        return values[len(values) - self._gap_count :]

    def gaps_jacobian(self, w: Array) -> Array:
        """Return the Jacobian of the gaps, (gaps, w)."""
        rows = self._rows(w)
        return rows[len(rows) - self._gap_count :]

    def _residual(self, w: Array) -> Array:
        values = self._values(w)
        return values[: len(values) - self._gap_count]

    def _residual_rows(self, w: Array) -> Array:
        rows = self._rows(w)
        return rows[: len(rows) - self._gap_count]

    def _evaluate(self, w: Array, *, derivatives: bool) -> tuple[Array, Array]:
        problem, n = self.problem, len(self.problem.names)
        vector = problem.space.physical(w[:n] / self.scale.columns)
        residuals, gaps, residual_rows, gap_rows = [], [], [], []
        for k in range(len(problem.records)):
            outputs, ends, by, ends_by = self._record(w, vector, k, derivatives=derivatives)
            noise = problem.comparison.noise * self.scale.residual
            compared = (problem.decimated(outputs) - problem.measurements[k]) / noise
            residuals.append(compared.reshape(-1))
            gaps.append(ends)
            if derivatives:
                flat = problem.decimated(by.reshape(len(by), -1)).reshape(-1, len(noise), len(w))
                residual_rows.append((flat / noise[:, None]).reshape(-1, len(w)))
                gap_rows.append(ends_by)
        places, mean, deviation = problem.prior_rows
        residuals.append((vector[places] - mean) / (deviation * self.scale.residual))
        values = np.concatenate([*residuals, *gaps])
        if not derivatives:
            return values, np.zeros((0, len(w)))
        prior_rows = np.zeros((len(places), len(w)))
        prior_rows[np.arange(len(places)), places] = 1.0 / (deviation * self.scale.residual)
        rows = np.vstack([*residual_rows, prior_rows, *gap_rows])
        rows[:, :n] *= problem.space.slopes(w[:n] / self.scale.columns) / self.scale.columns
        return values, rows

    def _record(
        self, w: Array, vector: Array, k: int, *, derivatives: bool
    ) -> tuple[Array, Array, Array, Array]:
        """Return outputs (samples, outputs), gaps, and both by (physical free vector, nodes)."""
        cut, nx, first = self.cuts[k], len(self.magnitude), self._first_node[k]
        arguments = self.problem.arguments(vector, k)
        chosen, ny = self.problem.comparison.rows, self.problem.functions.size("y")
        samples, width = len(self.problem.records[k]), len(w) if derivatives else 0
        outputs, by = np.empty((samples, len(chosen))), np.zeros((samples, len(chosen), width))
        gaps, gaps_by = [], []
        for s in range(len(cut) - 1):
            place = first + (s - 1) * nx
            x0 = arguments.x0 if s == 0 else w[place : place + nx] * self.magnitude
            span = slice(cut[s], cut[s + 1] + 1)
            found, by_p, by_x0 = self._segment(k, span, x0, arguments.p, derivatives=derivatives)
            outputs[span] = found[:, chosen]
            every = np.zeros((len(found), ny + nx, width))
            if derivatives:
                self._place(every, by_p, by_x0, k, place if s else None)
                by[span] = every[:, chosen]
            if s < len(cut) - 2:
                following = slice(place + nx, place + 2 * nx)
                gaps.append(found[-1, ny:] / self.magnitude - w[following])
                if derivatives:
                    rows = every[-1, ny:] / self.magnitude[:, None]
                    rows[:, following] -= np.eye(nx)
                    gaps_by.append(rows)
        flat = np.concatenate(gaps) if gaps else np.zeros(0)
        return outputs, flat, by, np.vstack(gaps_by) if gaps_by else np.zeros((0, width))

    def _segment(
        self, k: int, span: slice, x0: Array, p: Array, *, derivatives: bool
    ) -> tuple[Array, Array, Array]:
        time, samples = self.problem.records[k].time[span], self._samples[k][span]
        none = np.zeros(0)
        try:
            if derivatives:
                found = self.observed.rollout_sensitivities(time, samples, x0, none, p)
                return found.outputs, found.by_parameters, found.by_initial_state
            return self.observed.rollout(time, samples, x0, none, p).outputs, none, none
        except FunctionSetError:
            # an integrator refuses these parameters: NaN makes IPOPT shorten its step
            count = self.observed.functions.size("y")
            failed = np.full((len(time), count), np.nan)
            return failed, np.full((*failed.shape, len(p)), np.nan), np.full((*failed.shape, len(x0)), np.nan)

    def _place(self, every: Array, by_p: Array, by_x0: Array, k: int, node: int | None) -> None:
        """Put derivatives of one segment into their columns."""
        for j, slot in enumerate(self.problem.slots):
            if slot.record not in (None, k):
                continue
            if slot.kind == "parameter":
                every[:, :, j] = by_p[:, :, slot.index]
            elif slot.kind == "state" and node is None:
                every[:, :, j] = by_x0[:, :, slot.index]
        if node is not None:
            every[:, :, node : node + len(self.magnitude)] = by_x0 * self.magnitude
