"""SymPy to CasADi: the one crossing point.

Each distinct node of the expression graph is translated once, in a loop, so time is linear in their number
and depth has no limit. Derivatives are CasADi's. What would make them not a number where the value is one
is translated so that they stay right: see `powers` for zero to a free power, and guards below for branches.

**Guards.** The value of a Piecewise is taken from one branch, but its derivative sums over all of them, the
others times zero, and zero times infinity is not a number. Therefore functions that are undefined somewhere
get, inside a branch, a harmless argument wherever the branch is not taken.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import casadi
import sympy
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.piecewise import ExprCondPair

from mechsmith.codegen import powers
from mechsmith.codegen.functions import CasadiEvaluator, FunctionSet, Variable, make_function
from mechsmith.symbolic.graph import Graph, intern
from mechsmith.symbolic.model import Equation, Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity

SX = casadi.SX
NO_GUARD = 0
# Shared by the branches of nested Piecewise a node would be translated under exponentially many guards.
MOST_GUARDS = 4


class TranslationError(ModelError):
    """An expression holds something that can't be translated; the message names it and the model."""


UNARY: Mapping[type, int] = {
    sympy.sin: casadi.OP_SIN,
    sympy.cos: casadi.OP_COS,
    sympy.tan: casadi.OP_TAN,
    sympy.asin: casadi.OP_ASIN,
    sympy.acos: casadi.OP_ACOS,
    sympy.atan: casadi.OP_ATAN,
    sympy.sinh: casadi.OP_SINH,
    sympy.cosh: casadi.OP_COSH,
    sympy.tanh: casadi.OP_TANH,
    sympy.asinh: casadi.OP_ASINH,
    sympy.acosh: casadi.OP_ACOSH,
    sympy.atanh: casadi.OP_ATANH,
    sympy.exp: casadi.OP_EXP,
    sympy.log: casadi.OP_LOG,
    sympy.Abs: casadi.OP_FABS,
    sympy.sign: casadi.OP_SIGN,
    sympy.floor: casadi.OP_FLOOR,
    sympy.ceiling: casadi.OP_CEIL,
    sympy.erf: casadi.OP_ERF,
    sympy.Not: casadi.OP_NOT,
}
# An argument at which value and derivatives are finite, for functions that are undefined or overflow somewhere.
HARMLESS: Mapping[type, float] = {
    sympy.exp: 0.0,
    sympy.log: 1.0,
    sympy.asin: 0.0,
    sympy.acos: 0.0,
    sympy.atanh: 0.0,
    sympy.acosh: 2.0,
    sympy.tan: 0.0,
    sympy.sinh: 0.0,
    sympy.cosh: 0.0,
    sympy.Pow: 1.0,
}
FOLD: Mapping[type, int] = {
    sympy.Max: casadi.OP_FMAX,
    sympy.Min: casadi.OP_FMIN,
    sympy.And: casadi.OP_AND,
    sympy.Or: casadi.OP_OR,
}
RECIPROCAL: Mapping[type, int] = {
    sympy.cot: casadi.OP_TAN,
    sympy.sec: casadi.OP_COS,
    sympy.csc: casadi.OP_SIN,
    sympy.coth: casadi.OP_TANH,
    sympy.sech: casadi.OP_COSH,
    sympy.csch: casadi.OP_SINH,
}


class _Task(NamedTuple):
    node: int
    guard: int


