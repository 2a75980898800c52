"""Translation: linear, without recursion, and clear about what it can't do."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import casadi
import numpy
import pytest
import sympy

from mechsmith.codegen.emit_c import emit_c
from mechsmith.codegen.emit_python import emit_python
from mechsmith.codegen.lower import TranslationError, lower, translate
from mechsmith.codegen.program import make_program
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

x, y = sympy.symbols("x y", real=True)


@contextmanager
def little_recursion() -> Iterator[None]:
    """Allow some 150 calls inside each other: what pytest itself needs, and no walk over a deep expression."""
    before = sys.getrecursionlimit()
    depth = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 100)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def translated(expression: sympy.Basic) -> casadi.Function:
    symbols = casadi.SX.sym("s", 2)
    (value,) = translate([expression], {"x": symbols[0], "y": symbols[1]}, model="probe")
    return casadi.Function("f", [symbols], [value])


def test_a_doubling_graph_has_as_many_instructions_as_levels() -> None:
    """Level k is a sum of two products of level k - 1: as a tree it would have 2^60 leaves."""
    level: sympy.Expr = x
    for _ in range(60):
        level = sympy.Add(
            sympy.Mul(y, level, evaluate=False), sympy.sin(level, evaluate=False), evaluate=False
        )
    assert len(make_program(translated(level)).instructions) == 2 + 3 * 60


def test_equal_graphs_built_apart_are_translated_once() -> None:
    def doubled() -> sympy.Expr:
        level: sympy.Expr = x
        for _ in range(40):
            level = sympy.Add(
                sympy.cos(level, evaluate=False), sympy.sin(level, evaluate=False), evaluate=False
            )
        return level

    both = sympy.Mul(doubled(), doubled(), evaluate=False)
    program = make_program(translated(both))
    assert len(program.instructions) == 1 + 3 * 40 + 1


def test_branches_that_share_what_they_hold_stay_linear() -> None:
    """Kept apart for each branch that may be taken, level k would be translated 2^(60 - k) times."""
    level: sympy.Expr = sympy.sqrt(x)
    for i in range(60):
        level = sympy.Piecewise((level, y > i), (2 * sympy.log(level), True), evaluate=False)
    assert translated(level).n_instructions() < 60 * 100


def chain(depth: int) -> sympy.Expr:
    result: sympy.Expr = x
    for i in range(depth):
        result = sympy.sin(result, evaluate=False) if i % 2 else sympy.atan(result, evaluate=False)
        _ = result.is_commutative  # SymPy would find it by recursion when asked at the top
    return result


def test_trap_a7_a_deep_chain() -> None:
    expression = chain(100_000)
    with little_recursion():
        function = translated(expression)
        program = make_program(function)
    assert len(program.instructions) == 100_001
    value = 0.7
    for i in range(100_000):
        value = numpy.sin(value) if i % 2 else numpy.arctan(value)
    # Each level shrinks what came before, so errors do not grow.
    assert float(function([0.7, 0.0])) == pytest.approx(value, rel=1e-10)


def test_trap_a7_a_deep_chain_is_printed() -> None:
    function_set = lower(
        Model(name="deep", inputs=(Quantity(x, ""),), outputs={Quantity("out", ""): chain(20_000)})
    )
    with little_recursion():
        assert emit_python(function_set).count("casadi.sin(") == 10_000
    # Jinja compiles a template when it is first used, which recurses as deep as the template, not the model.
    assert emit_c(function_set)["deep.c"].count("= sin(") == 10_000


def test_trap_a7_negative_powers_in_a_deep_chain() -> None:
    """A number's class decides what is a denominator; asking SymPy would recurse at each level."""
    expression: sympy.Expr = x
    for _ in range(5_000):
        inverse = sympy.Pow(sympy.Add(expression, 2, evaluate=False), -1, evaluate=False)
        expression = sympy.Mul(y, inverse, evaluate=False)
        _ = expression.is_commutative
    with little_recursion():
        function = translated(expression)
    value = 1.0
    for _ in range(5_000):
        value = 0.5 / (value + 2)
    assert float(function([1.0, 0.5])) == pytest.approx(value, rel=1e-14)


def test_trap_a7_a_sum_of_many_terms() -> None:
    count = 100_000
    terms = [x, *(sympy.Integer(i + 2) for i in range(count))]
    with little_recursion():
        function = translated(sympy.Add(*terms, evaluate=False))
    # Integers below 2^53 add up without rounding.
    assert float(function([1.0, 0.0])) == 1 + sum(range(2, count + 2))


t = sympy.Symbol("t", real=True)
REFUSED = {
    "DiracDelta": sympy.DiracDelta(x) + 1,
    "re": sympy.re(sympy.Symbol("y")) + x,
    "im": sympy.im(sympy.Symbol("y")) * x,
    "Derivative": sympy.Derivative(sympy.Function("q")(t), t) + x,
    "q\\(t\\)": sympy.Function("q")(t) * x,
    "gamma": sympy.gamma(x),
    "Integral": sympy.Integral(x, (x, 0, y)),
    "Sum": sympy.Sum(x, (x, 0, y)),
    "MatrixElement": sympy.MatrixSymbol("A", 2, 2)[0, 0] + x,
    "undeclared symbol 'stray'": sympy.Symbol("stray", real=True) + x,
    "I .*not a real number": sympy.I * x,
    "nan .*not a real number": sympy.Add(x, sympy.nan, evaluate=False),
    "beyond the largest double": x * 10**400,
    r"1.0000E\+400, which is beyond": x * sympy.Float("1e400"),
}


@pytest.mark.parametrize("named", REFUSED)
def test_trap_a8_what_has_no_translation_is_named(named: str) -> None:
    with pytest.raises(TranslationError, match=f"model 'probe': can't translate .*{named}"):
        translated(REFUSED[named])


def test_a_hint_says_what_to_do() -> None:
    with pytest.raises(TranslationError, match="CasADi differentiates it"):
        translated(sympy.DiracDelta(x))
