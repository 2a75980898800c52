"""Nonlinear programmes for IPOPT: what an identification problem becomes, and how IPOPT is run on it.

The decision vector begins with the internal free vector of the problem (`Problem.space`), each element times the norm
of its column of the Jacobian at the start; a transcription may add states. The cost is half the squared norm of the
residual over its norm at the start. So the gradient is a cosine times the residual, and tolerances mean the same for
every parameter, however weakly the data determine it.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import casadi
import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.method import MethodError, Progress, Solution
from mechsmith.identification.norms import norm
from mechsmith.identification.problem import Problem
from mechsmith.identification.scaling import Identity, Log

Array = NDArray[np.float64]
# How many times the tolerance still passes where rounding keeps IPOPT from the tolerance itself.
ACCEPTABLE = 100.0
# Of the largest column of the Jacobian: parameters with less effect at the start are scaled as if they had this much.
LEAST_COLUMN = 1e-6
# What IPOPT's arithmetic allows a tolerance to be, and what still makes sense.
TOLERANCES = (1e-14, 1e-4)
# Largest violation of continuity and stage equations, relative to the states' magnitudes.
FEASIBILITY = 1e-10
# Share of the box by which IPOPT moves a start off the bounds; starts are off by this much already (`scaling.MARGIN`).
PUSH = 1e-3


@dataclass
class Guard:
    """What happened inside callbacks, through which CasADi lets no exception pass."""

    interrupted: bool = False
    error: Exception | None = None
    lines: list[Progress] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Scale:
    """By what residuals and unknowns are divided.

    Parameters
    ----------
    start : array
        The internal free vector that is begun with, shape (n,).
    residual : float
        The residual's norm there, or the measurement's where that is zero.
    measurement : float
        The norm of the measurement over noise, relative to `residual`.
    columns : array
        Norms of the columns of the internal Jacobian there over `residual`, shape (n,).
    """

    start: Array
    residual: float
    measurement: float
    columns: Array


def starting_scale(problem: Problem, start: Array) -> Scale:
    """Return the scale at a start in physical units, which is moved off its bounds."""
    space = problem.space
    begin = space.inside(space.internal(start))
    vector = space.physical(begin)
    measured = [(m / problem.comparison.noise).reshape(-1) for m in problem.measurements]
    size = norm(np.concatenate(measured))
    residual = norm(problem.residual_vector(vector))
    if not (np.isfinite(residual) and residual > 0.0):
        residual = size or 1.0
    rows = problem.jacobian(vector) / residual * space.slopes(begin)
    columns = np.array([norm(column) for column in rows.T])
    if not np.isfinite(columns).all() or not columns.any():
        columns = np.ones(len(begin))
    return Scale(begin, residual, size / residual, np.maximum(columns, LEAST_COLUMN * columns.max()))


@dataclass(frozen=True, eq=False)
class Transcription:
    """A nonlinear programme.

    Parameters
    ----------
    start, lower, upper : array
        Of the decision vector, shape (w,).
    symbols, cost, constraints : MX
        Decision vector, cost and constraints (c,).
    constraint_lower, constraint_upper : array
        Shape (c,).
    derivatives : mapping of str to Function
        In place of CasADi's own: options ``grad_f``, ``jac_g``, ``hess_lag`` of `casadi.nlpsol`.
    scale : Scale
        Of cost and unknowns.
    feasible : bool
        Whether every iterate is a motion of the model, so that costs may be compared along the way.
    kept : tuple of Numeric
        Callbacks, which CasADi uses but does not keep alive.
    """

    start: Array
    lower: Array
    upper: Array
    symbols: casadi.MX
    cost: casadi.MX
    constraints: casadi.MX
    constraint_lower: Array
    constraint_upper: Array
    derivatives: Mapping[str, casadi.Function]
    scale: Scale
    feasible: bool
    kept: "tuple[Numeric, ...]" = ()


class Numeric(casadi.Callback):
    """A CasADi function of one vector that is computed in numpy; it must be kept alive as long as it is used."""

    def __init__(
        self,
        name: str,
        compute: Callable[[Array], Array],
        size: int,
        sparsity: casadi.Sparsity,
        guard: Guard,
    ) -> None:
        casadi.Callback.__init__(self)
        self.compute, self.size, self.sparsity, self.guard = compute, size, sparsity, guard
        self.construct(name, {})

    def get_n_in(self) -> int:
        """Return 1."""
        return 1

    def get_n_out(self) -> int:
        """Return 1."""
        return 1

    def get_sparsity_in(self, i: int) -> casadi.Sparsity:
        """Return a dense vector."""
        return casadi.Sparsity.dense(self.size, 1)

    def get_sparsity_out(self, i: int) -> casadi.Sparsity:
        """Return the pattern of the result."""
        return self.sparsity

    def eval(self, arguments: Sequence[casadi.DM]) -> list[casadi.DM]:
        """Compute; the nonzeros of the pattern are taken from the dense result."""
        point = np.asarray(arguments[0].full(), dtype=float)[:, 0]
        try:
            value = self._compute(point)
        except Exception as error:
            self.guard.error = error
            value = np.full(self.sparsity.shape, np.nan)
        dense = np.asarray(value, dtype=float).reshape(self.sparsity.shape)
        rows, columns = self.sparsity.get_triplet()
        return [casadi.DM(self.sparsity, dense[rows, columns])]

    def _compute(self, point: Array) -> Array:
        try:
            return self.compute(point)
        except KeyboardInterrupt:
            # the iteration is finished with true values, so that IPOPT stops in good order at its end
            self.guard.interrupted = True
            return self.compute(point)


class _Monitor(casadi.Callback):
    """Called by IPOPT at every iteration: keeps the history, reports, and stops after an interrupt."""

    def __init__(
        self, programme: Transcription, guard: Guard, report: Callable[[Progress], None] | None
    ) -> None:
        casadi.Callback.__init__(self)
        self.sizes = (len(programme.start), len(programme.constraint_lower))
        self.scale, self.feasible = programme.scale.residual, programme.feasible
        self.guard, self.report = guard, report
        self.construct("monitor", {})

    def get_n_in(self) -> int:
        """Return the number of outputs of a solver."""
        return int(casadi.nlpsol_n_out())

    def get_n_out(self) -> int:
        """Return 1: whether to stop."""
        return 1

    def get_sparsity_in(self, i: int) -> casadi.Sparsity:
        """Return the shape of an output of the solver."""
        w, c = self.sizes
        rows = {"x": w, "f": 1, "g": c, "lam_x": w, "lam_g": c}.get(casadi.nlpsol_out(i), 0)
        return casadi.Sparsity.dense(rows, 1)

    def eval(self, arguments: Sequence[casadi.DM]) -> list[int]:
        """Write down an iteration; return 1 to stop."""
        guard = self.guard
        try:
            value = float(np.sqrt(2.0 * max(float(arguments[1]), 0.0))) * self.scale
            if self.feasible and guard.lines:
                value = min(value, guard.lines[-1].norm)
            guard.lines.append(Progress(0, len(guard.lines), value))
            if self.report is not None:
                self.report(guard.lines[-1])
        except KeyboardInterrupt:
            guard.interrupted = True
        except Exception as error:
            guard.error = error
        return [int(guard.interrupted or guard.error is not None)]


def run(
    programme: Transcription,
    problem: Problem,
    guard: Guard,
    *,
    max_iterations: int,
    tolerance: float,
    limited_memory: bool,
    print_level: int,
    report: Callable[[Progress], None] | None,
) -> Solution:
    """Run IPOPT and return what it found, with its own word for why it ended.

    An exception raised by the problem or by `report` is raised again once IPOPT has ended; an interrupt ends it with what
    it has (``User_Requested_Stop``).
    """
    monitor = _Monitor(programme, guard, report)
    # the tolerance is relative to the measurement, whatever the residual at the start
    allowed = min(max(tolerance * programme.scale.measurement, TOLERANCES[0]), TOLERANCES[1])
    options: dict[str, Any] = {
        **programme.derivatives,
        "iteration_callback": monitor,
        "print_time": False,
        "show_eval_warnings": print_level > 0,
        # multipliers are not asked for, so the gradients that only they need are not made
        "no_nlp_grad": True,
        "calc_lam_p": False,
        "ipopt.print_level": print_level,
        "ipopt.sb": "yes",
        "ipopt.max_iter": max_iterations,
        "ipopt.tol": allowed,
        "ipopt.mu_min": 0.1 * allowed,
        "ipopt.constr_viol_tol": FEASIBILITY,
        "ipopt.acceptable_tol": ACCEPTABLE * allowed,
        "ipopt.acceptable_constr_viol_tol": FEASIBILITY,
        "ipopt.acceptable_iter": 8,
        "ipopt.mu_strategy": "adaptive",
        "ipopt.bound_mult_init_method": "mu-based",
        "ipopt.bound_relax_factor": 0.0,
        "ipopt.bound_push": PUSH,
        "ipopt.bound_frac": PUSH,
        # the programme is scaled already
        "ipopt.nlp_scaling_method": "none",
        "ipopt.hessian_approximation": "limited-memory" if limited_memory else "exact",
    }
    functions = {"x": programme.symbols, "f": programme.cost, "g": programme.constraints}
    solver = casadi.nlpsol("identification", "ipopt", functions, options)
    with _interrupts_noted(guard):
        result = solver(
            x0=programme.start,
            lbx=programme.lower,
            ubx=programme.upper,
            lbg=programme.constraint_lower,
            ubg=programme.constraint_upper,
        )
    if guard.error is not None:
        raise guard.error
    return _solution(problem, programme, solver.stats(), result, guard)


@contextmanager
def _interrupts_noted(guard: Guard) -> Iterator[None]:
    """Note Ctrl-C in the guard instead of raising in the midst of IPOPT; a second one is raised."""
    if threading.current_thread() is not threading.main_thread():
        # signals are the main thread's alone
        yield
        return

    def note(number: int, frame: object) -> None:
        if guard.interrupted:
            raise KeyboardInterrupt
        guard.interrupted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _solution(
    problem: Problem,
    programme: Transcription,
    stats: Mapping[str, Any],
    result: Mapping[str, Any],
    guard: Guard,
) -> Solution:
    status = str(stats["return_status"])
    internal = np.asarray(result["x"].full(), dtype=float)[: len(problem.names), 0] / programme.scale.columns
    message = f"IPOPT, {stats['iter_count']} iterations"
    if guard.interrupted:
        message += ", interrupted"
    elif status == "Solved_To_Acceptable_Level":
        message += f", within {ACCEPTABLE:g} times the tolerance, where rounding stops it"
    return Solution(
        problem.space.physical(internal),
        status,
        status in ("Solve_Succeeded", "Solved_To_Acceptable_Level"),
        message,
        int(stats.get("n_call_nlp_f", 0)),
        tuple(guard.lines),
    )


def symbolic_physical(problem: Problem, scale: Scale, scaled: casadi.MX) -> casadi.MX:
    """Return the free vector in physical units of the beginning of the decision vector.

    Raises
    ------
    MethodError
        For a transform other than `Identity` and `Log`, which IPOPT can't differentiate.
    """
    values = []
    internal = scaled / scale.columns
    for i, (name, transform) in enumerate(zip(problem.names, problem.space.transforms, strict=True)):
        magnitude = float(problem.space.magnitude[i])
        if isinstance(transform, Identity):
            values.append(magnitude * internal[i])
        elif isinstance(transform, Log):
            values.append(magnitude * casadi.exp(internal[i]))
        else:
            raise MethodError(
                f"Ipopt: the transform {transform!r} of {name!r} is not known to it. Use Identity() or Log()."
            )
    return casadi.vertcat(*values)


def parameter_constraints(
    problem: Problem, physical: casadi.MX, scale: Scale
) -> tuple[casadi.MX, Array, Array]:
    """Return the constraints between parameters, each divided by the size of its terms at the start, with bounds."""
    matrix, lower, upper = problem.constraint_rows
    if not len(matrix):
        return casadi.MX(0, 1), lower, upper
    start = problem.space.physical(scale.start)
    size = np.abs(matrix) @ np.maximum(np.abs(start), 1e-6 * problem.space.magnitude)
    rows = casadi.sparsify(casadi.DM(matrix / size[:, None]))
    return casadi.mtimes(rows, physical), lower / size, upper / size
