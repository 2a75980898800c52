"""Following a branch, all postures, and singularities of mechanisms with closed loops."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet, FunctionSetError
from mechsmith.codegen.lower import lower
from mechsmith.codegen.tree import c_files, write_files
from mechsmith.identification.parallel.postures import (
    Singularity,
    all_postures,
    canonical_yaw_pitch_roll,
    follow,
    singularity,
    solve_near,
)
from mechsmith.symbolic.parallel.closure import make_forward, make_inverse
from mechsmith.symbolic.parallel.mechanisms import delta, five_bar, four_bar, hexapod, three_chains

Array = NDArray[np.float64]
FLAGS = "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wdouble-promotion -Werror -O2".split()


@pytest.fixture(scope="module")
def forward() -> FunctionSet:
    return lower(make_forward(hexapod()))


@pytest.fixture(scope="module")
def postures(reference: Path) -> Array:
    data: Any = json.loads((reference / "parallel" / "hexapod_postures.json").read_text())
    return np.array(data["postures"])


def canonical(values: Array) -> Array:
    return canonical_yaw_pitch_roll(values, (3, 4, 5))


def test_dietmaiers_platform_has_40_real_postures(forward: FunctionSet, postures: Array) -> None:
    assert len(postures) == 40
    u, p = forward.vector("u"), forward.vector("p")
    residual = forward.batch("constraint", z=postures, u=u, p=p)
    # The postures are stored with 15 digits: at most 5e-15 in each coordinate, times slopes of at most some 5.
    assert np.abs(residual).max() < 1e-13
    distance = np.abs(postures[:, None] - postures).max(axis=2)
    assert distance[~np.eye(40, dtype=bool)].min() > 1e-3


def test_random_starts_find_none_but_those(forward: FunctionSet, postures: Array) -> None:
    size = np.array([1.0, 1.0, 1.0, np.pi, np.pi / 2, np.pi])
    found = all_postures(
        forward,
        forward.vector("u"),
        forward.vector("p"),
        lower=-size,
        upper=size,
        starts=1000,
        rng=np.random.default_rng(1),
        canonical=canonical,
    )
    # The postures hit most take one start in 30 to 140, so 1,000 starts meet more than half of the forty.
    assert 20 <= len(found.values) <= 40
    assert found.hits.sum() <= found.starts == 1000
    distance = np.abs(found.values[:, None] - canonical(postures)).max(axis=2).min(axis=1)
    assert distance.max() < 1e-6


def test_a_path_keeps_its_branch_between_far_points() -> None:
    mechanism = four_bar()
    functions = lower(make_forward(mechanism))
    p = functions.vector("p")
    # A whole turn of the crank in steps of 60 degrees, in which Newton's method alone may meet the other branch.
    crank = np.linspace(1.05, 1.05 + 2.0 * np.pi, 7)[:, None]
    path = follow(functions, crank, p, start=functions.vector("z"))
    assert path.status == ""
    np.testing.assert_allclose(path.values[-1], path.values[0], atol=1e-9)
    fine = follow(functions, np.linspace(crank[0], crank[-1], 721), p, start=functions.vector("z"))
    np.testing.assert_allclose(path.values, fine.values[::120], atol=1e-9)


def test_a_path_ends_where_the_workspace_does() -> None:
    functions = lower(make_inverse(five_bar()))
    points = np.column_stack([np.full(40, 0.15), np.linspace(0.337, 0.6, 40)])
    path = follow(functions, points, functions.vector("p"), start=functions.vector("z"))
    # Both chains are stretched where the distance of (0.15, y) from a motor is 0.5.
    end = np.sqrt(0.5**2 - 0.15**2)
    assert path.status.startswith("a singularity or the end of the workspace before point")
    assert points[path.reached - 1, 1] < end < points[path.reached, 1]
    nowhere = follow(functions, points[-1:], functions.vector("p"), start=functions.vector("z"))
    assert nowhere.reached == 0
    assert nowhere.status == "no unknowns are found at the first point"


def test_the_kinds_of_singularity_of_a_five_bar() -> None:
    mechanism = five_bar()
    functions = lower(make_inverse(mechanism))
    p = functions.vector("p")
    platform, driven = ("x", "y"), ("arm_angle_1", "arm_angle_2")

    def at(angles: tuple[float, float, float, float], point: tuple[float, float]) -> str:
        u = np.array(point)
        z = dict(zip(("arm_angle_1", "elbow_angle_1", "arm_angle_2", "elbow_angle_2"), angles, strict=True))
        vector = np.array([z[name] for name in functions.labels("z")])
        assert np.abs(functions.evaluate("constraint", z=vector, u=u, p=p)).max() < 1e-12
        return singularity(functions, vector, u, p, platform=platform, driven=driven).kind()

    z, found = solve_near(functions, np.array([0.15, 0.337]), p, functions.vector("z"))
    assert found.all()
    regular = dict(zip(functions.labels("z"), z[0], strict=True))
    names = ("arm_angle_1", "elbow_angle_1", "arm_angle_2", "elbow_angle_2")
    assert at(tuple(regular[n] for n in names), (0.15, 0.337)) == "regular"  # type: ignore[arg-type]
    # First kind: both arms stretched.
    slope = np.arccos(0.15 / 0.5)
    assert at((slope, 0.0, np.pi - slope, 0.0), (0.15, np.sqrt(0.25 - 0.15**2))) == "serial"
    # Second kind: both distal links in one line, elbows 0.6 apart: at (-0.15, h) and (0.45, h).
    lift = np.arccos(0.15 / 0.2)
    height = 0.2 * np.sin(lift)
    assert at((np.pi - lift, lift - np.pi, lift, np.pi - lift), (0.15, height)) == "parallel"
    assert Singularity(0.0, 0.0).kind() == "both"
    with pytest.raises(FunctionSetError, match="no coordinate 'w'"):
        singularity(functions, z[0], np.array([0.15, 0.337]), p, platform=("w",), driven=driven)


def test_redundant_motors_leave_no_parallel_singularity() -> None:
    # Three distal links would have to be parallel, which needs two elbows in one place; the bases are further apart.
    functions = lower(make_inverse(three_chains()))
    p = functions.vector("p")
    z, found = solve_near(
        functions, np.array([[0.29, 0.25], [0.1, 0.25], [0.3, 0.1]]), p, functions.vector("z")
    )
    assert found.all()
    for point, unknowns in zip([[0.29, 0.25], [0.1, 0.25], [0.3, 0.1]], z, strict=True):
        found_there = singularity(
            functions,
            unknowns,
            np.array(point),
            p,
            platform=("x", "y"),
            driven=("arm_angle_1", "arm_angle_2", "arm_angle_3"),
        )
        assert found_there.kind() == "regular"


@pytest.mark.compiler
@pytest.mark.parametrize("make", [five_bar, delta, hexapod])
def test_the_closure_in_generated_c(make: Any, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    functions = lower(make_forward(make()))
    rng = np.random.default_rng(0)
    u, p = functions.vector("u"), functions.vector("p")
    start, found = solve_near(functions, u, p, functions.vector("z"))
    assert found.all()
    near = u * (1.0 + 1e-3 * rng.normal(size=len(u)))
    expected, found = solve_near(functions, near, p, start)
    assert found.all()
    write_files(tmp_path, c_files(functions))
    name = functions.name
    fields = {
        "u": zip(functions.labels("u"), near, strict=True),
        "p": zip(functions.labels("p"), p, strict=True),
        "z": zip(functions.labels("z"), start[0], strict=True),
    }
    assignments = "\n".join(f"{var}.{label} = {value!r};" for var, pairs in fields.items() for label, value in
                            ((label, float(v)) for label, v in pairs))  # fmt: skip
    shown = "\n".join(f'(void)printf("%.17g ", z.{label});' for label in functions.labels("z"))
    (tmp_path / "main.c").write_text(
        f'#include "{name}.h"\n#include <stdio.h>\nint main(void)\n{{\n{name}_unknown_t z; {name}_input_t u; '
        f"{name}_parameters_t p;\n{assignments}\nconst int status = {name}_solve(&z, &u, &p);\n{shown}\nreturn status;\n}}\n"
    )
    subprocess.run([compiler, *FLAGS, f"{name}.c", "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    # A warm start a thousandth away; both end at a relative change of 1e-12 times conditions below 100.
    np.testing.assert_allclose([float(v) for v in done.stdout.split()], expected[0], atol=1e-10)
