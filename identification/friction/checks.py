"""What a motion and an encoder can tell of friction: said before a measurement is made, or of a record that exists."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.excitation import Trajectory
from mechsmith.identification.friction.shape_regressions import (
    LEAST_PEAK,
    LEAST_SLIDING,
    Windows,
    starts_from_rest,
)
from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.record import Record
from mechsmith.identification.uncertainty import Uncertainty, precision

if TYPE_CHECKING:
    from mechsmith.codegen.simulator import Simulator

Array = NDArray[np.float64]
Kind = Literal["sliding", "peak", "presliding", "restart", "encoder", "sign", "unit"]

SAMPLES_IN_ZONE = 4  # of a start, for the coefficients of (16)
COUNTS_IN_ZONE = (
    10  # of velocity resolution over the hysteresis zone, for a differenced encoder to resolve it well
)


@dataclass(frozen=True)
class Finding:
    """Something that a motion or an encoder can't tell.

    Parameters
    ----------
    kind : str
        What it is about.
    severe : bool
        Whether parameters can't be found at all, rather than worse.
    parameters : tuple of str
        Which suffer.
    message : str
        The reason and what to do.
    """

    kind: Kind
    severe: bool
    parameters: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{'error' if self.severe else 'note'} ({', '.join(self.parameters)}): {self.message}"


@dataclass(frozen=True)
class Encoder:
    """An incremental encoder.

    Parameters
    ----------
    bits : int
        Counts of a turn are 2^bits.
    gear : float
        Turns of the encoder for one turn of the joint: 1 on the joint, the gear ratio on the motor.
    """

    bits: int
    gear: float = 1.0

    def __post_init__(self) -> None:
        if not (1 <= self.bits <= 64 and math.isfinite(self.gear) and self.gear > 0.0):
            raise ProblemError(
                f"encoder: bits is {self.bits}, gear {self.gear}; allowed are 1 to 64 and a positive number."
            )

    @property
    def resolution(self) -> float:
        """One count as an angle of the joint, rad."""
        return 2.0 * math.pi / (2.0**self.bits * self.gear)

    def read(self, position: Array) -> Array:
        """Return positions as the encoder shows them, rounded to counts."""
        return np.asarray(np.rint(position / self.resolution) * self.resolution)


def check_motion(velocity: Array, time: Array, *, windows: Windows | None = None) -> tuple[Finding, ...]:
    """Return what a motion can't tell of LuGre friction, from its velocity alone.

    Parameters
    ----------
    velocity : array
        Commanded, shape (n,), exactly 0 at rest; rad/s or m/s.
    time : array
        s.
    windows : Windows, optional
        Where the regressions look.
    """
    windows = windows or Windows()
    findings = []
    speed = np.abs(velocity)
    sliding = int(np.count_nonzero(speed > windows.sliding_velocity))
    if sliding < LEAST_SLIDING:
        findings.append(
            Finding(
                "sliding",
                True,
                ("a0", "a2", "a3"),
                f"{sliding} samples are faster than {windows.sliding_velocity:.3g}; {LEAST_SLIDING} are needed. Move faster.",
            )
        )
    slowing = (speed < windows.sliding_velocity) & (velocity * np.gradient(velocity, time) < 0.0)
    if np.count_nonzero(slowing) < LEAST_PEAK:
        findings.append(
            Finding(
                "peak",
                True,
                ("a1", "v0"),
                f"{np.count_nonzero(slowing)} samples slow down below {windows.sliding_velocity:.3g}; {LEAST_PEAK} are needed. "
                "Let a move end at rest with a lower jerk.",
            )
        )
    return (*findings, *_presliding(velocity, time, windows))


def _presliding(velocity: Array, time: Array, windows: Windows) -> list[Finding]:
    """Return the restarts in the same direction, and whether any start tells of the bristles."""
    findings, telling = [], 0
    for start in starts_from_rest(velocity, windows.presliding_velocity):
        before = velocity[: start.rest]
        moved = np.flatnonzero(before)
        if len(moved) and np.sign(before[moved[-1]]) == start.direction:
            findings.append(
                Finding(
                    "restart",
                    False,
                    ("s0", "s1"),
                    f"the start at t = {time[start.rest]:.4g} s goes on in the direction of the motion before: the bristles are "
                    "bent already (e^-c = 0), so it carries no presliding information. Reverse instead.",
                )
            )
        elif start.stop - start.rest - 1 >= SAMPLES_IN_ZONE:
            telling += 1
    if not telling:
        findings.append(
            Finding(
                "presliding",
                True,
                ("s0", "s1", "vd"),
                f"no start from rest, fresh or after a reversal, has {SAMPLES_IN_ZONE} samples up to "
                f"{windows.presliding_velocity:.3g}. Add a reversal with a dwell, lower the jerk, or sample faster.",
            )
        )
    return findings


def check_encoder(
    resolution: float, period: float, *, windows: Windows | None = None, what: str = "the encoder"
) -> tuple[Finding, ...]:
    """Return whether differencing positions of a resolution resolves the hysteresis zone.

    Parameters
    ----------
    resolution : float
        One count, rad or m; `Encoder.resolution`, or `position_resolution` of a record. 0 is exact.
    period : float
        Between samples, s.
    windows : Windows, optional
        With the hysteresis zone.
    what : str
        Name of the encoder in the message.
    """
    zone = (windows or Windows()).presliding_velocity
    step = resolution / period
    if step * COUNTS_IN_ZONE <= zone:
        return ()
    severe = step > zone
    verb = "can't resolve" if severe else "hardly resolves"
    message = (
        f"differencing {what} {verb} presliding: one count of {resolution:.3g} in {period:.3g} s is {step:.2g} per s, the "
        f"hysteresis zone ends at {zone:.2g}. Drive the model with the commanded trajectory or with a motor-side encoder."
    )
    return (Finding("encoder", severe, ("s0", "s1", "vd"), message),)


def position_resolution(position: Array) -> float:
    """Return one count of a quantised position, in its unit, or 0 where it is not quantised.

    The smallest step is a count if every other is a whole multiple of it. An encoder whose reading never changes
    by a single count is taken for a coarser one.
    """
    steps = np.abs(np.diff(position))
    scale = float(np.max(np.abs(position), initial=0.0))
    steps = steps[steps > 1e-12 * scale]
    if len(steps) < 10:
        return 0.0
    count = float(np.min(steps))
    multiples = steps / count
    # the smallest step itself is rounded: refine it by the sum of all steps before they are judged
    count = float(np.sum(steps) / np.sum(np.rint(multiples)))
    multiples = steps / count
    whole = np.abs(multiples - np.rint(multiples)) < 1e-3
    return count if bool(whole.all()) else 0.0


def check_record(
    record: Record,
    *,
    velocity: str = "velocity",
    encoder_position: str | None = None,
    windows: Windows | None = None,
) -> tuple[Finding, ...]:
    """Return what a record can't tell of LuGre friction.

    Parameters
    ----------
    record : Record
        With the velocity that drives the model.
    velocity : str
        Its column: commanded, or differenced.
    encoder_position : str, optional
        Column of a measured position that the velocity was differenced from, whose counts are looked for.
    windows : Windows, optional
        Where the regressions look.
    """
    findings = check_motion(record[velocity], record.time, windows=windows)
    if encoder_position is None:
        return findings
    count = position_resolution(record[encoder_position])
    found = check_encoder(
        count, record.sample_period, windows=windows, what=f"the position {encoder_position!r}"
    )
    return (*findings, *found)


@dataclass(frozen=True)
class Forecast:
    """How well a motion will determine each parameter, before it is measured.

    Parameters
    ----------
    names : tuple of str
        Free parameters.
    deviations : tuple of float
        Relative standard deviations of the Cramer-Rao bound; infinite in a null direction.
    undetermined : tuple of str
        Parameters whose interval will be open to infinity.
    """

    names: tuple[str, ...]
    deviations: tuple[float, ...]
    undetermined: tuple[str, ...]

    def table(self) -> str:
        """Return the deviations as text for reading."""
        lines = []
        for name, deviation in zip(self.names, self.deviations, strict=True):
            told = (
                "undetermined: open to infinity"
                if name in self.undetermined
                else f"+- {100.0 * deviation:.3g} %"
            )
            lines.append(f"{name:>12}  {told}")
        return "\n".join(lines)


def planned_record(
    simulator: "Simulator", trajectory: Trajectory, values: Mapping[str, float], *, period: float = 1e-3
) -> Record:
    """Return the record that a motion would give without noise, with the columns position, velocity and force."""
    labels = simulator.functions.labels("p")
    unit = simulator.functions.units("y")[0]
    record = trajectory.record(period, motion="rotary" if unit == "N*m" else "linear", source="planned")
    missing = [name for name in labels if name not in values]
    if missing:
        raise ProblemError(
            f"planned_record: no value for {', '.join(missing)}. Give values={{name: value}} for all."
        )
    samples = np.column_stack([record[name] for name in simulator.samples])
    states = np.zeros(simulator.functions.size("x")), np.zeros(simulator.functions.size("d"))
    motion = simulator.rollout(record.time, samples, *states, np.array([values[name] for name in labels]))
    if motion.status:
        raise ProblemError(f"planned_record: the simulation failed: {motion.status}.")
    columns = {name: (record[name], record.units[name]) for name in record.columns}
    return Record.from_arrays(
        record.time, {**columns, "force": (motion.outputs[:, 0], unit)}, source="planned"
    )


def forecast(problem: Problem, values: Mapping[str, float]) -> Forecast:
    """Return how well a problem will determine its parameters where they have given values.

    Parameters
    ----------
    problem : Problem
        With a planned or measured record; its residual holds the noise, which is taken as known.
    values : mapping of name to float
        Expected parameters.

    Raises
    ------
    ProblemError
        If the residual has no noise.
    """
    if not problem.comparison.noise_given:
        raise ProblemError(
            "forecast: it depends on the noise: give noise={output: deviation} to the residual."
        )
    vector = problem.start_vector(values)
    found = precision(problem, vector, Uncertainty(known_noise=True))
    deviations = np.sqrt(np.diag(found.covariance_white)) / np.abs(vector)
    return Forecast(problem.names, tuple(map(float, deviations)), found.undetermined)
