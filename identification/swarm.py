"""Particle swarms: the plain global search of the published comparison."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.method import MethodError, Progress, Solution, refuse_constraints, require_rng
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ParticleSwarm:
    """A particle swarm in the box of the free parameters, kept as the baseline that others are measured against.

    Kennedy, Eberhart, *Particle swarm optimization*, IEEE Int. Conf. Neural Networks (1995), 1942-1948, with the
    coefficients of Clerc, Kennedy, *The particle swarm: explosion, stability, and convergence in a multidimensional complex
    space*, IEEE Trans. Evolutionary Computation 6 (2002), 58-73. A particle that leaves the box is put on its side and
    stops there. A generation is evaluated in one batch. The published stop is the count of generations, which is no
    success; the swarm has converged when it has shrunk to `tolerance` of the box before.

    Parameters
    ----------
    individuals, generations : int
        100 and 200 as published.
    inertia, own, common : float
        Factors of the velocity, of the pull to a particle's best and to that of all.
    tolerance : float
        Largest width of the swarm, of the box, at which it has converged.
    logarithmic : bool
        Whether it moves in the internal space, logarithmic for positive parameters, rather than as published.
    use_start : bool
        Whether the start is one of the first particles.
    workers : int
        Threads that share a generation: compiled rollouts run at the same time in them. The result is the same.
    progress : function of Progress, optional
        Called after every generation.
    """

    individuals: int = 100
    generations: int = 200
    inertia: float = 0.7298
    own: float = 1.49618
    common: float = 1.49618
    tolerance: float = 1e-8
    logarithmic: bool = False
    use_start: bool = False
    workers: int = 1
    progress: Callable[[Progress], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks = (
            ("individuals", self.individuals, "2 or more", self.individuals >= 2),
            ("generations", self.generations, "1 or more", self.generations >= 1),
            ("workers", self.workers, "1 or more", self.workers >= 1),
            ("inertia", self.inertia, "0 to 1", 0.0 <= self.inertia < 1.0),
            ("own", self.own, "0 to 4", 0.0 <= self.own <= 4.0),
            ("common", self.common, "0 to 4", 0.0 <= self.common <= 4.0),
            ("tolerance", self.tolerance, "0 to 1", 0.0 <= self.tolerance < 1.0),
        )
        for name, value, allowed, good in checks:
            if not good:
                raise MethodError(f"ParticleSwarm: {name} is {value!r}, allowed is {allowed}.")

    @property
    def needs_start(self) -> bool:
        """Whether the start counts."""
        return self.use_start

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None) -> Solution:
        """Search the box of the free parameters.

        Raises
        ------
        MethodError
            If `rng` is missing, a bound is not finite, or there are constraints between parameters.
        """
        generator = require_rng(rng, "ParticleSwarm")
        refuse_constraints(problem, "ParticleSwarm")
        with ThreadPoolExecutor(self.workers) as pool:

            def norms(vectors: Array) -> Array:
                if self.workers == 1:
                    return problem.norms(vectors)
                parts = np.array_split(vectors, min(self.workers, len(vectors)))
                return np.concatenate(list(pool.map(problem.norms, parts)))

            return self._search(problem, start, generator, norms)

    def _search(
        self, problem: Problem, start: Array, generator: np.random.Generator, norms: Callable[[Array], Array]
    ) -> Solution:
        lower, upper, physical = self._box(problem)
        size = (self.individuals, len(lower))
        place = lower + generator.random(size) * (upper - lower)
        if self.use_start:
            begin = problem.space.internal(start) if self.logarithmic else start
            place[0] = np.clip(begin, lower, upper)
        speed = (generator.random(size) - 0.5) * (upper - lower)
        best, cost = place.copy(), norms(physical(place))
        history = [Progress(0, 0, float(cost.min()))]
        converged = False
        for generation in range(1, self.generations + 1):
            leader = best[int(np.argmin(cost))]
            pull = self.own * generator.random(size) * (best - place)
            pull += self.common * generator.random(size) * (leader - place)
            moved = place + self.inertia * speed + pull
            kept = np.clip(moved, lower, upper)
            speed = np.where(moved == kept, moved - place, 0.0)
            place = kept
            found = norms(physical(place))
            better = found < cost
            best[better], cost[better] = place[better], found[better]
            history.append(Progress(0, generation, float(cost.min())))
            if self.progress is not None:
                self.progress(history[-1])
            converged = bool(np.max(np.ptp(best, axis=0) / (upper - lower)) <= self.tolerance)
            if converged:
                break
        finite = bool(np.isfinite(cost.min()))
        return Solution(
            physical(best[int(np.argmin(cost))][None, :])[0],
            "the swarm has shrunk to one point" if converged else f"{self.generations} generations are done",
            converged and finite,
            "" if finite else "every trial failed",
            self.individuals * len(history),
            tuple(history),
        )

    def _box(self, problem: Problem) -> tuple[Array, Array, Callable[[Array], Array]]:
        space = problem.space
        lower, upper = space.lower, space.upper
        missing = [n for n, a, b in zip(problem.names, lower, upper, strict=True) if not np.isfinite(b - a)]
        if missing:
            raise MethodError(
                f"ParticleSwarm searches a box: {', '.join(map(repr, missing))} {'has' if len(missing) == 1 else 'have'} "
                "no finite bounds. Give them in Problem(bounds={name: (lower, upper)})."
            )
        if self.logarithmic:
            return space.internal_lower, space.internal_upper, space.physical
        return lower, upper, np.asarray
