"""Base parameters: closed forms of a planar arm, a length that stays open, and torques that do not change."""

import math

import numpy as np
import pytest

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification.base_parameters import (
    BaseParameterError,
    BaseParameters,
    base_parameters,
    random_motions,
    torque_regressor,
)
from mechsmith.symbolic.serial.chain import DHRow, Step, dh_chain
from mechsmith.symbolic.serial.dynamics import make_inverse_dynamics
from mechsmith.symbolic.serial.robots import irb6700


def inertial(functions: FunctionSet) -> list[str]:
    return [name for name in functions.labels("p") if name.startswith(("mass", "first", "inertia"))]


def reduced(functions: FunctionSet, **parameters: float) -> BaseParameters:
    names = inertial(functions)
    motions = random_motions(functions, 200, rng=np.random.default_rng(0))
    matrix = torque_regressor(functions, motions, names, parameters=parameters)
    return base_parameters(matrix.reshape(-1, len(names)), names)


@pytest.fixture(scope="module")
def arm() -> FunctionSet:
    base = (Step("rotate", "x", math.pi / 2, "upright"),)
    rows = [DHRow(), DHRow(a=0.5)]
    return lower(make_inverse_dynamics(dh_chain("arm", rows, convention="modified", base=base)))


@pytest.mark.parametrize("length", [0.5, 0.8])
def test_a_planar_arm_by_hand_whatever_its_length(arm: FunctionSet, length: float) -> None:
    """Six: first moments and inertia about z of both links, link 2's mass at the end of link 1.

    The length stays a parameter of the functions; the grouping follows it.
    """
    assert "a_2" in arm.labels("p")
    found = reduced(arm, a_2=length)
    expected = [
        f"first_x_1 + {length:g}*mass_2",
        "first_y_1",
        f"inertia_zz_1 + {length**2:g}*mass_2",
        "first_x_2",
        "first_y_2",
        "inertia_zz_2",
    ]
    assert sorted(found.expressions) == sorted(expected)
    # What no motion shows is no parameter of the model, or has no effect.
    assert {"mass_1", "first_z_1", "first_z_2", "inertia_xx_2"}.isdisjoint(found.names)


def test_torques_do_not_change_and_the_robot_has_36() -> None:
    functions = lower(make_inverse_dynamics(irb6700()))
    found = reduced(functions)
    # One for the link that turns about the vertical, seven for each of the others (Gautier and Khalil 1990).
    assert len(found.leaders) == 36
    assert found.without_effect == ("first_z_2",)  # axes 2 and 3 are parallel
    names, rng = inertial(functions), np.random.default_rng(1)
    motions = random_motions(functions, 20, rng=rng)
    whole = torque_regressor(functions, motions, names)
    values = dict(zip(names, rng.normal(size=len(names)), strict=True))
    torques = whole @ list(values.values())
    by_base = whole[:, :, list(found.leaders)] @ found.values(values)
    assert by_base == pytest.approx(torques, rel=1e-9, abs=1e-9 * np.abs(torques).max())


def test_errors_say_what_is_wrong(arm: FunctionSet) -> None:
    with pytest.raises(BaseParameterError, match="more rows"):
        base_parameters(np.zeros((1, 2)), ["a", "b"])
    with pytest.raises(BaseParameterError, match="no parameter mass_9"):
        torque_regressor(arm, np.zeros((1, 6)), ["mass_9"])
