"""What a problem makes of names, records, bounds, constraints; residuals and their exact Jacobians."""

import math
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechsmith.identification import (
    Constraint,
    ConstraintError,
    Decimation,
    EquationError,
    Identity,
    LeastSquares,
    Log,
    OutputError,
    Prior,
    Problem,
    ProblemError,
    Record,
    identify,
    validate,
)
from mechsmith.identification.constraints import parse_constraint
from mechsmith.identification.norms import norm, triangular_factor
from mechsmith.identification.scaling import LOWEST, make_space


def difference(problem: Problem, vector: np.ndarray) -> np.ndarray:
    """Return the Jacobian by central differences."""
    columns = []
    for j, value in enumerate(vector):
        # the cube root of the rounding unit balances rounding and truncation
        step = 6e-6 * max(abs(value), 1e-2)
        ahead, behind = vector.copy(), vector.copy()
        ahead[j] += step
        behind[j] -= step
        columns.append((problem.residual_vector(ahead) - problem.residual_vector(behind)) / (2.0 * step))
    return np.column_stack(columns)


def assert_exact(problem: Problem, vector: np.ndarray, relative: float = 1e-8) -> None:
    # central differences with that step are good to about 1e-10 of the curvature's scale
    exact = problem.jacobian(vector)
    numerical = difference(problem, vector)
    scale = np.abs(numerical).max(axis=0)
    assert np.all(scale > 0.0)
    assert np.all(np.abs(exact - numerical) <= relative * scale)


# -- names ----------------------------------------------------------------------------------------------


def test_free_names_follow_the_model_and_records(systems: Any) -> None:
    records = (systems.line_record(offset=1.0), systems.line_record(offset=2.0, seed=1))
    problem = Problem(
        systems.line, records, ("offset", "mass"), per_record=("offset",), fixed={"viscous": 7.0}
    )
    assert problem.names == ("mass", "offset[0]", "offset[1]")
    assert problem.units == ("kg", "N", "N")
    vector = np.array([12.0, 1.0, 2.0])
    assert problem.arguments(vector, 1).p.tolist() == [12.0, 7.0, 2.0]
    assert problem.all_values(vector) == {"mass": 12.0, "viscous": 7.0, "offset[0]": 1.0, "offset[1]": 2.0}
    # the records were made with these values, so the residual vanishes but for rounding of forces of about 100 N
    assert np.abs(problem.data_residual(vector)).max() < 1e-12
    assert_exact(problem, vector + 0.5)


