"""Whether an expression is zero, by symbolic means whose cost is bounded before they start.

A difference is brought to a rational function of symbols: functions that aren't rational become symbols,
exponentials and square roots with their laws, sines and cosines by the half-angle tangent. It is zero if its
numerator is. Nothing is ever claimed to be different from zero: that is for numbers to show.
"""

import itertools
from collections.abc import Callable, Collection, Mapping

import sympy
from sympy.core.function import PoleError

from mechsmith.symbolic import graph

# Sizes up to which the symbolic means take well under a second on small integers and few symbols.
MAX_NODES = 400
MAX_TERMS = 20_000
MAX_TERMS_CANCEL = 300
MAX_NODES_LIMIT = 80
MAX_NODES_SIMPLIFY = 30
MAX_SWITCHED = 2

_SWITCHING = (sympy.Abs, sympy.sign, sympy.Heaviside, sympy.Max, sympy.Min, sympy.Piecewise)


def is_zero(expression: sympy.Expr, positive: Collection[str] = ()) -> bool:
    """Tell whether an expression is proved to be zero; False means that nothing is known.

    Parameters
    ----------
    expression : sympy.Expr
        Floats in it are taken as the binary fractions that they are.
    positive : collection of str
        Names of symbols that are positive.
    """
    if size(expression) > MAX_NODES:
        return False
    cases = sign_cases(expression, positive)
    return bool(cases) and all(_is_zero_rationally(case) for case in cases)


def size(*expressions: sympy.Basic) -> int:
    """Return the number of distinct subexpressions."""
    return len(graph.intern(expressions).nodes)


def sign_cases(expression: sympy.Expr, positive: Collection[str] = ()) -> list[sympy.Expr]:
    """Return the expression for each combination of signs of the symbols that it switches on.

    In each, symbols of known sign are symbols that SymPy knows to be positive, so that `Abs`, `sign` and
    conditions are resolved. Where a symbol is zero, a case that has no value there is left out. Empty when
    there are too many, or when a case other than those has no value.
    """
    known = {
        leaf: sympy.Symbol(leaf.name, positive=True)
        for leaf in graph.leaves([expression])
        if isinstance(leaf, sympy.Symbol) and leaf.name in positive
    }
    known |= {
        node.expression: _exact(node.expression)
        for node in graph.intern([expression]).nodes
        if isinstance(node.expression, sympy.Float)
    }
    exact = evaluated(expression, known)
    switched = [
        leaf
        for leaf in graph.leaves(
            [
                node.expression
                for node in graph.intern([exact]).nodes
                if isinstance(node.expression, _SWITCHING)
            ]
        )
        if isinstance(leaf, sympy.Symbol) and leaf.is_positive is None
    ]
    if len(switched) > MAX_SWITCHED:
        return []
    choices = [
        [(leaf, sign * sympy.Symbol(leaf.name, positive=True)) for sign in (1, -1, 0)] for leaf in switched
    ]
    cases = []
    for choice in itertools.product(*choices):
        case = evaluated(exact, dict(choice))
        if not case.has(sympy.nan, sympy.zoo, sympy.oo):
            cases.append(case)
        elif all(value != 0 for _, value in choice):
            return []
    return cases


def evaluated(expression: sympy.Basic, replacements: Mapping[sympy.Basic, sympy.Basic]) -> sympy.Basic:
    """Replace leaves and let SymPy evaluate every node on the way, in a loop."""
    return _rebuilt(expression, lambda old, arguments: _replaced(old, arguments, replacements))


def _replaced(
    old: sympy.Basic, arguments: list[sympy.Basic], replacements: Mapping[sympy.Basic, sympy.Basic]
) -> sympy.Basic:
    return old.func(*arguments) if arguments else replacements.get(old, old)


def _rebuilt(
    expression: sympy.Basic, build: Callable[[sympy.Basic, list[sympy.Basic]], sympy.Basic]
) -> sympy.Basic:
    shared = graph.intern([expression])
    built: list[sympy.Basic] = []
    for node in shared.nodes:
        built.append(build(node.expression, [built[child] for child in node.children]))
    return built[shared.roots[0]]


def _exact(number: sympy.Float) -> sympy.Rational:
    mantissa_sign, mantissa, exponent, _ = number._mpf_
    return sympy.Integer((-1) ** mantissa_sign * int(mantissa)) * sympy.Integer(2) ** int(exponent)


def _is_zero_rationally(expression: sympy.Expr) -> bool:
    if expression.is_zero:
        return True
    if expression.has(sympy.sin, sympy.cos, sympy.tan):
        expression = sympy.expand_trig(expression)
    atoms = _Atoms()
    numerator = sympy.fraction(sympy.together(_rebuilt(expression, atoms.build)))[0]
    if _terms(numerator) > MAX_TERMS:
        return False
    numerator = sympy.expand(numerator)
    for root, law in reversed(atoms.laws):
        # Nested roots last made, first reduced: a law holds only roots made before it.
        numerator = sympy.expand(sympy.prem(numerator, law, root)) if numerator.has(root) else numerator
    if numerator == 0:
        return True
    return size(expression) <= MAX_NODES_SIMPLIFY and sympy.simplify(expression) == 0


