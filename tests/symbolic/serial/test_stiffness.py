"""Deflection under a load: reference values K04 and K05 four ways, laws, and the exact equilibrium."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mechsmith.codegen.build import build
from mechsmith.codegen.lower import lower
from mechsmith.codegen.unknowns import eliminate
from mechsmith.identification.serial.stiffness_maps import geometric_change
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.serial.chain import Chain, Joint, translation_steps
from mechsmith.symbolic.serial.equilibrium import make_compensation, make_equilibrium
from mechsmith.symbolic.serial.kinematics import make_pose
from mechsmith.symbolic.serial.robots import irb6700
from mechsmith.symbolic.serial.stiffness import make_compliance, make_deflection, make_gauge

CHAIN = irb6700()
XYZ = ("x", "y", "z")


def parameters(entry: dict[str, Any], stiffness: list[float], point: list[float]) -> dict[str, float]:
    values = {f"compliance_{i + 1}": 1.0 / k for i, k in enumerate(stiffness)}
    values |= {f"loaded_{axis}": v for axis, v in zip(XYZ, point, strict=True)}
    return values | {f"measured_{axis}": v for axis, v in zip(XYZ, entry["p_m_m"], strict=True)}


def inputs(entry: dict[str, Any]) -> list[float]:
    return [*np.radians(entry["q_deg"]), *entry["pulley_m"], entry["mass_kg"]]


@pytest.mark.parametrize("place", ["p_f", "p_f_on_axis"])
@pytest.mark.parametrize("stiffness", ["K", "K2"])
def test_deflections_of_the_reference(
    known: Callable[[str], Any], four_ways: Callable[..., Any], place: str, stiffness: str
) -> None:
    data = known("K04")
    entries = [entry for entry in data["expected"] if entry["force_point"] == place]
    assert len(entries) == 24
    values = parameters(data, data[stiffness], data[f"{place}_m"])
    model = make_deflection(CHAIN)
    names = [element.name for quantity in model.outputs for element in quantity.elements]
    tolerance = data["tolerance"]
    found = four_ways(model, np.array([inputs(entry) for entry in entries]), values)

    def close(way: str, prefix: str, key: str, absolute: float) -> bool:
        columns = [i for i, name in enumerate(names) if name.rpartition("_")[0] == prefix]
        wanted = np.array([entry[key] for entry in entries])
        return np.allclose(found[way][:, columns], wanted, rtol=tolerance["rel"], atol=absolute)

    for way in found:
        assert close(way, "torque", "tau", tolerance["tau_abs"]), way
        suffix = "" if stiffness == "K" else "_K2"
        assert close(way, "deflection", f"Y_flange_axes{suffix}_m", tolerance["Y_abs_m"]), way
        if stiffness == "K":
            # A torque of 1e-10 N m at the softest joint, 14e3 N m/rad, is 7e-15 rad.
            assert close(way, "joint_deflection", "dq", 1e-14), way
            assert close(way, "base_deflection", "Y_base_axes_m", tolerance["Y_abs_m"]), way
        if place == "p_f_on_axis":
            assert np.abs(found[way][:, names.index("torque_6")]).max() < tolerance["tau_abs"], way


def test_regressor_of_the_reference(known: Callable[[str], Any]) -> None:
    """One gauge along each flange axis: the derivative by the compliances, exact in CasADi."""
    data = known("K04")
    functions = lower(make_gauge(CHAIN)).with_jacobians(("output", "p"))
    places = [functions.labels("p").index(f"compliance_{i + 1}") for i in range(6)]
    for entry in data["expected"]:
        values = parameters(data, data["K"], data[f"{entry['force_point']}_m"])
        known_names = functions.labels("p")
        p = functions.vector("p", {n: v for n, v in values.items() if n in known_names})
        u = [[*inputs(entry), *data["p_m_m"], *row, 0.0] for row in np.eye(3)]
        found = functions.batch("output_p", u=u, p=p)[:, 0, places]
        assert np.allclose(found, entry["regressor_flange"], rtol=1e-10, atol=1e-10)


def test_a_gauge_reads_the_deflection_along_it_and_what_backlash_left(known: Callable[[str], Any]) -> None:
    data = known("K04")
    entry = data["expected"][3]
    functions = lower(make_gauge(CHAIN))
    values = parameters(data, data["K"], data[f"{entry['force_point']}_m"])
    p = functions.vector("p", {n: v for n, v in values.items() if n in functions.labels("p")})
    direction = np.array([2.0, -1.0, 2.0]) / 3.0
    reading = functions.evaluate("output", u=[*inputs(entry), *data["p_m_m"], *direction, 3e-6], p=p)[0, 0]
    assert reading == pytest.approx(direction @ entry["Y_flange_axes_m"] + 3e-6, rel=1e-10)


def wrench_inputs(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.0, 1.0, 6) + 1.2 * np.eye(6)[4]
    return np.concatenate([q, rng.uniform(-400.0, 400.0, 3), rng.uniform(-50.0, 50.0, 3)])


def test_compliance_is_the_deflection_by_unit_wrenches() -> None:
    compliance, deflection = lower(make_compliance(CHAIN)), lower(make_deflection(CHAIN, load="wrench"))
    u = wrench_inputs(1)
    point = (0.1, -0.05, 0.2)
    at = {f"point_{a}": v for a, v in zip(XYZ, point, strict=True)}
    c = {f"compliance_{i + 1}": 1e-6 * (i + 1) for i in range(6)}
    blocks = compliance.evaluate("output", u=u[:6], p=compliance.vector("p", at | c))[:, 0].reshape(3, 3, 3)
    whole = np.block([[blocks[0], blocks[1]], [blocks[1].T, blocks[2]]])
    both = {f"{n}_{a}": v for n in ("loaded", "measured") for a, v in zip(XYZ, point, strict=True)}
    p = deflection.vector("p", both | c)
    labels = deflection.labels("y")
    rows = [labels.index(f"{name}_{a}") for name in ("base_deflection", "rotation") for a in XYZ]
    for unit in range(6):
        wrench = np.eye(6)[unit]
        found = deflection.evaluate("output", u=[*u[:6], *wrench], p=p)[rows, 0]
        assert np.allclose(found, whole[:, unit], rtol=1e-12, atol=1e-20)
    assert np.linalg.eigvalsh(whole).min() > 0.0


def test_compliance_is_the_flexure_of_a_hand_made_robot() -> None:
    """A column that turns about z and an arm 2 m long: a side force bends it by L^2 c, by hand."""
    chain = Chain("arm", (Joint("turn", after=translation_steps("arm", 2.0, 0.0, 0.0)),))
    functions = lower(make_compliance(chain))
    p = functions.vector("p", {"compliance_1": 3e-6})
    blocks = functions.evaluate("output", u=[0.0], p=p)[:, 0].reshape(3, 3, 3)
    assert np.allclose(blocks[0], np.diag([0.0, 4.0 * 3e-6, 0.0]), rtol=1e-15, atol=1e-20)
    assert blocks[1][1, 2] == pytest.approx(2.0 * 3e-6)


def force_of(entry: dict[str, Any]) -> np.ndarray:
    """Return the rope's force in the unloaded pose, from its own description."""
    pose = lower(make_pose(CHAIN))
    flat = pose.evaluate("output", u=np.radians(entry["q_deg"]), p=pose.vector("p"))[:, 0]
    rope = np.array(entry["pulley_m"]) - (flat[9:] + flat[:9].reshape(3, 3) @ entry["p_f_m"])
    return np.asarray(entry["mass_kg"] * 9.80665 * rope / np.linalg.norm(rope))


