"""Values of expressions in mpmath arithmetic of any precision, by a loop over their shared graph."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath
import sympy
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.piecewise import ExprCondPair

from mechsmith.symbolic import graph
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import leaf_name

Number: TypeAlias = Fraction | float
# Binary magnitude up to which numbers are carried; beyond it, or below, no mechanics is found, and mpmath,
# which has no overflow, would go on for hours.
LARGEST_MAGNITUDE = 100_000
Operation: TypeAlias = Callable[..., Any]


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
        for node in reversed(self._graph.nodes):  # The outermost that isn't known is named.
            cls = type(node.expression)
            if node.children and cls not in self._operations:
                if not issubclass(cls, sympy.Function):
                    raise ModelError(
                        f"can't evaluate {_short(node.expression)}: {cls.__name__} is no function of numbers. "
                        "Carry it out first (doit), or write it in functions."
                    )
                self._operations[cls] = _by_sympy(cls, self._context)
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


def _by_sympy(cls: type, context: Any) -> Operation:
    """Return what a function does that SymPy knows and the table below doesn't."""

    def operation(*arguments: Any) -> Any:
        numbers = [sympy.Float._new(argument._mpf_, context.prec) for argument in arguments]
        value = cls(*numbers).evalf(context.dps)
        return context.make_mpf(value._mpf_) if isinstance(value, sympy.Float) else context.nan

    return operation


def _operations(context: Any) -> dict[type, Operation]:
    """Return what each SymPy class does in a precision; one entry for each operator that models use."""
    same_name = (
        "sin cos tan sec csc cot asin acos atan sinh cosh tanh coth asinh acosh atanh erf erfc floor gamma"
    )
    table = {getattr(sympy, name): _bounded(getattr(context, name), context) for name in same_name.split()}

    def power(base: Any, exponent: Any) -> Any:
        if base and abs(context.mag(base) * exponent.real) > LARGEST_MAGNITUDE:
            return context.zero if context.mag(base) * exponent.real < 0 else context.nan
        return context.power(base, exponent)

    def exponential(x: Any) -> Any:
        if abs(x.real) > LARGEST_MAGNITUDE:
            return context.zero if x.real < 0 else context.nan
        return context.exp(x)

    def step(x: Any, at_zero: Any) -> Any:
        return at_zero if x == 0 else context.nan if context.isnan(x) else context.mpf(x > 0)

    return {
        **table,
        **_logic(context),
        sympy.exp: exponential,
        sympy.Pow: power,
        sympy.ceiling: context.ceil,
        sympy.LambertW: context.lambertw,
        sympy.log: lambda x, *base: context.ln(x) / (context.ln(base[0]) if base else 1),
        sympy.atan2: context.atan2,
        sympy.Add: lambda *terms: context.fsum(terms),
        sympy.Mul: lambda *factors: context.fprod(factors),
        sympy.Mod: lambda x, y: x - y * context.floor(x / y),
        sympy.Abs: abs,
        sympy.sign: context.sign,
        sympy.sinc: lambda x: context.one if x == 0 else context.sin(x) / x,
        # The second argument, the value at zero, is always there: SymPy puts in 1/2.
        sympy.Heaviside: step,
        sympy.Max: lambda *values: context.nan if any(map(context.isnan, values)) else max(values),
        sympy.Min: lambda *values: context.nan if any(map(context.isnan, values)) else min(values),
    }


def _bounded(function: Operation, context: Any) -> Operation:
    """Return a function that is NaN for arguments so large that reducing them would take minutes."""

    def operation(x: Any) -> Any:
        if x and context.isfinite(x) and context.mag(x) > LARGEST_MAGNITUDE:
            return context.nan
        return function(x)

    return operation


def _logic(context: Any) -> dict[type, Operation]:
    """Return comparisons and what is made of them; a condition is True, False, or NaN when it isn't known."""

    def comparison(holds: Operation) -> Operation:
        return lambda x, y: context.nan if context.isnan(x) or context.isnan(y) else bool(holds(x, y))

    def all_of(*conditions: Any) -> Any:
        if any(condition is False for condition in conditions):
            return False
        return True if all(condition is True for condition in conditions) else context.nan

    def negated(condition: Any) -> Any:
        return (not condition) if isinstance(condition, bool) else context.nan

    def piecewise(*pairs: tuple[Any, Any]) -> Any:
        # Every branch has been evaluated; one that isn't taken may well be NaN.
        for value, condition in pairs:
            if condition is not False:
                return value if condition is True else context.nan
        return context.nan

    return {
        sympy.Gt: comparison(lambda x, y: x > y),
        sympy.Ge: comparison(lambda x, y: x >= y),
        sympy.Lt: comparison(lambda x, y: x < y),
        sympy.Le: comparison(lambda x, y: x <= y),
        sympy.Eq: comparison(lambda x, y: x == y),
        sympy.Ne: comparison(lambda x, y: x != y),
        sympy.And: all_of,
        sympy.Or: lambda *conditions: negated(all_of(*map(negated, conditions))),
        sympy.Not: negated,
        sympy.ITE: lambda condition, x, y: piecewise((x, condition), (y, True)),
        ExprCondPair: lambda value, condition: (value, condition),
        sympy.Piecewise: piecewise,
    }
