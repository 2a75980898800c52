"""Methods one after another: a global search, then a local one from what it found."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.method import Method, MethodError, Solution
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stages:
    """Several methods, each from the solution of the one before; the last one's status counts.

    Parameters
    ----------
    methods : tuple of Method
        For instance ``(DifferentialEvolution(), Ipopt())``.
    """

    methods: tuple[Method, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", tuple(self.methods))
        if not self.methods:
            raise MethodError("Stages: there are no methods. Give at least one.")

    @property
    def needs_start(self) -> bool:
        """Whether the first method does."""
        return self.methods[0].needs_start

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None) -> Solution:
        """Solve with each method in turn, all of them with the same generator."""
        solution = self.methods[0].solve(problem, start, rng)
        for stage, method in enumerate(self.methods[1:], start=1):
            found = method.solve(problem, solution.vector, rng)
            later = tuple(replace(line, start=stage) for line in found.history)
            solution = replace(
                found,
                evaluations=solution.evaluations + found.evaluations,
                history=(*solution.history, *later),
            )
        return solution
