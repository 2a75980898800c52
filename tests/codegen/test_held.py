"""Unknowns solved one after another between their bounds, and held: beams, in generated C."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.held import hold
from mechsmith.codegen.lower import lower
from mechsmith.codegen.tree import c_files, write_files
from mechsmith.codegen.unknowns import UnknownsSolver
from mechsmith.symbolic.flexible.beam import make_beam_frequencies
from mechsmith.symbolic.flexible.link import make_flexible_link

NONE = np.zeros((1, 0))


def run_c(folder: Path, functions: FunctionSet, body: str, scalar: str) -> list[float]:
    """Return the numbers that a C program with the functions' files prints."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    write_files(folder, c_files(functions, scalar=scalar))  # type: ignore[arg-type]
    name = functions.name
    program = f'#include "{name}.h"\n#include <stdio.h>\nint main(void)\n{{\n{body}\n}}\n'
    (folder / "main.c").write_text(program)
    flags = "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wdouble-promotion -Werror -O1".split()
    subprocess.run([compiler, *flags, f"{name}.c", "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    done = subprocess.run(["./main"], cwd=folder, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


@pytest.mark.compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
def test_roots_of_a_beam_with_a_turning_hub_in_c(tmp_path: Path, scalar: str) -> None:
    functions = lower(make_beam_frequencies(modes=3, hub="turning"))
    p = functions.vector("p")
    expected = UnknownsSolver(functions).solve(NONE, NONE, NONE, p[None, :])
    assert expected.found.all()
    suffix = "f" if scalar == "float" else ""
    start = ", ".join(f"{value!r}{suffix}" for value in map(float, functions.vector("z")))
    given = ", ".join(f"{value!r}{suffix}" for value in map(float, p))
    printed = " ".join(f'(void)printf("%.17g ", (double)z.{name});' for name in functions.labels("z"))
    body = f"    beam_frequencies_unknown_t z = {{{start}}};\n    beam_frequencies_parameters_t p = {{{given}}};\n"
    body += f"    const int status = beam_frequencies_solve(&z, &p);\n    {printed}\n    return status;"
    found = run_c(tmp_path, functions, body, scalar)
    # float: a few units in the last place of z, over a slope of order 1
    np.testing.assert_allclose(found, expected.values[0], rtol=1e-13 if scalar == "double" else 2e-5)


@pytest.mark.compiler
def test_the_preparation_in_c(tmp_path: Path) -> None:
    held = hold(lower(make_flexible_link(modes=1)))
    functions = held.preparation
    p = held.original.vector("p")
    expected = held.parameters(p)[-functions.size("y") :]
    given = ", ".join(repr(value) for value in map(float, p))
    name = functions.name
    body = f"    {name}_unknown_t z = {{{float(functions.vector('z')[0])!r}}};\n"
    body += f"    {name}_parameters_t p = {{{given}}};\n    {name}_output_t y;\n"
    body += f"    const int status = {name}_solve(&z, &p);\n    {name}_output(&z, &p, &y);\n"
    body += f'    for (int i = 0; i < {len(expected)}; ++i) {{\n        (void)printf("%.17g ", y.held[i]);\n    }}\n'
    found = run_c(tmp_path, functions, body + "    return status;", "double")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_held_depends_on_parameters_alone() -> None:
    functions = lower(make_flexible_link(modes=2))
    held = hold(functions)
    assert held.functions.unknowns == ()
    assert held.functions.parameters[-1].name == "held"
    p = functions.vector("p", {"joint_stiffness": 0.4})
    z = UnknownsSolver(functions).solve(np.zeros((1, 6)), NONE, np.zeros((1, 1)), p[None, :]).values[0]
    x, u = np.array([0.1, 0.02, 0.01, 0.3, 0.2, -0.1]), np.array([0.05])
    for name in ("mass", "derivative", "output"):
        direct = functions.evaluate(name, x, z=z, u=u, p=p)
        through = held.functions.evaluate(name, x, u=u, p=held.parameters(p))
        np.testing.assert_allclose(through, direct, rtol=1e-12, atol=1e-15)
