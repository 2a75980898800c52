"""Kinematics of a mechanism as a model: g closes the loops, the unknowns are the coordinates that are not given."""

from collections.abc import Iterable, Sequence

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.parallel.loops import Joint, Mechanism
from mechsmith.symbolic.quantity import Quantity

SOLVED = "_solved"


def make_closure(mechanism: Mechanism, *, given: Sequence[str], rates: int = 0, name: str = "") -> Model:
    """Return the closure equations, given some coordinates, with the others as unknowns.

    The derivatives of the outputs with respect to the inputs, by the implicit-function theorem
    (`mechsmith.codegen.unknowns.eliminate`), are the kinematic Jacobians.

    Parameters
    ----------
    mechanism : Mechanism
        The loops.
    given : sequence of str
        As many coordinates as the mechanism has degrees of freedom: inputs. The platform's for inverse kinematics, motors'
        for forward kinematics.
    rates : int
        0 for positions alone; 1 with velocities, named `<coordinate>_rate`; 2 with accelerations too, `..._acceleration`.
    name : str
        Of the model; `<mechanism>_closure` by default.

    Returns
    -------
    Model
        Inputs: the given coordinates (and rates). Unknowns: the others. Outputs: the unknowns, as `<unknown>_solved`.

    Raises
    ------
    ModelError
        If a coordinate is unknown, or their number is not the number of degrees of freedom.
    """
    check_given(mechanism, given)
    if rates not in (0, 1, 2):
        raise ModelError(f"mechanism {mechanism.name!r}: rates is {rates!r}. Use 0, 1 or 2.")
    free = [joint for joint in mechanism.joints if joint.coordinate not in given]
    inputs = [joint for joint in mechanism.joints if joint.coordinate in given]
    constraints: list[sympy.Expr] = list(mechanism.closure.values())
    known = [joint.quantity for joint in inputs]
    unknown = [joint.quantity for joint in free]
    for order in range(1, rates + 1):
        constraints += time_derivatives(mechanism, order)
        known += [rate_quantity(joint, order) for joint in inputs]
        unknown += [rate_quantity(joint, order) for joint in free]
    outputs = {
        Quantity(q.name + SOLVED, q.unit, description=f"{q.name}, solved for"): q.elements[0] for q in unknown
    }
    return Model(
        name=name or f"{mechanism.name}_closure",
        inputs=tuple(known),
        unknowns=tuple(unknown),
        parameters=used_parameters(mechanism, constraints),
        constraints={quantity.name: g for quantity, g in zip(unknown, constraints, strict=True)},
        outputs=outputs,
        description=f"Closure of the loops. {mechanism.description}",
        references=mechanism.references,
    )


def make_inverse(mechanism: Mechanism, *, rates: int = 0) -> Model:
    """Return the closure with the platform's coordinates given, named `<mechanism>_inverse`."""
    given = [joint.coordinate for joint in mechanism.platform]
    return make_closure(mechanism, given=given, rates=rates, name=f"{mechanism.name}_inverse")


def make_forward(mechanism: Mechanism, *, rates: int = 0, given: Sequence[str] = ()) -> Model:
    """Return the closure with motors' coordinates given, named `<mechanism>_forward`.

    With redundant actuation the first motors are given, as many as there are degrees of freedom, unless `given` says which.
    """
    chosen = given or mechanism.actuated[: mechanism.mobility]
    return make_closure(mechanism, given=chosen, rates=rates, name=f"{mechanism.name}_forward")


def rate_symbol(joint: Joint, order: int) -> sympy.Symbol:
    """Return the symbol of a coordinate's velocity (order 1) or acceleration (order 2)."""
    return sympy.Symbol(f"{joint.coordinate}_{'rate' if order == 1 else 'acceleration'}", real=True)


def rate_quantity(joint: Joint, order: int) -> Quantity:
    """Return a coordinate's velocity (order 1) or acceleration (order 2) as a quantity."""
    per = "s" if order == 1 else "s^2"
    word = "velocity" if order == 1 else "acceleration"
    # The nominal value is what the accuracy of Newton's method is relative to; the equations are linear in rates.
    return Quantity(
        rate_symbol(joint, order),
        f"{joint.unit}/{per}",
        description=f"{word} of {joint.coordinate}",
        nominal=1.0,
    )


def time_derivatives(mechanism: Mechanism, order: int) -> list[sympy.Expr]:
    """Return the closure equations differentiated once or twice with respect to time, in all coordinates."""
    expressions = list(mechanism.closure.values())
    for _ in range(order):
        expressions = [in_time(mechanism, expression) for expression in expressions]
    return expressions


def in_time(mechanism: Mechanism, expression: sympy.Expr) -> sympy.Expr:
    """Return the derivative with respect to time of an expression in coordinates and velocities."""
    terms = []
    for joint in mechanism.joints:
        first, second = rate_symbol(joint, 1), rate_symbol(joint, 2)
        terms += [sympy.diff(expression, joint.symbol) * first, sympy.diff(expression, first) * second]
    return sympy.Add(*terms)


def used_parameters(mechanism: Mechanism, expressions: Iterable[sympy.Basic]) -> tuple[Quantity, ...]:
    """Return the mechanism's parameters that occur in expressions."""
    used = set().union(*(expression.free_symbols for expression in expressions))
    return tuple(quantity for quantity in mechanism.parameters if used & set(quantity.elements))


def check_given(mechanism: Mechanism, given: Sequence[str]) -> None:
    """Raise `ModelError` unless the names are coordinates, as many as there are degrees of freedom."""
    names = [joint.coordinate for joint in mechanism.joints]
    for name in given:
        if name not in names:
            raise ModelError(
                f"mechanism {mechanism.name!r}: {name!r} is no coordinate. It has: {', '.join(names)}."
            )
    if len(set(given)) != mechanism.mobility:
        raise ModelError(
            f"mechanism {mechanism.name!r}: {len(set(given))} coordinates are given ({', '.join(given)}); it has {len(names)} "
            f"coordinates and {len(mechanism.closure)} closure equations. Give {mechanism.mobility}."
        )
