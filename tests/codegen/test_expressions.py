"""Every operator that `lower` knows: SymPy in 30 digits = CasADi = generated Python = generated C."""

from collections.abc import Callable

import numpy
import pytest
import sympy
from sympy import And, Heaviside, Max, Min, Mod, Not, Or, Piecewise, Rational, Xor, pi, sqrt

from mechsmith.codegen import lower as lowering
from mechsmith.codegen.functions import FunctionSet

x, y = sympy.symbols("x y", real=True)
ITE = sympy.ITE(x > 0, y > x, y < x)

CASES: dict[str, sympy.Expr] = {
    **{kind.__name__: kind(x) for kind in lowering.UNARY if kind is not sympy.Not},
    **{kind.__name__: kind(x) for kind in lowering.RECIPROCAL},
    "add": x + y,
    "sub": x - y,
    "sub_both": -x - y - 3,
    "sum_of_many": x + 2 * y - x * y / 3 - 7 + x**2,
    "mul": x * y,
    "neg_mul": -x * y,
    "div": x / y,
    "div_many": x / (y * (2 + x**2) ** 3),
    "minus_one_over": -1 / x,
    "three_over": 3 / x,
    "half": Rational(1, 2) * x,
    "rational": Rational(1, 3) + x,
    "constants": pi * x + sympy.E * y + sympy.EulerGamma,
    "float": sympy.Float(0.1) * x + sympy.Float("1e-25") + sympy.Float("1e300") * y,
    "square": x**2,
    "cube": x**3,
    "power_7": x**7,
    "power_64": x**64,
    "power_65": x**65,
    "power_minus_2": x**-2,
    "power_minus_5": x**-5,
    "root": sqrt(x),
    "root_inverse": 1 / sqrt(x),
    "power_three_halves": x ** Rational(3, 2),
    "power_minus_three_halves": x ** Rational(-3, 2),
    "power_third": x ** Rational(1, 3),
    "power_float": x**2.5,
    "power_pi": x**pi,
    "power_negative_number": x ** (1 - sqrt(3)),
    "power_free": x**y,
    "power_free_abs": sympy.Abs(x) ** y,
    "two_power_free": 2**x,
    "product_with_free_inverse": x * y ** (-x),
    "exp_sum": sympy.exp(x) * sympy.exp(-(y**2)),
    "max": Max(x, y),
    "max_many": Max(x, y, 1, x * y),
    "min": Min(x, y),
    "min_many": Min(x, y, -1, x + y),
    "atan2": sympy.atan2(y, x),
    "mod": Mod(x, y),
    "mod_number": Mod(x, 3),
    "heaviside": Heaviside(x),
    "heaviside_0": Heaviside(x - 1, 0),
    "heaviside_1": Heaviside(x, 1),
    "heaviside_free": Heaviside(x, y),
    "sinc": sympy.sinc(x),
    "sinc_small": sympy.sinc(x / 1000),
    "piecewise": Piecewise((x, x < 0), (2 * x, x < 1), (3 * x, True)),
    "piecewise_open": Piecewise((x, x < 0), (y, x > 1)),
    "piecewise_nested": Piecewise((Piecewise((x, y > 0), (sqrt(-y), True)), x > 0), (sympy.log(1 - x), True)),
    "less": Piecewise((1, x < y), (0, True)),
    "less_equal": Piecewise((1, x <= y), (0, True)),
    "greater": Piecewise((1, x > y), (0, True)),
    "greater_equal": Piecewise((1, x >= y), (0, True)),
    "equal": Piecewise((1, sympy.Eq(x, y)), (0, True)),
    "unequal": Piecewise((1, sympy.Ne(x, y)), (0, True)),
    "and": Piecewise((1, And(x > 0, y > 0, x < y)), (0, True)),
    "or": Piecewise((1, Or(x > 1, y > 1, sympy.Eq(x, y))), (0, True)),
    "not": Piecewise((1, Not(And(x > 0, y > 0))), (0, True)),
    "xor": Piecewise((1, Xor(x > 0, y > 0, x > y)), (0, True)),
    "ite": Piecewise((1, ITE), (0, True)),
    "condition_true": Piecewise((x, sympy.true), (y, x > 0)),
    "unevaluated": sympy.UnevaluatedExpr(x + 1) * y,
    "sine_ratio": sympy.sin(x) / x,
    "sine_ratio_in_product": -3 * y * sympy.sin(x) / (7 * x),
    "sine_ratio_of_sum": sympy.sin(x + y) / (x + y),
}
# Where the expression itself is 0/0 and its limit is what generated code must give.
LIMITS: dict[str, Callable[[float, float], float]] = {
    "sine_ratio": lambda a, b: 1.0,
    "sine_ratio_in_product": lambda a, b: -3 * b / 7,
    "sine_ratio_of_sum": lambda a, b: 1.0,
}
RANDOM = numpy.random.default_rng(0).uniform(-2.5, 2.5, (12, 2))
SPECIAL = [(a, b) for a in (0.0, 1.0, -1.0, 0.5, -0.75, 3.0, 1e-9) for b in (0.0, 1.0, -1.0, 3.0, -2.0)]
POINTS = numpy.vstack([numpy.array(SPECIAL), RANDOM, [(1e-5, 2.0), (-40.0, -3.0), (30.0, 0.25)]])


