"""Inverse dynamics of a Staubli TX40 identified from its recorded motion: base parameters by QR, friction, residuals.

    python benchmarks/tx40.py ../shared/data/tx40

The folder holds the recordings and published figures of the project figaroh (Apache-2.0): 45,000 samples at 5 kHz. Positions are
filtered with a Butterworth filter, forward and backward, and differentiated by central differences; torques are filtered alike;
both are decimated. Rows of a joint that moves more slowly than its threshold are left out. Weighted least squares, the weight of a
joint from its residual. Identified on the first two thirds of the time, and judged on it and on the last third.
"""

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import butter, decimate, filtfilt

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification.base_parameters import BaseParameters, base_parameters
from mechsmith.identification.serial.regressor import (
    inertial_names,
    motion_inputs,
    random_motion,
    torque_regressor,
    with_effect,
)
from mechsmith.symbolic.serial.dynamics import make_inverse_dynamics
from mechsmith.symbolic.serial.read import read_urdf

RATE = 5000.0  # Hz
RATIOS = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
THRESHOLDS = np.array(
    [0.05009095, 0.05009095, 0.07504916, 0.0715585, 0.05585054, 0.12217305]
)  # rad/s, as configured
PUBLISHED_FV = (8.05, 5.53, 1.97, 1.11, 1.86, 0.65)
PUBLISHED_FS = (7.14, 8.26, 6.34, 2.48, 3.03, 0.28)
PUBLISHED_COUPLING = {"Iam6": 0.00964, "fvm6": 0.616, "fsm6": 1.95}
EDGE = 500  # samples dropped at both ends, where the filter begins and ends
ORDER = 4


@dataclass(frozen=True)
class Motion:
    """Positions, speeds, accelerations and torques of the joints, each (n, 6), SI."""

    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray
    torque: np.ndarray


def measured(folder: Path, *, cutoff: float, factor: int) -> Motion:
    """Return the recorded motion, filtered and decimated."""
    position, current = (
        np.loadtxt(folder / f"{name}_data.csv.gz", delimiter=",", skiprows=1) for name in ("pos_read", "curr")
    )
    kinematic, static = RATIOS.copy(), RATIOS.copy()
    kinematic[5, 4], static[4, 5] = 32.0, 32.0  # the wrist's drives are coupled
    q = position @ np.linalg.inv(kinematic).T + np.array([0.0, -0.5, 0.5, 0.0, 0.0, 0.0]) * np.pi
    torque = current @ static.T
    b, a = butter(ORDER, cutoff / (RATE / 2))
    q, torque = filtfilt(b, a, q, axis=0), filtfilt(b, a, torque, axis=0)
    dq = np.gradient(q, 1.0 / RATE, axis=0)
    ddq = np.gradient(dq, 1.0 / RATE, axis=0)
    columns = [column[EDGE:-EDGE] for column in (q, dq, ddq, torque)]
    return Motion(
        *(decimate(column, factor, ftype="iir", axis=0) if factor > 1 else column for column in columns)
    )


def regressor(functions: FunctionSet, motion: Motion) -> tuple[np.ndarray, list[str]]:
    """Return (n, 6, parameters) with its names: inertial parameters, drives' inertia, friction, offsets, coupling."""
    names = inertial_names(functions)
    inertial = torque_regressor(functions, motion_inputs(functions, motion.q, motion.dq, motion.ddq), names)
    one = np.eye(6)
    blocks, labels = [inertial], list(names)
    for name, values_of in (
        ("Ia", motion.ddq),
        ("fv", motion.dq),
        ("fs", np.sign(motion.dq)),
        ("off", np.ones_like(motion.q)),
    ):
        blocks.append(values_of[:, :, None] * one)
        labels += [f"{name}{i + 1}" for i in range(6)]
    both = np.sign(motion.dq[:, 4] + motion.dq[:, 5])
    coupling = np.zeros((len(both), 6, 3))
    coupling[:, 4] = np.column_stack([motion.ddq[:, 5], motion.dq[:, 5], both])
    coupling[:, 5] = np.column_stack([motion.ddq[:, 4], motion.dq[:, 4], both])
    return np.concatenate([*blocks, coupling], axis=2), [*labels, "Iam6", "fvm6", "fsm6"]


def grouping(functions: FunctionSet) -> BaseParameters:
    """Return the base parameters, by motions that show everything."""
    q, dq, ddq = random_motion(6, 300, rng=np.random.default_rng(0))
    whole, labels = regressor(functions, Motion(q, dq, ddq, np.zeros_like(q)))
    whole = whole.reshape(-1, len(labels))
    kept = with_effect(whole, labels)
    return base_parameters(whole[:, [labels.index(name) for name in kept]], kept)


