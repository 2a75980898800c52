"""Dimensions of units and expressions, and the refusal of equations that do not agree."""

from fractions import Fraction

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from mechsmith.symbolic.dimensions import check_dimensions, dimension_of
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.units import ANY, DIMENSIONLESS, Dimension, DimensionError, parse_unit

NAMES = ("mass", "length", "time", "force", "angle", "current")
UNITS = {"mass": "kg", "length": "m", "time": "s", "force": "N", "angle": "rad", "current": "A"}
SYMBOLS = {name: sympy.Symbol(name, real=True) for name in NAMES}
mass, length, time, force, angle, current = SYMBOLS.values()

powers = st.fractions(min_value=-3, max_value=3, max_denominator=3)
dimensions = st.dictionaries(st.sampled_from(["[mass]", "[length]", "[time]"]), powers).map(Dimension.of)
monomials = st.dictionaries(st.sampled_from(NAMES), st.integers(-3, 3), min_size=1)


def product(exponents: dict[str, int]) -> sympy.Expr:
    return sympy.Mul(*(SYMBOLS[name] ** power for name, power in sorted(exponents.items())))


def expected(exponents: dict[str, int]) -> Dimension:
    result = DIMENSIONLESS
    for name, power in exponents.items():
        result = result * parse_unit(UNITS[name]) ** power
    return result


# -- units ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "shown"),
    [
        ("", "1"),
        ("1", "1"),
        ("rad", "1"),
        ("N*m/rad", "kg*m^2/s^2"),
        ("1/s", "1/s"),
        ("V*s/m", "kg*m/(s^2*A)"),
        ("m^0.5", "m^(1/2)"),
        ("N*s**2/m**2", "kg/m"),
    ],
)
def test_units_are_shown_in_base_units(unit: str, shown: str) -> None:
    assert str(parse_unit(unit)) == shown


@pytest.mark.parametrize("unit", ["furlongs per fortnigt", "N*", "kg + m", "3*m"])
def test_a_text_that_is_no_unit_is_named(unit: str) -> None:
    with pytest.raises(DimensionError, match=r"unit '.*is not known"):
        parse_unit(unit)


@given(dimensions, dimensions, dimensions)
def test_dimensions_form_a_commutative_group(a: Dimension, b: Dimension, c: Dimension) -> None:
    assert a * b == b * a
    assert (a * b) * c == a * (b * c)
    assert a * DIMENSIONLESS == a
    assert a / a == DIMENSIONLESS
    assert (a**2) ** Fraction(1, 2) == a
    assert a.agrees(ANY)
    assert ANY.agrees(a)


# -- expressions ----------------------------------------------------------------------------------------


@given(monomials)
def test_a_product_has_the_product_of_the_dimensions(exponents: dict[str, int]) -> None:
    assert dimension_of(product(exponents), UNITS) == expected(exponents)


