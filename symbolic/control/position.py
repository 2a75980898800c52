"""Controllers of a position: shaped moves, shapers of any command, and proportional-derivative control, as Models."""

import math

import sympy

from mechsmith.symbolic.control.shaping import Impulses
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity

LONGEST_BUFFER = 4096


def _sample_time(nominal: float = 1e-3) -> Quantity:
    return Quantity(
        "sample_time", "s", description="time between samples", nominal=nominal, lower=1e-6, upper=1.0
    )


def _gains() -> tuple[Quantity, Quantity]:
    return (
        Quantity("stiffness", "N*m/rad", description="gain Kp", nominal=0.6, lower=0.0, upper=1e9),
        Quantity("damping", "N*m*s/rad", description="gain Kd", nominal=0.3, lower=0.0, upper=1e9),
    )


def make_pd_controller(*, sampled: bool = False) -> Model:
    """Return torque = Kp (reference - angle) + Kd (reference_rate - angle_rate).

    Parameters
    ----------
    sampled : bool
        Whether the torque is computed at samples and held between them.
    """
    names = ("reference", "reference_rate", "angle", "angle_rate")
    inputs = tuple(
        Quantity(name, "rad/s" if name.endswith("rate") else "rad", description=text)
        for name, text in zip(names, ("that is asked for", "its rate", "measured", "its rate"), strict=True)
    )
    reference, rate, angle, angle_rate = (q.elements[0] for q in inputs)
    stiffness, damping = _gains()
    law = stiffness.elements[0] * (reference - angle) + damping.elements[0] * (rate - angle_rate)
    torque = Quantity("torque", "N*m", description="of the motor")
    if not sampled:
        return Model(
            name="pd_controller",
            inputs=inputs,
            parameters=(stiffness, damping),
            outputs={torque: law},
            description="Proportional-derivative control of an angle.",
        )
    held = Quantity("held_torque", "N*m", description="held between samples", nominal=0.0)
    return Model(
        name="sampled_pd_controller",
        discrete_states=(held,),
        inputs=inputs,
        parameters=(stiffness, damping, _sample_time()),
        updates={held.name: law},
        sample_time="sample_time",
        outputs={torque: held.elements[0]},
        description="Proportional-derivative control of an angle, held between samples.",
    )


def make_shaped_move(impulses: Impulses) -> Model:
    """Return a move from rest to rest along a polynomial of degree five, convolved with the impulses of a shaper.

    At each sample the time since the start advances; the angle is the sum over the impulses of the move begun later by
    each one's time. Nothing is stored, and no impulse is moved to a sample.

    Parameters
    ----------
    impulses : Impulses
        Of the shaper; ``Impulses((0.0,), (1.0,))`` for none. Their numbers are written into the model.
    """
    elapsed = Quantity("elapsed", "s", description="time since the move began", nominal=0.0)
    distance = Quantity(
        "distance", "rad", description="from start to end", nominal=1.0, lower=-100.0, upper=100.0
    )
    duration = Quantity(
        "duration", "s", description="of the move without shaper", nominal=1.0, lower=1e-3, upper=1e3
    )
    second = Quantity("second", "s", description="one second, the unit of the impulses' times", nominal=1.0)
    sample_time = _sample_time()
    time, total, unit = elapsed.elements[0], duration.elements[0], second.elements[0]
    angle: list[sympy.Expr] = []
    rate: list[sympy.Expr] = []
    for start, amplitude in impulses.pairs:
        # the share of the move that is done, kept between 0 and 1
        share = sympy.Max(0, sympy.Min(1, (time - (sympy.Float(start) * unit if start else 0)) / total))
        angle.append(sympy.Float(amplitude) * (share**3 * (10 + share * (6 * share - 15))))
        rate.append(sympy.Float(amplitude) * (30 * share**2 * (1 - share) ** 2))
    size = distance.elements[0]
    return Model(
        name="shaped_move",
        discrete_states=(elapsed,),
        parameters=(distance, duration, *((second,) if impulses.length else ()), sample_time),
        updates={elapsed.name: time + sample_time.elements[0]},
        sample_time="sample_time",
        outputs={
            Quantity("reference", "rad", description="shaped angle"): size * sympy.Add(*angle),
            Quantity("reference_rate", "rad/s", description="its rate"): size / total * sympy.Add(*rate),
        },
        description=f"Move along a polynomial of degree five, shaped by {len(impulses.times)} impulses.",
    )


def make_shaper(impulses: Impulses, *, sample_time: float) -> Model:
    """Return a shaper of any command: its convolution with impulses, at a fixed sample time.

    The last commands are held in a buffer, the newest first. An impulse between two samples is shared by both in
    proportion, which keeps its amplitude and its time.

    Parameters
    ----------
    impulses : Impulses
        Of the shaper.
    sample_time : float
        In s; the buffer has length/sample_time elements and two more.

    Raises
    ------
    ModelError
        If the sample time is not positive or the buffer would be too long.
    """
    if not sample_time > 0.0:
        raise ModelError(f"shaper: sample_time is {sample_time}. Give a positive time in s.")
    size = math.ceil(impulses.length / sample_time) + 2
    if size > LONGEST_BUFFER:
        raise ModelError(
            f"shaper: {impulses.length:.4g} s at {sample_time:.4g} s need a buffer of {size}, at most {LONGEST_BUFFER} are allowed. "
            "Use a longer sample time, or make_shaped_move, which needs none."
        )
    weights = [0.0] * size
    for time, amplitude in impulses.pairs:
        place = int(time / sample_time)
        late = time / sample_time - place
        weights[place] += amplitude * (1.0 - late)
        weights[place + 1] += amplitude * late
    command = Quantity("command", "rad", description="to be shaped")
    buffer = Quantity("buffer", "rad", (size,), description="last commands, the newest first", nominal=0.0)
    clock = Quantity(
        "sample_time", "s", description="time between samples", nominal=sample_time, lower=1e-6, upper=1e3
    )
    used = [(w, e) for w, e in zip(weights, buffer.elements, strict=True) if w]
    return Model(
        name="shaper",
        discrete_states=(buffer,),
        inputs=(command,),
        parameters=(clock,),
        updates={buffer.name: [command.elements[0], *buffer.elements[:-1]]},
        sample_time="sample_time",
        outputs={
            Quantity("shaped", "rad", description="shaped command"): sympy.Add(
                *(sympy.Float(weight) * element for weight, element in used)
            )
        },
        description=f"Input shaper of {len(impulses.times)} impulses at {sample_time:g} s.",
    )
