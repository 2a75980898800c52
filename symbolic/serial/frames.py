"""Where the joints, links and flange of a chain are, in base axes, as ordered definitions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sympy

from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.chain import AXES, Chain, Joint, Step
from mechsmith.symbolic.serial.let import Let

# Angles within this of a multiple of 15 degrees are that multiple: files give pi/2 with 4 to 16 digits, and the
# shortest of these (1.5708, off by 3.7e-6) are left as they are written.
_EXACT = 1e-12
_FIFTEEN_DEGREES = math.pi / 12.0


@dataclass(frozen=True)
class Frame:
    """A frame in base axes: rotation matrix (3, 3) and origin (3, 1), m."""

    rotation: sympy.Matrix
    origin: sympy.Matrix

    def point(self, local: sympy.Matrix) -> sympy.Matrix:
        """Return in base axes the point with coordinates (3, 1) in this frame."""
        return self.origin + self.rotation * local


@dataclass(frozen=True)
class Axis:
    """The axis of a joint that moves: direction and a point on it, in base axes."""

    kind: str
    direction: sympy.Matrix
    origin: sympy.Matrix


@dataclass(frozen=True)
class Frames:
    """A chain laid out: what its joints' coordinates and geometry are, and where everything is.

    Parameters
    ----------
    chain : Chain
        The chain.
    coordinates : tuple of Quantity
        ``q_1`` and so on, for the joints that move.
    geometry : tuple of Quantity
        Numbers of the chain that are parameters, with their values as nominal ones.
    axes : tuple of Axis
        Of the joints that move.
    links : tuple of Frame
        The link behind each joint, fixed joints too.
    flange : Frame
        At the end of the tool transform.
    """

    chain: Chain
    coordinates: tuple[Quantity, ...]
    geometry: tuple[Quantity, ...]
    axes: tuple[Axis, ...]
    links: tuple[Frame, ...]
    flange: Frame


def joint_quantities(chain: Chain, name: str, unit: str = "", description: str = "") -> tuple[Quantity, ...]:
    """Return one quantity for each joint that moves, ``name_1`` and so on.

    Parameters
    ----------
    chain : Chain
        The chain.
    name : str
        Of the quantities.
    unit : str
        Behind rad (m for prismatic joints): ``""``, ``"/s"`` or ``"/s^2"``.
    description : str
        Of each.
    """
    return tuple(
        Quantity(
            f"{name}_{number}",
            ("m" if joint.kind == "prismatic" else "rad") + unit,
            description=f"{description} of joint {number}".strip(),
            nominal=_inside(joint) if not unit else 0.0,
            lower=joint.lower if not unit else -math.inf,
            upper=joint.upper if not unit else math.inf,
        )
        for number, joint in enumerate(chain.moving, start=1)
    )


def _inside(joint: Joint) -> float:
    return min(max(0.0, joint.lower), joint.upper)


def step_value(chain: Chain, step: Step) -> sympy.Expr:
    """Return the number of a step: a parameter's symbol, or exact."""
    if step.name not in chain.open:
        if step.value == 0.0:
            return sympy.Integer(0)
        multiple = step.value / _FIFTEEN_DEGREES
        if step.move == "rotate" and abs(multiple - round(multiple)) * _FIFTEEN_DEGREES < _EXACT:
            return sympy.pi * sympy.Rational(round(multiple), 12)
    return sympy.Symbol(step.name, real=True)


def lay_out(chain: Chain, let: Let, *, positions: Sequence[sympy.Expr] | None = None) -> Frames:
    """Return where everything of a chain is; definitions go to `let`.

    Parameters
    ----------
    chain : Chain
        The chain.
    let : Let
        Takes the definitions.
    positions : sequence of expressions, optional
        Of the joints that move, in place of the coordinates ``q_1``...
    """
    return _Layout(chain, let).run(positions)


class _Motion(NamedTuple):
    """What a joint adds: its coordinate's symbol with the kind and axis of its motion."""

    joint: Joint
    coordinate: sympy.Symbol
    number: int


