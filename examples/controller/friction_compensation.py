"""A joint with LuGre friction, moved to and fro by generated C: with and without the observer of its friction.

    python examples/controller/friction_compensation.py

The controller is the compiled C of `make_friction_compensation`, called once a sample as a controller calls it. It sees
the angle through an encoder, and the rate as a backward difference; the observer takes the rate that is asked for.
Its friction parameters may be wrong by a factor. The joint is simulated by compiled C too, with Radau's method.
"""

import numpy as np
import sympy

from mechsmith.codegen.build import build, build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import Array
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.compose import compose
from mechsmith.symbolic.control.friction_compensation import make_friction_compensation
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

SAMPLE_TIME = 1e-3
COUNT = 2.0 * np.pi / 6553600  # of the encoder, rad
AMPLITUDE, PERIOD = 0.5, 2.0  # rad, s


def make_joint() -> Model:
    """Return an inertia with LuGre friction, from torque to angle."""
    angle, rate, torque, friction, inertia = sympy.symbols("angle rate torque friction inertia", real=True)
    body = Model(
        name="body",
        states=(Quantity(angle, "rad", nominal=0.0), Quantity(rate, "rad/s", nominal=0.0)),
        inputs=(Quantity(torque, "N*m"), Quantity(friction, "N*m")),
        parameters=(Quantity(inertia, "kg*m^2/rad", nominal=1.0, lower=1e-3, upper=1e3),),
        derivatives={angle: rate, rate: (torque - friction) / inertia},
        outputs={Quantity("measured_angle", "rad"): angle, Quantity("surface_rate", "rad/s"): rate},
    )
    return compose(
        "joint",
        parts={"body": body, "friction": make_lugre()},
        connect={"friction.velocity": "body.surface_rate", "body.friction": "friction.force"},
    )


def reference(time: float) -> tuple[float, float, float]:
    """Return angle, rate and acceleration that are asked for: to and fro between 0 and the amplitude."""
    omega = 2.0 * np.pi / PERIOD
    half = 0.5 * AMPLITUDE
    return (
        half * (1.0 - np.cos(omega * time)),
        half * omega * np.sin(omega * time),
        half * omega**2 * np.cos(omega * time),
    )


def run(*, observer: bool, factor: float = 1.0, end: float = 4.0) -> Array:
    """Return the control error at every sample, rad.

    Parameters
    ----------
    observer : bool
        Whether the observer is given the velocity; at velocity 0 it stays at rest and compensates nothing.
    factor : float
        By which the controller's Coulomb and viscous friction differ from the joint's.
    end : float
        Length of the motion, s.
    """
    functions = lower(make_friction_compensation())
    controller = build(functions)
    nominal = dict(zip(functions.labels("p"), functions.vector("p"), strict=True))
    p = functions.vector("p", {name: factor * nominal[name] for name in ("a0", "a1", "a2", "a3")})
    joint = lower(make_joint())
    plant = build_simulator(discretise(joint, reconstruction={"body_torque": "hold"}), sensitivities=False)
    p_joint, x, d = joint.vector("p"), np.zeros(joint.size("x")), np.zeros(2)
    errors, before = [], 0.0
    for k in range(round(end / SAMPLE_TIME)):
        angle, rate, acceleration = reference(k * SAMPLE_TIME)
        measured = COUNT * np.round(x[0] / COUNT)
        u = np.array(
            [angle, rate, acceleration, measured, (measured - before) / SAMPLE_TIME, rate * observer]
        )
        d = controller.evaluate("update", d=d, u=u, p=p).ravel()
        torque = controller.evaluate("output", d=d, u=u, p=p).ravel()
        motion = plant.rollout(
            np.array([0.0, SAMPLE_TIME]), np.array([torque, torque]), x, np.zeros(0), p_joint
        )
        if motion.status:
            raise SystemExit(f"joint: {motion.status}")
        errors.append(angle - x[0])
        x, before = motion.states[-1], measured
    return np.array(errors)


def main() -> None:
    """Print the error with and without observer."""
    for name, observer, factor in (
        ("PD", False, 1.0),
        ("observer", True, 1.0),
        ("observer, friction 10 % low", True, 0.9),
    ):
        error = run(observer=observer, factor=factor)
        print(f"{name:30s} {1e3 * np.sqrt(np.mean(error**2)):.4f} mrad rms")


if __name__ == "__main__":
    main()