def test_equilibrium_of_the_reference(known: Callable[[str], Any]) -> None:
    data = known("K05")
    functions = lower(make_equilibrium(CHAIN))
    solved = eliminate(functions)
    p = functions.vector("p", parameters(data, data["K"], data["p_f_m"]))
    u = [*np.radians(data["q_deg"]), *force_of(data), 0.0, 0.0, 0.0]
    expected, tolerance = data["expected"], data["tolerance"]
    found = solved.evaluate("output", u=u, p=p)[:, 0]
    assert np.abs(found - expected["Y_nonlinear_base_m"]).max() < tolerance["Y_nonlinear_abs_m"]
    linear = lower(make_deflection(CHAIN, load="wrench"))
    rows = [linear.labels("y").index(f"base_deflection_{a}") for a in XYZ]
    values = parameters(data, data["K"], data["p_f_m"])
    flat = linear.evaluate("output", u=u, p=linear.vector("p", values))[rows, 0]
    assert np.allclose(flat, expected["Y_linear_base_m"], rtol=tolerance["rel_linear"], atol=1e-16)
    (change,) = geometric_change(linear, solved, [u], values)
    assert change == pytest.approx(expected["rel_difference"], rel=1e-6)


def test_geometric_stiffness_is_what_the_linear_deflection_neglects(known: Callable[[str], Any]) -> None:
    """To first order in the load the equilibrium is (1/c - dtau/dq) delta = tau, with the derivative from CasADi."""
    data = known("K05")
    linear = lower(make_deflection(CHAIN, load="wrench")).with_jacobians(("output", "u"))
    values = parameters(data, data["K"], data["p_f_m"])
    p, u = linear.vector("p", values), [*np.radians(data["q_deg"]), *force_of(data), 0.0, 0.0, 0.0]
    torque = linear.evaluate("output", u=u, p=p)[:6, 0]
    geometric = linear.evaluate("output_u", u=u, p=p)[:6, :6]
    bend = np.linalg.solve(np.diag(data["K"]) - geometric, torque)
    functions = lower(make_equilibrium(CHAIN))
    z = functions.vector("z", {f"joint_deflection_{i + 1}": v for i, v in enumerate(bend)})
    left = functions.evaluate("constraint", z=z, u=u, p=functions.vector("p", values))[:, 0]
    plain = functions.evaluate("constraint", z=torque / data["K"], u=u, p=functions.vector("p", values))[:, 0]
    # What is left is of second order in deflections of 1e-3 rad at most; without the term it is of first order.
    assert np.abs(left).max() < 1e-3 * np.abs(plain).max()


