"""Small systems that are known in closed form, written without SymPy."""

from collections.abc import Callable
from dataclasses import dataclass

import casadi
import numpy as np
import pytest
from numpy.typing import NDArray

from mechsmith.codegen.functions import CasadiEvaluator, FunctionSet, Variable, make_function
from mechsmith.codegen.simulator import Rollout, RolloutSensitivities
from mechsmith.identification import Record

Array = NDArray[np.float64]


def static_functions(
    name: str,
    inputs: tuple[Variable, ...],
    parameters: tuple[Variable, ...],
    outputs: tuple[Variable, ...],
    law: Callable[[casadi.SX, casadi.SX], casadi.SX],
    states: tuple[Variable, ...] = (),
) -> FunctionSet:
    """Return functions without equations of motion: output = law(u, p)."""
    sizes = (states, (), (), inputs, parameters)
    symbols = [casadi.SX.sym(n, len(v)) for n, v in zip("xdzup", sizes, strict=True)]
    output = make_function("output", symbols, law(symbols[3], symbols[4]))
    capabilities = frozenset({"embeddable", "derivatives"})
    evaluators = {"output": CasadiEvaluator(output)}
    return FunctionSet(name, states, (), (), inputs, parameters, outputs, evaluators, capabilities)


def make_line() -> FunctionSet:
    """Return F = mass a + viscous v + offset: linear in its parameters."""
    return static_functions(
        "line",
        (Variable("acceleration", ("m/s^2",)), Variable("velocity", ("m/s",))),
        (
            Variable("mass", ("kg",), nominal=10.0, lower=0.1, upper=1000.0),
            Variable("viscous", ("N*s/m",), nominal=5.0, lower=0.0, upper=500.0),
            Variable("offset", ("N",), nominal=0.0, lower=-100.0, upper=100.0),
        ),
        (Variable("force", ("N",)),),
        lambda u, p: p[0] * u[0] + p[1] * u[1] + p[2],
    )


def make_stribeck() -> FunctionSet:
    """Return F = sign(v) (fc + (fs - fc) exp(-(v / vs)^2)) + fv v: the fc of Stribeck's curve is below fs."""

    def law(u: casadi.SX, p: casadi.SX) -> casadi.SX:
        return casadi.sign(u) * (p[0] + (p[1] - p[0]) * casadi.exp(-((u / p[2]) ** 2))) + p[3] * u

    return static_functions(
        "stribeck",
        (Variable("velocity", ("m/s",)),),
        (
            Variable("fc", ("N",), nominal=10.0, lower=1e-3, upper=121.0),
            Variable("fs", ("N",), nominal=20.0, lower=1e-3, upper=121.0),
            Variable("vs", ("m/s",), nominal=0.05, lower=1e-3, upper=1.0),
            Variable("fv", ("N*s/m",), nominal=10.0, lower=0.0, upper=121.0),
        ),
        (Variable("friction_force", ("N",)),),
        law,
    )


