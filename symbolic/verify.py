"""Identities of a model, and the verdict on each: proved, supported or refuted.

An identity is refuted by shape, by units, or at a point where its sides differ in 50-digit arithmetic.
What survives is proved where symbolic means of bounded cost suffice, and otherwise only supported.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import sympy

from mechsmith.symbolic import graph, prove
from mechsmith.symbolic.dimensions import dimension_of
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.sampling import Counterexample, Ranges, Sampler, compare, names_in
from mechsmith.symbolic.statement import Expansion, Identity, Limit, Scope, Statement, Status
from mechsmith.symbolic.units import DimensionError

__all__ = [
    "Counterexample",
    "Expansion",
    "Identity",
    "Limit",
    "Row",
    "Scope",
    "Statement",
    "Verdict",
    "verify",
    "verify_identity",
    "verify_table",
]

Method = Literal["symbolic", "numeric", "units", "shape", "statement"]


@dataclass(frozen=True)
class Verdict:
    """What was found out about an identity, and how.

    Parameters
    ----------
    identity : Identity
        What was verified.
    status : "proved", "supported" or "refuted"
        Proved by symbolic means, supported by agreement at random points, or refuted.
    method : "symbolic", "numeric", "units", "shape" or "statement"
        What decided; "statement" when the model lacks what the identity speaks of.
    detail : str
        The reason, in a sentence.
    counterexample : Counterexample, optional
        Values of the symbols and of both sides where they differ.
    seconds : float
        Time taken.
    """

    identity: Identity
    status: Status
    method: Method
    detail: str
    counterexample: Counterexample | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def as_expected(self) -> bool:
        """Whether this is the expected verdict; a proof is better than the support that was expected."""
        expected = self.identity.expected
        return self.status == expected or (self.status, expected) == ("proved", "supported")


class Row(NamedTuple):
    """One line of the table of verdicts."""

    name: str
    kind: str
    status: str
    expected: str
    as_expected: bool
    method: str
    detail: str
    seconds: float


def verify(
    model: Model, identity: Identity | None = None, *, seed: int = 0, points: int = 20
) -> tuple[Verdict, ...]:
    """Return the verdicts on a model's identities, or on one.

    Parameters
    ----------
    model : Model
        The model.
    identity : Identity, optional
        The only one to verify; the model's own when not given.
    seed : int
        Of the random points; the same seed gives the same verdicts.
    points : int
        How many random points must agree.
    """
    identities = model.identities if identity is None else (identity,)
    return tuple(verify_identity(model, one, seed=seed, points=points) for one in identities)


def verify_identity(model: Model, identity: Identity, *, seed: int = 0, points: int = 20) -> Verdict:
    """Return the verdict on one identity; see `verify`.

    Raises
    ------
    ModelError
        If a symbol of the statement has no unit, or an expression in it can't be evaluated.
    """
    start = time.perf_counter()
    try:
        statement = identity.of(model)
    except ModelError as error:
        finding = Finding("refuted", "statement", f"It can't be stated of this model: {error}")
        return Verdict(identity, *finding, seconds=time.perf_counter() - start)
    try:
        finding = judge(model, statement, seed=seed, points=points)
    except ModelError as error:
        raise ModelError(f"model {model.name!r}: identity {identity.name!r}: {error}") from None
    return Verdict(identity, *finding, seconds=time.perf_counter() - start)


def verify_table(verdicts: Iterable[Verdict]) -> tuple[Row, ...]:
    """Return the verdicts as rows of text and numbers, to be printed by whoever likes."""
    return tuple(
        Row(
            f"{verdict.identity.prefix.rstrip('_')} {verdict.identity.name}".lstrip(),
            verdict.identity.kind,
            verdict.status,
            verdict.identity.expected,
            verdict.as_expected,
            verdict.method,
            verdict.detail
            if verdict.counterexample is None
            else f"{verdict.detail} {verdict.counterexample}",
            verdict.seconds,
        )
        for verdict in verdicts
    )


class Finding(NamedTuple):
    """A verdict before it belongs to an identity."""

    status: Status
    method: Method
    detail: str
    counterexample: Counterexample | None = None


def judge(model: Model, statement: Statement, *, seed: int = 0, points: int = 20) -> Finding:
    """Return what is found of a statement about a model.

    Raises
    ------
    ModelError
        If a symbol of the statement has no unit, or an expression can't be evaluated.
    """
    left, right = statement.shapes
    if left != right:
        return Finding("refuted", "shape", f"The left side has shape {left}, the right side {right}.")
    by_units = _units(model, statement)
    statement = _without_constants(statement)
    expanded = _expanded(model, statement)
    counterexample, detail = compare(Sampler(model, expanded, seed=seed), expanded, points=points)
    if by_units is not None:
        return Finding("refuted", "units", by_units, counterexample)
    if counterexample is not None:
        return Finding("refuted", "numeric", detail, counterexample)
    proof = _proof(model, statement, expanded)
    if proof:
        return Finding("proved", "symbolic", proof)
    return Finding("supported" if detail.endswith("agree.") else "refuted", "numeric", detail)


def _units(model: Model, statement: Statement) -> str | None:
    """Return what is wrong with the units, if anything."""
    units = {
        symbol.name: unit
        for quantity in model.quantities.values()
        for symbol, unit in zip(quantity.elements, quantity.units, strict=True)
    } | dict(statement.units)
    for name in sorted({name for pair in statement.pairs for name in names_in(pair)}):
        if name not in units:
            raise ModelError(
                f"the statement uses {name!r}, which model {model.name!r} doesn't have. Give its unit in Statement.units."
            )
    for left, right in statement.pairs:
        try:
            dimensions = dimension_of(left, units), dimension_of(right, units)
        except DimensionError as error:
            return f"Units: {error}"
        if not dimensions[0].agrees(dimensions[1]):
            return f"Units: the left side is in {dimensions[0]}, the right side in {dimensions[1]}."
    return None


def _without_constants(statement: Statement) -> Statement:
    """Return the claim that constants exist as: what they would have to be is the same at two points."""
    for constant, variables in statement.constants.items():
        left, right = statement.pairs[0]
        factor = sympy.diff(right, constant)
        if statement.shapes[0] or factor == 0 or factor.has(constant):
            raise ModelError(
                f"the constant {constant} must stand linearly in the right side of a scalar statement. "
                "Write the statement so, element by element."
            )
        needed = (left - right.subs(constant, 0)) / factor
        elsewhere = {symbol: sympy.Symbol(f"{symbol.name}_elsewhere", real=True) for symbol in variables}
        ranges = dict(statement.ranges)
        ranges |= {
            new.name: ranges[old.name] for old, new in elsewhere.items() if old.name in statement.ranges
        }
        statement = Statement(
            needed,
            prove.evaluated(needed, elsewhere),
            ranges=ranges,
            limit=statement.limit,
            expansion=statement.expansion,
        )
    return statement


def _expanded(model: Model, statement: Statement) -> Statement:
    """Return the statement with the model's definitions and outputs put in, unless they are varied freely."""
    table: dict[sympy.Basic, sympy.Basic] = {}
    for equation in (*model.of_kind("definition"), *model.of_kind("output")):
        if equation.symbol.name not in statement.ranges:
            (table[equation.symbol],) = graph.substitute([equation.expression], table)
    lefts, rights = zip(*statement.pairs, strict=True)
    built = graph.substitute([*lefts, *rights], table)
    half = len(lefts)
    return Statement(
        sympy.Matrix(half, 1, built[:half]) if half > 1 else built[0],
        sympy.Matrix(half, 1, built[half:]) if half > 1 else built[1],
        ranges=statement.ranges,
        limit=statement.limit,
        expansion=statement.expansion,
    )


