"""Verdicts: what is proved, supported and refuted, and that neither depth, size nor floats mislead."""

import dataclasses
import math
import pickle
from collections.abc import Callable

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from mechsmith.symbolic import prove
from mechsmith.symbolic.compose import compose
from mechsmith.symbolic.evaluate import Evaluator
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.verify import (
    Expansion,
    Identity,
    Limit,
    Scope,
    Statement,
    judge,
    verify,
    verify_identity,
    verify_table,
)

x, y, p, small = sympy.symbols("x y p small", real=True)


def make_spring() -> Model:
    """Return F = k s with the energy k s^2 / 2."""
    stretch, stiffness = sympy.symbols("stretch stiffness", real=True)
    return Model(
        name="spring",
        inputs=(Quantity(stretch, "m"),),
        parameters=(Quantity(stiffness, "N/m", nominal=100.0, lower=1.0, upper=1e4),),
        outputs={
            Quantity("energy", "J"): stiffness * stretch**2 / 2,
            Quantity("force", "N"): stiffness * stretch,
        },
        identities=(
            Identity("gradient", "identity", gradient),
            Identity("gradient without the half", "identity", wrong_gradient, "refuted"),
        ),
    )


def gradient(scope: Scope) -> Statement:
    return Statement(sympy.diff(scope.expression("energy"), scope["stretch"]), scope["force"])


def wrong_gradient(scope: Scope) -> Statement:
    return Statement(2 * sympy.diff(scope.expression("energy"), scope["stretch"]), scope["force"])


SPRING = make_spring()
# Dimensionless, to try statements in x, y and p > 0 on.
PLAIN = Model(
    name="plain",
    inputs=(Quantity(x, ""), Quantity(y, "")),
    parameters=(Quantity(p, "", nominal=2.0, lower=0.0),),
    outputs={Quantity("sum", ""): x + y + p},
)


# -- verdicts -------------------------------------------------------------------------------------------


def test_identities_of_a_model() -> None:
    proved, refuted = verify(SPRING)
    assert (proved.status, proved.method, proved.counterexample) == ("proved", "symbolic", None)
    assert (refuted.status, refuted.method) == ("refuted", "numeric")
    example = refuted.counterexample
    assert example is not None
    assert example.left == pytest.approx(2 * example.values["stiffness"] * example.values["stretch"])
    assert example.right == pytest.approx(example.values["stiffness"] * example.values["stretch"])
    assert proved.as_expected
    assert refuted.as_expected


def test_one_identity_and_the_table() -> None:
    (verdict,) = verify(SPRING, SPRING.identities[1])
    (row,) = verify_table([verdict])
    assert (row.name, row.status, row.expected, row.as_expected) == (
        "gradient without the half",
        "refuted",
        "refuted",
        True,
    )
    assert "stiffness = " in row.detail
    assert row.seconds > 0


def test_a_wrong_expectation_is_told() -> None:
    expected_refuted = dataclasses.replace(SPRING.identities[0], expected="refuted")
    assert not verify_identity(SPRING, expected_refuted).as_expected
    # A proof is better than the support that was expected; support where a proof was expected is not.
    supported = dataclasses.replace(SPRING.identities[0], expected="supported")
    verdict = verify_identity(SPRING, supported)
    assert verdict.as_expected
    assert not dataclasses.replace(verdict, identity=SPRING.identities[0], status="supported").as_expected


def test_the_same_seed_gives_the_same_verdicts() -> None:
    assert verify(SPRING, seed=3) == verify(SPRING, seed=3)
    assert verify(SPRING, seed=3)[1].counterexample != verify(SPRING, seed=4)[1].counterexample


def test_verdicts_pickle() -> None:
    assert pickle.loads(pickle.dumps(verify(SPRING))) == verify(SPRING)


def test_units_refute_and_show_values_too() -> None:
    stretch, stiffness = SPRING["stretch"], SPRING["stiffness"]
    finding = judge(SPRING, Statement(SPRING["force"], stiffness * stretch**2))
    assert (finding.status, finding.method) == ("refuted", "units")
    assert "kg*m/s^2" in finding.detail
    assert "kg*m^2/s^2" in finding.detail
    assert finding.counterexample is not None


def test_units_refute_what_is_equal_in_value() -> None:
    length = sympy.Symbol("length", real=True)
    statement = Statement(x * length, x * length, units={"length": "m"})
    assert judge(PLAIN, statement).status == "proved"
    both = Statement(sympy.exp(length) / sympy.exp(length / 2), sympy.exp(length / 2), units={"length": "m"})
    assert judge(PLAIN, both).method == "units"


