"""Friction as a function of velocity alone."""

from typing import Literal

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity


def make_coulomb_viscous(
    *, motion: Literal["linear", "rotary"] = "linear", regularised: bool = False
) -> Model:
    """Return F = Fv v + Fc sign(v), Coulomb and viscous friction.

    Parameters
    ----------
    motion : "linear" or "rotary"
        Whether it acts on a slide (m/s, N) or on a shaft (rad/s, N m).
    regularised : bool
        Whether sign(v) is replaced by tanh(v / v_t) with the parameter `transition_velocity`. With sign(v) a
        simulation chatters at rest, because the law does not say what the force is when nothing moves.

    References
    ----------
    Armstrong-Helouvry, Dupont, Canudas de Wit 1994, A survey of models, analysis tools and compensation methods
    for the control of machines with friction, Automatica 30(7), section 2.
    """
    speed, effort, damping = {
        "linear": ("m/s", "N", "N*s/m"),
        "rotary": ("rad/s", "N*m", "N*m*s/rad"),
    }[motion]
    velocity, viscous, coulomb, transition_velocity = sympy.symbols(
        "velocity viscous coulomb transition_velocity", real=True
    )
    parameters = [
        Quantity(viscous, damping, description="viscous friction", nominal=203.5034, lower=0.0, upper=1e5),
        Quantity(coulomb, effort, description="Coulomb friction", nominal=20.3935, lower=0.0, upper=1e4),
    ]
    direction = sympy.sign(velocity)
    if regularised:
        direction = sympy.tanh(velocity / transition_velocity)
        parameters.append(
            Quantity(
                transition_velocity,
                speed,
                description="velocity at which Coulomb friction is nearly reached",
                nominal=1e-4,
                lower=1e-8,
                upper=1.0,
            )
        )
    return Model(
        name="coulomb_viscous",
        inputs=(Quantity(velocity, speed, description="sliding velocity"),),
        parameters=tuple(parameters),
        outputs={
            Quantity("force", effort, description="friction against the motion"): viscous * velocity
            + coulomb * direction
        },
        crossings=() if regularised else (velocity,),
        description="Coulomb and viscous friction.",
        references=(
            "Armstrong-Helouvry, Dupont, Canudas de Wit 1994, Automatica 30(7), 1083-1138, section 2",
        ),
    )
