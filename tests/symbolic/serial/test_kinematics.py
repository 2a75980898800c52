"""Pose, Jacobian and conditioning: reference values K01-K03 four ways, laws, and finite differences."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.serial.chain import (
    Chain,
    DHRow,
    Joint,
    Step,
    dh_chain,
    rotation_steps,
    translation_steps,
)
from mechsmith.symbolic.serial.conditioning import make_conditioning
from mechsmith.symbolic.serial.kinematics import make_jacobian, make_pose
from mechsmith.symbolic.serial.robots import irb6700, robot

CHAIN = irb6700()
# A chain with what the IRB6700 lacks: a prismatic joint, a fixed joint between others, an axis that is not along a
# coordinate axis, one that points backwards, and base and tool transforms.
ODD = Chain(
    "odd",
    (
        Joint("turn", "revolute", translation_steps("one", 0.1, 0.0, 0.4), axis=(0.0, 0.0, -1.0)),
        Joint("slide", "prismatic", rotation_steps("two", 0.3, 0.0, 0.2), axis=(0.0, 1.0, 0.0)),
        Joint(
            "bracket",
            "fixed",
            (*translation_steps("bracket", 0.2, 0.1, 0.0), *rotation_steps("bracket", 0.1, 0.2, 0.3)),
        ),
        Joint("skewed", "revolute", translation_steps("three", 0.3, 0.0, 0.0), axis=(0.6, 0.0, 0.8)),
        Joint("bend", "revolute", translation_steps("four", 0.0, 0.2, 0.1), axis=(-1.0, 0.0, 0.0)),
    ),
    base=translation_steps("base", 0.5, 0.0, 0.0),
    tool=(*translation_steps("tool", 0.0, 0.05, 0.2), Step("rotate", "y", 0.7, "tool_turn")),
)


def points(entries: list[Any]) -> np.ndarray:
    return np.radians([entry["q_deg"] for entry in entries])


@functools.cache
def lowered(make: Callable[..., Model], chain: Chain, *options: tuple[str, Any]) -> FunctionSet:
    """Return the functions of a model, made once: the tests only read them."""
    return lower(make(chain, **dict(options)))


def pose_of(chain: Chain, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    functions = lowered(make_pose, chain)
    flat = functions.evaluate("output", u=q, p=functions.vector("p"))[:, 0]
    return flat[:9].reshape(3, 3), flat[9:]


def jacobian_of(
    chain: Chain, q: np.ndarray, point: tuple[float, ...] = (0.0, 0.0, 0.0), **options: Any
) -> np.ndarray:
    functions = lowered(make_jacobian, chain, *options.items())
    names = ("point_x", "point_y", "point_z")
    known = functions.labels("p")
    p = functions.vector("p", {n: v for n, v in zip(names, point, strict=True) if n in known})
    return functions.evaluate("output", u=q[: len(functions.labels("u"))], p=p)[:, 0].reshape(-1, 6).T


def test_poses_of_the_reference(known: Callable[[str], Any], four_ways: Callable[..., Any]) -> None:
    data = known("K01")
    wanted = np.array([entry["T06"] for entry in data["expected"]])
    for way, found in four_ways(make_pose(CHAIN), points(data["expected"])).items():
        error = max(
            np.abs(found[:, :9].reshape(-1, 3, 3) - wanted[:, :3, :3]).max(),
            np.abs(found[:, 9:] - wanted[:, :3, 3]).max(),
        )
        assert error < data["tolerance"]["abs"], way


def test_jacobians_of_the_reference(known: Callable[[str], Any], four_ways: Callable[..., Any]) -> None:
    data = known("K02")
    wanted = np.array([entry["J"] for entry in data["expected"]])
    for way, found in four_ways(make_jacobian(CHAIN), points(data["expected"])).items():
        error = np.abs(found.reshape(-1, 6, 6).transpose(0, 2, 1) - wanted).max()
        assert error < data["tolerance"]["J"]["abs"], way


def test_conditioning_of_the_reference(known: Callable[[str], Any], four_ways: Callable[..., Any]) -> None:
    data = known("K02")
    entries = data["expected"]
    names = ("L", "KF", "KF_inv")
    wanted = np.array([[*(e[name] for name in names), abs(e["detJ"]) / e["L"] ** 3] for e in entries])
    tolerance = [data["tolerance"]["L"]["rel"], *[data["tolerance"]["KF"]["rel"]] * 3]
    for way, found in four_ways(make_conditioning(CHAIN), points(entries)).items():
        assert (np.abs(found / wanted - 1.0).max(axis=0) < tolerance).all(), way


def test_conditioning_over_two_joints(known: Callable[[str], Any], four_ways: Callable[..., Any]) -> None:
    data = known("K03")
    grid = [
        [math.radians(v if v is not None else {1: q2, 2: q3}[i]) for i, v in enumerate(data["fixed_deg"])]
        for q2 in data["q2_deg"]
        for q3 in data["q3_deg"]
    ]
    wanted = np.ravel(data["expected"])
    for way, found in four_ways(make_conditioning(CHAIN), np.array(grid)).items():
        assert np.abs(found[:, 2] / wanted - 1.0).max() < data["tolerance"]["rel"], way


@pytest.mark.parametrize("chain", [CHAIN, ODD], ids=lambda chain: chain.name)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_jacobian_against_differences(chain: Chain, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, point = rng.uniform(-2.0, 2.0, len(chain.moving)), rng.uniform(-0.3, 0.3, 3)
    rotation, position = pose_of(chain, q)
    found = jacobian_of(chain, q, tuple(point))
    step = 1e-6
    for i in range(len(q)):
        ahead, behind = (pose_of(chain, q + sign * step * np.eye(len(q))[i]) for sign in (1, -1))
        linear = ((ahead[1] + ahead[0] @ point) - (behind[1] + behind[0] @ point)) / (2 * step)
        turning = (ahead[0] - behind[0]) / (2 * step) @ rotation.T
        angular = [turning[2, 1], turning[0, 2], turning[1, 0]]
        # Truncation is step^2/6 times a third derivative below 10, rounding 1e-16 * 5 m / step: below 1e-9 together.
        assert np.abs(found[:, i] - [*linear, *angular]).max() < 5e-9
    # The same in the other frames, by what the frames mean.
    where = position + rotation @ point
    lifted = found[:3] + np.cross(where, found[3:].T).T
    assert np.abs(jacobian_of(chain, q, frame="base") - np.vstack([lifted, found[3:]])).max() < 1e-12
    turned = np.vstack([rotation.T @ found[:3], rotation.T @ found[3:]])
    assert np.abs(jacobian_of(chain, q, tuple(point), frame="body") - turned).max() < 1e-12


@pytest.mark.parametrize("chain", [CHAIN, ODD], ids=lambda chain: chain.name)
def test_jacobian_rate_against_differences(chain: Chain) -> None:
    rng = np.random.default_rng(0)
    size = len(chain.moving)
    q, dq, point = rng.uniform(-2.0, 2.0, size), rng.uniform(-1.0, 1.0, size), (0.1, -0.2, 0.15)
    functions = lower(make_jacobian(chain, rate=True))
    p = functions.vector("p", dict(zip(("point_x", "point_y", "point_z"), point, strict=True)))
    u = functions.vector(
        "u",
        {f"q_{i + 1}": q[i] for i in range(size) if f"q_{i + 1}" in functions.labels("u")}
        | {f"dq_{i + 1}": dq[i] for i in range(size)},
    )
    found = functions.evaluate("output", u=u, p=p)[:, 0].reshape(-1, 6).T
    step = 1e-6
    difference = (jacobian_of(chain, q + step * dq, point) - jacobian_of(chain, q - step * dq, point)) / (
        2 * step
    )
    assert np.abs(found - difference).max() < 5e-9  # as above


def test_both_conventions_and_frame_by_frame_agree() -> None:
    # The same arm as a modified table, and as a standard one whose rows are shifted by half a step.
    modified = [
        (0.0, 0.0, 0.78, 0.0),
        (0.32, -1.5, 0.0, -1.2),
        (1.125, 0.3, 0.1, 0.0),
        (0.2, -1.4, 1.14, 0.5),
    ]
    rows = [DHRow(*row) for row in modified]
    shifted = [
        DHRow(*(rows[i + 1].a, rows[i + 1].alpha) if i < 3 else (0.0, 0.0), rows[i].d, rows[i].offset)
        for i in range(4)
    ]
    chains = [
        dh_chain("arm", rows, convention="modified"),
        dh_chain("arm", shifted, convention="standard"),
        Chain(
            "arm",
            tuple(
                Joint(
                    f"j{i}",
                    before=(
                        *rotation_steps(f"r{i}", row.alpha, 0.0, 0.0),
                        *translation_steps(f"t{i}", row.a, 0.0, 0.0),
                    ),
                    after=(
                        *rotation_steps(f"s{i}", 0.0, 0.0, row.offset),
                        *translation_steps(f"u{i}", 0.0, 0.0, row.d),
                    ),
                )
                for i, row in enumerate(rows)
            ),
        ),
    ]
    q = np.array([0.3, -0.7, 1.1, 2.0])
    first = pose_of(chains[0], q)
    for other in chains[1:]:
        rotation, position = pose_of(other, q)
        assert max(np.abs(rotation - first[0]).max(), np.abs(position - first[1]).max()) < 1e-12


def test_numbers_are_exact_or_parameters_and_open_ones_stay() -> None:
    names = [quantity.name for quantity in make_pose(CHAIN).parameters]
    assert names == ["d_1", "a_2", "a_3", "a_4", "d_4", "d_6"]
    everything = make_pose(CHAIN.opened("all"))
    assert len(everything.parameters) == 24
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    baked = lower(everything).bake({p.name: p.nominal for p in everything.parameters})
    assert np.abs(baked.evaluate("output", u=q)[9:, 0] - pose_of(CHAIN, q)[1]).max() < 1e-12


def test_manipulability_of_few_and_of_many_joints() -> None:
    for joints in (3, 7):
        rows = [DHRow(0.2, 1.1, 0.3, 0.2) for _ in range(joints)]
        chain = dh_chain("arm", rows, convention="modified")
        q = np.linspace(-1.0, 1.0, joints)
        functions = lower(make_conditioning(chain))
        values = functions.vector("u", {name: q[int(name[2:]) - 1] for name in functions.labels("u")})
        length, conditioning, _, manipulability = functions.evaluate(
            "output", u=values, p=functions.vector("p")
        )[:, 0]
        jacobian = jacobian_of(chain, q)
        assert length == pytest.approx(math.sqrt((jacobian[:3] ** 2).sum() / joints), rel=1e-12)
        singular = np.linalg.svd(np.vstack([jacobian[:3] / length, jacobian[3:]]), compute_uv=False)
        frobenius = math.sqrt((singular**2).sum() * (singular**-2.0).sum()) / len(singular)
        assert conditioning == pytest.approx(
            frobenius, rel=1e-9
        )  # the condition is squared: 1e-16 * 1e4 * growth
        assert manipulability == pytest.approx(singular.prod(), rel=1e-9)


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ModelError, match="Say standard or modified"):
        dh_chain("arm", [DHRow()], convention="craig")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="Give a unit vector"):
        Joint("tilted", axis=(0.0, 1.0, 1.0))
    with pytest.raises(ModelError, match="no joint moves"):
        Chain("stiff", (Joint("weld", "fixed"),))
    with pytest.raises(ModelError, match="open names a_9"):
        dataclasses.replace(CHAIN, open=("a_9",))
    with pytest.raises(ModelError, match="named twice"):
        dataclasses.replace(CHAIN, tool=(Step("translate", "x", 0.1, "a_1"),))
    with pytest.raises(ModelError, match="slide is prismatic"):
        make_conditioning(ODD)
    with pytest.raises(ModelError, match="Use hybrid, base or body"):
        make_jacobian(CHAIN, frame="world")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="there is no robot 'puma'"):
        robot("puma")