def test_shape_refutes() -> None:
    finding = judge(PLAIN, Statement(sympy.Matrix([x, y]), sympy.Matrix([[x, y]])))
    assert (finding.status, finding.method) == ("refuted", "shape")
    assert "(2, 1)" in finding.detail
    assert "(1, 2)" in finding.detail


def test_matrices_are_compared_element_by_element() -> None:
    turn = sympy.Matrix([[sympy.cos(x), -sympy.sin(x)], [sympy.sin(x), sympy.cos(x)]])
    assert judge(PLAIN, Statement(turn * turn.T, sympy.eye(2))).status == "proved"
    finding = judge(PLAIN, Statement(turn * turn, sympy.eye(2)))
    assert finding.status == "refuted"
    assert finding.counterexample is not None
    assert finding.counterexample.left != finding.counterexample.right


def test_what_the_model_lacks_is_told() -> None:
    lost = dataclasses.replace(SPRING.identities[0], statement=_speaks_of_damping)
    verdict = verify_identity(SPRING, lost)
    assert (verdict.status, verdict.method) == ("refuted", "statement")
    assert "'damping'" in verdict.detail
    foreign = dataclasses.replace(SPRING.identities[0], statement=_speaks_of_x)
    with pytest.raises(ModelError, match=r"identity 'gradient'.*'x'.*Statement\.units"):
        verify_identity(SPRING, foreign)


def _speaks_of_damping(scope: Scope) -> Statement:
    return Statement(scope["damping"], scope["damping"])


def _speaks_of_x(scope: Scope) -> Statement:
    return Statement(scope["force"], x * scope["force"])


def test_a_statement_that_is_nowhere_real_is_not_supported() -> None:
    finding = judge(PLAIN, Statement(sympy.sqrt(-1 - x**2) + y, sympy.sqrt(-1 - x**2) + y + 1))
    assert finding.status == "refuted"
    assert "Only 0 of" in finding.detail


# -- limits, expansions, constants ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "limit", "status"),
    [
        (sympy.sin(p) / p, 1, Limit(p), "proved"),
        (sympy.sin(p) / p, 0, Limit(p), "refuted"),
        (x * sympy.tanh(p), x, Limit(p, sympy.oo), "proved"),
        (x * sympy.tanh(p), -x, Limit(p, sympy.oo), "refuted"),
        (sympy.sign(p - 3), -1, Limit(p, sympy.Integer(3), "-"), "proved"),
        (sympy.sign(p - 3), 1, Limit(p, sympy.Integer(3), "-"), "refuted"),
        (sympy.sign(p - 3), 1, Limit(p, sympy.Integer(3), "+"), "proved"),
        # The limit is true and beyond SymPy.
        (sympy.erf(x / p) * sympy.Max(y, p), sympy.sign(x) * sympy.Max(y, 0), Limit(p), "supported"),
    ],
)
def test_limits(left: sympy.Expr, right: object, limit: Limit, status: str) -> None:
    statement = Statement(left, sympy.sympify(right), limit=limit)
    found = judge(PLAIN, statement).status
    assert found == status or (status, found) == ("supported", "proved")


@pytest.mark.parametrize(
    ("left", "right", "order", "status"),
    [
        (sympy.exp(small * x), 1 + small * x, 1, "proved"),
        (sympy.exp(small * x), 1 + small * x, 2, "refuted"),
        (sympy.exp(small * x), 1 - small * x, 1, "refuted"),
        (sympy.exp(small * x), 1 + small * x, 0, "proved"),
        (sympy.Abs(small * x), small * sympy.sign(x) * x, 1, "proved"),
        (sympy.sqrt(small), 0, 0, "refuted"),
        (small ** sympy.Rational(3, 2), 0, 1, "refuted"),
        (small ** sympy.Rational(5, 2), 0, 1, "proved"),
        (small * sympy.log(small), 0, 0, "refuted"),
        (sympy.exp(small * x), sum((small * x) ** k / sympy.factorial(k) for k in range(7)), 6, "proved"),
        (sympy.exp(small * x), sum((small * x) ** k / sympy.factorial(k) for k in range(7)), 7, "refuted"),
        # True, and SymPy is not asked: Max has no derivative at zero that it knows of.
        (sympy.Max(small * y, small**2), small * sympy.Max(y, small), 3, "supported"),
    ],
)
def test_expansions(left: sympy.Expr, right: object, order: int, status: str) -> None:
    statement = Statement(left, sympy.sympify(right), units={"small": ""}, expansion=Expansion(small, order))
    assert judge(PLAIN, statement).status == status


