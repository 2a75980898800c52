"""Pose, geometric Jacobian, its derivative and conditioning of a chain, as models with outputs only.

Sources: joint stiffness paper, equations (1), (2), (4)-(7); Lynch and Park 2017, Modern Robotics, chapter 5, for
the base and body Jacobians.
"""

from typing import Literal, NamedTuple

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.chain import AXES, Chain
from mechsmith.symbolic.serial.frames import Frames, joint_quantities, lay_out
from mechsmith.symbolic.serial.let import Let, used

JacobianFrame = Literal["hybrid", "base", "body"]
SOURCE = "Joint stiffness of a serial robot from static deflections (journal paper, in Chinese)"


def point_quantities(name: str, *, nominal: tuple[float, float, float], text: str) -> tuple[Quantity, ...]:
    """Return ``name_x``, ``name_y``, ``name_z`` in m."""
    return tuple(
        Quantity(f"{name}_{axis}", "m", description=f"{text}, {axis}", nominal=value)
        for axis, value in zip(AXES, nominal, strict=True)
    )


def column(quantities: tuple[Quantity, ...]) -> sympy.Matrix:
    """Return scalar quantities as a column vector."""
    return sympy.Matrix([quantity.elements[0] for quantity in quantities])


class Column(NamedTuple):
    """What a joint at unit rate does to a point: its velocity, the angular velocity, and the arm from axis to point."""

    linear: sympy.Matrix
    angular: sympy.Matrix
    arm: sympy.Matrix


def jacobian_columns(frames: Frames, let: Let, point: sympy.Matrix) -> list[Column]:
    """Return each joint's column of the Jacobian in base axes; (2).

    Parameters
    ----------
    frames : Frames
        The chain, laid out.
    let : Let
        Takes the definitions.
    point : sympy.Matrix
        (3, 1) in base axes, carried by the last link.
    """
    columns = []
    for number, axis in enumerate(frames.axes, start=1):
        arm = let.matrix(f"arm_{number}", "m", point - axis.origin)
        if axis.kind == "prismatic":
            columns.append(Column(axis.direction, sympy.zeros(3, 1), arm))
        else:
            linear = let.matrix(f"linear_{number}", "m", axis.direction.cross(arm))
            columns.append(Column(linear, axis.direction, arm))
    return columns


def output_model(
    name: str,
    let: Let,
    outputs: dict[Quantity, sympy.Matrix],
    *,
    inputs: tuple[Quantity, ...],
    parameters: tuple[Quantity, ...],
    description: str,
    references: tuple[str, ...],
) -> Model:
    """Return the model of outputs, with the definitions, inputs and parameters that they use."""
    definitions = let.used_by(outputs.values())
    groups = (outputs.values(), definitions.values())
    return Model(
        name=name,
        inputs=used(inputs, *groups),
        parameters=used(parameters, *groups),
        definitions=definitions,
        outputs=outputs,
        description=description,
        references=references,
    )


def make_pose(chain: Chain) -> Model:
    """Return the flange's pose: ``rotation`` (3, 3) and ``position`` (3,) m, in base axes; (1).

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1`` and so on; its geometry is parameters.
    """
    let = Let()
    frames = lay_out(chain, let)
    outputs = {
        Quantity("rotation", "", shape=(3, 3), description="flange axes in base axes, by column"): (
            frames.flange.rotation
        ),
        Quantity("position", "m", shape=(3,), description="flange centre in base axes"): frames.flange.origin,
    }
    return output_model(
        f"{chain.name}_pose",
        let,
        outputs,
        inputs=frames.coordinates,
        parameters=frames.geometry,
        description="Pose of the flange.",
        references=(*chain.references, f"{SOURCE}, (1)"),
    )


