"""What the stiffness source's equations are written in: 4x4 matrices multiplied out joint by joint.

Nothing here is taken from the recursions that the models are made by; it is for checking them.
"""

from dataclasses import dataclass
from functools import cached_property

import sympy

from mechsmith.symbolic import graph
from mechsmith.symbolic.serial.chain import AXES, Chain, Step
from mechsmith.symbolic.serial.frames import skew, step_value
from mechsmith.symbolic.statement import Scope


@dataclass(frozen=True)
class Matrices:
    """What the source's equations are written in: T, Z_i, P_i6, J, forces and points, in symbols of a model."""

    chain: Chain
    scope: Scope

    @cached_property
    def transforms(self) -> tuple[tuple[sympy.Matrix, ...], sympy.Matrix]:
        """The frame of each joint before its motion, with its axis as z, and the flange's; (1)."""
        whole, frames, number = sympy.eye(4), [], 0
        whole = self.product(whole, self.chain.base)
        for joint in self.chain.joints:
            whole = self.product(whole, joint.before)
            if joint.kind != "fixed":
                number += 1
                frames.append(whole)
                whole = whole * turn(sympy.Matrix(joint.axis), self.scope[f"q_{number}"])
            whole = self.product(whole, joint.after)
        return tuple(frames), self.product(whole, self.chain.tool)

    def product(self, whole: sympy.Matrix, steps: tuple[Step, ...]) -> sympy.Matrix:
        """Return a frame moved on by elementary steps."""
        for step in steps:
            value = step_value(self.chain, step)
            value = self.scope[step.name] if isinstance(value, sympy.Symbol) else value
            axis = sympy.Matrix([int(name == step.axis) for name in AXES])
            whole = whole * (turn(axis, value) if step.move == "rotate" else shift(axis * value))
        return whole

    @property
    def flange(self) -> sympy.Matrix:
        """T60, (4, 4)."""
        return self.transforms[1]

    @property
    def rotation(self) -> sympy.Matrix:
        """R06."""
        return self.flange[:3, :3]

    @cached_property
    def axes(self) -> list[sympy.Matrix]:
        """Z_i in base axes."""
        joints = self.chain.moving
        return [t[:3, :3] * sympy.Matrix(j.axis) for t, j in zip(self.transforms[0], joints, strict=True)]

    @cached_property
    def arms(self) -> list[sympy.Matrix]:
        """P_i6: from each joint to the flange centre, base axes."""
        return [self.flange[:3, 3] - t[:3, 3] for t in self.transforms[0]]

    @cached_property
    def jacobian(self) -> sympy.Matrix:
        """J of the flange centre, (2)."""
        return sympy.Matrix.hstack(
            *(sympy.Matrix.vstack(z.cross(p), z) for z, p in zip(self.axes, self.arms, strict=True))
        )

    @cached_property
    def length(self) -> sympy.Expr:
        """L, (4) with (5)."""
        arms = [z.cross(p) for z, p in zip(self.axes, self.arms, strict=True)]
        return sympy.sqrt(sum((s.dot(s) for s in arms), sympy.Integer(0)) / len(arms))

    def point(self, name: str) -> sympy.Matrix:
        """Return a point in flange axes."""
        return sympy.Matrix([self.scope[f"{name}_{axis}"] for axis in AXES])

    @property
    def wrench(self) -> sympy.Matrix:
        """F: force and moment in base axes."""
        return sympy.Matrix([self.scope[f"{kind}_{axis}"] for kind in ("force", "moment") for axis in AXES])

    @property
    def compliances(self) -> sympy.Matrix:
        """The column c."""
        return self.column("compliance", len(self.axes))

    def column(self, name: str, count: int) -> sympy.Matrix:
        """Return quantities numbered from 1."""
        return sympy.Matrix([self.scope[f"{name}_{i + 1}"] for i in range(count)])

    def outputs(self, *names: str) -> sympy.Matrix:
        """Return outputs x, y, z of each name."""
        return sympy.Matrix([self.scope[f"{name}_{axis}"] for name in names for axis in AXES])

    @property
    def at_centre(self) -> dict[sympy.Basic, sympy.Basic]:
        """Loaded and measured point at the flange centre."""
        names = [f"{point}_{axis}" for point in ("loaded", "measured") for axis in AXES]
        return {self.scope[name]: sympy.Integer(0) for name in names if name in self.scope}

    def centred(self, *names: str) -> sympy.Matrix:
        """Return outputs with loaded and measured point at the flange centre."""
        written = [
            self.scope.expand(self.scope.expression(f"{name}_{axis}")) for name in names for axis in AXES
        ]
        return sympy.Matrix(graph.substitute(written, self.at_centre))

    @property
    def load_transfer(self) -> sympy.Matrix:
        """[I 0; skew(r_f) I], r_f turned into base axes."""
        return below(skew(self.rotation * self.point("loaded")))

    @property
    def torques(self) -> sympy.Matrix:
        """tau of (10) with the load at r_f, as in (17)."""
        return self.jacobian.T * (self.load_transfer * self.wrench)


def turn(axis: sympy.Matrix, angle: sympy.Expr) -> sympy.Matrix:
    """Return the rotation about a unit vector through the origin, (4, 4)."""
    cross = skew(axis)
    rotation = sympy.eye(3) + sympy.sin(angle) * cross + (1 - sympy.cos(angle)) * cross * cross
    return sympy.diag(rotation, 1)


def shift(vector: sympy.Matrix) -> sympy.Matrix:
    """Return the translation, (4, 4)."""
    whole = sympy.eye(4)
    whole[:3, 3] = vector
    return whole


def below(block: sympy.Matrix) -> sympy.Matrix:
    """Return [I 0; block I]."""
    whole = sympy.eye(6)
    whole[3:, :3] = block
    return whole


def inverse_of(matrix: sympy.Matrix) -> sympy.Matrix:
    """Return the inverse by elimination from the last row up, which keeps the expressions a shared graph.

    For Jacobians: their last pivots are those of the axes' directions.
    """
    size = matrix.shape[0]
    work = sympy.Matrix.hstack(matrix, sympy.eye(size)).as_mutable()
    for k in reversed(range(size)):
        pivot = work[k, k]
        for j in range(2 * size):
            work[k, j] = work[k, j] / pivot if j != k else sympy.Integer(1)
        for i in range(size):
            factor = work[i, k]
            if i == k or factor == 0:
                continue
            for j in range(2 * size):
                work[i, j] = work[i, j] - factor * work[k, j] if j != k else sympy.Integer(0)
    return work[:, size:]
