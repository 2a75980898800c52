"""Kinematic calibration from joint angles alone, with a ball held in two sockets 50.0 mm apart: ours beside the authors'.

    python benchmarks/ball_socket.py ../shared/data/ball_socket_calib

The folder holds the published recordings, the nominal URDF and the authors' calibrated URDF of Panda 6 (platonics-delft).
Scatter is the rms distance of the predicted ball centre from its mean, for each socket; the distance is that of the two means,
less 50.0 mm. Panda 6 is trained on `front` alone, as the authors did; Panda 1 on all places but one. Free are all lengths and
angles between joints 2 and 7, with priors of 1 mm and 20 mrad about their nominal values, the ball's centre, and where the sockets
are. Other priors are shown beside: on places held out they change little.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification import EquationError, Estimate, LeastSquares, Prior, Problem, Record, identify
from mechsmith.identification.uncertainty import Uncertainty, precision
from mechsmith.symbolic.serial.contact import make_ball_in_sockets
from mechsmith.symbolic.serial.read import read_urdf

Holes = list[np.ndarray]
TIP, SPACING, NOISE = "ball_link", 0.050, 2e-4  # m
LENGTH, ANGLE = 1e-3, 2e-2  # prior standard deviations, m and rad
PER_PLACE = ("socket_x", "socket_y", "socket_z", "azimuth", "elevation")


def places(folder: Path) -> dict[str, Holes]:
    """Return the recordings of a robot: by place, joint angles (n, 7) for each of the two sockets."""
    return {
        place.name: [np.loadtxt(place / f"hole_{i}.csv", delimiter=",") for i in (0, 1)]
        for place in sorted(folder.iterdir())
        if place.is_dir()
    }


@dataclass(frozen=True)
class Robot:
    """A URDF with its geometry from joint 2 to joint 7 open: before joint 1 it is the base, behind joint 7 the ball's."""

    urdf: Path

    @cached_property
    def open(self) -> tuple[str, ...]:
        joints = read_urdf(self.urdf, tip=TIP).chain.moving
        return tuple(step.name for joint in joints[1:] for step in joint.before)

    @cached_property
    def functions(self) -> FunctionSet:
        chain = read_urdf(self.urdf, tip=TIP).chain.opened(self.open)
        return lower(make_ball_in_sockets(chain))

    def centres(self, hole: np.ndarray, values: dict[str, float]) -> np.ndarray:
        """Return the ball's centre (n, 3)."""
        known = self.functions.labels("p")
        p = self.functions.vector("p", {name: value for name, value in values.items() if name in known})
        u = np.column_stack([hole, np.zeros(len(hole))])
        rows = [self.functions.labels("y").index(f"place_{axis}") for axis in "xyz"]
        return self.functions.batch("output", u=u, p=p)[:, rows, 0]

    def judged(self, holes: Holes, values: dict[str, float]) -> tuple[float, float, float]:
        """Return scatter in both sockets and the error of their distance, mm."""
        found = [self.centres(hole, values) for hole in holes]
        means = [centres.mean(axis=0) for centres in found]
        scatter = [
            1e3 * np.sqrt(((c - m) ** 2).sum(axis=1).mean()) for c, m in zip(found, means, strict=True)
        ]
        return scatter[0], scatter[1], 1e3 * (float(np.linalg.norm(means[0] - means[1])) - SPACING)


def record_of(holes: Holes) -> Record:
    """Return the record of a place: what must vanish is its measurement."""
    q = np.vstack(holes)
    columns = {f"q_{i + 1}": (q[:, i], "rad") for i in range(q.shape[1])}
    columns["second"] = (np.repeat([0.0, 1.0], [len(hole) for hole in holes]), "")
    columns |= {f"miss_{axis}": (np.zeros(len(q)), "m") for axis in "xyz"}
    return Record.from_arrays(np.arange(len(q), dtype=float), columns)


