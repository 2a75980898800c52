"""Stiffness, damping and bending stiffness of a flexible link, from frequencies, a free decay, and torque and angle."""

from pathlib import Path

import numpy as np
import pytest

from mechsmith.codegen.build import build_simulator, find_compiler
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import Array, FunctionSet
from mechsmith.codegen.held import HeldSimulator, hold
from mechsmith.codegen.integrators import RungeKutta4
from mechsmith.codegen.lower import lower
from mechsmith.codegen.unknowns import eliminate
from mechsmith.identification.estimate import Estimate
from mechsmith.identification.identify import identify
from mechsmith.identification.nlp.ipopt import Ipopt
from mechsmith.identification.problem import Problem
from mechsmith.identification.record import Record
from mechsmith.identification.residuals import EquationError, OutputError
from mechsmith.identification.search import LeastSquares
from mechsmith.symbolic.flexible.link import make_flexible_link
from mechsmith.symbolic.flexible.resonances import make_modal_response, make_resonances

TRUTH = {"joint_stiffness": 1.0, "bending_stiffness": 0.16, "joint_damping": 2e-3, "structural_damping": 0.15}
START = {"joint_stiffness": 1.5, "bending_stiffness": 0.14, "joint_damping": 1e-3, "structural_damping": 0.3}


def check(estimate: Estimate) -> None:
    """Check that every parameter is within four standard deviations, and that these say something."""
    assert estimate.success, estimate.table()
    for name, deviation in zip(estimate.names, estimate.deviations, strict=True):
        if name in TRUTH:
            assert abs(estimate[name] - TRUTH[name]) < 4.0 * deviation, name
            assert deviation < 0.3 * TRUTH[name], name


@pytest.fixture(scope="module")
def simulator() -> HeldSimulator:
    if find_compiler() is None:
        pytest.skip("no C compiler")
    held = hold(lower(make_flexible_link(modes=2)))
    return held.simulator(build_simulator(discretise(held.functions, RungeKutta4())))


def measured(
    functions: FunctionSet, time: Array, outputs: Array, torque: Array, noise: dict[str, float], seed: int
) -> Record:
    rng = np.random.default_rng(seed)
    places = {name: functions.labels("y").index(name) for name in noise}
    columns = {
        name: outputs[:, place] + noise[name] * rng.normal(size=len(time)) for name, place in places.items()
    }
    units = {"hub_angle": "rad", "tip_deflection": "m"}
    return Record(
        time, {"torque": torque, **columns}, {"torque": "N*m", **{name: units[name] for name in noise}}
    )


def frequency_problem(seed: int, *, sweeps: int = 12) -> Problem:
    """Return the problem of repeated modal tests: three frequencies within 0.1 %, damping ratios within 5 %."""
    functions = eliminate(lower(make_resonances(modes=3)))
    exact = functions.evaluate("output", p=functions.vector("p", TRUTH))[:, 0]
    labels = functions.labels("y")
    deviation = np.where([label.startswith("frequency") for label in labels], 1e-3, 5e-2) * exact
    noisy = exact + deviation * np.random.default_rng(seed).normal(size=(sweeps, len(exact)))
    units = {label: "rad/s" if label.startswith("frequency") else "" for label in labels}
    record = Record(np.arange(float(sweeps)), dict(zip(labels, noisy.T, strict=True)), units)
    noise = dict(zip(labels, map(float, deviation), strict=True))
    return Problem(functions, (record,), free=tuple(TRUTH), residual=EquationError(noise=noise))


@pytest.mark.parametrize("method", [LeastSquares(), Ipopt()])
def test_from_measured_frequencies_and_damping(method: LeastSquares | Ipopt) -> None:
    check(identify(frequency_problem(1), method, start=START))


