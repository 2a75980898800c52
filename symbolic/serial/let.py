"""Ordered intermediate quantities for derivations by recursion: a name for each composite expression."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy

from mechsmith.symbolic import graph
from mechsmith.symbolic.quantity import Quantity


@dataclass(frozen=True)
class Let:
    """Collects definitions while a derivation runs, and hands out those that are used.

    Expressions that are numbers or symbols (or a symbol's negative) get no name of their own.

    Parameters
    ----------
    prefix : str
        Before every name; see `under`.
    """

    prefix: str = ""
    _known: dict[Quantity, sympy.Expr] = field(default_factory=dict)

    def under(self, prefix: str) -> "Let":
        """Return what names its definitions with a prefix, in one order with these."""
        return Let(self.prefix + prefix, self._known)

    def __call__(self, name: str, unit: str, expression: Any, *, description: str = "") -> sympy.Expr:
        """Return a symbol that stands for an expression, or the expression where it is as short."""
        expression = sympy.sympify(expression)
        if expression.is_Atom or (-expression).is_Atom:
            return expression
        quantity = Quantity(self.prefix + name, unit, description=description)
        self._known[quantity] = expression
        return quantity.elements[0]

    def matrix(self, name: str, unit: str, matrix: sympy.MatrixBase) -> sympy.Matrix:
        """Return a matrix or vector with a name for each composite element: ``name_12``, ``name_2``."""
        rows, columns = matrix.shape
        return sympy.Matrix(
            rows,
            columns,
            lambda i, j: self(
                f"{name}_{i + 1}" if columns == 1 else f"{name}_{i + 1}{j + 1}", unit, matrix[i, j]
            ),
        )

    def used_by(self, expressions: Iterable[Any]) -> Mapping[Quantity, sympy.Expr]:
        """Return the definitions that expressions (matrices too) are made of, in order."""
        wanted = _symbols(expressions)
        kept: list[tuple[Quantity, sympy.Expr]] = []
        for quantity, expression in reversed(self._known.items()):
            if quantity.name in wanted:
                kept.append((quantity, expression))
                wanted |= _symbols([expression])
        return dict(reversed(kept))


def used(quantities: Iterable[Quantity], *expressions: Iterable[Any]) -> tuple[Quantity, ...]:
    """Return the quantities of which an element stands in some expression."""
    names: set[str] = set()
    for group in expressions:
        names |= _symbols(group)
    return tuple(q for q in quantities if names & {element.name for element in q.elements})


def _symbols(expressions: Iterable[Any]) -> set[str]:
    flat: list[sympy.Basic] = []
    for expression in expressions:
        flat += list(expression) if isinstance(expression, sympy.MatrixBase) else [sympy.sympify(expression)]
    return {str(leaf.name) for leaf in graph.leaves(flat) if isinstance(leaf, sympy.Symbol)}
