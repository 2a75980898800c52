"""Joint stiffness identified in simulated experiments: what removing backlash changes, and whether intervals cover.

    python benchmarks/stiffness.py [--seeds 1000]

The published experiment on the IRB6700: 6 poses, 3 loads, 4 repeats, 72 readings of three gauges; the stiffness published with
backlash removed is the truth. After unloading each joint stays off by up to 6 urad (uniform), signed like its torque, in the
loaded and the unloaded reading alike; repeatability 1.5 um (normal), readings rounded to 1 um. Seeds 0 ... N-1. Also: the same
with offsets of random sign, and poses chosen by optimality in place of the published ones.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binom, spearmanr

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification.record import Record
from mechsmith.identification.serial.stiffness import identify_stiffness, scaled_singular_values
from mechsmith.identification.serial.stiffness_maps import inverse_conditioning
from mechsmith.identification.serial.stiffness_plan import (
    Candidates,
    choose_conditions,
    random_poses,
    rope_candidates,
)
from mechsmith.identification.serial.stiffness_record import (
    Regressor,
    gauge_record,
    gauges_along_flange,
    stiffness_regressor,
)
from mechsmith.symbolic.serial.conditioning import make_conditioning
from mechsmith.symbolic.serial.irb6700 import STIFFNESS, make_irb6700_gauge
from mechsmith.symbolic.serial.kinematics import make_pose
from mechsmith.symbolic.serial.robots import irb6700

REFERENCE = Path(__file__).parents[1] / "tests/reference/serial/K06_experiment.json"
TRUE = np.array(STIFFNESS)
OFFSET, NOISE, MICRON, REPEATS = 6e-6, 1.5e-6, 6, 4
GAUGES = gauges_along_flange((0.165, -0.165, 0.0))
EYEBOLT = np.array([0.0, -0.05, 0.05])
JUDGED_AT = 0.001  # two-sided, for each joint


@dataclass(frozen=True)
class Setup:
    """An experiment's conditions, and what its readings are made of."""

    functions: FunctionSet
    conditions: Candidates
    regressor: Regressor
    random_sign: bool = False

    def record(self, seed: int) -> Record:
        """Return simulated readings."""
        rng = np.random.default_rng(seed)
        count = len(self.conditions.positions)
        clean = (self.regressor.matrix @ (1.0 / TRUE)).reshape(count, 1, 3)
        slope = (self.regressor.matrix / self.regressor.torques).reshape(count, 3, 6)
        sign = np.sign(self.regressor.torques).reshape(count, 3, 6)[:, None, 0]
        offset = rng.uniform(0.0, OFFSET, (count, REPEATS, 6))
        offset *= rng.choice([-1.0, 1.0], offset.shape) if self.random_sign else sign
        left = np.einsum("nga,nra->nrg", slope, offset)
        loaded, unloaded = rng.normal(0.0, NOISE, (2, count, REPEATS, 3))
        return gauge_record(
            self.conditions.positions,
            self.conditions.load,
            GAUGES,
            loaded=np.round(clean + left + loaded, MICRON),
            unloaded=np.round(left + unloaded, MICRON),
        )


def setup(functions: FunctionSet, conditions: Candidates, *, random_sign: bool = False) -> Setup:
    """Return an experiment ready to be simulated."""
    plan = gauge_record(conditions.positions, conditions.load, GAUGES)
    return Setup(functions, conditions, stiffness_regressor(functions, plan), random_sign)


def published() -> tuple[Candidates, Candidates]:
    """Return the conditions of the experiment and those of its validation."""
    data = json.loads(REFERENCE.read_text())
    check = data["expected"]["validation"]
    validation = [{**check, "mass_kg": mass} for mass in check["loads_kg"]]
    return conditions_of(data["data"]), conditions_of(validation)


def conditions_of(entries: list[dict]) -> Candidates:
    pulleys = np.array([entry["pulley_m"] for entry in entries])
    load = {f"pulley_{axis}": pulleys[:, i] for i, axis in enumerate("xyz")}
    load["mass"] = np.array([entry["mass_kg"] for entry in entries])
    return Candidates(np.radians([entry["q_deg"] for entry in entries]), load)