def test_an_order_that_is_wrong_is_measured() -> None:
    statement = Statement(sympy.cos(small), 1 - small, units={"small": ""}, expansion=Expansion(small, 1))
    finding = judge(PLAIN, statement)
    assert "order 1.00 in small, stated is 2" in finding.detail


def test_constants_that_exist_and_that_do_not() -> None:
    constant = sympy.Symbol("constant", real=True)
    units = {"constant": ""}
    of_x = {constant: (x,)}
    squared = Statement((x + p) ** 2, x**2 + 2 * x * p + constant, units, constants=of_x)
    assert judge(PLAIN, squared).status == "proved"
    assert judge(PLAIN, dataclasses.replace(squared, right=x**2 + x * p + constant)).status == "refuted"
    scaled = Statement(sympy.exp(x + p), constant * sympy.exp(x), units, constants=of_x)
    assert judge(PLAIN, scaled).status == "proved"
    finding = judge(PLAIN, dataclasses.replace(scaled, constants={constant: (x, p)}))
    assert finding.status == "refuted"
    assert finding.counterexample is not None
    assert "p_elsewhere" in finding.counterexample.values
    with pytest.raises(ModelError, match="must stand linearly"):
        judge(PLAIN, dataclasses.replace(scaled, right=constant**2 * sympy.exp(x)))


# -- composed models --------------------------------------------------------------------------------------


def test_identities_follow_their_part() -> None:
    pair = compose(
        "pair",
        {"left": SPRING, "right": SPRING},
        {"right.stretch": "left.stretch"},
        share={"stiffness": ("left.stiffness", "right.stiffness")},
    )
    verdicts = verify(pair)
    assert [verdict.status for verdict in verdicts] == ["proved", "refuted"] * 2
    assert [row.name for row in verify_table(verdicts)][2:] == [
        "right gradient",
        "right gradient without the half",
    ]
    twice = compose("twice", {"pair": pair, "other": SPRING}, {"other.stretch": "pair.left_stretch"})
    assert [verdict.status for verdict in verify(twice)] == ["proved", "refuted"] * 3


def test_aliases_of_another_part_are_no_ones_own() -> None:
    identity = SPRING.identities[0].prefixed("a").prefixed("b", aliases={"stretch": "c", "a_force": "d"})
    scope = Scope(SPRING, identity.prefix, identity.aliases)
    assert (scope.name("stretch"), scope.name("force"), scope.name("energy")) == (
        "b_a_stretch",
        "d",
        "b_a_energy",
    )


# -- floats, depth, size ----------------------------------------------------------------------------------


def test_floats_in_a_mass_matrix_are_taken_as_they_are() -> None:
    mass = sympy.Matrix([[0.5 * p, 1.0 * p * sympy.cos(x)], [1.0 * p * sympy.cos(x), 2.0]])
    right = sympy.Matrix([[p / 2, p * sympy.cos(x)], [p * sympy.cos(x), 2]])
    assert judge(PLAIN, Statement(mass, right)).status == "proved"
    assert judge(PLAIN, Statement(mass, right + sympy.Matrix([[0, 0], [0, 1e-9]]))).status == "refuted"


def test_rounding_of_floats_is_neither_proof_nor_refutation() -> None:
    third = sympy.Float(1 / 3)
    finding = judge(PLAIN, Statement(third * p, p / 3))
    assert finding.status == "supported"
    assert judge(PLAIN, Statement(third * p, p / 3 * (1 + sympy.Float(1e-11)))).status == "refuted"


def deep(depth: int) -> sympy.Expr:
    expression: sympy.Expr = x
    for _ in range(depth):
        expression = sympy.sin(expression, evaluate=False)
    return expression


def test_20000_nested_functions() -> None:
    assert judge(PLAIN, Statement(deep(20_000), deep(20_000)), points=1).status == "supported"
    assert judge(PLAIN, Statement(deep(20_000), deep(19_999)), points=1).status == "refuted"


def test_a_sum_of_100000_terms() -> None:
    terms = sympy.symbols("k:100000", real=True)
    units = {f"k{i}": "" for i in range(len(terms))}
    total, reverse = (sympy.Add(*some, evaluate=False) for some in (terms, terms[::-1]))
    assert judge(PLAIN, Statement(total, reverse, units), points=1).status == "supported"


