"""What a load does to a serial robot whose joints are elastic: torques, joint deflections, deflection at any point.

Equations (8)-(18) of the source, with a force that keeps its direction and joints that turn by compliance times torque.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.chain import AXES, Chain
from mechsmith.symbolic.serial.frames import Frames, lay_out
from mechsmith.symbolic.serial.kinematics import (
    SOURCE,
    Column,
    column,
    jacobian_columns,
    output_model,
    point_quantities,
)
from mechsmith.symbolic.serial.let import Let

LoadKind = Literal["rope", "wrench"]
GRAVITY = 9.80665  # m/s^2, standard


@dataclass(frozen=True)
class Loaded:
    """A chain under a load: what the models of stiffness share.

    Parameters
    ----------
    frames : Frames
        The chain, laid out.
    inputs, parameters : tuple of Quantity
        Everything that may be used.
    columns : list of Column
        Of the Jacobian of the loaded point.
    force, moment : sympy.Matrix
        (3, 1), N and N m, in base axes.
    torques : tuple of sympy.Expr
        N m (N at prismatic joints), by the load.
    """

    frames: Frames
    inputs: tuple[Quantity, ...]
    parameters: tuple[Quantity, ...]
    columns: list[Column]
    force: sympy.Matrix
    moment: sympy.Matrix
    torques: tuple[sympy.Expr, ...]


def compliance_quantities(chain: Chain) -> tuple[Quantity, ...]:
    """Return ``compliance_1`` and so on, rad/(N m) (m/N for prismatic joints)."""
    return tuple(
        Quantity(
            f"compliance_{number}",
            "m/N" if joint.kind == "prismatic" else "rad/(N*m)",
            description=f"compliance of joint {number}, 1/K",
            nominal=1e-8 if joint.kind == "prismatic" else 1e-6,
        )
        for number, joint in enumerate(chain.moving, start=1)
    )


def load_inputs(load: LoadKind) -> tuple[Quantity, ...]:
    """Return the inputs that describe a load: pulley and mass, or force and moment in base axes."""
    if load == "rope":
        pulley = point_quantities(
            "pulley", nominal=(1.0, 1.0, 1.0), text="where the rope leaves the pulley, base axes"
        )
        return (*pulley, Quantity("mass", "kg", description="hanging on the rope", nominal=10.0, lower=0.0))
    if load != "wrench":
        raise ModelError(f"load {load!r} is not allowed. Use rope or wrench.")
    force = (Quantity(f"force_{a}", "N", description=f"force, base axes, {a}", nominal=100.0) for a in AXES)
    moment = (
        Quantity(f"moment_{a}", "N*m", description=f"moment, base axes, {a}", nominal=0.0) for a in AXES
    )
    return (*force, *moment)


def apply_load(chain: Chain, let: Let, load: LoadKind) -> Loaded:
    """Return a chain loaded at ``loaded_x, _y, _z`` (m, flange axes) by a rope over a pulley or by a wrench."""
    frames = lay_out(chain, let)
    loaded = point_quantities("loaded", nominal=(0.0, 0.0, 0.0), text="loaded point in flange axes")
    gravity = Quantity("gravity", "m/s^2", description="of the hanging mass", nominal=GRAVITY, lower=0.0)
    inputs = load_inputs(load)
    point = let.matrix("eyebolt", "m", frames.flange.point(column(loaded)))
    columns = jacobian_columns(frames, let, point)
    if load == "rope":
        rope = let.matrix("rope", "m", column(inputs[:3]) - point)
        # Where this vanishes the rope has no direction: nothing to be smoothed.
        squared = let("rope_squared", "m^2", rope.dot(rope))
        length = let("rope_length", "m", sympy.sqrt(squared))
        pull = let("pull", "N", inputs[3].elements[0] * gravity.elements[0])
        force, moment = let.matrix("force", "N", pull * rope / length), sympy.zeros(3, 1)
    else:
        force, moment = column(inputs[:3]), column(inputs[3:])
    torques = tuple(
        let(
            f"load_{number}",
            "N" if axis.kind == "prismatic" else "N*m",
            one.linear.dot(force) + one.angular.dot(moment),
            description=f"torque of joint {number} by the load, (10)",
        )
        for number, (axis, one) in enumerate(zip(frames.axes, columns, strict=True), start=1)
    )
    return Loaded(
        frames,
        (*frames.coordinates, *inputs),
        (*frames.geometry, *loaded, gravity),
        columns,
        force,
        moment,
        torques,
    )


def make_deflection(chain: Chain, *, load: LoadKind = "rope") -> Model:
    """Return the deflection of a point under a load at another, in flange axes and in base axes.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1`` and so on, rad.
    load : "rope" or "wrench"
        A mass on a rope over a pulley (inputs ``pulley_x, _y, _z`` m in base axes, ``mass`` kg), or a wrench (inputs
        ``force_x``... N, ``moment_x``... N m, base axes). Both act at the parameters ``loaded_x, _y, _z``.

    Returns
    -------
    Model
        Outputs ``torque_i`` (10), ``joint_deflection_i`` (9), ``deflection_x, _y, _z`` of the point ``measured_x``...
        along flange axes and ``base_deflection_x``... along base axes (m), ``rotation_x``... (rad, base axes); (18).
        Points are in flange axes. Linear in ``compliance_i``.
    """
    let = Let()
    loaded = apply_load(chain, let, load)
    measured = point_quantities("measured", nominal=(0.0, 0.0, 0.0), text="measured point in flange axes")
    compliances = compliance_quantities(chain)
    bends = joint_deflections(loaded, compliances, let)
    linear, angular = motion_of_point(loaded.frames, let, column(measured), bends)
    outputs = torque_outputs(loaded)
    for number, (axis, bend) in enumerate(zip(loaded.frames.axes, bends, strict=True), start=1):
        outputs[Quantity(f"joint_deflection_{number}", "m" if axis.kind == "prismatic" else "rad")] = bend
    linear = let.matrix("shift", "m", linear)
    for axis_name, value in zip(AXES, loaded.frames.flange.rotation.T * linear, strict=True):
        outputs[
            Quantity(f"deflection_{axis_name}", "m", description="of the measured point, flange axes")
        ] = value
    for axis_name, value in zip(AXES, linear, strict=True):
        outputs[
            Quantity(f"base_deflection_{axis_name}", "m", description="of the measured point, base axes")
        ] = value
    for axis_name, value in zip(AXES, angular, strict=True):
        outputs[Quantity(f"rotation_{axis_name}", "rad", description="of the flange, base axes")] = value
    return output_model(
        f"{chain.name}_deflection" if load == "rope" else f"{chain.name}_deflection_{load}",
        let,
        outputs,
        inputs=loaded.inputs,
        parameters=(*loaded.parameters, *measured, *compliances),
        description="Deflection of a point of the flange under a load, by elastic joints.",
        references=(*chain.references, f"{SOURCE}, (9)-(18)"),
    )


def make_gauge(chain: Chain, *, load: LoadKind = "rope") -> Model:
    """Return what one dial gauge reads under a load, linear in the compliances; (15) with points as in (18).

    Parameters
    ----------
    chain : Chain
        As in `make_deflection`.
    load : "rope" or "wrench"
        As there.

    Returns
    -------
    Model
        Output ``loaded_reading`` (m): the deflection of the point ``measured_x``... along the unit vector
        ``direction_x``... (inputs, flange axes) plus the input ``unloaded_reading``, the reading after unloading,
        which holds what backlash left. Outputs ``torque_i`` as there.
    """
    let = Let()
    loaded = apply_load(chain, let, load)
    measured = point_quantities("measured", nominal=(0.0, 0.0, 0.0), text="measured point in flange axes")
    direction = tuple(
        Quantity(f"direction_{a}", "", description=f"of the gauge, flange axes, {a}", nominal=float(a == "x"))
        for a in AXES
    )
    after = Quantity("unloaded_reading", "m", description="of the gauge after unloading", nominal=0.0)
    compliances = compliance_quantities(chain)
    bends = joint_deflections(loaded, compliances, let)
    linear, _ = motion_of_point(loaded.frames, let, column(measured), bends)
    along = let.matrix("direction_base", "", loaded.frames.flange.rotation * column(direction))
    reading = let.matrix("shift", "m", linear).dot(along) + after.elements[0]
    outputs = {Quantity("loaded_reading", "m", description="of the gauge under load"): reading}
    outputs |= torque_outputs(loaded)
    return output_model(
        f"{chain.name}_gauge" if load == "rope" else f"{chain.name}_gauge_{load}",
        let,
        outputs,
        inputs=(*loaded.inputs, *measured, *direction, after),
        parameters=(*loaded.parameters, *compliances),
        description="Reading of a dial gauge at the flange under a load, by elastic joints.",
        references=(*chain.references, f"{SOURCE}, (13)-(18)"),
    )


def make_compliance(chain: Chain) -> Model:
    """Return the Cartesian compliance J diag(c) J^T at a point, in base axes, the inverse of (12).

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1``...; ``point_x, _y, _z`` is the point in flange axes; parameters ``compliance_i``.

    Returns
    -------
    Model
        Outputs (3, 3): ``translation_compliance`` (m/N, displacement by force), ``coupling_compliance`` (m/(N m),
        displacement by moment; transposed, rotation by force), ``rotation_compliance`` (rad/(N m)).
    """
    let = Let()
    frames = lay_out(chain, let)
    local = point_quantities("point", nominal=(0.0, 0.0, 0.0), text="point in flange axes")
    columns = jacobian_columns(frames, let, let.matrix("point", "m", frames.flange.point(column(local))))
    compliances = compliance_quantities(chain)
    blocks = [sympy.zeros(3, 3) for _ in range(3)]
    for one, compliance in zip(columns, compliances, strict=True):
        pairs = ((one.linear, one.linear), (one.linear, one.angular), (one.angular, one.angular))
        for i, (left, right) in enumerate(pairs):
            blocks[i] += compliance.elements[0] * left * right.T
    units = (("translation", "m/N"), ("coupling", "m/(N*m)"), ("rotation", "rad/(N*m)"))
    outputs = {
        Quantity(f"{name}_compliance", unit, shape=(3, 3), description="base axes"): block
        for (name, unit), block in zip(units, blocks, strict=True)
    }
    return output_model(
        f"{chain.name}_compliance",
        let,
        outputs,
        inputs=frames.coordinates,
        parameters=(*frames.geometry, *local, *compliances),
        description="Cartesian compliance of the flange by elastic joints.",
        references=(*chain.references, f"{SOURCE}, (12)"),
    )


def torque_outputs(loaded: Loaded) -> dict[Quantity, sympy.Expr]:
    """Return the torques by the load as outputs ``torque_i``."""
    return {
        Quantity(
            f"torque_{number}", "N" if axis.kind == "prismatic" else "N*m", description="by the load"
        ): torque
        for number, (axis, torque) in enumerate(zip(loaded.frames.axes, loaded.torques, strict=True), start=1)
    }


def joint_deflections(loaded: Loaded, compliances: Iterable[Quantity], let: Let) -> list[sympy.Expr]:
    """Return compliance times torque for each joint; (9)."""
    return [
        let(f"bend_{number}", "m" if axis.kind == "prismatic" else "rad", compliance.elements[0] * torque)
        for number, (axis, compliance, torque) in enumerate(
            zip(loaded.frames.axes, compliances, loaded.torques, strict=True), start=1
        )
    ]


def motion_of_point(
    frames: Frames, let: Let, local: sympy.Matrix, bends: Iterable[sympy.Expr]
) -> tuple[sympy.Matrix, sympy.Matrix]:
    """Return displacement (m) and rotation (rad) in base axes of a point given in flange axes, for small `bends`; (11)."""
    point = let.matrix("gauge_point", "m", frames.flange.point(local))
    linear, angular = sympy.zeros(3, 1), sympy.zeros(3, 1)
    for number, (axis, bend) in enumerate(zip(frames.axes, bends, strict=True), start=1):
        if axis.kind == "prismatic":
            linear += axis.direction * bend
            continue
        arm = let.matrix(f"gauge_arm_{number}", "m", point - axis.origin)
        linear += axis.direction.cross(arm) * bend
        angular += axis.direction * bend
    return linear, angular


def make_loaded_position(chain: Chain) -> Model:
    """Return where a point of the flange is under a wrench, absolute: geometry and compliances at once.

    With positions measured with and without load, both can be identified together.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1``... and the wrench ``force_x``..., ``moment_x``... at ``loaded_x``...; open what is to be found.

    Returns
    -------
    Model
        Outputs ``position_x, _y, _z`` (m, base axes) of the point ``measured_x``... (parameters, m, flange axes).
    """
    let = Let()
    loaded = apply_load(chain, let, "wrench")
    measured = point_quantities("measured", nominal=(0.0, 0.0, 0.0), text="measured point in flange axes")
    compliances = compliance_quantities(chain)
    bends = joint_deflections(loaded, compliances, let)
    linear, _ = motion_of_point(loaded.frames, let, column(measured), bends)
    place = loaded.frames.flange.point(column(measured)) + linear
    outputs = {
        Quantity(f"position_{axis}", "m", description="of the measured point, base axes"): value
        for axis, value in zip(AXES, place, strict=True)
    }
    return output_model(
        f"{chain.name}_loaded_position",
        let,
        outputs,
        inputs=loaded.inputs,
        parameters=(*loaded.parameters, *measured, *compliances),
        description="Position of a point of the flange under a load, by elastic joints.",
        references=(*chain.references, f"{SOURCE}, (18)"),
    )
