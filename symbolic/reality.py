"""Expressions that SymPy wrote for complex symbols, made into what they are for real ones.

`diff(Abs(x), x)` of a symbol without assumptions is an expression in re(x), im(x) and their derivatives; every
quantity of a model is real, so it is sign(x).
"""

from collections.abc import Mapping, Sequence

import sympy
from sympy.core.function import AppliedUndef

from mechsmith.symbolic import graph

_COMPLEX = (sympy.re, sympy.im, sympy.conjugate)


def made_real(
    expressions: Sequence[sympy.Basic], symbols: Mapping[sympy.Basic, sympy.Basic]
) -> tuple[sympy.Basic, ...]:
    """Return expressions without re, im, conjugate and derivatives of them.

    Only what contains such a part is evaluated anew; all else stays as it was written.

    Parameters
    ----------
    expressions : sequence of sympy.Basic
        Expressions in real symbols, whose derivatives may still hold others.
    symbols : mapping
        From symbols without assumptions, functions of time and their derivatives to real symbols.
    """
    interned = graph.intern(expressions)
    if not any(_is_complex(node.expression) for node in interned.nodes):
        return tuple(expressions)
    built: list[sympy.Basic] = []
    changed: list[bool] = []
    for node in interned.nodes:
        expression = node.expression
        arguments = [built[child] for child in node.children]
        changed.append(_is_complex(expression) or any(changed[child] for child in node.children))
        if not changed[-1]:
            built.append(expression)
        elif isinstance(expression, sympy.Derivative):
            built.append(_differentiated(expression, symbols))
        elif isinstance(expression, sympy.im):
            built.append(sympy.S.Zero)
        elif isinstance(expression, _COMPLEX):
            built.append(arguments[0])
        else:
            built.append(expression.func(*arguments))
    return tuple(built[root] for root in interned.roots)


def _is_complex(expression: sympy.Basic) -> bool:
    if isinstance(expression, sympy.Derivative):
        return not isinstance(expression.expr, sympy.Symbol | AppliedUndef)
    return isinstance(expression, _COMPLEX)


def _differentiated(derivative: sympy.Derivative, symbols: Mapping[sympy.Basic, sympy.Basic]) -> sympy.Basic:
    """Return a derivative carried out with real symbols; that of a jump is 0, which it is almost everywhere."""
    real: dict[sympy.Basic, sympy.Basic] = {}
    back: dict[sympy.Basic, sympy.Basic] = {}
    for old, new in symbols.items():
        if isinstance(old, AppliedUndef):
            real[old] = sympy.Function(old.func.__name__, real=True)(*old.args)
            back[real[old]] = new
        elif isinstance(old, sympy.Symbol):
            real[old] = new
    for old, new in symbols.items():
        if isinstance(old, sympy.Derivative):
            back[old.xreplace(real)] = new
    result = derivative.xreplace(real).doit()
    return result.replace(sympy.DiracDelta, lambda *_: sympy.S.Zero).xreplace(back)
