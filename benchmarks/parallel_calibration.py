"""Self-calibration of the planar robot: what configurations determine, and how often and how fast it is found.

Run: python benchmarks/parallel_calibration.py [--trials 100] [--seeds 1000] [--evolution 5] [--folder parallel_results]

The source does not say how its evolution makes trial vectors: the classical rand1bin and the greedier best1bin are both run.

Trial k has a true robot drawn with seed k (lengths and places within 1 mm, sensors' offsets within 15 mrad of nominal) and,
for the methods with starts, a start drawn within 2 mm. Differential evolution searches the source's cost (8.20) over twelve
parameters, population 180 and 1,500 generations, as published. Every evaluation of the residual at one parameter vector counts
one, with or without Jacobian. A trial succeeds when the largest error of a place or length is below 0.01 mm after
the similarity that angle sensors do not see is taken out. Results are kept in the folder, so that a stopped run goes on.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
from parallel_common import kept
from rich.console import Console
from rich.table import Table
from scipy.stats import binom

from mechsmith.codegen.build import build
from mechsmith.codegen.lower import lower
from mechsmith.identification import EquationError, LeastSquares, Prior, Problem, Uncertainty, identify
from mechsmith.identification.evolution import DifferentialEvolution
from mechsmith.identification.parallel.calibration import choose_configurations, identifiability, joint_rmse
from mechsmith.identification.parallel.planar_robot import (
    PUBLISHED_PATH,
    aligned,
    aligned_error,
    calibration_record,
    circle,
    grid,
    polyline,
    readings,
)
from mechsmith.symbolic.parallel.planar import WORKING_MODES, make_planar_inverse
from mechsmith.symbolic.parallel.planar_calibration import make_planar_closure_error, make_planar_misfit

FROZEN = {"base_1_x": 0.0, "base_1_y": 0.25, "base_2_x": 0.433}
FREE = ("base_3_x", "base_3_y", *(f"{n}_{i}" for i in (1, 2, 3) for n in ("arm_cos", "arm_sin", "distal")))
TWELVE = ("base_2_y", *FREE)
NOMINAL = FROZEN | {"base_2_y": 0.0, "base_3_x": 0.433, "base_3_y": 0.5}
NOMINAL |= {
    f"{n}_{i}": v for i in (1, 2, 3) for n, v in (("arm_cos", 0.244), ("arm_sin", 0.0), ("distal", 0.244))
}
LEFT = WORKING_MODES["a"]
LIMIT = 1e-5  # m
NOISE = 1e-4  # rad
MARGIN = 0.025  # m, from the workspace's end


class Robot:
    """The functions that all trials share, and the sets of configurations."""

    def __init__(self) -> None:
        self.inverse = build(lower(make_planar_inverse()))
        self.algebraic = build(with_jacobian(make_planar_closure_error()))
        self.misfit = build(with_jacobian(make_planar_misfit()))
        self.sets = {"circle": (circle().position, np.tile(LEFT, (100, 1))), "proposed": self._proposed()}

    def problem(
        self, angles, modes, free=FREE, *, output="misfit", noise=None, bounds=None, priors=None
    ) -> Problem:
        fixed = {name: NOMINAL[name] for name in (*FROZEN, "base_2_y") if name not in free}
        residual = EquationError(outputs={output: output}, noise={} if noise is None else {output: noise})
        functions = self.misfit if output == "misfit" else self.algebraic
        record = calibration_record(angles, modes)
        return Problem(
            functions,
            (record,),
            free=free,
            fixed=fixed,
            residual=residual,
            bounds=bounds or {},
            priors=priors or {},
        )

    def _proposed(self):
        points = grid(0.01, margin=MARGIN)
        modes = np.array(list(WORKING_MODES.values()))
        every, signs = np.tile(points, (8, 1)), np.repeat(modes, len(points), axis=0)
        problem = self.problem(readings(self.inverse, every, signs, NOMINAL), signs)
        choice = choose_configurations(problem.data_jacobian(problem.start_vector())[:, None, :], 100)
        return every[choice.chosen], signs[choice.chosen]

    def workspace(self, values):
        """Return a problem of readings all over the workspace in working mode a, without noise."""
        points = grid(0.015, margin=0.015)
        return self.problem(readings(self.inverse, points, LEFT, values), LEFT, TWELVE)

    def path(self, values):
        """Return a problem of readings on the published path, without noise."""
        angles = readings(self.inverse, polyline(PUBLISHED_PATH, 50), LEFT, values)
        return self.problem(angles, LEFT, TWELVE)

    def fit(self, angles, modes, start=None, noise=None, priors=None):
        """Return the estimate, in two stages, and how often a residual was evaluated."""
        if priors is None:
            algebraic = self.problem(angles, modes, output="closure_error")
            coarse = identify(algebraic, LeastSquares(), start=start)
        else:
            coarse = None
        fine = identify(
            self.problem(angles, modes, noise=noise, priors=priors),
            LeastSquares(),
            start=coarse or start,
            uncertainty=Uncertainty(known_noise=noise is not None),
        )
        return fine, fine.evaluations + (coarse.evaluations if coarse else 0)


def with_jacobian(model):
    return lower(model).with_jacobians(("output", "p"), ("output", "u"))


def drawn(seed: int) -> dict[str, float]:
    """Return a true robot."""
    rng = np.random.default_rng([seed, 0])
    result = dict(FROZEN)
    for name in ("base_2_y", "base_3_x", "base_3_y"):
        result[name] = NOMINAL[name] + rng.uniform(-1e-3, 1e-3)
    for i in (1, 2, 3):
        arm, offset = 0.244 + rng.uniform(-1e-3, 1e-3), rng.uniform(-0.015, 0.015)
        result |= {f"arm_cos_{i}": arm * np.cos(offset), f"arm_sin_{i}": arm * np.sin(offset)}
        result[f"distal_{i}"] = 0.244 + rng.uniform(-1e-3, 1e-3)
    return result


def least_squares(robot: Robot, which: str, seed: int) -> dict:
    """Return how two stages of least squares do on exact readings, from a random start."""
    true = drawn(seed)
    points, modes = robot.sets[which]
    angles = readings(robot.inverse, points, modes, true)
    rng = np.random.default_rng([seed, 1])
    start = {name: NOMINAL[name] + rng.uniform(-2e-3, 2e-3) for name in FREE}
    begin = time.perf_counter()
    estimate, evaluations = robot.fit(angles, modes, start)
    return outcome(robot, true, estimate.parameters, time.perf_counter() - begin, evaluations)


def evolution(robot: Robot, which: str, seed: int, strategy: str = "rand1bin") -> dict:
    """Return how differential evolution with the published population and generations does on exact readings."""
    true = drawn(seed)
    points, modes = robot.sets[which]
    angles = readings(robot.inverse, points, modes, true)
    # Boxes about the nominal robot: 2 mm, and 20 mrad times the length for the sines of offsets.
    width = {name: 5e-3 if "sin" in name else 2e-3 for name in TWELVE}
    bounds = {name: (NOMINAL[name] - width[name], NOMINAL[name] + width[name]) for name in TWELVE}
    problem = robot.problem(angles, modes, TWELVE, output="closure_error", bounds=bounds)
    method = DifferentialEvolution(population=180, generations=1500, tolerance=0.0, strategy=strategy)
    begin = time.perf_counter()
    estimate = identify(problem, method, rng=np.random.default_rng([seed, 2]))
    return outcome(robot, true, estimate.parameters, time.perf_counter() - begin, estimate.evaluations)


def outcome(robot: Robot, true, values, seconds: float, evaluations: int) -> dict:
    return {
        "error": aligned_error(values, true),
        "path": joint_rmse(robot.path(true), values, sensors=3),
        "workspace": joint_rmse(robot.workspace(true), values, sensors=3),
        "seconds": seconds,
        "evaluations": evaluations,
    }


def covered(robot: Robot, which: str, seed: int) -> dict:
    """Return the errors over their standard deviations for noisy readings, and the joints' errors before and after."""
    true = drawn(seed)
    points, modes = robot.sets[which]
    angles = readings(robot.inverse, points, modes, true)
    angles = angles + np.random.default_rng([seed, 3]).normal(0.0, NOISE, angles.shape)
    priors = None
    if which == "circle":
        priors = {name: Prior(NOMINAL[name], 3e-3 if "sin" in name else 1e-3) for name in FREE}
    estimate, _ = robot.fit(angles, modes, noise=NOISE, priors=priors)
    target = aligned(true, {**true, "base_2_y": 0.0})
    deviation = np.sqrt(np.diag(estimate.covariance_white))
    error = np.array([estimate.parameters[name] - target[name] for name in estimate.names])
    result = {"scores": (error / deviation).tolist(), "error": aligned_error(estimate.parameters, true)}
    for name, judged in (("path", robot.path(true)), ("workspace", robot.workspace(true))):
        result[name] = joint_rmse(judged, estimate.parameters, sensors=3)
        result[f"{name}_before"] = joint_rmse(judged, NOMINAL, sensors=3)
    return result


