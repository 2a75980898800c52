"""Chains of joints: what a serial robot's geometry is, from DH tables or frame by frame.

Every frame change is a product of elementary rotations and translations, so that standard and modified DH
tables, URDF and hand-written chains are one thing, and each of their numbers has a name.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mechsmith.symbolic.names import ModelError, identifier

JointKind = Literal["revolute", "prismatic", "fixed"]
Convention = Literal["standard", "modified"]
AXES = ("x", "y", "z")

# Unit vectors and angles from files carry the rounding of the digits that were written.
_UNIT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Step:
    """One elementary rotation or translation, about or along an axis of the frame it starts from.

    Parameters
    ----------
    move : "rotate" or "translate"
        What it does.
    axis : "x", "y" or "z"
        About or along which axis.
    value : float
        rad or m.
    name : str
        Name of the number, as a parameter where it becomes one.
    """

    move: Literal["rotate", "translate"]
    axis: str
    value: float
    name: str

    def __post_init__(self) -> None:
        identifier(self.name)
        if self.axis not in AXES:
            raise ModelError(f"step {self.name!r}: axis {self.axis!r} is none of x, y, z.")
        if not math.isfinite(self.value):
            raise ModelError(f"step {self.name!r}: its value is {self.value}. Give a finite number.")


Transform = tuple[Step, ...]


@dataclass(frozen=True)
class Joint:
    """A joint: from the previous link's frame to its own, its motion, and on to its link's frame.

    Parameters
    ----------
    name : str
        Any text; joints are numbered from the base among those that move.
    kind : "revolute", "prismatic" or "fixed"
        A fixed joint keeps its link: its mass counts.
    before, after : tuple of Step
        From the previous link's frame to the joint's, and from the moved joint's frame to its link's.
    axis : tuple of float
        Unit vector in the joint's frame, about or along which it moves.
    lower, upper : float
        Limits, rad or m.
    """

    name: str
    kind: JointKind = "revolute"
    before: Transform = ()
    after: Transform = ()
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        if self.kind not in ("revolute", "prismatic", "fixed"):
            raise ModelError(
                f"joint {self.name!r}: kind {self.kind!r} is not allowed. Use revolute, prismatic or fixed."
            )
        length = math.hypot(*self.axis)
        if self.kind != "fixed" and not abs(length - 1.0) <= _UNIT_TOLERANCE:
            raise ModelError(
                f"joint {self.name!r}: its axis {self.axis} has the length {length:g}. Give a unit vector."
            )
        if not self.lower <= self.upper:
            raise ModelError(f"joint {self.name!r}: lower limit {self.lower} is above upper {self.upper}.")


@dataclass(frozen=True)
class Chain:
    """A serial robot: joints from the base to the flange, between a base and a tool transform.

    Parameters
    ----------
    name : str
        Name of the robot; models made of it carry it as a prefix.
    joints : tuple of Joint
        From the base.
    base, tool : tuple of Step
        From the world to the first joint's frame, and from the last link's frame to the flange's.
    open : tuple of str
        Names of the numbers that become parameters whatever their value, for calibration. Of the others, lengths that
        are not zero become parameters too (to be baked in when code is generated), and angles that are multiples of
        15 degrees become exact numbers.
    references : tuple of str
        Where the numbers come from.

    Raises
    ------
    ModelError
        If no joint moves, two numbers share a name, or `open` names none of them.
    """

    name: str
    joints: tuple[Joint, ...]
    base: Transform = ()
    tool: Transform = ()
    open: tuple[str, ...] = ()
    references: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        identifier(self.name)
        if not self.moving:
            raise ModelError(f"chain {self.name!r}: no joint moves. Give at least one that does.")
        names = [step.name for step in self.steps]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ModelError(f"chain {self.name!r}: {', '.join(twice)} named twice. Rename one of each.")
        unknown = [name for name in self.open if name not in names]
        if unknown:
            raise ModelError(
                f"chain {self.name!r}: open names {', '.join(unknown)}, which it doesn't have. It has: {', '.join(names)}."
            )

    @property
    def moving(self) -> tuple[Joint, ...]:
        """The joints that move."""
        return tuple(joint for joint in self.joints if joint.kind != "fixed")

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every elementary step, from base to tool."""
        links = [step for joint in self.joints for step in (*joint.before, *joint.after)]
        return (*self.base, *links, *self.tool)

    def opened(self, names: Iterable[str] | Literal["all"]) -> "Chain":
        """Return the chain with more of its numbers open, for calibration."""
        wanted = [step.name for step in self.steps] if names == "all" else list(names)
        return replace(self, open=tuple(dict.fromkeys((*self.open, *wanted))))

    def with_tool(self, tool: Transform) -> "Chain":
        """Return the chain with another transform from the last link's frame to the flange's."""
        return replace(self, tool=tool)


