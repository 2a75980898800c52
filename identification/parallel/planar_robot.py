"""Paths, records and comparisons for the planar robot with three 2R chains: the published experiments, simulated.

The models are those of `mechsmith.symbolic.parallel`; they come as functions, lowered, generated or compiled.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.problem import ProblemError
from mechsmith.identification.record import Record

Array = NDArray[np.float64]
CHAINS = (1, 2, 3)
CENTER = (0.29, 0.25)  # m, of the published circle
RADIUS = 0.04  # m
# Corners of the published path, m: A, B, C, D, then back over C, B, D to A. Its diagonals make it a star.
PUBLISHED_PATH = tuple(
    {"A": (0.244, 0.286), "B": (0.343, 0.21), "C": (0.343, 0.286), "D": (0.244, 0.21)}[corner]
    for corner in "ABCDCBDA"
)


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of the platform's point: position (n, 2), m, velocity, m/s, and acceleration, m/s^2, at times (n,), s."""

    time: Array
    position: Array
    velocity: Array
    acceleration: Array

    def joined(self, other: "Motion") -> "Motion":
        """Return both, one after the other."""
        step = self.time[1] - self.time[0]
        return Motion(
            np.concatenate([self.time, self.time[-1] + step + other.time - other.time[0]]),
            np.vstack([self.position, other.position]),
            np.vstack([self.velocity, other.velocity]),
            np.vstack([self.acceleration, other.acceleration]),
        )


def circle(
    radius: float = RADIUS, speed: float = 0.2, count: int = 100, center: ArrayLike = CENTER
) -> Motion:
    """Return one turn on a circle at constant speed, `count` points without the end."""
    angle = 2.0 * np.pi * np.arange(count) / count
    along = np.column_stack([np.cos(angle), np.sin(angle)])
    across = np.column_stack([-np.sin(angle), np.cos(angle)])
    return Motion(
        angle * radius / speed,
        np.asarray(center, dtype=float) + radius * along,
        speed * across,
        -(speed**2) / radius * along,
    )


def polyline(corners: Sequence[tuple[float, float]], per_segment: int) -> Array:
    """Return points on straight lines between corners, `per_segment` on each and the last corner, (n, 2)."""
    share = np.arange(per_segment)[:, None] / per_segment
    ends = np.asarray(corners, dtype=float)
    parts = [a + share * (b - a) for a, b in itertools.pairwise(ends)]
    return np.vstack([*parts, ends[-1:]])


def stop_and_go(corners: Sequence[tuple[float, float]], speed: float, per_segment: int) -> Motion:
    """Return straight lines with rest at each corner, along a polynomial of fifth degree; `speed` is the greatest, m/s."""
    tau = (np.arange(per_segment) + 0.5) / per_segment
    place = tau**3 * (10.0 - 15.0 * tau + 6.0 * tau**2)
    rate = 30.0 * tau**2 * (1.0 - tau) ** 2
    second = 60.0 * tau * (1.0 - 3.0 * tau + 2.0 * tau**2)
    result: Motion | None = None
    for begin, end in zip(np.asarray(corners[:-1]), np.asarray(corners[1:]), strict=True):
        # The polynomial's rate is 15/8 at its greatest.
        duration = 1.875 * float(np.linalg.norm(end - begin)) / speed
        part = Motion(
            duration * tau,
            begin + place[:, None] * (end - begin),
            rate[:, None] * (end - begin) / duration,
            second[:, None] * (end - begin) / duration**2,
        )
        result = part if result is None else result.joined(part)
    if result is None:
        raise ProblemError("stop_and_go: give at least two corners.")
    return result


def grid(spacing: float, *, margin: float, reach: float = 0.488) -> Array:
    """Return the points of a square grid that every base reaches with a margin (m) to the end of its reach, (n, 2)."""
    bases = np.array([[0.0, 0.25], [0.433, 0.0], [0.433, 0.5]])
    axis_x, axis_y = np.arange(0.0, 0.5, spacing), np.arange(0.0, 0.5, spacing)
    points = np.array([[x, y] for x in axis_x for y in axis_y])
    distance = np.linalg.norm(points[:, None, :] - bases, axis=2)
    return points[(distance <= reach - margin).all(axis=1)]


def lengths(values: Mapping[str, float]) -> dict[str, float]:
    """Return bases, driven and distal links, m, from the parameters of the calibration, (8.21)."""
    result = {name: value for name, value in values.items() if name.startswith(("base_", "distal_"))}
    for i in CHAINS:
        result[f"arm_{i}"] = float(np.hypot(values[f"arm_cos_{i}"], values[f"arm_sin_{i}"]))
    return result


def offsets(values: Mapping[str, float]) -> Array:
    """Return the offsets of the sensors, rad, from the parameters of the calibration, (8.21): shape (3,)."""
    return np.array([np.arctan2(values[f"arm_sin_{i}"], values[f"arm_cos_{i}"]) for i in CHAINS])


