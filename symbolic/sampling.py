"""Random points at which the two sides of a statement are compared."""

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import sympy
from sympy.core.function import AppliedUndef

from mechsmith.symbolic import graph
from mechsmith.symbolic.evaluate import Evaluator
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import leaf_name
from mechsmith.symbolic.statement import Expansion, Limit, Statement

DIGITS = 50
# Relative: 50 digits less what cancellation within a side may take.
AGREEMENT = 1e-35
# Of statements that hold floating-point numbers: double precision less three digits for operations on them.
AGREEMENT_FLOATS = 1e-13
# What a second, doubled precision must leave of a difference that was rounding only.
SHRINKAGE = 1e-30
# Steps towards a limit; and how much of a difference the last one may leave.
LIMIT_STEPS = (Fraction(1, 10**4), Fraction(1, 10**8), Fraction(1, 10**16))
LIMIT_SHRINKAGE = 0.3
# Where the order of a remainder is measured, and shown. Between these steps a smooth remainder's order is off
# its integer by the first step times some ratio of coefficients; one with a logarithm by 0.035.
EXPANSION_STEPS = (Fraction(1, 10**12), Fraction(1, 10**13))
EXPANSION_SHOWN = Fraction(1, 10**3)
ORDER_MARGIN = 0.02
ATTEMPTS = 20


@dataclass(frozen=True)
class Counterexample:
    """Values of the symbols, and of both sides, where a statement fails."""

    values: Mapping[str, float]
    left: float
    right: float

    def __str__(self) -> str:
        listed = ", ".join(f"{name} = {value:.6g}" for name, value in self.values.items())
        return f"At {listed}: left {self.left:.12g}, right {self.right:.12g}."


class Ranges:
    """Between what bounds each symbol of a statement may lie, and about what value."""

    def __init__(self, model: Model, statement: Statement) -> None:
        self._statement = statement
        self._owners = {
            symbol.name: quantity for quantity in model.quantities.values() for symbol in quantity.elements
        }

    def bounds(self, name: str) -> tuple[float, float]:
        """Return lower and upper bound: the statement's, or else the quantity's."""
        statement = self._statement
        if name in statement.ranges:
            return statement.ranges[name]
        if statement.expansion is not None and statement.expansion.small.name == name:
            return 0.0, math.inf
        if name in self._owners:
            return self._owners[name].lower, self._owners[name].upper
        if statement.limit is not None and statement.limit.symbol.name == name:
            return _side(statement.limit)
        return -math.inf, math.inf

    def nominal(self, name: str) -> float:
        """Return the nominal value; zero when there is none, or the statement says where to go."""
        if name in self._statement.ranges or name not in self._owners:
            return 0.0
        return self._owners[name].nominal or 0.0


def _side(limit: Limit) -> tuple[float, float]:
    """Return the half line on which a limit is approached, when that is a half line from zero."""
    if limit.point == sympy.oo or (limit.point == 0 and limit.direction == "+"):
        return 0.0, math.inf
    if limit.point == -sympy.oo or (limit.point == 0 and limit.direction == "-"):
        return -math.inf, 0.0
    return -math.inf, math.inf


