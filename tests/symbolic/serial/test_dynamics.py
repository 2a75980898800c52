"""Inverse dynamics: closed forms by hand, conventions, flanges that count, and published torques."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.serial.body import Body, body_about_frame
from mechsmith.symbolic.serial.chain import (
    Chain,
    DHRow,
    Joint,
    Step,
    dh_chain,
    rotation_steps,
    translation_steps,
)
from mechsmith.symbolic.serial.dynamics import make_inverse_dynamics, make_sag

GRAVITY = 9.81


def torque(
    functions: FunctionSet, q: object, dq: object, ddq: object, gravity: float = GRAVITY
) -> np.ndarray:
    values = {
        f"{name}_{i}": value
        for name, vector in (("q", q), ("dq", dq), ("ddq", ddq))
        for i, value in enumerate(np.atleast_1d(np.asarray(vector, dtype=float)), start=1)
    }
    u = functions.vector("u", {label: values[label] for label in functions.labels("u")})
    p = functions.vector("p", {"gravity": gravity} if "gravity" in functions.labels("p") else {})
    return functions.evaluate("output", u=u, p=p)[:, 0]


def planar_arm(convention: str) -> Chain:
    """Two links of 0.5 and 0.4 m in a vertical plane, y up."""
    lengths = (0.5, 0.4)
    base = (Step("rotate", "x", math.pi / 2, "upright"),)
    if convention == "standard":
        return dh_chain("arm", [DHRow(a=a) for a in lengths], convention="standard", base=base)
    rows = [DHRow(), DHRow(a=lengths[0])]
    tool = (Step("translate", "x", lengths[1], "tip"),)
    return dh_chain("arm", rows, convention="modified", base=base, tool=tool)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_planar_arm_by_hand_in_both_conventions(convention: str) -> None:
    """Rods of 3 and 2 kg, uniform: the textbook's equations. tau2 is not 0 in either convention."""
    m1, m2, l1, l2 = 3.0, 2.0, 0.5, 0.4
    # The link's frame is at its end in the standard convention, and at its joint in the modified one.
    place = (-0.5, -0.5) if convention == "standard" else (0.5, 0.5)
    bodies = [
        Body(m, (s * length, 0.0, 0.0), (0.0, m * length**2 / 12, m * length**2 / 12, 0.0, 0.0, 0.0))
        for m, s, length in zip((m1, m2), place, (l1, l2), strict=True)
    ]
    functions = lower(make_inverse_dynamics(planar_arm(convention), bodies))
    q, dq, ddq = (0.3, 0.8), (1.1, -0.7), (0.5, 2.0)
    c2, s2, c1, c12 = math.cos(q[1]), math.sin(q[1]), math.cos(q[0]), math.cos(sum(q))
    i1, i2, k = m1 * l1**2 / 3 + m2 * l1**2, m2 * l2**2 / 3, m2 * l1 * l2 / 2
    expected = (
        (i1 + i2 + 2 * k * c2) * ddq[0]
        + (i2 + k * c2) * ddq[1]
        - k * s2 * (2 * dq[0] * dq[1] + dq[1] ** 2)
        + (m1 * l1 / 2 + m2 * l1) * GRAVITY * c1
        + m2 * l2 / 2 * GRAVITY * c12,
        (i2 + k * c2) * ddq[0] + i2 * ddq[1] + k * s2 * dq[0] ** 2 + m2 * l2 / 2 * GRAVITY * c12,
    )
    assert torque(functions, q, dq, ddq) == pytest.approx(expected, rel=1e-12)


def test_a_flange_on_a_fixed_joint_counts() -> None:
    """13 kg half a metre behind the last moving joint: m g l by hand."""
    chain = Chain(
        "arm",
        (
            Joint("turn", before=(Step("rotate", "x", -math.pi / 2, "lie"),)),
            Joint("weld", "fixed", translation_steps("weld", 0.5, 0.0, 0.0)),
        ),
    )
    functions = lower(make_inverse_dynamics(chain, [Body(), Body(13.0)], static=True))
    assert torque(functions, 0.0, 0.0, 0.0) == pytest.approx([-13.0 * GRAVITY * 0.5], rel=1e-12)
    with pytest.raises(ModelError, match="1 bodies for 2 joints"):
        make_inverse_dynamics(chain, [Body()])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_axis_that_points_backwards(sign: float) -> None:
    chain = Chain("arm", (Joint("turn", axis=(0.0, 0.0, sign)),), base=rotation_steps("base", 0.7, 0.0, 0.0))
    functions = lower(
        make_inverse_dynamics(chain, [Body(2.0, (0.4, 0.0, 0.0), (0.0, 0.1, 0.1, 0.0, 0.0, 0.0))])
    )
    # d/dq of m g z of the centre of mass, z = 0.4 sin(sign q) sin(0.7)
    gravity = 2.0 * GRAVITY * 0.4 * math.sin(0.7) * sign * math.cos(sign * 0.5)
    inertia = (0.1 + 2.0 * 0.4**2) * 3.0
    assert torque(functions, 0.5, 1.0, 3.0) == pytest.approx([gravity + inertia], rel=1e-12)


