"""Differential evolution: finds without a start, keeps to its box, repeats itself, survives interrupts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification import (
    EquationError,
    LeastSquares,
    MethodError,
    OutputError,
    Problem,
    Record,
    identify,
)
from mechsmith.identification.evolution import DifferentialEvolution
from mechsmith.identification.method import Progress
from mechsmith.identification.nlp.ipopt import Ipopt
from mechsmith.symbolic.friction.lugre import make_lugre

Array = NDArray[np.float64]
FREE = ("fc", "fs", "vs", "fv")
TRUE = np.array([10.0, 25.0, 0.05, 12.0])
SMALL = DifferentialEvolution(population=24, generations=15)


def stribeck(systems: Any, **options: Any) -> Problem:
    """Return the problem of a noisy Stribeck curve, four parameters free between 1e-3 and 121."""
    given: dict[str, Any] = {"records": (systems.stribeck_record(TRUE, noise=0.5),), "free": FREE}
    return Problem(systems.stribeck, **{**given, **options})


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_optimum_of_least_squares_without_a_start(systems: Any, seed: int) -> None:
    problem = stribeck(systems)
    reference = identify(problem, LeastSquares(), start=dict(zip(FREE, TRUE, strict=True)))
    found = identify(problem, DifferentialEvolution(), rng=generator(seed))
    assert found.success
    assert found.status == "Optimization terminated successfully."
    # at a spread of 1e-3 of the norm the population is about 0.045 of the residual's norm wide: a standard deviation
    # or so of each parameter
    assert np.all(np.abs(found.values - reference.values) < 2.0 * reference.deviations)
    assert found.residual_norm <= reference.residual_norm * (1.0 + 1e-3)


def test_it_starts_the_finer_method(systems: Any) -> None:
    problem = stribeck(systems)
    coarse = identify(problem, DifferentialEvolution(), rng=generator())
    fine = identify(problem, Ipopt(), start=coarse)
    reference = identify(problem, LeastSquares(), start=coarse)
    assert fine.success
    np.testing.assert_allclose(fine.values, reference.values, rtol=1e-6)


def test_the_seed_says_everything_and_the_workers_nothing(systems: Any) -> None:
    problem = stribeck(systems)
    start = problem.start_vector()
    one = SMALL.solve(problem, start, generator(3))
    again = SMALL.solve(problem, start, generator(3))
    two = DifferentialEvolution(population=24, generations=15, workers=2).solve(problem, start, generator(3))
    other = SMALL.solve(problem, start, generator(4))
    for same in (again, two):
        np.testing.assert_array_equal(same.vector, one.vector)
        assert same.history == one.history
        assert same.evaluations == one.evaluations
    assert not np.array_equal(other.vector, one.vector)


def test_a_generator_is_required(systems: Any) -> None:
    with pytest.raises(MethodError, match="rng"):
        identify(stribeck(systems), SMALL)


def test_a_generation_limit_is_no_success(systems: Any) -> None:
    found = identify(stribeck(systems), SMALL, rng=generator())
    assert found.status == "Maximum number of iterations has been exceeded."
    assert not found.success
    assert [line.evaluation for line in found.history] == list(range(1, 16))
    norms = [line.norm for line in found.history]
    assert norms == sorted(norms, reverse=True)
    assert found.evaluations == 24 * 16


def test_every_individual_is_inside_its_bounds(systems: Any) -> None:
    # from 1e-3 to 121 in one box
    seen: list[Array] = []

    @dataclass(frozen=True, eq=False)
    class Watched(Problem):
        def norms(self, vectors: Array) -> Array:
            seen.append(vectors)
            values = super().norms(vectors)
            assert not np.isnan(values).any()
            return values

    record = systems.stribeck_record(TRUE)
    problem = Watched(
        systems.stribeck, (record,), free=("fc", "vs", "fv"), fixed={"fs": 25.0}, bounds={"vs": (1e-3, 121.0)}
    )
    found = SMALL.solve(problem, problem.start_vector(), generator())
    every = np.vstack(seen)
    assert np.isfinite(every).all()
    assert np.all((every >= [1e-3, 1e-3, 0.0]) & (every <= [121.0, 121.0, 121.0]))
    # log-uniform at first: half of the velocities lie below the middle of the logarithms
    assert 8 <= int((seen[0][:, 1] < np.sqrt(1e-3 * 121.0)).sum()) <= 16
    assert problem.all_values(found.vector)["fs"] == 25.0


def test_a_parameter_without_finite_bounds_is_named(systems: Any) -> None:
    problem = stribeck(systems, bounds={"fv": (0.0, np.inf)})
    with pytest.raises(MethodError, match="'fv' has no finite bounds"):
        SMALL.solve(problem, problem.start_vector(), generator())


def test_constraints_between_parameters_hold(systems: Any) -> None:
    record = systems.stribeck_record(np.array([10.0, 7.0, 0.05, 12.0]), noise=0.1)
    problem = stribeck(systems, records=(record,), constraints=("fs >= fc",))
    found = identify(problem, DifferentialEvolution(population=30, generations=60), rng=generator())
    assert found["fs"] >= found["fc"] * (1.0 - 1e-12)
    # the truth violates the constraint, so the optimum stands at it
    assert found["fs"] == pytest.approx(found["fc"], rel=0.05)
    equal = stribeck(systems, records=(record,), constraints=("fs == 2*fc",))
    with pytest.raises(MethodError, match="equations"):
        SMALL.solve(equal, equal.start_vector(), generator())


def test_failed_simulations_cost_infinity(systems: Any) -> None:
    # four fifths of the box of damping (log-uniform up to 2000) are fine, above 400 N*s/m the simulation fails
    record = systems.slider_record(20.0, 30.0)
    problem = Problem(systems.slider, (record,), free=("mass", "damping"), residual=OutputError())
    method = DifferentialEvolution(population=12, generations=60)
    found = method.solve(problem, problem.start_vector(), generator())
    assert found.history[-1].norm < 1e-2
    np.testing.assert_allclose(found.vector, [20.0, 30.0], rtol=0.05)
    hopeless = Problem(
        systems.slider,
        (record,),
        free=("damping",),
        bounds={"damping": (500.0, 900.0)},
        residual=OutputError(),
    )
    found = DifferentialEvolution(population=6, generations=3).solve(hopeless, np.array([600.0]), generator())
    assert not found.success
    assert "every trial failed" in found.message


def test_the_start_may_be_among_the_first(systems: Any) -> None:
    problem = stribeck(systems)
    lines: list[Progress] = []
    with_start = DifferentialEvolution(population=8, generations=1, use_start=True, progress=lines.append)
    found = with_start.solve(problem, TRUE, generator())
    at_start = np.linalg.norm(problem.residual_vector(TRUE))
    assert found.history[-1].norm <= at_start
    assert lines == list(found.history)


def test_an_interrupt_keeps_the_best_so_far(systems: Any) -> None:
    def stop(line: Progress) -> None:
        if line.evaluation == 4:
            raise KeyboardInterrupt

    problem = stribeck(systems)
    for workers in (1, 2):
        method = DifferentialEvolution(population=24, generations=50, workers=workers, progress=stop)
        found = method.solve(problem, problem.start_vector(), generator())
        assert found.status == "interrupted"
        assert not found.success
        assert found.history[-1].evaluation == 4
        best = np.linalg.norm(problem.residual_vector(found.vector))
        assert best == pytest.approx(found.history[-1].norm, rel=1e-12)


def test_a_search_goes_on_from_its_checkpoint(systems: Any, tmp_path: Path) -> None:
    problem = stribeck(systems)
    start, path = problem.start_vector(), tmp_path / "search.npz"
    whole = DifferentialEvolution(population=24, generations=30).solve(problem, start, generator())

    def stop(line: Progress) -> None:
        if line.evaluation == 12:
            raise KeyboardInterrupt

    method = DifferentialEvolution(population=24, generations=30, checkpoint=path, progress=stop)
    assert method.solve(problem, start, generator()).status == "interrupted"
    assert [file.name for file in tmp_path.iterdir()] == ["search.npz"]
    saved = path.read_bytes()
    resumed = []
    for seed in (99, 100):
        # the generator goes on from where it was, whatever it is given as
        path.write_bytes(saved)
        method = DifferentialEvolution(population=24, generations=30, checkpoint=path)
        resumed.append(method.solve(problem, start, generator(seed)))
    np.testing.assert_array_equal(resumed[0].vector, resumed[1].vector)
    history = resumed[0].history
    assert history[:12] == whole.history[:12]
    assert [line.evaluation for line in history] == list(range(1, 31))
    norms = [line.norm for line in history]
    assert norms == sorted(norms, reverse=True)
    # the population is evaluated once more at the beginning of each part
    assert resumed[0].evaluations == whole.evaluations + 24
    # nothing is left to do
    again = method.solve(problem, start, generator())
    assert again.status == "Maximum number of iterations has been exceeded."
    np.testing.assert_array_equal(again.vector, resumed[1].vector)


def test_a_checkpoint_of_another_search_is_refused(systems: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.npz"
    problem = stribeck(systems)
    method = DifferentialEvolution(population=24, generations=2, checkpoint=path)
    method.solve(problem, problem.start_vector(), generator())
    other = stribeck(systems, bounds={"fv": (0.0, 50.0)})
    with pytest.raises(MethodError, match="its upper differ"):
        method.solve(other, other.start_vector(), generator())
    larger = DifferentialEvolution(population=30, generations=2, checkpoint=path)
    with pytest.raises(MethodError, match="population of 24"):
        larger.solve(problem, problem.start_vector(), generator())
    path.write_bytes(b"no archive")
    with pytest.raises(MethodError, match="Delete it"):
        method.solve(problem, problem.start_vector(), generator())


def test_an_error_in_a_worker_comes_out(systems: Any) -> None:
    problem = Failing(systems.line, (systems.line_record(),), free=("mass",), residual=EquationError())
    for workers in (1, 2):
        method = DifferentialEvolution(population=6, generations=2, workers=workers)
        with pytest.raises(RuntimeError, match="this system fails"):
            method.solve(problem, problem.start_vector(), generator())


@dataclass(frozen=True, eq=False)
class Failing(Problem):
    """A problem with a fault in its code."""

    system: FunctionSet

    def norms(self, vectors: Array) -> Array:
        raise RuntimeError("this system fails")


def test_options_out_of_range_are_refused() -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {"population": 4},
        {"generations": 0},
        {"workers": 0},
        {"tolerance": -1.0},
        {"recombination": 1.5},
        {"strategy": "best"},
        {"mutation": (1.0, 0.5)},
    )
    for options in wrong:
        with pytest.raises(MethodError, match=next(iter(options))):
            DifferentialEvolution(**options)


@pytest.mark.compiler
def test_evolution_then_ipopt_recovers_lugre_from_a_box_of_two_decades(
    reference: Path, tmp_path: Path
) -> None:
    # F at 1 kHz by another solver to 2e-9 of the largest
    data = np.loadtxt(reference / "friction" / "L05_sim_A_T1.csv.gz", delimiter=",", skiprows=1)
    names = ("s0", "s1", "a0", "a1", "v0", "vd", "a2", "a3")
    values = (1e5, 316.22776601683796, 1.0, 0.5, 0.01, 0.1, 0.4, 0.1)
    truth = dict(zip(names, values, strict=True))
    columns = {
        "position": (data[:, 1], "rad"),
        "velocity": (data[:, 2], "rad/s"),
        "force": (data[:, 4], "N*m"),
    }
    problem = Problem(
        build_simulator(discretise(lower(make_lugre())), cache=tmp_path),
        (Record.from_arrays(data[:, 0], columns, source="L05_sim_A_T1"),),
        free=names,
        residual=OutputError(),
        fixed={"x0:z": 0.0},
        bounds={name: (value / 10.0, value * 10.0) for name, value in truth.items()},
    )
    coarse = identify(problem, DifferentialEvolution(population=32, generations=60), rng=generator())
    assert not coarse.success
    fine = identify(problem, Ipopt(), start=coarse)
    assert fine.success
    for name, value in truth.items():
        # the simulation's error of 2.5e-7 of the largest force, over what the weakest parameter (vd) does to it
        assert fine[name] == pytest.approx(value, rel=1e-5)
