"""The generated solver of a mechanism's closure in C: warm start along a path, both branches, no solution."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mechsmith.codegen.build import find_compiler

GENERATED = Path(__file__).parents[2] / "generated"
# Metres: span, arm and distal link on either side.
LENGTHS = (0.3, 0.25, 0.35, 0.25, 0.35)
FOUND, NO_ROOT, SINGULAR = 0, 1, 2


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("closure") / "five_bar.so"
    source = GENERATED / "five_bar_forward.c"
    subprocess.run([compiler, "-std=c99", "-shared", "-fPIC", "-o", target, source, "-lm"], check=True)
    return ctypes.CDLL(str(target))


def solve(
    library: ctypes.CDLL, start: np.ndarray, arms: tuple[float, float]
) -> tuple[int, np.ndarray, float]:
    """Return status, unknowns and the largest residual there."""
    z, u, p = (ctypes.c_double * 4)(*start), (ctypes.c_double * 2)(*arms), (ctypes.c_double * 5)(*LENGTHS)
    status = library.five_bar_forward_solve(z, u, p)
    residual = (ctypes.c_double * 4)()
    library.five_bar_forward_constraint(z, u, p, residual)
    return status, np.array(z), float(np.abs(residual).max())


def test_path_is_followed_from_the_last_solution_on_both_branches(library: ctypes.CDLL) -> None:
    tips = {}
    for branch, start in (("up", (0.15, 0.6, -0.5, 0.5)), ("down", (0.15, -0.1, -2.5, 2.5))):
        z, path = np.array(start), []
        for angle in np.linspace(np.pi / 2, np.pi / 2 + 0.3, 31):
            status, z, residual = solve(library, z, (angle, np.pi - angle))
            assert status == FOUND
            # Lengths are below 1 m: some roundings of the sums.
            assert residual < 1e-14
            path.append(z)
        # 10 mrad of the arms can't move the tip by more than some centimetres unless the branch changes.
        assert np.abs(np.diff(np.array(path)[:, :2], axis=0)).max() < 0.03
        tips[branch] = path[0][:2]
    # By hand: elbows at (0, 0.25) and (0.3, 0.25), the tip sqrt(0.35^2 - 0.15^2) above or below them.
    height = np.sqrt(0.35**2 - 0.15**2)
    assert tips["up"] == pytest.approx([0.15, 0.25 + height], abs=1e-13)
    assert tips["down"] == pytest.approx([0.15, 0.25 - height], abs=1e-13)


def test_arms_too_far_apart_return_a_status_and_leave_the_start(library: ctypes.CDLL) -> None:
    start = np.array([0.15, 0.6, -0.5, 0.5])
    # Elbows at (-0.25, 0) and (0.55, 0): 0.8 m apart, the distal links reach 0.7 m.
    status, z, residual = solve(library, start, (np.pi, 0.0))
    assert status in (NO_ROOT, SINGULAR)
    assert np.array_equal(z, start)
    assert residual > 1e-3
