"""A robot joint: a load that turns about a vertical axis, on LuGre friction."""

import sympy

from mechsmith import Model, Quantity, compose
from mechsmith.symbolic.friction.lugre import make_lugre


def make_load() -> Model:
    """Return M = J dv/dt + friction + offset, the torque that a motion takes."""
    acceleration, friction, inertia, offset = sympy.symbols("acceleration friction inertia offset", real=True)
    return Model(
        name="load",
        inputs=(
            Quantity(acceleration, "rad/s^2", description="acceleration of the joint"),
            Quantity(friction, "N*m", description="friction against the motion"),
        ),
        parameters=(
            Quantity(inertia, "kg*m^2", description="moment of inertia", nominal=0.5, lower=0.01, upper=10.0),
            Quantity(offset, "N*m", description="constant torque", nominal=0.0, lower=-5.0, upper=5.0),
        ),
        outputs={
            Quantity("torque", "N*m", description="torque of the motor"): inertia * acceleration
            + friction
            + offset
        },
        description="A load that turns about a vertical axis.",
    )


def make_joint() -> Model:
    """Return the load on LuGre friction; its inputs are velocity and acceleration, outputs are torque and friction."""
    return compose(
        "joint",
        parts={"load": make_load(), "friction": make_lugre()},
        connect={"load.friction": "friction.force"},
        share={"velocity": ("friction.velocity",), "acceleration": ("load.acceleration",)},
        description="A robot joint with LuGre friction.",
    )
