"""Motions of flexible links: references, conservation, drift, and a mass matrix that is lost."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import Array, FunctionSet, FunctionSetError
from mechsmith.codegen.held import Held, HeldSimulator, hold
from mechsmith.codegen.integrators import RungeKutta4
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator, Simulator
from mechsmith.symbolic.control.position import make_pd_controller
from mechsmith.symbolic.flexible.beam import make_beam_frequencies

Link = Callable[..., FunctionSet]
Named = Callable[..., Array]
Load = Callable[[str], dict[str, Any]]


def compiled(held: Held, *, sensitivities: bool = False) -> HeldSimulator:
    return held.simulator(
        build_simulator(discretise(held.functions, RungeKutta4()), sensitivities=sensitivities)
    )


@pytest.fixture(scope="module")
def first(link: Link) -> tuple[Held, HeldSimulator]:
    held = hold(link())
    return held, compiled(held)


@pytest.mark.compiler
@pytest.mark.parametrize("order", ["zero", "first", "full4"])
def test_motions_against_the_reference(flexible: Load, named: Named, link: Link, order: str) -> None:
    data = flexible("simulation")
    functions = link(order={"full4": "fourth"}.get(order, order))
    held = hold(functions)
    simulator = compiled(held)
    peaks = {"zero": 6e-2, "first": 4e-3, "full4": 1e-4}
    # the fourth order has ten times the operations, and one case shows that it is right
    for case in data["cases"][1:2] if order == "full4" else data["cases"]:
        beam = {**data["inputs"]["beam"], "k": case["k"]}
        values = dict(zip(functions.labels("p"), named(functions, beam), strict=True))
        values |= {"joint_damping": case["c_joint"], "structural_damping": case["alpha2"]}
        step = 1e-4
        time = step * np.arange(20001)
        torque = np.where(time < case["Tp"], case["amp"] * np.sin(2.0 * np.pi * time / case["Tp"]), 0.0)
        motion = simulator.rollout(
            time, torque[:, None], np.zeros(10), np.zeros(0), functions.vector("p", values)
        )
        assert not motion.status
        at = np.rint(np.array(case["t"]) / step).astype(int)
        outputs = dict(zip(functions.labels("y"), motion.outputs[at].T, strict=True))
        expected, tolerance = case["models"][order], data["tolerance"]["model_abs"]
        np.testing.assert_allclose(outputs["hub_angle"], expected["theta"], rtol=0, atol=tolerance)
        np.testing.assert_allclose(motion.states[at, 1:5], expected["q2"], rtol=0, atol=tolerance)
        np.testing.assert_allclose(outputs["tip_deflection"], expected["tip_uy"], rtol=0, atol=tolerance)
        if order != "zero":
            np.testing.assert_allclose(-outputs["tip_shortening"], expected["tip_ux"], rtol=0, atol=tolerance)
        if "exudyn_ANCF16" in case and case["k"] == 1.0:
            # values recorded from an independent multibody code (ANCF cable elements)
            truth = np.array(case["exudyn_ANCF16"]["tip_uy"])
            error = np.abs(outputs["tip_deflection"] - truth).max() / np.abs(truth).max()
            assert error < peaks[order]


@pytest.mark.parametrize("order", ["zero", "first", "full4"])
def test_energy_and_angular_momentum_are_conserved(
    flexible: Load, named: Named, link: Link, order: str
) -> None:
    free = flexible("simulation")["free_motion"]
    functions = link(free["N"], order={"full4": "fourth"}.get(order, order))
    held = hold(functions)
    beam = {**flexible("simulation")["inputs"]["beam"], "k": free["k"]}
    p = held.parameters(named(functions, beam))
    inner = held.functions

    def rate(_: float, x: Array) -> Array:
        mass = inner.evaluate("mass", x, u=[0.0], p=p)
        return np.linalg.solve(mass, inner.evaluate("derivative", x, u=[0.0], p=p)[:, 0])

    start, expected = np.array(free["y0"]), free["models"][order]
    times = np.array(free["t"])
    solution = solve_ivp(rate, (0.0, times[-1]), start, method="DOP853", rtol=1e-11, atol=1e-13, t_eval=times)
    outputs = np.array([inner.evaluate("output", x, u=[0.0], p=p)[:, 0] for x in solution.y.T])
    values = dict(zip(inner.labels("y"), outputs.T, strict=True))
    for name in ("energy", "angular_momentum"):
        np.testing.assert_allclose(values[name], values[name][0], rtol=1e-9)
    np.testing.assert_allclose(values["energy"], expected["energy"], rtol=1e-9)
    np.testing.assert_allclose(values["hub_angle"], expected["theta"], rtol=0, atol=1e-7)
    np.testing.assert_allclose(values["tip_deflection"], expected["tip_uy"], rtol=0, atol=1e-7)


@pytest.mark.compiler
def test_drift_of_the_generated_code_falls_with_the_step(first: tuple[Held, HeldSimulator]) -> None:
    held, simulator = first
    functions = held.original
    start = np.zeros(10)
    start[1:3] = 0.04, 0.002
    place = functions.labels("y").index("energy")
    drifts = []
    for step in (1e-3, 5e-4):
        time = np.arange(0.0, 1.0 + step / 2.0, step)
        motion = simulator.rollout(time, np.zeros((len(time), 1)), start, np.zeros(0), functions.vector("p"))
        energy = motion.outputs[:, place]
        drifts.append(np.abs(energy / energy[0] - 1.0).max())
    # amplitudes of RK4 decay by (w h)^6/144 a step, so the energy drifts with the fifth power of the step
    assert drifts[0] < 1e-5
    assert drifts[0] / drifts[1] == pytest.approx(32.0, rel=0.1)


def test_casadi_and_generated_c_agree(first: tuple[Held, HeldSimulator]) -> None:
    held, simulator = first
    other = held.simulator(CasadiSimulator(simulator.inner.discretisation))  # type: ignore[attr-defined]
    time = 1e-3 * np.arange(200)
    torque = 0.01 * np.sin(9.0 * time)
    arguments = (time, torque[:, None], np.zeros(10), np.zeros(0), held.original.vector("p"))
    one, two = simulator.rollout(*arguments), other.rollout(*arguments)
    np.testing.assert_allclose(one.outputs, two.outputs, rtol=1e-10, atol=1e-15)


@pytest.mark.compiler
def test_a_lost_mass_matrix_stops_with_a_message(first: tuple[Held, HeldSimulator]) -> None:
    held, simulator = first
    start = np.zeros(10)
    start[2] = 0.3
    time = 1e-4 * np.arange(100)
    simulators: list[Simulator] = [
        simulator,
        held.simulator(CasadiSimulator(simulator.inner.discretisation)),  # type: ignore[attr-defined]
    ]
    for one in simulators:
        motion = one.rollout(time, np.zeros((100, 1)), start, np.zeros(0), held.original.vector("p"))
        assert motion.status == "the mass matrix is not positive definite at t = 0.0001 s (sample 1)"
        assert np.isfinite(motion.states[0]).all()
        assert np.isnan(motion.states[1:]).all()


@pytest.mark.compiler
def test_sensitivities_go_through_the_roots(link: Link) -> None:
    functions = link(1)
    held = hold(functions)
    simulator = compiled(held, sensitivities=True)
    time = 2e-3 * np.arange(300)
    torque = 0.01 * np.sin(9.0 * time)
    p = functions.vector("p", {"joint_stiffness": 0.7, "joint_damping": 1e-3, "structural_damping": 0.1})
    rest = (time, torque[:, None], np.zeros(4), np.zeros(0))
    exact = simulator.rollout_sensitivities(*rest, p).by_parameters
    for i, label in enumerate(functions.labels("p")):
        step = 1e-5 * max(p[i], 1e-3)
        up, down = p.copy(), p.copy()
        up[i] += step
        down[i] -= step
        difference = (simulator.rollout(*rest, up).outputs - simulator.rollout(*rest, down).outputs) / (
            2.0 * step
        )
        # rounding over the step, 1e-11 of the largest, and step^2 times a third derivative
        np.testing.assert_allclose(
            difference, exact[:, :, i], atol=3e-7 * np.abs(exact[:, :, i]).max(), err_msg=label
        )
    batch, statuses = simulator.rollout_batch(*rest, np.stack([p, 1.1 * p]))
    np.testing.assert_array_equal(batch[0], simulator.rollout(*rest, p).outputs)
    assert statuses == ("", "")


def test_what_can_not_be_held_is_told() -> None:
    with pytest.raises(FunctionSetError, match="no unknowns to hold"):
        hold(lower(make_pd_controller()))
    functions = lower(make_beam_frequencies(modes=1))
    with pytest.raises(FunctionSetError, match="no root_1 solve the constraints"):
        hold(functions).parameters(functions.vector("p", {"joint_stiffness": float("nan")}))
