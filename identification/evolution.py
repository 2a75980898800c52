"""Global search by differential evolution (scipy), on populations that are evaluated in one batch."""

import json
import math
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import NonlinearConstraint, differential_evolution

from mechsmith.codegen.files import writing
from mechsmith.identification.method import MethodError, Progress, Solution, require_rng
from mechsmith.identification.norms import norm
from mechsmith.identification.problem import Problem

Array = NDArray[np.float64]
Norms = Callable[[Array], Array]
Strategy = Literal["best1bin", "rand1bin", "best2bin", "rand2bin", "currenttobest1bin", "randtobest1bin"]
# The spread of a population's norms, relative to the norm of the measurement, that passes as none: data without noise
# are fitted to rounding, where the relative spread stays.
SPREAD = 1e-9
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class DifferentialEvolution:
    """Differential evolution (scipy) in the internal space: log-uniform where parameters are logarithmic.

    Storn, Price, *Differential evolution: a simple and efficient heuristic for global optimization over continuous spaces*,
    J. Global Optim. 11 (1997), 341-359. A whole generation is evaluated in one batch, in compiled code where the system
    has it. A simulation that fails costs infinity. Constraints between parameters are kept (Lampinen, *A constraint
    handling approach for the differential evolution algorithm*, CEC 2002); equations are refused. The status is scipy's
    message: ``Maximum number of iterations has been exceeded.`` is no success. An interrupt (Ctrl-C) ends it with the
    best so far and the status ``interrupted``.

    Parameters
    ----------
    population : int, optional
        Individuals, 5 or more; ten for each free parameter by default.
    generations : int
        At most.
    tolerance : float
        Standard deviation of the population's norms over their mean, at which it has converged.
    strategy : str
        scipy's name of how trial vectors are made.
    mutation : tuple of float
        Range from which the differential weight is drawn in each generation.
    recombination : float
        Probability of crossover.
    workers : int
        Processes; they are spawned, so a script that uses more than 1 needs the guard ``if __name__ == "__main__"``. The
        result does not depend on how many.
    use_start : bool
        Whether the start is one of the first population, the rest of which fills the box by Latin hypercube sampling.
    checkpoint : Path, optional
        File (``.npz``) to which each generation is written, whole or not at all. Where it exists, the search goes
        on from it, with its generations counted; delete it to begin anew.
    progress : function of Progress, optional
        Called after every generation.
    """

    population: int | None = None
    generations: int = 300
    tolerance: float = 1e-3
    strategy: Strategy = "best1bin"
    mutation: tuple[float, float] = (0.5, 1.0)
    recombination: float = 0.9
    workers: int = 1
    use_start: bool = False
    checkpoint: Path | None = None
    progress: Callable[[Progress], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks = (
            ("population", self.population, "5 or more", self.population is None or self.population >= 5),
            ("generations", self.generations, "1 or more", self.generations >= 1),
            ("workers", self.workers, "1 or more", self.workers >= 1),
            ("tolerance", self.tolerance, "0 to 1", 0.0 <= self.tolerance < 1.0),
            ("recombination", self.recombination, "0 to 1", 0.0 <= self.recombination <= 1.0),
            ("strategy", self.strategy, ", ".join(get_args(Strategy)), self.strategy in get_args(Strategy)),
            ("mutation", self.mutation, "(a, b) with 0 <= a < b < 2", _is_range(self.mutation)),
        )
        for name, value, allowed, good in checks:
            if not good:
                raise MethodError(f"DifferentialEvolution: {name} is {value!r}, allowed is {allowed}.")

    @property
    def needs_start(self) -> bool:
        """Whether the start counts."""
        return self.use_start

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None) -> Solution:
        """Search the box of the free parameters.

        Raises
        ------
        MethodError
            If `rng` is missing, a bound is not finite, a constraint is an equation, or the checkpoint is of another
            search.
        """
        generator = require_rng(rng, "DifferentialEvolution")
        _check_bounds(problem)
        constraints = _constraints(problem)
        population = self._first_population(problem, start, generator)
        begin = _Checkpoint(population, 0, 0, ())
        if self.checkpoint is not None and self.checkpoint.exists():
            begin = _restore(self.checkpoint, problem, population.shape, generator)
        with _evaluator(problem, self.workers) as norms:
            return self._search(problem, generator, begin, constraints, norms)

    def _first_population(self, problem: Problem, start: Array, rng: np.random.Generator) -> Array:
        space, n = problem.space, len(problem.names)
        size = self.population or max(10 * n, 20)
        strata = np.column_stack([rng.permutation(size) for _ in range(n)])
        share = (strata + rng.random((size, n))) / size
        lower, upper = space.internal_lower, space.internal_upper
        population = lower + share * (upper - lower)
        if self.use_start:
            population[0] = np.clip(space.internal(start), lower, upper)
        return population

    def _search(
        self,
        problem: Problem,
        rng: np.random.Generator,
        begin: "_Checkpoint",
        constraints: tuple[NonlinearConstraint, ...],
        norms: Norms,
    ) -> Solution:
        track = _Track(problem, norms, begin, self.checkpoint, self.progress, rng)
        bounds = list(zip(problem.space.internal_lower, problem.space.internal_upper, strict=True))
        try:
            result: Any = differential_evolution(
                track.cost,
                bounds,
                strategy=self.strategy,
                maxiter=max(self.generations - begin.generation, 0),
                tol=self.tolerance,
                atol=SPREAD
                * norm(np.concatenate([_weighted(problem, k) for k in range(len(problem.records))])),
                mutation=self.mutation,
                recombination=self.recombination,
                rng=rng,
                callback=track.generation_done,
                polish=False,
                init=begin.population,
                updating="deferred",
                constraints=constraints,
                vectorized=True,
            )
        except KeyboardInterrupt:
            return track.solution(
                INTERRUPTED, False, "DifferentialEvolution was interrupted; this is its best so far"
            )
        if not math.isfinite(track.best):
            return track.solution(str(result.message), False, "every trial failed or violated a constraint")
        return track.solution(str(result.message), bool(result.success), "scipy differential_evolution")


