"""The EMPS axis under its position controller, with any friction model."""

from mechsmith.symbolic.compose import compose
from mechsmith.symbolic.control.emps_controller import make_emps_controller
from mechsmith.symbolic.drive.emps import make_axis
from mechsmith.symbolic.friction.static import make_coulomb_viscous
from mechsmith.symbolic.model import Model


def make_emps_closed_loop(friction: Model | None = None, *, delay: int = 0) -> Model:
    """Return axis, friction and controller as one model, from reference position and pulses to position and force.

    Parameters
    ----------
    friction : Model, optional
        With the input `velocity` (m/s) and the output `force` (N); regularised Coulomb and viscous friction when not given.
    delay : 0 or 1
        Samples between computing the voltage and applying it; see `make_emps_controller`.

    Raises
    ------
    ModelError
        If the friction model lacks `velocity` or `force`, or has them in other units.
    """
    return compose(
        "emps_closed_loop",
        parts={
            "axis": make_axis(),
            "friction": make_coulomb_viscous(regularised=True) if friction is None else friction,
            "controller": make_emps_controller(delay=delay),
        },
        connect={
            "friction.velocity": "axis.velocity",
            "axis.friction_force": "friction.force",
            "axis.motor_force": "controller.motor_force",
            "controller.position": "axis.position",
        },
        expose={
            "position": "axis.position",
            "voltage": "controller.voltage",
            "force": "controller.motor_force",
        },
        description="The EMPS axis with friction, under its sampled position controller.",
    )