def lower(model: Model) -> FunctionSet:
    """Return the functions of a model in CasADi.

    Raises
    ------
    TranslationError
        If an expression holds something that has no translation.
    """
    arguments = {"x": model.states, "d": model.discrete_states, "z": model.unknowns}
    arguments |= {"u": model.inputs, "p": model.parameters}
    symbols = {name: SX.sym(name, sum(q.size for q in quantities)) for name, quantities in arguments.items()}
    table = {
        symbol.name: symbols[name][i]
        for name, quantities in arguments.items()
        for i, symbol in enumerate(s for q in quantities for s in q.elements)
    }
    values = translate_equations(model.name, model.equations, table)
    ordered = [symbols[name] for name in ("x", "d", "z", "u", "p")]
    functions = {}
    names = {"derivative": "derivative", "update": "update", "constraint": "constraint"}
    for kind, name in {**names, "output": "output", "mass": "mass", "crossing": "crossing"}.items():
        rows = [
            value for equation, value in zip(model.equations, values, strict=True) if equation.kind == kind
        ]
        if rows:
            expression = casadi.vertcat(*rows)
            if kind == "mass":
                size = symbols["x"].numel()
                expression = casadi.reshape(expression, size, size).T
            functions[name] = CasadiEvaluator(make_function(name, ordered, expression))
    return FunctionSet(
        name=model.name,
        states=_variables(model.states),
        discrete_states=_variables(model.discrete_states),
        unknowns=_variables(model.unknowns),
        inputs=_variables(model.inputs),
        parameters=_variables(model.parameters),
        outputs=_variables(tuple(model.outputs)),
        functions=functions,
        capabilities=frozenset({"embeddable", "derivatives"}),
        sample_time=model.sample_time,
        integrals=tuple((name, _variables((quantity,))[0]) for name, quantity in model.integrals.items()),
        description=model.description,
        references=model.references,
    )


def _variables(quantities: Sequence[Quantity]) -> tuple[Variable, ...]:
    return tuple(
        Variable(q.name, q.units, q.shape, q.description, q.nominal, float(q.lower), float(q.upper))
        for q in quantities
    )


def translate_equations(model: str, equations: Sequence[Equation], table: Mapping[str, SX]) -> list[SX]:
    """Translate equations in order; a definition's value takes its symbol's place in those that follow."""
    graph = intern([equation.expression for equation in equations])
    translator = _Translator(model, graph, dict(table))
    values = []
    for equation, root in zip(equations, graph.roots, strict=True):
        value = translator.value(root)
        if equation.kind == "definition":
            translator.symbols[equation.symbol.name] = value
        values.append(value)
    return values


def translate(
    expressions: Sequence[sympy.Basic], table: Mapping[str, SX], *, model: str = "expression"
) -> list[SX]:
    """Translate expressions over named CasADi scalars."""
    graph = intern([sympy.sympify(expression) for expression in expressions])
    translator = _Translator(model, graph, dict(table))
    return [translator.value(root) for root in graph.roots]


