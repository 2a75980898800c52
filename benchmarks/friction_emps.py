"""Friction models on the EMPS axis: fitted to one run, judged on the other, with the number of parameters.

Run: python benchmarks/friction_emps.py --data SHARED/data/emps [--models ...] [--folder friction_results]
Data: Janot, Gautier, Brunot 2019 (not part of this project). force = M a + F(v) + offset over both runs, positions filtered and
differentiated and both sides decimated as in the published recipe. BIC = n ln(rss / n) + k ln n over the n decimated samples
of the first run; residuals are correlated, so differences of less than some tens say nothing.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
from friction_common import run_all
from rich.console import Console
from rich.table import Table

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.integrators import Radau
from mechsmith.codegen.lower import lower
from mechsmith.identification import (
    Decimation,
    EquationError,
    LeastSquares,
    OutputError,
    Problem,
    Record,
    identify,
    validate,
)
from mechsmith.identification.preprocessing import butterworth_zero_phase, differentiate, drop
from mechsmith.identification.readers import ColumnSpec, read_record
from mechsmith.symbolic.drive.emps_lugre import make_emps_lugre
from mechsmith.symbolic.friction.coulomb import make_coulomb, make_coulomb_directional
from mechsmith.symbolic.friction.dahl import make_dahl
from mechsmith.symbolic.friction.elasto_plastic import make_elasto_plastic
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.friction.lugre_variants import make_lugre_asymmetric, make_lugre_constant
from mechsmith.symbolic.friction.maxwell_slip import make_maxwell_slip
from mechsmith.symbolic.friction.stribeck import make_stribeck
from mechsmith.symbolic.friction.viscous import add_viscous

MODELS = {
    "Coulomb": lambda: make_coulomb(motion="linear"),
    "Coulomb + viscous": lambda: add_viscous(make_coulomb(motion="linear")),
    "Coulomb + viscous, quadratic": lambda: add_viscous(make_coulomb(motion="linear"), order=2),
    "Coulomb + viscous, cubic": lambda: add_viscous(make_coulomb(motion="linear"), order=3),
    "Coulomb + viscous by direction": lambda: add_viscous(
        make_coulomb_directional(motion="linear"), directional=True
    ),
    "Dahl + viscous by direction": lambda: add_viscous(make_dahl(motion="linear"), directional=True),
    "Stribeck, Gaussian": lambda: make_stribeck(motion="linear"),
    "Stribeck, exponent": lambda: make_stribeck(shape="exponent", motion="linear"),
    "Dahl + viscous": lambda: add_viscous(make_dahl(motion="linear")),
    "LuGre, constant s1": lambda: make_lugre_constant(motion="linear"),
    "LuGre": lambda: make_lugre(motion="linear"),
    "LuGre by direction": lambda: make_lugre_asymmetric(motion="linear"),
    "elasto-plastic": lambda: make_elasto_plastic(motion="linear"),
    "Maxwell-slip, 4 elements": lambda: make_maxwell_slip(motion="linear"),
}
# Bounds of what the models leave open to infinity, and of what would leave the physics of such an axis.
BOUNDS = {
    "s0": (1e3, 1e8),
    "s1": (1e-2, 1e5),
    "a0": (1.0, 100.0),
    "a1": (1e-3, 50.0),
    "v0": (1e-4, 0.2),
    "vd": (1e-3, 10.0),
    "k1": (1e3, 1e8),
    "k2": (1e3, 1e8),
    "k3": (1e3, 1e8),
    "k4": (1e3, 1e8),
    "attraction": (1.0, 1e6),
}
STARTS = ({"v0": 0.01, "s0": 1e6}, {"v0": 0.05, "s0": 1e5}, {"v0": 0.003, "s0": 3e6})


def prepared(folder: Path, name: str) -> Record:
    record = read_record(
        folder / name,
        time=ColumnSpec("t", "s", "s"),
        columns={
            "friction_position": ColumnSpec("qm", "m", "m"),
            "force": ColumnSpec("vir", "V", "N", gain=35.15065188248547, gain_unit="N/V"),
        },
    )
    record = butterworth_zero_phase(record, ["friction_position"], order=4, cutoff_hz=100.0)
    record = differentiate(record, "friction_position", "friction_velocity")
    record = differentiate(record, "friction_velocity", "carriage_acceleration")
    return drop(record, first=49)


def fit_of(title: str, folder: str) -> dict:
    first, second = (prepared(Path(folder), f"DATA_EMPS{name}.mat") for name in ("", "_PULSES"))
    functions = lower(make_emps_lugre(MODELS[title]()))
    simulated = bool(functions.states)
    # Newton's method needs more than its four iterations where elasto-plastic bristles go from sticking to sliding in a sample.
    method = Radau(iterations=10) if "elasto" in title else Radau()
    system = build_simulator(discretise(functions, method)) if simulated else functions
    kind = OutputError if simulated else EquationError
    residual = kind(outputs={"force": "force"}, decimation=Decimation(10))
    # Coulomb friction of two sizes and an offset are one too many; the published model leaves the offset out.
    fixed = {"carriage_offset": 0.0} if "friction_a0_forward" in functions.labels("p") else {}
    free = tuple(n for n in functions.labels("p") if not n.endswith("sample_time") and n not in fixed)
    bounds = {
        name: BOUNDS[base]
        for name in free
        for base in [name.removeprefix("friction_").removesuffix("_forward").removesuffix("_backward")]
        if base in BOUNDS
    }
    problem = Problem(system, (first,), free, residual, fixed=fixed, bounds=bounds)
    begin = time.perf_counter()
    found = []
    for start in STARTS if simulated or "v0" in title or "Stribeck" in title else STARTS[:1]:
        named = {f"friction_{name}": value for name, value in start.items()}
        found.append(identify(problem, LeastSquares(max_evaluations=200), start=named))
    best = min(found, key=lambda estimate: estimate.residual_norm)
    judged = validate(system, second, best, residual)
    n, k = best.samples, len(free)
    return {
        "parameters": k,
        "undetermined": list(best.undetermined),
        "at_bound": list(best.at_bound),
        "success": best.success,
        "fit": best.relative_error,
        "second": judged["force"].relative_error,
        "wape": judged["force"].wape,
        "bic": n * math.log(best.residual_norm**2 / n) + k * math.log(n),
        "seconds": time.perf_counter() - begin,
        "values": best.free,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("friction_results"))
    options = parser.parse_args()
    jobs = [(title, str(options.data)) for title in options.models]
    results = run_all(options.folder / "emps.jsonl", jobs, fit_of, workers=options.workers, title="EMPS")
    least = min(result["bic"] for result in results)
    columns = (
        "friction",
        "parameters",
        "not determined",
        "error %",
        "second run %",
        "WAPE second %",
        "BIC",
        "s",
    )
    table = Table(*columns, title="EMPS: force from measured motion")
    for (title, _), result in zip(jobs, results, strict=True):
        open_ones = ", ".join(name.removeprefix("friction_") for name in result["undetermined"])
        table.add_row(
            title,
            str(result["parameters"]),
            open_ones or "-",
            f"{result['fit']:.3f}",
            f"{result['second']:.3f}",
            f"{result['wape']:.3f}",
            f"+{result['bic'] - least:.0f}",
            f"{result['seconds']:.1f}{'' if result['success'] else ' (not converged)'}",
        )
    console = Console(width=150)
    console.print(table)
    best = int(np.argmin([result["second"] for result in results]))
    console.print(f"Least error on the second run: {jobs[best][0]}. BIC relative to the least.")


if __name__ == "__main__":
    main()