class _Layout:
    """The walk along a chain; consecutive rotations about one axis are taken together, their angles added."""

    def __init__(self, chain: Chain, let: Let) -> None:
        self.chain, self.let = chain, let
        self.rotation, self.origin = sympy.eye(3), sympy.zeros(3, 1)
        self.geometry: list[Quantity] = []
        self.axes: list[Axis] = []
        self.count = 0
        self.pending: tuple[int, sympy.Expr, str] | None = None

    def run(self, positions: Sequence[sympy.Expr] | None) -> Frames:
        coordinates = joint_quantities(self.chain, "q", description="position")
        values = positions or [coordinate.elements[0] for coordinate in coordinates]
        links = []
        self.steps(self.chain.base)
        number = 0
        for joint in self.chain.joints:
            self.steps(joint.before)
            if joint.kind != "fixed":
                self.move(_Motion(joint, values[number], number + 1))
                number += 1
            self.steps(joint.after)
            links.append(self.frame())
        self.steps(self.chain.tool)
        return Frames(
            self.chain, coordinates, tuple(self.geometry), tuple(self.axes), tuple(links), self.frame()
        )

    def frame(self) -> Frame:
        self.settle()
        return Frame(self.rotation, self.origin)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            value = self.value(step)
            if value == 0:
                continue
            if step.move == "rotate":
                self.rotate(AXES.index(step.axis), value, step.name)
            else:
                self.translate(AXES.index(step.axis), value)

    def value(self, step: Step) -> sympy.Expr:
        """Return the number of a step, and note it where it is a parameter."""
        value = step_value(self.chain, step)
        if isinstance(value, sympy.Symbol):
            unit = "rad" if step.move == "rotate" else "m"
            self.geometry.append(Quantity(step.name, unit, description="geometry", nominal=step.value))
        return value

    def move(self, motion: _Motion) -> None:
        axis = [_number(component) for component in motion.joint.axis]
        along = [i for i in range(3) if axis[i] != 0]
        # A rotation still pending about this very axis changes neither its direction nor its origin.
        if self.pending is not None and along != [self.pending[0]]:
            self.settle()
        direction = self.rotation * sympy.Matrix(axis)
        direction = self.let.matrix(f"axis_{motion.number}", "", direction)
        self.axes.append(Axis(motion.joint.kind, direction, self.origin))
        if motion.joint.kind == "prismatic":
            self.settle()
            self.origin = self.named("position", "m", self.origin + direction * motion.coordinate)
        elif len(along) == 1:
            self.rotate(along[0], axis[along[0]] * motion.coordinate, str(motion.number))
        else:
            self.rotate_about(axis, motion)

    def rotate(self, axis: int, angle: sympy.Expr, name: str) -> None:
        if self.pending is not None and self.pending[0] == axis:
            before = self.pending[2]
            angle += self.pending[1]
            name = before if before.isdigit() else name
        else:
            self.settle()
        self.pending = (axis, angle, name)

    def settle(self) -> None:
        """Carry out the rotation that waits for others about its axis."""
        if self.pending is None:
            return
        axis, angle, name = self.pending
        self.pending = None
        c, s = self.let(f"cos_{name}", "", sympy.cos(angle)), self.let(f"sin_{name}", "", sympy.sin(angle))
        turn = sympy.eye(3)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        turn[i, i], turn[i, j], turn[j, i], turn[j, j] = c, -s, s, c
        self.rotation = self.named("rotation", "", self.rotation * turn)

    def rotate_about(self, axis: list[sympy.Expr], motion: _Motion) -> None:
        """Rotate about any unit vector (Rodrigues)."""
        self.settle()
        c = self.let(f"cos_{motion.number}", "", sympy.cos(motion.coordinate))
        s = self.let(f"sin_{motion.number}", "", sympy.sin(motion.coordinate))
        cross = skew(sympy.Matrix(axis))
        self.rotation = self.named(
            "rotation", "", self.rotation * (sympy.eye(3) + s * cross + (1 - c) * cross * cross)
        )

    def translate(self, axis: int, value: sympy.Expr) -> None:
        if self.pending is not None and self.pending[0] != axis:
            self.settle()
        self.origin = self.named("position", "m", self.origin + self.rotation[:, axis] * value)

    def named(self, name: str, unit: str, matrix: sympy.Matrix) -> sympy.Matrix:
        self.count += 1
        return self.let.matrix(f"{name}_{self.count}", unit, matrix)


def _number(value: float) -> sympy.Expr:
    return sympy.Integer(int(value)) if value in (-1.0, 0.0, 1.0) else sympy.Float(value)


def skew(vector: sympy.Matrix) -> sympy.Matrix:
    """Return the matrix (3, 3) of the cross product with a vector (3, 1)."""
    x, y, z = vector
    return sympy.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
