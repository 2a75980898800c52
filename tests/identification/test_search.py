"""Nonlinear least squares and many starts, and the traps that users of other software met (section D of the list)."""

import multiprocessing
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.functions import CasadiEvaluator, FunctionSet, Variable, make_function
from mechsmith.identification import (
    EquationError,
    IdentificationFailed,
    LeastSquares,
    Log,
    MethodError,
    MultiStart,
    OutputError,
    Prior,
    Problem,
    ProblemError,
    Record,
    identify,
)

TRUE = np.array([10.0, 20.0, 0.05, 15.0])
FREE = ("fc", "fs", "vs", "fv")


def test_stribeck_from_a_poor_start(systems: Any) -> None:
    problem = Problem(systems.stribeck, (systems.stribeck_record(TRUE),), FREE)
    estimate = identify(problem, LeastSquares(), start={"fc": 3.0, "fs": 60.0, "vs": 0.2, "fv": 1.0})
    assert estimate.success
    # zero residual: Gauss-Newton converges quadratically to rounding
    assert estimate.values == pytest.approx(TRUE, rel=1e-9)
    norms = [line.norm for line in estimate.history]
    assert norms == sorted(norms, reverse=True)
    assert len(norms) == estimate.evaluations


def test_slider_by_output_error_with_two_records(systems: Any) -> None:
    records = (systems.slider_record(15.0, 40.0, 0.2), systems.slider_record(15.0, 40.0, -0.1, seed=1))
    problem = Problem(systems.slider, records, ("mass", "damping", "x0:velocity"), OutputError())
    estimate = identify(problem, LeastSquares(), start={"mass": 100.0, "damping": 5.0, "x0:velocity": 0.0})
    assert estimate.success
    assert estimate.values == pytest.approx([15.0, 40.0, 0.2, -0.1], rel=1e-9)


def test_trials_that_can_not_be_simulated_are_stepped_back_from(systems: Any) -> None:
    # beyond a damping of 400 the simulator gives up, and the first step from here would go there
    problem = Problem(
        systems.slider, (systems.slider_record(15.0, 390.0),), ("mass", "damping"), OutputError()
    )
    estimate = identify(problem, LeastSquares(), start={"mass": 15.0, "damping": 60.0})
    assert estimate.success
    assert estimate["damping"] == pytest.approx(390.0, rel=1e-8)


def test_d1_an_iteration_limit_is_no_success(systems: Any) -> None:
    problem = Problem(systems.stribeck, (systems.stribeck_record(TRUE),), FREE)
    start = {"fc": 3.0, "fs": 60.0, "vs": 0.2, "fv": 1.0}
    estimate = identify(problem, LeastSquares(max_evaluations=2), start=start)
    assert not estimate.success
    assert "maximum number of function evaluations" in estimate.status
    assert "NOT CONVERGED" in estimate.table()
    with pytest.raises(IdentificationFailed, match="maximum number"):
        identify(problem, LeastSquares(max_evaluations=2), start=start, throw=True)


@pytest.mark.parametrize("transform", [{}, {"fv": Log()}])
@pytest.mark.parametrize("side", [0, 1])
def test_d2_a_start_on_a_bound_moves(systems: Any, side: int, transform: dict[str, Any]) -> None:
    problem = Problem(
        systems.stribeck, (systems.stribeck_record(TRUE),), ("fc", "fs", "fv"), transforms=transform
    )
    bound = (problem.space.lower, problem.space.upper)[side]
    estimate = identify(problem, LeastSquares(), start=dict(zip(problem.names, bound, strict=True)))
    assert estimate.success
    assert estimate.values == pytest.approx(TRUE[[0, 1, 3]], rel=1e-8)
    assert estimate.at_bound == ()


def test_d3_a_parameter_without_effect_is_named_before_the_solver_starts(systems: Any) -> None:
    problem = Problem(systems.slider, (systems.slider_record(15.0, 40.0),), ("mass", "idle"), OutputError())
    with pytest.raises(ProblemError, match="'idle' has no effect on the residual"):
        identify(problem, LeastSquares())


def test_an_effect_that_vanishes_at_the_start_alone_is_no_death(systems: Any) -> None:
    # with fs = fc Stribeck's velocity has no effect, but it has as soon as they differ
    problem = Problem(systems.stribeck, (systems.stribeck_record(TRUE),), FREE)
    estimate = identify(problem, LeastSquares(), start={"fc": 15.0, "fs": 15.0, "vs": 0.05, "fv": 1.0})
    assert estimate.success
    assert estimate.values == pytest.approx(TRUE, rel=1e-8)