class _Atoms:
    """Symbols in the place of what is not rational, and the laws that roots among them obey."""

    def __init__(self) -> None:
        self._table: dict[tuple[object, ...], sympy.Symbol] = {}
        self.laws: list[tuple[sympy.Symbol, sympy.Expr]] = []

    def build(self, old: sympy.Basic, arguments: list[sympy.Basic]) -> sympy.Basic:
        """Return the rational form of a node whose arguments are in rational form."""
        if not arguments or isinstance(old, sympy.Add | sympy.Mul):
            return old.func(*arguments) if arguments else old
        if isinstance(old, sympy.exp):
            return self._exponential(arguments[0])
        if isinstance(old, sympy.sin | sympy.cos | sympy.tan):
            half = self._atom("tan of half", _canonical(arguments[0]))
            sine, cosine = 2 * half / (1 + half**2), (1 - half**2) / (1 + half**2)
            return {sympy.sin: sine, sympy.cos: cosine, sympy.tan: sine / cosine}[type(old)]
        if isinstance(old, sympy.Pow):
            return self._power(*arguments)
        return self._atom(type(old), *(_canonical(argument) for argument in arguments))

    def _atom(self, *key: object) -> sympy.Symbol:
        return self._table.setdefault(key, sympy.Dummy("atom", positive=True if key[0] == "root" else None))

    def _exponential(self, exponent: sympy.Expr) -> sympy.Expr:
        """Return exp(a + n b + m log(c)) as E_a E_b^n c^m."""
        product: sympy.Expr = sympy.Integer(1)
        logarithms = {
            symbol: key[1] for key, symbol in self._table.items() if key[0] is sympy.log and len(key) == 2
        }
        for term in sympy.Add.make_args(sympy.expand(exponent)):
            coefficient, rest = term.as_coeff_Mul()
            if rest in logarithms and coefficient.is_Integer:
                product *= logarithms[rest] ** coefficient
            elif coefficient.is_Integer:
                product *= self._atom(sympy.exp, rest) ** coefficient
            elif coefficient.is_Rational:
                product *= self._atom(sympy.exp, rest / coefficient.q) ** coefficient.p
            else:
                product *= self._atom(sympy.exp, term)
        return product

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        if exponent.is_Integer:
            return base**exponent
        base = _canonical(base)
        if exponent.is_Rational:
            known = ("root", base, exponent.q) in self._table
            root = self._atom("root", base, exponent.q)
            if not known:
                numerator, denominator = sympy.fraction(base)
                self.laws.append((root, sympy.expand(denominator * root**exponent.q - numerator)))
            return root**exponent.p
        return self._atom("power", base, _canonical(exponent))


def _canonical(expression: sympy.Expr) -> sympy.Expr:
    if not isinstance(expression, sympy.Expr) or _terms(expression) > MAX_TERMS_CANCEL:
        return expression
    return sympy.factor_terms(sympy.cancel(expression))


def _terms(expression: sympy.Basic) -> int:
    """Return a bound on how many terms the expression has, multiplied out over one denominator."""
    shared = graph.intern([expression])
    bounds: list[tuple[int, int]] = []
    for node in shared.nodes:
        arguments = [bounds[child] for child in node.children]
        numerator, denominator = 1, 1
        if isinstance(node.expression, sympy.Add):
            for above, below in arguments:
                numerator, denominator = (
                    min(numerator * below + above * denominator, 10**9),
                    min(denominator * below, 10**9),
                )
        elif isinstance(node.expression, sympy.Mul):
            for above, below in arguments:
                numerator, denominator = min(numerator * above, 10**9), min(denominator * below, 10**9)
        elif isinstance(node.expression, sympy.Pow) and node.expression.exp.is_Integer:
            power = min(abs(int(node.expression.exp)), 30)
            numerator, denominator = (min(bound**power, 10**9) for bound in arguments[0])
            if node.expression.exp < 0:
                numerator, denominator = denominator, numerator
        bounds.append((numerator, denominator))
    return max(bounds[shared.roots[0]])


def vanishes_in_limit(
    expression: sympy.Expr,
    symbol: sympy.Symbol,
    point: sympy.Expr,
    direction: str,
    positive: Collection[str] = (),
) -> bool:
    """Tell whether an expression is proved to tend to zero; False means that nothing is known."""
    if size(expression) > MAX_NODES_LIMIT:
        return False
    cases = sign_cases(expression, positive)
    for case in cases:
        here = next(
            (leaf for leaf in graph.leaves([case]) if getattr(leaf, "name", "") == symbol.name), symbol
        )
        try:
            limit = sympy.limit(case, here, point, direction)
        except (NotImplementedError, TypeError, ValueError, PoleError):
            return False
        if not is_zero(limit):
            return False
    return bool(cases)


def is_of_order(
    expression: sympy.Expr, small: sympy.Symbol, order: int, positive: Collection[str] = ()
) -> bool:
    """Tell whether an expression is proved to be O(small^(order + 1)); False means that nothing is known.

    Its Taylor coefficients up to `order` are shown to vanish, and the next one to exist.
    """
    if size(expression) > MAX_NODES:
        return False
    cases = sign_cases(expression, {*positive, small.name})
    here = sympy.Symbol(small.name, positive=True)
    for case in cases:
        derivative = case
        for power in range(order + 2):
            coefficient = evaluated(derivative, {here: sympy.Integer(0)})
            if coefficient.has(sympy.nan, sympy.zoo, sympy.oo):
                return False
            if power <= order and not is_zero(coefficient):
                return False
            derivative = sympy.diff(derivative, here)
            if size(derivative) > MAX_NODES:
                return False
    return bool(cases)
