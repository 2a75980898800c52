"""Mechanisms with closed loops as data: chains between the base and a platform.

A chain is a list of joints and links. The platform is moved by joints of its own, which are its coordinates. Where a
chain's tip meets the platform, a loop closes: their difference vanishes, or, with a rod that is free to turn at both
ends, their distance is the rod's length. Nothing else need be said; the equations follow (`Mechanism.closure`).

Conventions follow Merlet, *Parallel Robots*, 2nd ed., Springer 2006, chapters 2-5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import sympy

from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity

Entry: TypeAlias = sympy.Expr | str | float
Vector: TypeAlias = tuple[Entry, ...]
X_AXIS, Y_AXIS, Z_AXIS = (1, 0, 0), (0, 1, 0), (0, 0, 1)


@dataclass(frozen=True)
class Joint:
    """A joint with one coordinate.

    Parameters
    ----------
    coordinate : str
        Name of its coordinate, which becomes a quantity of the model.
    kind : "revolute" or "prismatic"
        Turns about, or moves along, the axis; rad or m.
    axis : tuple of int
        Unit vector in the frame before the joint.
    actuated : bool
        Whether a motor moves it.
    absolute : bool
        Count the angle from the base instead of from the link before (planar mechanisms).
    nominal : float
        Value in the configuration from which Newton's method starts: near a closed one, and not zero.
    lower, upper : float
        Bounds of the coordinate.
    """

    coordinate: str
    kind: str = "revolute"
    axis: tuple[int, int, int] = Z_AXIS
    actuated: bool = False
    absolute: bool = False
    nominal: float = 1.0
    lower: float = -sympy.oo
    upper: float = sympy.oo

    def __post_init__(self) -> None:
        if self.kind not in ("revolute", "prismatic"):
            raise ModelError(
                f"joint {self.coordinate!r}: kind is {self.kind!r}. Use 'revolute' or 'prismatic'."
            )
        if self.nominal == 0.0:
            raise ModelError(
                f"joint {self.coordinate!r}: nominal is 0. Give a value that is not zero: the accuracy of Newton's method "
                "is relative to it."
            )

    @property
    def unit(self) -> str:
        """Unit of the coordinate."""
        return "rad" if self.kind == "revolute" else "m"

    @property
    def symbol(self) -> sympy.Symbol:
        """The coordinate."""
        return sympy.Symbol(self.coordinate, real=True)

    @property
    def quantity(self) -> Quantity:
        """The coordinate as a quantity."""
        return Quantity(
            self.coordinate,
            self.unit,
            description=f"{self.kind} coordinate",
            nominal=self.nominal,
            lower=float(self.lower),
            upper=float(self.upper),
        )


@dataclass(frozen=True)
class Link:
    """A rigid piece: a vector in the frame reached so far. Entries are names of parameters, numbers or expressions."""

    vector: Vector


@dataclass(frozen=True)
class Turn:
    """A fixed rotation of the frame about an axis, rad."""

    angle: Entry
    axis: tuple[int, int, int] = Z_AXIS


@dataclass(frozen=True)
class Rod:
    """The last piece of a chain where only its length counts: it is free to turn at both ends.

    Parameters
    ----------
    length : str
        A parameter, or the coordinate of `actuator`.
    actuator : Joint, optional
        A prismatic joint that is the length (the leg of a hexapod).
    """

    length: str
    actuator: Joint | None = None


Piece: TypeAlias = Joint | Link | Turn


@dataclass(frozen=True)
class Chain:
    """A serial chain from the base to the platform.

    Parameters
    ----------
    name : str
        Prefix of the chain's own names.
    pieces : tuple of Joint, Link or Turn
        From the origin of the base to the chain's tip.
    anchor : tuple
        Where it meets the platform, in the platform's frame.
    rod : Rod, optional
        Between tip and anchor.
    """

    name: str
    pieces: tuple[Piece, ...]
    anchor: Vector = (0, 0, 0)
    rod: Rod | None = None

    @property
    def joints(self) -> tuple[Joint, ...]:
        """Its joints in order, the rod's actuator last."""
        own = tuple(piece for piece in self.pieces if isinstance(piece, Joint))
        return own if self.rod is None or self.rod.actuator is None else (*own, self.rod.actuator)


@dataclass(frozen=True)
class Frame:
    """A frame on a chain: its origin, its rotation, and the axes of the turns before it with their coordinates."""

    position: sympy.Matrix
    rotation: sympy.Matrix
    turns: tuple[tuple[sympy.Symbol, sympy.Matrix], ...] = ()


@dataclass(frozen=True)
class Body:
    """A rigid body of a mechanism.

    Parameters
    ----------
    frame : str
        The coordinate of the joint whose frame carries it; that of the platform's last joint for the platform.
    mass : str
        Parameter, kg.
    center : tuple
        Centre of mass in that frame.
    inertia : tuple of str
        About the centre of mass, kg m^2: one parameter (about z) for a planar mechanism, three principal ones for a spatial
        one; empty for a point mass.
    """

    frame: str
    mass: str
    center: Vector = (0, 0, 0)
    inertia: tuple[str, ...] = ()


@dataclass(frozen=True)
class RodMass:
    """The mass of a chain's rod, slender and uniform; exact, since its turning about itself has no energy."""

    chain: str
    mass: str