def test_inertia_about_centre_and_frame_of_a_rod() -> None:
    """A rod of length l about its end: m l^2 / 3, m l^2 / 12 about its middle; signs of the products."""
    about_centre = Body(3.0, (0.5, 0.0, 0.0), (0.0, 0.25, 0.25, 0.0, 0.0, 0.0))
    about_end = body_about_frame(3.0, (0.5, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    assert about_end.inertia == pytest.approx(about_centre.inertia, abs=1e-15)
    assert about_centre.values["yy"] == 1.0
    assert about_centre.values["first_x"] == 1.5
    # A point mass at (1, 2, 0): Ixy of the matrix is -m x y.
    assert Body(2.0, (1.0, 2.0, 0.0)).values["xy"] == -4.0


def test_an_inertia_that_no_body_has_is_refused() -> None:
    with pytest.raises(ModelError, match="belong to no distribution of mass"):
        Body(1.0, inertia=(1.0, 1.0, 2.5, 0.0, 0.0, 0.0))
    with pytest.raises(ModelError, match="belong to no distribution of mass"):
        Body(1.0, inertia=(1.0, 1.0, 1.0, 2.0, 0.0, 0.0))
    with pytest.raises(ModelError, match="not negative"):
        Body(-1.0)
    assert Body(0.0, inertia=(0.0, 0.35, 0.0, 0.0, 0.0, 0.0), partial=True).values["yy"] == 0.35


def test_the_sag_of_a_flange_by_hand() -> None:
    """13 kg half a metre from a lying joint of 2e-6 rad/(N m): the tip, 0.5 m out, sinks by c m g l^2."""
    chain = Chain(
        "arm",
        (
            Joint("turn", before=(Step("rotate", "x", -math.pi / 2, "lie"),)),
            Joint("weld", "fixed", translation_steps("weld", 0.5, 0.0, 0.0)),
        ),
    )
    functions = lower(make_sag(chain, [Body(), Body(13.0)]))
    p = functions.vector("p", {"gravity": GRAVITY, "compliance_1": 2e-6})
    found = functions.evaluate("output", u=[0.0], p=p)[:, 0]
    assert found == pytest.approx([0.0, 0.0, -2e-6 * 13.0 * GRAVITY * 0.25], rel=1e-12, abs=1e-18)


SPATIAL = Chain(
    "spatial",
    (
        Joint("turn", before=translation_steps("one", 0.1, 0.0, 0.4)),
        Joint("slide", "prismatic", rotation_steps("two", 1.2, 0.0, 0.2), axis=(0.0, 0.6, 0.8)),
        Joint("bracket", "fixed", translation_steps("bracket", 0.2, 0.1, 0.0)),
        Joint(
            "skewed",
            before=(*translation_steps("three", 0.3, 0.0, 0.0), *rotation_steps("three", 0.4, 0.0, 0.9)),
            axis=(0.6, 0.0, 0.8),
        ),
    ),
)
BODIES = [Body(3.0 + i, (0.1, -0.2 + 0.1 * i, 0.3), (0.2, 0.25, 0.3, 0.01, -0.02, 0.03)) for i in range(4)]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_power_is_the_change_of_energy(seed: int) -> None:
    """tau . dq = d/dt (kinetic + potential energy); the mass matrix is the torque of unit accelerations."""
    functions = DYNAMICS
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.uniform(-1.0, 1.0, (3, 3))

    def energy(t: float) -> float:
        place, speed = q + dq * t + ddq * t**2 / 2, dq + ddq * t
        zero = np.zeros(3)
        mass = np.array([torque(functions, place, zero, one, 0.0) for one in np.eye(3)])
        # Potential energy by integrating the gravity torque along the straight line from q, Gauss-Legendre.
        nodes, weights = np.polynomial.legendre.leggauss(8)
        path = [torque(functions, q + (place - q) * (1 + x) / 2, zero, zero) @ (place - q) / 2 for x in nodes]
        return float(0.5 * speed @ mass @ speed + weights @ path)

    step = 1e-5
    power = (energy(step) - energy(-step)) / (2 * step)
    # Differences: step^2 times third derivatives of some 1e3 W/s^2, and rounding of 1e-15 * 100 J / step.
    assert torque(functions, q, dq, ddq) @ dq == pytest.approx(power, abs=1e-6)


DYNAMICS = lower(make_inverse_dynamics(SPATIAL, BODIES))


def test_mass_matrix_is_symmetric_and_positive() -> None:
    rng = np.random.default_rng(3)
    for q in rng.uniform(-2.0, 2.0, (5, 3)):
        mass = np.array([torque(DYNAMICS, q, np.zeros(3), one, 0.0) for one in np.eye(3)])
        assert mass == pytest.approx(mass.T, abs=1e-12)
        assert np.linalg.eigvalsh(mass).min() > 0.0


@pytest.mark.shared
def test_published_torques_of_the_puma(shared: Path) -> None:
    data = json.loads((shared / "data/robot_descriptions/puma560.json").read_text())
    rows = [DHRow(*row) for row in zip(data["a"], data["alpha"], data["d"], data["offset"], strict=True)]
    bodies = [
        Body(mass, tuple(centre), tuple(inertia), partial=True)
        for mass, centre, inertia in zip(data["m"], data["r"], data["I_xx_yy_zz_xy_yz_xz"], strict=True)
    ]
    functions = lower(make_inverse_dynamics(dh_chain("puma", rows, convention="standard"), bodies))
    published, zero = data["published_checks"], np.zeros(6)
    # Published with four decimals.
    assert torque(functions, published["qn"], zero, zero) == pytest.approx(
        published["gravload_qn"], abs=5.1e-5
    )
    mass = np.array([torque(functions, published["qn"], zero, one, 0.0) for one in np.eye(6)])
    mass += np.diag(np.array(data["Jm"]) * np.array(data["G"]) ** 2)
    assert mass == pytest.approx(np.array(published["M_qn_with_motor_inertia"]), abs=5.1e-5)
