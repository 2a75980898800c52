"""Coverage of 95 % intervals when a flexible link is identified from noisy simulations; seeds 0 to N - 1.

    python benchmarks/flexible_coverage.py [seeds] [file]

One line of JSON for each seed and kind of record is appended to the file (default: flexible_coverage.jsonl); seeds that are
already there are not run again. A failure counts as a miss. Coverage is judged binomially: with a level of 0.1 % for each
parameter the number of hits must lie between the 0.05 % and 99.95 % quantiles of the binomial distribution.
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import binom

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.held import HeldSimulator, hold
from mechsmith.codegen.integrators import RungeKutta4
from mechsmith.codegen.lower import lower
from mechsmith.codegen.unknowns import eliminate
from mechsmith.identification.identify import identify
from mechsmith.identification.problem import Problem
from mechsmith.identification.record import Record
from mechsmith.identification.residuals import EquationError, OutputError
from mechsmith.identification.search import LeastSquares
from mechsmith.symbolic.flexible.link import make_flexible_link
from mechsmith.symbolic.flexible.resonances import make_resonances

TRUTH = {"joint_stiffness": 1.0, "bending_stiffness": 0.16, "joint_damping": 2e-3, "structural_damping": 0.15}
NEAR = {"joint_stiffness": 1.1, "bending_stiffness": 0.15, "joint_damping": 1e-3, "structural_damping": 0.3}


@cache
def resonances() -> FunctionSet:
    """Return frequencies and damping ratios of three modes."""
    return eliminate(lower(make_resonances(modes=3)))


@cache
def simulator() -> HeldSimulator:
    """Return the link with two modes, in compiled C."""
    held = hold(lower(make_flexible_link(modes=2)))
    return held.simulator(build_simulator(discretise(held.functions, RungeKutta4())))


def from_frequencies(rng: np.random.Generator) -> Problem:
    """Twelve modal tests: frequencies within 0.1 %, damping ratios within 5 %."""
    functions = resonances()
    exact = functions.evaluate("output", p=functions.vector("p", TRUTH))[:, 0]
    labels = functions.labels("y")
    deviation = np.where([label.startswith("frequency") for label in labels], 1e-3, 5e-2) * exact
    noisy = exact + deviation * rng.normal(size=(12, len(exact)))
    units = {label: "rad/s" if label.startswith("frequency") else "" for label in labels}
    record = Record(np.arange(12.0), dict(zip(labels, noisy.T, strict=True)), units)
    noise = dict(zip(labels, map(float, deviation), strict=True))
    return Problem(functions, (record,), free=tuple(TRUTH), residual=EquationError(noise=noise))


def from_free_decay(rng: np.random.Generator) -> Problem:
    """Angle and tip deflection, 0.1 mrad and 0.1 mm, over 1.5 s after a bent start; the start is unknown too."""
    start = np.array([0.0, 0.03, 0.004, 0.0, 0.0, 0.0])
    rest = np.zeros(751)
    free = (*TRUTH, "x0:deflection_0", "x0:deflection_1")
    return _simulated(rng, rest, start, {"hub_angle": 1e-4, "tip_deflection": 1e-4}, free, {})


def from_torque_and_angle(rng: np.random.Generator) -> Problem:
    """The angle alone, 0.2 mrad, over 1.5 s of a swept torque."""
    time = 2e-3 * np.arange(751)
    torque = 0.01 * np.sin(2.0 * np.pi * (0.5 * time + 3.0 * time**2))
    free = ("joint_stiffness", "bending_stiffness", "structural_damping")
    fixed = {"joint_damping": TRUTH["joint_damping"]}
    return _simulated(rng, torque, np.zeros(6), {"hub_angle": 2e-4}, free, fixed)


def _simulated(
    rng: np.random.Generator,
    torque: np.ndarray,
    start: np.ndarray,
    noise: dict[str, float],
    free: tuple[str, ...],
    fixed: dict[str, float],
) -> Problem:
    functions, time = simulator().functions, 2e-3 * np.arange(len(torque))
    motion = simulator().rollout(time, torque[:, None], start, np.zeros(0), functions.vector("p", TRUTH))
    units, columns = {"torque": "N*m"}, {"torque": torque}
    for name, deviation in noise.items():
        exact = motion.outputs[:, functions.labels("y").index(name)]
        columns[name] = exact + deviation * rng.normal(size=len(time))
        units[name] = "rad" if name == "hub_angle" else "m"
    record = Record(time, columns, units)
    return Problem(simulator(), (record,), free=free, fixed=fixed, residual=OutputError(noise=noise))


KINDS: dict[str, Callable[[np.random.Generator], Problem]] = {
    "frequencies": from_frequencies,
    "torque_and_angle": from_torque_and_angle,
    "free_decay": from_free_decay,
}


def hits(kind: str, seed: int) -> dict[str, bool]:
    """Return for each parameter whether its interval holds the truth; False throughout where it failed."""
    problem = KINDS[kind](np.random.default_rng(seed))
    names = [name for name in problem.names if name in TRUTH]
    start = {**NEAR, "x0:deflection_0": 0.025, "x0:deflection_1": 0.0}
    estimate = identify(problem, LeastSquares(), start=start)
    if not estimate.success:
        return dict.fromkeys(names, False)
    return {
        name: bool(estimate.interval(name)[0] <= TRUTH[name] <= estimate.interval(name)[1]) for name in names
    }


def report(rows: list[dict[str, object]]) -> None:
    """Print the share of hits, and whether it is within the binomial bounds."""
    for kind in KINDS:
        found = [row["hits"] for row in rows if row["kind"] == kind]
        if not found:
            continue
        for name in found[0]:  # type: ignore[attr-defined]
            count = sum(one[name] for one in found)  # type: ignore[index]
            low, high = binom.ppf([5e-4, 1.0 - 5e-4], len(found), 0.95)
            verdict = "as expected" if low <= count <= high else "NOT as expected"
            print(
                f"{kind:17} {name:19} {count}/{len(found)} = {count / len(found):.3f} [{low:.0f}, {high:.0f}] {verdict}"
            )


def main(seeds: int, file: Path) -> None:
    """Run what is missing and report."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(row["kind"], row["seed"]) for row in rows}
    with file.open("a", encoding="utf-8") as out:
        for kind in KINDS:
            for seed in range(seeds):
                if (kind, seed) in done:
                    continue
                rows.append({"kind": kind, "seed": seed, "hits": hits(kind, seed)})
                out.write(json.dumps(rows[-1]) + "\n")
                out.flush()
                if seed % 50 == 49:
                    print(f"{kind}: {seed + 1} of {seeds}", flush=True)
    report(rows)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(
        int(arguments[0]) if arguments else 1000,
        Path(arguments[1]) if len(arguments) > 1 else Path("flexible_coverage.jsonl"),
    )
