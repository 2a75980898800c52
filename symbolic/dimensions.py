"""The dimension of an expression, and the check that every equation of a model agrees in dimension.

Literal numbers are dimensionless, except that 0 and infinity fit anything; angles are dimensionless.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import sympy
from sympy.core.function import AppliedUndef
from sympy.core.symbol import Str
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import Boolean

from mechsmith.symbolic import graph
from mechsmith.symbolic.checks import place
from mechsmith.symbolic.model import Equation, Model
from mechsmith.symbolic.quantity import leaf_name
from mechsmith.symbolic.units import (
    ANY,
    DIMENSIONLESS,
    TIME,
    Dimension,
    DimensionError,
    parse_sized,
    parse_unit,
)

_AGREEING = (sympy.Add, sympy.Max, sympy.Min, sympy.Piecewise, sympy.Rel, sympy.Mod)
_KEEPING = (sympy.Abs, sympy.re, sympy.im, sympy.conjugate, sympy.Limit)
_DIMENSIONLESS_OF_ANYTHING = (sympy.sign, sympy.Heaviside, sympy.Tuple, Boolean)


def dimension_of(expression: sympy.Basic, units: Mapping[str, str]) -> Dimension:
    """Return the dimension of an expression; `ANY` when it is literally 0.

    Parameters
    ----------
    expression : sympy.Basic
        Any expression in symbols, functions of time and their derivatives; deep ones too.
    units : mapping of name to unit
        The unit of every symbol and function in it. The derivative of `q(t)` may be given as `q_dot`;
        otherwise it follows from the units of `q` and `t` (second, unless given).

    Raises
    ------
    DimensionError
        If terms do not agree, or an argument or exponent that must be dimensionless is not.
    """
    analysis = _Analysis(graph.intern([expression]), units)
    return analysis.result(analysis.graph.roots[0])


def check_dimensions(model: Model) -> None:
    """Raise `DimensionError` unless every equation of a model agrees in dimension.

    The message names the equation, the term and both dimensions.
    """
    units = {
        symbol.name: unit
        for quantity in model.quantities.values()
        for symbol, unit in zip(quantity.elements, quantity.units, strict=True)
    }
    units |= {integral.name: str(integral.unit) for integral in model.integrals.values()}
    _check_units(model, units)
    analysis = _Analysis(model.expression_graph, units)
    for equation, root in zip(model.equations, analysis.graph.roots, strict=True):
        _check_equation(model, equation, root, analysis)
    if model.mass is not None:
        _check_mass(model, analysis)


def _check_units(model: Model, units: Mapping[str, str]) -> None:
    for name, unit in units.items():
        try:
            dimension, size = parse_sized(unit)
        except DimensionError as error:
            raise DimensionError(f"model {model.name!r}: quantity {name!r}: {error}") from None
        if abs(size - 1.0) > 1e-12:  # sizes such as 1e-3 * 1e3 carry a rounding error of some 1e-16
            raise DimensionError(
                f"model {model.name!r}: quantity {name!r} has the unit {unit!r}, which is {size:g} {dimension}. "
                "Inside a model everything is SI: declare it in SI units; data are converted when they are read."
            )
    for name, integral in model.integrals.items():
        wanted, found = parse_unit(units[name]) * TIME, parse_unit(str(integral.unit))
        if not found.agrees(wanted):
            raise DimensionError(
                f"model {model.name!r}: integrals[{name}], {integral.name!r}, is in {found}. "
                f"The integral over time of {name!r} is in {wanted}."
            )
    if model.sample_time is not None and not parse_unit(units[model.sample_time]).agrees(TIME):
        raise DimensionError(
            f"model {model.name!r}: sample_time {model.sample_time!r} has the unit {units[model.sample_time]!r}. "
            "It must be a time: give it in 's'."
        )


def _check_equation(model: Model, equation: Equation, root: int, analysis: "_Analysis") -> None:
    where = f"model {model.name!r}: {place(equation)}"
    wanted = equation.unit
    if equation.kind == "derivative":
        wanted = f"{equation.unit}/s" if equation.unit else "1/s"
    free = equation.kind in ("constraint", "crossing", "mass") or (
        equation.kind == "derivative" and model.mass is not None
    )
    if free:
        analysis.result(root, where=where)
        return
    expected = parse_unit(equation.unit) / (TIME if equation.kind == "derivative" else DIMENSIONLESS)
    for term in analysis.terms(root):
        found = analysis.result(term, where=where)
        if not found.agrees(expected):
            whole = "" if term == root else "its term "
            raise DimensionError(
                f"{where} should be in {_described(wanted, expected)}, but {whole}"
                f"{analysis.shown(term)} is in {found}{analysis.units_within(term)}."
            )


def _described(unit: str, dimension: Dimension) -> str:
    shown = unit or "1"
    return shown if shown == str(dimension) else f"{shown} ({dimension})"


def _check_mass(model: Model, analysis: "_Analysis") -> None:
    """Check that each row of M dx/dt = f has one dimension."""
    units = [unit for quantity in model.states for unit in quantity.units]
    names = [symbol.name for quantity in model.states for symbol in quantity.elements]
    roots = dict.fromkeys(("mass", "derivative"), ())  # type: dict[str, tuple[int, ...]]
    for equation, root in zip(model.equations, analysis.graph.roots, strict=True):
        if equation.kind in roots:
            roots[equation.kind] = (*roots[equation.kind], root)
    size = len(units)
    for i in range(size):
        expected = analysis.result(roots["derivative"][i])
        origin = f"derivatives[{names[i]}]"
        for j in range(size):
            product = analysis.result(roots["mass"][i * size + j]) * parse_unit(units[j]) / TIME
            if not product.agrees(expected):
                raise DimensionError(
                    f"model {model.name!r}: mass[{names[i]}, {names[j]}] times d({names[j]})/dt is in {product}, "
                    f"but {origin} is in {expected}. A row of M dx/dt = f has one dimension."
                )
            if expected.exponents is None:
                expected, origin = product, f"mass[{names[i]}, {names[j]}] times d({names[j]})/dt"


class _Issue(Exception):
    """Why a subexpression has no dimension: raised where that is found, and kept."""


class _Analysis:
    """The dimension of every distinct subexpression of some expressions, found in one loop."""

    def __init__(self, interned: graph.Graph, units: Mapping[str, str]) -> None:
        self.units = units
        self.graph = interned
        self._found: list[Dimension | _Issue] = []
        # Whether a node holds numbers alone: an exponent that does is a number, however it is written.
        self._constant: list[bool] = []
        for number, node in enumerate(self.graph.nodes):
            self._constant.append(
                all(self._constant[child] for child in node.children)
                if node.children
                else isinstance(node.expression, sympy.Number | sympy.NumberSymbol)
            )
            self._found.append(self._of_node(number))

    def result(self, number: int, *, where: str = "") -> Dimension:
        """Return the dimension of a node, or raise with the place put before the message."""
        found = self._found[number]
        if isinstance(found, _Issue):
            raise DimensionError(f"{where}: {found}" if where else str(found))
        return found

    def terms(self, root: int) -> Iterable[int]:
        """Yield the nodes that must each have the dimension of a root: terms, branches, itself."""
        stack, seen = [root], set()
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            node = self.graph.nodes[number]
            if isinstance(node.expression, sympy.Add | sympy.Max | sympy.Min | sympy.Piecewise):
                stack.extend(reversed(node.children))
            elif isinstance(node.expression, ExprCondPair):
                # An inconsistent condition is an issue of the pair, which is yielded to be raised.
                stack.append(node.children[0])
                if isinstance(self._found[node.children[1]], _Issue):
                    yield node.children[1]
            else:
                yield number

    def shown(self, number: int) -> str:
        """Return a subexpression as text, shortened when long."""
        return graph.shown(self.graph.nodes[number].expression)

    def units_within(self, number: int) -> str:
        """Return the declared units of the symbols in a subexpression: `` (a in N, b in m)``."""
        found = [leaf_name(leaf) for leaf in self.graph.leaves(number)[:7]]
        known = [f"{name} in {self.units[name] or '1'}" for name in found if name in self.units]
        if not known or len(found) > 6 or not self.graph.nodes[number].children:
            return ""
        return f" ({', '.join(known)})"

    def _of_node(self, number: int) -> Dimension | _Issue:
        node = self.graph.nodes[number]
        for child in node.children:
            if isinstance(found := self._found[child], _Issue):
                return found
        dimensions = [self._found[child] for child in node.children]
        try:
            if not node.children:
                return self._of_leaf(node.expression)
            return self._of_operation(number, dimensions)  # type: ignore[arg-type]
        except _Issue as issue:
            return issue

    def _of_leaf(self, expression: sympy.Basic) -> Dimension:
        if isinstance(expression, sympy.Number | sympy.NumberSymbol):
            return ANY if expression.is_zero or expression.is_infinite else DIMENSIONLESS
        if isinstance(expression, sympy.Derivative):
            return self._of_derivative(expression)
        if isinstance(expression, sympy.Symbol | AppliedUndef):
            name = leaf_name(expression)
            if name not in self.units:
                raise _Issue(
                    f"{name!r} has no unit. Give the units of all symbols; there are: {', '.join(self.units)}."
                )
            return parse_unit(self.units[name])
        # A Symbol is a Boolean too, so truth values come last.
        if isinstance(expression, Boolean | sympy.Tuple | Str):
            return DIMENSIONLESS
        raise _Issue(
            f"the dimension of {graph.shown(expression)} ({type(expression).__name__}) is not known."
        )

    def _of_derivative(self, expression: sympy.Derivative) -> Dimension:
        of = expression.expr
        if isinstance(of, sympy.Symbol | AppliedUndef) and leaf_name(expression) in self.units:
            return parse_unit(self.units[leaf_name(expression)])
        units = {"t": "s", **self.units}
        try:
            dimension = dimension_of(of, units)
            for variable, count in expression.variable_count:
                dimension = dimension / dimension_of(variable, units) ** int(count)
        except DimensionError as error:
            raise _Issue(str(error)) from None
        return dimension

    def _of_operation(self, number: int, dimensions: Sequence[Dimension]) -> Dimension:
        expression = self.graph.nodes[number].expression
        if isinstance(expression, sympy.Mul):
            return _product(dimensions)
        if isinstance(expression, sympy.Pow):
            return self._of_power(number, *dimensions)
        if isinstance(expression, _AGREEING):
            common = self._agreement(number, dimensions)
            return DIMENSIONLESS if isinstance(expression, sympy.Rel) else common
        if isinstance(expression, (*_KEEPING, ExprCondPair)):
            return dimensions[0]
        if isinstance(expression, _DIMENSIONLESS_OF_ANYTHING):
            return DIMENSIONLESS
        if isinstance(expression, sympy.atan2):
            self._agreement(number, dimensions)
            return DIMENSIONLESS
        if isinstance(expression, sympy.Integral):
            return self._of_integral(number, dimensions)
        if isinstance(expression, sympy.Function):
            for child, dimension in zip(self.graph.nodes[number].children, dimensions, strict=True):
                if not dimension.agrees(DIMENSIONLESS):
                    raise _Issue(
                        f"the argument of {expression.func.__name__} must be dimensionless, but "
                        f"{self.shown(child)} is in {dimension}{self.units_within(child)}."
                    )
            return DIMENSIONLESS
        raise _Issue(
            f"the dimension of {graph.shown(expression)} ({type(expression).__name__}) is not known."
        )

    def _agreement(self, number: int, dimensions: Sequence[Dimension]) -> Dimension:
        """Return the one dimension of all children; the odd one out is named otherwise."""
        known = [dimension for dimension in dimensions if dimension.exponents is not None]
        if not known:
            return ANY
        # Hashing fractions is slow, and most sums agree.
        if all(dimension is known[0] or dimension == known[0] for dimension in known):
            return known[0]
        counts: dict[Dimension, int] = {}
        for dimension in known:
            counts[dimension] = counts.get(dimension, 0) + 1
        common = max(counts, key=lambda dimension: counts[dimension])
        children = self.graph.nodes[number].children
        odd = next(i for i, d in enumerate(dimensions) if d.exponents is not None and d != common)
        other = next(i for i, d in enumerate(dimensions) if d == common)
        raise _Issue(
            f"in {self.shown(number)}, {self.shown(children[odd])} is in {dimensions[odd]}"
            f"{self.units_within(children[odd])}, but {self.shown(children[other])} is in {common}"
            f"{self.units_within(children[other])}."
        )

    def _of_power(self, number: int, base: Dimension, exponent: Dimension) -> Dimension:
        node = self.graph.nodes[number]
        if not exponent.agrees(DIMENSIONLESS):
            raise _Issue(
                f"the exponent of {self.shown(number)} must be dimensionless, but "
                f"{self.shown(node.children[1])} is in {exponent}{self.units_within(node.children[1])}."
            )
        if self._constant[node.children[1]]:
            power = self.graph.nodes[node.children[1]].expression
            if isinstance(power, sympy.Rational):
                return base ** Fraction(int(power.p), int(power.q))
            value = power.evalf()
            if value.is_finite and value.is_real:
                # A float such as 0.3333333333333333 stands for a ratio of small integers.
                return base ** Fraction(float(value)).limit_denominator(1000)
        if base.exponents:
            raise _Issue(
                f"{self.shown(number)} has an exponent that is not a number, so its base must be dimensionless, "
                f"but {self.shown(node.children[0])} is in {base}{self.units_within(node.children[0])}."
            )
        return base

    def _of_integral(self, number: int, dimensions: Sequence[Dimension]) -> Dimension:
        result = dimensions[0]
        for limits in self.graph.nodes[number].children[1:]:
            variable, *bounds = self.graph.nodes[limits].children
            over = self._found[variable]
            for bound in bounds:
                found = self._found[bound]
                if not found.agrees(over):  # type: ignore[union-attr, arg-type]
                    raise _Issue(
                        f"in {self.shown(number)}, the bound {self.shown(bound)} is in {found}, but "
                        f"{self.shown(variable)} is in {over}."
                    )
            result = result * over  # type: ignore[operator]
        return result


def _product(dimensions: Sequence[Dimension]) -> Dimension:
    if any(dimension.exponents is None for dimension in dimensions):
        return ANY
    result = DIMENSIONLESS
    for dimension in dimensions:
        result = result * dimension
    return result
