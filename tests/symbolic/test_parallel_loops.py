"""Mechanisms as data: closure, Jacobians, rates and energies of every mechanism that is built in, and of a user's own."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.unknowns import UnknownsSolver, eliminate
from mechsmith.symbolic.catalogue import make_model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.parallel.closed_form import make_closed_inverse
from mechsmith.symbolic.parallel.closure import make_closure, make_forward, make_inverse
from mechsmith.symbolic.parallel.dynamics import make_dynamics
from mechsmith.symbolic.parallel.loops import Body, Chain, Joint, Link, Mechanism, Rod, RodMass
from mechsmith.symbolic.parallel.mechanisms import (
    delta,
    five_bar,
    four_bar,
    hexapod,
    length,
    planar_point,
    three_chains,
    three_rrr,
)
from mechsmith.symbolic.parallel.planar import WORKING_MODES

Array = NDArray[np.float64]
ALL = (three_chains, five_bar, four_bar, three_rrr, delta, hexapod)
# Mechanisms whose platform's coordinates can be given.
INVERTIBLE = (three_chains, five_bar, three_rrr, delta, hexapod)
NONE = np.zeros((1, 0))
SLIDER_CRANK = Path(__file__).parents[2] / "examples" / "parallel" / "slider_crank.py"


def solved(functions: FunctionSet, u: Array, start: Array | None = None) -> Array:
    """Return the unknowns, which must be found."""
    found = UnknownsSolver(functions).solve(NONE, NONE, u, functions.vector("p")[None, :], start=start)
    assert found.found.all()
    return found.values


@pytest.mark.parametrize("make", ALL)
def test_mobility(make: Callable[[], Mechanism]) -> None:
    expected = {"three_chains": 2, "five_bar": 2, "four_bar": 1, "three_rrr": 3, "delta": 3, "hexapod": 6}
    assert make().mobility == expected[make().name]


@pytest.mark.parametrize("make", INVERTIBLE)
def test_forward_of_inverse_is_the_pose(make: Callable[[], Mechanism]) -> None:
    mechanism = make()
    inverse, forward = lower(make_inverse(mechanism)), lower(make_forward(mechanism))
    rng = np.random.default_rng(0)
    center = inverse.vector("u")
    poses = center + rng.uniform(-0.02, 0.02, (20, len(center)))
    joints = solved(inverse, poses)
    names = (*inverse.labels("u"), *inverse.labels("z"))
    everything = np.hstack([poses, joints])
    motors = everything[:, [names.index(n) for n in forward.labels("u")]]
    wanted = everything[:, [names.index(n) for n in forward.labels("z")]]
    start = wanted + rng.uniform(-0.01, 0.01, wanted.shape)
    # Newton ends at a relative change of 1e-12; the largest condition (hexapod) is below 100.
    np.testing.assert_allclose(solved(forward, motors, start), wanted, atol=1e-10)


@pytest.mark.parametrize("mode", WORKING_MODES)
def test_every_branch_of_the_three_chains_comes_from_its_start(mode: str) -> None:
    mechanism = three_chains()
    inverse, forward = lower(make_inverse(mechanism)), lower(make_forward(mechanism))
    bases = np.array([[0.0, 0.25], [0.433, 0.0], [0.433, 0.5]])
    rng = np.random.default_rng(1)
    points = np.array([0.29, 0.25]) + rng.uniform(-0.05, 0.05, (10, 2))
    offset = points[:, None, :] - bases
    reach = np.linalg.norm(offset, axis=2)
    direction = np.arctan2(offset[..., 1], offset[..., 0])
    opening = np.arccos(reach / 0.488)
    signs = np.array(WORKING_MODES[mode])
    arm, distal = direction + signs * opening, direction - signs * opening
    expected = np.stack([arm, distal], axis=2).reshape(10, 6)
    found = solved(inverse, points, expected + rng.uniform(-0.1, 0.1, expected.shape))
    np.testing.assert_allclose(found, expected, atol=1e-11)
    back = np.column_stack([points + 0.005, distal[:, :2], arm[:, 2], distal[:, 2]])
    wanted = np.column_stack([points, distal[:, :2], arm[:, 2], distal[:, 2]])
    order = [
        ("x", "y", "distal_angle_1", "distal_angle_2", "arm_angle_3", "distal_angle_3").index(n)
        for n in forward.labels("z")
    ]
    np.testing.assert_allclose(solved(forward, arm[:, :2], back[:, order]), wanted[:, order], atol=1e-10)


@pytest.mark.parametrize("make", INVERTIBLE)
def test_rates_are_derivatives_along_a_motion(make: Callable[[], Mechanism]) -> None:
    mechanism = make()
    functions = lower(make_inverse(mechanism, rates=2))
    n = len(mechanism.platform)
    rng = np.random.default_rng(2)
    center = functions.vector("u")[:n]
    velocity, acceleration = rng.uniform(-0.3, 0.3, (2, n))
    step = 1e-4
    times = step * np.array([-1.0, 0.0, 1.0])[:, None]
    pose = center + velocity * times + 0.5 * acceleration * times**2
    u = np.hstack([pose, velocity + acceleration * times, np.broadcast_to(acceleration, pose.shape)])
    z = solved(functions, u).reshape(3, 3, -1)
    # Central differences of step 1e-4: truncation step^2/6 times third derivatives of at most some 100; rounding 1e-12.
    np.testing.assert_allclose((z[2, 0] - z[0, 0]) / (2 * step), z[1, 1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose((z[2, 1] - z[0, 1]) / (2 * step), z[1, 2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", INVERTIBLE)
def test_jacobians_by_the_implicit_function_theorem_are_rates_by_rates(make: Callable[[], Mechanism]) -> None:
    mechanism = make()
    positions, rates = lower(make_inverse(mechanism)), lower(make_inverse(mechanism, rates=1))
    u, p = positions.vector("u"), positions.vector("p")
    jacobian = eliminate(positions).evaluate("output_u", u=u, p=p)
    velocity = np.random.default_rng(3).normal(size=len(u))
    found = solved(rates, np.concatenate([u, velocity])[None, :])[0, len(jacobian) :]
    np.testing.assert_allclose(jacobian @ velocity, found, rtol=1e-9, atol=1e-9)


def run(functions: FunctionSet, x: Array, u: Array, duration: float, steps: int) -> tuple[Array, float]:
    """Return the state after a motion under constant motor forces, and the motors' work, by RK4 with the loops closed."""
    closed, p = eliminate(functions), functions.vector("p")
    step, work = duration / steps, 0.0

    def rate(state: Array) -> tuple[Array, float]:
        return (
            closed.evaluate("derivative", x=state, u=u, p=p)[:, 0],
            float(closed.evaluate("output", x=state, u=u, p=p)[2, 0]),
        )

    for _ in range(steps):
        k1, w1 = rate(x)
        k2, w2 = rate(x + 0.5 * step * k1)
        k3, w3 = rate(x + 0.5 * step * k2)
        k4, w4 = rate(x + step * k3)
        x = x + step / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        work += step / 6.0 * (w1 + 2 * w2 + 2 * w3 + w4)
    return x, work


