"""LuGre friction against reference values of another solver, in CasADi, generated Python and generated C."""

import csv
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator, Simulator
from mechsmith.symbolic.model import Model

WAYS = ("casadi", "python", "c")
CASES = [(name, trajectory) for name in "ABC" for trajectory in ("T1", "T2")]
NOTHING = numpy.zeros(0)


@pytest.fixture(scope="module")
def friction(reference: Path) -> Callable[[str], dict[str, Any]]:
    def load(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((reference / "friction" / name).read_text())
        return found

    return load


@pytest.fixture(scope="module")
def ways(lugre: Model, three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]) -> dict[str, FunctionSet]:
    return three_ways(lower(lugre))


@pytest.fixture(scope="module")
def simulators(
    lugre: Model, through_python: Callable[[FunctionSet], FunctionSet], cache: Path
) -> dict[str, Simulator]:
    functions = lower(lugre)
    return {
        "casadi": CasadiSimulator(discretise(functions)),
        "python": CasadiSimulator(discretise(through_python(functions))),
        "c": build_simulator(discretise(functions), cache=cache),
    }


class SCurve:
    """A motion of constant jerk in each segment; L00 lists the state at the start of each."""

    def __init__(self, segments: list[Mapping[str, float]]) -> None:
        self.starts = numpy.array([segment["t0"] for segment in segments])
        self.table = numpy.array([[s["q0"], s["v0"], s["a0"], s["jerk"]] for s in segments])

    def __call__(self, time: numpy.ndarray) -> numpy.ndarray:
        """Return velocity and position, (n, 2): the order of LuGre's samples."""
        # A sample at a boundary may come out a rounding error before it: both polynomials agree there.
        place = numpy.clip(numpy.searchsorted(self.starts, time, side="right") - 1, 0, None)
        q, v, a, jerk = self.table[place].T
        s = time - self.starts[place]
        return numpy.column_stack([v + s * (a + s * jerk / 2), q + s * (v + s * (a / 2 + s * jerk / 6))])

    def refined(self, time: numpy.ndarray) -> numpy.ndarray:
        """Return the times with the segments' boundaries among them, unless a sample is there already."""
        apart = numpy.abs(time[:, None] - self.starts).min(axis=0) > 1e-9
        inside = (self.starts > time[0]) & (self.starts < time[-1])
        return numpy.sort(numpy.concatenate([time, self.starts[apart & inside]]))


@pytest.fixture(scope="module")
def trajectories(friction: Callable[[str], dict[str, Any]]) -> dict[str, SCurve]:
    found = friction("L00_parameter_sets.json")["trajectories"]
    return {name: SCurve(entry["segments"]) for name, entry in found.items()}


@pytest.fixture(scope="module")
def simulated(reference: Path) -> Callable[[str, str], numpy.ndarray]:
    def load(name: str, trajectory: str) -> numpy.ndarray:
        with gzip.open(reference / f"friction/L05_sim_{name}_{trajectory}.csv.gz", "rt") as file:
            return numpy.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])

    return load


def test_the_trajectories_are_those_of_the_reference(
    friction: Callable[[str], dict[str, Any]], trajectories: dict[str, SCurve]
) -> None:
    data = friction("L00_parameter_sets.json")
    for name, entry in data["trajectories"].items():
        expected = numpy.array([[s["t"], s["v"], s["q"]] for s in entry["samples"]])
        got = trajectories[name](expected[:, 0])
        numpy.testing.assert_allclose(got, expected[:, 1:], rtol=1e-10, atol=1e-12)  # as the file states


@pytest.mark.parametrize("way", WAYS)
def test_pointwise(
    way: str,
    ways: dict[str, FunctionSet],
    friction: Callable[[str], dict[str, Any]],
    lugre_parameters: dict[str, numpy.ndarray],
) -> None:
    data = friction("L01_constitutive.json")
    rows = data["expected"]
    p = numpy.array([lugre_parameters[row["set"]] for row in rows])
    x, u = numpy.array([[row["z"]] for row in rows]), numpy.array([[row["v"]] for row in rows])
    for name, key in (("derivative", "zdot"), ("output", "F")):
        got = ways[way].batch(name, x=x, u=u, p=p)[:, 0, 0]
        # rel 1e-12, abs 1e-13: as the file states, with the exp cut at 1e-308 far below.
        numpy.testing.assert_allclose(
            got, [row[key] for row in rows], rtol=data["tolerance"]["rel"], atol=data["tolerance"]["abs"]
        )


@pytest.mark.parametrize("way", WAYS)
def test_slope_of_the_force_over_the_path(
    way: str,
    lugre: Model,
    three_ways: Callable[[FunctionSet], dict[str, FunctionSet]],
    friction: Callable[[str], dict[str, Any]],
) -> None:
    """Corrected equation (9), F = (8): the damping constant, no viscous friction."""
    model = lugre.replace(name="lugre_eq8", definitions={"damping": lugre["s1"], "viscous": 0})
    functions = lower(model).with_jacobians(("output", "x"), ("output", "u"))
    functions = three_ways(functions)[way]
    data = friction("L04_dFdx.json")
    keys = {"s0": "sigma0", "s1": "sigma1", "a0": "alpha0", "a1": "alpha1", "v0": "v0"}
    for row in data["expected"]:
        p = [data["inputs"][row["set"]][keys[label]] for label in functions.labels("p")]
        point = {"x": [row["z"]], "u": [row["v"]], "p": p}
        rate = functions.evaluate("derivative", **point).item()
        by_z, by_v = (functions.evaluate(f"output_{wrt}", **point).item() for wrt in ("x", "u"))
        slope = (by_z * rate + by_v * row["a"]) / row["v"]
        assert functions.evaluate("output", **point).item() == pytest.approx(row["F8"], rel=1e-11)
        assert slope == pytest.approx(row["dFdx_const_sigma1"], rel=data["tolerance"]["rel"])


