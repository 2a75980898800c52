"""Between parameters in their units and the numbers of order 1 that solvers work on.

A `Space` maps a physical vector to an internal one, element by element: apply with `internal`, invert with
`physical`. Positive parameters are logarithmic, which helps every method to find its way from a poor start; the others are
divided by a typical magnitude.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Share of the box by which a start is moved off a bound, so that gradient steps are not scaled to nothing there.
MARGIN = 1e-3
# A logarithmic parameter with lower bound 0 gets this share of its typical magnitude as its lowest value.
LOWEST = 1e-12


class TransformError(ValueError):
    """A transform that does not suit the bounds of its parameter."""


class Transform(Protocol):
    """A monotone map of one parameter, given the parameter's typical magnitude."""

    def apply(self, value: Array, magnitude: Array) -> Array:
        """Return the internal values."""

    def invert(self, internal: Array, magnitude: Array) -> Array:
        """Return the physical values."""

    def slope(self, internal: Array, magnitude: Array) -> Array:
        """Return the derivative of the physical by the internal value."""


@dataclass(frozen=True)
class Identity:
    """The value divided by its typical magnitude."""

    def apply(self, value: Array, magnitude: Array) -> Array:
        """Return value / magnitude."""
        return value / magnitude

    def invert(self, internal: Array, magnitude: Array) -> Array:
        """Return internal * magnitude."""
        return internal * magnitude

    def slope(self, internal: Array, magnitude: Array) -> Array:
        """Return the magnitude."""
        return magnitude + 0.0 * internal


@dataclass(frozen=True)
class Log:
    """The natural logarithm of the value over its typical magnitude, for positive parameters."""

    def apply(self, value: Array, magnitude: Array) -> Array:
        """Return log(value / magnitude); a value below `LOWEST` times the magnitude counts as that."""
        return np.log(np.maximum(value / magnitude, LOWEST))

    def invert(self, internal: Array, magnitude: Array) -> Array:
        """Return magnitude * exp(internal), at most exp(600) of them, which no float of use exceeds."""
        return magnitude * np.exp(np.minimum(internal, 600.0))

    def slope(self, internal: Array, magnitude: Array) -> Array:
        """Return the physical value, which is the derivative."""
        return self.invert(internal, magnitude)


def default_transform(lower: float, upper: float) -> Transform:
    """Return `Log` for a positive lower bound, else `Identity`."""
    return Log() if lower > 0.0 else Identity()


def typical_magnitude(lower: float, upper: float, nominal: float | None) -> float:
    """Return a positive number of the parameter's order: nominal within the bounds, else from the bounds, else 1."""
    if nominal and lower <= nominal <= upper:
        return abs(nominal)
    if lower > 0.0:
        return math.sqrt(lower) * math.sqrt(upper) if math.isfinite(upper) else lower
    finite = [abs(bound) for bound in (lower, upper) if math.isfinite(bound) and bound]
    return 0.5 * max(finite) if finite else 1.0


@dataclass(frozen=True, eq=False)
class Space:
    """The internal space of a vector of parameters.

    Parameters
    ----------
    names : tuple of str
        Of the elements.
    transforms : tuple of Transform
        One for each.
    magnitude, lower, upper : array
        Typical magnitudes and bounds in physical units, each of shape (n,).

    Raises
    ------
    TransformError
        If a transform does not suit the bounds.
    """

    names: tuple[str, ...]
    transforms: tuple[Transform, ...]
    magnitude: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        for name, transform, lower in zip(self.names, self.transforms, self.lower, strict=True):
            if isinstance(transform, Log) and lower < 0.0:
                raise TransformError(
                    f"parameter {name!r}: Log() needs a lower bound of 0 or more, it is {lower}. Raise it or use Identity()."
                )

    def _each(self, method: str, vector: Array) -> Array:
        result = [
            getattr(transform, method)(vector[..., i], self.magnitude[i])
            for i, transform in enumerate(self.transforms)
        ]
        return np.stack(result, axis=-1) if result else np.zeros_like(vector)

    def internal(self, vector: Array) -> Array:
        """Return the internal vector(s) of physical ones, last axis n."""
        return self._each("apply", np.asarray(vector, dtype=float))

    def physical(self, internal: Array) -> Array:
        """Return the physical vector(s), inside the bounds however rounding falls."""
        return np.clip(self._each("invert", np.asarray(internal, dtype=float)), self.lower, self.upper)

    def slopes(self, internal: Array) -> Array:
        """Return the derivatives of the physical vector by the internal one, shape (n,)."""
        return self._each("slope", np.asarray(internal, dtype=float))

    @property
    def internal_lower(self) -> Array:
        """Lower bounds of the internal vector; finite for a logarithm even where the physical one is 0."""
        return self._each("apply", self.lower)

    @property
    def internal_upper(self) -> Array:
        """Upper bounds of the internal vector."""
        return self._each("apply", self.upper)

    def inside(self, internal: Array) -> Array:
        """Return the internal vector moved off its bounds by `MARGIN` of the box (of 1 where that is infinite)."""
        lower, upper = self.internal_lower, self.internal_upper
        width = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
        margin = MARGIN * width
        return np.clip(internal, lower + margin, upper - margin)

    def random(self, rng: np.random.Generator) -> Array:
        """Return a physical vector drawn uniformly from the internal box (log-uniform where logarithmic).

        Raises
        ------
        TransformError
            If a bound is not finite; it names the parameters.
        """
        lower, upper = self.internal_lower, self.internal_upper
        open_ended = [n for n, a, b in zip(self.names, lower, upper, strict=True) if not np.isfinite(b - a)]
        if open_ended:
            raise TransformError(
                f"random starts need finite bounds; {', '.join(map(repr, open_ended))} have none. "
                "Give them in Problem(bounds={name: (lower, upper)})."
            )
        return self.physical(lower + (upper - lower) * rng.random(len(self.names)))


def make_space(
    names: Sequence[str],
    lower: Array,
    upper: Array,
    nominal: Sequence[float | None],
    transforms: Sequence[Transform | None],
) -> Space:
    """Return the space with default transforms where None is given."""
    chosen = tuple(
        transform if transform is not None else default_transform(low, high)
        for transform, low, high in zip(transforms, lower, upper, strict=True)
    )
    magnitude = [typical_magnitude(a, b, n) for a, b, n in zip(lower, upper, nominal, strict=True)]
    return Space(tuple(names), chosen, np.array(magnitude), lower, upper)
