"""Translation to CasADi: one walk over the shared graph against sympy.lambdify, with and without cse.

Run: python benchmarks/translation.py [--joints 5] [--limit 60]
Prints, for arms with 1 to the given number of joints, the time of each way and its ratio to ours, in the same run.
A way that took longer than the limit is not tried on the next arm.
"""

import argparse
import statistics
import time

import casadi
import numpy
import sympy
from rich.console import Console
from rich.table import Table
from serial_arm import inverse_dynamics

from mechsmith.codegen.lower import translate
from mechsmith.symbolic.graph import intern


def by_walk(symbols, torques):
    table = {symbol.name: casadi.SX.sym(symbol.name) for symbol in symbols}
    return casadi.Function("f", list(table.values()), [casadi.vertcat(*translate(torques, table))])


def by_lambdify(symbols, torques, *, cse):
    function = sympy.lambdify(symbols, torques, modules=[casadi], cse=cse)
    arguments = [casadi.SX.sym(symbol.name) for symbol in symbols]
    return casadi.Function("f", arguments, [casadi.vertcat(*function(*arguments))])


WAYS = {
    "walk (ours)": by_walk,
    "lambdify cse": lambda s, t: by_lambdify(s, t, cse=True),
    "lambdify": lambda s, t: by_lambdify(s, t, cse=False),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--joints", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    table = Table(
        "joints", "nodes", *(f"{way}, s" for way in WAYS), *(f"{way} / ours" for way in list(WAYS)[1:])
    )
    skipped: set[str] = set()
    for joints in range(1, options.joints + 1):
        symbols, torques = inverse_dynamics(joints)
        point = numpy.random.default_rng(0).uniform(0.5, 1.5, len(symbols))
        times, values = {}, {}
        for name, way in WAYS.items():
            if name in skipped:
                continue
            runs = []
            for _ in range(3 if name == "walk (ours)" else 1):
                start = time.perf_counter()
                function = way(symbols, torques)
                runs.append(time.perf_counter() - start)
            times[name] = statistics.median(runs)
            values[name] = function(*point).full()
            if times[name] > options.limit:
                skipped.add(name)
        ours = times["walk (ours)"]
        for value in values.values():
            # Sums are taken in another order: rounding of some thousand operations.
            numpy.testing.assert_allclose(value, values["walk (ours)"], rtol=1e-9)
        table.add_row(
            str(joints),
            str(len(intern(torques).nodes)),
            *(f"{times[way]:.4f}" if way in times else "-" for way in WAYS),
            *(f"{times[way] / ours:.0f}" if way in times else "-" for way in list(WAYS)[1:]),
        )
    Console().print(table)


if __name__ == "__main__":
    main()