def _is_range(mutation: tuple[float, float]) -> bool:
    return len(mutation) == 2 and 0.0 <= mutation[0] < mutation[1] < 2.0


def _weighted(problem: Problem, record: int) -> Array:
    return np.asarray((problem.measurements[record] / problem.comparison.noise).reshape(-1))


def _check_bounds(problem: Problem) -> None:
    space = problem.space
    finite = np.isfinite(space.internal_lower) & np.isfinite(space.internal_upper)
    missing = [name for name, good in zip(problem.names, finite, strict=True) if not good]
    if missing:
        raise MethodError(
            f"DifferentialEvolution searches a box: {', '.join(map(repr, missing))} {'has' if len(missing) == 1 else 'have'} "
            "no finite bounds. Give them in Problem(bounds={name: (lower, upper)})."
        )


def _constraints(problem: Problem) -> tuple[NonlinearConstraint, ...]:
    """Return the constraints between parameters on the internal vector, where logarithms bend them."""
    matrix, lower, upper = problem.constraint_rows
    if not len(matrix):
        return ()
    if np.any(lower == upper):
        raise MethodError(
            "DifferentialEvolution can't keep equations between parameters "
            f"({'; '.join(str(c) for c in problem.constraints)}). Use one parameter in place of both, or Ipopt."
        )

    def values(internal: Array) -> Array:
        # scipy hands over (n,) or (n, k)
        return np.asarray(matrix @ problem.space.physical(internal.T).T)

    return (NonlinearConstraint(values, lower, upper),)


# -- one search ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Checkpoint:
    population: Array
    generation: int
    evaluations: int
    history: tuple[Progress, ...]


