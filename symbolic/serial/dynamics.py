"""Inverse dynamics of a chain by the recursive Newton-Euler method, linear in the inertial parameters.

Luh, Walker, Paul 1980, On-line computational scheme for mechanical manipulators, J. Dyn. Sys. Meas. Control 102; inertias
about the link frames as in Khalil and Dombre 2002, Modeling, Identification and Control of Robots, chapter 9.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.body import PARAMETERS, UNITS, Body
from mechsmith.symbolic.serial.chain import AXES, Chain
from mechsmith.symbolic.serial.frames import Frame, Frames, joint_quantities, lay_out, skew
from mechsmith.symbolic.serial.kinematics import column, output_model, point_quantities
from mechsmith.symbolic.serial.let import Let
from mechsmith.symbolic.serial.stiffness import compliance_quantities, motion_of_point

NEWTON_EULER = "Luh, Walker, Paul 1980, On-line computational scheme for mechanical manipulators"
GRAVITY = 9.80665  # m/s^2, standard


class Motion(NamedTuple):
    """How a link moves, in base axes: angular velocity and acceleration, and acceleration of its frame's origin."""

    omega: sympy.Matrix
    alpha: sympy.Matrix
    acceleration: sympy.Matrix


def body_quantities(number: int, body: Body | None = None) -> tuple[Quantity, ...]:
    """Return the ten inertial parameters of the link behind joint `number` of all joints, ``mass_3``, ``xx_3``..."""
    values = (body or Body()).values
    return tuple(
        Quantity(
            f"{name}_{number}"
            if name in ("mass",) or name.startswith("first")
            else f"inertia_{name}_{number}",
            unit,
            description=f"{name} of link {number}, about its frame",
            nominal=values[name],
        )
        for name, unit in zip(PARAMETERS, UNITS, strict=True)
    )


def make_inverse_dynamics(
    chain: Chain, bodies: Sequence[Body] | None = None, *, static: bool = False
) -> Model:
    """Return the joint torques of a motion, linear in mass, first moments and inertia of every link.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_i``, ``dq_i``, ``ddq_i`` of the joints that move. Gravity points along the world's -z.
    bodies : sequence of Body, optional
        Nominal values, one for each joint, fixed ones too: a flange on a fixed joint counts.
    static : bool
        Only the torques that hold the robot still against gravity.

    Returns
    -------
    Model
        Outputs ``torque_i`` (N m; N at prismatic joints), what the drives must give; parameters ``mass_k``,
        ``first_x_k``..., ``inertia_xx_k``... by joint number k, and ``gravity`` (m/s^2).

    Raises
    ------
    ModelError
        If there are not as many bodies as joints.
    """
    if bodies is not None and len(bodies) != len(chain.joints):
        raise ModelError(
            f"inverse dynamics of {chain.name!r}: {len(bodies)} bodies for {len(chain.joints)} joints. Give one for each, fixed ones too."
        )
    let = Let()
    frames = lay_out(chain, let)
    speeds = joint_quantities(chain, "dq", "/s", "speed")
    accelerations = joint_quantities(chain, "ddq", "/s^2", "acceleration")
    gravity = Quantity("gravity", "m/s^2", description="along -z of the world", nominal=GRAVITY, lower=0.0)
    rates = [
        (sympy.Integer(0),) * 2 if static else (v.elements[0], a.elements[0])
        for v, a in zip(speeds, accelerations, strict=True)
    ]
    motions = _outward(frames, let, rates, gravity.elements[0])
    inertial = [
        body_quantities(k, bodies[k - 1] if bodies else None) for k in range(1, len(chain.joints) + 1)
    ]
    torques = _inward(frames, let, motions, inertial)
    outputs = {
        Quantity(
            f"torque_{i}", "N" if axis.kind == "prismatic" else "N*m", description=f"of joint {i}"
        ): torque
        for i, (axis, torque) in enumerate(zip(frames.axes, torques, strict=True), start=1)
    }
    return output_model(
        f"{chain.name}_gravity_torque" if static else f"{chain.name}_inverse_dynamics",
        let,
        outputs,
        inputs=(*frames.coordinates, *speeds, *accelerations),
        parameters=(*frames.geometry, gravity, *(q for group in inertial for q in group)),
        description="Joint torques that hold the robot still." if static else "Joint torques of a motion.",
        references=(*chain.references, NEWTON_EULER),
    )


def make_sag(chain: Chain, bodies: Sequence[Body] | None = None) -> Model:
    """Return the deflection of a point of the flange by the links' own weight, through elastic joints.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_i``. Gravity points along the world's -z.
    bodies : sequence of Body, optional
        Nominal values, one for each joint.

    Returns
    -------
    Model
        Outputs ``base_deflection_x``... (m, base axes) of the point ``measured_x``... (parameters, m, flange axes), linear in
        ``compliance_i`` and in the inertial parameters.
    """
    let = Let()
    frames = lay_out(chain, let)
    gravity = Quantity("gravity", "m/s^2", description="along -z of the world", nominal=GRAVITY, lower=0.0)
    inertial = [
        body_quantities(k, bodies[k - 1] if bodies else None) for k in range(1, len(chain.joints) + 1)
    ]
    still = [(sympy.Integer(0), sympy.Integer(0))] * len(frames.axes)
    holding = _inward(frames, let, _outward(frames, let, still, gravity.elements[0]), inertial)
    compliances = compliance_quantities(chain)
    # A joint gives way against the torque that the drive holds it with.
    bends = [
        let(f"bend_{i}", str(q.unit), -c.elements[0] * torque)
        for i, (q, c, torque) in enumerate(
            zip(frames.coordinates, compliances, holding, strict=True), start=1
        )
    ]
    measured = point_quantities("measured", nominal=(0.0, 0.0, 0.0), text="measured point in flange axes")
    linear, _ = motion_of_point(frames, let, column(measured), bends)
    outputs = {
        Quantity(f"base_deflection_{axis}", "m", description="by the links' weight, base axes"): value
        for axis, value in zip(AXES, linear, strict=True)
    }
    return output_model(
        f"{chain.name}_sag",
        let,
        outputs,
        inputs=frames.coordinates,
        parameters=(
            *frames.geometry,
            gravity,
            *measured,
            *compliances,
            *(q for group in inertial for q in group),
        ),
        description="Deflection of a point of the flange by the links' own weight.",
        references=(*chain.references, NEWTON_EULER),
    )


