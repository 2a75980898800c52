"""What must hold of every flexible link: its energy balance, its mass matrix, and what is left when it is straight."""

from collections.abc import Iterator

import sympy

from mechsmith.symbolic import graph
from mechsmith.symbolic.statement import Identity, Scope, Statement

COORDINATES = ("angle", "joint", "stretch", "deflection")


def link_identities() -> tuple[Identity, ...]:
    """Return the identities of a flexible link."""
    return (
        Identity(
            "energy balance",
            "identity",
            _energy_balance,
            source="d(T + V)/dt is the power of motor and damping",
        ),
        Identity("mass from energy", "identity", _mass_from_energy, source="dT/dv = M v"),
        Identity("mass is symmetric", "identity", _symmetric, source="M = M'"),
        Identity("straight link", "identity", _straight, source="a rigid link on its hub: M = J + J_b"),
    )


def _elements(scope: Scope, name: str) -> Iterator[sympy.Symbol]:
    if scope.name(name) in scope.model.quantities:
        yield from scope.quantity(name).elements


def _motion(scope: Scope) -> tuple[list[sympy.Symbol], list[sympy.Symbol]]:
    coordinates = [symbol for name in COORDINATES for symbol in _elements(scope, name)]
    rates = [symbol for name in COORDINATES for symbol in _elements(scope, f"{name}_rate")]
    return coordinates, rates


def _mass(scope: Scope, rates: list[sympy.Symbol]) -> sympy.Matrix:
    """Return the rows and columns of the mass matrix that belong to the rates."""
    columns = [symbol.name for quantity in scope.model.states for symbol in quantity.elements]
    rows: dict[str, list[sympy.Expr]] = {}
    for equation in scope.model.of_kind("mass"):
        rows.setdefault(equation.symbol.name, []).append(equation.expression)
    places = [columns.index(rate.name) for rate in rates]
    return sympy.Matrix([[rows[rate.name][place] for place in places] for rate in rates])


def _force(scope: Scope, rate: sympy.Symbol) -> sympy.Expr:
    return next(e.expression for e in scope.model.of_kind("derivative") if e.symbol == rate)


def _statement(scope: Scope, left: sympy.Matrix, right: sympy.Matrix) -> Statement:
    """Return the statement for any modal integrals and any motion."""
    moving = {symbol for symbols in _motion(scope) for symbol in symbols}
    ranges = {}
    for leaf in graph.leaves([*left, *right]):
        role = scope.model.role_of(_quantity_of(scope, leaf))
        if leaf in moving:
            ranges[leaf.name] = (-1.0, 1.0)
        elif role == "definitions":
            ranges[leaf.name] = (0.5, 2.0)
    return Statement(left, right, ranges=ranges)


def _quantity_of(scope: Scope, leaf: sympy.Symbol) -> str:
    return next(name for name, q in scope.model.quantities.items() if leaf in q.elements)


def _energy_balance(scope: Scope) -> Statement:
    coordinates, rates = _motion(scope)
    energy = scope.expression("energy")
    balance = sympy.Add(
        *(sympy.diff(energy, q) * v + v * _force(scope, v) for q, v in zip(coordinates, rates, strict=True))
    )
    return _statement(scope, sympy.Matrix([balance]), sympy.Matrix([scope.expression("power")]))


def _mass_from_energy(scope: Scope) -> Statement:
    _, rates = _motion(scope)
    energy = scope.expression("energy")
    momenta = sympy.Matrix([sympy.diff(energy, v) for v in rates])
    return _statement(scope, momenta, _mass(scope, rates) * sympy.Matrix(rates))


def _symmetric(scope: Scope) -> Statement:
    mass = _mass(scope, _motion(scope)[1])
    return _statement(scope, mass, mass.T)


def _straight(scope: Scope) -> Statement:
    coordinates, rates = _motion(scope)
    at_rest = {symbol: sympy.Integer(0) for symbol in coordinates}
    rigid = _mass(scope, rates)[0, 0].xreplace(at_rest)
    return _statement(
        scope, sympy.Matrix([rigid]), sympy.Matrix([scope["hub_inertia"] + scope["link_inertia"]])
    )
