import math

import pytest

from mechsmith.identification.units import UnitError, conversion, derivative_unit, is_si, si_unit


@pytest.mark.parametrize(
    ("unit", "gain_unit", "target", "factor"),
    [
        ("deg", "", "rad", math.pi / 180),
        ("rpm", "", "rad/s", 2 * math.pi / 60),
        ("rev/s", "", "rad/s", 2 * math.pi),
        ("mA", "N*m/A", "N*m", 1e-3),
        ("V", "N/V", "N", 1.0),
        ("count", "rad/count", "rad", 1.0),
        ("ms", "", "s", 1e-3),
        ("rad/s", "m", "m/s", 1.0),
        ("deg/s", "", "1/s", math.pi / 180),
        ("%", "", "", 0.01),
    ],
)
def test_conversion_factor(unit: str, gain_unit: str, target: str, factor: float) -> None:
    # a handful of roundings in pint's chain of factors
    assert conversion(unit, gain_unit, target).factor == pytest.approx(factor, rel=1e-14)


def test_temperature_has_a_shift() -> None:
    change = conversion("degC", "", "K")
    # 274.15 - 273.15 loses two digits of the factor
    assert change.factor == pytest.approx(1.0, rel=1e-12)
    assert change.shift == pytest.approx(273.15, rel=1e-15)


@pytest.mark.parametrize("unit", ["", "count", "m/m"])
def test_an_angle_is_never_invented(unit: str) -> None:
    with pytest.raises(UnitError, match=r"angle\^1.*rad, deg, rev"):
        conversion(unit, "", "rad")


def test_hertz_is_not_radians_per_second() -> None:
    with pytest.raises(UnitError, match=r"'Hz'.*'rad/s'"):
        conversion("Hz", "", "rad/s")


def test_dimensions_are_named() -> None:
    with pytest.raises(UnitError, match=r"'V' of dimension .*\[current\].*'N' of dimension .*\[mass\]"):
        conversion("V", "", "N")


def test_newton_metre_without_a_star_is_explained() -> None:
    with pytest.raises(UnitError, match=r"write 'N\*m'"):
        conversion("Nm", "", "N*m")


def test_target_must_be_si() -> None:
    with pytest.raises(UnitError, match="'deg' is not coherent SI; declare 'rad'"):
        conversion("deg", "", "deg")


@pytest.mark.parametrize("unit", ["foo", "2*m", "m +", "m//s)"])
def test_nonsense_is_an_error(unit: str) -> None:
    with pytest.raises(UnitError, match="is not understood"):
        is_si(unit)


@pytest.mark.parametrize(
    ("unit", "si"),
    [
        ("N*m", "N*m"),
        ("rad/s", "rad/s"),
        ("", ""),
        ("deg", "rad"),
        ("rpm", "rad/s"),
        ("mA", "A"),
        ("kN", "N"),
        ("g", "kg"),
        ("degC", "K"),
    ],
)
def test_si_unit(unit: str, si: str) -> None:
    assert si_unit(unit) == si
    assert is_si(si)


def test_derivative_unit() -> None:
    assert derivative_unit("m") == "m/s"
    assert derivative_unit(derivative_unit("rad")) == "rad/s**2"
