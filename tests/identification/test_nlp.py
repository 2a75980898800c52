"""IPOPT in its three formulations: the optimum is that of least squares, and the status is IPOPT's own."""

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import casadi
import numpy as np
import pytest
from numpy.typing import NDArray

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import CasadiEvaluator, FunctionSet, Variable, make_function
from mechsmith.codegen.integrators import Radau
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator
from mechsmith.identification import (
    Decimation,
    EquationError,
    LeastSquares,
    MethodError,
    MultiStart,
    OutputError,
    Prior,
    Problem,
    Record,
    identify,
)
from mechsmith.identification.nlp.ipopt import Ipopt
from mechsmith.identification.nlp.transcription import Numeric
from mechsmith.symbolic.friction.lugre import make_lugre

Array = NDArray[np.float64]
# Both methods end where the gradient is some 1e-11 of what it is at the start, parameters weakly determined less well.
SAME = 1e-6
FORMULATIONS = [
    Ipopt("single_shooting"),
    Ipopt("multiple_shooting", segments=6),
    Ipopt("collocation"),
]
TRUE = {"inertia": 2.0, "damping": 1.5, "stiffness": 40.0}


def make_pendulum(*, mass_matrix: bool) -> FunctionSet:
    """Return inertia * q'' = torque - damping * q' - stiffness * sin(q), with the inertia on either side."""
    states = (Variable("angle", ("rad",)), Variable("rate", ("rad/s",)))
    inputs = (Variable("torque", ("N*m",)),)
    parameters = (
        Variable("inertia", ("kg*m^2",), nominal=1.0, lower=0.1, upper=50.0),
        Variable("damping", ("N*m*s/rad",), nominal=1.0, lower=0.0, upper=20.0),
        Variable("stiffness", ("N*m/rad",), nominal=60.0, lower=1.0, upper=500.0),
    )
    symbols = [casadi.SX.sym(n, k) for n, k in zip("xdzup", (2, 0, 0, 1, 3), strict=True)]
    x, _, _, u, p = symbols
    torque = u - p[1] * x[1] - p[2] * casadi.sin(x[0])
    expressions = {
        "output": x[0],
        "derivative": casadi.vertcat(x[1], torque if mass_matrix else torque / p[0]),
    }
    if mass_matrix:
        expressions["mass"] = casadi.diag(casadi.vertcat(1, p[0]))
    evaluators = {name: CasadiEvaluator(make_function(name, symbols, e)) for name, e in expressions.items()}
    return FunctionSet(
        "pendulum",
        states,
        (),
        (),
        inputs,
        parameters,
        (Variable("encoder", ("rad",)),),
        evaluators,
        frozenset({"embeddable", "derivatives"}),
    )


def pendulum_record(
    simulator: Any, *, seed: int = 0, noise: float = 0.0, angle: float = 0.3, samples: int = 121
) -> Record:
    rng = np.random.default_rng(seed)
    time = np.arange(samples) * 0.02
    torque = 30.0 * np.sin(2.0 * np.pi * 0.7 * time + rng.uniform(0.0, 6.0)) + 10.0 * np.sin(11.0 * time)
    none = np.zeros(0)
    motion = simulator.rollout(
        time, torque[:, None], np.array([angle, 0.0]), none, np.array([*TRUE.values()])
    )
    encoder = motion.outputs[:, 0] + noise * rng.standard_normal(samples)
    columns = {"torque": (torque, "N*m"), "encoder": (encoder, "rad")}
    return Record.from_arrays(time, columns, source=f"pendulum {seed}")


@pytest.fixture(scope="module")
def pendulum() -> CasadiSimulator:
    return CasadiSimulator(discretise(make_pendulum(mass_matrix=False), Radau()))


def swing(simulator: CasadiSimulator, **options: Any) -> Problem:
    """Return the problem of one noisy swing with an unknown initial angle."""
    given: dict[str, Any] = {
        "records": (pendulum_record(simulator, noise=1e-3),),
        "free": ("inertia", "damping", "stiffness", "x0:angle"),
        "residual": OutputError(),
    }
    return Problem(simulator, **{**given, **options})


