"""Units at the border: what a file or a user gives is brought to SI here, and nowhere else."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pint


class UnitError(ValueError):
    """A unit that is unknown, not SI where SI is needed, or of another dimension than declared."""


@dataclass(frozen=True)
class Conversion:
    """The affine map ``si = factor * value + shift`` from one unit to another."""

    factor: float
    shift: float = 0.0


@lru_cache(maxsize=1)
def _registry() -> Any:
    """Return the one pint registry of this module, which is never changed afterwards."""
    registry = pint.UnitRegistry()
    registry.define("@alias revolution = rev")  # as drives' manuals write it
    return registry


def _parse(unit: str) -> Any:
    """Return the pint unit that `unit` names, or raise `UnitError`."""
    try:
        return _registry().parse_units(unit)
    # pint raises its own errors, ValueError, TypeError, tokenizer errors or AssertionError, depending on the
    # text
    except Exception as error:
        raise UnitError(
            f"unit {unit!r} is not understood ({error}). Write units as 'N*m', 'rad/s', 'mm', '1/s'."
        ) from error


def _angle_exponent(unit: Any) -> float:
    """Return the power of the angle in `unit`: 1 for deg or rad/s, 0 for Hz, -1 for N*m/rad."""
    _, base = _registry().get_base_units(unit)
    return float(base._units.get("radian", 0))


def _described(text: str, unit: Any) -> str:
    """Return `text` with its dimension, the angle included, which pint counts as dimensionless."""
    power = _angle_exponent(unit)
    angle = "" if power == 0 else f" with angle^{power:g}"
    hint = " ('Nm' is read as number times metre: write 'N*m')" if "number_meter" in unit._units else ""
    return f"{text!r} of dimension {unit.dimensionality!s}{angle}{hint}"


def _is_coherent(unit: Any) -> bool:
    """Return whether one `unit` is exactly one SI unit, as N or rad are and mm, deg, degC are not."""
    quantity = _registry().Quantity
    one = quantity(1.0, unit).to_base_units().magnitude
    zero = quantity(0.0, unit).to_base_units().magnitude
    return bool(abs(one - 1.0) < 1e-12 and zero == 0.0)


def si_unit(unit: str) -> str:
    """Return the coherent SI unit of the same kind as `unit`.

    Parameters
    ----------
    unit
        Any unit that pint knows, such as ``"deg"``, ``"mA"``, ``"kN*mm"``.

    Returns
    -------
    str
        `unit` itself where it is coherent already; otherwise prefixes are dropped (``"kN"`` gives ``"N"``)
        and what has no SI name is written in base units (``"rpm"`` gives ``"rad/s"``).

    Raises
    ------
    UnitError
        When `unit` is not a unit.
    """
    parsed = _parse(unit)
    if _is_coherent(parsed):
        return unit
    registry = _registry()
    result = registry.dimensionless
    for name, power in parsed._units.items():
        bare = registry.Unit(registry.parse_unit_name(name)[0][1])
        part = registry.Unit(name)
        if not _is_coherent(part):
            part = bare if _is_coherent(bare) else registry.get_base_units(part)[1]
        result = result * part**power
    return f"{result:~C}"


def is_si(unit: str) -> bool:
    """Return whether `unit` is a coherent SI unit (`UnitError` when it is no unit at all)."""
    return _is_coherent(_parse(unit))


def conversion(unit: str, gain_unit: str, target: str) -> Conversion:
    """Return the map from a value in ``unit * gain_unit`` to the SI unit `target`.

    An angle may be dropped, since 1 rad = 1 in SI (rad/s times m gives m/s). It is never invented: ``""``,
    ``"count"`` or ``"Hz"`` do not convert to rad or rad/s, because a count or a turn is not a radian.

    Parameters
    ----------
    unit
        The unit of the raw values.
    gain_unit
        The unit of the factor that multiplies them, ``""`` for none.
    target
        The coherent SI unit that is wanted.

    Raises
    ------
    UnitError
        When a unit is unknown, `target` is not coherent SI, or the dimensions (angle included) differ.
    """
    wanted = _parse(target)
    if not _is_coherent(wanted):
        raise UnitError(
            f"unit {target!r} is not coherent SI; declare {si_unit(target)!r}. Files may have any unit."
        )
    given = _parse(unit) * _parse(gain_unit)
    text = f"{unit} * {gain_unit}" if gain_unit else unit
    facts = f"the file gives {_described(text, given)}, the model declares {_described(target, wanted)}"
    if given.dimensionality != wanted.dimensionality:
        raise UnitError(
            f"{facts}. Correct the unit, or give a gain with a gain_unit that makes up the difference."
        )
    if _angle_exponent(wanted) not in (0.0, _angle_exponent(given)):
        raise UnitError(
            f"{facts}. Say which angle is meant: rad, deg, rev (per s), or a gain_unit like 'rad/count'."
        )
    quantity = _registry().Quantity
    try:
        shift = float(quantity(0.0, given).to(wanted).magnitude)
        return Conversion(float(quantity(1.0, given).to(wanted).magnitude) - shift, shift)
    except pint.PintError as error:
        raise UnitError(f"{facts}, and there is no conversion between them ({error}).") from error


def derivative_unit(unit: str) -> str:
    """Return the unit of the time derivative of a quantity in the SI unit `unit`."""
    return f"{_parse(unit) / _registry().second:~C}"
