"""Dynamics of the planar robot: motions chosen by the software, two unbiased rows beside the source's three, coverage.

Run: python benchmarks/parallel_dynamics.py [--seeds 1000] [--folder parallel_results]

Torques carry white noise of 0.05 N m and an internal preload of 0.5 + 0.3 cos N m, which no motion shows. Seeds are 0, 1, 2, ...;
parameters, noise and motions are those of the tests. Results are kept in the folder, so that a stopped run goes on.
"""

import argparse
from pathlib import Path

import numpy as np
from parallel_common import kept
from rich.console import Console
from rich.table import Table
from scipy.stats import binom

from mechsmith.codegen.build import build
from mechsmith.codegen.lower import lower
from mechsmith.identification import EquationError, LinearLeastSquares, Problem, Uncertainty, identify
from mechsmith.identification.base_parameters import base_parameters, regressor_of
from mechsmith.identification.parallel.calibration import choose_configurations
from mechsmith.identification.parallel.planar_robot import (
    PUBLISHED_PATH,
    Motion,
    circle,
    motion_record,
    stop_and_go,
    torques_for,
)
from mechsmith.symbolic.parallel.planar_dynamics import make_planar_balance, make_planar_inverse_dynamics

INERTIA = tuple(f"{name}_{i}" for i in (1, 2, 3) for name in ("alpha", "beta", "gamma"))
FRICTION = tuple(
    f"{name}_{i}"
    for i in (1, 2, 3)
    for name in ("coulomb_plus", "viscous_plus", "coulomb_minus", "viscous_minus")
)
DEPENDENT = ("beta_2", "beta_3")
NINETEEN = (*(name for name in INERTIA if name not in DEPENDENT), *FRICTION)
WHITE, THREE = ("whitened_1", "whitened_2"), ("excess_1", "excess_2", "excess_3")
LEFT, NOISE = (1, 1, 1), 0.05


class Robot:
    """The functions, the candidates and the choice among them."""

    def __init__(self) -> None:
        # Not compiled: that outputs are linear in the parameters is checked on the graph.
        self.balance = lower(make_planar_balance())
        inverse = lower(make_planar_inverse_dynamics())
        self.true = {v.name: v.nominal for v in inverse.parameters if v.nominal is not None}
        self.inverse = build(inverse)

    def problem(self, records, free, rows, noise=None) -> Problem:
        fixed = {name: 0.0 for name in (*INERTIA, *FRICTION) if name not in free}
        residual = EquationError(
            outputs={row: row for row in rows}, noise={} if noise is None else dict.fromkeys(rows, noise)
        )
        return Problem(self.balance, tuple(records), free=free, fixed=fixed, residual=residual)

    def regressor(self, motions, rows, free=(*INERTIA, *FRICTION)):
        records = [motion_record(m, LEFT, np.zeros((len(m.time), 3))) for m in motions]
        return regressor_of(self.problem(records, free, rows))

    def base(self, motions, rows=WHITE):
        names = (*INERTIA, *FRICTION)
        return base_parameters(self.regressor(motions, rows), names, dependent_first=DEPENDENT)

    def choose(self, count: int, samples: int = 240) -> list[Motion]:
        candidates = [
            (radius, speed) for radius in (0.04, 0.08, 0.12, 0.16) for speed in (0.1, 0.2, 0.4, 0.8)
        ]
        motions = [circle(radius, speed, samples) for radius, speed in candidates]
        blocks = np.stack([self.regressor([m], WHITE, NINETEEN) for m in motions])
        blocks = blocks / np.linalg.norm(blocks.reshape(-1, len(NINETEEN)), axis=0)
        chosen = choose_configurations(np.stack([np.linalg.qr(b, mode="r") for b in blocks]), count).chosen
        self.chosen = [candidates[i] for i in chosen]
        return [motions[i] for i in chosen]

    def records(self, motions, seed: int, preload: float):
        rng = np.random.default_rng(seed)
        result = []
        for motion in motions:
            wave = preload * (0.5 + 0.3 * np.cos(np.linspace(0.0, 6.0, len(motion.time))))
            torques = torques_for(self.inverse, motion, LEFT, self.true, preload=wave)
            noisy = torques + rng.normal(0.0, NOISE, torques.shape)
            result.append(motion_record(motion, LEFT, noisy))
        return result

    def scores(self, motions, rows, seed: int, preload: float, target) -> tuple[np.ndarray, np.ndarray, dict]:
        """Return errors and standard deviations of one estimate."""
        records = self.records(motions, seed, preload)
        estimate = identify(
            self.problem(records, NINETEEN, rows, NOISE),
            LinearLeastSquares(),
            uncertainty=Uncertainty(known_noise=True),
        )
        error = np.array([estimate.parameters[name] - target[name] for name in NINETEEN])
        named = dict(zip(estimate.names, np.sqrt(np.diag(estimate.covariance_white)), strict=True))
        return error, np.array([named[name] for name in NINETEEN]), estimate.parameters


