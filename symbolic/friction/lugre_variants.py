"""LuGre with constant bristle damping, and with another friction in each direction."""

import dataclasses

import sympy
from sympy import exp, sign

from mechsmith.symbolic.friction.identities import (
    COULOMB_VISCOUS,
    DISSIPATION,
    bristle_dissipation,
    family_identity,
    statement,
)
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.friction.parameters import Motion, named, parameter
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.prove import evaluated
from mechsmith.symbolic.statement import Limit, Scope, Statement

ORIGINAL = (
    "Canudas de Wit, Olsson, Astrom, Lischinsky 1995, A new model for control of systems with friction, "
    "IEEE Trans. Automatic Control 40(3), 419-425, equations (3)-(6)"
)
_DISSIPATION = family_identity(
    DISSIPATION, bristle_dissipation, "power F v less the rate of the stored energy s0 z^2 / 2"
)
# What LuGre's source says of a0, a1, v0 and of one viscous friction for both directions.
_OF_ONE_DIRECTION = ("(3)", "(5)", "(5) as printed", "(6)", "(10)", "(11)")


def make_lugre_constant(*, motion: Motion = "rotary") -> Model:
    """Return LuGre with s1(v) = s1, as first published.

    It is passive only while s1 |v| <= 4 g(v), viscous friction left out: see `mechsmith.symbolic.friction.passivity`.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    lugre = make_lugre(motion=motion)
    variant = lugre.replace(
        name=named("lugre_constant", motion),
        definitions={"damping": lugre["s1"]},
        description="LuGre friction with constant bristle damping.",
        references=(ORIGINAL,),
    )
    kept = tuple(identity for identity in variant.identities if identity.name != "(4)")
    return dataclasses.replace(variant, identities=(*kept, _DISSIPATION))


def make_lugre_asymmetric(*, motion: Motion = "rotary") -> Model:
    """Return LuGre with Coulomb friction, peak and viscous friction of their own for each direction.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    lugre = make_lugre(motion=motion)
    v, v0 = lugre["velocity"], lugre["v0"]
    names = [f"{name}_{way}" for way in ("forward", "backward") for name in ("a0", "a1", "a2", "a3")]
    meaning = {"forward": " for v > 0", "backward": " for v < 0"}
    parameters = tuple(
        parameter(name[:2], motion, called=name, note=meaning[name.split("_")[1]]) for name in names
    )
    symbols = {quantity.name: quantity.elements[0] for quantity in parameters}

    def dry(way: str) -> sympy.Expr:
        return symbols[f"a0_{way}"] + symbols[f"a1_{way}"] * exp(-((v / v0) ** 2))

    def wet(way: str) -> sympy.Expr:
        return symbols[f"a2_{way}"] * v + symbols[f"a3_{way}"] * sign(v) * v**2

    variant = lugre.replace(
        name=named("lugre_asymmetric", motion),
        definitions={
            "stribeck": sympy.Piecewise((dry("forward"), v >= 0), (dry("backward"), True)),
            "viscous": sympy.Piecewise((wet("forward"), v >= 0), (wet("backward"), True)),
        },
        parameters=parameters,
        description="LuGre friction that depends on the direction of motion.",
        references=(ORIGINAL,),
    )
    # The remainder of (8) switches with the direction, which only numbers can follow.
    kept = tuple(
        dataclasses.replace(identity, expected="supported") if identity.name == "(8)" else identity
        for identity in variant.identities
        if identity.name not in _OF_ONE_DIRECTION
    )
    alike = family_identity(
        COULOMB_VISCOUS, _alike_in_both_directions, "equation (6) for the same in both directions", limit=True
    )
    return dataclasses.replace(variant, identities=(*kept, alike, _DISSIPATION))


def _alike_in_both_directions(scope: Scope) -> Statement:
    v, z, v0, s0 = scope["velocity"], scope["z"], scope["v0"], scope["s0"]
    alike = {scope[f"{name}_backward"]: scope[f"{name}_forward"] for name in ("a0", "a1", "a2", "a3")}
    kept = ("bristle_rate", "stribeck")
    force = evaluated(
        scope.expand(scope.expression("force"), keep=kept), {scope["bristle_rate"]: sympy.S.Zero}
    )
    resting = evaluated(force, {z: sign(v) * scope["stribeck"] / s0})
    left = evaluated(scope.expand(resting), alike)
    right = scope["a0_forward"] * sign(v) + scope["a2_forward"] * v + scope["a3_forward"] * sign(v) * v**2
    return statement(scope, left, right, limit=Limit(v0))
