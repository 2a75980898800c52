"""Elasto-plastic friction: LuGre whose bristles bend without slipping at all up to a break-away deflection."""

import dataclasses

import sympy
from sympy import Abs, Rational, exp, pi, sign, sin

from mechsmith.symbolic.friction.identities import (
    BRISTLE_IDENTITIES,
    COULOMB_VISCOUS,
    bristle_limit,
    family_identity,
)
from mechsmith.symbolic.friction.parameters import (
    UNITS,
    Motion,
    force_output,
    named,
    parameter,
    position_integral,
    velocity_input,
)
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

DUPONT = (
    "Dupont, Hayward, Armstrong, Altpeter 2002, Single state elasto-plastic friction models, "
    "IEEE Trans. Automatic Control 47(5), 787-792, equations (6)-(9)"
)


def make_elasto_plastic(*, motion: Motion = "rotary") -> Model:
    """Return F = s0 z + s1 dz/dt + f(v) with dz/dt = v (1 - alpha(z, v) s0 |z| / g(v)) for z along v, else v.

    alpha is 0 up to the break-away deflection z_ba = `breakaway_share` a0 / s0 and when the motion turns back, rises as a
    sine to 1 at z_ss = g / s0, and stays there: below z_ba nothing drifts. z_ba < z_ss holds at every velocity
    since the share is below 1 and g >= a0. Passive where s1 |v| <= 4 g, as LuGre (alpha <= 1).

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    length, force = UNITS[motion]
    velocity = velocity_input(motion)
    names = ("s0", "s1", "a0", "a1", "v0", "a2", "a3")
    share = Quantity(
        "breakaway_share",
        "",
        description="break-away deflection over a0 / s0",
        nominal=0.5,
        lower=1e-3,
        upper=0.999,
    )
    parameters = (*(parameter(name, motion) for name in names), share)
    s0, s1, a0, a1, v0, a2, a3, part = (quantity.elements[0] for quantity in parameters)
    v = velocity.elements[0]
    deflection = Quantity("z", length, description="mean deflection of the bristles", nominal=0.0)
    z = deflection.elements[0]
    stribeck, breakaway, sliding, slip, rate, viscous = sympy.symbols(
        "stribeck breakaway sliding_deflection slip_share bristle_rate viscous", real=True
    )
    between = Rational(1, 2) + sin(pi * (Abs(z) - (sliding + breakaway) / 2) / (sliding - breakaway)) / 2
    return Model(
        name=named("elasto_plastic", motion),
        states=(deflection,),
        inputs=(velocity,),
        parameters=parameters,
        definitions={
            Quantity(stribeck, force, description="steady friction without viscosity, g(v)"): a0
            + a1 * exp(-((v / v0) ** 2)),
            Quantity(breakaway, length, description="deflection up to which nothing slips"): part * a0 / s0,
            Quantity(sliding, length, description="deflection at which everything slips"): stribeck / s0,
            Quantity(slip, "", description="share of the velocity that slips, alpha"): sympy.Piecewise(
                (0, z * v <= 0),
                (0, Abs(z) <= breakaway),
                (1, Abs(z) >= sliding),
                (between, True),
            ),
            Quantity(rate, f"{length}/s", description="dz/dt"): v - slip * s0 * Abs(v) * z / stribeck,
            Quantity(viscous, force, description="viscous friction, f(v)"): a2 * v + a3 * sign(v) * v**2,
        },
        derivatives={"z": rate},
        outputs={force_output(motion): s0 * z + s1 * rate + viscous},
        crossings=(v,),
        integrals=position_integral(motion),
        identities=(
            family_identity(COULOMB_VISCOUS, bristle_limit, "equation (6) once dz/dt = 0", limit=True),
            # alpha switches on z and v together, which only numbers can follow
            *(dataclasses.replace(identity, expected="supported") for identity in BRISTLE_IDENTITIES),
        ),
        description="Elasto-plastic friction: no drift below a break-away deflection.",
        references=(DUPONT,),
    )