@pytest.mark.parametrize("method", FORMULATIONS, ids=lambda m: m.formulation)
def test_every_formulation_finds_the_optimum_of_least_squares(
    pendulum: CasadiSimulator, method: Ipopt
) -> None:
    problem = swing(pendulum)
    reference = identify(problem, LeastSquares())
    found = identify(problem, method)
    assert reference.success
    assert found.success
    assert found.status == "Solve_Succeeded"
    np.testing.assert_allclose(found.values, reference.values, rtol=SAME)
    # noise of 1e-3 rad on 120 samples of a swing of 0.5 rad: every parameter is known to better than 2 %
    for name, value in TRUE.items():
        assert found[name] == pytest.approx(value, rel=0.02)
    assert found.history[-1].norm == pytest.approx(found.residual_norm, rel=1e-6)


@pytest.mark.parametrize("method", FORMULATIONS, ids=lambda m: m.formulation)
def test_a_mass_matrix_changes_nothing(pendulum: CasadiSimulator, method: Ipopt) -> None:
    problem = swing(pendulum)
    other = CasadiSimulator(discretise(make_pendulum(mass_matrix=True), Radau()))
    first = method.solve(problem, problem.start_vector())
    second = method.solve(swing(other), problem.start_vector())
    np.testing.assert_allclose(first.vector, second.vector, rtol=SAME)


@pytest.mark.parametrize("hessian", ["exact", "gauss_newton", "limited_memory"])
@pytest.mark.parametrize("formulation", ["single_shooting", "collocation"])
def test_the_hessian_changes_the_way_and_not_the_optimum(
    systems: Any, pendulum: CasadiSimulator, formulation: Any, hessian: Any
) -> None:
    start: dict[str, float] = {}
    if formulation == "collocation":
        problem = swing(pendulum)
        # nearer than the nominal values, from where the approximated Hessian goes to another optimum
        start = {"inertia": 1.8, "damping": 1.3, "stiffness": 45.0}
    else:
        record = systems.stribeck_record(np.array([10.0, 25.0, 0.05, 12.0]), noise=0.5)
        problem = Problem(systems.stribeck, (record,), free=("fc", "fs", "vs", "fv"))
    method = Ipopt(formulation, hessian=hessian, max_iterations=1000)
    begin = problem.start_vector(start)
    reference, found = LeastSquares().solve(problem, begin), method.solve(problem, begin)
    assert found.success
    # an approximated Hessian stops earlier along what the data determine least
    np.testing.assert_allclose(
        found.vector, reference.vector, rtol=1e-3 if hessian == "limited_memory" else SAME
    )


def test_the_exact_hessian_of_single_shooting_is_the_derivative_of_the_gradient(systems: Any) -> None:
    from mechsmith.identification.nlp.single_shooting import single_shooting
    from mechsmith.identification.nlp.transcription import Guard

    record = systems.stribeck_record(np.array([10.0, 25.0, 0.05, 12.0]), noise=3.0)
    problem = Problem(systems.stribeck, (record,), free=("fc", "fs", "vs", "fv"), constraints=("fs >= fc",))
    programme = single_shooting(problem, problem.start_vector(), exact=True, guard=Guard())
    point = programme.start * 1.01
    hessian = programme.derivatives["hess_lag"](point, [], 1.0, [0.0]).full()
    full = hessian + np.triu(hessian, 1).T
    gradient = programme.derivatives["grad_f"]
    step = 1e-5
    for j in range(4):
        e = np.zeros(4)
        e[j] = step
        slope = (gradient(point + e, [])[1] - gradient(point - e, [])[1]).full()[:, 0] / (2.0 * step)
        # central differences of step 1e-5 are good to 1e-8 or so of the largest element
        np.testing.assert_allclose(full[:, j], slope, atol=1e-6 * np.abs(full).max())


@pytest.mark.parametrize("method", FORMULATIONS, ids=lambda m: m.formulation)
def test_several_records_share_parameters_and_have_their_own(
    pendulum: CasadiSimulator, method: Ipopt
) -> None:
    records = (
        pendulum_record(pendulum, seed=1, noise=1e-3, angle=0.2),
        pendulum_record(pendulum, seed=2, noise=1e-3, angle=-0.4, samples=90),
    )
    problem = swing(
        pendulum,
        records=records,
        free=("inertia", "damping", "stiffness", "x0:angle", "x0:rate[1]"),
        per_record=("damping",),
        residual=OutputError(noise={"encoder": 1e-3}),
        priors={"damping[1]": Prior(1.4, 0.05)},
    )
    reference, found = identify(problem, LeastSquares()), identify(problem, method)
    assert found.success
    assert found.names == (
        "inertia",
        "damping[0]",
        "damping[1]",
        "stiffness",
        "x0:angle[0]",
        "x0:angle[1]",
        "x0:rate[1]",
    )
    np.testing.assert_allclose(found.values, reference.values, rtol=SAME, atol=SAME)


