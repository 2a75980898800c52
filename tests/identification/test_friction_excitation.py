"""Jerk-limited motions: the reference trajectories, limits that can't be reached, and the refined grid."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechsmith.identification.excitation import Dwell, ExcitationError, Move, Trajectory


@pytest.fixture(scope="module")
def data(reference: Path) -> dict[str, Any]:
    return json.loads((reference / "friction" / "L00_parameter_sets.json").read_text())


@pytest.mark.parametrize("name", ["T1", "T2"])
def test_reference_trajectories(data: dict[str, Any], name: str) -> None:
    expected = data["trajectories"][name]
    trajectory = Trajectory.from_plan(expected["plan"])
    tolerance = data["tolerance"]
    assert trajectory.duration == pytest.approx(expected["total_time"], rel=tolerance["rel"])
    assert len(trajectory.breakpoints) == len(expected["segments"]) + 1
    for row in expected["samples"]:
        found = trajectory.at(row["t"])
        for value, key in zip(found[:3], "qva", strict=True):
            assert float(value) == pytest.approx(row[key], rel=tolerance["rel"], abs=tolerance["abs"])
    for i, segment in enumerate(expected["segments"]):
        middle = trajectory.at(segment["t0"] + 0.5 * segment["T"])
        assert float(middle.jerk) == pytest.approx(segment["jerk"], abs=1e-12), i


@given(
    st.floats(-3.0, 3.0).filter(lambda d: abs(d) > 1e-4),
    st.floats(0.01, 3.0),
    st.floats(0.05, 20.0),
    st.floats(0.5, 500.0),
)
def test_a_move_keeps_its_limits_and_gets_there(d: float, v: float, a: float, j: float) -> None:
    trajectory = Trajectory((Move(d, v, a, j),), start=0.25)
    time = np.linspace(0.0, trajectory.duration, 501)
    motion = trajectory.at(time)
    # rounding of sums of seven terms of the limits' size
    assert np.abs(motion.velocity).max() <= v * (1.0 + 1e-9)
    assert np.abs(motion.acceleration).max() <= a * (1.0 + 1e-9)
    assert np.abs(motion.jerk).max() <= j * (1.0 + 1e-9)
    assert motion.position[-1] == pytest.approx(0.25 + d, abs=1e-12)
    # just before the end the polynomial itself, not the table's last row, is at rest where it was to go
    last = trajectory.at(trajectory.duration * (1.0 - 1e-9))
    assert float(last.position) == pytest.approx(0.25 + d, abs=1e-9 * (1.0 + abs(d)))
    # 1e-9 of the duration before the end the velocity is below A times that
    assert abs(float(last.velocity)) < 1e-6 * v + 1e-8 * a


def test_a_short_move_gives_way_in_acceleration_first() -> None:
    # D = 2 A^3 / J^2 with J = 16 and D = 1 / 4: A = (D J^2 / 2)^(1/3) = 32^(1/3), V = A^2 / J
    velocity, acceleration = Move(0.25, 10.0, 10.0, 16.0).reached
    assert acceleration == pytest.approx(32.0 ** (1.0 / 3.0))
    assert velocity == pytest.approx(acceleration**2 / 16.0)
    # A = sqrt(V J) where the velocity is reached before the acceleration
    assert Move(100.0, 1.0, 10.0, 4.0).reached == pytest.approx((1.0, 2.0))


def test_derivatives_are_those_of_the_position() -> None:
    trajectory = Trajectory((Dwell(0.05), Move(1.5, 1.0, 2.0, 10.0), Move(-0.4, 0.5, 1.0, 5.0)))
    time = np.linspace(0.051, trajectory.duration - 0.001, 400)
    h = 1e-5
    before, after, now = trajectory.at(time - h), trajectory.at(time + h), trajectory.at(time)
    # central differences: h^2 J / 6 for the velocity, at most J h where a breakpoint lies between for the acceleration
    assert (after.position - before.position) / (2 * h) == pytest.approx(now.velocity, abs=1e-9)
    assert (after.velocity - before.velocity) / (2 * h) == pytest.approx(now.acceleration, abs=1e-4)
    turn = trajectory.breakpoints[8]
    rests = np.array(trajectory.standstills)
    assert rests == pytest.approx(np.array([[0.0, 0.05], [turn, turn], [trajectory.duration] * 2]))


def test_the_refined_grid_holds_every_sample_and_breakpoint(data: dict[str, Any]) -> None:
    trajectory = Trajectory.from_plan(data["trajectories"]["T1"]["plan"])
    times, places = trajectory.refined(1e-3)
    assert np.array_equal(times[places], trajectory.times(1e-3))
    assert np.all(np.diff(times) > 0.0)
    for end in np.array(trajectory.standstills).reshape(-1)[1:-1]:
        nearest = np.sort(np.abs(times - end))
        # the first step away from a start is the finest one
        assert nearest[1] == pytest.approx(1e-6, rel=1e-3)
    for breakpoint_ in trajectory.breakpoints[:-1]:
        assert np.abs(times - breakpoint_).min() < 1e-9


def test_a_record_of_the_command() -> None:
    record = Trajectory((Dwell(0.01), Move(0.1, 1.0, 2.0, 10.0))).record(1e-3, motion="linear")
    assert dict(record.units) == {
        "position": "m",
        "velocity": "m/s",
        "acceleration": "m/s^2",
        "jerk": "m/s^3",
    }
    assert record["velocity"][0] == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Move(0.0, 1.0, 1.0, 1.0), "not 0"),
        (lambda: Move(1.0, -1.0, 1.0, 1.0), "velocity is -1.0"),
        (lambda: Dwell(0.0), "positive"),
        (lambda: Trajectory(()), "no parts"),
        (lambda: Trajectory.from_plan([("move", 1.0)]), r"row 0"),
        (lambda: Trajectory((Dwell(1.0),)).times(2.0), "period is 2.0"),
        (lambda: Trajectory((Dwell(1.0),)).record(0.1, motion="cubic"), "'cubic'"),
        (lambda: Trajectory((Dwell(1.0),)).refined(1e-3, first=1.0), "first is 1.0"),
    ],
)
def test_what_can_not_be_carried_out(make: Any, message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        make()
