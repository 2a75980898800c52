"""Outliers, NaN, dead time, wrong signs and units: each handled or named; joints split from one run."""

from collections.abc import Callable

import numpy as np
import pytest

from mechsmith.codegen.build import build_simulator, find_compiler
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import Simulator
from mechsmith.identification import LeastSquares, OutputError, Problem, Record, identify
from mechsmith.identification.excitation import Dwell, Move, Trajectory
from mechsmith.identification.friction.checks import planned_record
from mechsmith.identification.friction.joints import joint_records, split_by_record
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm
from mechsmith.identification.friction.signs import check_signs
from mechsmith.identification.outliers import without_outliers
from mechsmith.identification.problem import ProblemError
from mechsmith.identification.record_checks import RecordError
from mechsmith.symbolic.friction.lugre import make_lugre

pytestmark = pytest.mark.compiler

T1 = Trajectory((Dwell(0.1), Move(1.5, 1.0, 2.0, 10.0), Dwell(0.1), Move(-1.5, 1.0, 2.0, 10.0), Dwell(0.1)))
TRUE = dict(zip(NAMES, (1e5, 316.22776601683796, 1.0, 0.5, 0.01, 0.02, 0.4, 0.1), strict=True))
Change = Callable[[dict[str, np.ndarray]], None]


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    return build_simulator(discretise(lower(make_lugre())), cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def record(simulator: Simulator) -> Record:
    return planned_record(simulator, T1, TRUE)


def changed(record: Record, change: Change, *, noise: float = 0.001, seed: int = 0) -> Record:
    columns = {name: record[name].copy() for name in ("position", "velocity", "force")}
    size = noise * np.abs(columns["force"]).mean()
    columns["force"] += size * np.random.default_rng(seed).standard_normal(len(record))
    change(columns)
    return Record.from_arrays(
        record.time, {n: (c, record.units[n]) for n, c in columns.items()}, source="changed"
    )


def test_outliers_are_put_aside(simulator: Simulator, record: Record) -> None:
    places = np.random.default_rng(1).choice(len(record), 47, replace=False)

    def spoil(columns: dict[str, np.ndarray]) -> None:
        columns["force"][places] += 2.0

    problem = Problem(simulator, (changed(record, spoil),), NAMES, OutputError())
    method = FromClosedForm(LeastSquares())
    drawn = identify(problem, method)
    cleaned, counts, vector = without_outliers(problem, drawn.values, LeastSquares())
    estimate = identify(cleaned, LeastSquares(), start=dict(zip(NAMES, vector, strict=True)))
    assert counts == (47,)
    assert "47 outliers beyond 6 deviations" in " ".join(estimate.provenance)
    # what the same noise without outliers allows, 0.1 % of torque noise: up to 0.5 % in s0
    for name in ("s0", "s1", "a0", "a1", "v0"):
        assert abs(estimate[name] / TRUE[name] - 1.0) < 4.0 * estimate.deviation(name) / TRUE[name]
    with pytest.raises(ProblemError, match="3 or more"):
        without_outliers(problem, drawn.values, LeastSquares(), threshold=1.0)


def test_nan_is_named_by_row(record: Record) -> None:
    def spoil(columns: dict[str, np.ndarray]) -> None:
        columns["force"][1234] = np.nan

    with pytest.raises(RecordError, match="1234"):
        changed(record, spoil)


def test_dead_time_is_a_parameter(simulator: Simulator, record: Record) -> None:
    def delay(columns: dict[str, np.ndarray]) -> None:
        # the torque comes three samples late
        columns["force"][3:] = columns["force"][:-3].copy()
        columns["force"][:3] = 0.0

    problem = Problem(
        simulator,
        (changed(record, delay),),
        (*NAMES, "dead_time"),
        OutputError(),
        delayed=("velocity", "position"),
        bounds={"dead_time": (0.0, 0.02), "vd": (1e-3, 1.0)},
    )
    found = identify(problem, FromClosedForm(LeastSquares()), start={"dead_time": 0.001})
    assert found.success
    assert found["dead_time"] == pytest.approx(0.003, abs=1e-5)
    # delayed positions and velocities are interpolated: what is between the samples costs some per cent of s0
    assert found["s0"] == pytest.approx(TRUE["s0"], rel=0.05)
    assert found["a0"] == pytest.approx(TRUE["a0"], rel=1e-3)


def test_a_wrong_sign_is_named(record: Record) -> None:
    def spoil(columns: dict[str, np.ndarray]) -> None:
        columns["force"] *= -1.0

    (finding,) = check_signs(changed(record, spoil))
    assert finding.kind == "sign"
    assert "friction opposes motion" in finding.message

    def turn(columns: dict[str, np.ndarray]) -> None:
        columns["position"] *= -1.0

    (finding,) = check_signs(changed(record, turn))
    assert "the sign of one of them is wrong" in finding.message


@pytest.mark.parametrize(
    ("factor", "told"),
    [(180.0 / np.pi, "degrees where radians"), (1000.0, "thousandths"), (3.0, "is 3 times")],
)
def test_a_wrong_unit_is_named(record: Record, factor: float, told: str) -> None:
    def spoil(columns: dict[str, np.ndarray]) -> None:
        columns["velocity"] *= factor

    findings = check_signs(changed(record, spoil))
    assert [finding.kind for finding in findings] == ["unit"]
    assert told in findings[0].message
    assert check_signs(changed(record, lambda columns: None)) == ()


def test_a_wrong_unit_of_the_friction_ends_at_the_bounds(simulator: Simulator, record: Record) -> None:
    def spoil(columns: dict[str, np.ndarray]) -> None:
        columns["force"] *= 1000.0

    bounds = {name: (value / 30.0, value * 30.0) for name, value in TRUE.items()}
    problem = Problem(simulator, (changed(record, spoil),), NAMES, OutputError(), bounds=bounds)
    estimate = identify(problem, FromClosedForm(LeastSquares()))
    assert {"a0", "a1"} <= set(estimate.at_bound)


def test_joints_of_one_run(simulator: Simulator, record: Record) -> None:
    other = planned_record(simulator, T1, {**TRUE, "a0": 3.0, "s0": 3e5})
    noisy = changed(other, lambda columns: None, noise=0.01)
    quiet = changed(record, lambda columns: None, noise=0.0001)
    run = Record.from_arrays(
        record.time,
        {
            "q1": (quiet["position"], "rad"),
            "dq1": (quiet["velocity"], "rad/s"),
            "tau1": (quiet["force"], "N*m"),
            "q2": (noisy["position"], "rad"),
            "dq2": (noisy["velocity"], "rad/s"),
            "tau2": (noisy["force"], "N*m"),
        },
        source="run",
    )
    columns = {f"joint {k}": {"position": f"q{k}", "velocity": f"dq{k}", "force": f"tau{k}"} for k in (1, 2)}
    records = joint_records(run, columns)
    assert [one.source for one in records] == ["run: joint 1", "run: joint 2"]
    free = tuple(name for name in NAMES if name != "vd")
    problem = Problem(
        simulator, records, free, OutputError(), per_record=NAMES, fixed={"vd[1]": 0.02, "vd[0]": 0.02}
    )
    together = identify(problem, FromClosedForm(LeastSquares()))
    parts = split_by_record(problem)
    assert [part.fixed for part in parts] == [{"vd": 0.02}, {"vd": 0.02}]
    apart = [identify(part, FromClosedForm(LeastSquares())) for part in parts]
    for k, estimate in enumerate(apart):
        for name in free:
            # both ended where the relative change is below 1e-12 of a cost to which the quiet joint adds 1e-4
            assert estimate[name] == pytest.approx(together[f"{name}[{k}]"], rel=1e-3)
    # each joint has the noise of its own
    assert apart[0].deviation("s0") < 0.1 * together.deviation("s0[0]")
    with pytest.raises(ProblemError, match="tie the records"):
        split_by_record(Problem(simulator, records, ("a0",), OutputError()))
