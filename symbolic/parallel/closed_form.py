"""Inverse kinematics in closed form, chain by chain, with a sign for each chain that has two branches.

Three kinds of chain are known: a rod whose length is driven (a hexapod's leg); one turning link and a rod (a Delta's arm); in the
plane two turning links. In the last two the link's end lies on a circle and within the rod's or second link's length of the
platform: A cos q + B sin q = C, hence q = atan2(B, A) + branch * acos(C / hypot(A, B)).
"""

from dataclasses import dataclass

import sympy
from sympy import acos, atan2, sqrt

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.parallel.closure import SOLVED, used_parameters
from mechsmith.symbolic.parallel.loops import (
    Chain,
    Frame,
    Joint,
    Link,
    Mechanism,
    as_expression,
    as_vector,
    rotation,
    walk,
)
from mechsmith.symbolic.quantity import Quantity


def make_closed_inverse(mechanism: Mechanism) -> Model:
    """Return the inverse kinematics in closed form, all branches.

    Parameters
    ----------
    mechanism : Mechanism
        With chains of the three kinds.

    Returns
    -------
    Model
        `<mechanism>_inverse_closed`. Inputs: the platform's coordinates, and `branch_<chain>`, +1 or -1, for each chain of two
        branches. Outputs: every joint's coordinate as `<coordinate>_solved`, as in the closure; not a number where
        the chain does not reach.

    Raises
    ------
    ModelError
        If a chain is of another kind; the closure (`make_inverse`) then is solved by Newton's method.
    """
    definitions: dict[Quantity, sympy.Expr] = {}
    outputs: dict[Quantity, sympy.Expr] = {}
    branches = []
    for chain in mechanism.chains:
        solver = _ChainSolver(mechanism, chain)
        if solver.leg is not None:
            found = solver.rod_length()
        else:
            branches.append(
                Quantity(
                    f"branch_{chain.name}", "", description="+1 or -1", nominal=1.0, lower=-1.0, upper=1.0
                )
            )
            found = solver.angles()
        definitions |= found[0]
        outputs |= found[1]
    return Model(
        name=f"{mechanism.name}_inverse_closed",
        inputs=(*(joint.quantity for joint in mechanism.platform), *branches),
        parameters=used_parameters(mechanism, [*definitions.values(), *outputs.values()]),
        definitions=definitions,
        outputs=outputs,
        description=f"Inverse kinematics in closed form. {mechanism.description}",
        references=mechanism.references,
    )


@dataclass(frozen=True)
class _ChainSolver:
    """Solves one chain for its joints, given where it meets the platform."""

    mechanism: Mechanism
    chain: Chain

    @property
    def leg(self) -> Joint | None:
        """The prismatic joint that is the rod's length, in a chain that has no other."""
        if self.chain.rod is None or len(self.chain.joints) != 1:
            return None
        return self.chain.rod.actuator

    def _named(self, name: str, unit: str) -> Quantity:
        return Quantity(f"{self.chain.name}_{name}", unit)

    def _solved(self, joint: Joint, value: sympy.Expr) -> dict[Quantity, sympy.Expr]:
        return {
            Quantity(
                joint.coordinate + SOLVED, joint.unit, description=f"{joint.coordinate}, solved for"
            ): value
        }

    def rod_length(self) -> tuple[dict[Quantity, sympy.Expr], dict[Quantity, sympy.Expr]]:
        """Return definitions and output of a driven rod: the distance of its ends."""
        gap = self.mechanism.anchor(self.chain) - self.mechanism.tips[self.chain.name].position
        squared = self._named("length_squared", "m^2")
        (joint,) = self.chain.joints
        return {squared: gap.dot(gap)}, self._solved(joint, sqrt(squared.elements[0]))

    def angles(self) -> tuple[dict[Quantity, sympy.Expr], dict[Quantity, sympy.Expr]]:
        """Return definitions and outputs of one turning link and a rod, or of two turning links in the plane."""
        first, link, second, reach = self._parts()
        before = self._frame_before(first)
        axis = sympy.Matrix(first.axis)
        gap = self._named("gap_x", "m"), self._named("gap_y", "m"), self._named("gap_z", "m")
        local = before.rotation.T * (self.mechanism.anchor(self.chain) - before.position)
        d, v = sympy.Matrix([q.elements[0] for q in gap]), as_vector(link.vector)
        along = axis.dot(d) * axis.dot(v)
        cosine, sine, level, squared, angle = (
            self._named(name, unit)
            for name, unit in (
                ("cos", "m^2"),
                ("sin", "m^2"),
                ("level", "m^2"),
                ("amplitude", "m^4"),
                ("angle", "rad"),
            )
        )
        a, b, c, r2, q = (quantity.elements[0] for quantity in (cosine, sine, level, squared, angle))
        branch = sympy.Symbol(f"branch_{self.chain.name}", real=True)
        definitions: dict[Quantity, sympy.Expr] = dict(zip(gap, local, strict=True))
        definitions |= {
            cosine: d.dot(v) - along,
            sine: d.dot(axis.cross(v)),
            level: (d.dot(d) + v.dot(v) - reach) / 2 - along,
            squared: a**2 + b**2,
            angle: atan2(b, a) + branch * acos(c / sqrt(r2)),
        }
        unused = {q for q in gap if not any(e.has(q.elements[0]) for e in [*definitions.values()])}
        definitions = {name: value for name, value in definitions.items() if name not in unused}
        outputs = self._solved(first, q)
        if second is not None:
            rest = d - rotation(axis, q) * v
            turned = rest if second.absolute else rotation(axis, q).T * rest
            outputs |= self._solved(second, atan2(turned[1], turned[0]))
        return definitions, outputs

    def _frame_before(self, joint: Joint) -> Frame:
        frame = Frame(sympy.zeros(3, 1), sympy.eye(3))
        for piece, behind in walk(self.chain.pieces):
            if piece is joint:
                break
            frame = behind
        return Frame(frame.position, sympy.eye(3), frame.turns) if joint.absolute else frame

    def _parts(self) -> tuple[Joint, Link, Joint | None, sympy.Expr]:
        """Return the first joint, its link, the second joint if there is one, and the squared length of what follows."""
        pieces, rod = self.chain.pieces, self.chain.rod
        places = [k for k, piece in enumerate(pieces) if isinstance(piece, Joint)]
        tail = pieces[places[0] :] if places else ()
        match tail:
            case (Joint(kind="revolute") as joint, Link() as link) if (
                rod is not None and rod.actuator is None
            ):
                return joint, link, None, as_expression(rod.length) ** 2
            case (
                Joint(kind="revolute") as joint,
                Link() as link,
                Joint(kind="revolute") as second,
                Link((length, 0)),
            ) if rod is None and self.mechanism.planar:
                return joint, link, second, as_expression(length) ** 2
        raise ModelError(
            f"mechanism {self.mechanism.name!r}: no closed form is known for chain {self.chain.name!r}. It is known for a driven "
            "rod, a turning link and a rod, and, in the plane, two turning links, the second along its x axis. "
            "Use make_inverse, which Newton's method solves."
        )
