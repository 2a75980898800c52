"""The sampled position controller of the EMPS axis."""

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity

REFERENCE = (
    "Janot, Gautier, Brunot 2019, Data Set and Reference Models of EMPS, "
    "Workshop on Nonlinear System Identification Benchmarks"
)


def make_emps_controller(*, delay: int = 0) -> Model:
    """Return u = sat(kv (kp (q_ref - q) - dq) + pulse), held between samples, and the motor force gtau u.

    The velocity dq is the backward difference of the mean of the last two positions. At a sample the
    discrete states are updated first, and the new voltage holds until the next one.

    The recorded voltage is this law without delay, to its resolution (24 mV); the saturation acts on the sum,
    for the recorded voltage with a pulse of 5 V follows the law where the law alone is below -10 V.

    Parameters
    ----------
    delay : 0 or 1
        Samples after which the computed voltage reaches the motor. The recorded motion asks for 0 (closed-loop
        simulation: force error 4.6 % against 7.1 % with 1); the authors' simulation has 1.

    Raises
    ------
    ModelError
        If the delay is neither 0 nor 1.
    """
    if delay not in (0, 1):
        raise ModelError(f"EMPS controller: delay {delay!r} is not modelled. Give 0 or 1 samples.")
    reference = Quantity("reference", "m", description="position that is asked for")
    position = Quantity("position", "m", description="measured position")
    pulse = Quantity("pulse", "V", description="voltage added to excite the axis")
    previous = Quantity("previous_position", "m", description="position one sample ago", nominal=0.0)
    earlier = Quantity("earlier_position", "m", description="position two samples ago", nominal=0.0)
    voltage = Quantity("voltage", "V", description="held control voltage", nominal=0.0)
    computed = Quantity("computed_voltage", "V", description="voltage of the sample before", nominal=0.0)
    velocity = Quantity("velocity_estimate", "m/s", description="backward difference of mean positions")
    command = Quantity("command", "V", description="computed voltage, saturated")
    parameters = _parameters()
    position_gain, velocity_gain, drive_gain, limit, sample_time = (q.elements[0] for q in parameters)
    q, q_ref, estimate, added = (x.elements[0] for x in (position, reference, velocity, pulse))
    law = velocity_gain * (position_gain * (q_ref - q) - estimate) + added
    updates = {"earlier_position": previous.elements[0], "previous_position": q}
    late = {"voltage": computed.elements[0], "computed_voltage": command.elements[0]}
    return Model(
        name="emps_controller",
        discrete_states=(previous, earlier, voltage) + ((computed,) if delay else ()),
        inputs=(reference, position, pulse),
        parameters=parameters,
        definitions={
            velocity: (q - earlier.elements[0]) / (2 * sample_time),
            command: sympy.Max(-limit, sympy.Min(limit, law)),
        },
        updates={**updates, **(late if delay else {"voltage": command.elements[0]})},
        sample_time="sample_time",
        outputs={
            Quantity("motor_force", "N", description="force of the motor"): drive_gain * voltage.elements[0]
        },
        description="Sampled proportional position and velocity controller of the EMPS axis.",
        references=(REFERENCE,),
    )


def _parameters() -> tuple[Quantity, ...]:
    """Return the published gains; the limit is that of the amplifier's input."""
    return (
        Quantity("position_gain", "1/s", description="gain kp", nominal=160.18, lower=0.0, upper=1e4),
        Quantity("velocity_gain", "V*s/m", description="gain kv", nominal=243.45, lower=0.0, upper=1e5),
        Quantity(
            "drive_gain",
            "N/V",
            description="force per volt, gtau",
            nominal=35.15065188248547,
            lower=0.0,
            upper=1e4,
        ),
        Quantity("voltage_limit", "V", description="saturation", nominal=10.0, lower=0.0, upper=1e3),
        Quantity("sample_time", "s", description="time between samples", nominal=1e-3, lower=1e-6, upper=1.0),
    )
