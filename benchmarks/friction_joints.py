"""Seven joints from one run of ten seconds, and the cost over the number of samples up to a million.

Run: python benchmarks/friction_joints.py [--samples 10000 100000] [--noise 0.001]
"""

import argparse
import resource
import time

import numpy as np
from friction_common import IDENTIFY, PERIOD, SETS, simulator
from rich.console import Console
from rich.table import Table

from mechsmith.identification import LeastSquares, OutputError, Problem, Record, identify
from mechsmith.identification.excitation import Dwell, Move, Trajectory
from mechsmith.identification.friction.joints import split_by_record
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm

# 10 s: fast and slow moves with reversals.
TEN_SECONDS = Trajectory(
    (
        *IDENTIFY.parts,
        Move(0.9, 0.72, 1.2, 4.0),
        Dwell(0.2),
        Move(-0.9, 0.72, 1.2, 4.0),
        Dwell(1.0),
    )
)


def rollout(system, record: Record, p: np.ndarray) -> np.ndarray:
    samples = np.column_stack([record[name] for name in system.samples])
    return system.rollout(record.time, samples, np.zeros(1), np.zeros(0), p).outputs[:, 0]


def record_with(system, trajectory: Trajectory, p: np.ndarray, noise: float, seed: int, count: int) -> Record:
    """Return the first `count` samples of the trajectory with noisy friction."""
    command = trajectory.record(PERIOD)
    columns = {name: (command[name][:count], command.units[name]) for name in ("position", "velocity")}
    record = Record.from_arrays(command.time[:count], columns)
    friction = rollout(system, record, p)
    disturbance = noise * np.abs(friction).mean() * np.random.default_rng(seed).standard_normal(len(friction))
    return Record.from_arrays(record.time, {**columns, "force": (friction + disturbance, "N*m")})


def memory() -> float:
    """Return the largest resident memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--noise", type=float, default=0.001)
    options = parser.parse_args()
    system, console = simulator(), Console(width=120)
    truths = [
        np.array(SETS["ABC"[k % 3]]) * 10.0 ** np.random.default_rng(k).uniform(-0.2, 0.2, 8)
        for k in range(7)
    ]
    records = [record_with(system, TEN_SECONDS, p, options.noise, k, 10_000) for k, p in enumerate(truths)]
    problem = Problem(system, tuple(records), NAMES, OutputError(), per_record=NAMES)
    method, before = FromClosedForm(LeastSquares()), memory()
    begin = time.perf_counter()
    apart = [identify(part, method) for part in split_by_record(problem)]
    seconds, after = time.perf_counter() - begin, memory()
    errors = np.array(
        [
            abs(estimate[name] / p[i] - 1.0) if name not in estimate.undetermined else 0.0
            for estimate, p in zip(apart, truths, strict=True)
            for i, name in enumerate(NAMES)
        ]
    )
    console.print(
        f"7 joints, {len(records[0])} samples each, torque noise {options.noise:.1%}. Split by record: {seconds:.2f} s, memory "
        f"{before:.0f} -> {after:.0f} MB, {sum(e.success for e in apart)} of 7 converged, largest error of what is determined "
        f"{100 * errors.max():.2f} %"
    )
    begin = time.perf_counter()
    together = identify(problem, method)
    console.print(
        f"As one problem of 56 parameters: {time.perf_counter() - begin:.2f} s, memory {memory():.0f} MB, {together.status}"
    )
    table = Table("samples", "s", "us a sample", "iterations", "memory, MB", title="one joint")
    for count in options.samples:
        repeats = -(-count // 4600)
        parts = tuple(part for _ in range(repeats) for part in IDENTIFY.parts[:4])
        record = record_with(system, Trajectory(parts), truths[0], options.noise, 0, count)
        one = Problem(system, (record,), NAMES, OutputError())
        begin = time.perf_counter()
        found = identify(one, FromClosedForm(LeastSquares()))
        seconds = time.perf_counter() - begin
        table.add_row(
            f"{count:,}",
            f"{seconds:.2f}",
            f"{1e6 * seconds / count:.1f}",
            str(found.evaluations),
            f"{memory():.0f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