def show_conditions(console: Console, robot: Robot, chosen: list[Motion]) -> None:
    table = Table("motion", "rows", "rank of 21", "condition", title="Column-scaled regressors")
    sets = {
        "circle of the source, 0.04 m, 0.2 m/s": [circle(0.04, 0.2, 500)],
        "chosen by the software": chosen,
    }
    for name, motions in sets.items():
        for rows, word in ((WHITE, "two, white"), (THREE, "three, (8.27)")):
            found = robot.base(motions, rows)
            table.add_row(name, word, str(found.rank), f"{found.condition:.3g}")
    console.print(table)
    console.print("chosen (radius m, speed m/s):", robot.chosen)
    base = robot.base(chosen)
    console.print("base parameters:", "; ".join(base.expressions()[:7]), "and 12 of friction")


def show_errors(console: Console, robot: Robot, chosen: list[Motion], target) -> None:
    table = Table(
        "motions", "preload", "rows", "inertia", "Coulomb", "viscous", title="Largest error, seed 0"
    )
    groups = {
        "inertia": [n in INERTIA for n in NINETEEN],
        "Coulomb": ["coulomb" in n for n in NINETEEN],
        "viscous": ["viscous" in n for n in NINETEEN],
    }
    for name, motions in (("source's circle", [circle(0.04, 0.2, 1000)]), ("chosen", chosen)):
        for preload in (0.0, 1.0):
            for rows, word in ((WHITE, "two"), (THREE, "three")):
                error, _, _ = robot.scores(motions, rows, 0, preload, target)
                shown = (f"{np.abs(error[np.array(mask)]).max():.2g}" for mask in groups.values())
                table.add_row(name, "yes" if preload else "no", word, *shown)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=Path("parallel_results"))
    options = parser.parse_args()
    seeds = options.seeds
    console, robot = Console(width=120), Robot()
    chosen = robot.choose(4)
    show_conditions(console, robot, chosen)
    base = robot.base(chosen)
    full = np.array([robot.true[name] for name in base.names])
    target = dict(zip(base.independent, base.values(full), strict=True))
    show_errors(console, robot, chosen, target)
    star = stop_and_go(PUBLISHED_PATH, 0.2, 50)
    wanted = torques_for(robot.inverse, star, LEFT, robot.true)

    def run(seed: int) -> dict:
        error, deviation, values = robot.scores(chosen, WHITE, seed, 1.0, target)
        known = {**robot.true, **dict.fromkeys(DEPENDENT, 0.0), **{name: values[name] for name in NINETEEN}}
        difference = torques_for(robot.inverse, star, LEFT, known) - wanted
        return {
            "scores": (error / deviation).tolist(),
            "prediction": float(np.sqrt(np.mean(difference**2))),
        }

    results = kept(options.folder, "dynamics", seeds, run)
    scores = np.abs(np.array([r["scores"] for r in results]))
    inside, beyond = (scores < 1.959964).sum(axis=0), int((scores > 4.0).any(axis=1).sum())
    prediction = [r["prediction"] for r in results]
    low, high = binom.ppf([5e-4, 1.0 - 5e-4], seeds, 0.95)
    console.print(
        f"two rows, chosen motions, {seeds} seeds: 95 % intervals hold the truth in {inside.min():.0f} to {inside.max():.0f} "
        f"(allowed {low:.0f} to {high:.0f}); beyond 4 standard deviations in {beyond} seeds"
    )
    console.print(
        f"torque on the published path: root mean square error {np.median(prediction):.3g} N m (median), noise {NOISE} N m, "
        f"torque {np.sqrt(np.mean(wanted**2)):.3g} N m"
    )


if __name__ == "__main__":
    main()
