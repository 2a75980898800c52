"""Coulomb friction: of one size, of two by direction, and growing with the load."""

import sympy
from sympy import Abs, sign

from mechsmith.symbolic.friction.identities import (
    COULOMB_VISCOUS,
    DISSIPATION,
    coulomb_viscous,
    family_identity,
    statement,
    static_dissipation,
)
from mechsmith.symbolic.friction.parameters import (
    UNITS,
    Motion,
    force_output,
    named,
    parameter,
    velocity_input,
)
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.prove import evaluated
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.statement import Limit, Scope, Statement

SURVEY = (
    "Armstrong-Helouvry, Dupont, Canudas de Wit 1994, A survey of models, analysis tools and compensation methods for "
    "the control of machines with friction, Automatica 30(7), 1083-1138"
)
LOADED = (
    "Hamon, Gautier, Garrec 2010, Dynamic identification of robots with a dry friction model depending on load and "
    "velocity, IEEE/RSJ IROS, 6187-6193"
)


def make_coulomb(*, motion: Motion = "rotary") -> Model:
    """Return F = a0 sgn(v), Coulomb friction.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    velocity, a0 = velocity_input(motion), parameter("a0", motion)
    return Model(
        name=named("coulomb", motion),
        inputs=(velocity,),
        parameters=(a0,),
        outputs={force_output(motion): a0.elements[0] * sign(velocity.elements[0])},
        crossings=(velocity.elements[0],),
        identities=(
            family_identity(COULOMB_VISCOUS, _is_coulomb, "equation (6)"),
            family_identity(DISSIPATION, static_dissipation, "power F v"),
        ),
        description="Coulomb friction.",
        references=(f"{SURVEY}, section 2.1",),
    )


def make_coulomb_directional(*, motion: Motion = "rotary") -> Model:
    """Return Coulomb friction of one size forward and another backward.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    velocity = velocity_input(motion)
    forward = parameter("a0", motion, called="a0_forward", note=" for v > 0")
    backward = parameter("a0", motion, called="a0_backward", note=" for v < 0")
    v, plus, minus = velocity.elements[0], forward.elements[0], backward.elements[0]
    return Model(
        name=named("coulomb_directional", motion),
        inputs=(velocity,),
        parameters=(forward, backward),
        outputs={force_output(motion): sympy.Piecewise((plus, v > 0), (-minus, v < 0), (0, True))},
        crossings=(v,),
        identities=(
            family_identity(
                COULOMB_VISCOUS, _alike_in_both_directions, "equation (6) for a0_forward = a0_backward"
            ),
            family_identity(DISSIPATION, _directional_dissipation, "power F v"),
        ),
        description="Coulomb friction that depends on the direction of motion.",
        references=(f"{SURVEY}, section 2.1",),
    )


def make_coulomb_loaded(*, motion: Motion = "rotary") -> Model:
    """Return F = (a0 + mu |load|) sgn(v), Coulomb friction that grows with the load on the bearing or gear.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N). The load has the unit of the friction: the
        transmitted torque, or the normal force.
    """
    velocity, a0 = velocity_input(motion), parameter("a0", motion, note=" without load")
    load = Quantity("load", UNITS[motion].force, description="load that presses the surfaces together")
    mu = Quantity("mu", "", description="friction per load", nominal=0.05, lower=0.0)
    v = velocity.elements[0]
    pressed = a0.elements[0] + mu.elements[0] * Abs(load.elements[0])
    return Model(
        name=named("coulomb_loaded", motion),
        inputs=(velocity, load),
        parameters=(a0, mu),
        outputs={force_output(motion): pressed * sign(v)},
        crossings=(v,),
        identities=(
            family_identity(COULOMB_VISCOUS, _without_load, "equation (6) for load -> 0", limit=True),
            family_identity(DISSIPATION, _loaded_dissipation, "power F v"),
        ),
        description="Coulomb friction that grows with the load.",
        references=(f"{LOADED}, equation (6)",),
    )


def _is_coulomb(scope: Scope) -> Statement:
    return statement(scope, scope.expand(scope.expression("force")), coulomb_viscous(scope))


def _alike_in_both_directions(scope: Scope) -> Statement:
    forward, backward = scope["a0_forward"], scope["a0_backward"]
    alike = evaluated(scope.expand(scope.expression("force")), {backward: forward})
    return statement(scope, alike, forward * sign(scope["velocity"]))


def _directional_dissipation(scope: Scope) -> Statement:
    v = scope["velocity"]
    mean, half = (
        (scope["a0_forward"] + scope["a0_backward"]) / 2,
        (scope["a0_forward"] - scope["a0_backward"]) / 2,
    )
    return statement(scope, v * scope.expand(scope.expression("force")), mean * Abs(v) + half * v)


def _without_load(scope: Scope) -> Statement:
    return statement(
        scope, scope.expand(scope.expression("force")), coulomb_viscous(scope), limit=Limit(scope["load"])
    )


def _loaded_dissipation(scope: Scope) -> Statement:
    v = scope["velocity"]
    return statement(
        scope,
        v * scope.expand(scope.expression("force")),
        (scope["a0"] + scope["mu"] * Abs(scope["load"])) * Abs(v),
    )
