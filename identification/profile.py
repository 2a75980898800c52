"""Intervals by the likelihood ratio, for parameters of which the curvature at the optimum says too little."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as fisher

from mechsmith.identification.estimate import Estimate
from mechsmith.identification.method import Method
from mechsmith.identification.norms import norm
from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.search import LeastSquares

Array = NDArray[np.float64]

FARTHEST = 1e4  # factor from the estimate at which an interval counts as open
HALVINGS = 8  # of a factor of 2: the ends are found to 0.3 %


@dataclass(frozen=True)
class ProfileInterval:
    """An interval of one parameter.

    Parameters
    ----------
    name : str
        Of the parameter.
    lower, upper : float
        Its ends; 0 and infinity where the data reject nothing on that side.
    confidence : float
        Of the interval.
    """

    name: str
    lower: float
    upper: float
    confidence: float

    def __str__(self) -> str:
        """Say the interval, and that the parameter is undetermined where it is open."""
        text = f"{self.name} in [{self.lower:.4g}, {self.upper:.4g}] at {self.confidence:.0%}"
        return f"{text}: undetermined, open to infinity" if np.isinf(self.upper) else text


def profile_interval(
    problem: Problem, estimate: Estimate, name: str, *, confidence: float = 0.95, method: Method | None = None
) -> ProfileInterval:
    """Return the values of a positive parameter that a likelihood-ratio test does not reject.

    The parameter is held and all others are found again; a value is rejected when the sum of squares rises by more than the
    F quantile times the residual's variance (Seber, Wild, *Nonlinear Regression*, 1989, section 5.4). Unlike the interval from the
    curvature it is right where the parameter acts weakly and curvedly, as vd of LuGre friction does when vd >> v0: an
    estimate that noise has drawn low has a steep curvature there.

    Parameters
    ----------
    problem : Problem
        That the estimate solves; residuals are taken as white.
    estimate : Estimate
        Its solution.
    name : str
        A free parameter with a positive value.
    confidence : float
        Of the interval.
    method : Method, optional
        That finds the others; `LeastSquares` when not given.

    Raises
    ------
    ProblemError
        If the parameter is not free or not positive, or the confidence is not between 0 and 1.
    """
    if name not in problem.names or not estimate[name] > 0.0 or not 0.0 < confidence < 1.0:
        raise ProblemError(
            f"profile_interval: name is {name!r}, confidence {confidence}; allowed are positive free parameters "
            f"({', '.join(problem.names)}) and a confidence between 0 and 1."
        )
    profile = _Profile(problem, estimate, name, method or LeastSquares(tolerance=1e-10), confidence)
    lower, upper = profile.end(0.5), profile.end(2.0)
    return ProfileInterval(
        name, lower if lower is not None else 0.0, upper if upper is not None else np.inf, confidence
    )


class _Profile:
    """The sum of squares as a function of one parameter, the others at their best."""

    def __init__(
        self, problem: Problem, estimate: Estimate, name: str, method: Method, confidence: float
    ) -> None:
        self.problem, self.name, self.method = problem, name, method
        self.value = estimate[name]
        self.others = tuple(other for other in problem.names if other != name)
        self.begin = np.array([estimate[other] for other in self.others])
        self.least = norm(problem.residual_vector(estimate.values)) ** 2
        freedom = max(estimate.samples - len(problem.names), 1)
        self.limit = self.least * (1.0 + float(fisher.ppf(confidence, 1, freedom)) / freedom)

    def rejected(self, value: float, start: Array) -> tuple[bool, Array]:
        """Return whether a value is rejected, and the other parameters there."""
        held = replace(
            self.problem,
            free=self.others,
            fixed={**self.problem.fixed, self.name: value},
            bounds={n: b for n, b in self.problem.bounds.items() if n != self.name},
            transforms={n: t for n, t in self.problem.transforms.items() if n != self.name},
            priors={n: p for n, p in self.problem.priors.items() if n != self.name},
        )
        vector = self.method.solve(held, start, None).vector
        size = norm(held.residual_vector(vector)) ** 2
        # a simulation that fails is no value that the data allow
        return not size <= self.limit, vector

    def end(self, factor: float) -> float | None:
        """Return the end of the interval on the side that a factor of 2 or 1/2 leads to; None where it is open."""
        inside, start = self.value, self.begin
        outside = inside * factor
        while True:
            if not 1.0 / FARTHEST <= outside / self.value <= FARTHEST:
                return None
            rejected, vector = self.rejected(outside, start)
            if rejected:
                break
            inside, start, outside = outside, vector, outside * factor
        for _ in range(HALVINGS):
            middle = float(np.sqrt(inside * outside))
            rejected, vector = self.rejected(middle, start)
            if rejected:
                outside = middle
            else:
                inside, start = middle, vector
        return float(np.sqrt(inside * outside))
