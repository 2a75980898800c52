"""Variants in a user's own file go the whole way: verified, generated, compiled, identified."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator
from mechsmith.codegen.tree import c_files, default_discretisation, write_files
from mechsmith.identification import LeastSquares, OutputError, Problem, Record, identify
from mechsmith.symbolic.catalogue import make_model
from mechsmith.symbolic.verify import verify

VARIANTS = Path(__file__).parents[2] / "examples" / "variants"
NAMES = ["lugre_exponent", "lugre_warm", "dahl"]
# The identities that a variant breaks: those that state what was exchanged.
BROKEN = {"lugre_exponent": {"(3)", "(11)"}, "lugre_warm": {"(5)", "(6)", "(10)"}, "dahl": set()}


def make(name: str):
    return make_model(f"{VARIANTS / name}.py:make_{name}")


@pytest.mark.parametrize("name", NAMES)
def test_a_variant_is_short(name: str) -> None:
    assert len((VARIANTS / f"{name}.py").read_text().splitlines()) <= 30


@pytest.mark.parametrize("name", NAMES)
def test_verify_says_which_identities_still_hold(name: str) -> None:
    verdicts = verify(make(name))
    broken = {v.identity.name for v in verdicts if v.status == "refuted" and v.identity.expected != "refuted"}
    assert broken == BROKEN[name]


@pytest.mark.compiler
@pytest.mark.parametrize("name", NAMES)
def test_generated_code_passes_its_own_vectors(name: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    functions = lower(make(name))
    write_files(tmp_path, c_files(functions, discretisation=default_discretisation(functions)))
    command = [compiler, "-std=c99", "-O1", f"{name}.c", f"{name}_test.c", "-o", "vectors", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "vectors"], check=False).returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_parameters_come_back_from_a_simulated_log(name: str) -> None:
    functions = lower(make(name))
    simulator = CasadiSimulator(discretise(functions))
    time = np.arange(0.0, 2.0, 1e-3)
    columns = {
        "velocity": 0.1 * np.sin(2.0 * np.pi * time),
        "position": 0.1 * (1.0 - np.cos(2.0 * np.pi * time)) / (2.0 * np.pi),
        "temperature": 300.0 + 20.0 * time,
    }
    samples = np.column_stack([columns[label] for label in simulator.samples])
    free = {
        "lugre_exponent": ("a0", "a1", "exponent"),
        "lugre_warm": ("a0", "decay"),
        "dahl": ("s0", "coulomb"),
    }[name]
    true = {
        label: value * 1.2
        for label, value in zip(functions.labels("p"), functions.vector("p"), strict=True)
        if label in free
    }
    p = functions.vector("p", true)
    motion = simulator.rollout(time, samples, functions.vector("x"), np.zeros(0), p)
    output = functions.labels("y")[0]
    units = dict(zip((*functions.labels("u"), "position"), (*functions.units("u"), "rad"), strict=True))
    arrays = {label: (columns[label], units[label]) for label in simulator.samples}
    record = Record.from_arrays(time, {**arrays, output: (motion.outputs[:, 0], functions.units("y")[0])})
    problem = Problem(simulator, (record,), free=free, residual=OutputError())
    estimate = identify(problem, LeastSquares())
    assert estimate.success
    # Noise-free data from the same simulator: what is left is the solver's tolerance.
    np.testing.assert_allclose([estimate.free[n] for n in free], [true[n] for n in free], rtol=1e-6)