class Sampler:
    """Random points of a statement: exact fractions within bounds, about nominal values where there are any."""

    def __init__(self, model: Model, statement: Statement, *, seed: int) -> None:
        # Not for secrets; the seed makes verdicts repeatable.
        self._random = random.Random(seed)  # noqa: S311
        ranges = Ranges(model, statement)
        names = sorted({name for pair in statement.pairs for name in names_in(pair)})
        self._plans = {name: (*ranges.bounds(name), ranges.nominal(name)) for name in names}

    def point(self) -> dict[str, Fraction]:
        """Return a new point."""
        return {name: Fraction(self._draw(*plan)) for name, plan in self._plans.items()}

    def _draw(self, lower: float, upper: float, nominal: float) -> float:
        uniform = self._random.uniform
        if nominal:
            # Half a decade to both sides, and both signs where both are allowed.
            value = nominal * 10.0 ** uniform(-0.5, 0.5)
            flipped = -value if self._random.random() < 0.5 else value
            value = flipped if lower <= flipped <= upper else value
            return value if lower < value < upper else nominal
        if math.isfinite(lower) and math.isfinite(upper):
            return self._strictly(lower, upper)
        if math.isfinite(lower):
            return lower + max(abs(lower), 1.0) * self._strictly(0.0, 2.0)
        if math.isfinite(upper):
            return upper - max(abs(upper), 1.0) * self._strictly(0.0, 2.0)
        return uniform(-2.0, 2.0)

    def _strictly(self, lower: float, upper: float) -> float:
        # Off the ends, where the statement need not hold.
        return lower + (upper - lower) * self._random.uniform(0.001, 0.999)


def names_in(expressions: Iterable[sympy.Basic]) -> list[str]:
    """Return the names of the symbols, functions of time and derivatives in expressions."""
    return [
        leaf_name(leaf)
        for leaf in graph.leaves(expressions)
        if isinstance(leaf, sympy.Symbol | AppliedUndef | sympy.Derivative)
    ]


def compare(sampler: Sampler, statement: Statement, *, points: int) -> tuple[Counterexample | None, str]:
    """Return the first point found where the sides differ, if any, and what was found in a sentence."""
    if statement.expansion is not None:
        test: _Agreement = _Order(statement, statement.expansion)
    elif statement.limit is not None:
        test = _Tendency(statement, statement.limit)
    else:
        test = _Agreement(statement)
    agreed = 0
    for _ in range(points * ATTEMPTS):
        point = sampler.point()
        outcome = test(point)
        if outcome == "differ":
            return test.shown(point), test.reason
        agreed += outcome == "agree"
        if agreed == points:
            return None, f"{points} random points in {DIGITS}-digit arithmetic agree."
    return None, f"Only {agreed} of {points * ATTEMPTS} random points gave real numbers on both sides."


