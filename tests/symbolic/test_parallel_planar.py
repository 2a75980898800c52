"""The planar robot with three 2R chains in closed form, against independent reference values."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from mechsmith.codegen.lower import lower
from mechsmith.symbolic.parallel.planar import WORKING_MODES, make_planar_forward, make_planar_inverse
from mechsmith.symbolic.parallel.planar_calibration import make_planar_misfit
from mechsmith.symbolic.verify import verify


def load(reference: Path, name: str) -> Any:
    return json.loads((reference / "parallel" / f"{name}.json").read_text())


def test_equations_of_the_source_on_the_misfit_are_as_expected() -> None:
    # The other models are in the catalogue, and verified with it.
    verdicts = verify(make_planar_misfit())
    assert [(v.identity.name, v.status) for v in verdicts if not v.as_expected] == []
    assert sum(v.status == "refuted" for v in verdicts) == 2


def test_the_reference_kinematics(reference: Path) -> None:
    data = load(reference, "p1_kinematics")
    inverse, forward = lower(make_planar_inverse()), lower(make_planar_forward())
    p, tolerance = inverse.vector("p"), data["tolerance"]
    for case in data["cases"]:
        assert tuple(case["sigma"]) == WORKING_MODES[case["config"]]
        values = inverse.evaluate("output", u=[*case["O"], *case["sigma"]], p=p)[:, 0]
        q, s, drive, swing, sv, eta = np.split(values, [3, 6, 12, 18, 20])
        np.testing.assert_allclose(
            np.exp(1j * q), np.exp(1j * np.array(case["qa"])), atol=tolerance["angle_abs"]
        )
        np.testing.assert_allclose(
            np.exp(1j * s), np.exp(1j * np.array(case["qb"])), atol=tolerance["angle_abs"]
        )
        np.testing.assert_allclose(drive.reshape(3, 2), case["S"], rtol=tolerance["S_rel"], atol=1e-9)
        np.testing.assert_allclose(swing.reshape(3, 2), case["Sb"], rtol=tolerance["S_rel"], atol=1e-9)
        np.testing.assert_allclose(sv, case["sv"], rtol=tolerance["S_rel"])
        assert eta[0] == pytest.approx(case["eta"], abs=tolerance["eta_abs"])
        back = forward.evaluate("output", u=q, p=forward.vector("p"))[:, 0]
        np.testing.assert_allclose(back[:2], case["O"], atol=tolerance["fk_abs"])
        assert abs(back[2]) < 1e-14


def test_the_reference_grid_of_the_transmission_index(reference: Path) -> None:
    data = load(reference, "p1_eta_grid")
    inverse = lower(make_planar_inverse())
    points = np.array([case["O"] for case in data["cases"]])
    for mode, signs in WORKING_MODES.items():
        u = np.column_stack([points, np.tile(signs, (len(points), 1))])
        eta = inverse.batch("output", u=u, p=inverse.vector("p"))[:, -1, 0]
        expected = [case["eta"][mode] for case in data["cases"]]
        np.testing.assert_allclose(eta, expected, atol=data["tolerance"]["eta_abs"])


def test_the_published_table_at_the_centroid() -> None:
    # Table 8.1 belongs to the centroid (0.433 * 2/3, 0.25) and is rounded to four digits: each chain has two angles, of which
    # the working mode says which.
    left, right = (53.7343, 173.7327, -66.2659), (-53.7343, 66.2659, -173.7327)
    inverse = lower(make_planar_inverse())
    for signs in WORKING_MODES.values():
        values = inverse.evaluate("output", u=[0.433 * 2 / 3, 0.25, *signs], p=inverse.vector("p"))[:3, 0]
        table = [left[i] if sign > 0 else right[i] for i, sign in enumerate(signs)]
        np.testing.assert_allclose(np.degrees(values), table, atol=5e-5)


def test_forward_of_inverse_in_every_mode_at_random_points() -> None:
    inverse, forward = lower(make_planar_inverse()), lower(make_planar_forward())
    rng = np.random.default_rng(0)
    points = rng.uniform([0.0, 0.0], [0.5, 0.5], (2000, 2))
    for signs in WORKING_MODES.values():
        u = np.column_stack([points, np.tile(signs, (len(points), 1))])
        angles = inverse.batch("output", u=u, p=inverse.vector("p"))[:, :3, 0]
        inside = np.isfinite(angles).all(axis=1)
        back = forward.batch("output", u=angles[inside], p=forward.vector("p"))[:, :2, 0]
        # Near the stretched boundary angles lose half their digits, but the point does not.
        np.testing.assert_allclose(back, points[inside], atol=1e-11)
        reach = np.linalg.norm(points[:, None] - [[0.0, 0.25], [0.433, 0.0], [0.433, 0.5]], axis=2)
        np.testing.assert_array_equal(inside, (reach <= 0.488).all(axis=1))


def test_the_workspace_has_the_area_of_three_circles() -> None:
    inverse = lower(make_planar_inverse())
    spacing = 0.0025
    axes = np.arange(0.0, 0.5, spacing), np.arange(0.0, 0.5, spacing)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2) + spacing / 2
    u = np.column_stack([points, np.ones((len(points), 3))])
    eta = inverse.batch("output", u=u, p=inverse.vector("p"))[:, -1, 0]
    # A grid of 2.5 mm: 0.8 m of boundary cuts cells whose errors average out, of order spacing^2 sqrt(cells cut).
    assert np.isfinite(eta).sum() * spacing**2 == pytest.approx(0.15782552, abs=2e-4)
    # The mean over the workspace, from a grid of 1.25 mm in the source, three digits.
    assert np.nanmean(eta) == pytest.approx(0.488, abs=1.5e-3)


def test_the_maps_of_the_transmission_index_are_drawn(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "examples" / "parallel" / "transmission_maps.py"
    spec = importlib.util.spec_from_file_location("transmission_maps", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    mpl.use("Agg")
    means = module.draw(tmp_path / "maps.png", spacing=0.01)
    assert (tmp_path / "maps.png").stat().st_size > 10_000
    # The robot is its own mirror image, which exchanges chains 2 and 3 and turns every sign; the grid is symmetric too, but
    # for points on the boundary by rounding.
    for one, other in ("af", "bg", "ch", "de"):
        assert means[one] == pytest.approx(means[other], abs=1e-3)
    assert means["a"] == pytest.approx(0.488, abs=0.01)
