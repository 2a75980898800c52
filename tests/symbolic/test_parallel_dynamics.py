"""Dynamics of the planar robot: the source's equations, reference values, and the general derivation beside the closed one."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator
from mechsmith.codegen.unknowns import eliminate
from mechsmith.symbolic.parallel.dynamics import make_dynamics
from mechsmith.symbolic.parallel.mechanisms import three_chains
from mechsmith.symbolic.parallel.planar import CHAINS, WORKING_MODES
from mechsmith.symbolic.parallel.planar_dynamics import (
    frictions,
    make_planar_dynamics,
    make_planar_inverse_dynamics,
)
from mechsmith.symbolic.verify import verify

FRICTIONLESS = {quantity.name: 0.0 for quantity in frictions()}


@pytest.fixture(scope="module")
def data(reference: Path) -> Any:
    return json.loads((reference / "parallel" / "p1_dynamics.json").read_text())


def test_energy_and_power_of_the_equations_of_motion() -> None:
    assert [(v.identity.name, v.status) for v in verify(make_planar_dynamics()) if not v.as_expected] == []


def test_the_reference_torques(data: Any) -> None:
    functions = lower(make_planar_inverse_dynamics())
    tolerance = data["tolerance"]
    for case in data["cases"]:
        u = [*case["O"], *case["V"], *case["Acc"], 1, 1, 1, 0]
        values = functions.evaluate("output", u=u, p=functions.vector("p"))[:, 0]
        np.testing.assert_allclose(values[:3], case["tau_825"], rtol=tolerance["rel"], atol=tolerance["abs"])
        np.testing.assert_allclose(values[3:], case["F_e"], rtol=tolerance["rel"], atol=tolerance["abs"])
        plain = functions.evaluate("output", u=u, p=functions.vector("p", FRICTIONLESS))[:3, 0]
        np.testing.assert_allclose(
            plain, case["tau_min_norm_no_friction"], rtol=tolerance["rel"], atol=tolerance["abs"]
        )
        preloaded = functions.evaluate("output", u=[*u[:-1], 0.7], p=functions.vector("p"))[:3, 0]
        internal = (preloaded - values[:3]) / 0.7
        # A null vector has free sign.
        np.testing.assert_allclose(abs(internal @ case["null_ST"]), 1.0, rtol=1e-12)


def test_weights_distribute_the_torque() -> None:
    functions = lower(make_planar_inverse_dynamics())
    u = [0.3, 0.26, 0.1, 0.2, 1.0, -2.0, 1, 1, 1, 0]
    even = functions.evaluate("output", u=u, p=functions.vector("p", FRICTIONLESS))[:, 0]
    spared = functions.evaluate("output", u=u, p=functions.vector("p", {**FRICTIONLESS, "weight_1": 900.0}))[
        :, 0
    ]
    assert abs(spared[0]) < 0.01 * abs(even[0])
    np.testing.assert_allclose(spared[3:], even[3:], rtol=1e-13)
    assert np.linalg.norm(spared[:3]) > np.linalg.norm(even[:3])


def simulated(functions: FunctionSet, torque: list[float], start: list[float], p: Any, steps: int) -> Any:
    time = np.linspace(0.0, 0.2, steps + 1)
    simulator = CasadiSimulator(discretise(functions))
    result = simulator.rollout(time, np.tile(torque, (len(time), 1)), np.array(start), np.zeros(0), p)
    assert result.status == ""
    return result


def test_the_reference_motions(data: Any) -> None:
    functions = lower(make_planar_dynamics())
    p = functions.vector("p")
    for name, torque in (("forward", data["forward"]["tau_a"]), ("free_motion", [0.0, 0.0, 0.0])):
        states = np.array(data[name]["states"])
        # The scheme is of fourth order or better: 1 ms at speeds of 4 rad/s leaves some (0.004)^4 = 3e-10 of 0.2 m/s.
        result = simulated(functions, torque, data[name]["states"][0], p, 200)
        np.testing.assert_allclose(result.states[::50], states, atol=data["tolerance"]["forward_abs"])
    energies = result.outputs[:, 0]
    np.testing.assert_allclose(energies, data["free_motion"]["kinetic_energy"][0], rtol=1e-8)


@pytest.mark.parametrize("mode", ["a", "c", "g"])
def test_the_general_derivation_agrees_with_the_closed_one(mode: str) -> None:
    closed, general = lower(make_planar_dynamics()), lower(make_dynamics(three_chains()))
    signs = np.array(WORKING_MODES[mode])
    rng = np.random.default_rng(0)
    p = general.vector("p")
    given = dict(zip(general.labels("p"), p, strict=True))
    inertia = {}
    for i in CHAINS:
        m_a, m_b, r_a, r_b, j_a, j_b, arm = (
            given[f"{name}_{i}"]
            for name in (
                "arm_mass", "distal_mass", "arm_center", "distal_center", "arm_inertia", "distal_inertia", "arm"
            )
        )  # fmt: skip
        inertia |= {
            f"alpha_{i}": j_a + m_a * r_a**2 + m_b * arm**2,
            f"beta_{i}": j_b + m_b * r_b**2,
            f"gamma_{i}": m_b * arm * r_b,
        }
    mode_values = {f"mode_{i}": float(signs[i - 1]) for i in CHAINS}
    p_closed = closed.vector("p", {**inertia, **mode_values})
    bases = np.array([[0.0, 0.25], [0.433, 0.0], [0.433, 0.5]])
    for _ in range(5):
        x = np.array([*rng.uniform([0.27, 0.23], [0.31, 0.27]), *rng.uniform(-0.5, 0.5, 2)])
        torque = rng.normal(size=3)
        offset = x[:2] - bases
        direction, opening = (
            np.arctan2(offset[:, 1], offset[:, 0]),
            np.arccos(np.linalg.norm(offset, axis=1) / 0.488),
        )
        angles = np.column_stack([direction + signs * opening, direction - signs * opening]).reshape(-1)
        # The branch is that of the nominal values, where Newton's method starts.
        start = dict(zip(general.labels("z"), general.vector("z"), strict=True))
        start |= dict(zip([f"{n}_angle_{i}" for i in CHAINS for n in ("arm", "distal")], angles, strict=True))
        branch = with_nominal(general, start)
        rate = eliminate(branch).evaluate("derivative", x=x, u=torque, p=p)[2:, 0]
        matrix = closed.evaluate("mass", x=x, u=torque, p=p_closed)[2:, 2:]
        force = closed.evaluate("derivative", x=x, u=torque, p=p_closed)[2:, 0]
        np.testing.assert_allclose(rate, np.linalg.solve(matrix, force), rtol=1e-9)


def with_nominal(functions: FunctionSet, values: dict[str, float]) -> FunctionSet:
    """Return functions whose unknowns start at other values."""
    unknowns = tuple(dataclasses.replace(v, nominal=values[v.name]) for v in functions.unknowns)
    return dataclasses.replace(functions, unknowns=unknowns)