def test_a_residual_that_is_not_finite_at_the_start_is_placed(systems: Any) -> None:
    record = systems.stribeck_record(TRUE)
    values = record["friction_force"].copy()
    values[[7, 9]] = np.nan
    holed = record.with_column("friction_force", values, "N", provenance="holes", overwrite=True)
    with pytest.raises(
        ProblemError, match=r"measured 'friction_force' of record 'stribeck' is nan at row 7 \(2 of"
    ):
        identify(Problem(systems.stribeck, (holed,), FREE), LeastSquares())
    problem = Problem(
        systems.slider, (systems.slider_record(15.0, 40.0),), ("mass", "damping"), OutputError()
    )
    with pytest.raises(
        ProblemError, match="simulation of record 'slider 0' fails at the start: damping is beyond"
    ):
        identify(problem, LeastSquares(), start={"damping": 500.0})


def test_d8_bounds_from_a_thousandth_to_a_hundred(systems: Any) -> None:
    problem = Problem(systems.stribeck, (systems.stribeck_record(TRUE),), FREE)
    rng = np.random.default_rng(0)
    for _ in range(200):
        drawn = problem.space.random(rng)
        assert np.all((problem.space.lower <= drawn) & (drawn <= problem.space.upper))
        assert np.isfinite(problem.residual_vector(drawn)).all()
    estimate = identify(problem, MultiStart(LeastSquares(), starts=6), rng=np.random.default_rng(0))
    assert estimate.values == pytest.approx(TRUE, rel=1e-8)


def test_d9_d10_workers_change_nothing(systems: Any) -> None:
    problem = Problem(systems.stribeck, (systems.stribeck_record(TRUE, noise=0.5),), FREE)
    results = [
        identify(problem, MultiStart(LeastSquares(), starts=4, workers=workers), rng=np.random.default_rng(5))
        for workers in (1, 2)
    ]
    # spawned processes, hence everything pickled
    assert multiprocessing.get_start_method(allow_none=True) in (None, "fork", "spawn", "forkserver")
    assert np.array_equal(results[0].values, results[1].values)
    assert results[0].history == results[1].history
    assert results[0].status == results[1].status
    assert {line.start for line in results[0].history} == {0, 1, 2, 3}
    other = identify(problem, MultiStart(LeastSquares(), starts=4), rng=np.random.default_rng(6))
    assert other.history != results[0].history


def test_multi_start_says_what_it_needs(systems: Any) -> None:
    record = systems.stribeck_record(TRUE)
    with pytest.raises(MethodError, match="rng"):
        identify(Problem(systems.stribeck, (record,), FREE), MultiStart(LeastSquares()))
    unbounded = Problem(systems.stribeck, (record,), FREE, bounds={"fc": (1.0, np.inf)})
    with pytest.raises(ValueError, match="'fc' have none"):
        identify(unbounded, MultiStart(LeastSquares()), rng=np.random.default_rng(0))


def test_multi_start_prefers_what_converged_and_counts(systems: Any) -> None:
    problem = Problem(systems.stribeck, (systems.stribeck_record(TRUE),), FREE)
    estimate = identify(problem, MultiStart(LeastSquares(), starts=5), rng=np.random.default_rng(0))
    assert estimate.success
    assert "of 5 starts converged" in estimate.message
    limited = identify(
        problem, MultiStart(LeastSquares(max_evaluations=2), starts=3), rng=np.random.default_rng(0)
    )
    assert not limited.success
    assert limited.message.startswith("0 of 3 starts converged")


def scaled_exponential(scale: float) -> FunctionSet:
    """Return y = scale a exp(-t / tau) of an input t."""
    import casadi

    inputs, outputs = (Variable("t", ("s",)),), (Variable("y", ("V",)),)
    parameters = (
        Variable("a", ("V",), nominal=1.0, lower=0.1, upper=10.0),
        Variable("tau", ("s",), nominal=1.0, lower=0.1, upper=10.0),
    )
    symbols = [casadi.SX.sym(n, size) for n, size in zip("xdzup", (0, 0, 0, 1, 2), strict=True)]
    law = scale * (symbols[4][0] * casadi.exp(-symbols[3] / symbols[4][1]))
    evaluators = {"output": CasadiEvaluator(make_function("output", symbols, law))}
    capabilities = frozenset({"embeddable", "derivatives"})
    return FunctionSet("decay", (), (), (), inputs, parameters, outputs, evaluators, capabilities)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_d11_residuals_of_any_scale(scale: float) -> None:
    t = np.linspace(0.0, 3.0, 50)
    noise = 0.01 * np.random.default_rng(0).standard_normal(50)
    y = 2.0 * np.exp(-t / 0.7) + noise
    record = Record(t, {"t": t, "y": scale * y}, {"t": "s", "y": "V"}, "decay")
    estimate = identify(Problem(scaled_exponential(scale), (record,), ("a", "tau")), LeastSquares())
    reference = identify(
        Problem(scaled_exponential(1.0), (Record(t, {"t": t, "y": y}, {"t": "s", "y": "V"}),), ("a", "tau")),
        LeastSquares(),
    )
    assert estimate.success
    # 1e-8 of a parameter: the solver ends at a relative change of cost of 1e-12
    assert estimate.values == pytest.approx(reference.values, rel=1e-6)
    assert estimate.deviations == pytest.approx(reference.deviations, rel=1e-5)
    assert estimate.residual_norm == pytest.approx(scale * reference.residual_norm, rel=1e-6)
    assert estimate.relative_error == pytest.approx(reference.relative_error, rel=1e-6)


