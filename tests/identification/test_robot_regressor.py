"""Base parameters of serial robots: closed forms of a planar arm, a length that stays open, torques that do not change."""

import math

import numpy as np
import pytest

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification.base_parameters import BaseParameters, base_parameters
from mechsmith.identification.serial.regressor import (
    RegressorError,
    inertial_names,
    motion_inputs,
    random_motion,
    torque_regressor,
    with_effect,
)
from mechsmith.symbolic.serial.chain import DHRow, Step, dh_chain
from mechsmith.symbolic.serial.dynamics import make_inverse_dynamics
from mechsmith.symbolic.serial.robots import irb6700


def reduced(functions: FunctionSet, joints: int, **parameters: float) -> BaseParameters:
    inputs = motion_inputs(functions, *random_motion(joints, 200, rng=np.random.default_rng(0)))
    names = inertial_names(functions)
    whole = torque_regressor(functions, inputs, names, parameters=parameters).reshape(-1, len(names))
    kept = with_effect(whole, names)
    return base_parameters(whole[:, [names.index(name) for name in kept]], kept)


@pytest.fixture(scope="module")
def arm() -> FunctionSet:
    base = (Step("rotate", "x", math.pi / 2, "upright"),)
    rows = [DHRow(), DHRow(a=0.5)]
    return lower(make_inverse_dynamics(dh_chain("arm", rows, convention="modified", base=base)))


@pytest.mark.parametrize("length", [0.5, 0.8])
def test_a_planar_arm_by_hand_whatever_its_length(arm: FunctionSet, length: float) -> None:
    """Six: first moments and inertia about z of both links, link 2's mass at the end of link 1.

    The length stays a parameter of the functions, and the grouping follows it.
    """
    assert "a_2" in arm.labels("p")
    expected = [
        f"first_x_1 + {length:g} mass_2",
        "first_y_1",
        f"inertia_zz_1 + {length**2:g} mass_2",
        "first_x_2",
        "first_y_2",
        "inertia_zz_2",
    ]
    assert sorted(reduced(arm, 2, a_2=length).expressions()) == sorted(expected)


def test_torques_do_not_change_and_the_robot_has_36() -> None:
    functions = lower(make_inverse_dynamics(irb6700()))
    found = reduced(functions, 6)
    # One for the link that turns about the vertical, seven for each of the others (Gautier and Khalil 1990).
    assert found.rank == 36
    assert "first_z_2" not in found.names  # axes 2 and 3 are parallel: it cancels, to rounding
    rng = np.random.default_rng(1)
    inputs = motion_inputs(functions, *random_motion(6, 20, rng=rng))
    whole = torque_regressor(functions, inputs, found.names)
    values = rng.normal(size=len(found.names))
    torques = whole @ values
    by_base = whole[:, :, [found.names.index(name) for name in found.independent]] @ found.values(values)
    assert by_base == pytest.approx(torques, rel=1e-9, abs=1e-9 * np.abs(torques).max())


def test_errors_say_what_is_wrong(arm: FunctionSet) -> None:
    with pytest.raises(RegressorError, match="no parameter mass_9"):
        torque_regressor(arm, np.zeros((1, 6)), ["mass_9"])
    with pytest.raises(RegressorError, match="input 'q_2' is no motion"):
        motion_inputs(arm, *np.zeros((3, 4, 1)))
