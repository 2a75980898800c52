"""Faults of other translators: derivatives that are no numbers, switching functions, order (reference/traps.md, A)."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping

import casadi
import mpmath
import numpy
import pytest
import sympy
from sympy import Abs, Heaviside, Max, Min, Piecewise, exp, log, sign, sqrt

from mechsmith.codegen.functions import ARGUMENTS, FunctionSet
from mechsmith.codegen.lower import lower, translate_equations
from mechsmith.codegen.program import Program, make_program
from mechsmith.symbolic.catalogue import CATALOGUE
from mechsmith.symbolic.checks import ModelWarning
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

x, y, a = sympy.symbols("x y a", real=True)


def with_output(expression: sympy.Expr, *symbols: sympy.Symbol, **definitions: sympy.Expr) -> FunctionSet:
    inputs = tuple(Quantity(symbol, "") for symbol in symbols)
    named = {Quantity(name, ""): value for name, value in definitions.items()}
    return lower(
        Model(name="trap", inputs=inputs, definitions=named, outputs={Quantity("out", ""): expression})
    )


def derivatives(functions: FunctionSet, point: list[float]) -> tuple[float, numpy.ndarray, numpy.ndarray]:
    """Return value, gradient and Hessian, the gradient forward and adjoint being the same."""
    u = casadi.SX.sym("u", len(point))
    value = functions.casadi_function("output")([], [], [], u, [])
    gradient = casadi.jacobian(value, u)
    results = casadi.Function("all", [u], [value, gradient, casadi.jacobian(gradient, u)])(point)
    adjoint = functions.product("output", "u", "adjoint")([], [], [], point, [], [1.0])
    numpy.testing.assert_array_equal(adjoint.full().T, results[1].full())
    return float(results[0]), results[1].full()[0], results[2].full()


def test_a1_derivative_of_abs_without_assumptions() -> None:
    plain, t = sympy.Symbol("x"), sympy.Symbol("t")
    q = sympy.Function("q")(t)
    for written, quantity in ((sympy.diff(Abs(plain), plain), plain), (sympy.diff(Abs(q), q), q)):
        model = Model(name="a1", inputs=(Quantity(quantity, ""),), outputs={Quantity("out", ""): written})
        functions = lower(model)
        assert [functions.evaluate("output", u=[v]).item() for v in (-2.0, 0.0, 3.0)] == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("expression", "slopes"),
    [
        (3 * Heaviside(x), [0.0, 0.0, 0.0]),
        (3 * sign(x), [0.0, 0.0, 0.0]),
        (Max(0, x), [0.0, None, 1.0]),
        (Min(0, x), [1.0, None, 0.0]),
        (Abs(x), [-1.0, 0.0, 1.0]),
    ],
)
def test_a2_no_dirac_delta(expression: sympy.Expr, slopes: list[float | None]) -> None:
    functions = with_output(expression, x)
    for point, slope in zip((-1.0, 0.0, 1.0), slopes, strict=True):
        _, gradient, hessian = derivatives(functions, [point])
        if slope is None:
            assert 0.0 <= gradient[0] <= 1.0  # at the kink any value between both sides is one
        else:
            assert gradient[0] == slope
        assert hessian[0, 0] == 0.0


def test_a3_switching_functions_translate() -> None:
    matrix = Quantity("m", "", shape=(2, 2))
    entries = matrix.array
    expression = Max(x, y, 1) + Min(x, y) + sign(x) + Heaviside(y) + sympy.sinc(x) + (entries * entries)[0, 1]
    condition = sympy.And(x > 0, y > 0)
    model = Model(
        name="a3",
        inputs=(Quantity(x, ""), Quantity(y, ""), matrix),
        outputs={Quantity("out", ""): Piecewise((expression, condition), (0, True))},
    )
    got = lower(model).evaluate("output", u=[0.5, 0.25, 1.0, 2.0, 3.0, 4.0]).item()
    assert got == pytest.approx(1 + 0.25 + 1 + 1 + numpy.sin(0.5) / 0.5 + (1 * 2 + 2 * 4), rel=1e-15)


@pytest.mark.parametrize(
    "branch",
    [
        sqrt(x),
        x ** sympy.Rational(3, 2),
        x ** sympy.Rational(-1, 2),
        log(x),
        sympy.asin(x + 2),
        sympy.acosh(1 + x),
        sympy.atanh(x - 1),
        x**a,
        exp(-1000 * x),
        sympy.tan(sympy.pi * x / 2 - 0),
        Piecewise((sqrt(x), a > 0), (log(x), True)),
        sympy.sin(1 / (x + 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("through_definition", [False, True])
def test_a4_a_branch_not_taken_poisons_nothing(branch: sympy.Expr, through_definition: bool) -> None:
    value = sympy.Symbol("r", real=True) if through_definition else branch
    definitions = {"r": branch} if through_definition else {}
    functions = with_output(Piecewise((value, x > 0), (a, True)), x, a, **definitions)
    value, gradient, hessian = derivatives(functions, [-1.0, 0.5])
    assert value == 0.5
    assert gradient.tolist() == [0.0, 1.0]
    assert hessian.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a5_a_root_of_squares_is_warned_about() -> None:
    with pytest.warns(ModelWarning, match="out"):
        functions = with_output(sqrt(x**2 + y**2), x, y)
    assert functions.evaluate("output", u=[0.0, 0.0]).item() == 0.0
    assert derivatives(with_output(x**2 + y**2, x, y), [0.0, 0.0])[1].tolist() == [0.0, 0.0]


def test_a6_a_free_exponent_at_zero() -> None:
    functions = with_output(exp(-((Abs(x) / y) ** a)), x, y, a)
    for exponent in (0.5, 1.0, 1.5, 2.0):
        value, gradient, _ = derivatives(functions, [0.0, 0.1, exponent])
        assert value == 1.0
        assert gradient.tolist() == [0.0, 0.0, 0.0]
    # Away from zero it is the plain derivative: -r^a ln(r) exp(-r^a) with r = 1/2 and a = 2.
    _, gradient, _ = derivatives(functions, [0.05, 0.1, 2.0])
    assert gradient[2] == pytest.approx(-0.25 * numpy.log(0.5) * numpy.exp(-0.25), rel=1e-14)


def test_a9_floats_in_a_mass_matrix() -> None:
    mass = sympy.Matrix([[0.5 + x**2, 0.5 * x], [0.5 * x, 1.0]])
    v = sympy.Symbol("v", real=True)
    model = Model(
        name="a9",
        states=(Quantity(x, ""), Quantity(v, "")),
        parameters=(Quantity(a, "1/s"),),
        mass=mass,
        derivatives={x: a * v, v: -a * x},
    )
    functions = lower(model)
    rng = numpy.random.default_rng(0)
    for point in rng.normal(size=(20, 2)):
        expected = numpy.array([[0.5 + point[0] ** 2, 0.5 * point[0]], [0.5 * point[0], 1.0]])
        numpy.testing.assert_array_equal(functions.evaluate("mass", x=point, p=[1.0]), expected)


BINARY = {
    "add": numpy.add,
    "sub": numpy.subtract,
    "mul": numpy.multiply,
    "div": numpy.divide,
    "pow": numpy.power,
    "min": numpy.fmin,
    "max": numpy.fmax,
    "atan2": numpy.arctan2,
    "less": numpy.less,
    "less_equal": numpy.less_equal,
    "equal": numpy.equal,
    "not_equal": numpy.not_equal,
    "and": numpy.logical_and,
    "or": numpy.logical_or,
}
UNARY = {
    "neg": numpy.negative,
    "square": numpy.square,
    "twice": lambda v: v + v,
    "reciprocal": lambda v: 1.0 / v,
    "abs": numpy.abs,
    "sign": numpy.sign,
    "not": numpy.logical_not,
    "floor": numpy.floor,
    **{
        name: getattr(numpy, name)
        for name in "exp log sqrt sin cos tan tanh cosh sinh asin acos atan asinh acosh atanh ceil".split()
    },
}


def interpret(program: Program, arguments: Mapping[str, numpy.ndarray]) -> list[numpy.ndarray]:
    values: list[float] = []
    for instruction in program.instructions:
        operands = [values[operand] for operand in instruction.operands]
        if instruction.operation == "const":
            value = instruction.value
        elif instruction.operation == "input":
            value = arguments[program.arguments[instruction.argument][0]][instruction.element]
        elif instruction.operation == "select":
            value = operands[1] if operands[0] else operands[2]
        elif instruction.operation == "if_else_zero":
            value = operands[1] if operands[0] else 0.0
        elif instruction.operation in BINARY:
            value = BINARY[instruction.operation](*operands)
        else:
            value = UNARY[instruction.operation](*operands)
        values.append(float(value))
    return [numpy.array([values[v] for v in r.values]).reshape(r.shape) for r in program.results]


@pytest.mark.parametrize("name", CATALOGUE)
def test_a10_shared_subexpressions_by_back_substitution(name: str) -> None:
    """The program against the same equations and their Jacobians as translated, without any cse."""
    model = CATALOGUE[name]()
    functions = lower(model)
    pairs = [(of, wrt) for of in functions.functions for wrt in ARGUMENTS if functions.size(wrt)]
    functions = functions.with_jacobians(*pairs)
    symbols = dict(zip(ARGUMENTS, functions.arguments(), strict=True))
    labels = [(label, symbols[key][i]) for key in ARGUMENTS for i, label in enumerate(functions.labels(key))]
    values = translate_equations(model.name, model.equations, dict(labels))
    kinds = [equation.kind for equation in model.equations]
    rng = numpy.random.default_rng(0)
    for of, wrt in [(of, "") for of in {kind: 0 for kind in kinds if kind != "definition"}] + pairs:
        plain = casadi.vertcat(*(v for v, kind in zip(values, kinds, strict=True) if kind == of))
        plain = casadi.densify(casadi.jacobian(plain, symbols[wrt])) if wrt else plain
        unshared = casadi.Function("unshared", list(symbols.values()), [plain])
        program = make_program(functions.casadi_function(f"{of}_{wrt}" if wrt else of))
        for _ in range(5):
            point = {key: rng.uniform(-1, 1, functions.size(key)) for key in "xdzu"}
            point["p"] = functions.vector("p") * rng.uniform(0.7, 1.3, functions.size("p"))
            with numpy.errstate(all="ignore"):
                got = interpret(program, point)[0]
            expected = unshared(*point.values()).full().reshape(got.shape)
            finite = numpy.isfinite(expected)
            assert (numpy.isfinite(got) == finite).all(), of
            scale = numpy.abs(expected[finite]).max(initial=1e-300)
            # Sharing reorders nothing; numpy's functions and libm's may differ by an ulp, and values of order 1 that do
            # (sines of a mode shape) may cancel each other.
            atol = max(1e-13 * scale, 1e-15)
            numpy.testing.assert_allclose(got[finite], expected[finite], rtol=1e-12, atol=atol)


def test_a11_a_pivot_that_vanishes_is_not_divided_by_symbolically() -> None:
    """M = [[1, 0], [0, sin^2 x + 1]] is regular at x = 0 though sin x is not; f / sin x is never formed."""
    functions = with_output(sympy.sin(x) * y / (1 + sympy.sin(x) ** 2) + sympy.sin(x) / x, x, y)
    for point in (0.0, 1e-200, -1e-8):
        value, gradient, hessian = derivatives(functions, [point, 2.0])
        assert value == pytest.approx(2.0 * point + 1.0, abs=1e-15)
        assert numpy.isfinite(gradient).all()
        assert numpy.isfinite(hessian).all()


PRINTS = """
import hashlib, sys
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.emit_c import emit_batch, emit_c, sensitivity_pairs
from mechsmith.codegen.emit_python import emit_python
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.catalogue import CATALOGUE
for name in ("emps_lugre_closed_loop",):
    functions = lower(CATALOGUE[name]())
    functions = functions.with_jacobians(*sensitivity_pairs(functions))
    discretisation = discretise(functions) if functions.states else None
    texts = [emit_python(functions), emit_batch(functions, discretisation=discretisation)]
    texts += emit_c(functions, discretisation=discretisation).values()
    print(hashlib.sha256("".join(texts).encode()).hexdigest())