@pytest.mark.compiler
def test_from_a_free_decay(simulator: HeldSimulator) -> None:
    functions = simulator.functions
    time = 2e-3 * np.arange(751)
    start = np.array([0.0, 0.03, 0.004, 0.0, 0.0, 0.0])
    rest = np.zeros(len(time))
    motion = simulator.rollout(time, rest[:, None], start, np.zeros(0), functions.vector("p", TRUTH))
    noise = {"hub_angle": 1e-4, "tip_deflection": 1e-4}
    record = measured(functions, time, motion.outputs, rest, noise, 2)
    free = (*TRUTH, "x0:deflection_0", "x0:deflection_1")
    problem = Problem(simulator, (record,), free=free, residual=OutputError(noise=noise))
    near = {
        "joint_stiffness": 1.1,
        "bending_stiffness": 0.15,
        "joint_damping": 1e-3,
        "structural_damping": 0.3,
    }
    estimate = identify(
        problem, LeastSquares(), start={**near, "x0:deflection_0": 0.02, "x0:deflection_1": 0.0}
    )
    check(estimate)
    assert estimate["x0:deflection_0"] == pytest.approx(0.03, abs=4.0 * estimate.deviation("x0:deflection_0"))


@pytest.mark.compiler
def test_from_torque_and_angle_by_ipopt(simulator: HeldSimulator) -> None:
    functions = simulator.functions
    time = 2e-3 * np.arange(751)
    torque = 0.01 * np.sin(2.0 * np.pi * (0.5 * time + 3.0 * time**2))
    motion = simulator.rollout(time, torque[:, None], np.zeros(6), np.zeros(0), functions.vector("p", TRUTH))
    noise = {"hub_angle": 2e-4}
    record = measured(functions, time, motion.outputs, torque, noise, 3)
    free = ("joint_stiffness", "bending_stiffness", "structural_damping")
    fixed = {"joint_damping": TRUTH["joint_damping"]}
    problem = Problem(simulator, (record,), free=free, fixed=fixed, residual=OutputError(noise=noise))
    near = {"joint_stiffness": 1.2, "bending_stiffness": 0.14, "structural_damping": 0.3}
    by_ipopt = identify(problem, Ipopt(), start=near)
    check(by_ipopt)
    other = identify(problem, LeastSquares(), start=near)
    np.testing.assert_allclose(by_ipopt.values, other.values, rtol=1e-5)


@pytest.mark.shared
@pytest.mark.compiler
def test_resonances_of_a_measured_arm(shared: Path) -> None:
    """DaISy 96-009, a flexible robot arm: torque in, acceleration out, 1,024 samples of unknown period (here 1 s)."""
    torque, acceleration = np.loadtxt(shared / "data" / "daisy_robot_arm" / "robot_arm.dat").T
    record = Record(
        np.arange(1024.0),
        {"torque": torque, "acceleration": acceleration},
        {"torque": "N*m", "acceleration": "m/s^2"},
    )
    functions = lower(make_modal_response())
    simulator = build_simulator(discretise(functions, RungeKutta4(substeps=2)))
    free = (*functions.labels("p"), *(f"x0:{name}" for name in functions.labels("x")))
    start = {"direct_gain": 0.0, "gain_1": -0.3, "gain_2": 0.3}
    start |= {"frequency_1": 2.0 * np.pi * 0.0576, "frequency_2": 2.0 * np.pi * 0.126}
    problem = Problem(simulator, (record,), free=free, residual=OutputError())
    estimate = identify(problem, LeastSquares(), start=start)
    assert estimate.success
    # 99.7 % of the acceleration's variance by two modes; more would take the resonances above 0.28
    assert estimate.determination > 0.99
    # the known values are peaks of a spectrum with 1,024 lines: to one line
    for name, share in (("frequency_1", 0.0576), ("frequency_2", 0.126)):
        assert estimate[name] / (2.0 * np.pi) == pytest.approx(share, abs=1.0 / 1024.0)
        assert estimate.deviation(name) < 1e-3 * estimate[name]
    for name in ("damping_ratio_1", "damping_ratio_2"):
        assert 0.003 < estimate[name] < 0.006
        assert estimate.deviation(name) < 0.15 * estimate[name]