def _proof(model: Model, statement: Statement, expanded: Statement) -> str | None:
    """Return how the statement is proved, if it is."""
    if statement.limit is not None or statement.expansion is not None:
        # Only with definitions put in: those left as symbols would hide what depends on the symbol that moves.
        proved = all(_proved(model, expanded, pair) for pair in expanded.pairs)
        how = "The limit is zero." if statement.limit is not None else "The Taylor coefficients vanish."
        return how if proved else None
    if all(_proved(model, statement, pair) for pair in statement.pairs):
        kept = {leaf for pair in statement.pairs for leaf in graph.leaves(pair)}
        names = [e.symbol.name for e in model.of_kind("definition") if e.symbol in kept]
        whatever = f", whatever {', '.join(names)} may be" if names else ""
        return f"The difference is zero{whatever}."
    if all(_proved(model, expanded, pair) for pair in expanded.pairs):
        return "The difference is zero."
    return None


def _proved(model: Model, statement: Statement, pair: tuple[Any, Any]) -> bool:
    if prove.size(*pair) > prove.MAX_NODES:
        return False
    # Not evaluated: floats would be rounded before they are made exact.
    opposite = sympy.Mul(sympy.Integer(-1), pair[1], evaluate=False)
    difference = sympy.Add(pair[0], opposite, evaluate=False)
    ranges = Ranges(model, statement)
    positive = [name for name in names_in(pair) if ranges.bounds(name)[0] >= 0]
    if statement.limit is not None:
        return prove.vanishes_in_limit(difference, *statement.limit, positive)
    if statement.expansion is not None:
        return prove.is_of_order(difference, *statement.expansion, positive)
    return prove.is_zero(difference, positive)