def show_identifiability(console: Console, robot: Robot) -> None:
    for which, (points, modes) in robot.sets.items():
        angles = readings(robot.inverse, points, modes, NOMINAL)
        twelve = identifiability(robot.problem(angles, modes, TWELVE, noise=NOISE))
        eleven = identifiability(robot.problem(angles, modes, noise=NOISE))
        console.print(f"[bold]{which}[/]: rank {twelve.rank} of 12; not seen: {twelve.null_directions[0]}")
        console.print(
            f"  11 parameters: condition {eleven.condition:.3g}; standard deviations at {NOISE:g} rad: "
            f"{1e3 * eleven.deviations.min():.3g} to {1e3 * eleven.deviations.max():.3g} mm; "
            f"directions worse than 1 mm: {len(eleven.weak_directions(1e-3))}"
        )


def show_trials(console: Console, rows: dict[str, list[dict]]) -> None:
    table = Table(
        "method", "set", "found", "median error mm", "AJ path rad", "AJ workspace rad", "ms", "evaluations",
        title="Exact readings",
    )  # fmt: skip
    for name, results in rows.items():
        if not results:
            continue
        median = {key: float(np.median([r[key] for r in results])) for key in results[0]}
        found = sum(r["error"] < LIMIT for r in results)
        table.add_row(
            *name.split("_"), f"{found} of {len(results)}", f"{1e3 * median['error']:.2g}", f"{median['path']:.2g}",
            f"{median['workspace']:.2g}", f"{1e3 * median['seconds']:.0f}", f"{median['evaluations']:.0f}",
        )  # fmt: skip
    console.print(table)