@pytest.mark.parametrize("way", WAYS)
def test_constant_velocity(
    way: str,
    simulators: dict[str, Simulator],
    friction: Callable[[str], dict[str, Any]],
    lugre_parameters: dict[str, numpy.ndarray],
) -> None:
    """The longest time is 5 decay times; 150 steps of order 5 leave 150 (5/150)^6/7200 e^-5 = 2e-13 of it."""
    data = friction("L03_exact_solutions.json")
    for row in data["expected"]["constant_velocity"]:
        p = lugre_parameters[row["set"]]
        time = numpy.linspace(0.0, row["t"], 151)
        samples = numpy.column_stack([numpy.full(151, row["v"]), row["v"] * time])
        result = simulators[way].rollout(time, samples, numpy.array([row["zeta0"] / p[0]]), NOTHING, p)
        assert not result.status
        # Relative to the bristles' largest force on the way: near zero the sum has nothing of its own to be right to.
        scale = max(abs(row["zeta0"]), abs(row["zeta"]))
        tolerance = data["tolerance"]["constant_velocity"]["rel"] * scale
        assert abs(p[0] * result.states[-1, 0] - row["zeta"]) <= tolerance
        assert (
            abs(result.outputs[-1, 0] - row["F"]) <= 10 * tolerance
        )  # F amplifies by s1 |v| / g, below 10 here


@pytest.mark.parametrize("way", WAYS)
def test_start_of_a_move(
    way: str,
    simulators: dict[str, Simulator],
    friction: Callable[[str], dict[str, Any]],
    lugre_parameters: dict[str, numpy.ndarray],
) -> None:
    data = friction("L03_exact_solutions.json")
    for row in data["expected"]["move_start"]:
        p, jerk = lugre_parameters[row["set"]], row["jerk"]
        time = numpy.arange(501) * 1e-4
        samples = numpy.column_stack([jerk * time**2 / 2, jerk * time**3 / 6])
        result = simulators[way].rollout(time, samples, numpy.array([row["z0"]]), NOTHING, p)
        places = numpy.rint(numpy.array(row["t"]) / 1e-4).astype(int)
        numpy.testing.assert_allclose(
            p[0] * result.states[places, 0], row["zeta"], rtol=data["tolerance"]["move_start"]["rel"]
        )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "trajectory"), CASES)
def test_simulation(
    name: str,
    trajectory: str,
    way: str,
    simulators: dict[str, Simulator],
    simulated: Callable[[str, str], numpy.ndarray],
    trajectories: dict[str, SCurve],
    lugre_parameters: dict[str, numpy.ndarray],
) -> None:
    expected = simulated(name, trajectory)
    time = trajectories[trajectory].refined(expected[:, 0])
    samples = trajectories[trajectory](time)
    result = simulators[way].rollout(time, samples, numpy.zeros(1), NOTHING, lugre_parameters[name])
    assert not result.status
    kept = numpy.searchsorted(time, expected[:, 0])
    error = numpy.abs(result.outputs[kept, 0] - expected[:, 4]).max()
    assert error <= 1e-7 * numpy.abs(expected[:, 4]).max()  # the bound asked for; reached are 1e-8 and less


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "trajectory"), CASES)
def test_sensitivities(
    name: str,
    trajectory: str,
    way: str,
    simulators: dict[str, Simulator],
    simulated: Callable[[str, str], numpy.ndarray],
    trajectories: dict[str, SCurve],
    lugre_parameters: dict[str, numpy.ndarray],
    friction: Callable[[str], dict[str, Any]],
) -> None:
    data = friction("L07_sensitivities.json")
    entry = next(e for e in data["expected"] if (e["set"], e["trajectory"]) == (name, trajectory))
    expected = simulated(name, trajectory)
    samples, p = trajectories[trajectory](expected[:, 0]), lugre_parameters[name]
    result = simulators[way].rollout_sensitivities(expected[:, 0], samples, numpy.zeros(1), NOTHING, p)
    assert not result.status
    jacobian = result.by_parameters[:, 0]
    largest = numpy.abs(jacobian).max(axis=0)
    bounds = data["tolerance"]["dFdp"]
    for sample in entry["samples"]:
        error = numpy.abs(jacobian[sample["i"]] - sample["dFdp"])
        allowed = bounds["rel"] * numpy.abs(sample["dFdp"]) + bounds["abs_rel_to_column_max"] * largest
        assert (error <= allowed).all(), f"sample {sample['i']}: {error / allowed}"
    noise = 0.01 * numpy.abs(result.outputs[:, 0]).mean()
    relative = jacobian * p / noise
    covariance = numpy.linalg.inv(relative.T @ relative)
    deviation = numpy.sqrt(numpy.diag(covariance))
    assert noise == pytest.approx(entry["noise_std"], rel=1e-7)
    numpy.testing.assert_allclose(
        deviation, entry["crlb_rel_std"], rtol=data["tolerance"]["crlb_rel_std"]["rel"]
    )
    correlation = covariance / numpy.outer(deviation, deviation)
    numpy.testing.assert_allclose(correlation, entry["corr"], atol=data["tolerance"]["corr"]["abs"], rtol=0)