def test_one_record_of_a_per_record_parameter_can_be_free_alone(systems: Any) -> None:
    records = (systems.line_record(), systems.line_record(seed=1))
    problem = Problem(
        systems.line, records, ("offset[1]",), per_record=("offset",), fixed={"offset[0]": -1.5, "mass": 12.0}
    )
    assert problem.names == ("offset[1]",)
    assert problem.arguments(np.array([3.0]), 0).p[2] == -1.5
    assert problem.arguments(np.array([3.0]), 1).p.tolist() == [12.0, 5.0, 3.0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"free": ("mas",)}, ["free", "'mas'", "mass"]),
        ({"free": "mass"}, ["free", "tuple"]),
        ({"fixed": {"mass": 1.0}}, ["'mass'", "both free and fixed"]),
        ({"fixed": {"stray": 1.0}}, ["fixed", "'stray'"]),
        ({"bounds": {"viscous": (0.0, 1.0)}}, ["bounds", "'viscous'", "not free"]),
        ({"bounds": {"mass": (2.0, 2.0)}}, ["mass", "fix it"]),
        ({"bounds": {"mass": 2.0}}, ["mass", "(lower, upper)"]),
        ({"records": ()}, ["no records"]),
        ({"residual": EquationError(outputs={"torque": "force"})}, ["'torque'", "force"]),
        ({"residual": EquationError(outputs={"force": "current"})}, ["'current'", "acceleration"]),
        ({"residual": EquationError(noise={"force": 0.0})}, ["noise", "force", "positive"]),
        ({"residual": OutputError()}, ["OutputError", "simulator"]),
        ({"priors": {"mass": Prior(1.0, 0.1)}}, ["priors", "noise"]),
        ({"constraints": ("viscous >= 1",)}, ["viscous", "no free parameter"]),
        ({"constraints": ("stray >= 1",)}, ["constraints", "'stray'"]),
        ({"per_record": ("x0:position",)}, ["per_record", "x0:position"]),
        ({"delayed": ("position",)}, ["delayed", "'position'"]),
        ({"fixed": {"dead_time": 0.1}}, ["dead_time", "delayed"]),
    ],
)
def test_what_is_wrong_is_named(systems: Any, options: dict[str, Any], words: list[str]) -> None:
    arguments = {"system": systems.line, "records": (systems.line_record(),), "free": ("mass",)} | options
    with pytest.raises(ProblemError) as caught:
        Problem(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_missing_column_and_missing_value_are_named(systems: Any) -> None:
    record = systems.line_record()
    with pytest.raises(ProblemError, match=r"no column 'velocity'.*Rename"):
        Problem(systems.line, (record.select(["acceleration", "force"]),), ("mass",))
    with pytest.raises(ProblemError, match=r"no output of 'line' \(force\) is a column"):
        Problem(systems.line, (record.select(["acceleration", "velocity"]),), ("mass",))
    nameless = Problem(systems.line, (record,), ("mass",))
    without = [v if v.name != "viscous" else type(v)("viscous", v.unit) for v in systems.line.parameters]
    functions = type(systems.line)(**{**vars_of(systems.line), "parameters": tuple(without)})
    with pytest.raises(ProblemError, match="'viscous' is neither free nor fixed, and has no nominal value"):
        Problem(functions, nameless.records, ("mass",))


def vars_of(functions: Any) -> dict[str, Any]:
    import dataclasses

    return {field.name: getattr(functions, field.name) for field in dataclasses.fields(functions)}


# -- residuals ------------------------------------------------------------------------------------------


def test_equation_error_is_exact_with_noise_and_decimation(systems: Any) -> None:
    record = systems.stribeck_record(np.array([10.0, 20.0, 0.05, 10.0]))
    free = ("fc", "fs", "vs", "fv")
    vector = np.array([8.0, 25.0, 0.08, 5.0])
    plain = Problem(systems.stribeck, (record,), free)
    noisy = Problem(systems.stribeck, (record,), free, EquationError(noise={"friction_force": 0.5}))
    assert np.allclose(noisy.residual_vector(vector), 2.0 * plain.residual_vector(vector), rtol=1e-15)
    decimation = Decimation(5)
    coarse = Problem(systems.stribeck, (record,), free, EquationError(decimation=decimation))
    # filtering is linear, so filtering both sides is filtering the difference, but for rounding of 30 N
    assert np.allclose(
        coarse.data_residual(vector), decimation.apply(plain.data_residual(vector)), rtol=0, atol=1e-12
    )
    for problem in (plain, noisy, coarse):
        assert_exact(problem, vector)


def test_output_error_is_exact_also_by_the_initial_state(systems: Any) -> None:
    records = (systems.slider_record(15.0, 40.0, 0.2), systems.slider_record(15.0, 40.0, -0.1, seed=1))
    problem = Problem(systems.slider, records, ("mass", "damping", "x0:velocity"), OutputError())
    assert problem.names == ("mass", "damping", "x0:velocity[0]", "x0:velocity[1]")
    assert np.all(problem.residual_vector(np.array([15.0, 40.0, 0.2, -0.1])) == 0.0)
    assert_exact(problem, np.array([18.0, 33.0, 0.1, 0.3]))


def test_initial_states_are_fixed_measured_or_free(systems: Any) -> None:
    record = systems.slider_record(15.0, 40.0, 0.2)

    def of(**options: Any) -> Problem:
        return Problem(systems.slider, (record,), ("mass",), OutputError(), **options)

    vector = np.array([15.0])
    assert of().arguments(vector, 0).x0.tolist() == [0.0]
    assert of(fixed={"x0:velocity": 0.7}).arguments(vector, 0).x0.tolist() == [0.7]
    assert of(measured=("x0:velocity",)).arguments(vector, 0).x0.tolist() == [0.2]
    # a free initial state starts at what was measured, where that is known
    free = Problem(systems.slider, (record,), ("x0:velocity",), OutputError())
    assert free.start_vector().tolist() == [0.2]


def test_dead_time_shifts_the_input_and_is_found(systems: Any) -> None:
    records = (
        systems.slider_record(15.0, 40.0, delay=3),
        systems.slider_record(15.0, 40.0, delay=3, seed=2),
    )
    options: dict[str, Any] = {"bounds": {"dead_time": (0.0, 0.2)}, "delayed": ("force",)}
    problem = Problem(
        systems.slider,
        records,
        ("mass", "damping", "dead_time"),
        OutputError(),
        fixed={"idle": 1.0},
        **options,
    )
    # 3 samples of 10 ms; shifting by whole samples reproduces them, but for rounding of time divided by its step
    assert np.abs(problem.residual_vector(np.array([15.0, 40.0, 0.03]))).max() < 1e-12
    estimate = identify(problem, LeastSquares(), start={"mass": 25.0, "damping": 20.0, "dead_time": 0.01})
    assert estimate.success
    assert estimate["dead_time"] == pytest.approx(0.03, abs=1e-9)
    assert estimate["mass"] == pytest.approx(15.0, rel=1e-9)


def test_dead_time_of_an_equation_is_differentiated_exactly(systems: Any) -> None:
    record = systems.line_record()
    problem = Problem(
        systems.line,
        (record,),
        ("mass", "dead_time"),
        delayed=("acceleration",),
        bounds={"dead_time": (0, 0.1)},
    )
    # between samples the interpolation is smooth, so that differences see the same slope
    assert_exact(problem, np.array([12.0, 0.0234]))


def test_many_vectors_at_once_give_the_same_norms(systems: Any) -> None:
    record = systems.slider_record(15.0, 40.0, 0.2)
    vectors = np.array([[15.0, 40.0], [20.0, 30.0], [20.0, 500.0]])
    problem = Problem(systems.slider, (record,), ("mass", "damping"), OutputError())
    norms = problem.norms(vectors)
    assert norms[:2].tolist() == [norm(problem.residual_vector(v)) for v in vectors[:2]]
    # beyond 400 N s/m this simulator gives up: infinitely bad, not an exception
    assert norms[2] == math.inf
    with_state = Problem(systems.slider, (record,), ("mass", "x0:velocity"), OutputError())
    pairs = np.array([[15.0, 0.2], [20.0, 0.1]])
    assert with_state.norms(pairs).tolist() == [norm(with_state.residual_vector(v)) for v in pairs]


def test_different_units_need_noise(systems: Any) -> None:
    import casadi

    from mechsmith.codegen.functions import CasadiEvaluator, Variable, make_function

    symbols = systems.line.arguments()
    law = make_function("output", symbols, casadi.vertcat(symbols[4][0], symbols[4][1]))
    functions = type(systems.line)(
        **{
            **vars_of(systems.line),
            "outputs": (Variable("force", ("N",)), Variable("speed", ("m/s",))),
            "functions": {"output": CasadiEvaluator(law)},
        }
    )
    time = np.arange(5.0)
    record = Record.from_arrays(time, {"force": (time, "N"), "speed": (time, "m/s")})
    # what the outputs do not depend on needs no column: there is none for the inputs
    with pytest.raises(ProblemError, match="different units"):
        Problem(functions, (record,), ("mass",))
    with pytest.raises(ProblemError, match="no noise for speed"):
        Problem(functions, (record,), ("mass",), EquationError(noise={"force": 1.0}))
    Problem(functions, (record,), ("mass",), EquationError(noise={"force": 1.0, "speed": 0.1}))


def test_only_what_compared_outputs_depend_on_needs_a_column(systems: Any) -> None:
    import casadi

    from mechsmith.codegen.functions import CasadiEvaluator, Variable, make_function

    symbols = systems.line.arguments()
    acceleration, velocity = symbols[3][0], symbols[3][1]
    law = make_function("output", symbols, casadi.vertcat(symbols[4][1] * velocity, acceleration))
    functions = type(systems.line)(
        **{
            **vars_of(systems.line),
            "outputs": (Variable("drag", ("N",)), Variable("felt", ("m/s^2",))),
            "functions": {"output": CasadiEvaluator(law)},
        }
    )
    time = np.arange(5.0)
    record = Record.from_arrays(time, {"drag": (7.0 * time, "N"), "velocity": (time, "m/s")})
    problem = Problem(functions, (record,), ("viscous",))
    assert np.all(problem.residual_vector(np.array([7.0])) == 0.0)
    felt = record.with_column("felt", time, "m/s^2", provenance="felt")
    with pytest.raises(ProblemError, match="no column 'acceleration'"):
        Problem(functions, (felt,), ("viscous",), EquationError(noise={"drag": 1.0, "felt": 1.0}))


def test_a_problem_pickles_and_gives_the_same(systems: Any) -> None:
    record = systems.stribeck_record(np.array([10.0, 20.0, 0.05, 10.0]))
    problem = Problem(systems.stribeck, (record,), ("fc", "fs"), constraints=("fs >= fc",))
    vector = np.array([9.0, 21.0])
    before = problem.residual_vector(vector)
    again = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(again.residual_vector(vector), before)
    assert np.array_equal(again.jacobian(vector), problem.jacobian(vector))


def test_validation_predicts_another_record(systems: Any) -> None:
    record = systems.line_record(seed=3)
    exact = validate(systems.line, record, {"mass": 12.0, "viscous": 7.0, "offset": -1.5}, EquationError())
    assert exact.success
    # rounding of sums of three terms
    assert exact["force"].relative_error < 1e-12
    assert np.allclose(exact.predicted["force"], record["force"], rtol=1e-12)
    wrong = validate(systems.line, record, {"mass": 12.0, "viscous": 7.0, "offset": 0.5}, EquationError())
    assert wrong["force"].root_mean_square == pytest.approx(2.0, rel=1e-12)
    slid = systems.slider_record(15.0, 40.0, 0.2)
    failed = validate(systems.slider, slid, {"mass": 15.0, "damping": 500.0}, OutputError())
    assert not failed.success
    assert "beyond" in failed.status
    assert "beyond" in failed.table()


# -- constraints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "coefficients", "lower", "upper"),
    [
        ("fs >= fc", {"fs": 1.0, "fc": -1.0}, 0.0, math.inf),
        ("a <= 2*b + 3", {"a": 1.0, "b": -2.0}, -math.inf, 3.0),
        ("-(a - b/4)*2 == 1", {"a": -2.0, "b": 0.5}, 1.0, 1.0),
        ("1 <= a", {"a": -1.0}, -math.inf, -1.0),
    ],
)
def test_constraint_text(text: str, coefficients: dict[str, float], lower: float, upper: float) -> None:
    constraint = parse_constraint(text)
    assert (constraint.coefficients, constraint.lower, constraint.upper) == (coefficients, lower, upper)


