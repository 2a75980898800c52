"""The electro-mechanical positioning system EMPS: one prismatic axis with friction.

Equations and nominal values are those of Janot, Gautier and Brunot 2019, Data Set and Reference Models of EMPS,
Workshop on Nonlinear System Identification Benchmarks.
"""

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

REFERENCE = (
    "Janot, Gautier, Brunot 2019, Data Set and Reference Models of EMPS, "
    "Workshop on Nonlinear System Identification Benchmarks"
)


def _mass() -> Quantity:
    return Quantity("mass", "kg", description="moving mass", nominal=95.1089, lower=1.0, upper=1000.0)


def _offset() -> Quantity:
    return Quantity(
        "offset",
        "N",
        description="constant force, of the amplifier",
        nominal=-3.1648,
        lower=-100.0,
        upper=100.0,
    )


def _friction(name: str, nominal: float, description: str) -> Quantity:
    """Return a viscous (N s/m) or Coulomb (N) coefficient; both are never negative."""
    viscous = name.startswith("viscous")
    return Quantity(
        name,
        "N*s/m" if viscous else "N",
        description=description,
        nominal=nominal,
        lower=0.0,
        upper=1e5 if viscous else 1e4,
    )


def make_emps_static() -> Model:
    """Return F = M a + Fv v + Fc sign(v) + offset, the inverse dynamics of the axis.

    It is linear in all four parameters.
    """
    acceleration = Quantity("acceleration", "m/s^2", description="acceleration of the carriage")
    velocity = Quantity("velocity", "m/s", description="velocity of the carriage")
    parameters = (
        _mass(),
        _friction("viscous", 203.5034, "viscous friction"),
        _friction("coulomb", 20.3935, "Coulomb friction"),
        _offset(),
    )
    a, v, mass, viscous, coulomb, offset = (
        quantity.elements[0] for quantity in (acceleration, velocity, *parameters)
    )
    return Model(
        name="emps",
        inputs=(acceleration, velocity),
        parameters=parameters,
        outputs={
            Quantity("force", "N", description="force of the motor on the carriage"): mass * a
            + viscous * v
            + coulomb * sympy.sign(v)
            + offset
        },
        description="Inverse dynamics of the EMPS axis with Coulomb and viscous friction.",
        references=(REFERENCE,),
    )


def make_emps_asymmetric() -> Model:
    """Return F = M a + (Fv+ v + Fc+ if v > 0, Fv- v - Fc- if v < 0), friction that depends on the direction.

    There is no offset: equal and opposite to it is (Fc- - Fc+) / 2, so both can't be determined.
    """
    emps = make_emps_static()
    parameters = (
        _friction("viscous_positive", 166.7061, "viscous friction in positive direction"),
        _friction("coulomb_positive", 20.1440, "Coulomb friction in positive direction"),
        _friction("viscous_negative", 240.4236, "viscous friction in negative direction"),
        _friction("coulomb_negative", 20.6277, "Coulomb friction in negative direction"),
    )
    viscous_positive, coulomb_positive, viscous_negative, coulomb_negative = (
        quantity.elements[0] for quantity in parameters
    )
    velocity = emps["velocity"]
    friction = sympy.Piecewise(
        (viscous_positive * velocity + coulomb_positive, velocity > 0),
        (viscous_negative * velocity - coulomb_negative, velocity < 0),
        (0, True),
    )
    return emps.replace(
        name="emps_asymmetric",
        parameters=parameters,
        outputs={"force": emps["mass"] * emps["acceleration"] + friction},
        description="Inverse dynamics of the EMPS axis with friction that depends on the direction.",
    )


def make_axis() -> Model:
    """Return M dv/dt = F - F_friction - offset, the carriage alone, for composition with a friction model."""
    position = Quantity("position", "m", description="position of the carriage", nominal=0.0)
    velocity = Quantity("velocity", "m/s", description="velocity of the carriage", nominal=0.0)
    motor_force = Quantity("motor_force", "N", description="force of the motor on the carriage")
    friction_force = Quantity("friction_force", "N", description="friction against the motion")
    parameters = (_mass(), _offset())
    mass, offset = (quantity.elements[0] for quantity in parameters)
    net_force = Quantity("net_force", "N", description="force that accelerates the carriage")
    return Model(
        name="axis",
        states=(position, velocity),
        inputs=(motor_force, friction_force),
        parameters=parameters,
        definitions={net_force: motor_force.elements[0] - friction_force.elements[0] - offset},
        derivatives={
            "position": velocity.elements[0],
            "velocity": net_force.elements[0] / mass,
        },
        outputs={
            Quantity("encoder", "m", description="measured position"): position.elements[0],
            Quantity("acceleration", "m/s^2", description="acceleration of the carriage"): net_force.elements[
                0
            ]
            / mass,
        },
        description="A carriage on a prismatic axis, driven by a motor against friction and a constant force.",
        references=(REFERENCE,),
    )


def make_emps_axis() -> Model:
    """Return M dv/dt = F - Fv v - Fc sign(v) - offset, the forward dynamics of the axis."""
    axis = make_axis()
    friction = (
        _friction("viscous", 203.5034, "viscous friction"),
        _friction("coulomb", 20.3935, "Coulomb friction"),
    )
    viscous, coulomb = (quantity.elements[0] for quantity in friction)
    velocity = axis["velocity"]
    friction_force = Quantity("friction_force", "N", description="friction against the motion")
    # The friction force, an input of the bare axis, becomes a definition.
    net_force = axis.quantities["net_force"]
    return Model(
        name="emps_axis",
        states=axis.states,
        inputs=(axis.quantities["motor_force"],),
        parameters=(*axis.parameters, *friction),
        definitions={
            friction_force: viscous * velocity + coulomb * sympy.sign(velocity),
            net_force: axis.expression("net_force"),
        },
        derivatives=axis.derivatives,
        outputs=axis.outputs,
        crossings=(velocity,),
        description="Forward dynamics of the EMPS axis with Coulomb and viscous friction.",
        references=axis.references,
    )
