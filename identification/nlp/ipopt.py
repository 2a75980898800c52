"""Identification as a nonlinear programme, solved by IPOPT through CasADi."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.method import MethodError, Progress, Solution
from mechsmith.identification.nlp.collocation import collocation
from mechsmith.identification.nlp.multiple_shooting import multiple_shooting
from mechsmith.identification.nlp.single_shooting import has_exact_hessian, single_shooting
from mechsmith.identification.nlp.transcription import Guard, Transcription, run
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]
Formulation = Literal["single_shooting", "multiple_shooting", "collocation"]
Hessian = Literal["exact", "gauss_newton", "limited_memory"]
FORMULATIONS = ("single_shooting", "multiple_shooting", "collocation")
HESSIANS = ("exact", "gauss_newton", "limited_memory")


@dataclass(frozen=True)
class Ipopt:
    """An interior-point method (IPOPT) in the internal space, with exact gradients.

    Waechter, Biegler, *On the implementation of an interior-point filter line-search algorithm for large-scale nonlinear
    programming*, Math. Program. 106 (2006), 25-57. Bounds and constraints between parameters hold throughout or at the
    end; a start on a bound is moved off it first. The status is IPOPT's word: ``Solve_Succeeded`` and
    ``Solved_To_Acceptable_Level`` (100 times the tolerance, where rounding allows no more) count as success,
    ``Maximum_Iterations_Exceeded`` never. An interrupt (Ctrl-C) ends it with what it has, as ``User_Requested_Stop``.

    Parameters
    ----------
    formulation : "single_shooting", "multiple_shooting" or "collocation"
        Unknowns are the parameters alone; those and the states at the beginnings of segments (Bock's method); or those and
        all states, in the stages of Radau IIA of order 5 with steps split where inputs cross zero.
        The latter two need a simulator of mechsmith.codegen; collocation is for some thousand samples.
    max_iterations : int
        Of IPOPT.
    tolerance : float
        Of the optimality conditions: by how much, relative to the measurement's norm, the residual may still be explained
        by any single parameter.
    hessian : "exact", "gauss_newton" or "limited_memory", optional
        By default Gauss-Newton, which is the quicker and surer where residuals are small; exact, where it can be had, when there
        are constraints between parameters or state bounds, against which residuals stay so that their curvature counts.
        Exact in single shooting needs `EquationError` on CasADi's functions, multiple shooting has none; collocation
        has all three.
    segments : int
        Of equally many samples in each record, for multiple shooting.
    state_bounds : mapping of state to (lower, upper)
        Kept at the beginnings of segments, or at all stages of collocation; in the state's unit. An initial state has
        the problem's bounds instead.
    print_level : int
        Of IPOPT's own printing, 0 (none) to 12.
    progress : function of Progress, optional
        Called at every iteration.
    """

    formulation: Formulation = "single_shooting"
    max_iterations: int = 300
    tolerance: float = 1e-12
    hessian: Hessian | None = None
    segments: int = 20
    state_bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    print_level: int = 0
    progress: Callable[[Progress], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.formulation not in FORMULATIONS:
            raise MethodError(
                f"Ipopt: formulation is {self.formulation!r}, allowed are {', '.join(FORMULATIONS)}."
            )
        if self.hessian not in (None, *HESSIANS):
            raise MethodError(f"Ipopt: hessian is {self.hessian!r}, allowed are {', '.join(HESSIANS)}.")
        if self.max_iterations < 1 or self.segments < 1:
            raise MethodError(
                f"Ipopt: max_iterations is {self.max_iterations}, segments is {self.segments}; both must be 1 or more."
            )
        if not 1e-15 <= self.tolerance < 1.0:
            raise MethodError(f"Ipopt: tolerance is {self.tolerance}, allowed is 1e-15 to 1.")
        if not 0 <= self.print_level <= 12:
            raise MethodError(f"Ipopt: print_level is {self.print_level}, allowed is 0 to 12.")
        object.__setattr__(self, "state_bounds", dict(self.state_bounds))
        for name, (lower, upper) in self.state_bounds.items():
            if math.isnan(lower) or math.isnan(upper) or not lower < upper:
                raise MethodError(
                    f"Ipopt: state_bounds[{name!r}] is ({lower}, {upper}); lower must be below upper."
                )
        if self.state_bounds and self.formulation == "single_shooting":
            raise MethodError(
                "Ipopt: state_bounds need states among the unknowns. Use formulation='multiple_shooting' or 'collocation'."
            )
        if self.hessian == "exact" and self.formulation == "multiple_shooting":
            raise MethodError(
                "Ipopt: multiple shooting has no exact Hessian. Use hessian='gauss_newton', or formulation='collocation'."
            )

    @property
    def needs_start(self) -> bool:
        """True."""
        return True

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None = None) -> Solution:
        """Solve from a start, shape (n,), in physical units; nothing is drawn at random.

        Raises
        ------
        MethodError
            If the formulation does not suit the problem; it says which one does.
        """
        guard = Guard()
        programme = self._transcribe(problem, np.asarray(start, dtype=float), guard)
        return run(
            programme,
            problem,
            guard,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            limited_memory=self.hessian == "limited_memory",
            print_level=self.print_level,
            report=self.progress,
        )

    def _transcribe(self, problem: Problem, start: Array, guard: Guard) -> Transcription:
        pressed = self.hessian is None and bool(problem.constraints or self.state_bounds)
        if self.formulation == "single_shooting":
            exact = self.hessian == "exact" or (pressed and has_exact_hessian(problem))
            return single_shooting(problem, start, exact=exact, guard=guard)
        if self.formulation == "multiple_shooting":
            return multiple_shooting(
                problem, start, segments=self.segments, state_bounds=self.state_bounds, guard=guard
            )
        gauss_newton = self.hessian == "gauss_newton" or (self.hessian is None and not pressed)
        return collocation(problem, start, gauss_newton=gauss_newton, state_bounds=self.state_bounds)