@pytest.fixture(scope="module")
def functions(functions_of: Callable[..., FunctionSet]) -> FunctionSet:
    return functions_of(list(CASES.values()), (x, y)).with_jacobians(("output", "u"))


@pytest.fixture(scope="module")
def ways(
    functions: FunctionSet, three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]
) -> dict[str, FunctionSet]:
    return three_ways(functions)


@pytest.fixture(scope="module")
def values(ways: dict[str, FunctionSet]) -> dict[str, numpy.ndarray]:
    return {name: way.batch("output", u=POINTS)[:, :, 0] for name, way in ways.items()}


@pytest.fixture(scope="module")
def slopes(ways: dict[str, FunctionSet]) -> dict[str, numpy.ndarray]:
    return {name: way.batch("output_u", u=POINTS) for name, way in ways.items()}


def number(value: float) -> sympy.Number:
    """Return a double as an exact number; a whole one as an integer, so that borders are met exactly."""
    # Rationals with large denominators would be factorised under roots: 60 digits hold what matters of a double.
    return sympy.Integer(int(value)) if value.is_integer() else sympy.Float(value, 60)


def exact(name: str, a: float, b: float) -> float:
    """Return the value in 30 digits, NaN where there is no finite real one."""
    if name == "mod" and b == 0.0:
        return float("nan")  # SymPy raises ZeroDivisionError
    value = CASES[name].subs({x: number(a), y: number(b)}, simultaneous=True).doit()
    if value is sympy.nan and name in LIMITS:
        return LIMITS[name](a, b)
    if value in (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        return float("nan")
    value = complex(sympy.N(value, 30))
    # What N leaves of an imaginary part that is zero is far below a double's rounding.
    return value.real if abs(value.imag) <= 1e-25 * abs(value) else float("nan")


@pytest.mark.parametrize("case", CASES)
def test_four_ways_agree(
    case: str, values: dict[str, numpy.ndarray], slopes: dict[str, numpy.ndarray]
) -> None:
    column = list(CASES).index(case)
    for row, (a, b) in enumerate(POINTS):
        if case == "atan2" and a == b == 0.0:
            continue  # undefined in SymPy, zero by convention in C
        expected = exact(case, a, b)
        # Each case is a few operations deep, and an operation errs by an ulp or less, which is as if its argument
        # or its result were off by one: eight of them over the value and over its change with each argument.
        slope = numpy.nan_to_num(slopes["casadi"][row, column], posinf=0.0, neginf=0.0)
        terms = abs(a) + abs(b) if case in ("add", "sub", "sub_both", "sum_of_many", "min_many") else 0.0
        scale = abs(expected) + abs(a * slope[0]) + abs(b * slope[1]) + terms
        for way, array in values.items():
            got = array[row, column]
            if numpy.isnan(expected):
                assert not numpy.isfinite(got), f"{way}: {case}({a}, {b}) = {got}, SymPy has no finite value"
            else:
                assert abs(got - expected) <= 8 * 2.0**-52 * scale + 1e-300, f"{way}: {case}({a}, {b})"


@pytest.mark.parametrize("case", CASES)
def test_derivatives_agree(case: str, slopes: dict[str, numpy.ndarray]) -> None:
    column = list(CASES).index(case)
    reference = slopes["casadi"][:, column]
    finite = numpy.isfinite(reference)
    for way in ("python", "c"):
        got = slopes[way][:, column]
        # The same operations in the same order; libm may differ between them by an ulp. At a singular point the
        # sign of an infinity hangs on that of a zero.
        numpy.testing.assert_allclose(got[finite], reference[finite], rtol=1e-14, atol=1e-300)
        assert not numpy.isfinite(got[~finite]).any(), way


def test_every_operator_is_in_the_list() -> None:
    used = {type(node) for case in CASES.values() for node in sympy.preorder_traversal(case)}
    known = set(lowering.UNARY) | set(lowering.FOLD) | set(lowering.RECIPROCAL) | set(lowering._SPECIAL)
    assert known <= used, f"not covered: {known - used}"