def show_coverage(console: Console, name: str, results: list[dict]) -> None:
    scores = np.abs(np.array([r["scores"] for r in results]))
    inside = (scores < 1.959964).sum(axis=0)
    low, high = binom.ppf([5e-4, 1.0 - 5e-4], len(results), 0.95)
    console.print(
        f"[bold]{name}[/], {NOISE:g} rad, {len(results)} seeds: 95 % intervals hold the truth in {inside.min()} to {inside.max()} "
        f"(allowed {low:.0f} to {high:.0f}); beyond 4 standard deviations: {(scores > 4).any(axis=1).sum()} trials; "
        f"median aligned error {1e3 * np.median([r['error'] for r in results]):.3g} mm"
    )
    for where in ("path", "workspace"):
        before, after = (float(np.median([r[key] for r in results])) for key in (f"{where}_before", where))
        console.print(f"  AJ-RMSE, {where}: {before:.3g} rad before, {after:.3g} rad after (medians)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--evolution", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("parallel_results"))
    options = parser.parse_args()
    console, robot = Console(width=140), Robot()
    show_identifiability(console, robot)
    rows = {}
    greedy = partial(evolution, strategy="best1bin")
    for which in ("proposed", "circle"):
        for method, run, count in (
            ("least squares", least_squares, options.trials),
            ("evolution rand1bin", evolution, options.evolution),
            ("evolution best1bin", greedy, options.evolution),
        ):
            name = f"{method}_{which}"
            file = name.replace(" ", "-")
            rows[name] = kept(options.folder, file, count, partial(run, robot, which))
    show_trials(console, rows)
    for which, count in (("proposed", options.seeds), ("circle", min(options.seeds, 100))):
        results = kept(options.folder, f"covered-{which}", count, partial(covered, robot, which))
        show_coverage(console, which + (" with a prior" if which == "circle" else ""), results)


if __name__ == "__main__":
    main()