@pytest.mark.parametrize("method", FORMULATIONS, ids=lambda m: m.formulation)
def test_fixed_parameters_stay_and_bounds_hold(pendulum: CasadiSimulator, method: Ipopt) -> None:
    problem = swing(
        pendulum,
        free=("damping", "stiffness", "x0:angle"),
        fixed={"inertia": 2.0},
        bounds={"damping": (0.5, 1.2)},
    )
    found = identify(problem, method, start={"damping": 1.2})
    reference = identify(problem, LeastSquares())
    assert found["inertia"] == 2.0
    assert found["damping"] <= 1.2
    # an interior point ends beside the bound, at mu over the multiplier
    assert found["damping"] == pytest.approx(1.2, rel=1e-6)
    assert "damping" in found.at_bound
    assert found["stiffness"] == pytest.approx(reference["stiffness"], rel=SAME)


@pytest.mark.parametrize("method", FORMULATIONS, ids=lambda m: m.formulation)
def test_constraints_between_parameters_hold_where_they_are_active(
    pendulum: CasadiSimulator, method: Ipopt
) -> None:
    # the truth is 40 and 2: the constraint is active
    problem = swing(pendulum, constraints=("stiffness >= 21*inertia",))
    found, reference = identify(problem, method), identify(problem, LeastSquares())
    assert found.success
    assert found["stiffness"] == pytest.approx(21.0 * found["inertia"], rel=1e-7)
    assert found.at_bound
    # SLSQP, behind LeastSquares here, ends with an approximated Hessian
    np.testing.assert_allclose(found.values, reference.values, rtol=1e-4)


def test_it_goes_from_several_starts_in_several_processes(systems: Any) -> None:
    record = systems.stribeck_record(np.array([10.0, 25.0, 0.05, 12.0]), noise=0.5)
    problem = Problem(systems.stribeck, (record,), free=("fc", "fs", "vs", "fv"))
    one, two = (
        identify(problem, MultiStart(Ipopt(), starts=3, workers=workers), rng=np.random.default_rng(0))
        for workers in (1, 2)
    )
    assert one.success
    np.testing.assert_array_equal(one.values, two.values)


def test_an_equation_between_parameters_holds(systems: Any) -> None:
    record = systems.stribeck_record(np.array([10.0, 25.0, 0.05, 12.0]), noise=0.5)
    free = ("fc", "fs", "vs", "fv")
    problem = Problem(systems.stribeck, (record,), free=free, constraints=("fs == 2*fc",))
    found = identify(problem, Ipopt())
    assert found.success
    assert found["fs"] == pytest.approx(2.0 * found["fc"], rel=1e-9)


@pytest.mark.parametrize("edge", ["lower", "upper"])
def test_a_start_on_a_bound_moves(systems: Any, edge: str) -> None:
    record = systems.stribeck_record(np.array([10.0, 25.0, 0.05, 12.0]))
    problem = Problem(systems.stribeck, (record,), free=("fc", "fs", "fv"), fixed={"vs": 0.05})
    start = getattr(problem.space, edge)
    found = Ipopt().solve(problem, start)
    assert found.success
    np.testing.assert_allclose(found.vector, [10.0, 25.0, 12.0], rtol=1e-6)


@pytest.mark.parametrize("method", FORMULATIONS, ids=lambda m: m.formulation)
def test_an_iteration_limit_is_no_success(pendulum: CasadiSimulator, method: Ipopt) -> None:
    limited = Ipopt(method.formulation, segments=6, max_iterations=2)
    found = identify(swing(pendulum), limited)
    assert found.status == "Maximum_Iterations_Exceeded"
    assert not found.success