class _Translator:
    """The walk over one graph. Nodes under a guard are kept apart only where they hold a guarded function."""

    def __init__(self, model: str, graph: Graph, symbols: dict[str, SX]) -> None:
        self.model = model
        self.graph = graph
        self.symbols = symbols
        self.guards: list[SX] = [SX(1)]
        self.guard_numbers: dict[tuple[int, int, int], int] = {}
        self.done: dict[_Task, SX] = {}
        self.guards_of: dict[int, set[int]] = {}
        self.guarded = self._find_guarded()
        self.numeric = self._find_numeric()

    def _find_guarded(self) -> list[bool]:
        found: list[bool] = []
        for expression, children in self.graph.nodes:
            partial = type(expression) in HARMLESS or isinstance(expression, sympy.atan2 | sympy.Mod)
            partial = partial or type(expression) in RECIPROCAL or isinstance(expression, sympy.Piecewise)
            found.append(partial or any(found[child] for child in children))
        return found

    def _find_numeric(self) -> list[bool]:
        # SymPy's own is_number recurses, and asks again at every level.
        found: list[bool] = []
        for expression, children in self.graph.nodes:
            leaf = isinstance(expression, sympy.Number | sympy.NumberSymbol)
            found.append(all(found[child] for child in children) if children else leaf)
        return found

    def value(self, root: int) -> SX:
        """Return the translation of a node, translating what it needs first."""
        stack = [_Task(root, NO_GUARD)]
        while stack:
            task = stack[-1]
            if task in self.done:
                stack.pop()
                continue
            needed = [need for need in self._needs(task) if need not in self.done]
            if needed:
                stack.extend(reversed(needed))
                continue
            stack.pop()
            self.done[task] = self._translate(task)
        return self.done[_Task(root, NO_GUARD)]

    def _check_kind(self, expression: sympy.Basic) -> None:
        # Before its arguments are translated: those of an Integral or a matrix element are no numbers.
        if expression.args and not isinstance(expression, _KNOWN):
            kind = type(expression).__name__
            raise self._error(f"{kind} in {_short(expression)}. {_HINTS.get(kind, 'It has no translation.')}")

    def _under(self, node: int, guard: int) -> _Task:
        if guard == NO_GUARD or not self.guarded[node]:
            return _Task(node, NO_GUARD)
        known = self.guards_of.setdefault(node, set())
        if len(known) < MOST_GUARDS:
            known.add(guard)
        return _Task(node, guard if guard in known else NO_GUARD)

    def _needs(self, task: _Task) -> list[_Task]:
        expression, children = self.graph.nodes[task.node]
        self._check_kind(expression)
        if not isinstance(expression, sympy.Piecewise):
            return [self._under(child, task.guard) for child in children]
        pairs = [self.graph.nodes[child].children for child in children]
        conditions = [self._under(condition, task.guard) for _, condition in pairs]
        if any(condition not in self.done for condition in conditions):
            return conditions
        branches = [self._under(branch, self._branch_guard(task, i)) for i, (branch, _) in enumerate(pairs)]
        return branches

    def _branch_guard(self, task: _Task, branch: int) -> int:
        """Return the number of the guard under which a branch is taken, given that the outer one holds."""
        key = (task.node, task.guard, branch)
        if key not in self.guard_numbers:
            pairs = [self.graph.nodes[child].children for child in self.graph.nodes[task.node].children]
            guard = self.guards[task.guard]
            for i in range(branch + 1):
                condition = self.done[self._under(pairs[i][1], task.guard)]
                guard = _both(guard, condition if i == branch else SX.unary(casadi.OP_NOT, condition))
            self.guard_numbers[key] = len(self.guards)
            self.guards.append(guard)
        return self.guard_numbers[key]

    def _translate(self, task: _Task) -> SX:
        expression, children = self.graph.nodes[task.node]
        if not children:
            return self._leaf(expression)
        if isinstance(expression, sympy.Piecewise):
            return self._piecewise(task)
        if isinstance(expression, ExprCondPair):
            return SX(0)
        return self._operation(
            expression, [self.done[self._under(child, task.guard)] for child in children], task
        )

    def _leaf(self, expression: sympy.Basic) -> SX:
        if isinstance(expression, sympy.Symbol):
            if expression.name not in self.symbols:
                raise self._error(f"undeclared symbol {expression.name!r}")
            return self.symbols[expression.name]
        if expression is sympy.true or expression is sympy.false:
            return SX(1 if expression is sympy.true else 0)
        if isinstance(expression, sympy.Number | sympy.NumberSymbol) and expression.is_extended_real:
            return SX(self._to_float(expression))
        if isinstance(expression, sympy.Derivative | AppliedUndef):
            raise self._error(
                f"{expression}, a function of time that is no state: declare it, or differentiate first"
            )
        raise self._error(f"{expression} ({type(expression).__name__}), which is not a real number")

    def _operation(self, expression: sympy.Basic, values: list[SX], task: _Task) -> SX:
        kind = type(expression)
        if isinstance(expression, sympy.Add):
            return self._sum(task, values)
        if isinstance(expression, sympy.Mul):
            return self._product(task, values)
        if isinstance(expression, sympy.Pow):
            return self._power(expression, values, task)
        if kind in FOLD:
            return _fold(FOLD[kind], values)
        if kind in HARMLESS or kind in RECIPROCAL:
            values = [self._guard(values[0], task, HARMLESS.get(kind, 1.0)), *values[1:]]
        if kind in UNARY and len(values) == 1:
            return SX.unary(UNARY[kind], values[0])
        if kind in RECIPROCAL:
            return SX.binary(casadi.OP_DIV, SX(1), SX.unary(RECIPROCAL[kind], values[0]))
        special = next(f for base, f in _SPECIAL.items() if isinstance(expression, base))
        if isinstance(expression, sympy.atan2 | sympy.Mod):
            values = [values[0], self._guard(values[1], task, 1.0)]
        return special(values)

    def _sum(self, task: _Task, values: list[SX]) -> SX:
        children = self.graph.nodes[task.node].children
        # Positive terms first, so that a difference is one subtraction and no negation.
        negative = [_is_negative(self.graph.nodes[child].expression) for child in children]
        order = sorted(range(len(values)), key=lambda i: negative[i])
        total = values[order[0]]
        for i in order[1:]:
            if negative[i]:
                total = SX.binary(casadi.OP_SUB, total, SX.unary(casadi.OP_NEG, values[i]))
            else:
                total = SX.binary(casadi.OP_ADD, total, values[i])
        return total

    def _product(self, task: _Task, values: list[SX]) -> SX:
        children = self.graph.nodes[task.node].children
        expressions = [self.graph.nodes[child].expression for child in children]
        cardinal = self._sinc_pair(task)
        numerator: list[SX] = []
        denominator: list[SX] = []
        minus = False
        for i, (expression, value) in enumerate(zip(expressions, values, strict=True)):
            if i in cardinal:
                continue
            if expression is sympy.S.NegativeOne:
                minus = not minus
            elif isinstance(expression, sympy.Pow) and self._has_negative_exponent(children[i]):
                denominator.append(self._inverse_power(children[i], task.guard))
            else:
                numerator.append(value)
        if cardinal:
            angle = self.done[self._under(self.graph.nodes[children[cardinal[0]]].children[0], task.guard)]
            numerator.append(powers.cardinal_sine(angle))
        result = _fold(casadi.OP_MUL, numerator) if numerator else SX(1)
        if denominator:
            result = SX.binary(casadi.OP_DIV, result, _fold(casadi.OP_MUL, denominator))
        return SX.unary(casadi.OP_NEG, result) if minus else result

    def _sinc_pair(self, task: _Task) -> tuple[int, ...]:
        """Return the places of sin(a) and 1/a in a product: together they are regular at a = 0."""
        children = self.graph.nodes[task.node].children
        sines = {
            self.graph.nodes[child].children[0]: i
            for i, child in enumerate(children)
            if isinstance(self.graph.nodes[child].expression, sympy.sin)
        }
        for i, child in enumerate(children):
            expression, arguments = self.graph.nodes[child]
            if (
                isinstance(expression, sympy.Pow)
                and expression.exp is sympy.S.NegativeOne
                and arguments[0] in sines
            ):
                return (sines[arguments[0]], i)
        return ()

    def _has_negative_exponent(self, node: int) -> bool:
        expression, (_, exponent) = self.graph.nodes[node]
        return self.numeric[exponent] and bool(expression.exp.is_negative)

    def _inverse_power(self, node: int, guard: int) -> SX:
        """Return base**-exponent of a power with a negative exponent, to divide by."""
        expression, (base, _) = self.graph.nodes[node]
        value = self._guard(self.done[self._under(base, guard)], _Task(node, guard), 1.0)
        return powers.constant_power(value, -expression.exp)

    def _power(self, expression: sympy.Pow, values: list[SX], task: _Task) -> SX:
        base, exponent = values
        if expression.base is sympy.S.Exp1:
            return SX.unary(casadi.OP_EXP, self._guard(exponent, task, 0.0))
        if not self.numeric[self.graph.nodes[task.node].children[1]]:
            base = self._guard(base, task, 1.0)
            return powers.free_power(base, exponent, nonnegative=_is_plainly_nonnegative(expression.base))
        if expression.exp.is_Integer and expression.exp.is_positive:
            return powers.constant_power(base, expression.exp)
        base = self._guard(base, task, 1.0)
        if expression.exp.is_negative:
            return SX.binary(casadi.OP_DIV, SX(1), powers.constant_power(base, -expression.exp))
        return powers.constant_power(base, expression.exp)

    def _guard(self, value: SX, task: _Task, harmless: float) -> SX:
        if task.guard == NO_GUARD or value.is_constant():
            return value
        return casadi.if_else(self.guards[task.guard], value, harmless)

    def _piecewise(self, task: _Task) -> SX:
        pairs = [self.graph.nodes[child].children for child in self.graph.nodes[task.node].children]
        result = SX(float("nan"))
        for i, (branch, condition) in reversed(list(enumerate(pairs))):
            value = self.done[self._under(branch, self._branch_guard(task, i))]
            test = self.done[self._under(condition, task.guard)]
            result = value if test.is_one() else casadi.if_else(test, value, result)
        return result

    def _to_float(self, expression: sympy.Expr) -> float:
        try:
            if isinstance(expression, sympy.Rational) and expression.is_finite:
                return int(expression.p) / int(expression.q)
            value = float(expression)
        except OverflowError:
            value = math.inf
        if math.isinf(value) and expression.is_finite:
            raise self._error(f"the number {sympy.N(expression, 5)}, which is beyond the largest double")
        return value

    def _error(self, what: str) -> TranslationError:
        return TranslationError(f"model {self.model!r}: can't translate {what}")


