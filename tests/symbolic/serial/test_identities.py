"""The source's equations (1)-(19): they hold, its misprints are refuted, and how wrong those would be."""

import dataclasses
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.lower import lower
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.serial.chain import DHRow, dh_chain
from mechsmith.symbolic.serial.digits import make_significant_digits
from mechsmith.symbolic.serial.identities import with_deflection_identities, with_jacobian_identities
from mechsmith.symbolic.serial.irb6700 import SERIAL_MODELS
from mechsmith.symbolic.serial.kinematics import make_jacobian, make_pose
from mechsmith.symbolic.serial.robots import irb6700
from mechsmith.symbolic.serial.stiffness import make_deflection
from mechsmith.symbolic.verify import verify

WRENCH = SERIAL_MODELS["irb6700_deflection_wrench"]()


def test_every_equation_of_the_source_is_there() -> None:
    identities = [one for make in SERIAL_MODELS.values() for one in make().identities]
    numbered = {int(part.strip("( )").split(")")[0]) for one in identities for part in one.name.split(",")}
    assert numbered == set(range(1, 20))
    refuted = [one.name for one in identities if one.expected == "refuted"]
    assert refuted == [
        *("(14) as printed", "(16) as printed", "(16) not turned", "(17) as printed", "(17) not turned"),
        "(3) as printed",
    ]


def test_misprints_are_refuted_for_the_reason_that_shows_them() -> None:
    misprints = [one for one in WRENCH.identities if one.expected == "refuted"]
    verdicts = {one.name: verify(WRENCH, one)[0] for one in misprints}
    assert verdicts["(14) as printed"].method == "shape"
    assert verdicts["(17) as printed"].method == "units"
    assert verdicts["(16) as printed"].method == "numeric"
    assert all(verdict.as_expected for verdict in verdicts.values())


@pytest.mark.parametrize("place", range(5, 100, 12))
def test_a_changed_derivation_breaks_the_equations(place: int) -> None:
    quantity = list(WRENCH.definitions)[place]
    changed: Model = dataclasses.replace(
        WRENCH,
        definitions={q: -value if q == quantity else value for q, value in WRENCH.definitions.items()},
        identities=tuple(one for one in WRENCH.identities if one.name in ("(17)", "(18)")),
    )
    assert "refuted" in {verdict.status for verdict in verify(changed, points=5)}, quantity.name


def test_identities_hold_for_another_robot_and_pickle() -> None:
    rows = [DHRow(0.1 * i, 0.3 * i - 1.0, 0.2, 0.1 * i) for i in range(1, 4)]
    chain = dh_chain("other", rows, convention="standard")
    jacobian = with_jacobian_identities(chain, make_jacobian(chain))
    assert all(verdict.as_expected for verdict in verify(jacobian, points=3))
    deflection = with_deflection_identities(chain, make_deflection(chain, load="wrench"))
    kept = [one for one in deflection.identities if one.name in ("(16)", "(18)", "(16) not turned")]
    for identity in pickle.loads(pickle.dumps(kept)):
        (verdict,) = verify(deflection, identity, points=3)
        assert verdict.as_expected


def test_the_printed_first_column_is_up_to_21_cm_wrong(known: Callable[[str], Any]) -> None:
    """a3 + d6 c4 s5 in place of a3 - d6 c4 s5: the difference is 2 d6 |c23 c4 s5|, at most 0.4 m."""
    errors = []
    for entry in known("K02")["expected"]:
        q = np.radians(entry["q_deg"]) - math.pi / 2 * np.eye(6)[1]
        error = np.linalg.norm(np.array(entry["J"])[:, 0] - entry["J1_printed_eq3_trap"])
        # The printed column is our own arithmetic of the misprint; it agrees with the difference by hand.
        assert error == pytest.approx(
            0.4 * abs(math.cos(q[1] + q[2]) * math.cos(q[3]) * math.sin(q[4])), abs=1e-12
        )
        errors.append(error)
    assert max(errors) == pytest.approx(0.213, abs=0.001)


def test_points_not_turned_into_base_axes_spoil_the_stiffness(known: Callable[[str], Any]) -> None:
    """Noise-free readings of the reference experiment, explained with r_m and r_f left in flange axes."""
    data = known("K06")
    pose, jacobian = lower(make_pose(irb6700())), lower(make_jacobian(irb6700()))
    stiffness, matrices = np.array(data["truth_K"]), {True: [], False: []}  # type: ignore[var-annotated]
    for entry in data["data"]:
        q = np.radians(entry["q_deg"])
        flat = pose.evaluate("output", u=q, p=pose.vector("p"))[:, 0]
        rotation, centre = flat[:9].reshape(3, 3), flat[9:]
        j = jacobian.evaluate("output", u=q, p=jacobian.vector("p"))[:, 0].reshape(6, 6).T
        rope = np.array(entry["pulley_m"]) - centre - rotation @ data["p_f_m"]
        force = entry["mass_kg"] * 9.80665 * rope / np.linalg.norm(rope)
        for turned in (True, False):
            point, bolt = (rotation @ data[n] if turned else np.array(data[n]) for n in ("p_m_m", "p_f_m"))
            torque = j.T @ np.concatenate([force, np.cross(bolt, force)])
            moved = j[:3] + np.cross(j[3:].T, point).T
            matrices[turned].append(rotation.T @ moved * torque)
    readings = np.vstack(matrices[True]) @ (1.0 / stiffness)
    wrong = 1.0 / np.linalg.lstsq(np.vstack(matrices[False]), readings, rcond=None)[0]
    right = 1.0 / np.linalg.lstsq(np.vstack(matrices[True]), readings, rcond=None)[0]
    assert right == pytest.approx(stiffness, rel=1e-9)
    assert (wrong / stiffness).min() < 0.2
    assert (wrong / stiffness).max() > 1.5


@pytest.mark.parametrize(
    ("reading", "resolution", "digits"),
    [(6.3e-5, 1e-6, 2), (1e-6, 1e-6, 1), (-1.3e-5, 1e-6, 2), (1e-4, 1e-6, 3), (9.9e-5, 1e-6, 2)],
)
def test_significant_digits_in_the_model(reading: float, resolution: float, digits: int) -> None:
    functions = lower(make_significant_digits())
    # Half a resolution more, as the reading stands for: 63 * 1e-6 / 1e-6 may be 62.99999999999999 in doubles.
    u = [reading + math.copysign(0.5 * resolution, reading), resolution]
    found = functions.evaluate("output", u=u, p=functions.vector("p"))[:, 0]
    assert found[0] == digits
    assert found[1] + digits - 1 == 3  # (19): 1 um is 10^-3 of the unit, 1 mm