def problem_of(
    robot: Robot, training: list[Holes], priors: dict[str, Prior], free: tuple[str, ...]
) -> Problem:
    """Return the calibration as a Problem, the sockets' place free for each record."""
    residual = EquationError(
        outputs={f"miss_{axis}": f"miss_{axis}" for axis in "xyz"},
        noise={f"miss_{axis}": NOISE for axis in "xyz"},
    )
    ball = ("ball_x", "ball_y", "ball_z")
    records = tuple(record_of(holes) for holes in training)
    per_record = PER_PLACE if len(records) > 1 else ()
    fixed = {"spacing": SPACING}
    names = (*free, *ball, *PER_PLACE)
    return Problem(
        robot.functions, records, names, residual, per_record=per_record, fixed=fixed, priors=priors
    )


def started(robot: Robot, training: list[Holes]) -> dict[str, float]:
    """Return where the sockets are by the nominal geometry."""
    start = {}
    for k, holes in enumerate(training):
        first, second = (robot.centres(hole, {}).mean(axis=0) for hole in holes)
        towards = second - first
        values = (*first, np.arctan2(towards[1], towards[0]), 0.0)
        suffix = f"[{k}]" if len(training) > 1 else ""
        start |= {f"{name}{suffix}": float(value) for name, value in zip(PER_PLACE, values, strict=True)}
    return start


def calibrate(
    robot: Robot, training: list[Holes], *, length: float = LENGTH, angle: float = ANGLE
) -> Estimate:
    """Return the calibrated geometry, ball and sockets."""
    labels, units = robot.functions.labels("p"), robot.functions.units("p")
    nominal = robot.functions.vector("p")
    priors = {
        name: Prior(
            float(nominal[labels.index(name)]), angle if units[labels.index(name)] == "rad" else length
        )
        for name in robot.open
    }
    problem = problem_of(robot, training, priors, robot.open)
    return identify(problem, LeastSquares(), start=started(robot, training))


def undetermined(robot: Robot, training: list[Holes], estimate: Estimate) -> tuple[int, tuple[str, ...]]:
    """Return how many combinations the recordings alone do not determine, and the parameters in them."""
    problem = problem_of(robot, training, {}, robot.open)
    found = precision(problem, problem.start_vector(estimate.parameters, required=True), Uncertainty())
    return len(found.null_directions), found.undetermined


def show(what: str, judged: tuple[float, float, float]) -> None:
    first, second, distance = judged
    print(f"  {what:<38} scatter {first:6.3f} {second:6.3f} mm, distance {distance:+7.3f} mm")


def panda_6(folder: Path, robot: Robot) -> None:
    """Print nominal, theirs and ours on all places."""
    recordings = places(folder / "panda_6")
    theirs = Robot(folder / "calibrated_urdf_panda_6_panda_calibrated.urdf")
    ours = calibrate(robot, [recordings["front"]])
    print(f"Panda 6, trained on front: {ours.status}")
    for place, holes in recordings.items():
        print(f" {place}{'' if place == 'front' else ', held out'}")
        show("nominal", robot.judged(holes, {}))
        show("the authors' URDF", theirs.judged(holes, {}))
        show("ours", robot.judged(holes, dict(ours.parameters)))
        for length, angle in ((3e-4, 5e-3), (1e-3, 5e-3), (3e-3, 2e-2), (1e-2, 5e-2)):
            other = calibrate(robot, [recordings["front"]], length=length, angle=angle)
            show(
                f"ours, priors {1e3 * length:g} mm, {1e3 * angle:g} mrad",
                robot.judged(holes, dict(other.parameters)),
            )
    count, names = undetermined(robot, [recordings["front"]], ours)
    print(f" without priors {count} combinations stay undetermined, of {', '.join(names)}")


def panda_1(folder: Path, robot: Robot) -> None:
    """Print each place, held out of the training in turn."""
    recordings = places(folder / "panda_1")
    print("Panda 1, each place held out in turn")
    for place, holes in recordings.items():
        training = [other for name, other in recordings.items() if name != place]
        ours = calibrate(robot, training)
        print(f" {place}: {ours.status}")
        show("nominal", robot.judged(holes, {}))
        show("ours", robot.judged(holes, dict(ours.parameters)))


def main() -> None:
    """Run both robots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    robot = Robot(folder / "urdf_panda.urdf")
    panda_6(folder, robot)
    panda_1(folder, robot)


if __name__ == "__main__":
    main()