@pytest.mark.parametrize("formulation", ["multiple_shooting", "collocation"])
def test_bounds_on_states_hold_along_the_path(pendulum: CasadiSimulator, formulation: Any) -> None:
    problem = swing(pendulum)
    record = problem.records[0]

    # 120 intervals in 6 segments; the initial state has bounds of its own
    kept = slice(20, 120, 20) if formulation == "multiple_shooting" else slice(1, None)

    def fastest(vector: Array) -> float:
        arguments = problem.arguments(vector, 0)
        torque = record["torque"][:, None]
        motion = pendulum.rollout(record.time, torque, arguments.x0, arguments.d0, arguments.p)
        return float(motion.states[kept, 1].max())

    start = problem.start_vector()
    free = Ipopt(formulation, segments=6).solve(problem, start)
    limit = 0.98 * fastest(free.vector)
    held = Ipopt(formulation, segments=6, state_bounds={"rate": (-np.inf, limit)}).solve(problem, start)
    assert held.success
    # stage equations and continuity hold to 1e-10 of the largest state
    assert fastest(held.vector) <= limit * (1.0 + 1e-8)
    assert fastest(held.vector) == pytest.approx(limit, rel=1e-4)
    assert fastest(held.vector) < fastest(free.vector)


@pytest.mark.parametrize("noise", [1e-300, 1e300])
def test_residuals_of_any_scale_are_coped_with(systems: Any, noise: float) -> None:
    record = systems.line_record(12.0, 7.0, -1.5)
    residual = EquationError(noise={"force": noise})
    problem = Problem(systems.line, (record,), free=("mass", "viscous", "offset"), residual=residual)
    found = Ipopt().solve(problem, problem.start_vector())
    assert found.success
    np.testing.assert_allclose(found.vector, [12.0, 7.0, -1.5], rtol=1e-8)


def test_a_failing_simulation_shortens_the_step(systems: Any) -> None:
    # the slider's simulation fails above a damping of 400 N*s/m, which the search tries on the way to 200
    record = systems.slider_record(20.0, 200.0)
    failed = []

    @dataclass(frozen=True)
    class Watched(type(systems.slider)):  # type: ignore[misc]
        def rollout(self, *arguments: Any) -> Any:
            found = super().rollout(*arguments)
            failed.append(bool(found.status))
            return found

    problem = Problem(
        Watched(systems.slider.functions), (record,), free=("mass", "damping"), residual=OutputError()
    )
    found = Ipopt().solve(problem, np.array([300.0, 2.0]))
    assert any(failed)
    assert found.success
    np.testing.assert_allclose(found.vector, [20.0, 200.0], rtol=1e-6)


def test_a_start_where_nothing_is_finite_gives_ipopts_word(systems: Any) -> None:
    record = systems.slider_record(20.0, 30.0)
    problem = Problem(systems.slider, (record,), free=("damping",), residual=OutputError())
    found = Ipopt().solve(problem, np.array([1500.0]))
    assert found.status == "Invalid_Number_Detected"
    assert not found.success


def test_an_interrupt_ends_with_what_there_is(pendulum: CasadiSimulator) -> None:
    def stop(line: Any) -> None:
        if line.evaluation == 3:
            raise KeyboardInterrupt

    problem = swing(pendulum)
    found = Ipopt(progress=stop).solve(problem, problem.start_vector())
    assert found.status == "User_Requested_Stop"
    assert not found.success
    assert "interrupted" in found.message
    assert np.isfinite(found.vector).all()


