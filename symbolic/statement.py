"""What an identity says of a model: two sides, and where and in what sense they are equal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity

Status = Literal["proved", "supported", "refuted"]
IdentityKind = Literal["definition", "identity", "limit", "expansion"]
Side: TypeAlias = sympy.Expr | sympy.MatrixBase


@dataclass(frozen=True)
class Scope:
    """A model as one of its parts sees it: names are looked up with the part's prefix.

    Parameters
    ----------
    model : Model
        The whole model.
    prefix : str
        What `compose` put before the part's names, for instance ``friction_``; empty for the model itself.
    aliases : tuple of (name, name) pairs
        The part's name and the whole model's name, for quantities that were renamed otherwise.
    """

    model: Model
    prefix: str = ""
    aliases: tuple[tuple[str, str], ...] = ()

    def name(self, name: str) -> str:
        """Return the name in the whole model of what the part calls `name`."""
        return dict(self.aliases).get(name, self.prefix + name)

    def __getitem__(self, name: str) -> sympy.Symbol:
        """Return the symbol of what the part calls `name`."""
        return self.model[self.name(name)]

    def __contains__(self, name: str) -> bool:
        return self.name(name) in self.model.symbols

    def expression(self, name: str) -> sympy.Expr:
        """Return the right-hand side of the part's definition, derivative, update, constraint or output."""
        return self.model.expression(self.name(name))

    def quantity(self, name: str) -> Quantity:
        """Return the quantity of what the part calls `name`."""
        name = self.name(name)
        if name not in self.model.quantities:
            raise ModelError(
                f"model {self.model.name!r} has no quantity {name!r}. It has: {', '.join(self.model.quantities)}."
            )
        return self.model.quantities[name]

    def unit(self, name: str) -> str:
        """Return the unit of the part's scalar quantity, as pint writes it."""
        return self.quantity(name).units[0] if self.quantity(name).shape else str(self.quantity(name).unit)

    def nominal(self, name: str, otherwise: float = 1.0) -> float:
        """Return the nominal value of the part's quantity, or another when it has none, is zero or isn't there."""
        quantity = self.model.quantities.get(self.name(name))
        return otherwise if quantity is None or not quantity.nominal else quantity.nominal

    def fresh(self, name: str) -> sympy.Symbol:
        """Return a real symbol that the model doesn't have, named so or with underscores behind."""
        while name in self.model.symbols:
            name += "_"
        return sympy.Symbol(name, real=True)

    def expand(self, expression: sympy.Expr, *, keep: tuple[str, ...] = ()) -> sympy.Expr:
        """Return an expression with the model's definitions put in, except those that the part names in `keep`."""
        return self.model.expand(expression, keep={self.name(name) for name in keep})


class Limit(NamedTuple):
    """The left side is taken to where `symbol` tends to `point`, from above (``+``) or below (``-``)."""

    symbol: sympy.Symbol
    point: sympy.Expr = sympy.Integer(0)
    direction: Literal["+", "-"] = "+"


class Expansion(NamedTuple):
    """The sides differ by O(small^(order + 1)) as `small`, dimensionless and positive, tends to zero."""

    small: sympy.Symbol
    order: int


@dataclass(frozen=True)
class Statement:
    """Two sides, in symbols of the model and others, which an identity claims to be equal.

    Parameters
    ----------
    left, right : sympy.Expr or sympy.Matrix
        Both sides; the left one comes from the model. Definitions may stand as symbols.
    units : mapping of name to unit
        Units of the symbols that the model doesn't have.
    ranges : mapping of name to (lower, upper)
        Open intervals in which the statement holds. A definition named here is varied freely instead of
        being computed. Other quantities are varied about their nominal values, within their bounds.
    limit, expansion : Limit, Expansion, optional
        In what sense the sides are equal, when not as they stand.
    constants : mapping of symbol to symbols
        Constants, linear in the right side, of which the statement says only that they exist: functions
        of anything but the symbols listed.
    """

    left: Side
    right: Side
    units: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    limit: Limit | None = None
    expansion: Expansion | None = None
    constants: Mapping[sympy.Symbol, tuple[sympy.Symbol, ...]] = field(default_factory=dict)

    @property
    def pairs(self) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
        """Both sides, element by element."""
        lefts, rights = (
            list(side) if isinstance(side, sympy.MatrixBase) else [sympy.sympify(side)]
            for side in (self.left, self.right)
        )
        return tuple(zip(lefts, rights, strict=True))

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of both sides; empty for a scalar."""
        return _shape(self.left), _shape(self.right)


def _shape(side: Side) -> tuple[int, ...]:
    return tuple(side.shape) if isinstance(side, sympy.MatrixBase) else ()


@dataclass(frozen=True)
class Identity:
    """Something that must hold of a model, or must not.

    Parameters
    ----------
    name : str
        As the source numbers it, for instance ``(9)``.
    kind : "definition", "identity", "limit" or "expansion"
        What the equation is.
    statement : callable
        Makes the `Statement` from the model's `Scope`; a function of a module, so that it pickles.
    expected : "proved", "supported" or "refuted"
        The verdict that is expected; "refuted" for a misprint.
    source : str
        Publication and number.
    prefix, aliases
        Where the identity's names are in a composed model; see `Scope`.
    """

    name: str
    kind: IdentityKind
    statement: Callable[[Scope], Statement]
    expected: Status = "proved"
    source: str = ""
    prefix: str = ""
    aliases: tuple[tuple[str, str], ...] = ()

    def prefixed(self, prefix: str, *, aliases: Mapping[str, str] | None = None) -> "Identity":
        """Return the identity for a part of a composed model.

        Parameters
        ----------
        prefix : str
            The part's name; its quantities are called `prefix_name`.
        aliases : mapping of name to name, optional
            From the part's names to the whole model's, for quantities that are called otherwise,
            for instance an input that was replaced by another part's output.
        """
        moved = {name: f"{prefix}_{old}" for name, old in self.aliases}
        for name, new in (aliases or {}).items():
            moved.update({alias: new for alias, old in self.aliases if old == name})
            own = name.removeprefix(self.prefix)
            if name.startswith(self.prefix) and own not in dict(self.aliases):
                moved[own] = new
        return replace(self, prefix=f"{prefix}_{self.prefix}", aliases=tuple(moved.items()))

    def of(self, model: Model) -> Statement:
        """Return what the identity says of a model.

        Raises
        ------
        ModelError
            If the model lacks a quantity that the statement needs.
        """
        return self.statement(Scope(model, self.prefix, self.aliases))
