"""Elastic joints taken exactly: the equilibrium of the displaced robot, and the joint command that makes up for a load.

The deflection of `stiffness` is linear in the load: arms are those of the unloaded pose. Here the torques are those
of the loaded pose, which holds the geometric stiffness (Chen and Kao 2000, Int. J. Robotics Research 19) too.
"""

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.chain import AXES, Chain
from mechsmith.symbolic.serial.frames import joint_quantities, lay_out
from mechsmith.symbolic.serial.kinematics import SOURCE, column, jacobian_columns, point_quantities
from mechsmith.symbolic.serial.let import Let, used
from mechsmith.symbolic.serial.stiffness import apply_load, compliance_quantities, load_inputs

CHEN_KAO = (
    "Chen and Kao 2000, Conservative congruence transformation for joint and Cartesian stiffness matrices"
)


def make_equilibrium(chain: Chain) -> Model:
    """Return the deflection of a point under a wrench that keeps its direction, by the displaced robot's equilibrium.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1``... (of the unloaded robot), ``force_x``... (N), ``moment_x``... (N m), base axes, at the point
        ``loaded_x``... of the flange (parameters, m, flange axes).

    Returns
    -------
    Model
        Unknowns ``joint_deflection_i``; outputs ``base_deflection_x, _y, _z`` (m) of ``measured_x``..., base axes.
    """
    let = Let()
    coordinates = joint_quantities(chain, "q", description="position of the unloaded robot, of joint")
    wrench = load_inputs("wrench")
    loaded = point_quantities("loaded", nominal=(0.0, 0.0, 0.0), text="loaded point in flange axes")
    measured = point_quantities("measured", nominal=(0.0, 0.0, 0.0), text="measured point in flange axes")
    compliances = compliance_quantities(chain)
    # Newton's method judges its last step by this size: 1e-4 is a large deflection of a joint.
    unknowns = tuple(
        Quantity(f"joint_deflection_{i + 1}", coordinate.unit, description="under the load", nominal=1e-4)
        for i, coordinate in enumerate(coordinates)
    )
    rest = lay_out(chain, let)
    bent = let.under("bent_")
    positions = [
        bent(f"q_{i + 1}", str(q.unit), q.elements[0] + z.elements[0])
        for i, (q, z) in enumerate(zip(coordinates, unknowns, strict=True))
    ]
    frames = lay_out(chain, bent, positions=positions)
    columns = jacobian_columns(frames, bent, bent.matrix("loaded", "m", frames.flange.point(column(loaded))))
    force, moment = column(wrench[:3]), column(wrench[3:])
    constraints = {
        unknown.elements[0]: unknown.elements[0]
        - compliance.elements[0] * (one.linear.dot(force) + one.angular.dot(moment))
        for unknown, compliance, one in zip(unknowns, compliances, columns, strict=True)
    }
    shift = frames.flange.point(column(measured)) - rest.flange.point(column(measured))
    outputs = {
        Quantity(f"base_deflection_{axis}", "m", description="of the measured point, base axes"): value
        for axis, value in zip(AXES, shift, strict=True)
    }
    groups = [*outputs.values(), *constraints.values()]
    definitions = let.used_by(groups)
    return Model(
        name=f"{chain.name}_equilibrium",
        unknowns=unknowns,
        inputs=used((*coordinates, *wrench), groups, definitions.values()),
        parameters=used((*rest.geometry, *loaded, *measured, *compliances), groups, definitions.values()),
        definitions=definitions,
        constraints=constraints,
        outputs=outputs,
        description="Deflection of a point of the flange under a load, with the torques of the loaded pose.",
        references=(*chain.references, CHEN_KAO),
    )


def make_compensation(chain: Chain) -> Model:
    """Return the joint positions to command so that a robot with elastic joints, loaded, stands where it is wanted.

    The torques are those of the wanted pose, in which the loaded robot stands, so nothing is neglected: q - c J^T F.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1``... (wanted), ``force_x``... (N), ``moment_x``... (N m), base axes, at the parameters
        ``loaded_x``... (m, flange axes).

    Returns
    -------
    Model
        Outputs ``correction_i`` and ``command_i`` for each joint.
    """
    let = Let()
    loaded = apply_load(chain, let, "wrench")
    corrections: dict[Quantity, sympy.Expr] = {}
    commands: dict[Quantity, sympy.Expr] = {}
    compliances = compliance_quantities(chain)
    for i, (q, compliance) in enumerate(zip(loaded.frames.coordinates, compliances, strict=True)):
        correction = let(f"back_{i + 1}", str(q.unit), -compliance.elements[0] * loaded.torques[i])
        corrections[Quantity(f"correction_{i + 1}", q.unit, description=f"of joint {i + 1}")] = correction
        commands[Quantity(f"command_{i + 1}", q.unit, description=f"of joint {i + 1}")] = (
            q.elements[0] + correction
        )
    outputs = {**corrections, **commands}
    definitions = let.used_by(outputs.values())
    groups = (outputs.values(), definitions.values())
    return Model(
        name=f"{chain.name}_compensation",
        inputs=used(loaded.inputs, *groups),
        parameters=used((*loaded.parameters, *compliances), *groups),
        definitions=definitions,
        outputs=outputs,
        description="Joint positions to command so that the loaded robot stands where it is wanted.",
        references=(*chain.references, f"{SOURCE}, (9), (10)"),
    )
