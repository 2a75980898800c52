"""Maps of conditioning and stiffness: reference values K03, closed forms, and inverse kinematics that reaches."""

import json
from pathlib import Path

import numpy as np
import pytest

from mechsmith.codegen.lower import lower
from mechsmith.identification.serial.stiffness_maps import (
    Plane,
    SurfaceMap,
    cartesian_stiffness,
    evaluate_poses,
    extreme_stiffness,
    inverse_conditioning,
    map_over_joints,
    map_over_plane,
    reach,
    stiffness_along,
)
from mechsmith.identification.serial.stiffness_record import StiffnessError
from mechsmith.symbolic.serial.conditioning import make_conditioning
from mechsmith.symbolic.serial.irb6700 import make_irb6700_compliance
from mechsmith.symbolic.serial.kinematics import make_jacobian, make_pose
from mechsmith.symbolic.serial.robots import irb6700
from mechsmith.symbolic.serial.stiffness import make_deflection

POSE, JACOBIAN = lower(make_pose(irb6700())), lower(make_jacobian(irb6700()))
COMPLIANCE = lower(make_irb6700_compliance())
START = np.radians([0.0, 10.0, 10.0, 0.0, 50.0, 0.0])


def test_conditioning_over_two_joints(reference: Path, tmp_path: Path) -> None:
    data = json.loads((reference / "serial/K03_KF_map.json").read_text())
    position = np.radians([value or 0.0 for value in data["fixed_deg"]])
    found = map_over_joints(
        inverse_conditioning(lower(make_conditioning(irb6700()))),
        position,
        (2, 3),
        np.radians(data["q2_deg"]),
        np.radians(data["q3_deg"]),
    )
    assert found.values == pytest.approx(np.array(data["expected"]), rel=data["tolerance"]["rel"])
    found.draw(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_points_of_a_plane_are_reached() -> None:
    rotation = evaluate_poses(POSE, START)[0, :9].reshape(3, 3)
    rng = np.random.default_rng(0)
    targets = np.array([1.6, 0.0, 1.3]) + rng.uniform(-0.3, 0.3, (50, 3))
    q, reached = reach(POSE, JACOBIAN, targets, rotation, start=START)
    assert reached.all()
    flat = evaluate_poses(POSE, q)
    assert flat[:, 9:] == pytest.approx(targets, abs=1e-8)
    assert flat[:, :9].reshape(-1, 3, 3) == pytest.approx(np.tile(rotation, (50, 1, 1)), abs=1e-8)
    _, out = reach(POSE, JACOBIAN, [[5.0, 0.0, 1.0]], rotation, start=START)
    assert not out.any()


def test_stiffness_over_a_plane(tmp_path: Path) -> None:
    rotation = evaluate_poses(POSE, START)[0, :9].reshape(3, 3)
    plane = Plane(np.array([1.5, 0.0, 1.2]), np.eye(3)[0], np.eye(3)[2], rotation)
    grid = np.array([-0.2, 0.0, 0.2, 3.0])
    maps: dict[str, SurfaceMap] = {}
    limits = [(joint.lower, joint.upper) for joint in irb6700().moving]
    values = {
        "x": stiffness_along(COMPLIANCE, (1.0, 0.0, 0.0)),
        "y": stiffness_along(COMPLIANCE, (0.0, 2.0, 0.0)),
        "smallest": extreme_stiffness(COMPLIANCE, "smallest"),
        "largest": extreme_stiffness(COMPLIANCE, "largest"),
    }
    for name, value in values.items():
        maps[name] = map_over_plane(value, POSE, JACOBIAN, plane, grid, grid[:3], start=START, limits=limits)
    assert np.isnan(maps["x"].values[3]).all()  # 4.5 m away
    inside = {name: one.values[:3] for name, one in maps.items()}
    assert np.isfinite(inside["x"]).all()
    for name in ("x", "y"):
        assert (inside["smallest"] <= inside[name] * (1 + 1e-12)).all()
        assert (inside[name] <= inside["largest"] * (1 + 1e-12)).all()
    maps["smallest"].draw(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").stat().st_size > 1000


def test_stiffness_is_force_over_deflection() -> None:
    """Against the deflection model: a force along y moves the flange centre along y by force / stiffness."""
    stiffness = stiffness_along(COMPLIANCE, (0.0, 1.0, 0.0)).at(START[None])[0]
    functions = lower(make_deflection(irb6700(), load="wrench"))
    shared = {
        n: v
        for n, v in zip(COMPLIANCE.labels("p"), COMPLIANCE.vector("p"), strict=True)
        if n.startswith("compliance")
    }
    u = [*START, 0.0, 500.0, 0.0, 0.0, 0.0, 0.0]
    found = functions.evaluate("output", u=u, p=functions.vector("p", shared))[:, 0]
    assert found[functions.labels("y").index("base_deflection_y")] == pytest.approx(
        500.0 / stiffness, rel=1e-12
    )


def test_cartesian_stiffness_is_the_inverse_by_the_jacobian() -> None:
    outputs = evaluate_poses(COMPLIANCE, START)
    j = evaluate_poses(JACOBIAN, START).reshape(6, 6).T
    names = [f"compliance_{i + 1}" for i in range(6)]
    c = [COMPLIANCE.vector("p")[COMPLIANCE.labels("p").index(name)] for name in names]
    inverse = np.linalg.inv(j)
    assert cartesian_stiffness(outputs)[0] == pytest.approx(
        inverse.T @ np.diag(1.0 / np.array(c)) @ inverse, rel=1e-9
    )


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StiffnessError, match="Use smallest or largest"):
        extreme_stiffness(COMPLIANCE, "middle")  # type: ignore[arg-type]
    with pytest.raises(StiffnessError, match="inputs q_6"):
        evaluate_poses(POSE, np.zeros((1, 5)))
    empty = SurfaceMap(
        ("a", "b"), ("m", "m"), np.zeros(2), np.zeros(2), np.full((2, 2), np.nan), "stiffness", "N/m"
    )
    with pytest.raises(StiffnessError, match="no point of it can be reached"):
        empty.draw(tmp_path / "map.png")
