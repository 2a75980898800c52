"""Shape factors, swarms and closed-form starts on the reference data: L06, L09, and every method behind `identify`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.build import build_simulator, find_compiler
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import Simulator
from mechsmith.identification import LeastSquares, OutputError, Problem, Record, identify
from mechsmith.identification.evolution import DifferentialEvolution
from mechsmith.identification.excitation import Trajectory
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm, LugreStart
from mechsmith.identification.friction.shape_method import ShapeFactors
from mechsmith.identification.friction.shape_regressions import (
    Windows,
    coulomb_viscous,
    freshness,
    presliding_regression,
    sliding_regression,
    starts_from_rest,
    stribeck_shape,
)
from mechsmith.identification.method import MethodError
from mechsmith.identification.metrics import MetricError, max_percentage_error, wape
from mechsmith.identification.nlp.ipopt import Ipopt
from mechsmith.identification.problem import ProblemError
from mechsmith.identification.readers import ColumnSpec, read_record
from mechsmith.identification.stages import Stages
from mechsmith.identification.swarm import ParticleSwarm
from mechsmith.symbolic.friction.lugre import make_lugre

Load = Callable[[str, str], Record]
WINDOW = 3.0 * np.pi / 180.0


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    return build_simulator(discretise(lower(make_lugre())), cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def sets(reference: Path) -> dict[str, dict[str, float]]:
    data = json.loads((reference / "friction" / "L00_parameter_sets.json").read_text())["sets"]
    return {name: dict(zip(NAMES, values.values(), strict=True)) for name, values in data.items()}


@pytest.fixture(scope="module")
def load(reference: Path) -> Load:
    plans = json.loads((reference / "friction" / "L00_parameter_sets.json").read_text())["trajectories"]

    def read(name: str, motion: str) -> Record:
        record = read_record(
            reference / "friction" / f"L05_sim_{name}_{motion}.csv.gz",
            time=ColumnSpec("t_s", "s", "s"),
            columns={
                "velocity": ColumnSpec("v_rad_s", "rad/s", "rad/s"),
                "position": ColumnSpec("q_rad", "rad", "rad"),
                "force": ColumnSpec("F_Nm", "N*m", "N*m"),
            },
        )
        acceleration = Trajectory.from_plan(plans[motion]["plan"]).at(record.time).acceleration
        columns = {name: (record[name], record.units[name]) for name in record.columns}
        return Record.from_arrays(
            record.time, {**columns, "acceleration": (acceleration, "rad/s^2")}, source=name
        )

    return read


@pytest.mark.parametrize("motion", ["T1", "T2"])
@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_regressions_of_the_reference(
    reference: Path, load: Load, sets: dict[str, dict[str, float]], name: str, motion: str
) -> None:
    data = json.loads((reference / "friction" / "L06_shape_factors.json").read_text())
    tolerance = data["tolerance"]
    (expected,) = (e for e in data["expected"] if (e["set"], e["trajectory"]) == (name, motion))
    record, truth = load(name, motion), sets[name]
    v, a, q, force = (record[column] for column in ("velocity", "acceleration", "position", "force"))
    found = sliding_regression(v, force, WINDOW)
    assert found == pytest.approx(expected["alpha_lsq"], rel=tolerance["alpha_lsq"]["rel"])
    true = coulomb_viscous(v, truth["a0"], truth["a2"], truth["a3"])
    for below, key in ((true, "ab_with_true_alphas"), (coulomb_viscous(v, *found), "ab_with_lsq_alphas")):
        shape = stribeck_shape(v, a, force - below, WINDOW)
        assert shape == pytest.approx(expected[key], rel=tolerance["ab"]["rel"])
    starts = starts_from_rest(v, 1e-3)
    assert len(starts) == len(expected["hysteresis"])
    for start, row in zip(starts, expected["hysteresis"], strict=True):
        assert start.direction == row["direction"]
        assert (start.rest, start.stop - start.rest) == (row["start_index"], row["n"])
        share = freshness(start, force, truth["a0"] + truth["a1"])
        # F is known to 1e-7 of its largest value; a restart's share is a small difference of such
        assert share == pytest.approx(row["exp_minus_c"], abs=2e-6)
        coefficients = presliding_regression(start, q, v, force)
        limit = tolerance["hysteresis_coef"]["rel"]
        assert coefficients[1:] == pytest.approx(row["coef"][1:], rel=limit)
        # the constant is friction at rest: its error is that of F
        assert coefficients[0] == pytest.approx(row["coef"][0], rel=limit, abs=1e-7 * expected["max_abs_F"])
    assert wape(true, force) == pytest.approx(expected["WAPE_coulomb6"], rel=1e-6)
    assert max_percentage_error(true, force) == pytest.approx(expected["maxPE_coulomb6"], rel=1e-6)


def test_metrics_of_the_reference(reference: Path) -> None:
    data = json.loads((reference / "friction" / "L09_metrics.json").read_text())
    for row in data["expected"]:
        real, predicted = row["T_real"], row["T_predict"]
        limit = data["tolerance"]["abs"]
        assert wape(predicted, real) == pytest.approx(row["WAPE_percent"], abs=limit)
        assert max_percentage_error(predicted, real) == pytest.approx(row["maxPE_percent"], abs=limit)
    with pytest.raises(MetricError):
        wape([1.0], [0.0])


def problem_of(
    simulator: Simulator, record: Record, truth: dict[str, float], decades: float = 1.0
) -> Problem:
    """Return the problem with boxes a decade wide in all, or as told, around values that are not the true ones."""
    factor = 10.0 ** (0.5 * decades)
    off = dict(zip(NAMES, (1.3, 0.8, 0.7, 1.4, 0.8, 1.2, 1.1, 0.9), strict=True))
    bounds = {
        name: tuple(sorted((value * off[name] / factor, value * off[name] * factor)))
        for name, value in truth.items()
    }
    return Problem(simulator, (record,), NAMES, OutputError(), bounds=bounds)


def errors(estimate: Any, truth: dict[str, float]) -> dict[str, float]:
    return {name: abs(estimate[name] / value - 1.0) for name, value in truth.items()}


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_least_squares_from_the_closed_form_finds_all_eight(
    simulator: Simulator, load: Load, sets: dict[str, dict[str, float]], name: str
) -> None:
    problem = problem_of(simulator, load(name, "T1"), sets[name])
    estimate = identify(problem, FromClosedForm(LeastSquares()))
    assert estimate.success
    # 0.1 %, as claimed; vd is what the data say least about
    assert max(errors(estimate, sets[name]).values()) < 1e-3


@pytest.mark.compiler
def test_ipopt_from_the_closed_form_agrees(
    simulator: Simulator, load: Load, sets: dict[str, dict[str, float]]
) -> None:
    problem = problem_of(simulator, load("B", "T1"), sets["B"])
    estimate = identify(problem, FromClosedForm(Ipopt()))
    assert estimate.success
    assert max(errors(estimate, sets["B"]).values()) < 1e-3


@pytest.mark.compiler
def test_shape_factors_as_published(
    simulator: Simulator, load: Load, sets: dict[str, dict[str, float]]
) -> None:
    truth = sets["A"]
    problem = problem_of(simulator, load("A", "T1"), truth)
    estimate = identify(problem, ShapeFactors(rounds=3), rng=np.random.default_rng(0))
    assert estimate.success
    assert estimate.status == "both loops converged"
    found = errors(estimate, truth)
    # the claim of the source: 1 % in seven parameters; vd is found to some per cent by the line search
    assert max(error for name, error in found.items() if name != "vd") < 1e-2
    assert found["vd"] < 0.05
    again = identify(problem, ShapeFactors(rounds=3), rng=np.random.default_rng(0))
    assert np.array_equal(again.values, estimate.values)


@pytest.mark.compiler
def test_a_swarm_stays_in_its_box_and_improves(
    simulator: Simulator, load: Load, sets: dict[str, dict[str, float]]
) -> None:
    problem = problem_of(simulator, load("A", "T1"), sets["A"])
    seen = []
    swarm = ParticleSwarm(20, 15, progress=seen.append)
    estimate = identify(problem, swarm, rng=np.random.default_rng(1))
    # a count of generations is no success
    assert not estimate.success
    assert estimate.status == "15 generations are done"
    assert np.all(estimate.values >= problem.space.lower)
    assert np.all(estimate.values <= problem.space.upper)
    norms = [line.norm for line in seen]
    assert norms == sorted(norms, reverse=True)
    assert norms[-1] < norms[0]
    assert estimate.evaluations == 20 * 16


@pytest.mark.compiler
def test_evolution_then_ipopt(simulator: Simulator, load: Load, sets: dict[str, dict[str, float]]) -> None:
    problem = problem_of(simulator, load("A", "T1"), sets["A"], decades=0.6)
    method = Stages((DifferentialEvolution(population=20, generations=25), Ipopt()))
    estimate = identify(problem, method, rng=np.random.default_rng(0))
    assert estimate.success
    assert max(error for name, error in errors(estimate, sets["A"]).items() if name != "vd") < 1e-3
    assert {line.start for line in estimate.history} == {0, 1}


@pytest.mark.compiler
def test_several_joints_at_once(simulator: Simulator, load: Load, sets: dict[str, dict[str, float]]) -> None:
    joints = [(load(name, "T1"), sets[name]) for name in "ABC"]
    problem = Problem(simulator, tuple(r for r, _ in joints), NAMES, OutputError(), per_record=NAMES)
    estimate = identify(problem, FromClosedForm(LeastSquares()))
    assert estimate.success
    for k, (_, truth) in enumerate(joints):
        assert max(abs(estimate[f"{n}[{k}]"] / v - 1.0) for n, v in truth.items()) < 1e-3
    bounds = {
        f"{n}[{k}]": tuple(sorted((0.5 * v, 2.0 * v)))
        for k, (_, t) in enumerate(joints)
        for n, v in t.items()
    }
    boxed = Problem(simulator, problem.records, NAMES, OutputError(), per_record=NAMES, bounds=bounds)
    quick = ShapeFactors(
        swarm=ParticleSwarm(20, 20), rounds=3, peak_tolerance=1e-4, hysteresis_tolerance=1e-4
    )
    shapes = identify(boxed, quick, rng=np.random.default_rng(0))
    assert shapes.success
    for k, (_, truth) in enumerate(joints):
        assert max(abs(shapes[f"{n}[{k}]"] / v - 1.0) for n, v in truth.items() if n != "vd") < 1e-2


@pytest.mark.compiler
def test_a_record_without_a_closed_form_is_named(
    simulator: Simulator, load: Load, sets: dict[str, dict[str, float]]
) -> None:
    record = load("A", "T1")
    fast = np.abs(record["velocity"]) > 0.1
    first = int(np.flatnonzero(fast)[0])
    columns = {n: (record[n][first : first + 300], record.units[n]) for n in record.columns}
    cut = Record.from_arrays(record.time[:300], columns, source="sliding only")
    with pytest.raises(ProblemError, match="slow down"):
        LugreStart().values(cut)
    problem = Problem(simulator, (cut,), ("a0", "a2", "a3", "x0:z"), OutputError())
    estimate = identify(problem, FromClosedForm(LeastSquares()))
    assert "no closed form of record 'sliding only'" in estimate.message
    # bent bristles at the first sample are found too; at 0.1 rad/s and more the peak is 1e-43 of a1
    assert estimate["a0"] == pytest.approx(1.0, rel=1e-3)


def test_options_that_will_not_do() -> None:
    for make, message in (
        (lambda: ShapeFactors(weight=1.0), "weight is 1.0"),
        (lambda: ParticleSwarm(1), "individuals is 1"),
        (lambda: Stages(()), "no methods"),
    ):
        with pytest.raises(MethodError, match=message):
            make()
    with pytest.raises(ProblemError, match="presliding"):
        Windows(presliding_velocity=1.0)


@pytest.mark.compiler
def test_problems_that_do_not_suit_shape_factors(
    simulator: Simulator, load: Load, sets: dict[str, dict[str, float]]
) -> None:
    record, rng = load("A", "T1"), np.random.default_rng(0)
    few = Problem(simulator, (record,), ("s0", "s1"), OutputError())
    with pytest.raises(MethodError, match="vd may be fixed"):
        identify(few, ShapeFactors(), rng=rng)
    shared = Problem(simulator, (record, record), NAMES, OutputError())
    with pytest.raises(MethodError, match="per_record"):
        identify(shared, ShapeFactors(), rng=rng)
    boundless = Problem(simulator, (record,), NAMES, OutputError())
    with pytest.raises(MethodError, match="no finite bounds"):
        identify(boundless, ParticleSwarm(), rng=rng)
    with pytest.raises(MethodError, match="rng"):
        identify(boundless, ParticleSwarm())
