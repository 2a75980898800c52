"""Building: a cache that many processes may use at once, clear errors, and results that travel to workers."""

import multiprocessing
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import sympy

from mechsmith.codegen import build as building
from mechsmith.codegen.build import BuildError, build, build_simulator, find_compiler
from mechsmith.codegen.discretise import Discretisation, discretise
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator, Simulator
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

x, k = sympy.symbols("x k", real=True)
TIME, SAMPLES = numpy.linspace(0.0, 1.0, 6), numpy.zeros((6, 0))


def decay() -> FunctionSet:
    return lower(
        Model(
            name="decay",
            states=(Quantity(x, ""),),
            parameters=(Quantity(k, "1/s", nominal=2.0),),
            derivatives={x: -k * x},
            outputs={Quantity("y", ""): x},
        )
    )


def roll(simulator: Simulator) -> list[float]:
    result = simulator.rollout(TIME, SAMPLES, numpy.ones(1), numpy.zeros(0), numpy.array([2.0]))
    found: list[float] = result.outputs[:, 0].tolist()
    return found


def test_many_processes_build_the_same_at_once(tmp_path: Path) -> None:
    """Four compile at the same time, none waits for another, and each finds a whole library."""
    script = (
        "import sys, pathlib, sympy, numpy\n"
        "from mechsmith.codegen.build import build\n"
        "from mechsmith.codegen.lower import lower\n"
        "from mechsmith.symbolic.model import Model\n"
        "from mechsmith.symbolic.quantity import Quantity\n"
        "x = sympy.Symbol('x', real=True)\n"
        "model = Model(name='m', inputs=(Quantity(x, ''),), outputs={Quantity('y', ''): sympy.sin(x)})\n"
        "functions = lower(model)\n"
        "sys.stdin.readline()\n"
        "print(build(functions, cache=pathlib.Path(sys.argv[1])).evaluate('output', u=[0.5]).item())\n"
    )

    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    printed = [worker.communicate() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, printed
    assert {float(out) for out, _ in printed} == {float(numpy.sin(0.5))}
    assert [path.suffix for path in tmp_path.iterdir()] == [".so"]


def test_a_library_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_simulator(discretise(decay()), cache=tmp_path)

    def refuse(*_: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(building, "_run_compiler", refuse)
    assert build_simulator(discretise(decay()), cache=tmp_path).library == first.library


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert find_compiler() is None
    functions = decay()
    for attempt in (
        lambda: build(functions, cache=tmp_path),
        lambda: build_simulator(discretise(functions), cache=tmp_path),
    ):
        with pytest.raises(BuildError, match=r"'decay': no C compiler found .* or use the CasADi functions"):
            attempt()
    # Five steps of order 5: the error is 5 (0.4)^6 / 7200, relative.
    assert roll(CasadiSimulator(discretise(functions)))[-1] == pytest.approx(numpy.exp(-2.0), rel=1e-5)


def test_a_compiler_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'disk full' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(broken))
    with pytest.raises(BuildError, match=r"cc refused decay_batch\.c:\ndisk full"):
        build(decay(), cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_library_that_is_gone(tmp_path: Path) -> None:
    functions = build(decay(), cache=tmp_path)
    sent = pickle.dumps(functions)
    next(tmp_path.glob("*.so")).unlink()
    with pytest.raises(BuildError, match=r"is gone .* Build it again"):
        pickle.loads(sent).evaluate("derivative", x=[1.0], p=[1.0])


def test_d10_everything_reaches_a_worker_under_spawn(cache: Path) -> None:
    functions = decay()
    discretisation: Discretisation = discretise(functions)
    compiled = build_simulator(discretisation, cache=cache)
    here = [roll(CasadiSimulator(discretisation)), roll(compiled)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = [
            pool.apply(type(s).rollout, (s, TIME, SAMPLES, numpy.ones(1), numpy.zeros(0), numpy.array([2.0])))
            for s in (CasadiSimulator(discretisation), compiled)
        ]
        slopes = [
            pool.apply(FunctionSet.evaluate, (f, "derivative"), {"x": [3.0], "p": [2.0]})
            for f in (functions, build(functions, cache=cache))
        ]
    assert [result.outputs[:, 0].tolist() for result in there] == here
    assert [slope.item() for slope in slopes] == [-6.0, -6.0]


def test_no_points_give_no_values(three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]) -> None:
    for way in three_ways(decay()).values():
        assert way.batch("output", x=numpy.zeros((0, 1)), p=[1.0]).shape == (0, 1, 1)


def test_a_jacobian_without_columns(three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]) -> None:
    functions = decay().with_jacobians(("output", "u"), ("output", "d"))
    for way in three_ways(functions).values():
        assert way.evaluate("output_u", x=[1.0], p=[1.0]).shape == (1, 0)
        assert way.batch("output_d", x=numpy.ones((3, 1)), p=[1.0]).shape == (3, 1, 0)
