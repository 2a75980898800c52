"""Input shapers as impulses: ZV, ZVD and EI, for one mode or several, and the vibration that they leave.

A command convolved with the impulses excites no vibration of the mode they are made for. Singer, Seering, *Preshaping
command inputs to reduce system vibration*, J. Dyn. Sys. Meas. Control 112 (1990), 76-82; Singhose, Seering, Singer,
*Residual vibration reduction using vector diagrams to generate shaped inputs*, J. Mech. Des. 116 (1994), 654-659.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mechsmith.symbolic.names import ModelError

Kind = Literal["zv", "zvd", "ei"]
KINDS: tuple[Kind, ...] = ("zv", "zvd", "ei")


@dataclass(frozen=True)
class Impulses:
    """Impulses of a shaper.

    Parameters
    ----------
    times : tuple of float
        In s, ascending from 0.
    amplitudes : tuple of float
        Their sum is 1.
    """

    times: tuple[float, ...]
    amplitudes: tuple[float, ...]

    @property
    def length(self) -> float:
        """Time of the last impulse, by which a command becomes longer, s."""
        return self.times[-1]

    @cached_property
    def pairs(self) -> tuple[tuple[float, float], ...]:
        """(time, amplitude) of each."""
        return tuple(zip(self.times, self.amplitudes, strict=True))

    def convolved(self, other: "Impulses") -> "Impulses":
        """Return both shapers one after the other, sorted by time; impulses at one time are kept apart."""
        products = sorted((s + t, a * b) for s, a in self.pairs for t, b in other.pairs)
        return Impulses(tuple(t for t, _ in products), tuple(a for _, a in products))

    def vibration(self, frequency: float, damping: float = 0.0) -> float:
        """Return the vibration that is left of a mode, relative to that after one impulse.

        Parameters
        ----------
        frequency : float
            Undamped angular frequency of the mode, rad/s.
        damping : float
            Damping ratio, from 0 to below 1.
        """
        damped = frequency * math.sqrt(1.0 - damping * damping)
        growth = [a * math.exp(damping * frequency * (t - self.length)) for t, a in self.pairs]
        cosine = sum(g * math.cos(damped * t) for g, t in zip(growth, self.times, strict=True))
        sine = sum(g * math.sin(damped * t) for g, t in zip(growth, self.times, strict=True))
        return math.hypot(cosine, sine)


def shaper(kind: Kind, frequency: float, damping: float = 0.0, *, tolerance: float = 0.05) -> Impulses:
    """Return the impulses for one mode.

    Parameters
    ----------
    kind : "zv", "zvd" or "ei"
        No vibration at the mode (two impulses); nor for small errors of its frequency (three); or at most `tolerance` of it
        over a wider range (three, extra insensitive; its form for a damped mode is that of the undamped one with every
        impulse weakened by the damping, which is exact for no damping).
    frequency : float
        Undamped angular frequency, rad/s.
    damping : float
        Damping ratio, from 0 to below 1.
    tolerance : float
        Vibration that EI allows at the mode, relative.

    Raises
    ------
    ModelError
        If the kind is unknown or a number is out of range.
    """
    if kind not in KINDS:
        raise ModelError(f"shaper: kind is {kind!r}, allowed are {', '.join(KINDS)}.")
    if not frequency > 0.0 or not 0.0 <= damping < 1.0 or not 0.0 <= tolerance < 1.0:
        raise ModelError(
            f"shaper: frequency is {frequency}, damping {damping}, tolerance {tolerance}. "
            "Frequency must be positive, the others from 0 to below 1."
        )
    root = math.sqrt(1.0 - damping * damping)
    decay, half = math.exp(-damping * math.pi / root), math.pi / (frequency * root)
    weights = {
        "zv": (1.0, decay),
        "zvd": (1.0, 2.0 * decay, decay**2),
        "ei": ((1.0 + tolerance) / 4.0, decay * (1.0 - tolerance) / 2.0, decay**2 * (1.0 + tolerance) / 4.0),
    }[kind]
    whole = sum(weights)
    return Impulses(tuple(i * half for i in range(len(weights))), tuple(w / whole for w in weights))


def shaper_for_modes(
    kind: Kind,
    frequencies: Sequence[float],
    dampings: Sequence[float] | None = None,
    *,
    tolerance: float = 0.05,
) -> Impulses:
    """Return the impulses for several modes: the shapers of each, convolved.

    Parameters
    ----------
    kind, tolerance
        As in `shaper`.
    frequencies, dampings : sequence of float
        Of each mode; no damping when not given.
    """
    ratios = [0.0] * len(frequencies) if dampings is None else list(dampings)
    result = Impulses((0.0,), (1.0,))
    for frequency, damping in zip(frequencies, ratios, strict=True):
        result = result.convolved(shaper(kind, frequency, damping, tolerance=tolerance))
    return result
