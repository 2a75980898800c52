"""LuGre from noisy data: scatter against the Cramer-Rao bound, and coverage of the 95 % intervals.

Run: python benchmarks/friction_noise.py [--seeds 100] [--set A] [--hold-vd | --no-profile] [--workers 1] [--folder friction_results]
White torque noise of 0.1 % and 1 % of the mean friction on exact data, seeds 0 ... N-1. Scatter: the squared errors, weighted
by the inverse bound over the parameters whose bound is below 10 %, are chi-square distributed with N k degrees of freedom
(two-sided test at 1 %). Coverage: binomial test of each parameter at 0.1 % (two-sided; one-sided where intervals are open, which
cover more). A trial that fails is a miss in both. The interval of vd is that of the likelihood ratio (`profile_interval`); those of
the others come from the curvature, as all do with --no-profile, which is faster. With --hold-vd it is held at its true value and seven parameters are found, as in L08.
"""

import argparse
import dataclasses
from pathlib import Path

import numpy as np
from friction_common import IDENTIFY, SETS, exact_friction, problem_of, record_of, run_all, simulator
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest, chi2

from mechsmith.identification import LeastSquares, Uncertainty, identify
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm
from mechsmith.identification.profile import profile_interval
from mechsmith.identification.uncertainty import precision

LEVELS = (0.001, 0.01)
BELOW = 0.1
BLOCK = 25  # seeds of one job


def friction_of(name: str, folder: Path) -> np.ndarray:
    path = folder / "data" / f"set_{name}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, exact_friction(np.array(SETS[name]), IDENTIFY))
    return np.load(path)


def held(problem, name: str, hold_vd: bool):
    """Return the problem, with vd held at its true value if wanted."""
    if not hold_vd:
        return problem
    bounds = {n: b for n, b in problem.bounds.items() if n != "vd"}
    free = tuple(n for n in NAMES if n != "vd")
    return dataclasses.replace(problem, free=free, fixed={"vd": SETS[name][5]}, bounds=bounds)


def block_of(name: str, level: float, first: int, last: int, folder: str, mode: str) -> dict:
    """Return estimates and intervals for the seeds first ... last - 1."""
    system, friction = simulator(), friction_of(name, Path(folder))
    noise = level * float(np.abs(friction).mean())
    rows = []
    for seed in range(first, last):
        noisy = friction + noise * np.random.default_rng(seed).standard_normal(len(friction))
        problem = held(problem_of(system, record_of(noisy), name), name, mode == "held")
        estimate = identify(problem, FromClosedForm(LeastSquares()))
        ends, undetermined = estimate.intervals.copy(), list(estimate.undetermined)
        if mode == "profile":
            profile = profile_interval(problem, estimate, "vd")
            ends[NAMES.index("vd")] = profile.lower, profile.upper
            undetermined = ["vd"] if np.isinf(profile.upper) else []
        rows.append(
            {
                "seed": seed,
                "success": estimate.success,
                "values": estimate.values.tolist(),
                "lower": ends[:, 0].tolist(),
                "upper": np.minimum(ends[:, 1], 1e300).tolist(),
                "undetermined": undetermined,
            }
        )
    return {"rows": rows}


def judged(rows: list[dict], name: str, level: float, folder: Path, hold_vd: bool, console: Console) -> None:
    friction = friction_of(name, folder)
    noise = level * float(np.abs(friction).mean())
    problem = held(problem_of(simulator(), record_of(friction), name, noise={"force": noise}), name, hold_vd)
    truth = np.array([SETS[name][NAMES.index(n)] for n in problem.names])
    covariance = precision(problem, truth, Uncertainty(known_noise=True)).covariance_white
    bound = np.sqrt(np.diag(covariance)) / np.abs(truth)
    good = np.array([row["success"] for row in rows])
    errors = np.array([row["values"] for row in rows]) - truth
    covered = (
        np.array([(np.array(r["lower"]) <= truth) & (truth <= np.array(r["upper"])) for r in rows])
        & good[:, None]
    )
    table = Table("parameter", "bound %", "scatter / bound", "bias / bound", "covered", "p", "open intervals")
    for i, parameter in enumerate(problem.names):
        opened = sum(parameter in row["undetermined"] for row in rows)
        count = int(covered[:, i].sum())
        # an open interval covers more than it says: then only too little coverage counts
        side = "less" if opened else "two-sided"
        p = binomtest(count, len(rows), 0.95, alternative=side).pvalue
        size = bound[i] * abs(truth[i])
        scatter, bias = np.sqrt(np.mean(errors[good, i] ** 2)) / size, np.mean(errors[good, i]) / size
        told = f"{count}/{len(rows)}", f"{p:.3f}{'' if p >= 0.001 else ' FAILS'}", str(opened)
        table.add_row(parameter, f"{100 * bound[i]:.3g}", f"{scatter:.3f}", f"{bias:+.3f}", *told)
    console.print(
        f"set {name}, noise {level:.1%} of the mean friction, {len(rows)} seeds, {int((~good).sum())} failed"
    )
    console.print(table)
    chosen = np.flatnonzero(bound < BELOW)
    weights = np.linalg.inv(covariance[np.ix_(chosen, chosen)])
    statistic = float(np.einsum("ni,ij,nj->", errors[good][:, chosen], weights, errors[good][:, chosen]))
    freedom = int(good.sum()) * len(chosen)
    scatter = float(np.sqrt(statistic / freedom))
    tail = min(chi2.cdf(statistic, freedom), chi2.sf(statistic, freedom))
    told = "passes" if 2.0 * tail >= 0.01 and good.all() else "FAILS"
    names = ", ".join(problem.names[i] for i in chosen)
    console.print(
        f"chi-square over {names}: {statistic:.1f} for {freedom} degrees of freedom (scatter {scatter:.3f} of the bound), "
        f"p = {2.0 * tail:.3f}: {told} at 1 %"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--set", choices=SETS, default="A")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--hold-vd", action="store_const", dest="mode", const="held", default="profile")
    modes.add_argument("--no-profile", action="store_const", dest="mode", const="curvature")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("friction_results"))
    options = parser.parse_args()
    friction_of(options.set, options.folder)
    simulator()
    console = Console(width=130)
    for level in LEVELS:
        starts = range(0, options.seeds, BLOCK)
        folder, mode = str(options.folder), options.mode
        jobs = [(options.set, level, s, min(s + BLOCK, options.seeds), folder, mode) for s in starts]
        found = run_all(
            options.folder / "noise.jsonl",
            jobs,
            block_of,
            workers=options.workers,
            title=f"noise {level:.1%}",
        )
        judged(
            [row for block in found for row in block["rows"]],
            options.set,
            level,
            options.folder,
            mode == "held",
            console,
        )


if __name__ == "__main__":
    main()
