"""What becomes of a spoilt record: outliers, NaN, dead time, wrong sign, wrong unit; each handled or named.

Run: python benchmarks/friction_robustness.py [--set A] [--noise 0.001] [--folder friction_results]
"""

import argparse
from pathlib import Path

import numpy as np
from friction_common import SETS, boxes, problem_of, record_of, simulator
from friction_noise import friction_of
from rich.console import Console
from rich.table import Table

from mechsmith.identification import LeastSquares, OutputError, Problem, Record, identify
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm
from mechsmith.identification.friction.signs import check_signs
from mechsmith.identification.outliers import without_outliers
from mechsmith.identification.record_checks import RecordError

METHOD = FromClosedForm(LeastSquares())


def told(estimate, truth) -> str:
    cells = [
        f"{name} {100 * abs(estimate[name] / value - 1):.2g}"
        for name, value in zip(NAMES, truth, strict=True)
        if name not in estimate.undetermined
    ]
    return ", ".join(cells) + " %"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--set", choices=SETS, default="A")
    parser.add_argument("--noise", type=float, default=0.001)
    parser.add_argument("--folder", type=Path, default=Path("friction_results"))
    options = parser.parse_args()
    system, truth = simulator(), SETS[options.set]
    friction = friction_of(options.set, options.folder)
    mean, rng = np.abs(friction).mean(), np.random.default_rng(0)
    friction = friction + options.noise * mean * rng.standard_normal(len(friction))
    clean = record_of(friction)
    table = Table("record", "what the software does", "errors of what is determined", show_lines=True)

    def row(title: str, record: Record, does: str) -> None:
        table.add_row(title, does, told(identify(problem_of(system, record, options.set), METHOD), truth))

    row("clean", clean, "")
    spoilt = friction.copy()
    spoilt[rng.choice(len(spoilt), len(spoilt) // 100, replace=False)] += 2.0 * mean
    problem = problem_of(system, record_of(spoilt), options.set)
    first = identify(problem, METHOD)
    table.add_row("1 % outliers of twice the mean", "nothing", told(first, truth))
    cleaned, counts, vector = without_outliers(problem, first.values, LeastSquares())
    again = identify(cleaned, LeastSquares(), start=dict(zip(NAMES, vector, strict=True)))
    table.add_row(
        "the same", f"without_outliers puts {counts[0]} of {len(spoilt) // 100} aside", told(again, truth)
    )
    missing = friction.copy()
    missing[1234] = np.nan
    try:
        record_of(missing)
    except RecordError as error:
        table.add_row("one NaN", f"named: {error}", "-")
    late = np.concatenate([np.zeros(3), friction[:-3]])
    row("torque 3 ms late", record_of(late), "nothing")
    delayed = Problem(
        system,
        (record_of(late),),
        (*NAMES, "dead_time"),
        OutputError(),
        bounds={**boxes(options.set), "dead_time": (0.0, 0.02)},
        delayed=("velocity", "position"),
    )
    found = identify(delayed, METHOD, start={"dead_time": 0.001})
    table.add_row("the same", f"dead_time free: {1e3 * found['dead_time']:.4f} ms", told(found, truth))
    for title, factor, column in (
        ("torque of the wrong sign", -1.0, "force"),
        ("velocity in deg/s, declared rad/s", 180.0 / np.pi, "velocity"),
        ("torque in mN m, declared N m", 1000.0, "force"),
    ):
        columns = {n: (clean[n] * (factor if n == column else 1.0), clean.units[n]) for n in clean.columns}
        record = Record.from_arrays(clean.time, columns)
        findings = [str(finding) for finding in check_signs(record)]
        if not findings:
            estimate = identify(problem_of(system, record, options.set), METHOD)
            findings = [f"at its bounds: {', '.join(estimate.at_bound)}"]
        table.add_row(title, f"named: {' '.join(findings)}", "-")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
