"""What the motion and the encoder can't tell, said before and after; ways compared on a second trajectory; plots."""

import json
from pathlib import Path

import numpy as np
import pytest

from mechsmith.codegen.build import build_simulator, find_compiler
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import Simulator
from mechsmith.identification import LeastSquares, OutputError, Problem, Record, identify
from mechsmith.identification.excitation import Dwell, Move, Trajectory
from mechsmith.identification.friction.checks import (
    Encoder,
    check_encoder,
    check_motion,
    check_record,
    forecast,
    planned_record,
    position_resolution,
)
from mechsmith.identification.friction.plots import plot_hysteresis, plot_over_velocity, plot_residuals
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm
from mechsmith.identification.friction.validation import Joint, compare_ways, coulomb_values
from mechsmith.identification.metrics import MetricError
from mechsmith.identification.problem import ProblemError
from mechsmith.identification.swarm import ParticleSwarm
from mechsmith.symbolic.friction.lugre import make_lugre

T1 = Trajectory((Dwell(0.1), Move(1.5, 1.0, 2.0, 10.0), Dwell(0.1), Move(-1.5, 1.0, 2.0, 10.0), Dwell(0.1)))
T2 = Trajectory((Dwell(0.05), Move(0.9, 0.72, 1.2, 4.0), Dwell(0.1), Move(-0.5, 0.72, 1.2, 4.0), Dwell(0.05)))
TRUE = dict(zip(NAMES, (1e5, 316.22776601683796, 1.0, 0.5, 0.01, 0.1, 0.4, 0.1), strict=True))


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    return build_simulator(discretise(lower(make_lugre())), cache=tmp_path_factory.mktemp("cache"))


def kinds(trajectory: Trajectory, period: float = 1e-3) -> list[str]:
    time = trajectory.times(period)
    return [finding.kind for finding in check_motion(trajectory.at(time).velocity, time)]


def test_a_good_motion_has_no_findings() -> None:
    assert kinds(T1) == []


def test_restarts_in_the_same_direction_carry_nothing() -> None:
    again = Trajectory((Dwell(0.1), Move(0.5, 0.5, 2.0, 10.0), Dwell(0.1), Move(0.5, 0.5, 2.0, 10.0)))
    time = again.times(1e-3)
    (finding,) = check_motion(again.at(time).velocity, time)
    assert finding.kind == "restart"
    assert not finding.severe
    assert "no presliding information" in str(finding)
    # without the fresh start in front of it nothing tells of the bristles at all
    later = time > 0.2
    found = check_motion(again.at(time[later]).velocity, time[later])
    assert [f.kind for f in found] == ["restart", "presliding"]
    assert found[1].severe
    assert found[1].parameters == ("s0", "s1", "vd")


def test_motions_that_lack_something() -> None:
    assert kinds(Trajectory((Dwell(0.1), Move(0.02, 0.03, 0.5, 2.0), Dwell(0.1)))) == ["sliding"]
    # 8,000 rad/s^3: no sample in the zone, and three that slow down below 3 deg/s
    jerky = Trajectory((Dwell(0.1), Move(1.5, 2.0, 50.0, 8000.0), Dwell(0.1)))
    assert kinds(jerky) == ["peak", "presliding"]


@pytest.mark.parametrize(
    ("encoder", "severe"),
    [(Encoder(20), True), (Encoder(24), False), (Encoder(20, gear=100.0), None), (Encoder(32), None)],
)
def test_encoders(encoder: Encoder, severe: bool | None) -> None:
    findings = check_encoder(encoder.resolution, 1e-3, what="it")
    assert [finding.severe for finding in findings] == ([] if severe is None else [severe])
    if severe:
        # 2 pi / 2^20 in a millisecond
        assert "6e-03 per s" in findings[0].message or "0.006 per s" in findings[0].message
        assert "commanded trajectory" in findings[0].message


def test_counts_are_found_in_a_record() -> None:
    command = T1.record(1e-3)
    for bits in (12, 20, 24):
        encoder = Encoder(bits)
        assert position_resolution(encoder.read(command["position"])) == pytest.approx(
            encoder.resolution, rel=1e-6
        )
    drifting = np.cumsum(np.random.default_rng(0).random(1000))
    assert position_resolution(drifting) == 0.0
    # cubics at whole milliseconds are whole multiples of J dt^3 / 6: far too fine to be an encoder's fault
    assert position_resolution(command["position"]) < 2e-9
    assert position_resolution(np.zeros(100)) == 0.0
    measured = Encoder(20).read(command["position"])
    columns = {name: (command[name], command.units[name]) for name in ("position", "velocity")}
    record = Record.from_arrays(command.time, {**columns, "encoder": (measured, "rad")})
    (finding,) = check_record(record, encoder_position="encoder")
    assert finding.severe
    assert "can't resolve presliding" in finding.message
    assert check_record(record, encoder_position="position") == ()


