"""Values of expressions in mpmath arithmetic of any precision, by a loop over their shared graph."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import sympy
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.piecewise import ExprCondPair

from mechsmith.symbolic import graph
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import leaf_name

Number = Fraction | float
Operation = Callable[..., Any]


class Evaluator:
    """Evaluates the same expressions at many points.

    Parameters
    ----------
    expressions : sequence of sympy.Basic
        Scalar expressions; a shared subexpression is computed once.
    digits : int
        Decimal digits that are carried.

    Raises
    ------
    ModelError
        If an expression holds a function that has no numerical meaning here; the message names it.
    """

    def __init__(self, expressions: Sequence[sympy.Basic], *, digits: int = 50) -> None:
        self._graph = graph.intern(expressions)
        self._context = mpmath.MPContext()
        self._context.dps = digits
        self._operations = _operations(self._context)
        for node in self._graph.nodes:
            if node.children and type(node.expression) not in self._operations:
                raise ModelError(
                    f"can't evaluate {type(node.expression).__name__} in {_short(node.expression)}. "
                    f"Known are: {', '.join(sorted(cls.__name__ for cls in self._operations))}."
                )
        self.names: tuple[str, ...] = tuple(
            leaf_name(node.expression) for node in self._graph.nodes if _is_variable(node.expression)
        )

    def __call__(self, values: Mapping[str, Number]) -> list[Any]:
        """Return the values of the expressions as mpmath numbers; NaN where one isn't a finite real number.

        Parameters
        ----------
        values : mapping of name to number
            One for every name in `names`; fractions are taken exactly.
        """
        results: list[Any] = []
        for node in self._graph.nodes:
            if node.children:
                arguments = [results[child] for child in node.children]
                results.append(self._apply(self._operations[type(node.expression)], arguments))
            else:
                results.append(self._leaf(node.expression, values))
        return [self._real(results[root]) for root in self._graph.roots]

    def _apply(self, operation: Operation, arguments: list[Any]) -> Any:
        try:
            return operation(*arguments)
        except (ZeroDivisionError, ValueError, OverflowError, TypeError):
            # TypeError: an order comparison or a maximum met a complex number.
            return self._context.nan

    def _leaf(self, leaf: sympy.Basic, values: Mapping[str, Number]) -> Any:
        if _is_variable(leaf):
            name = leaf_name(leaf)
            if name not in values:
                raise ModelError(
                    f"can't evaluate: no value for {name!r}. Given: {', '.join(values) or 'none'}."
                )
            value = values[name]
            if isinstance(value, Fraction):
                return self._context.mpf(value.numerator) / value.denominator
            return self._context.mpf(value)
        if leaf in (sympy.true, sympy.false):
            return leaf == sympy.true
        if isinstance(leaf, sympy.Rational):
            return self._context.mpf(int(leaf.p)) / int(leaf.q)
        if isinstance(leaf, sympy.Float):
            return self._context.make_mpf(leaf._mpf_)
        constants = {
            sympy.pi: self._context.pi,
            sympy.E: self._context.e,
            sympy.oo: self._context.inf,
            -sympy.oo: self._context.ninf,
            sympy.GoldenRatio: self._context.phi,
        }
        if leaf in constants:
            return +constants[leaf]
        if isinstance(leaf, sympy.NumberSymbol):
            return self._context.make_mpf(leaf._as_mpf_val(self._context.prec))
        return self._context.nan

    def _real(self, value: Any) -> Any:
        context = self._context
        if isinstance(value, context.mpc):
            return value.real if value.imag == 0 else context.nan
        return value if context.isfinite(value) else context.nan


def _is_variable(leaf: sympy.Basic) -> bool:
    return isinstance(leaf, sympy.Symbol | AppliedUndef | sympy.Derivative)


def _short(expression: sympy.Basic) -> str:
    """Return a printed expression that can't be long or deep: the classes of the arguments only."""
    return f"{type(expression).__name__}({', '.join(type(arg).__name__ for arg in expression.args[:4])})"


def _operations(context: Any) -> dict[type, Operation]:
    """Return what each SymPy class does in a precision; one entry for each operator that models use."""
    same_name = "exp sin cos tan sec csc cot asin acos atan sinh cosh tanh coth asinh acosh atanh erf erfc floor gamma"
    table: dict[type, Operation] = {
        getattr(sympy, name): getattr(context, name) for name in same_name.split()
    }
    table |= {
        sympy.ceiling: context.ceil,
        sympy.LambertW: context.lambertw,
        sympy.log: lambda x, *base: context.ln(x) / (context.ln(base[0]) if base else 1),
        sympy.atan2: context.atan2,
        sympy.Add: lambda *terms: context.fsum(terms),
        sympy.Mul: lambda *factors: context.fprod(factors),
        sympy.Pow: context.power,
        sympy.Mod: lambda x, y: x - y * context.floor(x / y),
        sympy.Abs: abs,
        sympy.sign: context.sign,
        sympy.sinc: lambda x: context.one if x == 0 else context.sin(x) / x,
        # The second argument, the value at zero, is always there: SymPy puts in 1/2.
        sympy.Heaviside: lambda x, at_zero: at_zero if x == 0 else context.mpf(x > 0),
        sympy.Max: max,
        sympy.Min: min,
    }
    return table | _logic(context)


def _logic(context: Any) -> dict[type, Operation]:
    def piecewise(*pairs: tuple[Any, bool]) -> Any:
        # Every branch has been evaluated; one that isn't taken may well be NaN.
        return next((value for value, condition in pairs if condition), context.nan)

    return {
        sympy.Gt: lambda x, y: x > y,
        sympy.Ge: lambda x, y: x >= y,
        sympy.Lt: lambda x, y: x < y,
        sympy.Le: lambda x, y: x <= y,
        sympy.Eq: lambda x, y: x == y,
        sympy.Ne: lambda x, y: x != y,
        sympy.And: lambda *conditions: all(conditions),
        sympy.Or: lambda *conditions: any(conditions),
        sympy.Not: lambda condition: not condition,
        sympy.ITE: lambda condition, x, y: x if condition else y,
        ExprCondPair: lambda value, condition: (value, condition),
        sympy.Piecewise: piecewise,
    }
