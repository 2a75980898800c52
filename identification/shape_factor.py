"""Closed-form values of the LuGre parameters from one record: a start for least squares, not an estimate.

Equations are numbered as in the source of `mechsmith.symbolic.friction.lugre`, in their corrected form.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mechsmith.identification.problem import ProblemError
from mechsmith.identification.record import Record

Array = NDArray[np.float64]

SAMPLES_IN_START = 4  # the least that the presliding regression uses of one start
FRESH_SHARE = 0.2  # least e^{-c}: below it the bristles are bent already and a start tells nothing of s0


@dataclass(frozen=True)
class LugreStart:
    """Where the closed forms look, and how (16) is truncated.

    Parameters
    ----------
    sliding_velocity : float
        Above it (17) is fitted, below it the peak (11); rad/s or m/s.
    presliding_velocity : float
        Up to it after each start from rest (16) is fitted.
    presliding_share : float
        Also only while the friction has moved by less than this share of a0 + a1: (16) is of first order.
    damping_decay : float
        vd as a multiple of v0; nothing short of least squares tells it.
    """

    sliding_velocity: float = 3.0 * np.pi / 180.0
    presliding_velocity: float = 1e-3
    presliding_share: float = 0.3
    damping_decay: float = 5.0

    def values(self, record: Record, *, velocity: str = "velocity", force: str = "force") -> dict[str, float]:
        """Return s0, s1, a0, a1, v0, vd, a2 and a3.

        Parameters
        ----------
        record : Record
            With a commanded or well measured velocity, and the friction.
        velocity, force : str
            Names of its columns.

        Raises
        ------
        ProblemError
            If the record has too few samples that slide, slow down, or start from rest after a rest or reversal.
        """
        v, friction = record[velocity], record[force]
        time = record.time
        a0, a2, a3 = self._sliding(v, friction)
        slow = friction - a0 * np.sign(v) - a2 * v - a3 * np.sign(v) * v**2
        a1, v0 = self._peak(time, v, slow)
        s0, s1 = self._presliding(time, v, friction, a0 + a1)
        return {
            "s0": s0,
            "s1": s1,
            "a0": a0,
            "a1": a1,
            "v0": v0,
            "vd": self.damping_decay * v0,
            "a2": a2,
            "a3": a3,
        }

    def _sliding(self, v: Array, friction: Array) -> tuple[float, float, float]:
        """Return a0, a2, a3 by (17)."""
        fast = np.abs(v) > self.sliding_velocity
        if np.count_nonzero(fast) < 10:
            raise ProblemError(
                f"LugreStart: {np.count_nonzero(fast)} samples are faster than {self.sliding_velocity:.4g}, 10 are needed "
                "for the sliding regression. Lower sliding_velocity or use a faster motion."
            )
        v, friction = v[fast], friction[fast]
        regressor = np.column_stack([np.sign(v), v, np.sign(v) * v**2])
        a0, a2, a3 = np.linalg.lstsq(regressor, friction, rcond=None)[0]
        return float(a0), float(a2), float(a3)

    def _peak(self, time: Array, v: Array, slow: Array) -> tuple[float, float]:
        """Return a1 and v0 by (11): only samples that slow down, where friction is nearly quasi-steady."""
        acceleration = np.gradient(v, time)
        chosen = (np.abs(v) < self.sliding_velocity) & (v * acceleration < 0.0)
        if np.count_nonzero(chosen) < 5:
            raise ProblemError(
                f"LugreStart: {np.count_nonzero(chosen)} samples slow down below {self.sliding_velocity:.4g}, 5 are needed "
                "for the Stribeck peak. Use a motion that stops more slowly."
            )
        speed, height = np.abs(v[chosen]), np.sign(v[chosen]) * slow[chosen]
        size = max(float(np.max(np.abs(height))), np.finfo(float).tiny)

        def residual(logs: Array) -> Array:
            return (np.exp(logs[0] - (speed / np.exp(logs[1])) ** 2) - height) / size

        start = np.log([size, 0.3 * self.sliding_velocity])
        found = least_squares(residual, start, x_scale=1.0).x
        return float(np.exp(found[0])), float(np.exp(found[1]))

    def _presliding(self, time: Array, v: Array, friction: Array, breakaway: float) -> tuple[float, float]:
        """Return s0 and s1 by (16) over all starts from rest, each with its e^{-c} from the friction at rest."""
        rows, targets = [], []
        for begin in np.flatnonzero((v[:-1] == 0.0) & (v[1:] != 0.0)):
            direction = np.sign(v[begin + 1])
            fresh = 1.0 - direction * friction[begin] / breakaway
            moving = slice(begin + 1, self._end_of_zone(v, direction * friction, int(begin), breakaway))
            if fresh < FRESH_SHARE or moving.stop - moving.start < SAMPLES_IN_START:
                continue
            speed = np.abs(v[begin : moving.stop])
            steps = np.diff(time[begin : moving.stop])
            x, speed = np.cumsum(0.5 * (speed[1:] + speed[:-1]) * steps), speed[1:]
            rows.append(fresh * np.column_stack([x, speed, speed * x]))
            targets.append(direction * (friction[moving] - friction[begin]))
        if not rows:
            raise ProblemError(
                "LugreStart: no start from rest tells of presliding: the record needs a move after a rest with straight "
                f"bristles or after a reversal, with {SAMPLES_IN_START} samples below {self.presliding_velocity:.4g} and "
                f"{self.presliding_share:.0%} of break-away. A restart in the same direction carries no such information."
            )
        s0, s1, _ = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets), rcond=None)[0]
        return float(s0), float(s1)

    def _end_of_zone(self, v: Array, toward: Array, begin: int, breakaway: float) -> int:
        """Return the first sample after a start that is too fast, or whose friction has moved too far, for (16)."""
        speed = np.abs(v[begin + 1 :])
        moved = np.abs(toward[begin + 1 :] - toward[begin])
        outside = (
            (speed > self.presliding_velocity) | (moved > self.presliding_share * breakaway) | (speed == 0.0)
        )
        ends = np.flatnonzero(outside)
        return begin + 1 + (int(ends[0]) if len(ends) else len(speed))
