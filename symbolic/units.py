"""Physical dimensions, and the units that pint reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import pint

from mechsmith.symbolic.names import ModelError

# Order in which base units are written, and their SI names.
_BASE_UNITS = {
    "[mass]": "kg",
    "[length]": "m",
    "[time]": "s",
    "[current]": "A",
    "[temperature]": "K",
    "[substance]": "mol",
    "[luminosity]": "cd",
}


class DimensionError(ModelError):
    """Two sides of an equation, two terms of a sum or two ends of a connection differ in dimension."""


@dataclass(frozen=True)
class Dimension:
    """A product of powers of the base dimensions.

    Parameters
    ----------
    exponents : tuple of (str, Fraction), optional
        The base dimensions, as pint names them, that have a power other than 0. None fits anything.
    """

    exponents: tuple[tuple[str, Fraction], ...] | None = ()

    def __mul__(self, other: "Dimension") -> "Dimension":
        """Return the dimension of a product."""
        if self.exponents is None or other.exponents is None:
            return ANY
        if not self.exponents or not other.exponents:
            return self if self.exponents else other
        powers = dict(self.exponents)
        for base, power in other.exponents:
            powers[base] = powers.get(base, Fraction(0)) + power
        return Dimension.of(powers)

    def __truediv__(self, other: "Dimension") -> "Dimension":
        """Return the dimension of a quotient."""
        return self * other**-1

    def __pow__(self, power: int | Fraction) -> "Dimension":
        """Return the dimension of a power."""
        if self.exponents is None:
            return ANY if power else DIMENSIONLESS
        return Dimension.of({base: exponent * power for base, exponent in self.exponents})

    @staticmethod
    def of(powers: Mapping[str, Fraction | int]) -> "Dimension":
        """Return the dimension with these powers of the base dimensions."""
        order = {base: number for number, base in enumerate(_BASE_UNITS)}
        kept = ((base, Fraction(power)) for base, power in powers.items() if power)
        return Dimension(tuple(sorted(kept, key=lambda item: (order.get(item[0], len(order)), item[0]))))

    def agrees(self, other: "Dimension") -> bool:
        """Tell whether quantities of the two dimensions may be added or compared."""
        return self.exponents is None or other.exponents is None or self.exponents == other.exponents

    def __str__(self) -> str:
        """Return it in SI base units, for instance ``kg*m^2/s^2``; ``1`` is dimensionless."""
        if self.exponents is None:
            return "any unit"
        over = [_power(base, power) for base, power in self.exponents if power > 0]
        under = [_power(base, -power) for base, power in self.exponents if power < 0]
        below = f"({'*'.join(under)})" if len(under) > 1 else "".join(under)
        return ("*".join(over) or "1") + (f"/{below}" if under else "")


ANY = Dimension(None)
DIMENSIONLESS = Dimension()
TIME = Dimension.of({"[time]": 1})


def _power(base: str, power: Fraction) -> str:
    name = _BASE_UNITS.get(base, base)
    if power == 1:
        return name
    return f"{name}^{power}" if power.denominator == 1 else f"{name}^({power})"


@lru_cache(maxsize=1)
def _registry() -> "pint.UnitRegistry[float]":
    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


@lru_cache(maxsize=4096)
def parse_sized(text: str) -> tuple[Dimension, float]:
    """Return the dimension of a unit and its size in SI base units, for instance 0.001 for ``mm``."""
    registry = _registry()
    try:
        unit = registry.parse_units(text)
        size = float(registry.Quantity(1.0, unit).to_base_units().magnitude)
    except Exception as error:  # pint raises errors of many unrelated classes on text that is no unit
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DimensionError(
            f"unit {text!r} is not known ({reason}). Write it as pint does, for instance 'N*m/rad' or 'kg*m**2'."
        ) from None
    powers = {base: Fraction(power).limit_denominator(1000) for base, power in unit.dimensionality.items()}
    return Dimension.of(powers), size


def parse_unit(text: str) -> Dimension:
    """Return the dimension of a unit written as pint does; radians are dimensionless.

    Raises
    ------
    DimensionError
        If pint knows no such unit.
    """
    return parse_sized(text)[0]
