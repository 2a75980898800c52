"""Cost of a flexible link by its number of modes: derivation, translation, size of the generated code, real-time factor.

python benchmarks/flexible_cost.py [modes ...]
"""

import sys
import time

import numpy as np

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.emit_c import emit_c
from mechsmith.codegen.held import hold
from mechsmith.codegen.integrators import RungeKutta4
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.flexible.link import make_flexible_link


def measured(modes: int) -> str:
    """Return one row of the table."""
    begin = time.perf_counter()
    model = make_flexible_link(modes=modes)
    derived = time.perf_counter()
    held = hold(lower(model))
    discretisation = discretise(held.functions, RungeKutta4())
    translated = time.perf_counter()
    size = {name: held.functions.casadi_function(name).n_instructions() for name in ("mass", "derivative")}
    text = emit_c(held.functions, discretisation=discretisation)
    code = sum(len(part) for part in text.values())
    inner = build_simulator(discretisation, sensitivities=False)
    simulator = held.simulator(inner)
    # the fastest mode is resolved by ten steps a radian
    functions, step = held.original, 0.1 / fastest(modes)
    samples = np.arange(20000) * step
    motion = (
        samples,
        np.zeros((20000, 1)),
        np.full(functions.size("x"), 1e-4),
        np.zeros(0),
        functions.vector("p"),
    )
    simulator.rollout(*motion)
    before = time.perf_counter()
    simulator.rollout(*motion)
    passed = time.perf_counter() - before
    return (
        f"{modes:5}  {derived - begin:9.2f}  {translated - derived:11.2f}  {sum(size.values()):12}  "
        f"{discretisation.kernels['substep'].n_instructions():12}  {code / 1000:8.0f}  {step * 1e6:8.1f}  "
        f"{passed / 20000 * 1e6:9.2f}  {samples[-1] / passed:9.1f}"
    )


def fastest(modes: int) -> float:
    """Return the frequency of the highest mode of the nominal beam, rad/s."""
    return float(((modes - 0.5) * np.pi) ** 2 * np.sqrt(0.16257741982327184 / 0.02450756429065398))


if __name__ == "__main__":
    print(
        "modes  derive/s  translate/s  M and f, ops  substep, ops  C, kB  step/us  a step/us  real-time factor"
    )
    for count in map(int, sys.argv[1:] or ("2", "4", "6", "8", "10", "12")):
        print(measured(count), flush=True)
