"""Algebraic unknowns: found, differentiated through, and the same in generated C."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sympy import cos, cosh, sin, symbols

from mechsmith.codegen.functions import FunctionSet, FunctionSetError
from mechsmith.codegen.lower import lower
from mechsmith.codegen.tree import c_files, write_files
from mechsmith.codegen.unknowns import UnknownsSolver, eliminate, require_found
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

q1, q2, l1, l2, x, y, beta, k = symbols("q1 q2 l1 l2 x y beta k", real=True)


def make_arm() -> FunctionSet:
    """Return a planar arm of two links: joint angles from the position of its tip."""
    return lower(
        Model(
            name="arm",
            inputs=(Quantity(x, "m"), Quantity(y, "m")),
            unknowns=(Quantity(q1, "rad", nominal=0.1), Quantity(q2, "rad", nominal=1.0)),
            parameters=(Quantity(l1, "m", nominal=0.5), Quantity(l2, "m", nominal=0.4)),
            constraints={q1: l1 * cos(q1) + l2 * cos(q1 + q2) - x, q2: l1 * sin(q1) + l2 * sin(q1 + q2) - y},
            outputs={Quantity("sum", "rad"): q1 + q2},
        )
    )


def make_beam() -> FunctionSet:
    """Return the first root of a frequency equation, bracketed."""
    return lower(
        Model(
            name="beam",
            parameters=(Quantity(k, "", nominal=3.0),),
            unknowns=(Quantity(beta, "", nominal=2.0, lower=1.0, upper=3.1),),
            constraints={beta: cos(beta) * cosh(beta) + 1 + 0.01 * k * beta**3},
            outputs={Quantity("square", ""): beta**2},
        )
    )


def test_both_branches_of_an_arm_against_the_closed_form() -> None:
    functions = make_arm()
    solver = UnknownsSolver(functions)
    rng = np.random.default_rng(0)
    lengths = functions.vector("p")
    joints = np.column_stack([rng.uniform(-1.0, 1.0, 50), rng.uniform(0.4, 2.4, 50)])
    elbow = 0.5 * np.exp(1j * joints[:, 0])
    tip = elbow + 0.4 * np.exp(1j * joints.sum(axis=1))
    target = np.column_stack([tip.real, tip.imag])
    none = np.zeros((1, 0))
    found = solver.solve(
        none, none, target, lengths[None, :], start=joints + rng.normal(0.0, 0.1, joints.shape)
    )
    assert found.found.all()
    # The condition of the closure is below 10 for these elbow angles.
    np.testing.assert_allclose(found.values, joints, atol=1e-13)
    mirrored = np.column_stack([2.0 * np.angle(tip) - joints[:, 0], -joints[:, 1]])
    other = solver.solve(none, none, target, lengths[None, :], start=mirrored + 0.05)
    np.testing.assert_allclose(np.exp(1j * other.values), np.exp(1j * mirrored), atol=1e-13)


def test_derivatives_by_the_implicit_function_theorem() -> None:
    for functions, u in ((make_arm(), [0.6, 0.3]), (make_beam(), [])):
        solved = eliminate(functions)
        p = functions.vector("p")
        exact = solved.evaluate("output_p", u=u, p=p)
        for i in range(len(p)):
            step = np.zeros_like(p)
            step[i] = 1e-5 * p[i]
            difference = (
                solved.evaluate("output", u=u, p=p + step) - solved.evaluate("output", u=u, p=p - step)
            ) / (2.0 * step[i])
            # Central differences: step^2 times a third derivative of order 1, and rounding over the step.
            np.testing.assert_allclose(difference[:, 0], exact[:, i], rtol=1e-8, atol=1e-10)


def test_a_point_out_of_reach_is_not_found_and_gives_nan() -> None:
    functions = make_arm()
    none = np.zeros((1, 0))
    points = np.array([[0.6, 0.3], [2.0, 0.0]])
    solved = UnknownsSolver(functions).solve(none, none, points, functions.vector("p")[None, :])
    assert solved.found.tolist() == [True, False]
    values = eliminate(functions).batch("output", u=points, p=functions.vector("p"))
    assert np.isnan(values[1]).all()
    with pytest.raises(FunctionSetError, match="point 1 of 2"):
        require_found(functions, solved, functions.labels("z"))


def test_a_bracket_without_a_sign_change_is_not_found() -> None:
    solved = eliminate(make_beam())
    assert np.isnan(solved.evaluate("output", p=[1e6])).all()


@pytest.mark.compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("which", ["arm", "beam"])
def test_generated_solver_finds_the_same(tmp_path: Path, which: str, scalar: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    functions = make_arm() if which == "arm" else make_beam()
    u = [0.6, 0.3] if which == "arm" else []
    expected = float(eliminate(functions).evaluate("output", u=u, p=functions.vector("p"))[0, 0])
    write_files(tmp_path, c_files(functions, scalar=scalar))  # type: ignore[arg-type]
    arm = f"arm_input_t u = {{0.6{'f' if scalar == 'float' else ''}, 0.3{'f' if scalar == 'float' else ''}}};"
    setup = {
        "arm": arm + "arm_unknown_t z = {0, 1}; arm_parameters_t p; p.l1 = 1; p.l1 /= 2; p.l2 = 2; p.l2 /= 5;"
        "const int s = arm_solve(&z, &u, &p); arm_output_t o; arm_output(&z, &u, &p, &o); value = (double)o.sum;",
        "beam": "beam_unknown_t z = {2}; beam_parameters_t p = {3}; const int s = beam_solve(&z, &p);"
        "beam_output_t o; beam_output(&z, &p, &o); value = (double)o.square;",
    }[which]
    program = f'#include "{which}.h"\n#include <stdio.h>\nint main(void)\n{{\n    double value; {setup}\n    (void)printf("%.17g", value); return s;\n}}\n'
    (tmp_path / "main.c").write_text(program)
    flags = "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wdouble-promotion -Werror -O1".split()
    command = [compiler, *flags, f"{which}.c", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    # float: a few units in the last place of numbers near 2, times the condition of the closure.
    assert float(done.stdout) == pytest.approx(expected, rel=1e-13 if scalar == "double" else 3e-6)


def test_a_root_at_zero_is_found_from_zero() -> None:
    """Where the start is zero the last step is judged in the unknown's unit, not against nothing."""
    functions = lower(
        Model(
            name="closed_arm",
            inputs=(Quantity(x, "m"),),
            unknowns=(Quantity(q1, "rad", nominal=0.0), Quantity(q2, "rad", nominal=0.0)),
            parameters=(Quantity(l1, "m", nominal=0.5),),
            constraints={q1: l1 * sin(q1) - x, q2: q2 + q1 - q1**2},
            outputs={Quantity("sum", "rad"): q1 + q2},
        )
    )
    none = np.zeros((1, 0))
    solved = UnknownsSolver(functions).solve(none, none, np.array([[0.0], [0.1]]), np.array([[0.5]]))
    assert solved.found.all()
    np.testing.assert_allclose(solved.values[:, 0], [0.0, np.arcsin(0.2)], atol=1e-15)
