"""DH tables in TOML and CSV, and URDF: the same robot in all of them, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.lower import lower
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
from mechsmith.symbolic.serial.kinematics import make_jacobian, make_pose
from mechsmith.symbolic.serial.read import read_csv, read_toml, read_urdf
from mechsmith.symbolic.serial.robots import irb6700

TOML = """
name = "irb6700"
convention = "modified"
lengths = "mm"
angles = "deg"
[[joints]]
d = 780
lower = -170
upper = 170
[[joints]]
a = 320
alpha = -90
offset = -90
[[joints]]
a = 1125
[[joints]]
a = 200
alpha = -90
d = 1142.5
[[joints]]
alpha = 90
[[joints]]
alpha = -90
d = 200
offset = 180
"""
CSV = """a, alpha, d, offset
0, 0, 780, 0
320, -90, 0, -90
1125, 0, 0, 0
200, -90, 1142.5, 0
0, 90, 0, 0
0, -90, 200, 180
"""


def urdf_of(joints: list[tuple[str, str, str, str]], *, name: str = "robot", more: str = "") -> str:
    """Return a URDF of joints, each (type, xyz, rpy, axis), and a mass on every link."""
    links = "".join(
        f'<link name="link_{i}"><inertial><origin xyz="0.1 0 0.2" rpy="0.3 0 0.1"/><mass value="{i + 1}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial></link>'
        for i in range(len(joints) + 1)
    )
    text = "".join(
        f'<joint name="joint_{i}" type="{kind}"><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f'<parent link="link_{i - 1}"/><child link="link_{i}"/>'
        '<limit lower="-2" upper="2" effort="1" velocity="1"/></joint>'
        for i, (kind, xyz, rpy, axis) in enumerate(joints, start=1)
    )
    return f'<robot name="{name}">{links}{text}{more}</robot>'


# The published description of the same robot, joint by joint at the zero pose, and its tool frame.
IRB6700_URDF = urdf_of(
    [
        ("revolute", "0 0 0.78", "0 0 0", "0 0 1"),
        ("revolute", "0.32 0 0", "0 0 0", "0 1 0"),
        ("revolute", "0 0 1.125", "0 0 0", "0 1 0"),
        ("revolute", "0 0 0.2", "0 0 0", "1 0 0"),
        ("revolute", "1.1425 0 0", "0 0 0", "0 1 0"),
        ("revolute", "0.2 0 0", "0 0 0", "1 0 0"),
        ("fixed", "0 0 0", "0 1.5707963267948966 0", "1 0 0"),
    ],
    name="irb-6700",
)


def pose(chain: Chain, q: np.ndarray) -> np.ndarray:
    functions = lower(make_pose(chain))
    return functions.batch("output", u=q, p=functions.vector("p"))[:, :, 0]


def test_one_robot_in_five_forms(tmp_path: Path) -> None:
    for name, text in (("r.toml", TOML), ("r.csv", CSV), ("r.urdf", IRB6700_URDF)):
        (tmp_path / name).write_text(text)
    modified = irb6700()
    rows = [(0, 0, 780), (320, -90, 0), (1125, 0, 0), (200, -90, 1142.5), (0, 90, 0), (0, -90, 200)]
    # The standard table of the same robot: a and alpha of the next row, and one turn between.
    offsets = np.radians([0.0, -90.0, 0.0, 0.0, 0.0, 180.0])
    standard = dh_chain(
        "standard",
        [
            DHRow(a / 1e3, np.radians(alpha), d[2] / 1e3, offset)
            for (a, alpha, _), d, offset in zip([*rows[1:], (0, 0, 0)], rows, offsets, strict=True)
        ],
        convention="standard",
    )
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (20, 6))
    wanted = pose(modified, q)
    csv = read_csv(tmp_path / "r.csv", name="irb", convention="modified", lengths="mm", angles="deg")
    toml, urdf = read_toml(tmp_path / "r.toml"), read_urdf(tmp_path / "r.urdf")
    for chain in (toml, csv, urdf.chain, standard):
        assert np.abs(pose(chain, q) - wanted).max() < 1e-12, chain.name
    assert (toml.moving[0].lower, toml.moving[0].upper) == pytest.approx(
        (-2.96705972839036, 2.96705972839036)
    )
    assert urdf.chain.name == "irb_6700"
    assert [joint.kind for joint in urdf.chain.joints] == ["revolute"] * 6 + ["fixed"]
    assert [body.mass for body in urdf.bodies] == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_toml_has_base_tool_and_open_numbers(tmp_path: Path) -> None:
    path = tmp_path / "arm.toml"
    path.write_text(
        'open = ["alpha_1"]\n'
        + TOML.replace("[[joints]]\nd = 780", '[[base]]\nrotate = "x"\nvalue = 180\n[[joints]]\nd = 780')
        + '[[tool]]\ntranslate = "z"\nvalue = 50\n[[tool]]\nrotate = "y"\nvalue = -90\n'
    )
    chain = read_toml(path)
    assert chain.base == (Step("rotate", "x", np.pi, "base_1"),)
    assert chain.tool == (Step("translate", "z", 0.05, "tool_1"), Step("rotate", "y", -np.pi / 2, "tool_2"))
    assert "alpha_1" in [quantity.name for quantity in make_pose(chain).parameters]


def test_a_urdf_axis_is_normalised_turned_and_may_be_missing(tmp_path: Path) -> None:
    joints = [
        ("continuous", "0 0 0.5", "0.1 0.2 0.3", "0 0 -2"),
        ("prismatic", "0.1 0 0", "0 0 0", "0.6 0.8 0"),
        ("revolute", "0 0.2 0", "0 0.5 0", "1 0 0"),
    ]
    path = tmp_path / "r.urdf"
    path.write_text(urdf_of(joints).replace('<axis xyz="1 0 0"/>', ""))
    chain = read_urdf(path).chain
    by_hand = Chain(
        "hand",
        (
            Joint(
                "a",
                before=(*translation_steps("a", 0, 0, 0.5), *rotation_steps("a", 0.1, 0.2, 0.3)),
                axis=(0.0, 0.0, -1.0),
            ),
            Joint("b", "prismatic", translation_steps("b", 0.1, 0, 0), axis=(0.6, 0.8, 0.0)),
            Joint(
                "c",
                before=(*translation_steps("c", 0, 0.2, 0), *rotation_steps("c", 0, 0.5, 0)),
                axis=(1.0, 0.0, 0.0),
            ),
        ),
    )
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (5, 3))
    assert np.abs(pose(chain, q) - pose(by_hand, q)).max() < 1e-12
    assert np.isinf(chain.moving[0].lower)
    assert chain.moving[1].lower == -2.0


def test_a_urdf_inertia_is_turned_into_the_link_frame(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(urdf_of([("revolute", "0 0 0", "0 0 0", "0 0 1")]))
    (body,) = read_urdf(path).bodies
    c, s = np.cos([0.3, 0.1]), np.sin([0.3, 0.1])
    roll = np.array([[1, 0, 0], [0, c[0], -s[0]], [0, s[0], c[0]]])
    yaw = np.array([[c[1], -s[1], 0], [s[1], c[1], 0], [0, 0, 1]])
    tensor = np.array([[0.02, 0.001, 0], [0.001, 0.03, 0], [0, 0, 0.04]])
    turned = yaw @ roll @ tensor @ roll.T @ yaw.T
    assert np.array(body.tensor, dtype=float) == pytest.approx(turned, abs=1e-15)
    assert body.centre == (0.1, 0.0, 0.2)


BRANCH = '<link name="camera"/><joint name="mount" type="fixed"><parent link="link_1"/><child link="camera"/></joint>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (urdf_of([("floating", "0 0 0", "0 0 0", "0 0 1")]), "joint 'joint_1' is floating"),
        (
            urdf_of([("revolute", "0 0 0", "0 0 0", "0 0 1")] * 2, more=BRANCH),
            "end at camera, link_2. Give one as tip",
        ),
        (urdf_of([("revolute", "0 0 0", "0 0 0", "0 0 0")]), r"has the axis \(0, 0, 0\)"),
        (
            urdf_of([("revolute", "0 0 0", "0 0 0", "0 0 1")]).replace('izz="0.04"', 'izz="0.4"'),
            "link 'link_1': body of",
        ),
        ("<robot", "ParseError"),
    ],
)
def test_urdf_that_will_not_do(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(text)
    with pytest.raises(ModelError, match=message):
        read_urdf(path)


def test_a_tip_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(urdf_of([("revolute", "0 0 0", "0 0 0", "0 0 1")] * 2, more=BRANCH))
    assert len(read_urdf(path, tip="link_2").chain.joints) == 2
    assert [joint.kind for joint in read_urdf(path, tip="camera").chain.joints] == ["revolute", "fixed"]
    with pytest.raises(ModelError, match="no link 'hand'"):
        read_urdf(path, tip="hand")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("lengths", "sizes"), "sizes unknown"),
        (('lengths = "mm"', 'lengths = "inch"'), "unit 'inch' is not allowed. Use m or mm"),
        (('angles = "deg"\n', ""), "no angles"),
        (("d = 780", 'd = "long"'), "row 1: d is 'long'"),
        (("d = 780", "dd = 780"), "row 1: dd unknown"),
        (("[[joints]]\nd = 780", "[[tool]]\nturn = 1\n[[joints]]\nd = 780"), "Give rotate or translate"),
    ],
)
def test_toml_that_will_not_do(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(TOML.replace(*change))
    with pytest.raises(ModelError, match=message):
        read_toml(path)


def test_csv_that_will_not_do(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for text, message in (
        ("a,alpha\n", "no rows"),
        ("a,beta\n1,2\n", "row 1: beta unknown"),
        ("a\nx\n", "a is 'x'"),
    ):
        path.write_text(text)
        with pytest.raises(ModelError, match=message):
            read_csv(path, name="r", convention="standard")
    with pytest.raises(ModelError, match="No such file"):
        read_csv(tmp_path / "none.csv", name="r", convention="standard")


def described(path: Path) -> Chain:
    """Return the chain of one of the published descriptions."""
    data: dict[str, Any] = json.loads(path.read_text())
    if "alpha" in data:
        rows = [DHRow(*row) for row in zip(data["a"], data["alpha"], data["d"], data["offset"], strict=True)]
        turned = "base Rx(180deg)" in data["convention"]
        base = (Step("rotate", "x", np.pi, "base"),) if turned else ()
        tool = (Step("rotate", "y", -np.pi / 2, "tool"),) if turned else ()
        return dh_chain(path.stem, rows, convention="standard", base=base, tool=tool)
    angles = {"pi": np.pi, "pi/2": np.pi / 2, "-pi/2": -np.pi / 2}
    joints = []
    for i, joint in enumerate(data["joints"], start=1):
        turn = [float(angles.get(v, v)) for v in joint.get("rpy", [0, 0, 0])]
        steps = (*translation_steps(f"t{i}", *joint["xyz"]), *rotation_steps(f"r{i}", *turn))
        joints.append(Joint(f"j{i}", before=steps, axis=tuple(map(float, joint.get("axis", [0, 0, 1])))))  # type: ignore[arg-type]
    return Chain(path.stem, tuple(joints), tool=translation_steps("tool", *data.get("ee_xyz", [0, 0, 0])))


ROBOTS = ("puma560", "ur5e", "ur10_cb3", "ur10e", "kuka_iiwa14", "kuka_kr300", "abb_irb6700_200_260")
# The flange at q = 0, m: sums of the table's lengths along the axes, by hand.
FLANGES = {
    "puma560": (0.4521, -0.15005, 1.10363),
    "ur5e": (-0.8172, -0.2329, 0.0628),
    "ur10_cb3": (-1.1843, -0.256141, 0.0116),
    "ur10e": (-1.18425, -0.2907, 0.06085),
    "kuka_iiwa14": (0.0, 0.0, 1.306),
    "abb_irb6700_200_260": (1.6625, 0.0, 2.105),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", ROBOTS)
def test_published_robots(shared: Path, name: str) -> None:
    chain = described(shared / f"data/robot_descriptions/{name}.json")
    joints = len(chain.moving)
    if name in FLANGES:
        assert pose(chain, np.zeros((1, joints)))[0, 9:] == pytest.approx(FLANGES[name], abs=1e-12)
    functions = lower(make_jacobian(chain))
    rng, step = np.random.default_rng(0), 1e-6
    for q in rng.uniform(-2.0, 2.0, (5, joints)):
        used = functions.vector("u", {label: q[int(label[2:]) - 1] for label in functions.labels("u")})
        found = functions.evaluate("output", u=used, p=functions.vector("p"))[:, 0].reshape(joints, 6).T
        ahead, behind = pose(chain, q + step * np.eye(joints)), pose(chain, q - step * np.eye(joints))
        # Truncation step^2/6 times a third derivative below 10 m, rounding 1e-16 * 3 m / step.
        assert np.abs((ahead - behind)[:, 9:].T / (2 * step) - found[:3]).max() < 2e-9
        assert np.abs(np.linalg.det(pose(chain, q[None])[0, :9].reshape(3, 3)) - 1.0) < 1e-12


@pytest.mark.shared
def test_the_built_in_robot_is_the_published_one(shared: Path) -> None:
    chain = described(shared / "data/robot_descriptions/abb_irb6700_200_260.json")
    chain = chain.with_tool((Step("rotate", "y", np.pi / 2, "flange_to_tool"),))
    q = np.random.default_rng(2).uniform(-2.0, 2.0, (20, 6))
    assert np.abs(pose(chain, q) - pose(irb6700(), q)).max() < 1e-12


@pytest.mark.shared
def test_a_published_urdf_is_read(shared: Path) -> None:
    found = read_urdf(shared / "data/ball_socket_calib/urdf_panda.urdf", tip="panda_link8")
    assert [joint.kind for joint in found.chain.joints] == ["revolute"] * 7 + ["fixed"]
    flange = pose(found.chain, np.zeros((1, 7)))[0, 9:]
    # 0.088 m forward; up 0.333 + 0.316 + 0.384 - 0.107, by hand.
    assert flange == pytest.approx([0.088, 0.0, 0.926], abs=1e-12)
