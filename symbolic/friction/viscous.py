"""Viscous friction up to the third power of the velocity, alone or added to another model."""

from typing import Literal

import sympy
from sympy import Abs

from mechsmith.symbolic.friction.coulomb import SURVEY
from mechsmith.symbolic.friction.identities import DISSIPATION, family_identity, statement
from mechsmith.symbolic.friction.parameters import Motion, force_output, named, parameter, velocity_input
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.statement import Scope, Statement

Order = Literal[1, 2, 3]
_NAMES: dict[Order, str] = {1: "viscous", 2: "viscous_quadratic", 3: "viscous_cubic"}
_COEFFICIENTS: dict[Order, tuple[str, ...]] = {1: ("a2",), 2: ("a2", "a3"), 3: ("a2", "a3", "a4")}


def make_viscous(*, order: Order = 1, motion: Motion = "rotary") -> Model:
    """Return F = a2 v + a3 |v| v + a4 v^3 up to the order, all odd in v.

    It dissipates at every velocity if no coefficient is negative; a negative a3 or a4 (friction that grows less than
    linearly) does so up to the velocity at which the sum changes sign.

    Parameters
    ----------
    order : 1, 2 or 3
        Highest power of the velocity.
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).

    Raises
    ------
    ModelError
        If the order is another.
    """
    velocity = velocity_input(motion)
    coefficients = _coefficients(order, motion)
    v = velocity.elements[0]
    return Model(
        name=named(_NAMES[order], motion),
        inputs=(velocity,),
        parameters=coefficients,
        outputs={force_output(motion): _polynomial(coefficients, v)},
        crossings=(v,) if order > 1 else (),
        identities=(family_identity(DISSIPATION, _dissipation, "power F v"),),
        description=f"Viscous friction of order {order}.",
        references=(f"{SURVEY}, section 2.1",),
    )


def add_viscous(model: Model, *, order: Order = 1, directional: bool = False) -> Model:
    """Return a friction model with a2 v + a3 |v| v + a4 v^3, up to the order, added to its force.

    Parameters
    ----------
    model : Model
        With the input `velocity` and the output `force`, and without the coefficients.
    order : 1, 2 or 3
        Highest power of the velocity.
    directional : bool
        Whether each direction has coefficients of its own, ``a2_forward`` and ``a2_backward``.

    Raises
    ------
    ModelError
        If the order is another, or the model has one of the coefficients already.
    """
    motion: Motion = "linear" if model.quantities["force"].unit == "N" else "rotary"
    v = model["velocity"]
    forward = _coefficients(order, motion, way="forward" if directional else "")
    backward = _coefficients(order, motion, way="backward") if directional else ()
    taken = [quantity.name for quantity in (*forward, *backward) if quantity.name in model.symbols]
    if taken:
        raise ModelError(
            f"model {model.name!r} has {', '.join(taken)} already: its viscous friction is there. Exchange its "
            "definition 'viscous' by Model.replace."
        )
    added = _polynomial(forward, v)
    if directional:
        added = sympy.Piecewise((added, v >= 0), (_polynomial(backward, v), True))
    return model.replace(
        name=f"{model.name}_{_NAMES[order]}{'_directional' if directional else ''}",
        outputs={"force": model.expression("force") + added},
        parameters=(*forward, *backward),
        description=f"{model.description.rstrip('.')}, with viscous friction of order {order}"
        + (" for each direction." if directional else "."),
    )


def _coefficients(order: Order, motion: Motion, *, way: str = "") -> tuple[Quantity, ...]:
    if order not in _COEFFICIENTS:
        raise ModelError(f"viscous friction: order is {order!r}, allowed is 1, 2 or 3.")
    note = {"": "", "forward": " for v > 0", "backward": " for v < 0"}[way]
    names = {name: f"{name}_{way}" if way else name for name in _COEFFICIENTS[order]}
    return tuple(parameter(name, motion, called=called, note=note) for name, called in names.items())


def _polynomial(coefficients: tuple[Quantity, ...], v: sympy.Expr) -> sympy.Expr:
    powers = (v, Abs(v) * v, v**3)
    return sympy.Add(
        *(quantity.elements[0] * power for quantity, power in zip(coefficients, powers, strict=False))
    )


def _dissipation(scope: Scope) -> Statement:
    v = scope["velocity"]
    total = scope["a2"] * v**2
    for name, term in (("a3", Abs(v) ** 3), ("a4", v**4)):
        if name in scope:
            total += scope[name] * term
    return statement(scope, v * scope.expand(scope.expression("force")), total)