class _Track:
    """The best so far, which outlives an interrupt, and what is done after each generation."""

    def __init__(
        self,
        problem: Problem,
        norms: Norms,
        begin: _Checkpoint,
        checkpoint: Path | None,
        report: Callable[[Progress], None] | None,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.norms, self.rng = problem, norms, rng
        self.checkpoint, self.report = checkpoint, report
        self.generation, self.evaluations = begin.generation, begin.evaluations
        self.history = list(begin.history)
        self.best = math.inf
        self.vector = problem.space.physical(begin.population[0])

    def cost(self, internal: Array) -> Array:
        """Return the norms of a population given as (n, k); scipy leaves out what violates a constraint."""
        vectors = self.problem.space.physical(internal.T)
        values = self.norms(vectors)
        self.evaluations += len(values)
        place = int(np.argmin(values))
        if values[place] < self.best:
            self.best, self.vector = float(values[place]), vectors[place]
        return values

    def generation_done(self, intermediate_result: Any) -> None:
        """Write down, save and report a generation; scipy asks for this name of the argument."""
        self.generation += 1
        self.history.append(Progress(0, self.generation, self.best))
        if self.checkpoint is not None:
            population = np.asarray(intermediate_result.population, dtype=float)
            state = _Checkpoint(population, self.generation, self.evaluations, tuple(self.history))
            _save(self.checkpoint, self.problem, state, self.rng)
        if self.report is not None:
            self.report(self.history[-1])

    def solution(self, status: str, success: bool, message: str) -> Solution:
        """Return the best so far."""
        return Solution(self.vector, status, success, message, self.evaluations, tuple(self.history))


def _save(path: Path, problem: Problem, state: _Checkpoint, rng: np.random.Generator) -> None:
    """Write a generation to a file beside the path and move it there."""
    with writing(path) as file:
        np.savez(
            file,
            names=np.array(problem.names),
            lower=problem.space.internal_lower,
            upper=problem.space.internal_upper,
            population=state.population,
            counts=np.array([state.generation, state.evaluations]),
            history=np.array([[line.evaluation, line.norm] for line in state.history]).reshape(-1, 2),
            generator=np.array(json.dumps(rng.bit_generator.state, default=lambda array: array.tolist())),
        )


def _restore(path: Path, problem: Problem, shape: tuple[int, ...], rng: np.random.Generator) -> _Checkpoint:
    """Return the generation in a file, with the generator in the state it had then."""
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise MethodError(
            f"DifferentialEvolution: checkpoint {path}: {error}. Delete it to begin anew."
        ) from error
    expected = {
        "names": np.array(problem.names),
        "lower": problem.space.internal_lower,
        "upper": problem.space.internal_upper,
    }
    for name, value in expected.items():
        if name not in data or not np.array_equal(data[name], value):
            raise MethodError(
                f"DifferentialEvolution: checkpoint {path} is of another search: its {name} differ. Delete it to begin anew."
            )
    if data["population"].shape != shape:
        raise MethodError(
            f"DifferentialEvolution: checkpoint {path} has a population of {data['population'].shape[0]}, the search of "
            f"{shape[0]}. Set population to that, or delete the file to begin anew."
        )
    state = json.loads(str(data["generator"]))
    if state["bit_generator"] != rng.bit_generator.state["bit_generator"]:
        raise MethodError(
            f"DifferentialEvolution: checkpoint {path} was made with {state['bit_generator']}, rng is another generator."
        )
    rng.bit_generator.state = state
    history = tuple(Progress(0, int(count), float(value)) for count, value in data["history"])
    return _Checkpoint(data["population"], int(data["counts"][0]), int(data["counts"][1]), history)


# -- workers ------------------------------------------------------------------------------------------------


@contextmanager
def _evaluator(problem: Problem, workers: int) -> Iterator[Norms]:
    """Give a function for the norms of many vectors (k, n) -> (k,), over processes that end with the context."""
    if workers == 1:
        yield problem.norms
        return
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(workers)]
    processes = [context.Process(target=_serve, args=(far, problem), daemon=True) for _, far in pairs]
    try:
        for process in processes:
            process.start()
        for _, far in pairs:
            # with the parent's copy closed, a worker that dies is seen as the end of its pipe
            far.close()
        near = [end for end, _ in pairs]
        yield lambda vectors: _shared(near, vectors)
    finally:
        for end, _ in pairs:
            end.close()
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


def _shared(ends: "list[Connection[Any, Any]]", vectors: Array) -> Array:
    for end, part in zip(ends, np.array_split(vectors, len(ends)), strict=True):
        end.send(part)
    parts = []
    for end in ends:
        try:
            answer = end.recv()
        except EOFError:
            raise RuntimeError(
                "DifferentialEvolution: a worker process ended. Workers are spawned: a script that uses them needs the guard "
                "if __name__ == '__main__'; use workers=1 without."
            ) from None
        if isinstance(answer, Exception):
            raise answer
        parts.append(answer)
    return np.concatenate(parts)


def _serve(end: "Connection[Any, Any]", problem: Problem) -> None:
    """Answer with norms until the other end is closed. An interrupt is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            vectors = end.recv()
        except EOFError:
            return
        try:
            answer: Any = problem.norms(vectors) if len(vectors) else np.zeros(0)
        except Exception as error:
            answer = error
        end.send(answer)