def _both(first: SX, second: SX) -> SX:
    if first.is_one():
        return second
    return first if second.is_one() else SX.binary(casadi.OP_AND, first, second)


def _fold(operation: int, values: Sequence[SX]) -> SX:
    result = values[0]
    for value in values[1:]:
        result = SX.binary(operation, result, value)
    return result


def _is_negative(expression: sympy.Basic) -> bool:
    coefficient = expression.args[0] if isinstance(expression, sympy.Mul) else expression
    return bool(coefficient.is_Number and coefficient.is_negative)


def _is_plainly_nonnegative(expression: sympy.Basic) -> bool:
    return isinstance(expression, sympy.Abs) or bool(expression.is_Symbol and expression.is_nonnegative)


def _short(expression: sympy.Basic) -> str:
    # Printing recurses and could be as long as the model: only the outermost operation is shown.
    arguments = ", ".join(str(a) if not a.args else type(a).__name__ + "(...)" for a in expression.args[:4])
    return f"{type(expression).__name__}({arguments})"


def _relation(operation: int, *, swap: bool) -> Callable[[list[SX]], SX]:
    def apply(values: list[SX]) -> SX:
        first, second = reversed(values) if swap else values
        return SX.binary(operation, first, second)

    return apply


def _heaviside(values: list[SX]) -> SX:
    x, at_zero = values
    positive = SX.binary(casadi.OP_LT, SX(0), x)
    zero = SX.binary(casadi.OP_EQ, x, SX(0))
    return positive + SX.binary(casadi.OP_IF_ELSE_ZERO, zero, at_zero)