def test_a_shared_graph_is_no_tree() -> None:
    # 2^60 leaves as a tree.
    def doubled() -> sympy.Expr:
        expression: sympy.Expr = x
        for _ in range(60):
            expression = sympy.Add(sympy.sin(expression), sympy.cos(expression), evaluate=False)
        return expression

    assert judge(PLAIN, Statement(doubled(), doubled())).status in ("proved", "supported")


def test_what_would_take_too_long_to_prove_is_supported() -> None:
    # Multiplied out it would have the number of terms of (a + ... + h + i)^12, some 10^5.
    letters = sympy.symbols("a b c d e f g h", real=True)
    units = {letter.name: "" for letter in letters}
    product = sympy.Mul(*(sum(letters) + i for i in range(1, 13)))
    left = sympy.Add(product * sympy.sin(x) ** 2, product * sympy.cos(x) ** 2, evaluate=False)
    assert not prove.is_zero(left - sympy.expand(sum(letters) ** 2))
    assert judge(PLAIN, Statement(left, product, units)).status in ("proved", "supported")


# -- symbolic means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "zero",
    [
        sympy.sin(x) ** 2 + sympy.cos(x) ** 2 - 1,
        sympy.sin(2 * x + y)
        - 2 * sympy.sin(x) * sympy.cos(x) * sympy.cos(y)
        - sympy.cos(2 * x) * sympy.sin(y),
        sympy.exp(x + 2 * y) - sympy.exp(x) * sympy.exp(y) ** 2,
        sympy.exp(x / 2) ** 2 - sympy.exp(x),
        sympy.Abs(x) * sympy.sign(x) - x,
        sympy.Abs(x) ** 2 - x**2,
        sympy.Max(x, 0) - sympy.Max(-x, 0) - x,
        sympy.Piecewise((x, x > 0), (-x, True)) - sympy.Abs(x),
        sympy.Heaviside(x) - (1 + sympy.sign(x)) / 2,
        1 / (sympy.sqrt(1 + x**2) + x) - (sympy.sqrt(1 + x**2) - x),
        sympy.sqrt(1 + sympy.sqrt(1 + x**2)) ** 4 - 2 - x**2 - 2 * sympy.sqrt(1 + x**2),
        sympy.exp(x - sympy.log(1 + y**2)) * (1 + y**2) - sympy.exp(x),
        x**p * x**p - (x**p) ** 2,
    ],
)
def test_zero_is_proved(zero: sympy.Expr) -> None:
    assert prove.is_zero(zero, {"p"})


