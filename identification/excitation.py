"""Motions that excite friction: jerk-limited moves and dwells, exact in position, velocity, acceleration and jerk.

A move has seven segments of constant jerk: it begins and ends at rest without acceleration, so bristles bend
slowly at every start and the friction is nearly quasi-steady at every stop. Several moves make a `Trajectory`.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechsmith.identification.record import Record

Array = NDArray[np.float64]


class ExcitationError(ValueError):
    """A plan of motion that can't be carried out. The message names the part and what is allowed."""


@dataclass(frozen=True)
class Dwell:
    """A rest.

    Parameters
    ----------
    duration : float
        s.
    """

    duration: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.duration) and self.duration > 0.0):
            raise ExcitationError(f"dwell: duration is {self.duration}; it must be positive and finite, s.")

    def segments(self) -> tuple[tuple[float, float], ...]:
        """Return the duration (s) and jerk of each segment."""
        return ((self.duration, 0.0),)


@dataclass(frozen=True)
class Move:
    """A move from rest to rest in seven segments of constant jerk.

    Limits that the distance is too short for are not reached: the acceleration gives way first, then the velocity.
    Biagiotti, Melchiorri, *Trajectory Planning for Automatic Machines and Robots* (2008), section 3.4.

    Parameters
    ----------
    distance : float
        With its sign; rad or m.
    velocity, acceleration, jerk : float
        Limits, positive; per s, s^2, s^3.
    """

    distance: float
    velocity: float
    acceleration: float
    jerk: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.distance) or self.distance == 0.0:
            raise ExcitationError(
                f"move: distance is {self.distance}; it must be finite and not 0. Use Dwell to rest."
            )
        for name in ("velocity", "acceleration", "jerk"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ExcitationError(f"move: {name} is {value}; it must be positive and finite.")

    @cached_property
    def reached(self) -> tuple[float, float]:
        """Velocity and acceleration that are reached, positive."""
        velocity, jerk, distance = self.velocity, self.jerk, abs(self.distance)
        acceleration = min(self.acceleration, math.sqrt(velocity * jerk))
        if velocity * (velocity / acceleration + acceleration / jerk) <= distance:
            return velocity, acceleration
        acceleration = min(self.acceleration, math.cbrt(0.5 * distance * jerk**2))
        ramp = acceleration**2 / jerk
        # the larger root of V^2 / A + V A / J = D, written without cancellation
        velocity = 2.0 * acceleration * distance / (ramp + math.sqrt(ramp**2 + 4.0 * acceleration * distance))
        return velocity, acceleration

    def segments(self) -> tuple[tuple[float, float], ...]:
        """Return the duration (s) and jerk of each segment; those of no duration are left out."""
        velocity, acceleration = self.reached
        jerk = math.copysign(self.jerk, self.distance)
        ramp = acceleration / self.jerk
        flat = max(velocity / acceleration - ramp, 0.0)
        cruise = max(abs(self.distance) / velocity - velocity / acceleration - ramp, 0.0)
        # durations that only rounding makes are none
        least = 1e-12 * (ramp + cruise)
        whole = (
            (ramp, jerk),
            (flat, 0.0),
            (ramp, -jerk),
            (cruise, 0.0),
            (ramp, -jerk),
            (flat, 0.0),
            (ramp, jerk),
        )
        return tuple((duration, value) for duration, value in whole if duration > least)


class Motion(NamedTuple):
    """Position, velocity, acceleration and jerk, each of the shape of the times asked for."""

    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array


@dataclass(frozen=True)
class Trajectory:
    """Moves and dwells one after another.

    Parameters
    ----------
    parts : tuple of Move or Dwell
        In order.
    start : float
        Position at time 0; rad or m.
    """

    parts: tuple[Move | Dwell, ...]
    start: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise ExcitationError("trajectory: there are no parts. Give at least one Move or Dwell.")

    @classmethod
    def from_plan(cls, plan: Sequence[Sequence[str | float]], *, start: float = 0.0) -> "Trajectory":
        """Return the trajectory of rows ``("move", distance, velocity, acceleration, jerk)`` and ``("dwell", duration)``."""
        parts: list[Move | Dwell] = []
        for i, (kind, *numbers) in enumerate(plan):
            expected = {"move": 4, "dwell": 1}.get(str(kind))
            if expected != len(numbers):
                raise ExcitationError(
                    f"plan: row {i} (from 0) is {[kind, *numbers]}; allowed are ('move', distance, velocity, acceleration, "
                    "jerk) and ('dwell', duration)."
                )
            values = [float(number) for number in numbers]
            parts.append(Move(*values) if kind == "move" else Dwell(*values))
        return cls(tuple(parts), start)

    @cached_property
    def _table(self) -> Array:
        """Of each segment: start time, and position, velocity, acceleration and jerk there; then the end's row."""
        rows, at, position = [], 0.0, self.start
        for part in self.parts:
            inside = np.array([position, 0.0, 0.0])
            for duration, jerk in part.segments():
                rows.append([at, *inside, jerk])
                inside = _after(inside, jerk, np.asarray(duration))[:, 0]
                at += duration
            # each part begins exactly where the last one was to end, at rest
            position += part.distance if isinstance(part, Move) else 0.0
        rows.append([at, position, 0.0, 0.0, 0.0])
        return np.array(rows)

    @property
    def duration(self) -> float:
        """s."""
        return float(self._table[-1, 0])

    @cached_property
    def breakpoints(self) -> Array:
        """Times at which the jerk may jump, the ends included, s."""
        return self._table[:, 0]

    @cached_property
    def standstills(self) -> tuple[tuple[float, float], ...]:
        """Begin and end of each dwell, and each other instant of rest, twice: before, between and after moves; s."""
        found: list[tuple[float, float]] = []
        at = 0.0
        for before, part in itertools.pairwise((None, *self.parts)):
            length = sum(duration for duration, _ in part.segments()) if part else 0.0
            if isinstance(part, Dwell):
                found.append((at, at + length))
            elif not isinstance(before, Dwell):
                found.append((at, at))
            at += length
        if isinstance(self.parts[-1], Move):
            found.append((at, at))
        return tuple(found)

    def at(self, time: ArrayLike) -> Motion:
        """Return the motion at times; before the start and after the end it rests.

        Exactly at a breakpoint the jerk is that of the segment which begins there.
        """
        times = np.asarray(time, dtype=float)
        flat = np.clip(times.reshape(-1), 0.0, self.duration)
        place = np.clip(np.searchsorted(self.breakpoints, flat, side="right") - 1, 0, len(self._table) - 1)
        rows = self._table[place]
        values = _after(rows[:, 1:4].T, rows[:, 4], flat - rows[:, 0])
        return Motion(*(each.reshape(times.shape) for each in (*values, rows[:, 4])))

    def times(self, period: float) -> Array:
        """Return the sample times k * period from 0 to the end, shape (n,)."""
        if not 0.0 < period <= self.duration:
            raise ExcitationError(
                f"trajectory: period is {period}; allowed is above 0 up to the duration {self.duration:.6g} s."
            )
        count = math.floor(self.duration / period * (1.0 + 1e-12)) + 1
        return np.arange(count, dtype=np.float64) * period

    def refined(
        self, period: float, *, first: float = 1e-6, growth: float = 1.15
    ) -> tuple[Array, NDArray[np.intp]]:
        """Return times for a simulation of stiff friction, and the places of the sample times among them.

        Around each begin and end of a rest the grid begins with the step `first` (s) and grows by the factor `growth`
        until it reaches the sample period; breakpoints are in it too, so that no step straddles a jump of the jerk.
        """
        if not (0.0 < first < period and growth > 1.0):
            raise ExcitationError(
                f"trajectory: refined: first is {first}, growth {growth}; allowed are 0 < first < period, growth > 1."
            )
        samples = self.times(period)
        count = math.ceil(math.log(period / first) / math.log(growth))
        away = first * (growth ** np.arange(1, count + 1) - 1.0) / (growth - 1.0)
        ends = np.unique(np.array(self.standstills).reshape(-1))
        near = (ends[:, None] + np.concatenate([-away[::-1], [0.0], away])).reshape(-1)
        extra = np.concatenate([near, self.breakpoints])
        extra = extra[(extra > 0.0) & (extra < samples[-1])]
        # what falls on a sample, to rounding, is that sample
        nearest = samples[np.clip(np.rint(extra / period).astype(int), 0, len(samples) - 1)]
        extra = extra[np.abs(extra - nearest) > 1e-3 * first]
        times = np.unique(np.concatenate([samples, extra]))
        kept = np.concatenate([[True], np.diff(times) > 1e-3 * first]) | np.isin(times, samples)
        times = times[kept]
        return np.asarray(times, dtype=np.float64), np.searchsorted(times, samples)

    def record(self, period: float, *, motion: str = "rotary", source: str = "trajectory") -> Record:
        """Return the commanded motion as a record with the columns position, velocity, acceleration and jerk.

        Parameters
        ----------
        period : float
            s.
        motion : "rotary" or "linear"
            Whether positions are rad or m.
        source : str
            Of the record.
        """
        unit = {"rotary": "rad", "linear": "m"}.get(motion)
        if unit is None:
            raise ExcitationError(f"trajectory: motion is {motion!r}; allowed are 'rotary' and 'linear'.")
        time = self.times(period)
        units = (unit, f"{unit}/s", f"{unit}/s^2", f"{unit}/s^3")
        columns = dict(zip(Motion._fields, zip(self.at(time), units, strict=True), strict=True))
        return Record.from_arrays(time, columns, source=source)


def _after(start: Array, jerk: ArrayLike, time: Array) -> Array:
    """Return position, velocity and acceleration, (3, n), a time after `start` (3,) or (3, n) under constant jerk."""
    position, velocity, acceleration = np.reshape(start, (3, -1))
    t, j = np.atleast_1d(time), np.atleast_1d(np.asarray(jerk, dtype=float))
    return np.stack(
        [
            position + t * (velocity + t * (acceleration / 2.0 + t * j / 6.0)),
            velocity + t * (acceleration + t * j / 2.0),
            acceleration + t * j,
        ]
    )
