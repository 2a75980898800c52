"""Four ways on a second trajectory: A shape factors, B Coulomb, C plain swarm, D ours; WAPE and maxPE, and the plots.

Run: python benchmarks/friction_ways.py [--noise 0.01] [--folder friction_results]
Three joints (parameter sets A, B, C) with torque noise are identified from the first trajectory and predict the second, whose
torque is exact friction of scipy's Radau. With them goes a rigid-body torque that is known.
"""

import argparse
from pathlib import Path

import numpy as np
from friction_common import IDENTIFY, PERIOD, SETS, VALIDATE, exact_friction, problem_of, record_of, simulator
from friction_noise import friction_of
from rich.console import Console

from mechsmith.identification import LeastSquares, Record, identify
from mechsmith.identification.friction.plots import plot_hysteresis, plot_over_velocity, plot_residuals
from mechsmith.identification.friction.shape_factor import FromClosedForm
from mechsmith.identification.friction.shape_method import ShapeFactors
from mechsmith.identification.friction.validation import Joint, compare_ways, coulomb_values
from mechsmith.identification.swarm import ParticleSwarm

WAYS = {
    "A shape factors": ShapeFactors(rounds=3),
    "C plain swarm": ParticleSwarm(100, 200),
    "D ours": FromClosedForm(LeastSquares()),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--folder", type=Path, default=Path("friction_results"))
    options = parser.parse_args()
    system, console = simulator(), Console(width=110)
    first, second = {}, {}
    for seed, (name, p) in enumerate(SETS.items()):
        friction = friction_of(name, options.folder)
        noise = (
            options.noise
            * np.abs(friction).mean()
            * np.random.default_rng(seed).standard_normal(len(friction))
        )
        first[name] = record_of(friction + noise)
        command = VALIDATE.record(PERIOD)
        exact = exact_friction(np.array(p), VALIDATE)
        rigid = 0.1 * p[2] * command["acceleration"]
        columns = {n: (command[n], command.units[n]) for n in ("position", "velocity")}
        torques = {"friction": exact, "rigid": rigid, "torque": exact + rigid}
        second[name] = Record.from_arrays(
            command.time, {**columns, **{n: (t, "N*m") for n, t in torques.items()}}
        )
    joints = tuple(Joint(f"joint {name}", record, "torque", "rigid") for name, record in second.items())
    values = {way: [] for way in ("A shape factors", "B Coulomb", "C plain swarm", "D ours")}
    for name, record in first.items():
        values["B Coulomb"].append(coulomb_values(record))
        for way, method in WAYS.items():
            estimate = identify(problem_of(system, record, name), method, rng=np.random.default_rng(0))
            values[way].append(estimate.free)
            console.print(f"joint {name}, {way}: {estimate.status}", style="dim")
    table = compare_ways(system, joints, values)
    console.print(
        f"Identified from {IDENTIFY.duration:.1f} s with {options.noise:.1%} torque noise, validated on another motion:"
    )
    console.print(table.table(), highlight=False)
    record = second["A"]
    predictions = {
        way: table[way, "joint A"].predicted - record["rigid"]
        for way in ("B Coulomb", "C plain swarm", "D ours")
    }
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, figure in (
        ("velocity", plot_over_velocity(record, predictions, force="friction")),
        ("hysteresis", plot_hysteresis(record, predictions, force="friction")),
        ("residual", plot_residuals(record, predictions, force="friction")),
    ):
        path = options.folder / f"friction_{name}.png"
        figure.savefig(path, dpi=120)
        console.print(f"Plot: {path}")


if __name__ == "__main__":
    main()