def readings(inverse: FunctionSet, points: Array, modes: ArrayLike, values: Mapping[str, float]) -> Array:
    """Return what the sensors read without noise, rad, (n, 3).

    Parameters
    ----------
    inverse : FunctionSet
        Of `make_planar_inverse`.
    points : array
        Places of the platform's point, (n, 2).
    modes : array
        Signs of the chains, (3,) or (n, 3).
    values : mapping of name to float
        Parameters of the calibration.
    """
    signs = np.broadcast_to(np.asarray(modes, dtype=float), (len(points), 3))
    u = np.column_stack([points, signs])
    angles = inverse.batch("output", u=u, p=inverse.vector("p", lengths(values)))[:, :3, 0]
    if not np.isfinite(angles).all():
        lost = int(np.flatnonzero(~np.isfinite(angles).all(axis=1))[0])
        raise ProblemError(f"readings: the robot does not reach point {lost}, {points[lost]}. Keep a margin.")
    return np.asarray(angles - offsets(values))


def calibration_record(angles: Array, modes: ArrayLike) -> Record:
    """Return readings (n, 3), rad, in working modes (3,) or (n, 3), as a record for both residuals of the calibration."""
    signs = np.broadcast_to(np.asarray(modes, dtype=float), angles.shape)
    columns = {f"reading_{i}": angles[:, i - 1] for i in CHAINS} | {
        f"mode_{i}": signs[:, i - 1] for i in CHAINS
    }
    units = dict.fromkeys(columns, "rad") | {f"mode_{i}": "" for i in CHAINS}
    zeros = np.zeros(len(angles))
    # What is to vanish is compared with a column of zeros.
    columns |= {"misfit": zeros, "closure_error": zeros}
    units |= {"misfit": "rad", "closure_error": "m^2"}
    return Record(np.arange(len(angles), dtype=float), columns, units, "configurations")


def aligned(values: Mapping[str, float], reference: Mapping[str, float]) -> dict[str, float]:
    """Return parameters of the calibration scaled and turned about the first base, so that the second one is the reference's.

    This similarity is what angle sensors do not see; what differs afterwards is error.
    """
    place = {i: complex(values[f"base_{i}_x"], values[f"base_{i}_y"]) for i in CHAINS}
    target = complex(reference["base_2_x"], reference["base_2_y"])
    first = complex(reference["base_1_x"], reference["base_1_y"])
    factor = (target - first) / (place[2] - place[1])
    result: dict[str, float] = {}
    for i in CHAINS:
        base = first + factor * (place[i] - place[1])
        arm = factor * complex(values[f"arm_cos_{i}"], values[f"arm_sin_{i}"])
        result |= {f"base_{i}_x": base.real, f"base_{i}_y": base.imag}
        result |= {f"arm_cos_{i}": arm.real, f"arm_sin_{i}": arm.imag}
        result[f"distal_{i}"] = abs(factor) * values[f"distal_{i}"]
    return result


def aligned_error(values: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """Return the largest error of a base's coordinate or a link's length after `aligned`, m."""
    found, true = lengths(aligned(values, reference)), lengths(reference)
    return float(max(abs(found[name] - true[name]) for name in true))


def motion_record(
    movement: Motion,
    modes: ArrayLike,
    torques: Array | None = None,
    *,
    preload: ArrayLike = 0.0,
    source: str = "motion",
) -> Record:
    """Return a motion, with measured torques (n, 3), N m, where there are any, as a record of the dynamic models.

    What is to vanish is compared with columns of zeros: `whitened_1`, `whitened_2`, `task_x`, `task_y` and `excess_i`.
    """
    n = len(movement.time)
    signs = np.broadcast_to(np.asarray(modes, dtype=float), (n, 3))
    columns: dict[str, Array] = {}
    units: dict[str, str] = {}
    parts = (
        (movement.position, "", "m"),
        (movement.velocity, "_rate", "m/s"),
        (movement.acceleration, "_acceleration", "m/s^2"),
    )
    for values, suffix, unit in parts:
        for axis in (0, 1):
            columns["xy"[axis] + suffix], units["xy"[axis] + suffix] = values[:, axis], unit
    for i in CHAINS:
        columns[f"mode_{i}"], units[f"mode_{i}"] = signs[:, i - 1], ""
        columns[f"excess_{i}"], units[f"excess_{i}"] = np.zeros(n), "N*m"
        if torques is not None:
            columns[f"torque_{i}"], units[f"torque_{i}"] = torques[:, i - 1], "N*m"
    columns["preload"], units["preload"] = (
        np.broadcast_to(np.asarray(preload, dtype=float), (n,)).copy(),
        "N*m",
    )
    for name, unit in (("whitened_1", "N*m"), ("whitened_2", "N*m"), ("task_x", "N"), ("task_y", "N")):
        columns[name], units[name] = np.zeros(n), unit
    return Record(movement.time, columns, units, source)


def torques_for(
    inverse_dynamics: FunctionSet,
    movement: Motion,
    modes: ArrayLike,
    values: Mapping[str, float],
    *,
    preload: ArrayLike = 0.0,
) -> Array:
    """Return the motors' torques for a motion, (n, 3), N m, with a preload (N m, one or n) along the internal torque."""
    n = len(movement.time)
    signs = np.broadcast_to(np.asarray(modes, dtype=float), (n, 3))
    internal = np.broadcast_to(np.asarray(preload, dtype=float), (n,))
    u = np.column_stack([movement.position, movement.velocity, movement.acceleration, signs, internal])
    known = {name: value for name, value in values.items() if name in inverse_dynamics.labels("p")}
    return np.asarray(inverse_dynamics.batch("output", u=u, p=inverse_dynamics.vector("p", known))[:, :3, 0])
