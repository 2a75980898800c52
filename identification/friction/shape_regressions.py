"""The regressions of the LuGre source on samples of a motion: (17) while sliding, (11) at the peak, (16) before sliding.

Arrays are of the samples, shape (n,), with velocities in rad/s or m/s and friction in N*m or N.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mechsmith.identification.problem import ProblemError

Array = NDArray[np.float64]

LEAST_SLIDING = 10  # samples for the three coefficients of (17)
LEAST_PEAK = 5  # samples for the two of (11)


@dataclass(frozen=True)
class Windows:
    """Where the regressions look.

    Parameters
    ----------
    sliding_velocity : float
        Above it (17) is fitted, below it the peak (11); rad/s or m/s.
    presliding_velocity : float
        The hysteresis zone: up to it after each start from rest (16) is fitted.
    """

    sliding_velocity: float = 3.0 * math.pi / 180.0
    presliding_velocity: float = 1e-3

    def __post_init__(self) -> None:
        if not 0.0 < self.presliding_velocity < self.sliding_velocity:
            raise ProblemError(
                f"windows: presliding_velocity is {self.presliding_velocity}, sliding_velocity {self.sliding_velocity}; "
                "0 < presliding < sliding is needed."
            )


@dataclass(frozen=True)
class Start:
    """A start from rest.

    Parameters
    ----------
    rest, stop : int
        The last sample at rest, and the one after the last in the hysteresis zone.
    direction : float
        Sign of the motion that begins.
    """

    rest: int
    stop: int
    direction: float


def sliding_regression(velocity: Array, friction: Array, window: float) -> tuple[float, float, float]:
    """Return a0, a2, a3 by (17): least squares on [sgn v, v, sgn(v) v^2] for |v| above a window.

    Raises
    ------
    ProblemError
        If fewer than 10 samples are that fast.
    """
    fast = np.abs(velocity) > window
    if np.count_nonzero(fast) < LEAST_SLIDING:
        raise ProblemError(
            f"sliding regression: {np.count_nonzero(fast)} samples are faster than {window:.4g}, {LEAST_SLIDING} are "
            "needed. Lower sliding_velocity or use a faster motion."
        )
    v = velocity[fast]
    regressor = np.column_stack([np.sign(v), v, np.sign(v) * v**2])
    a0, a2, a3 = np.linalg.lstsq(regressor, friction[fast], rcond=None)[0]
    return float(a0), float(a2), float(a3)


def coulomb_viscous(velocity: Array, a0: float, a2: float, a3: float) -> Array:
    """Return (6), the friction without bristles and peak."""
    return np.asarray(a0 * np.sign(velocity) + a2 * velocity + a3 * np.sign(velocity) * velocity**2)


def stribeck_shape(
    velocity: Array,
    acceleration: Array,
    excess: Array,
    window: float,
    *,
    start: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Return a and b of (11), sgn(v) f_S = a exp(-(v/b)^2), over samples below a window that slow down.

    They are shape factors: biased estimates of a1 and v0.

    Parameters
    ----------
    velocity, acceleration, excess : array
        `excess` is f_S of (10), the friction less (6).
    window : float
        Largest |v|.
    start : tuple of float, optional
        a and b to begin from.

    Raises
    ------
    ProblemError
        If fewer than 5 samples slow down there.
    """
    chosen = (np.abs(velocity) < window) & (velocity * acceleration < 0.0)
    if np.count_nonzero(chosen) < LEAST_PEAK:
        raise ProblemError(
            f"Stribeck peak: {np.count_nonzero(chosen)} samples slow down below {window:.4g}, {LEAST_PEAK} are needed. "
            "Use a motion that stops more slowly, or a higher sliding_velocity."
        )
    speed, height = np.abs(velocity[chosen]), np.sign(velocity[chosen]) * excess[chosen]
    size = max(float(np.max(np.abs(height))), float(np.finfo(float).tiny))
    a, b = start or (size, 0.3 * window)

    def residual(logs: Array) -> Array:
        return np.asarray((np.exp(logs[0] - (speed / np.exp(logs[1])) ** 2) - height) / size)

    found = least_squares(residual, np.log([a, b]), x_scale=1.0, xtol=1e-14, ftol=1e-14, gtol=1e-14).x
    return float(np.exp(found[0])), float(np.exp(found[1]))


def starts_from_rest(velocity: Array, window: float) -> tuple[Start, ...]:
    """Return the starts from rest with their samples up to |v| <= window; a start that leaves at once has none."""
    found = []
    for rest in np.flatnonzero((velocity[:-1] == 0.0) & (velocity[1:] != 0.0)):
        after = velocity[rest + 1 :]
        outside = np.flatnonzero((np.abs(after) > window) | (np.sign(after) != np.sign(after[0])))
        count = int(outside[0]) if len(outside) else len(after)
        if count:
            found.append(Start(int(rest), int(rest) + 1 + count, float(np.sign(after[0]))))
    return tuple(found)


def presliding_rows(start: Start, position: Array, velocity: Array) -> Array:
    """Return the regressor [1, x, |v|, |v| x] of (16) over a start, the sample at rest included, shape (k, 4)."""
    samples = slice(start.rest, start.stop)
    x = start.direction * (position[samples] - position[start.rest])
    speed = np.abs(velocity[samples])
    return np.column_stack([np.ones_like(x), x, speed, speed * x])


def presliding_regression(start: Start, position: Array, velocity: Array, friction: Array) -> Array:
    """Return the coefficients of [1, x, |v|, |v| x] over a start, with the friction along the motion, shape (4,)."""
    rows = presliding_rows(start, position, velocity)
    size = np.linalg.norm(rows, axis=0)
    size[size == 0.0] = 1.0
    found = np.linalg.lstsq(rows / size, start.direction * friction[start.rest : start.stop], rcond=None)[0]
    return np.asarray(found / size)


def freshness(start: Start, friction: Array, breakaway: float) -> float:
    """Return e^{-c} = 1 - s0 z0 / g of a start: 1 with straight bristles, 2 after a reversal, 0 in the same direction.

    Measured as 1 - dir F(rest) / (a0 + a1); `breakaway` is a0 + a1.
    """
    return float(1.0 - start.direction * friction[start.rest] / breakaway)