@dataclass(frozen=True)
class DHRow:
    """One row of a DH table.

    Parameters
    ----------
    a, d : float
        m.
    alpha, offset : float
        rad; the joint's angle (revolute) or displacement (prismatic) adds to `offset` or to `d`.
    kind : "revolute", "prismatic" or "fixed"
        Of the joint.
    lower, upper : float
        Limits, rad or m.
    name : str
        Of the joint; ``joint_1`` and so on when empty.
    """

    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    offset: float = 0.0
    kind: JointKind = "revolute"
    lower: float = -math.inf
    upper: float = math.inf
    name: str = ""


def dh_chain(
    name: str,
    rows: Sequence[DHRow],
    *,
    convention: Convention,
    base: Transform = (),
    tool: Transform = (),
    open: Iterable[str] = (),
    references: Iterable[str] = (),
) -> Chain:
    """Return the chain of a DH table; its numbers are named ``a_1``, ``alpha_1``, ``d_1``, ``offset_1``, by row.

    Parameters
    ----------
    name : str
        Of the robot.
    rows : sequence of DHRow
        From the base.
    convention : "standard" or "modified"
        Standard: Rz(q + offset) Tz(d) Tx(a) Rx(alpha), the row's joint at its start. Modified (Craig): Rx(alpha) Tx(a)
        Rz(q + offset) Tz(d), where a and alpha are those before the joint, a_{i-1} and alpha_{i-1}.
    base, tool, open, references
        See `Chain`.
    """
    if convention not in ("standard", "modified"):
        raise ModelError(
            f"chain {name!r}: convention {convention!r} is not allowed. Say standard or modified: the tables look alike."
        )
    joints = []
    for number, row in enumerate(rows, start=1):
        twist = Step("rotate", "x", row.alpha, f"alpha_{number}")
        length = Step("translate", "x", row.a, f"a_{number}")
        motion = (
            Step("rotate", "z", row.offset, f"offset_{number}"),
            Step("translate", "z", row.d, f"d_{number}"),
        )
        before, after = (
            ((), (*motion, length, twist)) if convention == "standard" else ((twist, length), motion)
        )
        label = row.name or f"joint_{number}"
        joints.append(Joint(label, row.kind, before, after, lower=row.lower, upper=row.upper))
    return Chain(name, tuple(joints), base, tool, tuple(open), tuple(references))


def rotation_steps(name: str, roll: float, pitch: float, yaw: float) -> Transform:
    """Return Rz(yaw) Ry(pitch) Rx(roll), URDF's order, in rad; zero angles stay in, to be opened."""
    return (
        Step("rotate", "z", yaw, f"{name}_yaw"),
        Step("rotate", "y", pitch, f"{name}_pitch"),
        Step("rotate", "x", roll, f"{name}_roll"),
    )


def translation_steps(name: str, x: float, y: float, z: float) -> Transform:
    """Return the translation (x, y, z) in m; zero lengths stay in, to be opened."""
    return tuple(
        Step("translate", axis, value, f"{name}_{axis}") for axis, value in zip(AXES, (x, y, z), strict=True)
    )