@pytest.mark.parametrize(
    "text",
    ["a*b >= 1", "a > b", "a", "a >= b >= c", "sin(a) >= 1", "a >= ", "a - a >= 1", "1/a <= 3", "a**2 <= 1"],
)
def test_constraint_text_that_is_refused(text: str) -> None:
    with pytest.raises(ConstraintError):
        parse_constraint(text)


def test_constraint_rows_hold_fixed_values_and_each_record(systems: Any) -> None:
    records = (systems.line_record(), systems.line_record(seed=1))
    problem = Problem(
        systems.line,
        records,
        ("mass", "offset"),
        per_record=("offset",),
        fixed={"viscous": 7.0},
        constraints=("mass >= offset + 2*viscous", Constraint({"offset[1]": 1.0}, upper=4.0)),
    )
    matrix, lower, upper = problem.constraint_rows
    assert matrix.tolist() == [[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 0.0, 1.0]]
    assert lower.tolist() == [14.0, 14.0, -math.inf]
    assert upper.tolist() == [math.inf, math.inf, 4.0]


# -- transforms -----------------------------------------------------------------------------------------

positive = st.floats(1e-3, 121.0)


@given(positive, positive, st.floats(0.0, 1.0), st.sampled_from([Log(), Identity(), None]))
def test_transforms_round_trip_inside_the_box(
    first: float, second: float, share: float, transform: Any
) -> None:
    lower, upper = sorted((first, second))
    if lower == upper:
        upper = lower * 2.0
    space = make_space(("a",), np.array([lower]), np.array([upper]), [None], [transform])
    value = np.array([min(lower + share * (upper - lower), upper)])
    internal = space.internal(value)
    # log and exp are good to a few rounding units times the logarithm, which is at most log(121 / 1e-3) = 12 here
    assert space.physical(internal)[0] == pytest.approx(value[0], rel=1e-14)
    assert (
        lower <= space.physical(space.internal_lower)[0] <= space.physical(space.internal_upper)[0] <= upper
    )
    moved = space.inside(internal)
    assert np.all(space.internal_lower < moved)
    assert np.all(moved < space.internal_upper)
    drawn = space.random(np.random.default_rng(0))
    assert lower <= drawn[0] <= upper