def runs(experiment: Setup, seeds: int, what: str) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield compliances with and without backlash removed, and which intervals of the former cover."""
    begin = time.perf_counter()
    for seed in range(seeds):
        record = experiment.record(seed)
        removed = identify_stiffness(experiment.functions, record)
        kept = identify_stiffness(experiment.functions, record, remove_backlash=False)
        low, high = removed.stiffness_intervals.T
        yield removed.compliances, kept.compliances, (low <= TRUE) & (high >= TRUE)
        if (seed + 1) % 250 == 0:
            print(f"  {what}: {seed + 1} of {seeds}, {time.perf_counter() - begin:.0f} s", flush=True)


def study(experiment: Setup, validation: Regressor, seeds: int, what: str) -> None:
    """Print bias, scatter, coverage and prediction errors."""
    results = list(runs(experiment, seeds, what))
    removed, kept, covered = (np.array(column) for column in zip(*results, strict=True))
    bounds = binom.ppf([JUDGED_AT / 2, 1 - JUDGED_AT / 2], seeds, 0.95) / seeds
    print(f"{what}: {seeds} seeds, {len(experiment.conditions.positions) * REPEATS} readings of three gauges")
    print(f"  coverage of 95 % intervals may be {100 * bounds[0]:.1f} to {100 * bounds[1]:.1f} %")
    print("  joint   K_B/K median  sd %   K_A/K median  sd %   K_A low %  coverage %")
    for i in range(6):
        ratio = [1.0 / (c[:, i] * TRUE[i]) for c in (removed, kept)]
        inside = bounds[0] <= covered[:, i].mean() <= bounds[1]
        print(
            f"  {i + 1:>5} {np.median(ratio[0]):>13.4f} {100 * ratio[0].std():>5.2f} {np.median(ratio[1]):>14.4f} "
            f"{100 * ratio[1].std():>5.2f} {100 * (ratio[1] < 1).mean():>11.1f} {100 * covered[:, i].mean():>11.1f}"
            f"{'' if inside else '  outside'}"
        )
    true = validation.matrix @ (1.0 / TRUE)
    errors = [np.abs(c @ validation.matrix.T - true) for c in (removed, kept)]
    shares = [
        100 * e.reshape(seeds, -1, 3).sum(axis=1) / np.abs(true).reshape(-1, 3).sum(axis=0) for e in errors
    ]
    for name, error, share in zip(("removed", "kept"), errors, shares, strict=True):
        x, y, z = share.mean(axis=0)
        print(
            f"  backlash {name}: prediction off by {1e6 * error.mean():.3f} um; X {x:.2f} Y {y:.2f} Z {z:.2f} %"
        )


def chosen_conditions(functions: FunctionSet) -> Candidates:
    """Return six poses by E-optimality among random ones within limits and clear of floor and base, with three loads."""
    begin = time.perf_counter()
    rng, chain = np.random.default_rng(0), irb6700()
    poses = random_poses([(joint.lower, joint.upper) for joint in chain.moving], 1000, rng=rng)
    pose = lower(make_pose(chain))
    flat = pose.batch("output", u=poses, p=pose.vector("p"))[:, :, 0]
    bolts = flat[:, 9:] + flat[:, :9].reshape(-1, 3, 3) @ EYEBOLT
    options = {"mass": 37.25, "length": 1.0, "directions": 4, "lowest": 0.3, "radius": 0.6}
    candidates = rope_candidates(poses, bolts, rng=rng, **options)
    for criterion in ("D", "E"):
        design = choose_conditions(functions, candidates, GAUGES, 1.0 / TRUE, count=6, criterion=criterion)
        print(
            f"{criterion}-optimal six of {len(candidates.positions)}: singular values "
            f"{' '.join(f'{1e6 * s:.1f}' for s in design.singular_values)} um, {time.perf_counter() - begin:.1f} s so far"
        )
    compare_with_conditioning(functions, candidates)
    best = candidates.take(design.chosen)
    masses = np.tile([7.8, 28.7, 37.25], 6)
    load = {name: np.repeat(values, 3) for name, values in best.load.items()}
    return Candidates(np.repeat(best.positions, 3, axis=0), load | {"mass": masses})


def compare_with_conditioning(functions: FunctionSet, candidates: Candidates, *, sets: int = 1000) -> None:
    """Print what choosing by 1/KF alone gives, and how 1/KF goes with identifiability over random sets of six."""
    kf = inverse_conditioning(lower(make_conditioning(irb6700()))).at(candidates.positions)
    plan = gauge_record(candidates.positions, candidates.load, GAUGES)
    matrix = stiffness_regressor(functions, plan).matrix / TRUE
    blocks = matrix.reshape(len(kf), 3, 6)

    def smallest(rows: np.ndarray) -> float:
        return float(np.linalg.svd(blocks[rows].reshape(-1, 6), compute_uv=False)[-1])

    # One rope for each pose, the first drawn, so that poses differ.
    _, firsts = np.unique(candidates.positions, axis=0, return_index=True)
    best = firsts[np.argsort(-kf[firsts])[:6]]
    rng = np.random.default_rng(1)
    drawn = [rng.choice(firsts, 6, replace=False) for _ in range(sets)]
    values = [smallest(rows) for rows in drawn]
    found = spearmanr([kf[rows].mean() for rows in drawn], values)
    lowest = spearmanr([kf[rows].min() for rows in drawn], values)
    print(
        f"six poses of highest 1/KF, random ropes: smallest singular value {1e6 * smallest(best):.1f} um; over {sets} random sets "
        f"its median is {1e6 * np.median(values):.1f} um, and its rank correlation with the mean (least) 1/KF is "
        f"{found.statistic:.2f} ({lowest.statistic:.2f})"
    )


def main() -> None:
    """Run the studies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000)
    seeds = parser.parse_args().seeds
    functions = lower(make_irb6700_gauge()).with_jacobians(("output", "p"))
    conditions, check = published()
    validation = setup(functions, check).regressor
    heavy = conditions.take([i for i, mass in enumerate(conditions.load["mass"]) if mass > 37.0])
    singular = scaled_singular_values(setup(functions, heavy).regressor, 1.0 / TRUE)
    print(
        f"published six poses, heaviest load: singular values {' '.join(f'{1e6 * s:.1f}' for s in singular)} um"
    )
    optimal = chosen_conditions(functions)
    study(setup(functions, conditions), validation, seeds, "published poses, offsets signed like the torques")
    study(
        setup(functions, conditions, random_sign=True),
        validation,
        seeds,
        "published poses, offsets of random sign",
    )
    study(setup(functions, optimal), validation, seeds, "E-optimal poses, offsets signed like the torques")


if __name__ == "__main__":
    main()