@given(monomials, st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_a_sum_of_like_terms_keeps_their_dimension(exponents: dict[str, int], factors: list[int]) -> None:
    terms = [factor * product(exponents) for factor in factors]
    total = sympy.Add(*terms, 0, evaluate=False)
    assert dimension_of(total, UNITS).agrees(expected(exponents))
    assert dimension_of(sympy.Max(*terms, evaluate=False), UNITS) == expected(exponents)


@given(monomials, monomials)
def test_a_sum_of_unlike_terms_is_refused(a: dict[str, int], b: dict[str, int]) -> None:
    total = sympy.Add(product(a), product(b), evaluate=False)
    if expected(a) == expected(b):
        assert dimension_of(total, UNITS) == expected(a)
    else:
        with pytest.raises(DimensionError) as error:
            dimension_of(total, UNITS)
        assert str(expected(a)) in str(error.value)
        assert str(expected(b)) in str(error.value)


@pytest.mark.parametrize(
    ("expression", "unit"),
    [
        (sympy.sqrt(length**2), "m"),
        (sympy.sqrt(force * length), "N^0.5*m^0.5"),
        (length ** sympy.Float(1 / 3), "m^(1/3)"),
        (sympy.Abs(force), "N"),
        (sympy.sign(force), ""),
        (sympy.Heaviside(force), ""),
        (sympy.atan2(length, 2 * length), ""),
        (sympy.sin(angle) * sympy.exp(-length / length), ""),
        (sympy.Piecewise((force, length > 0), (0, True)), "N"),
        (sympy.Piecewise((0, sympy.And(length > 0, time < 0 * time)), (force, True)), "N"),
        (sympy.Max(0, force), "N"),
        (sympy.Min(force, mass * length / time**2), "N"),
        (sympy.Integral(force, (length, 0, 2 * length)), "N*m"),
        (sympy.Derivative(sympy.Function("angle")(time), time), "1/s"),
        (sympy.Pow(length, sympy.Mul(-1, sympy.Rational(1, 2), evaluate=False), evaluate=False), "m^-0.5"),
        ((length / length) ** angle, ""),
    ],
)
def test_operations(expression: sympy.Expr, unit: str) -> None:
    assert dimension_of(expression, UNITS) == parse_unit(unit)


@pytest.mark.parametrize(
    "expression",
    [
        1 + length,
        sympy.sin(length),
        sympy.exp(force),
        sympy.log(mass),
        sympy.tanh(time),
        length**angle,
        angle**length,
        length**sympy.pi * 0 + length**sympy.pi + time,
        sympy.atan2(length, time),
        sympy.Max(length, time),
        sympy.Piecewise((length, time > 0), (time, True)),
        sympy.Piecewise((length, time > length), (2 * length, True)),
        sympy.Integral(force, (length, 0, time)),
        sympy.Mod(length, time),
    ],
)
def test_operations_that_are_refused(expression: sympy.Expr) -> None:
    with pytest.raises(DimensionError):
        dimension_of(expression, UNITS)


def test_literal_zero_and_infinity_fit_anything() -> None:
    for value in (sympy.Integer(0), sympy.Float(0.0), sympy.oo, sympy.Mul(0, length, evaluate=False)):
        assert dimension_of(value, UNITS) == ANY
    assert dimension_of(sympy.Add(0, length, evaluate=False), UNITS) == parse_unit("m")


def test_a_symbol_without_unit_is_named() -> None:
    with pytest.raises(DimensionError, match="'stray' has no unit"):
        dimension_of(force + sympy.Symbol("stray"), UNITS)


def test_the_odd_term_of_a_nested_sum_is_named() -> None:
    with pytest.raises(DimensionError, match=r"^in .* \+ time, time is in s, but length is in m\.$"):
        dimension_of(mass * (length + time + 3 * angle * length), UNITS)


# -- depth and size (trap A7) ---------------------------------------------------------------------------


def test_deep_chains_and_wide_sums() -> None:
    chain: sympy.Expr = angle
    for _ in range(100_000):
        chain = sympy.sin(chain, evaluate=False)
    assert dimension_of(chain, UNITS) == DIMENSIONLESS
    terms = [sympy.Mul(sympy.Integer(i + 2), length, evaluate=False) for i in range(20_000)]
    with pytest.raises(
        DimensionError, match=r"in Add\(\.\.\.\) of .* distinct subexpressions, time is in s, but"
    ):
        dimension_of(sympy.Add(*terms, time, evaluate=False), UNITS)


def test_shared_subexpressions_are_looked_at_once() -> None:
    # As a tree this has 2^200 leaves.
    doubled: sympy.Expr = length
    for _ in range(200):
        doubled = sympy.Add(doubled, doubled, evaluate=False)
    assert dimension_of(doubled, UNITS) == parse_unit("m")
    with pytest.raises(DimensionError, match=r"Add\(\.\.\.\) of 201 distinct subexpressions"):
        dimension_of(sympy.Add(doubled, time, evaluate=False), UNITS)


# -- models ---------------------------------------------------------------------------------------------


def friction(output: sympy.Expr, **changed: str) -> Model:
    units = {"a2": "N*m*s/rad", "a0": "N*m", "velocity": "rad/s", "force": "N*m", **changed}
    return Model(
        name="friction",
        inputs=(Quantity("velocity", units["velocity"]),),
        parameters=(Quantity("a0", units["a0"]), Quantity("a2", units["a2"])),
        outputs={Quantity("force", units["force"]): output},
    )


def test_published_equation_5_of_the_lugre_paper_is_refused() -> None:
    """It prints a0 v where a2 v is meant: the message names the term and both dimensions."""
    a0, a2, v = sympy.symbols("a0 a2 velocity", real=True)
    friction(a0 * sympy.sign(v) + a2 * v)
    with pytest.raises(DimensionError) as error:
        friction(a0 * sympy.sign(v) + a0 * v + a2 * v)
    message = str(error.value)
    assert "model 'friction': outputs[force] should be in N*m (kg*m^2/s^2)" in message
    assert "its term a0*velocity is in kg*m^2/s^3 (a0 in N*m, velocity in rad/s)" in message
    assert isinstance(error.value, ModelError)


@pytest.mark.parametrize("unit", ["deg/s", "rpm", "mm", "degC"])
def test_units_other_than_si_are_refused_inside_a_model(unit: str) -> None:
    a0, a2, v = sympy.symbols("a0 a2 velocity", real=True)
    with pytest.raises(DimensionError, match=r"'velocity' has the unit '.*Inside a model everything is SI"):
        friction(a0 * sympy.sign(v) + a2 * a0 / a0, velocity=unit, a2="N*m")


def test_an_unknown_unit_names_the_quantity() -> None:
    a0, a2, v = sympy.symbols("a0 a2 velocity", real=True)
    with pytest.raises(DimensionError, match="model 'friction': quantity 'a2': unit 'newtonz' is not known"):
        friction(a0 * sympy.sign(v) + a2 * v, a2="newtonz")


def oscillator(**changed: object) -> Model:
    position, velocity, m, k = sympy.symbols("position velocity m k", real=True)
    fields: dict[str, object] = {
        "derivatives": {position: velocity, velocity: -k * position},
        "mass": sympy.diag(1, m),
        **changed,
    }
    return Model(
        name="oscillator",
        states=(Quantity(position, "m"), Quantity(velocity, "m/s")),
        parameters=(Quantity(m, "kg"), Quantity(k, "N/m")),
        **fields,  # type: ignore[arg-type]
    )


def test_rows_of_the_mass_matrix_have_one_dimension() -> None:
    oscillator()
    m, k, position, velocity = sympy.symbols("m k position velocity", real=True)
    with pytest.raises(DimensionError, match=r"mass\[velocity, velocity\] times d\(velocity\)/dt is in"):
        oscillator(derivatives={position: velocity, velocity: -k * velocity})
    with pytest.raises(DimensionError, match=r"mass\[position, velocity\]"):
        oscillator(mass=sympy.Matrix([[1, m], [0, m]]))
    with pytest.raises(DimensionError, match=r"mass\[velocity, velocity\]"):
        # With f = 0 the entries of a row still have to agree with each other.
        oscillator(derivatives={position: velocity, velocity: 0}, mass=sympy.Matrix([[1, 0], [k, m]]))


def test_a_derivative_is_per_second() -> None:
    position = sympy.Symbol("position", real=True)
    with pytest.raises(
        DimensionError, match=r"derivatives\[position\] should be in m/s, but position is in m"
    ):
        Model(name="m", states=(Quantity(position, "m"),), derivatives={position: position})


def test_the_sample_time_is_a_time() -> None:
    held, period = sympy.symbols("held period", real=True)
    with pytest.raises(DimensionError, match=r"sample_time 'period' has the unit 'Hz'. It must be a time"):
        Model(
            name="m",
            discrete_states=(Quantity(held, "V"),),
            parameters=(Quantity(period, "Hz"),),
            updates={held: held},
            sample_time="period",
        )


def test_constraints_and_crossings_are_consistent_in_themselves() -> None:
    x, a, t = sympy.symbols("x a t", real=True)
    fields = {
        "name": "m",
        "unknowns": (Quantity(x, "m"),),
        "parameters": (Quantity(a, "m"), Quantity(t, "s")),
    }
    Model(**fields, constraints={x: (x - a) / t}, crossings=(x - a,))  # type: ignore[arg-type]
    with pytest.raises(DimensionError, match=r"constraints\[x\]: in"):
        Model(**fields, constraints={x: x - t + a})  # type: ignore[arg-type]
    with pytest.raises(DimensionError, match=r"crossings\[crossing_0\]: in"):
        Model(**fields, constraints={x: (x - a) / t}, crossings=(x - t,))  # type: ignore[arg-type]


def test_an_integral_is_the_input_times_a_second() -> None:
    velocity = sympy.Symbol("velocity", real=True)
    fields = {
        "name": "m",
        "inputs": (Quantity(velocity, "m/s"),),
        "outputs": {Quantity("speed", "m/s"): sympy.Abs(velocity)},
    }
    model = Model(**fields, integrals={"velocity": Quantity("position", "m")})  # type: ignore[arg-type]
    check_dimensions(model)
    with pytest.raises(DimensionError, match=r"integrals\[velocity\], 'position', is in kg"):
        Model(**fields, integrals={"velocity": Quantity("position", "kg")})  # type: ignore[arg-type]
