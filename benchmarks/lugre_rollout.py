"""LuGre rollouts: generated C against scipy's stiff solvers and CasADi's integrator, with the error of each.

Run: python benchmarks/lugre_rollout.py [--set A] [--motion T1] [--repeats 20]
Data: tests/reference/friction (Radau at a relative tolerance of 1e-11, by another solver). Every way gets the same
motion; errors are relative to the largest friction. Time is the median for the whole motion, in one run.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import casadi
import numpy
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.integrators import Exponential, Radau
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator
from mechsmith.symbolic.catalogue import make_model

REFERENCE = Path(__file__).parents[1] / "tests" / "reference" / "friction"


def load(name: str, motion: str):
    parameters = json.loads((REFERENCE / "L00_parameter_sets.json").read_text())["sets"][name]
    path = next(REFERENCE.glob(f"L05_sim_{name}_{motion}.csv*"))
    return numpy.array(list(parameters.values())), numpy.loadtxt(path, delimiter=",", skiprows=1)


def friction(z, v, p):
    s0, s1, a0, a1, v0, vd, a2, a3 = p
    rate = v - s0 * numpy.abs(v) * z / (a0 + a1 * numpy.exp(-((v / v0) ** 2)))
    return rate, s0 * z + s1 * numpy.exp(-((v / vd) ** 2)) * rate + a2 * v + a3 * numpy.sign(v) * v**2


def with_scipy(method, p, data, rtol):
    velocity = CubicHermiteSpline(data[:, 0], data[:, 1], data[:, 2]).derivative()
    size = (p[2] + p[3]) / p[0]
    found = solve_ivp(
        lambda t, z: friction(z, velocity(t), p)[0],
        (data[0, 0], data[-1, 0]),
        [0.0],
        method=method,
        t_eval=data[:, 0],
        rtol=rtol,
        atol=rtol * size,
        max_step=0.05,
    )
    return friction(found.y[0], data[:, 2], p)[1]


def with_cvodes(functions, p, data):
    q, v, t = data[:, 1], data[:, 2], data[:, 0]
    x, tau, u = casadi.SX.sym("x"), casadi.SX.sym("tau"), casadi.SX.sym("u", 4)
    h = t[1] - t[0]
    mean = 6 * (u[1] - u[0]) / h
    speed = u[2] + tau * (mean - 4 * u[2] - 2 * u[3] + tau * (3 * (u[2] + u[3]) - mean))
    rate = functions.casadi_function("derivative")(x, [], [], speed, p)
    options = {"reltol": 1e-8, "abstol": 1e-13, "max_num_steps": 100000}
    dae = {"x": x, "t": tau, "p": u, "ode": rate * h}
    step = casadi.integrator("step", "cvodes", dae, 0.0, 1.0, options)
    columns = numpy.vstack([q[:-1], q[1:], v[:-1], v[1:]])

    def run():
        z = step.mapaccum(len(t) - 1)(x0=0.0, p=columns)["xf"].full()[0]
        return friction(numpy.concatenate([[0.0], z]), v, p)[1]

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--set", default="A")
    parser.add_argument("--motion", default="T1")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    p, data = load(options.set, options.motion)
    functions = lower(make_model("lugre"))
    arguments = (data[:, 0], data[:, [2, 1]], numpy.zeros(1), numpy.zeros(0), p)
    ours = build_simulator(discretise(functions))
    cheap = build_simulator(discretise(functions, Exponential()))
    slow = CasadiSimulator(discretise(functions, Radau()))
    parameters = numpy.tile(p, (100, 1))
    ways = {
        "generated C, Radau, split at v = 0": (
            lambda: ours.rollout(*arguments).outputs[:, 0],
            options.repeats,
            1,
        ),
        "the same, 100 parameter vectors": (
            lambda: ours.rollout_batch(*arguments[:4], parameters)[0][0, :, 0],
            3,
            100,
        ),
        "the same with all sensitivities": (
            lambda: ours.rollout_sensitivities(*arguments).outputs[:, 0],
            options.repeats,
            1,
        ),
        "generated C, exponential": (lambda: cheap.rollout(*arguments).outputs[:, 0], options.repeats, 1),
        "CasADi's machine, Radau, our kernels": (lambda: slow.rollout(*arguments).outputs[:, 0], 1, 1),
        "CasADi cvodes": (with_cvodes(functions, p, data), 3, 1),
        "scipy Radau": (lambda: with_scipy("Radau", p, data, 1e-8), 1, 1),
        "scipy BDF": (lambda: with_scipy("BDF", p, data, 1e-8), 1, 1),
        "scipy LSODA": (lambda: with_scipy("LSODA", p, data, 1e-8), 1, 1),
    }
    table = Table("way", "us a rollout", "times ours", "largest error")
    first = None
    for name, (run, repeats, count) in ways.items():
        run()
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            result = run()
            times.append((time.perf_counter() - start) / count)
        median = statistics.median(times)
        first = first or median
        error = numpy.abs(result - data[:, 4]).max() / numpy.abs(data[:, 4]).max()
        table.add_row(name, f"{median * 1e6:,.0f}", f"{median / first:,.1f}", f"{error:.1e}")
    Console().print(f"{len(data)} samples at 1 kHz, set {options.set}, motion {options.motion}")
    Console().print(table)


if __name__ == "__main__":
    main()