def energy(functions: FunctionSet, x: Array, u: Array) -> float:
    outputs = eliminate(functions).evaluate("output", x=x, u=u, p=functions.vector("p"))
    return float(outputs[0, 0] + outputs[1, 0])


@pytest.mark.parametrize("make", ALL)
def test_energy_balance_along_a_motion(make: Callable[[], Mechanism]) -> None:
    functions = lower(make_dynamics(make()))
    rng = np.random.default_rng(4)
    u = 0.2 * rng.normal(size=functions.size("u"))
    x = functions.vector("x")
    half = len(x) // 2
    x[half:] = 0.2 * rng.normal(size=half)
    errors = []
    for steps in (8, 16):
        end, work = run(functions, x, u, 0.05, steps)
        errors.append(abs(energy(functions, end, u) - energy(functions, x, u) - work))
    scale = max(abs(work), abs(energy(functions, end, u) - energy(functions, x, u)), 1e-3)
    # RK4 has fourth order: half the step leaves a sixteenth, unless both are rounding; a missing term leaves 1e-2.
    assert errors[1] <= max(errors[0] / 8.0, 1e-12)
    assert errors[1] < 1e-6 * scale


@pytest.mark.parametrize("make", [five_bar, three_rrr, delta, hexapod])
def test_inverse_dynamics_undo_forward_dynamics(make: Callable[[], Mechanism]) -> None:
    mechanism = make()
    platform = tuple(joint.coordinate for joint in mechanism.platform)
    forward = lower(make_dynamics(mechanism, independent=platform))
    inverse = lower(make_dynamics(mechanism, independent=platform, problem="inverse"))
    rng = np.random.default_rng(5)
    x = forward.vector("x")
    half = len(x) // 2
    x[half:] = rng.normal(size=half)
    forces = rng.normal(size=forward.size("u"))
    rate = eliminate(forward).evaluate("derivative", x=x, u=forces, p=forward.vector("p"))[:, 0]
    outputs = eliminate(inverse).evaluate("output", u=np.concatenate([x, rate[half:]]), p=inverse.vector("p"))
    np.testing.assert_allclose(outputs[3:, 0], forces, rtol=1e-9, atol=1e-9)


