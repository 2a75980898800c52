"""Serial robots beside Peter Corke's Robotics Toolbox for Python: pose, Jacobians, torques, and time for each.

    pip install "mechsmith[benchmark]" && python benchmarks/serial_toolbox.py

Every robot of the toolbox with a DH table is read link by link; standard and modified tables, revolute and prismatic joints. The
largest difference over 20 random poses is printed, and the time of a Jacobian and of inverse dynamics in one run.
"""

import time
from collections.abc import Callable

import numpy as np
import roboticstoolbox
from rich.console import Console
from rich.table import Table

from mechsmith.codegen.build import build
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification.serial.regressor import motion_inputs
from mechsmith.identification.serial.stiffness_maps import evaluate_poses
from mechsmith.symbolic.serial.body import Body, tensor_of
from mechsmith.symbolic.serial.chain import Chain, DHRow, Joint, dh_chain, rotation_steps, translation_steps
from mechsmith.symbolic.serial.dynamics import make_inverse_dynamics
from mechsmith.symbolic.serial.kinematics import make_jacobian, make_pose

POSES, REPEATS = 20, 2000


def chain_of(robot: roboticstoolbox.DHRobot) -> Chain:
    """Return a robot of the toolbox as a chain."""
    rows = [
        DHRow(
            a=float(link.a),
            alpha=float(link.alpha),
            d=float(link.d) if link.isrevolute else float(link.offset),
            offset=float(link.offset) if link.isrevolute else float(link.theta),
            kind="revolute" if link.isrevolute else "prismatic",
        )
        for link in robot.links
    ]
    name = "".join(c if c.isalnum() else "_" for c in f"robot_{robot.name}")
    chain = dh_chain(name, rows, convention="modified" if robot.mdh else "standard")
    frames = []
    for label, frame in (("base", robot.base), ("tool", robot.tool)):
        rpy = frame.rpy(order="zyx")
        frames.append(
            (*translation_steps(label, *map(float, frame.t)), *rotation_steps(label, *map(float, rpy)))
        )
    joints = tuple(
        Joint(j.name, j.kind, j.before, j.after, (0.0, 0.0, -1.0)) if link.isflip else j
        for j, link in zip(chain.joints, robot.links, strict=True)
    )
    return Chain(name, joints, frames[0], frames[1])


def bodies_of(robot: roboticstoolbox.DHRobot) -> list[Body]:
    """Return the links' masses; the toolbox's tables may give a part of an inertia only."""
    return [
        Body(float(link.m), tuple(map(float, link.r)), tensor_of(link.I), partial=True)
        for link in robot.links
    ]


def per_call(call: Callable[[], object]) -> float:
    """Return the time of a call, us."""
    call()
    begin = time.perf_counter()
    for _ in range(REPEATS):
        call()
    return 1e6 * (time.perf_counter() - begin) / REPEATS


def jacobian(functions: FunctionSet, q: np.ndarray) -> np.ndarray:
    """Return (n, 6, joints)."""
    return evaluate_poses(functions, q).reshape(len(q), -1, 6).transpose(0, 2, 1)


def differences(robot: roboticstoolbox.DHRobot, chain: Chain, q: np.ndarray) -> list[float]:
    """Return the largest differences of pose and of the Jacobians in base and flange axes."""
    pose = evaluate_poses(lower(make_pose(chain)), q)
    theirs = np.array([robot.fkine(one).A for one in q])
    found = [
        max(
            np.abs(pose[:, :9].reshape(-1, 3, 3) - theirs[:, :3, :3]).max(),
            np.abs(pose[:, 9:] - theirs[:, :3, 3]).max(),
        )
    ]
    for frame, theirs_of in (("hybrid", robot.jacob0), ("body", robot.jacobe)):
        ours = jacobian(lower(make_jacobian(chain, frame=frame)), q)
        found.append(np.abs(ours - np.array([theirs_of(one) for one in q])).max())
    return found


def compare_dynamics(console: Console) -> None:
    """Print torques and times for the Puma 560, without its motors."""
    robot = roboticstoolbox.models.DH.Puma560()
    for link in robot.links:
        link.Jm, link.B, link.Tc = 0.0, 0.0, np.zeros(2)
    chain = chain_of(robot)
    functions = lower(make_inverse_dynamics(chain, bodies_of(robot)))
    q, dq, ddq = np.random.default_rng(1).uniform(-2.0, 2.0, (3, POSES, 6))
    p = functions.vector("p", {"gravity": float(abs(robot.gravity[2]))})
    inputs = motion_inputs(functions, q, dq, ddq)
    ours = functions.batch("output", u=inputs, p=p)[:, :, 0]
    theirs = np.array([robot.rne(*motion) for motion in zip(q, dq, ddq, strict=True)])
    compiled, many = build(functions), np.tile(inputs, (REPEATS, 1))
    begin = time.perf_counter()
    compiled.batch("output", u=many, p=p)
    ours_time = 1e6 * (time.perf_counter() - begin) / len(many)
    theirs_time = per_call(lambda: robot.rne(q[0], dq[0], ddq[0]))
    console.print(
        f"Puma 560, torques: largest difference {np.abs(ours - theirs).max():.1e} N m of {np.abs(theirs).max():.0f}"
    )
    console.print(
        f"  theirs (C) {theirs_time:.2f} us a call; ours, generated C in a batch, {ours_time:.3f} us a point"
    )
    compiled = build(lower(make_jacobian(chain)))
    used, p = np.tile(q[:, : compiled.size("u")], (REPEATS, 1)), compiled.vector("p")
    begin = time.perf_counter()
    compiled.batch("output", u=used, p=p)
    ours_time = 1e6 * (time.perf_counter() - begin) / len(used)
    theirs_time = per_call(lambda: robot.jacob0(q[0]))
    console.print(
        f"Puma 560, Jacobian: theirs {theirs_time:.1f} us a call; ours in a batch {ours_time:.3f} us a point"
    )


def main() -> None:
    """Compare every robot with a DH table."""
    console = Console()
    table = Table("robot", "joints", "table", "pose", "Jacobian, base axes", "Jacobian, flange axes")
    for name in (
        "Puma560",
        "UR3",
        "UR5",
        "UR10",
        "IRB140",
        "KR5",
        "Stanford",
        "Panda",
        "LWR4",
        "Jaco",
        "Mico",
        "Cobra600",
    ):
        robot = getattr(roboticstoolbox.models.DH, name)()
        q = np.random.default_rng(0).uniform(-2.0, 2.0, (POSES, robot.n))
        found = differences(robot, chain_of(robot), q)
        table.add_row(
            name, str(robot.n), "modified" if robot.mdh else "standard", *(f"{error:.1e}" for error in found)
        )
    console.print(table)
    compare_dynamics(console)


if __name__ == "__main__":
    main()