def make_jacobian(chain: Chain, *, frame: JacobianFrame = "hybrid", rate: bool = False) -> Model:
    """Return the geometric Jacobian of a point on the last link, one output (6,) for each joint, translation first.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1`` and so on; ``point_x, _y, _z`` are the point in flange axes (m, nominal the flange centre).
    frame : "hybrid", "base" or "body"
        Hybrid: velocity of the point, in base axes. Base: velocity of the point of the link that passes the base's
        origin, in base axes (spatial Jacobian). Body: velocity of the point, in flange axes.
    rate : bool
        The derivative with respect to time instead (hybrid only), with inputs ``dq_1`` and so on.

    Returns
    -------
    Model
        Outputs ``jacobian_1``... (or ``jacobian_rate_1``...), columns in m and 1 (prismatic: 1 and 1/m).
    """
    if frame not in ("hybrid", "base", "body"):
        raise ModelError(
            f"jacobian of {chain.name!r}: frame {frame!r} is not allowed. Use hybrid, base or body."
        )
    if rate and frame != "hybrid":
        raise ModelError(
            f"jacobian of {chain.name!r}: its rate is given in the frame hybrid, not {frame}. Turn the result."
        )
    let = Let()
    frames = lay_out(chain, let)
    local = point_quantities("point", nominal=(0.0, 0.0, 0.0), text="point in flange axes")
    point = let.matrix("point", "m", frames.flange.point(column(local)))
    columns = jacobian_columns(frames, let, point)
    speeds = joint_quantities(chain, "dq", "/s", "speed")
    if rate:
        columns = _rates(frames, let, columns, [speed.elements[0] for speed in speeds])
    elif frame == "base":
        columns = [c._replace(linear=c.linear + point.cross(c.angular)) for c in columns]
    elif frame == "body":
        back = frames.flange.rotation.T
        columns = [c._replace(linear=back * c.linear, angular=back * c.angular) for c in columns]
    outputs = {
        _column_quantity("jacobian_rate" if rate else "jacobian", number, axis.kind, "/s" if rate else ""): (
            sympy.Matrix.vstack(one.linear, one.angular)
        )
        for number, (axis, one) in enumerate(zip(frames.axes, columns, strict=True), start=1)
    }
    return output_model(
        f"{chain.name}_jacobian_rate" if rate else f"{chain.name}_jacobian_{frame}",
        let,
        outputs,
        inputs=(*frames.coordinates, *speeds),
        parameters=(*frames.geometry, *local),
        description=f"Geometric Jacobian ({frame}){', derivative with respect to time' if rate else ''}.",
        references=(*chain.references, f"{SOURCE}, (2)"),
    )


def _column_quantity(name: str, number: int, kind: str, per: str) -> Quantity:
    both = ("1", "1/m") if kind == "prismatic" else ("m", "1")
    linear, angular = ("" if unit + per == "1" else unit + per for unit in both)
    units = (linear, linear, linear, angular, angular, angular)
    return Quantity(
        f"{name}_{number}", units, shape=(6,), description=f"velocity at unit rate of joint {number}"
    )


def _rates(frames: Frames, let: Let, columns: list[Column], speeds: list[sympy.Symbol]) -> list[Column]:
    """Return d/dt of hybrid columns: an axis turns with the link before it, and its origin moves with that."""
    total = sympy.zeros(3, 1)
    for one, speed in zip(columns, speeds, strict=True):
        total += one.linear * speed
    total = let.matrix("point_rate", "m/s", total)
    omega, velocity, place = sympy.zeros(3, 1), sympy.zeros(3, 1), sympy.zeros(3, 1)
    result = []
    for number, (axis, one, speed) in enumerate(zip(frames.axes, columns, speeds, strict=True), start=1):
        velocity = let.matrix(f"origin_rate_{number}", "m/s", velocity + omega.cross(axis.origin - place))
        place = axis.origin
        turning = let.matrix(f"axis_rate_{number}", "1/s", omega.cross(axis.direction))
        if axis.kind == "prismatic":
            result.append(Column(turning, sympy.zeros(3, 1), one.arm))
            velocity = velocity + axis.direction * speed
            continue
        linear = turning.cross(one.arm) + axis.direction.cross(total - velocity)
        result.append(Column(linear, turning, one.arm))
        omega = let.matrix(f"omega_{number}", "1/s", omega + axis.direction * speed)
    return result
