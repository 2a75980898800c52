"""The LuGre friction model: bristles that bend, slip and hold.

F = s0 z + s1(v) dz/dt + f(v),  dz/dt = v - s0 |v| z / g(v); equations (1)-(5) of the source.
"""

from typing import Literal

import sympy

from mechsmith.symbolic.friction.lugre_identities import LUGRE_IDENTITIES, SOURCE
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

Motion = Literal["rotary", "linear"]

# Smallest stiffness and velocities, in their units: above zero, below anything that can be measured.
_ABOVE_ZERO = 1e-6

# s0 s1 a0 a1 v0 vd a2 a3. Rotary: a joint as in the source; linear: a carriage on a screw, some 20 N of friction.
_NOMINAL: dict[Motion, tuple[float, ...]] = {
    "rotary": (1e5, 316.22776601683796, 1.0, 0.5, 0.01, 0.1, 0.4, 0.1),
    "linear": (1e6, 1000.0, 20.0, 5.0, 0.01, 0.1, 200.0, 20.0),
}


def make_lugre(*, motion: Motion = "rotary") -> Model:
    """Return the LuGre model of friction.

    The definitions `stribeck` (g), `damping` (s1(v)), `viscous` (f) and `bristle_rate` may be exchanged by
    `Model.replace`.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).

    References
    ----------
    Equations (1)-(5) of the source, with its misprint a0 v in (5) corrected to a2 v.
    """
    length, force = ("rad", "N*m") if motion == "rotary" else ("m", "N")
    z, velocity = sympy.symbols("z velocity", real=True)
    stribeck, damping, viscous, bristle_rate = sympy.symbols(
        "stribeck damping viscous bristle_rate", real=True
    )
    parameters = _parameters(motion, length, force)
    s0, s1, a0, a1, v0, vd, a2, a3 = (quantity.symbol for quantity in parameters)
    return Model(
        name="lugre" if motion == "rotary" else "lugre_linear",
        states=(Quantity(z, length, description="mean deflection of the bristles", nominal=0.0),),
        inputs=(Quantity(velocity, f"{length}/s", description="relative velocity of the surfaces, v"),),
        parameters=parameters,
        definitions={
            Quantity(stribeck, force, description="steady friction without viscosity, g(v)"): a0
            + a1 * sympy.exp(-((velocity / v0) ** 2)),
            Quantity(damping, f"{force}*s/{length}", description="bristle damping, s1(v)"): s1
            * sympy.exp(-((velocity / vd) ** 2)),
            Quantity(viscous, force, description="viscous friction, f(v)"): a2 * velocity
            + a3 * sympy.sign(velocity) * velocity**2,
            Quantity(bristle_rate, f"{length}/s", description="dz/dt"): velocity
            - s0 * sympy.Abs(velocity) * z / stribeck,
        },
        derivatives={z: bristle_rate},
        outputs={
            Quantity("force", force, description="friction, F"): s0 * z + damping * bristle_rate + viscous
        },
        crossings=(velocity,),
        integrals={"velocity": Quantity("position", length, description="integral of the velocity")},
        identities=LUGRE_IDENTITIES,
        description="LuGre friction with velocity-dependent bristle damping and quadratic viscous friction.",
        references=(SOURCE,),
    )


def _parameters(motion: Motion, length: str, force: str) -> tuple[Quantity, ...]:
    declared = (
        ("s0", f"{force}/{length}", _ABOVE_ZERO, "bristle stiffness"),
        ("s1", f"{force}*s/{length}", 0.0, "bristle damping at rest"),
        ("a0", force, 0.0, "Coulomb friction"),
        ("a1", force, 0.0, "height of the Stribeck peak"),
        ("v0", f"{length}/s", _ABOVE_ZERO, "Stribeck velocity"),
        ("vd", f"{length}/s", _ABOVE_ZERO, "velocity over which the bristle damping decays"),
        ("a2", f"{force}*s/{length}", -sympy.oo, "viscous friction, linear"),
        ("a3", f"{force}*s^2/{length}^2", -sympy.oo, "viscous friction, quadratic"),
    )
    return tuple(
        Quantity(name, unit, description=text, nominal=nominal, lower=float(lower))
        for (name, unit, lower, text), nominal in zip(declared, _NOMINAL[motion], strict=True)
    )
