"""Identification by shape factors as published: a small swarm, then two loops of regressions, then a line search.

Equations are numbered as in the source of `mechsmith.symbolic.friction.lugre`, in their corrected form.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.friction.shape_factor import FRESH_SHARE, NAMES, lugre_force
from mechsmith.identification.friction.shape_regressions import (
    Windows,
    coulomb_viscous,
    freshness,
    presliding_rows,
    sliding_regression,
    starts_from_rest,
    stribeck_shape,
)
from mechsmith.identification.layout import Arguments
from mechsmith.identification.method import MethodError, Progress, Solution, require_rng
from mechsmith.identification.norms import norm
from mechsmith.identification.problem import Problem
from mechsmith.identification.swarm import ParticleSwarm

Array = NDArray[np.float64]
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@dataclass(frozen=True)
class ShapeFactors:
    """LuGre by shape factors, to be compared with: `FromClosedForm` is faster and finds all eight parameters.

    1. a0, a2, a3 by (17). 2. A small swarm for a1, v0, s0, s1, with a0, a2, a3 within `sliding_box`.
    3. Peak: [a1, v0] += w [a_r - a_s, b_r - b_s] with the shape factors (11) of measured and simulated friction, until the
    relative step is below eps1. 4. Hysteresis: [s0, s1] += w [d s0, d s1] with the regression of measured minus
    simulated friction on [1 x v vx] over the starts, until below eps2. 5. vd, if free, by golden section.
    The gain of the fourth is e^{-c}, about 2 after a reversal: there w must stay below about 0.95.
    Several records must be several joints: each with parameters of its own (``per_record``).

    Parameters
    ----------
    weight : float
        w, below 1.
    peak_tolerance, hysteresis_tolerance : float
        eps1 and eps2, relative.
    windows : Windows
        Where (17), (11) and (16) look.
    swarm : ParticleSwarm
        Of the second step; 50 individuals and 50 generations as published.
    sliding_box : float
        Share by which the swarm may change a0, a2 and a3.
    product_column : bool
        Whether the regression has the column v x; without it noise counts half.
    rounds : int
        How often both loops are gone through; 1 as published.
    max_iterations : int
        Of each loop.
    line_tolerance : float
        Of the golden section, relative to vd.
    velocity, position : str
        Columns; the position is the integral of the velocity where there is none. A column ``acceleration`` is used if
        there is one.
    """

    weight: float = 0.5
    peak_tolerance: float = 1e-6
    hysteresis_tolerance: float = 1e-6
    windows: Windows = field(default_factory=Windows)
    swarm: ParticleSwarm = field(default_factory=lambda: ParticleSwarm(50, 50))
    sliding_box: float = 0.01
    product_column: bool = True
    rounds: int = 1
    max_iterations: int = 100
    line_tolerance: float = 1e-6
    velocity: str = "velocity"
    position: str = "position"

    def __post_init__(self) -> None:
        checks = (
            ("weight", self.weight, "above 0, below 1", 0.0 < self.weight < 1.0),
            ("peak_tolerance", self.peak_tolerance, "above 0", self.peak_tolerance > 0.0),
            ("hysteresis_tolerance", self.hysteresis_tolerance, "above 0", self.hysteresis_tolerance > 0.0),
            ("sliding_box", self.sliding_box, "above 0, below 1", 0.0 < self.sliding_box < 1.0),
            ("rounds", self.rounds, "1 or more", self.rounds >= 1),
            ("max_iterations", self.max_iterations, "1 or more", self.max_iterations >= 1),
            ("line_tolerance", self.line_tolerance, "above 0", self.line_tolerance > 0.0),
        )
        for name, value, allowed, good in checks:
            if not good:
                raise MethodError(f"ShapeFactors: {name} is {value!r}, allowed is {allowed}.")

    @property
    def needs_start(self) -> bool:
        """False: the swarm finds it."""
        return False

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None) -> Solution:
        """Solve each record on its own.

        Raises
        ------
        MethodError
            If the problem is not LuGre's with all but vd free, its parameters are shared by several records, it is
            decimated or delayed, or `rng` is missing.
        ProblemError
            If a record has too few samples for a regression.
        """
        generator = require_rng(rng, "ShapeFactors")
        force = lugre_force(problem, "ShapeFactors")
        self._check(problem)
        vector = start.copy()
        notes, evaluations, history = [], 0, []
        for k in range(len(problem.records)):
            joint = _Joint(problem, vector, k, self, force)
            notes.append(joint.run(generator))
            evaluations += joint.evaluations
            history += [Progress(k, count, size) for count, size in joint.history]
            for i, slot in enumerate(problem.slots):
                if slot.record in (None, k) and slot.base in joint.values:
                    vector[i] = min(max(joint.values[slot.base], slot.lower), slot.upper)
        failed = [f"record {k}: {note}" for k, note in enumerate(notes) if note]
        status = "; ".join(failed) or "both loops converged"
        return Solution(vector, status, not failed, "", evaluations, tuple(history))

    def _check(self, problem: Problem) -> None:
        free = {slot.base for slot in problem.slots}
        missing = [name for name in NAMES if name not in free and name != "vd"]
        if missing or free - set(NAMES):
            raise MethodError(
                f"ShapeFactors finds {', '.join(NAMES)}, of which vd may be fixed; free are {', '.join(sorted(free))}."
            )
        if len(problem.records) > 1 and any(slot.record is None for slot in problem.slots):
            raise MethodError(
                "ShapeFactors finds one joint from one record: with several records name every parameter in per_record."
            )
        if problem.residual.decimation is not None or problem.delayed or not problem.residual.simulates:
            raise MethodError("ShapeFactors needs OutputError without decimation and dead time.")


class _Joint:
    """One record's way through the five steps."""

    def __init__(self, problem: Problem, vector: Array, k: int, options: ShapeFactors, force: str) -> None:
        self.problem, self.k, self.options = problem, k, options
        self.base: Arguments = problem.arguments(vector, k)
        labels = problem.functions.labels("p")
        self.places = {name: labels.index(name) for name in NAMES}
        self.values = {name: float(self.base.p[place]) for name, place in self.places.items()}
        self.bounds = {
            slot.base: (slot.lower, slot.upper) for slot in problem.slots if slot.record in (None, k)
        }
        record = problem.records[k]
        self.time, self.v, self.measured = record.time, record[options.velocity], record[force]
        steps = 0.5 * (self.v[1:] + self.v[:-1]) * np.diff(self.time)
        self.q = (
            record[options.position]
            if options.position in record
            else np.concatenate([[0.0], np.cumsum(steps)])
        )
        self.a = record["acceleration"] if "acceleration" in record else np.gradient(self.v, self.time)
        self.evaluations = 0
        self.history: list[tuple[int, float]] = []

    def simulated(self) -> Array:
        """Return the friction of the present values, (n,)."""
        p = self.base.p.copy()
        for name, place in self.places.items():
            p[place] = self.values[name]
        arguments = Arguments(p, self.base.x0, self.base.d0, self.base.dead_time)
        outputs, _ = self.problem.predictions[self.k].outputs(arguments)
        self.evaluations += 1
        return np.asarray(outputs[:, 0])

    def run(self, rng: np.random.Generator) -> str:
        """Go through the five steps; return what did not converge."""
        window = self.options.windows.sliding_velocity
        a0, a2, a3 = sliding_regression(self.v, self.measured, window)
        self.values |= {"a0": a0, "a2": a2, "a3": a3}
        self.swarm(rng)
        sliding = {"a0": a0, "a2": a2, "a3": a3}
        self.values |= sliding
        failed = ""
        for _ in range(self.options.rounds):
            failed = self.loop("peak", ("a1", "v0"), self.peak_step(), self.options.peak_tolerance)
            failed = failed or self.loop(
                "hysteresis", ("s0", "s1"), self.hysteresis_step(), self.options.hysteresis_tolerance
            )
        if "vd" in self.bounds:
            self.golden_section()
        return failed

    def swarm(self, rng: np.random.Generator) -> None:
        """Find a1, v0, s0 and s1, and a0, a2, a3 nearly, by the swarm."""
        free = tuple(name for name in NAMES if name != "vd")
        bounds = dict(self.bounds)
        for name in ("a0", "a2", "a3"):
            half = max(self.options.sliding_box * abs(self.values[name]), float(np.finfo(float).tiny))
            bounds[name] = (self.values[name] - half, self.values[name] + half)
        states = self.problem.functions.labels("x")
        initial = {f"x0:{name}": float(value) for name, value in zip(states, self.base.x0, strict=True)}
        others = {
            label: float(value)
            for label, value in zip(self.problem.functions.labels("p"), self.base.p, strict=True)
            if label not in free
        }
        alone = Problem(
            self.problem.system,
            (self.problem.records[self.k],),
            free,
            self.problem.residual,
            fixed={**others, **initial},
            bounds={name: bounds[name] for name in free},
        )
        found = self.options.swarm.solve(alone, alone.start_vector(self.values), rng)
        self.evaluations += found.evaluations
        self.history += [(line.evaluation, line.norm) for line in found.history]
        self.values |= dict(zip(alone.names, map(float, found.vector), strict=True))

    def loop(
        self, what: str, names: tuple[str, str], step: Callable[[Array], Array], tolerance: float
    ) -> str:
        """Add weighted differences to two parameters until they no longer change."""
        for _ in range(self.options.max_iterations):
            simulated = self.simulated()
            size = norm(simulated - self.measured)
            self.history.append((self.evaluations, size))
            if not math.isfinite(size):
                return f"the simulation failed in the {what} loop"
            change = self.options.weight * step(simulated)
            largest = 0.0
            for name, delta in zip(names, change, strict=True):
                lower, upper = self.bounds[name]
                before = self.values[name]
                # half and double at most: a poor start must not lead out of the positive numbers
                moved = min(max(before + float(delta), 0.5 * before), 2.0 * before)
                self.values[name] = min(max(moved, lower), upper)
                largest = max(largest, abs(self.values[name] - before) / abs(before))
            if largest < tolerance:
                return ""
        return f"the {what} loop did not converge in {self.options.max_iterations} iterations"

    def peak_step(self) -> Callable[[Array], Array]:
        """Return the differences of the shape factors of (11), measured less simulated."""
        window = self.options.windows.sliding_velocity
        below = coulomb_viscous(self.v, self.values["a0"], self.values["a2"], self.values["a3"])
        real = stribeck_shape(self.v, self.a, self.measured - below, window)

        def step(simulated: Array) -> Array:
            model = stribeck_shape(self.v, self.a, simulated - below, window)
            return np.array(real) - np.array(model)

        return step

    def hysteresis_step(self) -> Callable[[Array], Array]:
        """Return d s0 and d s1: (16) fitted to measured less simulated friction over the starts that tell of it."""
        breakaway = self.values["a0"] + self.values["a1"]
        starts = starts_from_rest(self.v, self.options.windows.presliding_velocity)
        starts = tuple(s for s in starts if freshness(s, self.measured, breakaway) > FRESH_SHARE)
        if not starts:
            raise MethodError(
                f"ShapeFactors: record {self.problem.records[self.k].source!r} has no start from rest with straight bristles or "
                "after a reversal: nothing tells of s0 and s1."
            )
        columns = 4 if self.options.product_column else 3
        rows = np.vstack([presliding_rows(start, self.q, self.v)[:, :columns] for start in starts])
        size = np.linalg.norm(rows, axis=0)
        places = np.concatenate([np.arange(start.rest, start.stop) for start in starts])
        directions = np.concatenate([np.full(start.stop - start.rest, start.direction) for start in starts])

        def step(simulated: Array) -> Array:
            target = directions * (self.measured - simulated)[places]
            found = np.linalg.lstsq(rows / size, target, rcond=None)[0] / size
            return np.asarray(found[1:3])

        return step

    def golden_section(self) -> None:
        """Find vd between its bounds by golden section of the sum of squares over its logarithm."""
        low, high = (math.log(bound) for bound in self.bounds["vd"])

        def cost(place: float) -> float:
            self.values["vd"] = math.exp(place)
            return norm(self.simulated() - self.measured)

        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = cost(left), cost(right)
        while high - low > self.options.line_tolerance:
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
                at_left = cost(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
                at_right = cost(right)
        self.values["vd"] = math.exp(0.5 * (low + high))
        self.history.append((self.evaluations, min(at_left, at_right)))
