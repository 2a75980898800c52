"""Static friction with a Stribeck peak: F = sgn(v) g(v) + f(v)."""

from typing import Literal

from sympy import Abs, exp, sign

from mechsmith.symbolic.friction.coulomb import SURVEY
from mechsmith.symbolic.friction.identities import STATIC_IDENTITIES
from mechsmith.symbolic.friction.parameters import (
    UNITS,
    Motion,
    force_output,
    named,
    parameter,
    velocity_input,
)
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

TUSTIN = "Bo, Pavelescu 1982, The friction-speed relation and its influence on the critical velocity of stick-slip motion, Wear 82(3), 277-289"


def make_stribeck(*, shape: Literal["gaussian", "exponent"] = "gaussian", motion: Motion = "rotary") -> Model:
    """Return F = sgn(v) (a0 + a1 exp(-|v/v0|^n)) + a2 v + a3 |v| v.

    a1 is the height of the peak, F_s - F_c; its lower bound 0 says that static friction is not below Coulomb friction.

    Parameters
    ----------
    shape : "gaussian" or "exponent"
        n = 2, or the parameter `exponent`.
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    velocity = velocity_input(motion)
    parameters = tuple(parameter(name, motion) for name in ("a0", "a1", "v0", "a2", "a3"))
    v, (a0, a1, v0, a2, a3) = velocity.elements[0], (q.elements[0] for q in parameters)
    fall = (v / v0) ** 2
    if shape == "exponent":
        exponent = Quantity(
            "exponent", "", description="shape of the peak", nominal=1.0, lower=0.1, upper=10.0
        )
        parameters = (*parameters, exponent)
        fall = Abs(v / v0) ** exponent.elements[0]
    stribeck = Quantity("stribeck", UNITS[motion].force, description="dry friction, g(v)")
    viscous = Quantity("viscous", UNITS[motion].force, description="viscous friction, f(v)")
    return Model(
        name=named("stribeck" if shape == "gaussian" else "stribeck_exponent", motion),
        inputs=(velocity,),
        parameters=parameters,
        definitions={stribeck: a0 + a1 * exp(-fall), viscous: a2 * v + a3 * Abs(v) * v},
        outputs={force_output(motion): sign(v) * stribeck.elements[0] + viscous.elements[0]},
        crossings=(v,),
        identities=STATIC_IDENTITIES,
        description="Coulomb, Stribeck and viscous friction"
        + (" with a Gaussian peak." if shape == "gaussian" else " with a peak of free exponent."),
        references=(f"{SURVEY}, section 2.1", TUSTIN),
    )