"""


def test_a12_the_same_bytes_under_twenty_hash_seeds() -> None:
    printed = set()
    for seed in range(20):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        done = subprocess.run(
            [sys.executable, "-c", PRINTS], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1


def test_b7_values_around_singular_points(
    functions_of: Callable[..., FunctionSet], three_ways: Callable[..., dict[str, FunctionSet]]
) -> None:
    """sin(x)/x and its first two derivatives from 1e-300 to 1, against 40-digit values of its series and quotient."""
    functions = functions_of([sympy.sin(x) / x, sympy.sinc(x)], (x,)).with_jacobians(("output", "u"))
    for way in three_ways(functions).values():
        for point in (0.0, 1e-300, 1e-160, 1e-8, -1e-4, 0.01, 0.49999, 0.5, 0.50001, -1.0):
            with mpmath.workdps(40):
                p = mpmath.mpf(point)
                value = mpmath.sinc(p)
                slope = (mpmath.cos(p) - value) / p if abs(point) > 1e-9 else -p / 3
            for row in range(2):
                assert way.evaluate("output", u=[point])[row, 0] == pytest.approx(float(value), rel=4e-16)
                # Beyond 1/2 cos(x)/x - sin(x)/x^2 cancels to a third of its terms: a few ulps of 2.
                got = way.evaluate("output_u", u=[point])[row, 0]
                assert got == pytest.approx(float(slope), rel=1e-14, abs=1e-15)
