"""What the friction studies share: true parameters, exact data, boxes, and results that a stopped run goes on from."""

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.integrate import solve_ivp

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.identification import OutputError, Problem, Record
from mechsmith.identification.excitation import Dwell, Move, Trajectory
from mechsmith.identification.friction.shape_factor import NAMES
from mechsmith.symbolic.catalogue import make_model

PERIOD = 1e-3
# While everything slides the error estimate is exactly 0, and without a limit scipy steps right over the Stribeck peak.
LONGEST_STEP = 2e-3
# The parameter sets of tests/reference/friction/L00, in the order of NAMES.
SETS = {
    "A": (1e5, 316.22776601683796, 1.0, 0.5, 0.01, 0.1, 0.4, 0.1),
    "B": (4e4, 150.0, 2.5, 0.9, 0.02, 0.2, 1.2, -0.25),
    "C": (2e5, 900.0, 12.0, 4.0, 0.008, 0.05, 8.0, -1.5),
}
# The first identifies (T1 of L00), the second validates (T2).
IDENTIFY = Trajectory(
    (Dwell(0.1), Move(1.5, 1.0, 2.0, 10.0), Dwell(0.1), Move(-1.5, 1.0, 2.0, 10.0), Dwell(0.1))
)
VALIDATE = Trajectory(
    (
        Dwell(0.05),
        Move(0.9, 0.72, 1.2, 4.0),
        Dwell(0.1),
        Move(0.45, 0.5, 1.0, 4.0),
        Dwell(0.1),
        Move(-1.44, 0.72, 1.2, 4.0),
        Dwell(0.1),
        Move(0.3, 0.3, 0.6, 4.0),
        Dwell(0.05),
    )
)


def simulator():
    """Return LuGre in compiled C; the library is cached, so every process may ask for it."""
    return build_simulator(discretise(lower(make_model("lugre"))))


def drawn(trial: int) -> tuple[str, np.ndarray]:
    """Return the name of a set and parameters drawn log-uniformly from the decade about it, by the trial's own seed."""
    name = "ABC"[trial % 3]
    exponents = np.random.default_rng(trial).uniform(-0.5, 0.5, len(NAMES))
    return name, np.array(SETS[name]) * 10.0**exponents


def boxes(name: str) -> dict[str, tuple[float, float]]:
    """Return boxes a decade to each side of a set; a3 may have either sign."""
    found = {n: (value / 10.0, value * 10.0) for n, value in zip(NAMES, SETS[name], strict=True)}
    found["a3"] = (-10.0 * abs(SETS[name][7]), 10.0 * abs(SETS[name][7]))
    return found


def exact_friction(p: np.ndarray, trajectory: Trajectory, *, rtol: float = 1e-11) -> np.ndarray:
    """Return LuGre's friction at the sample times by scipy's Radau, segment by segment of constant jerk, from rest."""
    s0, s1, a0, a1, v0, vd, a2, a3 = map(float, p)
    times = trajectory.times(PERIOD)
    force_of_bristles = np.zeros(len(times))
    state = 0.0
    for left, right in zip(trajectory.breakpoints[:-1], trajectory.breakpoints[1:], strict=True):
        inside = np.flatnonzero((times > left + 1e-12) & (times <= right + 1e-12))
        begin = trajectory.at(left)
        w, a, j = float(begin.velocity), float(begin.acceleration), float(begin.jerk)
        if w == a == j == 0.0:
            force_of_bristles[inside] = state
            continue

        def rate(t, zeta, *, w=w, a=a, j=j, left=left):
            t = t - left
            v = w + t * (a + 0.5 * t * j)
            return s0 * (v - abs(v) * zeta[0] / (a0 + a1 * math.exp(-((v / v0) ** 2))))

        def slope(t, zeta, *, w=w, a=a, j=j, left=left):
            t = t - left
            v = w + t * (a + 0.5 * t * j)
            return [[-s0 * abs(v) / (a0 + a1 * math.exp(-((v / v0) ** 2)))]]

        wanted = np.append(np.minimum(times[inside], right), right)
        wanted = np.unique(wanted)
        with np.errstate(divide="ignore"):  # an error of exactly 0 in scipy's step control
            found = solve_ivp(
                rate,
                (left, right),
                [state],
                "Radau",
                t_eval=wanted,
                rtol=rtol,
                atol=rtol * a0,
                jac=slope,
                max_step=LONGEST_STEP,
            )
        if not found.success:
            raise RuntimeError(found.message)
        force_of_bristles[inside] = np.interp(times[inside], wanted, found.y[0])
        state = float(found.y[0][-1])
    v = trajectory.at(times).velocity
    g = a0 + a1 * np.exp(-((v / v0) ** 2))
    bristle_rate = v - np.abs(v) * force_of_bristles / g
    return force_of_bristles + s1 * np.exp(-((v / vd) ** 2)) * bristle_rate + a2 * v + a3 * np.sign(v) * v**2


def cached_friction(folder: Path, trial: int) -> np.ndarray:
    """Return the exact friction of a trial, from the folder or computed and put there whole."""
    path = folder / "data" / f"trial_{trial}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part.npy")
        np.save(part, exact_friction(drawn(trial)[1], IDENTIFY))
        part.replace(path)
    return np.load(path)


def record_of(friction: np.ndarray, trajectory: Trajectory = IDENTIFY, *, source: str = "study") -> Record:
    """Return commanded motion and friction as a record."""
    command = trajectory.record(PERIOD, source=source)
    columns = {name: (command[name], command.units[name]) for name in command.columns}
    return Record.from_arrays(command.time, {**columns, "force": (friction, "N*m")}, source=source)


def problem_of(system, record: Record, name: str, **options) -> Problem:
    """Return the problem with the boxes of a set."""
    return Problem(system, (record,), NAMES, OutputError(**options), bounds=boxes(name))


def run_all(
    path: Path, jobs: Iterable[tuple], work: Callable[..., dict], *, workers: int, title: str
) -> list[dict]:
    """Do the jobs that the file of results does not hold yet, one line each, and return all results in order.

    A job is a tuple that `work` is called with; its text is its key.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {json.dumps(job): job for job in jobs}
    done = {}
    if path.exists():
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            done[entry["key"]] = entry["result"]
    left = [key for key in keys if key not in done]
    console, begin = Console(stderr=True), time.perf_counter()
    with path.open("a") as file, ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(work, *keys[key]): key for key in left}
        for count, future in enumerate(as_completed(futures), start=1):
            key = futures[future]
            done[key] = future.result()
            file.write(json.dumps({"key": key, "result": done[key]}) + "\n")
            file.flush()
            seconds = time.perf_counter() - begin
            console.print(
                f"{title}: {count}/{len(left)}, {seconds:.0f} s, {seconds / count * (len(left) - count):.0f} s left"
            )
    return [done[key] for key in keys if key in done]
