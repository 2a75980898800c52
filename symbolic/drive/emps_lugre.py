"""The force of the EMPS axis from its measured motion, with LuGre friction."""

from mechsmith.symbolic.compose import compose
from mechsmith.symbolic.drive.emps import REFERENCE
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity


def make_emps_lugre(friction: Model | None = None) -> Model:
    """Return force = M a + F_friction + offset with a friction model that has a state.

    Parameters
    ----------
    friction : Model, optional
        With the input `velocity` (m/s) and the output `force` (N); LuGre when not given.
    """
    return compose(
        "emps_lugre",
        parts={
            "carriage": _make_inverse_carriage(),
            "friction": make_lugre(motion="linear") if friction is None else friction,
        },
        connect={"carriage.friction_force": "friction.force"},
        expose={"force": "carriage.motor_force"},
        description="Inverse dynamics of the EMPS axis with LuGre friction.",
    )


def _make_inverse_carriage() -> Model:
    acceleration = Quantity("acceleration", "m/s^2", description="acceleration of the carriage")
    friction_force = Quantity("friction_force", "N", description="friction against the motion")
    mass = Quantity(
        "mass", "kg", description="moving mass, motor inertia included", nominal=95.0, lower=1.0, upper=1e3
    )
    offset = Quantity(
        "offset", "N", description="constant force against the motor", nominal=0.0, lower=-100.0, upper=100.0
    )
    return Model(
        name="carriage",
        inputs=(acceleration, friction_force),
        parameters=(mass, offset),
        outputs={
            Quantity("motor_force", "N", description="force of the motor"): mass.elements[0]
            * acceleration.elements[0]
            + friction_force.elements[0]
            + offset.elements[0]
        },
        description="Force that moves a carriage, from its acceleration and friction.",
        references=(REFERENCE,),
    )