class _Agreement:
    """Both sides are equal."""

    reason = "The sides differ."

    def __init__(self, statement: Statement) -> None:
        lefts, rights = zip(*statement.pairs, strict=True)
        self._expressions = (*lefts, *rights)
        self._floats = any(
            isinstance(node.expression, sympy.Float) for node in graph.intern(self._expressions).nodes
        )
        # What a difference is measured by where it can't be expected to be nothing.
        self._terms: list[sympy.Basic] = []
        if self._floats or statement.limit is not None or statement.expansion is not None:
            self._terms = [term for side in self._expressions for term in sympy.Add.make_args(side)]
        self._evaluator = Evaluator([*self._expressions, *self._terms], digits=DIGITS)
        self._precise: Evaluator | None = None
        self._differing = 0

    def __call__(self, point: dict[str, Fraction]) -> str:
        values = self._evaluator(point)
        half = len(self._expressions) // 2
        lefts, rights, terms = values[:half], values[half : 2 * half], values[2 * half :]
        if any(mpmath.isnan(value) for value in (*lefts, *rights)):
            return "undefined"
        scale = max((abs(term) for term in terms if not mpmath.isnan(term)), default=0)
        for i, (left, right) in enumerate(zip(lefts, rights, strict=True)):
            if not self._agree(point, i, left, right, scale):
                self._differing = i
                return "differ"
        return "agree"

    def _agree(self, point: dict[str, Fraction], i: int, left: Any, right: Any, scale: Any) -> bool:
        difference = abs(left - right)
        if self._floats:
            return bool(difference <= AGREEMENT_FLOATS * scale)
        if difference <= AGREEMENT * max(abs(left), abs(right)):
            return True
        self._precise = self._precise or Evaluator(self._expressions, digits=2 * DIGITS)
        values = self._precise(point)
        return bool(abs(values[i] - values[i + len(self._expressions) // 2]) <= SHRINKAGE * difference)

    def shown(self, point: dict[str, Fraction]) -> Counterexample:
        """Return the point with the values of the sides that differ."""
        values = self._evaluator(point)
        half = len(self._expressions) // 2
        return Counterexample(
            {name: float(value) for name, value in point.items()},
            float(values[self._differing]),
            float(values[self._differing + half]),
        )


class _Passage(_Agreement):
    """The difference of the sides on the way of one symbol to a point."""

    def __init__(self, statement: Statement, *, digits: int) -> None:
        super().__init__(statement)
        self._digits = digits
        self._evaluator = Evaluator([*self._expressions, *self._terms], digits=digits)
        self._half = len(self._expressions) // 2

    def _differences(self, points: list[dict[str, Fraction]]) -> tuple[list[Any], Any]:
        """Return the largest difference at each point, and the size of the terms at the last."""
        differences = []
        for point in points:
            values = self._evaluator(point)
            sides = values[: 2 * self._half]
            if any(mpmath.isnan(value) for value in sides):
                return [], 0
            gaps = [abs(sides[i] - sides[i + self._half]) for i in range(self._half)]
            self._differing = gaps.index(max(gaps))
            differences.append(max(gaps))
        scale = max((abs(term) for term in values[2 * self._half :] if not mpmath.isnan(term)), default=0)
        return differences, scale


class _Order(_Passage):
    """The sides differ by a remainder of the stated order."""

    def __init__(self, statement: Statement, expansion: Expansion) -> None:
        self._small, self._order = expansion
        # Digits for a remainder of the stated order at the last step, and as many again to measure it with.
        super().__init__(statement, digits=DIGITS + 13 * (self._order + 2))

    def __call__(self, point: dict[str, Fraction]) -> str:
        differences, scale = self._differences(
            [{**point, self._small.name: step} for step in EXPANSION_STEPS]
        )
        if not differences:
            return "undefined"
        negligible = mpmath.mpf(10) ** (10 - self._digits) * scale
        if differences[1] <= negligible:
            return "agree"
        ratio = float(EXPANSION_STEPS[0] / EXPANSION_STEPS[1])
        order = (
            float(mpmath.log(differences[0] / differences[1]) / math.log(ratio)) if differences[0] else 0.0
        )
        self.reason = f"The remainder is of order {round(order, 2) + 0.0:.2f} in {self._small}, stated is {self._order + 1}."
        return "agree" if order >= self._order + 1 - ORDER_MARGIN else "differ"

    def shown(self, point: dict[str, Fraction]) -> Counterexample:
        """Return the sides where the small parameter is a thousandth."""
        return super().shown({**point, self._small.name: EXPANSION_SHOWN})


class _Tendency(_Passage):
    """The difference of the sides tends to zero."""

    reason = "The difference doesn't tend to zero."

    def __init__(self, statement: Statement, limit: Limit) -> None:
        super().__init__(statement, digits=2 * DIGITS)
        self._limit = limit

    def _near(self, point: dict[str, Fraction], step: Fraction) -> dict[str, Fraction]:
        symbol, target, direction = self._limit
        scale = abs(point.get(symbol.name, Fraction(1))) or Fraction(1)
        if target in (sympy.oo, -sympy.oo):
            return {**point, symbol.name: (1 if target == sympy.oo else -1) * scale / step}
        sign = 1 if direction == "+" else -1
        return {**point, symbol.name: Fraction(str(sympy.Rational(target))) + sign * scale * step}

    def __call__(self, point: dict[str, Fraction]) -> str:
        differences, scale = self._differences([self._near(point, step) for step in LIMIT_STEPS])
        if not differences:
            return "undefined"
        if differences[-1] <= AGREEMENT * scale or differences[-1] <= LIMIT_SHRINKAGE * differences[-2]:
            return "agree"
        return "differ"

    def shown(self, point: dict[str, Fraction]) -> Counterexample:
        """Return the sides nearest to the limit."""
        return super().shown(self._near(point, LIMIT_STEPS[-1]))
