"""Sampled control of a joint with a LuGre observer that compensates its friction.

Between samples the observer holds the velocity v. The bristle equation is then linear in z, and its exact solution over
the sample time h is the update: z' = E z + (1 - E) sgn(v) g(v)/s0, E = exp(-s0 |v| h/g(v)). As 0 < E <= 1, it is stable for
every velocity and sample time; Euler's method would need s0 |v| h < 2 g(v).
"""

import sympy

from mechsmith.symbolic.friction.lugre import Motion, make_lugre
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.statement import Identity, Scope, Statement

REFERENCE = (
    "Canudas de Wit, Olsson, Astrom, Lischinsky 1995, A new model for control of systems with friction, "
    "IEEE Trans. Automatic Control 40(3), 419-425"
)


def make_friction_compensation(*, motion: Motion = "rotary") -> Model:
    """Return inertia feedforward, proportional-derivative control and the observer's friction, held between samples.

    The bristles' deflection is updated first, with the velocity since the sample before, and the held force is computed
    with the new one. The observer has no correction by the control error: its own error shrinks by E a sample, so only
    while the joint moves.

    Parameters
    ----------
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).
    """
    friction = make_lugre(motion=motion)
    length, force = ("rad", "N*m") if motion == "rotary" else ("m", "N")
    inputs = _inputs(length)
    reference, rate, acceleration, position, measured_rate, velocity = (q.elements[0] for q in inputs)
    gains = _gains(length, force)
    stiffness, damping, inertia, sample_time = (q.elements[0] for q in gains)
    bristles = Quantity("z", length, description="observed deflection of the bristles", nominal=0.0)
    held = Quantity("held_force", force, description="held between samples", nominal=0.0)
    stribeck = Quantity("stribeck", force, description="steady friction without viscosity, g(v)")
    decay = Quantity("decay", "1", description="share of the observer's error that a sample leaves, E")
    deflection = Quantity("deflection", length, description="of the bristles at this sample, z'")
    estimate = Quantity("friction", force, description="observed friction")
    s0, g, share, new = friction["s0"], stribeck.elements[0], decay.elements[0], deflection.elements[0]
    viscous, micro = (friction.expand(friction.expression(name)) for name in ("viscous", "damping"))
    control = stiffness * (reference - position) + damping * (rate - measured_rate) + inertia * acceleration
    return Model(
        name="friction_compensation" if motion == "rotary" else "friction_compensation_linear",
        discrete_states=(bristles, held),
        inputs=inputs,
        parameters=(*friction.parameters, *gains),
        definitions={
            stribeck: friction.expression("stribeck"),
            decay: sympy.exp(-s0 * sympy.Abs(velocity) * sample_time / g),
            deflection: share * bristles.elements[0] + (1 - share) * sympy.sign(velocity) * g / s0,
            estimate: s0 * new + micro * (velocity - s0 * sympy.Abs(velocity) * new / g) + viscous,
        },
        updates={"z": new, "held_force": control + estimate.elements[0]},
        sample_time="sample_time",
        outputs={Quantity("force", force, description="of the motor"): held.elements[0]},
        identities=(
            Identity("exact update", "identity", _exact_update, source="dz/dt of LuGre with v held"),
            Identity("observer error", "identity", _observer_error, source="the error shrinks by E a sample"),
            Identity("steady bristles", "identity", _steady, source="z = sgn(v) g/s0 stays"),
        ),
        description="Feedforward and PD control of a joint with friction compensated by a LuGre observer.",
        references=(REFERENCE,),
    )


def _inputs(length: str) -> tuple[Quantity, ...]:
    declared = (
        ("reference", "", "position that is asked for"),
        ("reference_rate", "/s", "its rate"),
        ("reference_acceleration", "/s^2", "its second derivative"),
        ("position", "", "measured"),
        ("position_rate", "/s", "its rate"),
        ("velocity", "/s", "of the surfaces for the observer, measured or asked for"),
    )
    return tuple(Quantity(name, length + per, description=text) for name, per, text in declared)


def _gains(length: str, force: str) -> tuple[Quantity, ...]:
    unit = f"{force}*s^2/{length}"
    return (
        Quantity(
            "stiffness", f"{force}/{length}", description="gain Kp", nominal=400.0, lower=0.0, upper=1e9
        ),
        Quantity(
            "gain_rate", f"{force}*s/{length}", description="gain Kd", nominal=40.0, lower=0.0, upper=1e9
        ),
        Quantity("inertia", unit, description="fed forward", nominal=1.0, lower=0.0, upper=1e6),
        Quantity("sample_time", "s", description="time between samples", nominal=1e-3, lower=1e-6, upper=1.0),
    )


def _update(scope: Scope) -> sympy.Expr:
    return scope.expand(scope.expression("z"), keep=("stribeck",))


def _statement(scope: Scope, left: sympy.Expr, right: sympy.Expr, *fresh: sympy.Symbol) -> Statement:
    """Return the statement with g(v) varied freely about the Coulomb friction."""
    coulomb = scope.nominal("a0")
    unit = scope.unit("z")
    return Statement(
        left,
        right,
        units={symbol.name: unit for symbol in fresh},
        ranges={scope.name("stribeck"): (0.8 * coulomb, 1.6 * coulomb)},
    )


def _exact_update(scope: Scope) -> Statement:
    new, velocity = _update(scope), scope["velocity"]
    slip = scope["s0"] * sympy.Abs(velocity) * new / scope["stribeck"]
    # The slip stands on the left: against v it would cancel all digits where E is tiny.
    return _statement(scope, sympy.diff(new, scope["sample_time"]) + slip, velocity)


def _observer_error(scope: Scope) -> Statement:
    new, z, true = _update(scope), scope["z"], scope.fresh("z_true")
    decay = scope.expand(scope.expression("decay"), keep=("stribeck",))
    return _statement(scope, new - new.subs(z, true), decay * (z - true), true)


def _steady(scope: Scope) -> Statement:
    steady = sympy.sign(scope["velocity"]) * scope["stribeck"] / scope["s0"]
    return _statement(scope, _update(scope).subs(scope["z"], steady), steady)