def test_a_signal_ends_with_what_there_is(pendulum: CasadiSimulator) -> None:
    problem = swing(pendulum)
    # each iteration waits, so that the signal comes before the end
    waiting = Ipopt(progress=lambda line: sleep(0.1))
    timer = threading.Timer(0.25, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        found = waiting.solve(problem, problem.start_vector())
    finally:
        timer.join()
    assert found.status == "User_Requested_Stop"
    again = Ipopt().solve(problem, problem.start_vector())
    assert again.success


def test_what_progress_raises_comes_out(pendulum: CasadiSimulator) -> None:
    def fail(line: Any) -> None:
        raise RuntimeError("the report failed")

    problem = swing(pendulum)
    with pytest.raises(RuntimeError, match="the report failed"):
        Ipopt(progress=fail).solve(problem, problem.start_vector())


def test_nothing_is_printed(pendulum: CasadiSimulator, capfd: pytest.CaptureFixture[str]) -> None:
    problem = swing(pendulum)
    for method in FORMULATIONS:
        method.solve(problem, problem.start_vector())
    assert capfd.readouterr() == ("", "")


def test_what_does_not_suit_is_refused(systems: Any, pendulum: CasadiSimulator) -> None:
    start = swing(pendulum).start_vector()
    decimated = swing(pendulum, residual=OutputError(decimation=Decimation(factor=2)))
    sliding = Problem(
        systems.slider, (systems.slider_record(20.0, 30.0),), free=("mass",), residual=OutputError()
    )
    static = Problem(systems.line, (systems.line_record(),), free=("mass",), residual=EquationError())
    refused = (
        (Ipopt("collocation"), decimated, start, "decimation"),
        (Ipopt("collocation"), sliding, np.ones(1), "simulator of mechsmith.codegen"),
        (Ipopt("multiple_shooting"), static, np.ones(1), "OutputError"),
        (Ipopt(hessian="exact"), swing(pendulum), start, "exact Hessian"),
        (Ipopt("collocation", state_bounds={"speed": (0.0, 1.0)}), swing(pendulum), start, "angle, rate"),
    )
    for method, problem, vector, words in refused:
        with pytest.raises(MethodError, match=words):
            method.solve(problem, vector)
    wrong: tuple[dict[str, Any], ...] = (
        {"formulation": "shooting"},
        {"hessian": "newton"},
        {"max_iterations": 0},
        {"tolerance": 0.0},
        {"print_level": 13},
        {"state_bounds": {"rate": (0.0, 1.0)}},
        {"formulation": "collocation", "state_bounds": {"rate": (1.0, 0.0)}},
        {"formulation": "multiple_shooting", "hessian": "exact"},
    )
    for options in wrong:
        with pytest.raises(MethodError, match="Ipopt"):
            Ipopt(**options)


def test_multiple_shooting_decimates(pendulum: CasadiSimulator) -> None:
    problem = swing(pendulum, residual=OutputError(decimation=Decimation(factor=2)))
    start = problem.start_vector()
    reference = LeastSquares().solve(problem, start)
    found = Ipopt("multiple_shooting", segments=4).solve(problem, start)
    np.testing.assert_allclose(found.vector, reference.vector, rtol=SAME)


def test_callbacks_keep_their_pattern() -> None:
    from mechsmith.identification.nlp.transcription import Guard

    sparsity = casadi.Sparsity.triplet(2, 3, [0, 1, 1], [2, 0, 1])
    dense = np.array([[0.0, 0.0, 5.0], [6.0, 7.0, 0.0]])
    callback = Numeric("pattern", lambda w: dense * w[0], 1, sparsity, Guard())
    np.testing.assert_array_equal(callback(2.0).full(), 2.0 * dense)


@pytest.mark.compiler
@pytest.mark.parametrize("formulation", ["single_shooting", "multiple_shooting", "collocation"])
def test_lugre_has_one_optimum_in_every_formulation(
    reference: Path, formulation: Any, tmp_path: Path
) -> None:
    # F at 1 kHz by another solver to 2e-9 of the largest; the first second and a half holds a start and a stop
    data = np.loadtxt(reference / "friction" / "L05_sim_A_T1.csv.gz", delimiter=",", skiprows=1)[:1500]
    truth = {"s0": 1e5, "s1": 316.22776601683796, "a0": 1.0, "a1": 0.5, "v0": 0.01, "a2": 0.4, "a3": 0.1}
    columns = {
        "position": (data[:, 1], "rad"),
        "velocity": (data[:, 2], "rad/s"),
        "force": (data[:, 4], "N*m"),
    }
    problem = Problem(
        build_simulator(discretise(lower(make_lugre())), cache=tmp_path),
        (Record.from_arrays(data[:, 0], columns, source="L05_sim_A_T1"),),
        free=tuple(truth),
        residual=OutputError(),
        fixed={"x0:z": 0.0, "vd": 0.1},
    )
    factors = (1.5, 0.7, 1.2, 0.8, 1.3, 1.2, 0.8)
    start = {name: value * f for (name, value), f in zip(truth.items(), factors, strict=True)}
    found = identify(problem, Ipopt(formulation, segments=10), start=start)
    assert found.success
    # all take the same steps, graded near v = 0, so they agree far better than they fit the data
    least_squares = identify(problem, LeastSquares(), start=start)
    np.testing.assert_allclose(found.values, least_squares.values, rtol=1e-8)
    for name, value in truth.items():
        # the simulation's error of 2.5e-7 of the largest force, over what the parameters do to it
        assert found[name] == pytest.approx(value, rel=1e-4)
