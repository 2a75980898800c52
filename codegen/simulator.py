"""Motions of a model from sampled inputs: in CasADi's machine here, in compiled C by `mechsmith.codegen.build`."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy
from numpy.typing import ArrayLike

from mechsmith.codegen import discretise as rules
from mechsmith.codegen.discretise import Discretisation
from mechsmith.codegen.functions import Array, FunctionSet, FunctionSetError
from mechsmith.codegen.mesh import has_mesh, make_mesh, run_mesh

# What the status of generated C means.
STATUS = {
    1: "the state is not finite",
    2: "the stage equations were not solved",
    3: "the mass matrix is not positive definite",
}


class Rollout(NamedTuple):
    """A motion at the sample times.

    `outputs` is (n, ny), `states` (n, nx), `discrete_states` (n, nd). `status` is empty, or says what went
    wrong and when; from then on the arrays hold NaN.
    """

    outputs: Array
    states: Array
    discrete_states: Array
    status: str


class RolloutSensitivities(NamedTuple):
    """Outputs (n, ny) and their exact derivatives: (n, ny, np) by the parameters, (n, ny, nx) by the initial state."""

    outputs: Array
    by_parameters: Array
    by_initial_state: Array
    status: str


class Simulator(Protocol):
    """Whoever can roll a model out over sampled inputs."""

    @property
    def functions(self) -> FunctionSet:
        """Names and units of what goes in and comes out."""

    @property
    def samples(self) -> tuple[str, ...]:
        """Names of the columns of `samples`: the inputs, then integrals for Hermite reconstruction."""

    def rollout(self, time: Array, samples: Array, x0: Array, d0: Array, p: Array) -> Rollout:
        """Simulate from time[0] to time[-1]; samples is (n, number of names)."""

    def rollout_sensitivities(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> RolloutSensitivities:
        """Simulate with exact derivatives by the parameters and the initial state."""

    def rollout_batch(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> tuple[Array, tuple[str, ...]]:
        """Simulate for each row of p (k, np); outputs (k, n, ny) and a status for each. x0 is (nx,) or (k, nx)."""


def check_rollout_arguments(
    functions: FunctionSet,
    names: tuple[str, ...],
    time: Array,
    samples: Array,
    x0: Array,
    d0: Array,
    p: Array,
) -> None:
    """Raise `FunctionSetError` when the arguments of a rollout do not fit each other."""
    n = time.shape[0]
    expected = {
        "time": (time, (n,)),
        "samples": (samples, (n, len(names))),
        "x0": (x0, (functions.size("x"),)),
        "d0": (d0, (functions.size("d"),)),
        "p": (p, (functions.size("p"),)),
    }
    for name, (array, shape) in expected.items():
        if array.shape != shape:
            raise FunctionSetError(
                f"rollout of {functions.name!r}: {name} has shape {array.shape}, expected {shape}"
                + (f" ({', '.join(names)})." if name == "samples" else ".")
            )
        if not numpy.isfinite(array).all():
            raise FunctionSetError(
                f"rollout of {functions.name!r}: {name} holds NaN or infinity. Remove or fill it."
            )
    if n < 2 or not (numpy.diff(time) > 0).all():
        raise FunctionSetError(
            f"rollout of {functions.name!r}: time must increase and have two samples or more."
        )


def check_batch_arguments(functions: FunctionSet, x0: Array, p: Array) -> tuple[Array, Array]:
    """Return the initial states (1 or k, nx) and parameter vectors (k, np) of a batch of rollouts.

    Raises
    ------
    FunctionSetError
        If their shapes do not fit, or one holds NaN or infinity.
    """
    rows = numpy.ascontiguousarray(p, dtype=float)
    starts = numpy.ascontiguousarray(numpy.atleast_2d(x0), dtype=float)
    expected = {"p": (rows, functions.size("p")), "x0": (starts, functions.size("x"))}
    for name, (array, size) in expected.items():
        if array.ndim != 2 or array.shape[1] != size or (name == "x0" and len(array) not in (1, len(rows))):
            raise FunctionSetError(
                f"rollout_batch of {functions.name!r}: {name} has shape {array.shape}, expected ({len(rows)}, {size})."
            )
        bad = (~numpy.isfinite(array)).any(axis=1).nonzero()[0]
        if bad.size:
            raise FunctionSetError(
                f"rollout_batch of {functions.name!r}: {name} holds NaN or infinity in row {bad[0]}. Remove or fill it."
            )
    return starts, rows


@dataclass(frozen=True)
class CasadiSimulator:
    """Rollouts in CasADi's machine: needs no compiler.

    One call does a whole motion; discrete states, or crossings of states, make it go from sample to sample.

    Parameters
    ----------
    discretisation : Discretisation
        The kernels.
    """

    discretisation: Discretisation

    @property
    def functions(self) -> FunctionSet:
        """The model's functions."""
        return self.discretisation.functions

    @property
    def samples(self) -> tuple[str, ...]:
        """Names of the columns of `samples`."""
        return self.discretisation.sample_labels

    def rollout(self, time: Array, samples: Array, x0: Array, d0: Array, p: Array) -> Rollout:
        """Simulate from time[0] to time[-1]; see `Simulator`."""
        motion = self._run(time, samples, x0, d0, p, sensitivities=False)
        return Rollout(motion.outputs, motion.states, motion.discrete_states, motion.status)

    def rollout_sensitivities(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> RolloutSensitivities:
        """Simulate with exact derivatives; see `Simulator`."""
        motion = self._run(time, samples, x0, d0, p, sensitivities=True)
        count = p.shape[0]
        return RolloutSensitivities(
            motion.outputs, motion.derivatives[:, :, :count], motion.derivatives[:, :, count:], motion.status
        )

    def rollout_batch(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> tuple[Array, tuple[str, ...]]:
        """Simulate for each row of p; see `Simulator`."""
        starts, rows = check_batch_arguments(self.functions, x0, p)
        outputs = numpy.empty((len(rows), len(time), self.functions.size("y")))
        statuses = []
        for i, row in enumerate(rows):
            motion = self.rollout(time, samples, starts[i % len(starts)], d0, row)
            outputs[i] = motion.outputs
            statuses.append(motion.status)
        return outputs, tuple(statuses)

    def _run(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array, *, sensitivities: bool
    ) -> "_Motion":
        check_rollout_arguments(self.functions, self.samples, time, samples, x0, d0, p)
        motion = _Motion(self.discretisation, samples, x0, d0, p, sensitivities=sensitivities)
        inputs = self.functions.size("u")
        rules.check_stability(
            self.discretisation,
            x0[None, :],
            d0[None, :],
            samples[:, :inputs],
            p,
            float(numpy.diff(time).max()),
        )
        if has_mesh(self.discretisation):
            motion.run_at_once(time)
        else:
            motion.run_by_sample(time)
        rules.check_motion(self.discretisation, motion.states, motion.discrete_states, samples, p, time)
        return motion


class _Motion:
    """A rollout under way: the mirror in Python of the routine that `emit_c` prints."""

    def __init__(
        self,
        discretisation: Discretisation,
        samples: Array,
        x0: Array,
        d0: Array,
        p: Array,
        *,
        sensitivities: bool,
    ) -> None:
        functions = discretisation.functions
        pairs = [
            (of, wrt)
            for of in ("output", "update", "crossing")
            for wrt in ("x", "d", "p")
            if of in functions.functions
        ]
        self.functions = functions.with_jacobians(*pairs) if sensitivities else functions
        self.rules = discretisation
        self.samples, self.p = samples, p
        self.x, self.d = x0.astype(float), d0.astype(float)
        self.inputs = functions.size("u")
        nx, nd, n_theta = len(x0), len(d0), len(p) + len(x0)
        self.with_sensitivities = sensitivities
        self.x_theta = numpy.hstack([numpy.zeros((nx, len(p))), numpy.eye(nx)])
        self.d_theta = numpy.zeros((nd, n_theta))
        self.outputs = numpy.full((len(samples), functions.size("y")), numpy.nan)
        self.states = numpy.full((len(samples), nx), numpy.nan)
        self.discrete_states = numpy.full((len(samples), nd), numpy.nan)
        self.derivatives = numpy.full(
            (len(samples), functions.size("y"), n_theta if sensitivities else 0), numpy.nan
        )
        self.status = ""
        self.unsolved = self.indefinite = False

    def run_by_sample(self, time: Array) -> None:
        """Go from sample to sample."""
        for k in range(len(time)):
            self.record(k)
            if self.failed(f"at t = {time[k]:.6g} s (sample {k})"):
                return
            if k + 1 < len(time) and len(self.x):
                self.advance(self.samples[k], self.samples[k + 1], float(time[k + 1] - time[k]))
                if self.failed(f"at t = {time[k + 1]:.6g} s (sample {k + 1})"):
                    return

    def run_at_once(self, time: Array) -> None:
        """Take all substeps in one call; only where they depend on the inputs alone."""
        mesh = make_mesh(self.rules, time, self.samples, self.p)
        motion = run_mesh(self.rules, mesh, self.x, self.p, sensitivities=self.with_sensitivities)
        bad = numpy.flatnonzero(motion.not_finite | motion.not_solved | motion.not_definite)
        good = int(bad[0]) if len(bad) else len(time)
        if len(bad):
            what = STATUS[1] if motion.not_finite[good] else STATUS[2]
            what = STATUS[3] if motion.not_definite[good] else what
            self.status = f"{what} at t = {time[good]:.6g} s (sample {good})"
        self.states[:good] = motion.states[:good]
        if "output" not in self.functions.functions:
            return
        point = (self.states[:good], self.d, (), self.samples[:good, : self.inputs], self.p)
        self.outputs[:good] = self.functions.batch("output", *point)[:, :, 0]
        if self.with_sensitivities:
            by_x, by_p = (self.functions.batch(f"output_{wrt}", *point) for wrt in ("x", "p"))
            total = by_x @ motion.derivatives[:good]
            total[:, :, : len(self.p)] += by_p
            self.derivatives[:good] = total

    def record(self, k: int) -> None:
        """Update the discrete states at sample k, then write the sample down."""
        if "update" in self.functions.functions:
            before = (self.x, self.d, (), self.samples[k, : self.inputs], self.p)
            if self.with_sensitivities:
                self.d_theta = self._chain("update", before)
            self.d = self.functions.evaluate("update", *before)[:, 0]
        point = (self.x, self.d, (), self.samples[k, : self.inputs], self.p)
        self.states[k], self.discrete_states[k] = self.x, self.d
        if "output" in self.functions.functions:
            self.outputs[k] = self.functions.evaluate("output", *point)[:, 0]
            if self.with_sensitivities:
                self.derivatives[k] = self._chain("output", point)

    def _chain(self, of: str, point: tuple[ArrayLike, ...]) -> Array:
        by_x, by_d, by_p = (self.functions.evaluate(f"{of}_{wrt}", *point) for wrt in ("x", "d", "p"))
        total = by_x @ self.x_theta + by_d @ self.d_theta
        total[:, : len(self.p)] += by_p
        return total

    def advance(self, start: Array, stop: Array, length: float) -> None:
        """Advance the continuous states over one sample interval, the discrete ones held."""
        for left, right, count in self._pieces(start, stop, length):
            width = (right - left) / count
            for j in range(count):
                self._substep(start, stop, length, left + j * width, width)

    def _pieces(self, start: Array, stop: Array, length: float) -> list[tuple[float, float, int]]:
        least = self.rules.integrator.substeps
        if self.rules.crossing != "input":
            return [(0.0, 1.0, least)]
        w = [
            self.functions.evaluate(
                "crossing", self.x, self.d, (), self._input(start, stop, length, s), self.p
            )[:, 0]
            for s in (0.0, 0.5, 1.0)
        ]
        return rules.cuts(w[0], w[1], w[2], least)

    def _input(self, start: Array, stop: Array, length: float, fraction: float) -> Array:
        return self.rules.kernels["reconstruct"](start, stop, length, fraction).full()[:, 0]

    def _substep(self, start: Array, stop: Array, length: float, left: float, width: float) -> None:
        """Take a substep; where a state-dependent crossing changes sign inside it, take it in two parts."""
        if self.rules.crossing != "state":
            self._part(start, stop, length, left, width)
            return
        before = self._crossing(self.x, self._input(start, stop, length, left))
        end = self._input(start, stop, length, left + width)
        whole = self._crossing(self._trial(start, stop, length, left, width), end)
        changed = (before * whole < 0).nonzero()[0]
        if not changed.size:
            self._part(start, stop, length, left, width)
            return
        index = int(changed[0])
        share = self._locate(
            start, stop, length, left, width, index, float(before[index]), float(whole[index])
        )
        before_split = self.x
        self._part(start, stop, length, left, share * width)
        if self.with_sensitivities:
            self._jump(start, stop, length, left, width, share, index, before_split)
        self._part(start, stop, length, left + share * width, (1.0 - share) * width)

    def _jump(
        self,
        start: Array,
        stop: Array,
        length: float,
        left: float,
        width: float,
        share: float,
        index: int,
        before: Array,
    ) -> None:
        """Let the derivatives jump with the time of a crossing, where the rate jumps."""
        at = left + share * width
        u = self._input(start, stop, length, at)
        end = self._trial(start, stop, length, at, (1.0 - share) * width)
        rate = self.rules.kernels["rate"]
        rate_before, rate_after = (
            rate(self.x + rules.ASIDE * (side - self.x), self.d, u, self.p).full()[:, 0]
            for side in (before, end)
        )
        point = (self.x, self.d, (), u, self.p)
        by_x = self.functions.evaluate("crossing_x", *point)[index]
        early, late = (
            self._crossing(self.x, self._input(start, stop, length, at + side * rules.ASIDE * width))[index]
            for side in (-1.0, 1.0)
        )
        speed = (late - early) / (2.0 * rules.ASIDE * width * length) + by_x @ rate_before
        if not (speed < 0.0 or speed > 0.0):
            return
        moved = self._chain("crossing", point)[index]
        self.x_theta = self.x_theta + numpy.outer(rate_after - rate_before, moved / speed)

    def _locate(
        self,
        start: Array,
        stop: Array,
        length: float,
        left: float,
        width: float,
        index: int,
        low: float,
        high: float,
    ) -> float:
        """Return the share of the substep at which a crossing function is zero, by the Illinois method."""
        a, b, share = 0.0, 1.0, 0.5
        side = 0
        for _ in range(rules.SECANT_STEPS):
            share = (a * high - b * low) / (high - low)
            trial = self._trial(start, stop, length, left, share * width)
            value = float(
                self._crossing(trial, self._input(start, stop, length, left + share * width))[index]
            )
            if not (value > 0.0 or value < 0.0) or b - a < 1e-14:
                break
            if value * high > 0:
                b, high = share, value
                low = 0.5 * low if side == 1 else low
                side = 1
            else:
                a, low = share, value
                high = 0.5 * high if side == -1 else high
                side = -1
        return share

    def _crossing(self, x: Array, u: Array) -> Array:
        return self.functions.evaluate("crossing", x, self.d, (), u, self.p)[:, 0]

    def _nodes(self, start: Array, stop: Array, length: float, left: float, width: float) -> Array:
        nodes = self.rules.integrator.nodes
        return numpy.concatenate([self._input(start, stop, length, left + node * width) for node in nodes])

    def _trial(self, start: Array, stop: Array, length: float, left: float, width: float) -> Array:
        v = self._nodes(start, stop, length, left, width)
        return self.rules.kernels["substep"](self.x, self.d, v, self.p, length * width)[0].full()[:, 0]

    def _part(self, start: Array, stop: Array, length: float, left: float, width: float) -> None:
        v = self._nodes(start, stop, length, left, width)
        name = "substep_sensitivity" if self.with_sensitivities else "substep"
        results = [r.full() for r in self.rules.kernels[name](self.x, self.d, v, self.p, length * width)]
        if self.with_sensitivities:
            _, _, by_x, by_d, by_p = results
            self.x_theta = by_x @ self.x_theta + by_d @ self.d_theta
            self.x_theta[:, : len(self.p)] += by_p
        self.x = results[0][:, 0]
        self.indefinite = self.indefinite or results[1][0, 0] < 0.0
        self.unsolved = self.unsolved or not results[1][0, 0] <= rules.NEWTON_TOLERANCE

    def failed(self, where: str) -> bool:
        """Tell whether the last advance failed, and keep in `status` how."""
        if self.indefinite:
            self.status = f"{STATUS[3]} {where}"
        elif not (numpy.isfinite(self.x).all() and numpy.isfinite(self.d).all()):
            self.status = f"{STATUS[1]} {where}"
        elif self.unsolved:
            self.status = f"{STATUS[2]} {where}"
        return bool(self.status)
