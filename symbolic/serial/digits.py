"""The rule of significant digits, (19) of the stiffness source: s = t + r - 1."""

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.kinematics import SOURCE
from mechsmith.symbolic.statement import Identity, Scope, Statement


def make_significant_digits() -> Model:
    """Return the number of significant digits r of a reading y of resolution 10^-s, both in one unit.

    Returns
    -------
    Model
        Inputs ``reading`` and ``resolution`` (m), outputs ``digits`` r = floor(log10(|y| / resolution)) + 1, and
        ``magnitude`` t = -floor(log10(|y| / unit)). The reading is a whole number of resolutions, and not zero.
    """
    reading, resolution, unit = sympy.symbols("reading resolution unit", real=True)
    counts, share = sympy.Abs(reading) / resolution, sympy.Abs(reading) / unit
    return Model(
        name="significant_digits",
        inputs=(
            Quantity(reading, "m", description="of the instrument", nominal=6.3e-5),
            Quantity(resolution, "m", description="of the instrument, 10^-s", nominal=1e-6, lower=1e-12),
        ),
        parameters=(Quantity(unit, "m", description="in which s and t count", nominal=1e-3, lower=1e-12),),
        outputs={
            Quantity("digits", "", description="significant digits, r"): sympy.floor(_log10(counts)) + 1,
            Quantity("magnitude", "", description="of the reading is 10^-t units"): -sympy.floor(
                _log10(share)
            ),
        },
        identities=(Identity("(19)", "identity", _rule, "supported", f"{SOURCE}: s = t + r - 1"),),
        description="Significant digits of a reading.",
        references=(f"{SOURCE}, (19)",),
    )


def _log10(value: sympy.Expr) -> sympy.Expr:
    return sympy.log(value) / sympy.log(sympy.Integer(10))


def _rule(scope: Scope) -> Statement:
    # The resolution is a whole power of ten of the unit.
    places = sympy.floor(scope.fresh("places"))
    fine = {scope["resolution"]: scope["unit"] * sympy.Integer(10) ** -places}
    digits, magnitude = (
        scope.expand(scope.expression(name)).xreplace(fine) for name in ("digits", "magnitude")
    )
    return Statement(
        magnitude + digits - 1,
        places,
        units={"places": ""},
        ranges={"places": (0.0, 6.0), "reading": (0.0, 1.0)},
    )