@dataclass(frozen=True)
class Fit:
    """Base parameters with standard deviations, and relative residuals in %, (6,): on the training rows, held out."""

    values: np.ndarray
    deviations: np.ndarray
    training: np.ndarray
    held_out: np.ndarray


def fit(matrix: np.ndarray, motion: Motion, *, thresholds: np.ndarray, share: float = 2.0 / 3.0) -> Fit:
    """Return weighted least squares on the first share of the rows; NaN held out when that is all."""
    count = len(motion.q)
    early = np.arange(count) < round(share * count)
    moving = np.abs(motion.dq) > thresholds
    weights = np.ones(6)
    for _ in range(3):  # weights from residuals settle at once
        rows = moving & early[:, None]
        scaled = (matrix * weights[None, :, None])[rows]
        target = (motion.torque * weights)[rows]
        size = np.linalg.norm(scaled, axis=0)
        values = np.linalg.lstsq(scaled / size, target, rcond=1e-12)[0] / size
        residual = motion.torque - matrix @ values
        weights = 1.0 / np.array([residual[rows[:, j], j].std() for j in range(6)])
    scaled = (matrix * weights[None, :, None])[rows]
    covariance = np.linalg.pinv((scaled / size).T @ (scaled / size)) / np.outer(size, size)

    def remaining(part: np.ndarray) -> np.ndarray:
        chosen = [moving[:, j] & part for j in range(6)]
        return np.array(
            [
                100 * np.linalg.norm(residual[c, j]) / np.linalg.norm(motion.torque[c, j])
                for j, c in enumerate(chosen)
            ]
        )

    return Fit(
        values,
        np.sqrt(np.diag(covariance)),
        remaining(early),
        remaining(~early) if (~early).any() else np.full(6, np.nan),
    )


def line(values: np.ndarray | tuple[float, ...], form: str = "7.3f") -> str:
    return " ".join(f"{value:{form}}" for value in values)


def named(found: Fit, base: BaseParameters, prefix: str) -> list[float]:
    return [float(found.values[base.independent.index(f"{prefix}{i}")]) for i in range(1, 7)]


def prepared(folder: Path) -> tuple[FunctionSet, BaseParameters]:
    """Return the robot's inverse dynamics and its base parameters."""
    chain = read_urdf(folder / "tx40_mdh_modified.urdf").chain
    functions = lower(make_inverse_dynamics(chain)).with_jacobians(("output", "p"))
    return functions, grouping(functions)


def base_regressor(functions: FunctionSet, base: BaseParameters, motion: Motion) -> np.ndarray:
    """Return the regressor of the base parameters, (n, 6, base)."""
    whole, labels = regressor(functions, motion)
    return whole[:, :, [labels.index(name) for name in base.independent]]


def main() -> None:
    """Identify, print, and vary the filter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    functions, base = prepared(folder)
    print(f"{base.rank} base parameters of {len(base.names)} with an effect")
    for cutoff, factor in ((100.0, 10), (50.0, 10), (200.0, 10), (100.0, 5), (100.0, 20)):
        motion = measured(folder, cutoff=cutoff, factor=factor)
        matrix = base_regressor(functions, base, motion)
        found = fit(matrix, motion, thresholds=THRESHOLDS)
        print(
            f"Butterworth order {ORDER}, {cutoff:g} Hz, zero phase; every {factor}th sample; thresholds as configured"
        )
        print(
            f"  residual, training {line(found.training, '6.2f')} %   held out {line(found.held_out, '6.2f')} %"
        )
        print(f"  fv {line(named(found, base, 'fv'))}   published {line(PUBLISHED_FV)}")
        print(f"  fs {line(named(found, base, 'fs'))}   published {line(PUBLISHED_FS)}")
        for name, value in PUBLISHED_COUPLING.items():
            print(f"  {name} {found.values[base.independent.index(name)]:.5f}   published {value}")
        if (cutoff, factor) == (100.0, 10):
            every = fit(matrix, motion, thresholds=THRESHOLDS, share=1.0)
            print(f"  all rows: residual {line(every.training, '6.2f')} %")
            print(f"            fv {line(named(every, base, 'fv'))}")
            print(f"            fs {line(named(every, base, 'fs'))}")
            slow = fit(matrix, motion, thresholds=np.zeros(6))
            print(f"  without thresholds: fs {line(named(slow, base, 'fs'))}")
            for text, value, deviation in zip(
                base.expressions(), found.values, found.deviations, strict=True
            ):
                print(f"    {value:12.6f} +- {deviation:9.6f}  {text}")
    with (folder / "TX40_bp_5.csv").open(encoding="utf-8") as file:
        print("published:", *(f"{row[1]:>12}  {row[0]}" for row in csv.reader(file)), sep="\n    ")


if __name__ == "__main__":
    main()