def expressions() -> st.SearchStrategy[sympy.Expr]:
    leaf = st.sampled_from([x, y, p, sympy.Integer(1), sympy.Integer(-2), sympy.Rational(1, 3)])
    functions: list[Callable[[sympy.Expr], sympy.Expr]] = [
        sympy.sin,
        sympy.cos,
        lambda e: sympy.exp(e / 3),
        sympy.Abs,
        sympy.sign,
        lambda e: sympy.sqrt(1 + e**2),
        lambda e: 1 / (1 + e**2),
        lambda e: sympy.Max(e, 0),
    ]
    return st.recursive(
        leaf,
        lambda children: st.one_of(
            st.builds(sympy.Add, children, children),
            st.builds(sympy.Mul, children, children),
            st.builds(lambda function, child: function(child), st.sampled_from(functions), children),
        ),
        max_leaves=6,
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(expressions(), expressions())
def test_nothing_but_zero_is_proved_to_be_zero(one: sympy.Expr, other: sympy.Expr) -> None:
    difference = one - other
    if not prove.is_zero(difference, {"p"}):
        return
    for point in ({"x": 0.7, "y": -1.3, "p": 0.4}, {"x": -2.1, "y": 0.2, "p": 3.0}):
        (value,) = Evaluator([difference])(point)
        # 50 digits, less what cancels among a few terms of moderate size.
        assert abs(value) < 1e-40


@settings(max_examples=100, deadline=None, derandomize=True)
@given(expressions(), expressions(), expressions())
def test_the_distributive_law_is_never_refuted(a: sympy.Expr, b: sympy.Expr, c: sympy.Expr) -> None:
    left = sympy.Mul(a, sympy.Add(b, c, evaluate=False), evaluate=False)
    assert judge(PLAIN, Statement(left, a * b + a * c), points=5).status != "refuted"


# -- evaluation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (sympy.sin(x) + sympy.cos(x) * sympy.tan(x), lambda v: 2 * mpmath.sin(v)),
        (sympy.exp(x) * sympy.log(x), lambda v: mpmath.exp(v) * mpmath.log(v)),
        (sympy.atan2(x, -2), lambda v: mpmath.atan2(v, -2)),
        (sympy.asin(x) + sympy.acos(x) + sympy.atan(x), lambda v: mpmath.pi / 2 + mpmath.atan(v)),
        (sympy.sinh(x) - sympy.cosh(x) + sympy.tanh(x), lambda v: mpmath.tanh(v) - mpmath.exp(-v)),
        (sympy.floor(10 * x) + sympy.ceiling(10 * x), lambda v: mpmath.mpf(15)),
        (sympy.Mod(10 * x, 2), lambda v: 10 * v - 6),
        (sympy.Max(x, 0.5, -x) + sympy.Min(x, 0.5, -x), lambda v: mpmath.mpf(0)),
        (sympy.sign(-x) + sympy.Abs(-x), lambda v: v - 1),
        (sympy.Heaviside(x) + sympy.Heaviside(-x), lambda v: mpmath.mpf(1)),
        (sympy.Heaviside(4 * x - 3) + sympy.Heaviside(4 * x - 3, 1), lambda v: mpmath.mpf(1.5)),
        (sympy.sinc(x), lambda v: mpmath.sin(v) / v),
        (sympy.erf(x), mpmath.erf),
        (sympy.besselj(0, x), lambda v: mpmath.besselj(0, v)),
        (sympy.Piecewise((1, x < 0), (2, sympy.And(x > 0, x < 0.5)), (3, True)), lambda v: mpmath.mpf(3)),
        (sympy.Piecewise((1, sympy.Or(x < 0, x > 0.7)), (3, True)), lambda v: mpmath.mpf(1)),
        (sympy.Piecewise((1, sympy.Not(sympy.Eq(x, 0.75))), (3, True)), lambda v: mpmath.mpf(3)),
        (sympy.Piecewise((sympy.log(x - 1) / (4 * x - 3), x > 1), (0, True)), lambda v: mpmath.mpf(0)),
        (
            sympy.pi * sympy.E * sympy.GoldenRatio * sympy.EulerGamma,
            lambda v: mpmath.pi * mpmath.e * mpmath.phi * mpmath.euler,
        ),
        (x ** sympy.Rational(1, 3) + x**-2, lambda v: mpmath.cbrt(v) + v**-2),
        (sympy.Float("1e-300") * x, lambda v: v * mpmath.mpf(1e-300)),
    ],
)
def test_values_in_fifty_digits(expression: sympy.Expr, expected: Callable[..., object]) -> None:
    (value,) = Evaluator([expression])({"x": 0.75})
    with mpmath.workdps(50):
        reference = mpmath.mpf(expected(mpmath.mpf(0.75)))
        # Two units in the 50th digit, for functions that cancel among some terms.
        assert abs(mpmath.mpf(value) - reference) <= mpmath.mpf(10) ** -48 * max(1, abs(reference)) or (
            # A double of SymPy's is what it is: 15 digits in the expression itself.
            expression.has(sympy.Float) and abs(mpmath.mpf(value) - reference) <= 1e-15 * abs(reference)
        )


@pytest.mark.parametrize(
    "undefined",
    [
        1 / (x - 1),
        sympy.log(x - 1),
        sympy.sqrt(x - 2),
        sympy.acos(x + 1),
        sympy.Max(sympy.sqrt(-x), y),
        sympy.exp(sympy.exp(sympy.exp(sympy.exp(10 * x)))),
    ],
)
def test_what_is_no_real_number_is_nan(undefined: sympy.Expr) -> None:
    (value,) = Evaluator([undefined])({"x": 1, "y": 0})
    assert math.isnan(value)


def test_a_condition_that_is_not_known_chooses_nothing() -> None:
    (value,) = Evaluator([sympy.Piecewise((1, sympy.sqrt(x - 1) > y), (2, True))])({"x": 0, "y": 0})
    assert math.isnan(value)


def test_what_can_not_be_evaluated_is_told() -> None:
    with pytest.raises(ModelError, match="Integral"):
        Evaluator([sympy.Integral(sympy.sin(x**2), (x, 0, y))])
    with pytest.raises(ModelError, match="no value for 'y'"):
        Evaluator([x + y])({"x": 1})