def test_a_mechanism_in_a_users_file() -> None:
    assert len(SLIDER_CRANK.read_text().splitlines()) <= 30
    kinematics = lower(make_model(f"{SLIDER_CRANK}:make_slider_crank_kinematics"))
    angle, rate = 0.7, 3.0
    stroke, speed, _ = solved(kinematics, np.array([[angle, rate, 0.0]]))[0]
    root = np.sqrt(0.2**2 - (0.05 * np.sin(angle)) ** 2)
    assert stroke == pytest.approx(0.05 * np.cos(angle) + root, rel=1e-12)
    assert speed == pytest.approx(
        -0.05 * rate * np.sin(angle) * (1.0 + 0.05 * np.cos(angle) / root), rel=1e-12
    )
    dynamics = lower(make_model(f"{SLIDER_CRANK}:make_slider_crank"))
    x, u = np.array([0.8, 2.0]), np.array([0.3])
    end, work = run(dynamics, x, u, 0.1, 40)
    # RK4 of fourth order: with steps of 5, 2.5 and 1.25 ms the errors are 1.0e-6, 7e-8 and 4e-9 of the work.
    assert energy(dynamics, end, u) - energy(dynamics, x, u) == pytest.approx(work, rel=1e-6)


def test_errors_say_what_is_allowed() -> None:
    mechanism = five_bar()
    with pytest.raises(ModelError, match=r"1 coordinates are given .* Give 2\."):
        make_closure(mechanism, given=("x",))
    with pytest.raises(ModelError, match=r"'w' is no coordinate\. It has: x, y, arm_angle_1"):
        make_closure(mechanism, given=("x", "w"))
    with pytest.raises(ModelError, match="rates is 3"):
        make_closure(mechanism, given=("x", "y"), rates=3)
    with pytest.raises(ModelError, match="3 motors move 2 degrees of freedom"):
        make_dynamics(three_chains(), problem="inverse")
    with pytest.raises(ModelError, match="nominal is 0"):
        Joint("q", nominal=0.0)
    with pytest.raises(ModelError, match="kind is 'screw'"):
        Joint("q", "screw")


def test_a_mechanism_that_contradicts_itself_is_refused() -> None:
    chain = Chain("one", (Joint("q", actuated=True), Link(("arm", 0))), rod=Rod("rod"))
    parameters = (length("arm", 0.2), length("rod", 0.3))
    with pytest.raises(ModelError, match="'x' occurs twice"):
        Mechanism("double", (*planar_point(0.1, 0.1), *planar_point(0.2, 0.2)), (chain,), parameters)
    with pytest.raises(ModelError, match="a body is on 'elbow'"):
        Mechanism("m", planar_point(0.1, 0.1), (chain,), parameters, bodies=(Body("elbow", "arm"),))
    with pytest.raises(ModelError, match="chain 'two' of a rod's mass has no rod"):
        Mechanism("m", planar_point(0.1, 0.1), (chain,), parameters, bodies=(RodMass("two", "arm"),))
    with pytest.raises(ModelError, match="dynamics need bodies"):
        make_dynamics(Mechanism("m", planar_point(0.1, 0.1), (chain,), parameters), independent=("x", "y"))


@pytest.mark.parametrize("make", INVERTIBLE)
def test_closed_forms_close_the_loops_in_every_branch(make: Callable[[], Mechanism]) -> None:
    mechanism = make()
    closed, inverse = lower(make_closed_inverse(mechanism)), lower(make_inverse(mechanism))
    forward = lower(make_forward(mechanism))
    n = len(mechanism.platform)
    rng = np.random.default_rng(6)
    poses = inverse.vector("u") + rng.uniform(-0.02, 0.02, (20, n))
    count = closed.size("u") - n
    for branch in itertools.product((1.0, -1.0), repeat=count):
        u = np.column_stack([poses, np.tile(branch, (20, 1))])
        joints = closed.batch("output", u=u, p=closed.vector("p"))[:, :, 0]
        order = [closed.labels("y").index(f"{name}_solved") for name in inverse.labels("z")]
        residual = inverse.batch("constraint", z=joints[:, order], u=poses, p=inverse.vector("p"))
        # Sums of a few terms of order 1.
        assert np.abs(residual).max() < 1e-14
        # Back again: forward(inverse(x)) = x from a start a millimetre away.
        names = (*inverse.labels("u"), *inverse.labels("z"))
        everything = np.hstack([poses, joints[:, order]])
        wanted = everything[:, [names.index(name) for name in forward.labels("z")]]
        motors = everything[:, [names.index(name) for name in forward.labels("u")]]
        found = UnknownsSolver(forward).solve(
            NONE, NONE, motors, forward.vector("p")[None, :], start=wanted + 1e-3
        )
        assert found.found.all()
        np.testing.assert_allclose(found.values, wanted, atol=1e-9)


def test_a_chain_without_closed_form_is_refused() -> None:
    with pytest.raises(ModelError, match="no closed form is known for chain 'crank'"):
        make_closed_inverse(four_bar())
