"""LuGre from noise-free data of another solver: how many of 100 random parameter vectors each method finds.

Run: python benchmarks/friction_trials.py [--trials 6] [--methods ...] [--workers 1] [--folder friction_results]
Every method gets the same data (scipy Radau, relative tolerance 1e-11) and the same boxes, a decade to each side of the
set that the trial's true parameters were drawn about. A trial is found when all parameters counted are within the limit;
"identifiable" counts those whose Cramer-Rao bound at 1 % torque noise is below 10 %. Results are kept in the folder,
so that a run that was stopped goes on.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from friction_common import IDENTIFY, cached_friction, drawn, problem_of, record_of, run_all, simulator
from rich.console import Console
from rich.table import Table

from mechsmith.identification import LeastSquares, MultiStart, Uncertainty, identify
from mechsmith.identification.evolution import DifferentialEvolution
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm
from mechsmith.identification.friction.shape_method import ShapeFactors
from mechsmith.identification.nlp.ipopt import Ipopt
from mechsmith.identification.stages import Stages
from mechsmith.identification.swarm import ParticleSwarm
from mechsmith.identification.uncertainty import precision

METHODS = {
    "closed form + least squares": FromClosedForm(LeastSquares()),
    "closed form + IPOPT": FromClosedForm(Ipopt()),
    "shape factors": ShapeFactors(),
    "shape factors, 3 rounds": ShapeFactors(rounds=3),
    "plain swarm 100 x 200": ParticleSwarm(100, 200),
    "least squares, 8 random starts": MultiStart(LeastSquares(), starts=8),
    "evolution + IPOPT": Stages((DifferentialEvolution(population=60, generations=100), Ipopt())),
}
IDENTIFIABLE = 0.1
COUNTED = {"four": ("s0", "s1", "a1", "v0"), "seven": tuple(n for n in NAMES if n != "vd"), "eight": NAMES}


def bound(system, record, name, truth, share: float) -> np.ndarray:
    """Return the relative Cramer-Rao standard deviations at a noise of a share of the mean friction, as in L07."""
    noise = share * float(np.abs(record["force"]).mean())
    problem = problem_of(system, record, name, noise={"force": noise})
    found = precision(problem, truth, Uncertainty(known_noise=True))
    return np.sqrt(np.diag(found.covariance_white)) / np.abs(truth)


def trial_of(trial: int, method: str, folder: str) -> dict:
    """Return what a method finds in a trial."""
    system = simulator()
    name, truth = drawn(trial)
    record = record_of(cached_friction(Path(folder), trial))
    problem = problem_of(system, record, name)
    rng = np.random.default_rng([trial, 1])
    start = dict(zip(NAMES, problem.space.physical(problem.space.random(rng)), strict=True))
    begin = time.perf_counter()
    estimate = identify(problem, METHODS[method], start=start, rng=rng)
    seconds = time.perf_counter() - begin
    errors = np.abs(estimate.values / truth - 1.0)
    crlb = bound(system, record, name, truth, 0.01)
    return {
        "trial": trial,
        "method": method,
        "seconds": seconds,
        "evaluations": estimate.evaluations,
        "success": estimate.success,
        "status": estimate.status,
        "errors": [float(e) for e in errors],
        "bounds": [float(b) for b in crlb],
    }


def table_of(results: list[dict], methods: list[str], limit: float) -> Table:
    """Return for each method how many trials are within a limit, by the parameters that count."""
    columns = ("method", *COUNTED, "identifiable", "s a trial", "times ours", "rollouts")
    table = Table(*columns, title=f"trials within {limit:.1%}, {len(results) // len(methods)} each")
    ours = None
    for method in methods:
        mine = [entry for entry in results if entry["method"] == method]
        errors = np.array([entry["errors"] for entry in mine])
        known = np.array([entry["bounds"] for entry in mine]) < IDENTIFIABLE
        counts = [
            str(int((errors[:, [NAMES.index(n) for n in names]] < limit).all(axis=1).sum()))
            for names in COUNTED.values()
        ]
        counts.append(str(int(((errors < limit) | ~known).all(axis=1).sum())))
        seconds = float(np.median([entry["seconds"] for entry in mine]))
        ours = ours or seconds
        rollouts = float(np.median([entry["evaluations"] for entry in mine]))
        table.add_row(method, *counts, f"{seconds:.2f}", f"{seconds / ours:.1f}", f"{rollouts:,.0f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("friction_results"))
    options = parser.parse_args()
    simulator()
    jobs = [(t, m, str(options.folder)) for t in range(options.trials) for m in options.methods]
    path = options.folder / "trials.jsonl"
    results = run_all(path, jobs, trial_of, workers=options.workers, title="trials")
    console = Console(width=140)
    for limit in (0.001, 0.01):
        console.print(table_of(results, options.methods, limit))
    known = np.array([e["bounds"] for e in results if e["method"] == options.methods[0]]) < IDENTIFIABLE
    shares = ", ".join(f"{n} {int(k)}" for n, k in zip(NAMES, known.sum(axis=0), strict=True))
    console.print(
        f"Identifiable in (trials of {len(known)}): {shares}. Motion: {IDENTIFY.duration:.1f} s at 1 kHz."
    )


if __name__ == "__main__":
    main()