def _outward(
    frames: Frames, let: Let, rates: Sequence[tuple[sympy.Expr, sympy.Expr]], gravity: sympy.Symbol
) -> list[Motion]:
    """Return the motion of each link; gravity as an acceleration of the base upwards."""
    omega, alpha = sympy.zeros(3, 1), sympy.zeros(3, 1)
    acceleration, place = sympy.Matrix([0, 0, gravity]), sympy.zeros(3, 1)
    motions, moving = [], 0
    for number, (joint, link) in enumerate(zip(frames.chain.joints, frames.links, strict=True), start=1):
        local = let.under(f"link_{number}_")
        extra = sympy.zeros(3, 1)
        if joint.kind != "fixed":
            axis, (rate, change) = frames.axes[moving], rates[moving]
            moving += 1
            if joint.kind == "prismatic":
                # the new origin moves along with the link, which slides (Coriolis) besides
                extra = 2 * omega.cross(axis.direction * rate) + axis.direction * change
            else:
                # up to the joint's axis with the link before it
                arm = local.matrix("to_axis", "m", axis.origin - place)
                acceleration = local.matrix(
                    "axis_acceleration", "m/s^2", _carried(acceleration, omega, alpha, arm)
                )
                place = axis.origin
                turning = axis.direction * rate
                alpha = local.matrix("alpha", "1/s^2", alpha + omega.cross(turning) + axis.direction * change)
                omega = local.matrix("omega", "1/s", omega + turning)
        arm = local.matrix("arm", "m", link.origin - place)
        acceleration = local.matrix(
            "acceleration", "m/s^2", _carried(acceleration, omega, alpha, arm) + extra
        )
        place = link.origin
        motions.append(Motion(omega, alpha, acceleration))
    return motions


def _carried(
    acceleration: sympy.Matrix, omega: sympy.Matrix, alpha: sympy.Matrix, arm: sympy.Matrix
) -> sympy.Matrix:
    return acceleration + alpha.cross(arm) + omega.cross(omega.cross(arm))


def _inward(
    frames: Frames, let: Let, motions: Sequence[Motion], inertial: Sequence[tuple[Quantity, ...]]
) -> list[sympy.Expr]:
    """Return the torque of each joint that moves, from the last link to the base."""
    force, moment, place = sympy.zeros(3, 1), sympy.zeros(3, 1), sympy.zeros(3, 1)
    torques: list[sympy.Expr] = []
    moving = len(frames.axes)
    for number in range(len(motions), 0, -1):
        local = let.under(f"link_{number}_")
        link, joint = frames.links[number - 1], frames.chain.joints[number - 1]
        own_force, own_moment = _link_wrench(local, link, motions[number - 1], inertial[number - 1])
        moment = local.matrix("moment", "N*m", moment + (place - link.origin).cross(force) + own_moment)
        force, place = local.matrix("force", "N", force + own_force), link.origin
        if joint.kind == "fixed":
            continue
        moving -= 1
        axis = frames.axes[moving]
        if joint.kind == "prismatic":
            torques.insert(0, axis.direction.dot(force))
        else:
            torques.insert(0, axis.direction.dot(moment + (place - axis.origin).cross(force)))
    return torques


def _link_wrench(
    let: Let, link: Frame, motion: Motion, quantities: tuple[Quantity, ...]
) -> tuple[sympy.Matrix, sympy.Matrix]:
    """Return the force on a link and the moment about its origin that its motion needs, in base axes."""
    mass, x, y, z, xx, xy, xz, yy, yz, zz = (quantity.elements[0] for quantity in quantities)
    back = link.rotation.T
    omega = let.matrix("own_omega", "1/s", back * motion.omega)
    alpha = let.matrix("own_alpha", "1/s^2", back * motion.alpha)
    acceleration = let.matrix("own_acceleration", "m/s^2", back * motion.acceleration)
    first = sympy.Matrix([x, y, z])
    tensor = sympy.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    # alpha x + omega x omega x, as one matrix
    spread = let.matrix("spread", "1/s^2", skew(alpha) + skew(omega) * skew(omega))
    force = let.matrix("own_force", "N", mass * acceleration + spread * first)
    spin = let.matrix("spin", "kg*m^2/s", tensor * omega)
    moment = let.matrix("own_moment", "N*m", tensor * alpha + omega.cross(spin) + first.cross(acceleration))
    return link.rotation * force, link.rotation * moment
