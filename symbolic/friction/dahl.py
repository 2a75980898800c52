"""Dahl's friction: bristles that bend and slip, without a Stribeck peak or damping."""

from sympy import Abs

from mechsmith.symbolic.friction.identities import (
    BRISTLE_IDENTITIES,
    COULOMB_VISCOUS,
    coulomb_viscous,
    family_identity,
    statement,
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
from mechsmith.symbolic.prove import evaluated
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.statement import Scope, Statement

DAHL = "Dahl 1968, A solid friction model, Aerospace Corporation TOR-0158(3107-18)-1, exponent 1"


def make_dahl(*, motion: Motion = "rotary") -> Model:
    """Return F = s0 z with dz/dt = v - s0 |v| z / a0.

    It is passive for every a0 > 0: the power that the bristles do not store is |v| F^2 / a0.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    velocity = velocity_input(motion)
    s0, a0 = (parameter(name, motion) for name in ("s0", "a0"))
    z = Quantity("z", UNITS[motion].length, description="mean deflection of the bristles", nominal=0.0)
    v = velocity.elements[0]
    return Model(
        name=named("dahl", motion),
        states=(z,),
        inputs=(velocity,),
        parameters=(s0, a0),
        derivatives={"z": v - s0.elements[0] * Abs(v) * z.elements[0] / a0.elements[0]},
        outputs={force_output(motion): s0.elements[0] * z.elements[0]},
        crossings=(v,),
        integrals=position_integral(motion),
        identities=(
            family_identity(COULOMB_VISCOUS, _limit, "equation (6) once dz/dt = 0"),
            *BRISTLE_IDENTITIES,
        ),
        description="Dahl's friction.",
        references=(DAHL,),
    )


def _limit(scope: Scope) -> Statement:
    rate, z = scope.expression("z"), scope["z"]
    resting = -rate.subs(z, 0) / rate.diff(z)
    return statement(
        scope, evaluated(scope.expand(scope.expression("force")), {z: resting}), coulomb_viscous(scope)
    )