def test_priors_pull_by_their_precision(systems: Any) -> None:
    record = systems.line_record(noise=1.0)
    free = ("mass", "viscous", "offset")
    residual = EquationError(noise={"force": 1.0})
    problem = Problem(systems.line, (record,), free, residual, priors={"viscous": Prior(20.0, 0.3)})
    estimate = identify(problem, LeastSquares())
    # the closed form of Bayesian linear regression
    regressor = np.column_stack([record["acceleration"], record["velocity"], np.ones(len(record))])
    information = regressor.T @ regressor + np.diag([0.0, 1.0 / 0.09, 0.0])
    expected = np.linalg.solve(information, regressor.T @ record["force"] + [0.0, 20.0 / 0.09, 0.0])
    assert estimate.values == pytest.approx(expected, rel=1e-6)
    assert estimate.covariance_white == pytest.approx(np.linalg.inv(information), rel=1e-6, abs=1e-9)


def test_constraints_between_parameters(systems: Any) -> None:
    # data whose free solution has fs below fc
    record = systems.stribeck_record(np.array([20.0, 15.0, 0.05, 10.0]), noise=0.1)
    free = identify(Problem(systems.stribeck, (record,), FREE), LeastSquares())
    assert free["fs"] < free["fc"]
    problem = Problem(systems.stribeck, (record,), ("fc", "fs", "fv"), constraints=("fs >= fc",))
    kept = identify(problem, LeastSquares())
    assert kept.success
    # on the constraint the curve is Coulomb's, linear in two parameters
    sign, v = np.sign(record["velocity"]), record["velocity"]
    regressor = np.column_stack([sign, v])
    coulomb, viscous = np.linalg.lstsq(regressor, record["friction_force"], rcond=None)[0]
    # SLSQP ends when the cost changes by 1e-15, which leaves 3e-8 of the parameters' effect
    assert kept.values == pytest.approx([coulomb, coulomb, viscous], rel=1e-5)
    assert "fs" in kept.at_bound[0]
    # without violation the answer is that of the free problem
    slack = Problem(systems.stribeck, (systems.stribeck_record(TRUE),), FREE, constraints=("fs >= fc",))
    assert identify(slack, LeastSquares()).values == pytest.approx(TRUE, rel=1e-8)


def test_an_estimate_is_a_start(systems: Any) -> None:
    problem = Problem(systems.stribeck, (systems.stribeck_record(TRUE),), FREE)
    coarse = identify(problem, LeastSquares(max_evaluations=4))
    fine = identify(problem, LeastSquares(), start=coarse)
    assert fine.history[0].norm == pytest.approx(coarse.residual_norm, rel=1e-6)
    assert fine.success
    # what was fixed is a start too, once it is free
    part = identify(
        Problem(systems.stribeck, problem.records, ("fc",), fixed={"fs": 21.0, "vs": 0.06, "fv": 14.0}),
        LeastSquares(),
    )
    assert problem.start_vector(part.parameters).tolist() == [part["fc"], 21.0, 0.06, 14.0]
    with pytest.raises(ProblemError, match="nothing is free"):
        identify(Problem(systems.stribeck, problem.records, ()), LeastSquares())


def test_options_are_checked() -> None:
    with pytest.raises(MethodError, match="max_evaluations is 0"):
        LeastSquares(max_evaluations=0)
    with pytest.raises(MethodError, match="tolerance is 2"):
        LeastSquares(tolerance=2)
    with pytest.raises(MethodError, match="starts is 0"):
        MultiStart(LeastSquares(), starts=0)


def test_a_wall_of_failed_trials_is_no_success(systems: Any) -> None:
    """The slider can't be simulated beyond a damping of 400: least squares that ends there has not converged."""
    record = systems.slider_record(20.0, 300.0)
    problem = Problem(systems.slider, (record,), ("mass", "damping"), OutputError())
    estimate = identify(problem, LeastSquares(), start={"mass": 300.0, "damping": 2.0})
    assert estimate.free["damping"] == pytest.approx(400.0, rel=1e-2)
    assert not estimate.success
    assert "simulations that fail" in estimate.message


def test_a_failed_trial_on_the_way_is_no_failure(systems: Any) -> None:
    record = systems.slider_record(20.0, 300.0)
    problem = Problem(systems.slider, (record,), ("mass", "damping"), OutputError())
    estimate = identify(problem, LeastSquares(), start={"mass": 20.0, "damping": 30.0})
    assert estimate.success
    assert estimate.free["damping"] == pytest.approx(300.0, rel=1e-8)
