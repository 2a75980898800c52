"""LuGre where the motion comes from an encoder: what each method reaches with each of them.

Run: python benchmarks/friction_encoder.py [--sets A] [--noise 0.001] [--folder friction_results]
The true friction follows the commanded motion; the model is driven by that, or by positions in counts and their central
differences: 20 bits and 24 bits on the joint, 20 bits on the motor through a gear of 100.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from friction_common import IDENTIFY, PERIOD, SETS, problem_of, run_all, simulator
from friction_noise import friction_of
from rich.console import Console
from rich.table import Table

from mechsmith.identification import LeastSquares, Record, identify
from mechsmith.identification.friction.checks import Encoder, check_record
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm
from mechsmith.identification.friction.shape_method import ShapeFactors
from mechsmith.identification.swarm import ParticleSwarm

ENCODERS = {
    "commanded": None,
    "20 bits, joint": Encoder(20),
    "24 bits, joint": Encoder(24),
    "20 bits, motor, gear 100": Encoder(20, gear=100.0),
}
METHODS = {
    "closed form + least squares": FromClosedForm(LeastSquares()),
    "shape factors, 3 rounds": ShapeFactors(rounds=3),
    "plain swarm 100 x 200": ParticleSwarm(100, 200),
}


def measured(case: str, friction: np.ndarray) -> Record:
    """Return the record as that encoder gives it."""
    command = IDENTIFY.record(PERIOD)
    position, velocity = command["position"], command["velocity"]
    encoder = ENCODERS[case]
    if encoder is not None:
        position = encoder.read(position)
        velocity = np.gradient(position, PERIOD)
    columns = {"position": (position, "rad"), "velocity": (velocity, "rad/s"), "force": (friction, "N*m")}
    return Record.from_arrays(command.time, columns, source=case)


def case_of(name: str, case: str, method: str, noise: float, folder: str) -> dict:
    friction = friction_of(name, Path(folder))
    disturbance = noise * np.abs(friction).mean() * np.random.default_rng(0).standard_normal(len(friction))
    record = measured(case, friction + disturbance)
    problem = problem_of(simulator(), record, name)
    begin = time.perf_counter()
    try:
        estimate = identify(problem, METHODS[method], rng=np.random.default_rng(1))
    except ValueError as error:
        return {"error": f"{error}"}
    return {
        "seconds": time.perf_counter() - begin,
        "success": estimate.success,
        "message": estimate.message,
        "undetermined": list(estimate.undetermined),
        "relative": estimate.relative_error,
        "errors": [float(e) for e in np.abs(estimate.values / np.array(SETS[name]) - 1.0)],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="*", choices=SETS, default=["A"])
    parser.add_argument("--noise", type=float, default=0.001)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("friction_results"))
    options = parser.parse_args()
    simulator()
    for name in options.sets:
        friction_of(name, options.folder)
    jobs = [
        (s, c, m, options.noise, str(options.folder)) for s in options.sets for c in ENCODERS for m in METHODS
    ]
    results = run_all(
        options.folder / "encoder.jsonl", jobs, case_of, workers=options.workers, title="encoder"
    )
    console = Console(width=150)
    for case in ENCODERS:
        findings = check_record(
            measured(case, friction_of(options.sets[0], options.folder)), encoder_position="position"
        )
        told = [str(finding) for finding in findings if finding.kind == "encoder"]
        console.print(f"{case}: {' '.join(told) or 'resolves presliding'}")
    table = Table(
        "set",
        "input",
        "method",
        *(f"{n} %" for n in NAMES),
        "fit error %",
        "s",
        title="errors of the parameters",
    )
    for (name, case, method, *_), result in zip(jobs, results, strict=True):
        if "error" in result:
            table.add_row(name, case, method, result["error"][:60])
            continue
        cells = [
            f"({100 * e:.2g})" if n in result["undetermined"] else f"{100 * e:.2g}"
            for n, e in zip(NAMES, result["errors"], strict=True)
        ]
        table.add_row(name, case, method, *cells, f"{result['relative']:.2f}", f"{result['seconds']:.1f}")
    console.print(table)
    console.print(f"Torque noise {options.noise:.2%}. In brackets: reported as undetermined.")


if __name__ == "__main__":
    main()