@dataclass(frozen=True)
class Mechanism:
    """Chains between a base and a platform.

    Parameters
    ----------
    name : str
        Name; models made of it carry it.
    platform : tuple of Joint
        The joints that move the platform freely: its coordinates.
    chains : tuple of Chain
        The loops.
    parameters : tuple of Quantity
        Lengths and, for dynamics, masses; those that an equation does not use are left out of its model.
    planar : bool
        Whether it moves in the x-y plane.
    bodies : tuple of Body or RodMass
        For dynamics.
    gravity : tuple
        Acceleration of gravity as a vector of the base, entries as in `Link`.
    description : str
        One sentence.
    references : tuple of str
        Where it comes from.
    """

    name: str
    platform: tuple[Joint, ...]
    chains: tuple[Chain, ...]
    parameters: tuple[Quantity, ...]
    planar: bool = True
    bodies: tuple[Body | RodMass, ...] = ()
    gravity: Vector = (0, 0, 0)
    description: str = ""
    references: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [joint.coordinate for joint in self.joints]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(
                    f"mechanism {self.name!r}: the coordinate {name!r} occurs twice. Rename one."
                )
        frames = set(self.frames)
        chains = {chain.name: chain for chain in self.chains}
        for body in self.bodies:
            if isinstance(body, Body) and body.frame not in frames:
                raise ModelError(
                    f"mechanism {self.name!r}: a body is on {body.frame!r}, which is no joint of a chain or of the platform "
                    f"({', '.join(frames)})."
                )
            if isinstance(body, RodMass) and (body.chain not in chains or chains[body.chain].rod is None):
                raise ModelError(
                    f"mechanism {self.name!r}: chain {body.chain!r} of a rod's mass has no rod. "
                    f"Chains: {', '.join(chains)}."
                )

    @property
    def joints(self) -> tuple[Joint, ...]:
        """All joints: the platform's, then each chain's."""
        return (*self.platform, *(joint for chain in self.chains for joint in chain.joints))

    @property
    def actuated(self) -> tuple[str, ...]:
        """The coordinates that motors move."""
        return tuple(joint.coordinate for joint in self.joints if joint.actuated)

    @property
    def mobility(self) -> int:
        """Coordinates less closure equations: the degrees of freedom, unless equations depend on each other."""
        return len(self.joints) - len(self.closure)

    @cached_property
    def platform_frame(self) -> Frame:
        """The platform's frame."""
        return list(walk(self.platform))[-1][1]

    @cached_property
    def tips(self) -> dict[str, Frame]:
        """The last frame of each chain, by its name."""
        origin = Frame(sympy.zeros(3, 1), sympy.eye(3))
        return {chain.name: ([origin] + [f for _, f in walk(chain.pieces)])[-1] for chain in self.chains}

    @cached_property
    def frames(self) -> dict[str, Frame]:
        """The frame behind each joint, by its coordinate."""
        paths = [self.platform, *(chain.pieces for chain in self.chains)]
        return {
            piece.coordinate: frame
            for path in paths
            for piece, frame in walk(path)
            if isinstance(piece, Joint)
        }

    def anchor(self, chain: Chain) -> sympy.Matrix:
        """Return where a chain meets the platform, in the base's frame, (3, 1)."""
        frame = self.platform_frame
        return frame.position + frame.rotation * as_vector(chain.anchor)

    @cached_property
    def closure(self) -> dict[str, sympy.Expr]:
        """The expressions that vanish where every loop is closed, by name.

        Metres for each component of a difference, square metres for a rod (a distance has no derivative where it is zero).
        """
        equations: dict[str, sympy.Expr] = {}
        for chain in self.chains:
            gap = self.anchor(chain) - self.tips[chain.name].position
            if chain.rod is not None:
                length = as_expression(chain.rod.length)
                equations[f"{chain.name}_length"] = sum((entry**2 for entry in gap), -(length**2))
                continue
            for axis, entry in zip("xy" if self.planar else "xyz", gap, strict=False):
                equations[f"{chain.name}_{axis}"] = entry
        return equations


def walk(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Frame]]:
    """Yield each piece with the frame behind it, from the base."""
    frame = Frame(sympy.zeros(3, 1), sympy.eye(3))
    for piece in pieces:
        frame = _advance(frame, piece)
        yield piece, frame


def _advance(frame: Frame, piece: Piece) -> Frame:
    if isinstance(piece, Link):
        return Frame(frame.position + frame.rotation * as_vector(piece.vector), frame.rotation, frame.turns)
    axis = sympy.Matrix(piece.axis)
    if isinstance(piece, Turn):
        turned = frame.rotation * rotation(axis, as_expression(piece.angle))
        return Frame(frame.position, turned, frame.turns)
    if piece.kind == "prismatic":
        return Frame(frame.position + frame.rotation * axis * piece.symbol, frame.rotation, frame.turns)
    before = sympy.eye(3) if piece.absolute else frame.rotation
    turns = () if piece.absolute else frame.turns
    turned = before * rotation(axis, piece.symbol)
    return Frame(frame.position, turned, (*turns, (piece.symbol, before * axis)))


def rotation(axis: sympy.Matrix, angle: sympy.Expr) -> sympy.Matrix:
    """Return the rotation about one of the coordinate axes (or its opposite) by an angle, (3, 3)."""
    c, s = sympy.cos(angle), sympy.sin(angle)
    cross = sympy.Matrix([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return sympy.eye(3) * c + cross * s + axis * axis.T * (1 - c)


def as_vector(vector: Vector) -> sympy.Matrix:
    """Return a vector of two or three entries as a (3, 1) matrix."""
    entries = [as_expression(entry) for entry in vector]
    return sympy.Matrix([*entries, *[sympy.Integer(0)] * (3 - len(entries))])


def as_expression(entry: Entry) -> sympy.Expr:
    """Return a name as its real symbol, and anything else as an expression."""
    return sympy.Symbol(entry, real=True) if isinstance(entry, str) else sympy.sympify(entry)
