"""Equations of motion of a mechanism with closed loops, by Lagrange multipliers, in the general form.

In all coordinates q of the mechanism, with the closure g(q) = 0 and G = dg/dq,

    M(q) a + h(q, v) = B tau + G^T lambda,     g = 0,     G v = 0,     G a + (dG/dt) v = 0

(M and h by Kane's method: Kane, Levinson 1985, Dynamics, McGraw-Hill). States are independent coordinates and their
rates only; the dependent ones, all accelerations and the multipliers are unknowns. So the loops are closed at every evaluation,
the equations are of index 1, and nothing drifts. They are singular where the independent coordinates fail to
determine the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.parallel.closure import (
    check_given,
    rate_quantity,
    rate_symbol,
    time_derivatives,
    used_parameters,
)
from mechsmith.symbolic.parallel.loops import (
    Body,
    Chain,
    Frame,
    Joint,
    Mechanism,
    RodMass,
    as_expression,
    as_vector,
)
from mechsmith.symbolic.quantity import Quantity

_SIXTH = sympy.Rational(1, 6)


@dataclass(frozen=True)
class _Motion:
    """A point's or frame's velocity as J v, and the part of its acceleration without a: (dJ/dt) v."""

    jacobian: sympy.Matrix
    bias: sympy.Matrix


@dataclass(frozen=True)
class EquationsOfMotion:
    """Mass matrix, forces of inertia and weight, and energies of a mechanism in all its coordinates.

    Parameters
    ----------
    mechanism : Mechanism
        With bodies.
    """

    mechanism: Mechanism

    @property
    def coordinates(self) -> list[sympy.Symbol]:
        """All coordinates q."""
        return [joint.symbol for joint in self.mechanism.joints]

    @property
    def rates(self) -> sympy.Matrix:
        """All velocities v, (n, 1)."""
        return sympy.Matrix([rate_symbol(joint, 1) for joint in self.mechanism.joints])

    @cached_property
    def mass(self) -> sympy.Matrix:
        """M, (n, n)."""
        return self._parts[0]

    @cached_property
    def bias(self) -> sympy.Matrix:
        """The forces of inertia at zero accelerations, less the weight: h, (n, 1)."""
        return self._parts[1]

    @property
    def kinetic(self) -> sympy.Expr:
        """The kinetic energy, J."""
        return (self.rates.T * self.mass * self.rates)[0] / 2

    @cached_property
    def potential(self) -> sympy.Expr:
        """The potential energy of the weight, J."""
        gravity = as_vector(self.mechanism.gravity)
        return sympy.Add(*(-mass * gravity.dot(point) for mass, point in self._weights))

    @cached_property
    def constraint_jacobian(self) -> sympy.Matrix:
        """G, (m, n)."""
        return sympy.Matrix(list(self.mechanism.closure.values())).jacobian(self.coordinates)

    @cached_property
    def _weights(self) -> list[tuple[sympy.Expr, sympy.Matrix]]:
        """Masses with the places of their centres."""
        weights = []
        for body in self.mechanism.bodies:
            if isinstance(body, RodMass):
                ends = self._ends(body)
                weights.append((as_expression(body.mass), (ends[0] + ends[1]) / 2))
            else:
                weights.append((as_expression(body.mass), self._center(body)))
        return weights

    @cached_property
    def _parts(self) -> tuple[sympy.Matrix, sympy.Matrix]:
        size = len(self.coordinates)
        mass, bias = sympy.zeros(size, size), sympy.zeros(size, 1)
        for body in self.mechanism.bodies:
            parts = self._rod(body) if isinstance(body, RodMass) else self._body(body)
            mass, bias = mass + parts[0], bias + parts[1]
        gravity = as_vector(self.mechanism.gravity)
        for weight, point in self._weights:
            bias -= point.jacobian(self.coordinates).T * gravity * weight
        return mass, bias

    def _body(self, body: Body) -> tuple[sympy.Matrix, sympy.Matrix]:
        weight = as_expression(body.mass)
        center = self._motion(self._center(body))
        mass = weight * center.jacobian.T * center.jacobian
        bias = weight * center.jacobian.T * center.bias
        if body.inertia:
            frame = self.mechanism.frames[body.frame]
            turning = self._turning(frame)
            tensor = self._tensor(body, frame)
            omega = turning.jacobian * self.rates
            mass += turning.jacobian.T * tensor * turning.jacobian
            bias += turning.jacobian.T * (tensor * turning.bias + omega.cross(tensor * omega))
        return mass, bias

    def _tensor(self, body: Body, frame: Frame) -> sympy.Matrix:
        moments = [as_expression(entry) for entry in body.inertia]
        if len(moments) == 1:
            # About z, the only axis that a planar mechanism turns about.
            return sympy.diag(0, 0, moments[0])
        return frame.rotation * sympy.diag(*moments) * frame.rotation.T

    def _rod(self, body: RodMass) -> tuple[sympy.Matrix, sympy.Matrix]:
        # A slender uniform rod has m/6 (v1^2 + v1 v2 + v2^2) whatever way it points.
        one, two = (self._motion(end) for end in self._ends(body))
        weight = as_expression(body.mass) * _SIXTH
        a, b = one.jacobian, two.jacobian
        mass = weight * (2 * a.T * a + a.T * b + b.T * a + 2 * b.T * b)
        bias = weight * (a.T * (2 * one.bias + two.bias) + b.T * (one.bias + 2 * two.bias))
        return mass, bias

    def _chain(self, name: str) -> Chain:
        return next(chain for chain in self.mechanism.chains if chain.name == name)

    def _ends(self, body: RodMass) -> tuple[sympy.Matrix, sympy.Matrix]:
        return self.mechanism.tips[body.chain].position, self.mechanism.anchor(self._chain(body.chain))

    def _center(self, body: Body) -> sympy.Matrix:
        frame = self.mechanism.frames[body.frame]
        return frame.position + frame.rotation * as_vector(body.center)

    def _motion(self, point: sympy.Matrix) -> _Motion:
        jacobian = point.jacobian(self.coordinates)
        return _Motion(jacobian, self._bias_of(jacobian))

    def _turning(self, frame: Frame) -> _Motion:
        jacobian = sympy.zeros(3, len(self.coordinates))
        for symbol, axis in frame.turns:
            place = self.coordinates.index(symbol)
            jacobian[:, place] = jacobian[:, place] + axis
        return _Motion(jacobian, self._bias_of(jacobian))

    def _bias_of(self, jacobian: sympy.Matrix) -> sympy.Matrix:
        velocity = jacobian * self.rates
        return velocity.jacobian(self.coordinates) * self.rates


def make_dynamics(
    mechanism: Mechanism,
    *,
    independent: Sequence[str] = (),
    problem: Literal["forward", "inverse"] = "forward",
) -> Model:
    """Return the equations of motion of a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        With bodies and actuated joints.
    independent : sequence of str
        The coordinates that are states, as many as there are degrees of freedom; by default the platform's if they are as
        many, else the first motors'.
    problem : "forward" or "inverse"
        Forward: motion from motors' forces. Inverse: motors' forces from the motion of the independent coordinates,
        for mechanisms with as many motors as degrees of freedom.

    Returns
    -------
    Model
        Forward: states are the independent coordinates and their rates `<coordinate>_rate`, inputs the forces or torques
        `<coordinate>_force` of the motors. Inverse: inputs are coordinates, rates and accelerations, and the forces are
        unknowns. Outputs: kinetic and potential energy, J, the motors' power, W, and, inverse, each `<coordinate>_motor`.

    Raises
    ------
    ModelError
        If the mechanism has no bodies or no motors, or, inverse, more or fewer motors than degrees of freedom.
    """
    chosen = tuple(independent) or _default_independent(mechanism)
    check_given(mechanism, chosen)
    if not mechanism.bodies or not mechanism.actuated:
        raise ModelError(
            f"mechanism {mechanism.name!r}: dynamics need bodies and actuated joints. Give both."
        )
    if problem == "inverse" and len(mechanism.actuated) != mechanism.mobility:
        raise ModelError(
            f"mechanism {mechanism.name!r}: {len(mechanism.actuated)} motors move {mechanism.mobility} degrees of freedom: "
            "their forces do not follow from the motion. Use the forward problem."
        )
    builder = _Builder(EquationsOfMotion(mechanism), chosen)
    return builder.forward() if problem == "forward" else builder.inverse()


def _default_independent(mechanism: Mechanism) -> tuple[str, ...]:
    platform = tuple(joint.coordinate for joint in mechanism.platform)
    return platform if len(platform) == mechanism.mobility else mechanism.actuated[: mechanism.mobility]


@dataclass(frozen=True)
class _Builder:
    """Puts the equations of motion into the general form."""

    equations: EquationsOfMotion
    independent: tuple[str, ...]

    @property
    def mechanism(self) -> Mechanism:
        return self.equations.mechanism

    @property
    def _free(self) -> list[Joint]:
        return [j for j in self.mechanism.joints if j.coordinate in self.independent]

    @property
    def _bound(self) -> list[Joint]:
        return [j for j in self.mechanism.joints if j.coordinate not in self.independent]

    @property
    def _forces(self) -> list[Quantity]:
        return [
            Quantity(
                f"{joint.coordinate}_force",
                "N*m" if joint.kind == "revolute" else "N",
                description=f"force or torque of the motor of {joint.coordinate}",
                nominal=1.0,
            )
            for joint in self.mechanism.joints
            if joint.actuated
        ]

    @property
    def _multipliers(self) -> list[Quantity]:
        closed = {f"{chain.name}_length" for chain in self.mechanism.chains}
        return [
            Quantity(
                f"{name}_multiplier", "N/m" if name in closed else "N", description="multiplier", nominal=1.0
            )
            for name in self.mechanism.closure
        ]

    @cached_property
    def _constraints(self) -> dict[str, sympy.Expr]:
        """Every constraint, under the name of the unknown that it goes with."""
        closure = list(self.mechanism.closure.values())
        once, twice = (time_derivatives(self.mechanism, order) for order in (1, 2))
        names = [joint.coordinate for joint in self._bound]
        result = dict(zip(names, closure, strict=True))
        result |= {f"{name}_rate": g for name, g in zip(names, once, strict=True)}
        accelerations = sympy.Matrix([rate_symbol(joint, 2) for joint in self.mechanism.joints])
        multipliers = sympy.Matrix([q.elements[0] for q in self._multipliers])
        motors = sympy.Matrix(
            [
                sympy.Symbol(f"{joint.coordinate}_force", real=True) if joint.actuated else 0
                for joint in self.mechanism.joints
            ]
        )
        eom = self.equations
        balance = eom.mass * accelerations + eom.bias - motors - eom.constraint_jacobian.T * multipliers
        result |= {rate_symbol(j, 2).name: row for j, row in zip(self.mechanism.joints, balance, strict=True)}
        return result | {q.name: g for q, g in zip(self._multipliers, twice, strict=True)}

    @property
    def _unknowns(self) -> list[Quantity]:
        return [
            *(joint.quantity for joint in self._bound),
            *(rate_quantity(joint, 1) for joint in self._bound),
            *(rate_quantity(joint, 2) for joint in self.mechanism.joints),
            *self._multipliers,
        ]

    @property
    def _outputs(self) -> dict[Quantity, sympy.Expr]:
        power = sympy.Add(
            *(
                sympy.Symbol(f"{joint.coordinate}_force", real=True) * rate_symbol(joint, 1)
                for joint in self.mechanism.joints
                if joint.actuated
            )
        )
        return {
            Quantity("kinetic_energy", "J"): self.equations.kinetic,
            Quantity("potential_energy", "J"): self.equations.potential,
            Quantity("power", "W", description="of the motors"): power,
        }

    def _parameters(self, outputs: dict[Quantity, sympy.Expr]) -> tuple[Quantity, ...]:
        return used_parameters(self.mechanism, [*self._constraints.values(), *outputs.values()])

    def forward(self) -> Model:
        states = [joint.quantity for joint in self._free]
        rates = [
            Quantity(rate_symbol(joint, 1), f"{joint.unit}/s", description=f"velocity of {joint.coordinate}")
            for joint in self._free
        ]
        outputs = self._outputs
        return Model(
            name=f"{self.mechanism.name}_dynamics",
            states=(*states, *rates),
            unknowns=tuple(self._unknowns),
            inputs=tuple(self._forces),
            parameters=self._parameters(outputs),
            constraints=self._constraints,
            derivatives={
                **{joint.coordinate: rate_symbol(joint, 1) for joint in self._free},
                **{rate_symbol(joint, 1): rate_symbol(joint, 2) for joint in self._free},
            },
            outputs=outputs,
            description=f"Equations of motion. {self.mechanism.description}",
            references=self.mechanism.references,
        )

    def inverse(self) -> Model:
        inputs = [joint.quantity for joint in self._free]
        inputs += [rate_quantity(joint, order) for order in (1, 2) for joint in self._free]
        given = {rate_symbol(joint, 2).name for joint in self._free}
        unknowns = [q for q in self._unknowns if q.name not in given] + self._forces
        # The balance of an independent coordinate goes with a motor's force in place of the acceleration, now given.
        renamed = dict(zip(sorted(given), (q.name for q in self._forces), strict=True))
        outputs = self._outputs | {
            Quantity(q.name.removesuffix("_force") + "_motor", q.unit, description=q.description): q.elements[
                0
            ]
            for q in self._forces
        }
        return Model(
            name=f"{self.mechanism.name}_inverse_dynamics",
            inputs=tuple(inputs),
            unknowns=tuple(unknowns),
            parameters=self._parameters(outputs),
            constraints={renamed.get(name, name): g for name, g in self._constraints.items()},
            outputs=outputs,
            description=f"Inverse dynamics. {self.mechanism.description}",
            references=self.mechanism.references,
        )