def test_slopes_are_the_derivatives() -> None:
    space = make_space(
        ("a", "b"), np.array([0.1, -np.inf]), np.array([np.inf, np.inf]), [3.0, 200.0], [None, None]
    )
    assert [type(t).__name__ for t in space.transforms] == ["Log", "Identity"]
    at, step = np.array([0.3, -0.7]), 1e-6
    numerical = (space.physical(at + step) - space.physical(at - step)) / (2.0 * step)
    # truncation is step^2 / 6 relative, rounding 1e-16 / 1e-6
    assert space.slopes(at) == pytest.approx(numerical, rel=1e-9)


def test_a_logarithm_with_lower_bound_zero_stays_finite() -> None:
    space = make_space(("a",), np.array([0.0]), np.array([100.0]), [2.0], [Log()])
    internal = space.internal(np.array([0.0]))
    assert np.isfinite(internal).all()
    assert space.physical(internal)[0] == pytest.approx(LOWEST * 2.0)
    with pytest.raises(ValueError, match="Log\\(\\) needs a lower bound of 0 or more"):
        make_space(("a",), np.array([-1.0]), np.array([1.0]), [0.0], [Log()])


@given(st.floats(1e-300, 1e300), st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=5))
def test_norm_has_no_range(scale: float, values: list[float]) -> None:
    largest = max(map(abs, values))
    # products below the smallest normal number lose digits by themselves
    if largest * scale > 1e-290:
        assert norm(np.array(values) * scale) == pytest.approx(math.hypot(*values) * scale, rel=1e-12)


def test_identification_leaves_sympy_alone() -> None:
    code = "import sys, mechsmith.identification as m; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(st.integers(1, 700), st.integers(1, 12), st.integers(0, 100))
def test_triangular_factor_keeps_products_and_singular_values(rows: int, columns: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((rows, columns))
    factor = triangular_factor(matrix)
    assert factor.shape == (columns, columns)
    assert np.array_equal(factor, np.triu(factor))
    # orthogonal transformations are good to a few rounding units of the largest singular value, at most 40 here
    size = np.linalg.norm(matrix, 2)
    assert np.abs(factor.T @ factor - matrix.T @ matrix).max() <= 1e-13 * size**2
    singular = np.zeros(columns)
    singular[: min(rows, columns)] = np.linalg.svd(matrix, compute_uv=False)
    assert np.abs(np.linalg.svd(factor, compute_uv=False) - singular).max() <= 1e-13 * size