@pytest.mark.compiler
@pytest.mark.parametrize("seed", range(5))
def test_compensation_in_c_takes_the_loaded_robot_where_it_is_wanted(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    compensation = build(
        lower(make_compensation(CHAIN)), cache=tmp_path_factory.getbasetemp() / "compensation"
    )
    equilibrium = lower(make_equilibrium(CHAIN))
    u = wrench_inputs(seed)
    values = parameters(
        {"p_m_m": [0.1, 0.2, 0.3]}, [3.7e6, 6.7e6, 3.3e6, 3.3e5, 6.1e5, 1.4e4], [0.0, -0.05, 0.05]
    )
    known_names = compensation.labels("p")
    p = compensation.vector("p", {n: v for n, v in values.items() if n in known_names})
    command = compensation.evaluate("output", u=u, p=p)[6:, 0]
    assert np.abs(command - u[:6]).max() > 1e-6
    shift = eliminate(equilibrium).evaluate(
        "output", u=[*command, *u[6:]], p=equilibrium.vector("p", values)
    )[:, 0]
    pose = lower(make_pose(CHAIN))

    def place(q: np.ndarray) -> np.ndarray:
        flat = pose.evaluate("output", u=q, p=pose.vector("p"))[:, 0]
        return np.asarray(flat[9:] + flat[:9].reshape(3, 3) @ [0.1, 0.2, 0.3])

    # Positions of 3 m in doubles, and Newton's method to 1e-16 rad: some 1e-15 m.
    assert np.abs(place(command) + shift - place(u[:6])).max() < 1e-13


def test_a_turned_robot_deflects_the_same() -> None:
    """Turn joint 1 and the load with it: the deflection in flange axes does not change."""
    functions = lower(make_deflection(CHAIN, load="wrench"))
    p = functions.vector("p", {f"compliance_{i + 1}": 1e-6 for i in range(6)})
    rows = [functions.labels("y").index(f"deflection_{a}") for a in XYZ]
    u = wrench_inputs(3)
    turn = Rotation.from_euler("z", 0.8).as_matrix()
    turned = np.concatenate([u[:1] + 0.8, u[1:6], turn @ u[6:9], turn @ u[9:]])
    first, second = (functions.evaluate("output", u=v, p=p)[rows, 0] for v in (u, turned))
    assert np.allclose(first, second, rtol=1e-11, atol=1e-17)


def test_a_load_that_is_none() -> None:
    with pytest.raises(ModelError, match="Use rope or wrench"):
        make_deflection(CHAIN, load="weight")  # type: ignore[arg-type]
