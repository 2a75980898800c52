"""``plot``: maps of a serial robot's stiffness and conditioning over two joints, as a picture or as numbers."""

import csv
import io
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy
import typer

from mechsmith.codegen.files import write_text
from mechsmith.values import InputError

if TYPE_CHECKING:
    from mechsmith.identification.serial.stiffness_maps import SurfaceMap
    from mechsmith.symbolic.serial.chain import Chain

app = typer.Typer(name="plot", no_args_is_help=True, help="Draw maps of a serial robot over two joints.")


class Direction(StrEnum):
    """In which direction a translation stiffness is meant."""

    X = "x"
    Y = "y"
    Z = "z"
    SMALLEST = "smallest"
    LARGEST = "largest"


RobotName = Annotated[
    str,
    typer.Argument(metavar="ROBOT", help="A robot's name (irb6700), a DH table in .toml, or a .urdf file."),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="What to write: .png, .svg or .pdf, or the numbers as .csv.")
]
Joints = Annotated[tuple[int, int], typer.Option(help="Which two joints, from 1.", metavar="I J")]
Position = Annotated[
    str | None,
    typer.Option(help="The other joints, deg: one number for each joint, separated by commas; 0 by default."),
]
Points = Annotated[int, typer.Option(help="Along each joint.", min=2)]
Tip = Annotated[str | None, typer.Option(help="Link at the end of the chain, where those of a URDF branch.")]


@app.command("stiffness")
def stiffness(
    robot: RobotName,
    output: Output,
    direction: Annotated[
        Direction, typer.Option(help="Along a base axis, or over all directions.")
    ] = Direction.SMALLEST,
    joint_stiffness: Annotated[
        str | None,
        typer.Option(
            "--stiffness", help="Of the joints, N*m/rad (N/m), separated by commas. Needed but for irb6700."
        ),
    ] = None,
    joints: Joints = (2, 3),
    position: Position = None,
    points: Points = 41,
    tip: Tip = None,
) -> None:
    """Draw the translation stiffness of the flange centre."""
    from mechsmith.codegen.lower import lower
    from mechsmith.identification.serial import stiffness_maps as maps
    from mechsmith.symbolic.serial.irb6700 import STIFFNESS
    from mechsmith.symbolic.serial.stiffness import make_compliance

    chain = _chain(robot, tip)
    count = len(chain.moving)
    if joint_stiffness is None and robot != "irb6700":
        raise InputError(f"--stiffness is needed: that of {robot!r} is not known. Give {count} numbers.")
    known = STIFFNESS if joint_stiffness is None else _numbers(joint_stiffness, count, "--stiffness")
    if min(known) <= 0.0:
        raise InputError("--stiffness: every number must be positive.")
    compliances = {f"compliance_{i}": 1.0 / k for i, k in enumerate(known, start=1)}
    functions = lower(make_compliance(chain))
    if direction is Direction.SMALLEST or direction is Direction.LARGEST:
        which: maps.Which = "smallest" if direction is Direction.SMALLEST else "largest"
        value = maps.extreme_stiffness(functions, which, compliances)
    else:
        axis = numpy.eye(3)["xyz".index(direction.value)]
        value = maps.stiffness_along(functions, axis, compliances)
    _write(_map(value, chain, joints, position, points), output)


@app.command("conditioning")
def conditioning(
    robot: RobotName,
    output: Output,
    joints: Joints = (2, 3),
    position: Position = None,
    points: Points = 41,
    tip: Tip = None,
) -> None:
    """Draw 1/KF, the distance from singularity: 1 is isotropic, 0 singular."""
    from mechsmith.codegen.lower import lower
    from mechsmith.identification.serial.stiffness_maps import inverse_conditioning
    from mechsmith.symbolic.serial.conditioning import make_conditioning

    chain = _chain(robot, tip)
    value = inverse_conditioning(lower(make_conditioning(chain)))
    _write(_map(value, chain, joints, position, points), output)


def _chain(robot: str, tip: str | None) -> "Chain":
    from mechsmith.symbolic.serial.read import read_toml, read_urdf
    from mechsmith.symbolic.serial.robots import robot as named

    if robot.endswith(".toml"):
        return read_toml(robot)
    return read_urdf(robot, tip=tip).chain if robot.endswith(".urdf") else named(robot)


def _numbers(text: str, count: int, option: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option}: {text!r} is no list of numbers, as in 1.5,2,0.") from None
    if len(values) != count or not all(map(math.isfinite, values)):
        raise InputError(f"{option}: got {text!r}. Give {count} finite numbers, separated by commas.")
    return values


def _map(
    value: Any, chain: "Chain", joints: tuple[int, int], position: str | None, points: int
) -> "SurfaceMap":
    from mechsmith.identification.serial.stiffness_maps import map_over_joints

    count = len(chain.moving)
    if len(set(joints)) != 2 or not all(1 <= joint <= count for joint in joints):
        raise InputError(f"--joints: got {joints[0]} {joints[1]}. Give two different ones from 1 to {count}.")
    rest = numpy.zeros(count) if position is None else numpy.radians(_numbers(position, count, "--position"))
    grids = [_grid(chain, joint, points) for joint in joints]
    return map_over_joints(value, rest, joints, *grids)


def _grid(chain: "Chain", joint: int, points: int) -> numpy.ndarray:
    """Return a grid within a joint's limits, a whole turn (a metre) where it has none."""
    moving = chain.moving[joint - 1]
    reach = math.pi if moving.kind == "revolute" else 0.5
    return numpy.linspace(max(moving.lower, -reach), min(moving.upper, reach), points)


def _write(drawn: "SurfaceMap", output: Path) -> None:
    if output.suffix in (".png", ".svg", ".pdf"):
        drawn.draw(output)
    elif output.suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        heading = f"{drawn.value} {drawn.unit}".strip()
        writer.writerow([*(f"{n} {u}" for n, u in zip(drawn.names, drawn.units, strict=True)), heading])
        for i, x in enumerate(drawn.first):
            writer.writerows([x, y, drawn.values[i, j]] for j, y in enumerate(drawn.second))
        write_text(output, text.getvalue())
    else:
        raise InputError(f"--output {str(output)!r}: its ending must be .png, .svg, .pdf or .csv.")
