"""Whether an expression is zero, by symbolic means whose cost is bounded before they start.

A difference is brought to a rational function of symbols: functions that aren't rational become symbols,
exponentials and square roots with their laws, sines and cosines by the half-angle tangent. It is zero if its
numerator is. Nothing is ever claimed to be different from zero: that is for numbers to show.
"""

import functools
import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import sympy
from sympy.core.function import PoleError
from sympy.polys.rings import PolyRing

from mechsmith.symbolic import graph

# Sizes up to which the symbolic means take well under a second on small integers and few symbols.
MAX_NODES = 400
MAX_TERMS = 5_000
MAX_TERMS_CANCEL = 300
MAX_ANGLES = 8
MAX_NODES_LIMIT = 60
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
    try:
        return bool(cases) and all(_is_zero_rationally(case) for case in cases)
    except _TooLargeError:
        return False


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
        try:
            case = evaluated(exact, dict(choice))
        except (TypeError, ValueError):  # SymPy's word for a comparison with what has no value
            case = sympy.nan
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
    atoms = _Atoms()
    numerator = _numerator(_rebuilt(expression, atoms.build))
    for root, law in reversed(atoms.laws):
        # Nested roots last made, first reduced: a law holds only roots made before it.
        if numerator.has(root):
            steps = max(sympy.degree(numerator, root) - sympy.degree(law, root) + 1, 0)
            if _terms(numerator) * _terms(law) ** int(steps) > MAX_TERMS:
                raise _TooLargeError
            numerator = sympy.expand(sympy.prem(numerator, law, root))
    if numerator == 0:
        return True
    return size(expression) <= MAX_NODES_SIMPLIFY and sympy.simplify(expression) == 0


class _TooLargeError(Exception):
    """A step would cost more than it may, or would show nothing."""


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
            cosine, sine = self._rotation(arguments[0])
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
        for coefficient, rest in _summands(exponent):
            if rest in logarithms and coefficient.is_Integer:
                product *= logarithms[rest] ** coefficient
            else:
                product *= self._atom(sympy.exp, rest / coefficient.q) ** coefficient.p
        return product

    def _rotation(self, angle: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
        """Return cosine and sine of a + n b as those of a, then n times b, each from the tangent of its half."""
        summands = _summands(angle)
        if sum(abs(coefficient.p) for coefficient, _ in summands) > MAX_ANGLES:
            summands = [(sympy.Integer(1), _canonical(angle))]
        cosine, sine = sympy.Integer(1), sympy.Integer(0)
        for coefficient, rest in summands:
            half = self._atom("tan of half", rest / coefficient.q)
            along, across = (1 - half**2) / (1 + half**2), sympy.sign(coefficient) * 2 * half / (1 + half**2)
            for _ in range(abs(coefficient.p)):
                cosine, sine = cosine * along - sine * across, sine * along + cosine * across
        return cosine, sine

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        if exponent.is_Integer:
            return base**exponent
        base = _canonical(base)
        if exponent.is_Rational:
            known = ("root", base, exponent.q) in self._table
            root = self._atom("root", base, exponent.q)
            if not known:
                numerator, denominator = sympy.fraction(base)
                self.laws.append((root, _multiplied_out(denominator * root**exponent.q - numerator)))
            return root**exponent.p
        return self._atom("power", base, _canonical(exponent))


def _numerator(rational: sympy.Expr) -> sympy.Expr:
    """Return the numerator, multiplied out, over the least common denominator of known factors.

    A loop over the shared graph; `together` would go through it as a tree.
    """
    shared = graph.intern([rational])
    symbols = [
        node.expression
        for node in shared.nodes
        if not node.children and not isinstance(node.expression, sympy.Rational)
    ] or [sympy.Dummy()]
    if any(symbol in (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) for symbol in symbols):
        raise _TooLargeError
    ring = PolyRing([sympy.Dummy(f"generator_{i}") for i in range(len(symbols))], sympy.QQ)
    generators = dict(zip(symbols, ring.gens, strict=True))
    fractions: list[_Fraction] = []
    for node in shared.nodes:
        expression, arguments = node.expression, [fractions[child] for child in node.children]
        if isinstance(expression, sympy.Rational):
            fractions.append(_Fraction(ring(sympy.QQ(int(expression.p), int(expression.q))), {}))
        elif not arguments:
            fractions.append(_Fraction(generators[expression], {}))
        elif isinstance(expression, sympy.Add):
            fractions.append(functools.reduce(_Fraction.plus, arguments))
        elif isinstance(expression, sympy.Mul):
            fractions.append(functools.reduce(_Fraction.times, arguments))
        else:
            fractions.append(arguments[0].power(int(expression.exp)))
    numerator = fractions[shared.roots[0]].numerator
    back = dict(zip(ring.symbols, symbols, strict=True))
    return numerator.as_expr().xreplace(back)


class _Fraction(NamedTuple):
    """A polynomial over powers of monic ones."""

    numerator: Any
    denominator: dict[Any, int]

    def times(self, other: "_Fraction") -> "_Fraction":
        powers = dict(self.denominator)
        for factor, power in other.denominator.items():
            powers[factor] = powers.get(factor, 0) + power
        return _Fraction(_product(self.numerator, other.numerator), powers)

    def plus(self, other: "_Fraction") -> "_Fraction":
        common = {
            factor: max(self.denominator.get(factor, 0), other.denominator.get(factor, 0))
            for factor in {**self.denominator, **other.denominator}
        }
        left, right = self._over(common), other._over(common)
        return _Fraction(left + right, common)

    def _over(self, common: dict[Any, int]) -> Any:
        numerator = self.numerator
        for factor, power in common.items():
            for _ in range(power - self.denominator.get(factor, 0)):
                numerator = _product(numerator, factor)
        return numerator

    def power(self, exponent: int) -> "_Fraction":
        base = self if exponent >= 0 else self._inverted()
        if abs(exponent) > MAX_TERMS or (
            abs(exponent) > 1 and len(base.numerator) ** abs(exponent) > MAX_TERMS
        ):
            raise _TooLargeError
        powers = {factor: power * abs(exponent) for factor, power in base.denominator.items()}
        return _Fraction(base.numerator ** abs(exponent), powers)

    def _inverted(self) -> "_Fraction":
        if not self.numerator:
            raise _TooLargeError  # A division by what turns out to be zero: nothing is shown by it.
        ring = self.numerator.ring
        above = _Fraction(ring.one, {})._over(self.denominator)
        (monomial, coefficient), *others = self.numerator.terms()
        if others:
            return _Fraction(above.quo_ground(self.numerator.LC), {self.numerator.monic(): 1})
        powers = {generator: power for generator, power in zip(ring.gens, monomial, strict=True) if power}
        return _Fraction(above.quo_ground(coefficient), powers)


def _product(one: Any, other: Any) -> Any:
    if len(one) * len(other) > MAX_TERMS:
        raise _TooLargeError
    return one * other


def _summands(expression: sympy.Expr) -> list[tuple[sympy.Rational, sympy.Expr]]:
    """Return the terms of a sum, each as a rational coefficient and the rest."""
    split = [term.as_coeff_Mul(rational=True) for term in sympy.Add.make_args(_multiplied_out(expression))]
    return [(coefficient, rest) for coefficient, rest in split if coefficient]


def _multiplied_out(expression: sympy.Expr) -> sympy.Expr:
    if _terms(expression) > MAX_TERMS:
        raise _TooLargeError
    return sympy.expand(expression)


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