@dataclass(frozen=True)
class Slider:
    """m dv/dt = F - b v with F held over each sample, solved exactly."""

    functions: FunctionSet
    samples: tuple[str, ...] = ("force",)

    def rollout(self, time: Array, samples: Array, x0: Array, d0: Array, p: Array) -> Rollout:
        found = self.rollout_sensitivities(time, samples, x0, d0, p)
        return Rollout(found.outputs, found.outputs, np.zeros((len(time), 0)), found.status)

    def rollout_sensitivities(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> RolloutSensitivities:
        mass, damping = p[:2]
        n = len(time)
        v, by_p, by_x0 = np.full((n, 1), np.nan), np.full((n, 1, len(p)), np.nan), np.full((n, 1, 1), np.nan)
        if damping > 400.0:
            return RolloutSensitivities(v, by_p, by_x0, "damping is beyond what this solver can do")
        v[0], by_p[0], by_x0[0] = x0, 0.0, 1.0
        for k in range(n - 1):
            h, force = time[k + 1] - time[k], samples[k, 0]
            a = np.exp(-damping * h / mass)
            by_mass, by_damping = a * damping * h / mass**2, -a * h / mass
            v[k + 1] = a * v[k] + (1.0 - a) * force / damping
            by_p[k + 1] = a * by_p[k]
            by_p[k + 1, 0, 0] += by_mass * (v[k, 0] - force / damping)
            by_p[k + 1, 0, 1] += by_damping * (v[k, 0] - force / damping) - (1.0 - a) * force / damping**2
            by_x0[k + 1] = a * by_x0[k]
        return RolloutSensitivities(v, by_p, by_x0, "")

    def rollout_batch(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> tuple[Array, tuple[str, ...]]:
        starts = np.broadcast_to(x0, (len(p), x0.shape[-1]))
        motions = [self.rollout(time, samples, start, d0, row) for start, row in zip(starts, p, strict=True)]
        return np.stack([m.outputs for m in motions]), tuple(m.status for m in motions)


def make_slider() -> Slider:
    """Return the slider; its third parameter is without effect."""
    functions = static_functions(
        "slider",
        (Variable("force", ("N",)),),
        (
            Variable("mass", ("kg",), nominal=20.0, lower=1.0, upper=500.0),
            Variable("damping", ("N*s/m",), nominal=30.0, lower=1.0, upper=2000.0),
            Variable("idle", ("1",), nominal=1.0, lower=0.0, upper=2.0),
        ),
        (Variable("speed", ("m/s",)),),
        lambda u, p: u,
        states=(Variable("velocity", ("m/s",)),),
    )
    return Slider(functions)


def signals(n: int = 400, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return time, a velocity of both signs and its derivative."""
    rng = np.random.default_rng(seed)
    time = np.arange(n) * 0.01
    frequencies, phases = np.array([0.5, 1.3, 2.9]), rng.uniform(0.0, 6.0, 3)
    angles = 2.0 * np.pi * frequencies * time[:, None] + phases
    amplitudes = np.array([0.3, 0.15, 0.05])
    velocity = np.sin(angles) @ amplitudes
    return time, velocity, np.cos(angles) @ (amplitudes * 2.0 * np.pi * frequencies)


def line_record(
    mass: float = 12.0, viscous: float = 7.0, offset: float = -1.5, *, noise: float = 0.0, seed: int = 0
) -> Record:
    """Return a record of the line with those parameters."""
    time, velocity, acceleration = signals(seed=seed)
    force = mass * acceleration + viscous * velocity + offset
    force = force + noise * np.random.default_rng(seed + 1000).standard_normal(len(time))
    columns = {"acceleration": (acceleration, "m/s^2"), "velocity": (velocity, "m/s"), "force": (force, "N")}
    return Record.from_arrays(time, columns, source=f"line {seed}")


def stribeck_record(parameters: Array, *, noise: float = 0.0) -> Record:
    """Return a record of Stribeck's curve."""
    time, velocity, _ = signals()
    force = make_stribeck().batch("output", u=velocity[:, None], p=parameters)[:, 0, 0]
    force = force + noise * np.random.default_rng(1).standard_normal(len(time))
    columns = {"velocity": (velocity, "m/s"), "friction_force": (force, "N")}
    return Record.from_arrays(time, columns, source="stribeck")


def slider_record(
    mass: float, damping: float, start: float = 0.0, *, delay: int = 0, seed: int = 0
) -> Record:
    """Return a record of the slider; the force that is recorded comes `delay` samples before it acts."""
    time, force, _ = signals(300, seed=seed)
    force = 100.0 * force
    acting = np.concatenate([np.full(delay, force[0]), force[: len(force) - delay]])
    p = np.array([mass, damping, 1.0])
    speed = make_slider().rollout(time, acting[:, None], np.array([start]), np.zeros(0), p).outputs[:, 0]
    columns = {"force": (force, "N"), "speed": (speed, "m/s"), "velocity": (speed, "m/s")}
    return Record.from_arrays(time, columns, source=f"slider {seed}")


@dataclass(frozen=True)
class Systems:
    """The systems and what records them."""

    line: FunctionSet
    stribeck: FunctionSet
    slider: Slider
    line_record: Callable[..., Record] = line_record
    stribeck_record: Callable[..., Record] = stribeck_record
    slider_record: Callable[..., Record] = slider_record


@pytest.fixture(scope="session")
def systems() -> Systems:
    return Systems(make_line(), make_stribeck(), make_slider())