@pytest.mark.compiler
def test_the_forecast_names_vd_before_anything_is_measured(simulator: Simulator, reference: Path) -> None:
    record = planned_record(simulator, T1, TRUE)
    noise = 0.01 * float(np.abs(record["force"]).mean())
    problem = Problem(simulator, (record,), NAMES, OutputError(noise={"force": noise}))
    told = forecast(problem, TRUE)
    assert told.undetermined == ("vd",)
    assert "vd  undetermined: open to infinity" in told.table()
    data = json.loads((reference / "friction" / "L07_sensitivities.json").read_text())
    (row,) = (r for r in data["expected"] if (r["set"], r["trajectory"]) == ("A", "T1"))
    # L07's sensitivities are good to 1e-7, its noise is that of its own record
    assert told.deviations == pytest.approx(row["crlb_rel_std"], rel=1e-5)
    slower = forecast(problem, {**TRUE, "vd": 0.02})
    # (vd / v0)^2: with vd = 2 v0 the damping decays where the bristles still move
    assert "vd" not in slower.undetermined
    with pytest.raises(ProblemError, match="noise"):
        forecast(Problem(simulator, (record,), NAMES, OutputError()), TRUE)
    with pytest.raises(ProblemError, match="no value for vd"):
        planned_record(simulator, T1, {name: value for name, value in TRUE.items() if name != "vd"})


@pytest.mark.compiler
def test_vd_is_open_to_infinity_afterwards(simulator: Simulator) -> None:
    record = planned_record(simulator, T1, {**TRUE, "vd": 0.5})
    noisy = record["force"] + 0.013 * np.random.default_rng(0).standard_normal(len(record))
    columns = {name: (record[name], record.units[name]) for name in ("position", "velocity")}
    measured = Record.from_arrays(record.time, {**columns, "force": (noisy, "N*m")})
    problem = Problem(simulator, (measured,), NAMES, OutputError(), bounds={"vd": (1e-3, 10.0)})
    estimate = identify(problem, FromClosedForm(LeastSquares()))
    assert estimate.success
    assert estimate.undetermined == ("vd",)
    assert estimate.interval("vd")[1] == np.inf
    assert "the data do not determine vd" in estimate.message


@pytest.mark.compiler
def test_ways_on_a_second_trajectory(simulator: Simulator) -> None:
    first, second = (planned_record(simulator, trajectory, TRUE) for trajectory in (T1, T2))
    # twice the inertia, half the friction on the second joint
    rigid = 0.05 * second["acceleration"]
    columns = {name: (second[name], second.units[name]) for name in second.columns}
    loaded = Record.from_arrays(
        second.time, {**columns, "total": (second["force"] + rigid, "N*m"), "rigid": (rigid, "N*m")}
    )
    joints = (Joint("joint 1", second), Joint("joint 2", loaded, "total", "rigid"))
    coulomb = coulomb_values(first)
    table = compare_ways(simulator, joints, {"ours": (TRUE, TRUE), "Coulomb": (coulomb, coulomb)})
    # the same kernels: zero but for nothing
    assert table["ours", "joint 1"].wape == 0.0
    assert table["ours", "joint 2"].wape == pytest.approx(0.0, abs=1e-12)
    assert table["Coulomb", "joint 1"].wape > 5.0
    assert table["Coulomb", "joint 2"].max_percentage_error > 100.0
    text = table.table()
    assert text.splitlines()[0].split() == ["joint", "1", "joint", "2"]
    assert text.splitlines()[1].startswith("ours")
    with pytest.raises(KeyError, match="there is no"):
        _ = table["ours", "joint 3"]
    with pytest.raises(ProblemError, match="2"):
        compare_ways(simulator, joints, {"ours": (TRUE,)})
    with pytest.raises(ProblemError, match="no value for s0"):
        compare_ways(simulator, joints[:1], {"ours": ({"a0": 1.0},)})
    still = Record.from_arrays(
        second.time,
        {
            "position": (np.zeros(len(second)), "rad"),
            "velocity": (np.zeros(len(second)), "rad/s"),
            "force": (np.zeros(len(second)), "N*m"),
        },
    )
    with pytest.raises(MetricError, match="every measured value is 0"):
        compare_ways(simulator, (Joint("still", still),), {"ours": (TRUE,)})


@pytest.mark.compiler
def test_plots_show_peak_loop_and_residual(simulator: Simulator, tmp_path: Path) -> None:
    record = planned_record(simulator, T1, TRUE)
    coulomb = coulomb_values(record)
    table = compare_ways(simulator, (Joint("j", record),), {"LuGre": (TRUE,), "Coulomb": (coulomb,)})
    predictions = {fit.way: fit.predicted for fit in table.fits}
    velocity, loop, residual = (
        plot_over_velocity(record, predictions),
        plot_hysteresis(record, predictions),
        plot_residuals(record, predictions),
    )
    peak = velocity.axes[1].lines[1].get_ydata()
    # the peak is seen: friction near rest is above that in sliding, by most of a1
    assert np.max(peak) > 1.4
    # a measured and two predicted lines for each of the two starts
    assert len(loop.axes[0].lines) == 6
    assert [axes.get_title(loc="left") for axes in residual.axes] == ["LuGre", "Coulomb"]
    assert np.abs(residual.axes[1].lines[0].get_ydata()).max() > 0.5
    for name, figure in (("velocity", velocity), ("loop", loop), ("residual", residual)):
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


@pytest.mark.compiler
def test_threads_change_nothing_in_a_swarm(simulator: Simulator) -> None:
    record = planned_record(simulator, T1, TRUE)
    bounds = {name: (0.3 * value, 3.0 * value) for name, value in TRUE.items()}
    problem = Problem(simulator, (record,), NAMES, OutputError(), bounds=bounds)
    one, two = (
        identify(problem, ParticleSwarm(11, 5, workers=n), rng=np.random.default_rng(3)) for n in (1, 2)
    )
    assert np.array_equal(one.values, two.values)