_SPECIAL: Mapping[type, Callable[[list[SX]], SX]] = {
    sympy.StrictLessThan: _relation(casadi.OP_LT, swap=False),
    sympy.LessThan: _relation(casadi.OP_LE, swap=False),
    sympy.StrictGreaterThan: _relation(casadi.OP_LT, swap=True),
    sympy.GreaterThan: _relation(casadi.OP_LE, swap=True),
    sympy.Equality: _relation(casadi.OP_EQ, swap=False),
    sympy.Unequality: _relation(casadi.OP_NE, swap=False),
    sympy.Heaviside: _heaviside,
    sympy.sinc: lambda values: powers.cardinal_sine(values[0]),
    sympy.atan2: lambda values: SX.binary(casadi.OP_ATAN2, values[0], values[1]),
    sympy.Mod: lambda values: values[0] - values[1] * casadi.floor(values[0] / values[1]),
    sympy.Xor: lambda values: _fold(casadi.OP_NE, values),
    sympy.ITE: lambda values: casadi.if_else(values[0], values[1], values[2]),
    sympy.UnevaluatedExpr: lambda values: values[0],
}
_KNOWN = (
    *(sympy.Add, sympy.Mul, sympy.Pow, sympy.Piecewise, ExprCondPair, sympy.Derivative, AppliedUndef),
    *(*UNARY, *FOLD, *RECIPROCAL, *_SPECIAL),
)
_HINTS = {
    "DiracDelta": "Write the undifferentiated expression; CasADi differentiates it.",
    "re": "Declare symbols with real=True before differentiating.",
    "im": "Declare symbols with real=True before differentiating.",
    "conjugate": "Declare symbols with real=True.",
    "Subs": "Evaluate it with doit().",
    "Integral": "Evaluate it with doit(), or make it a state.",
}
