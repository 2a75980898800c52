"""Equations of motion from energies and virtual work.

Hamilton's principle: the motion between two instants makes

    integral of (delta T - delta V + delta W) dt = 0

for every variation of the coordinates that vanishes at both. Integration by parts takes the time derivative off
delta q; what stands before each delta q must vanish, which gives, with T quadratic in the velocities,

    M(q) a = f(q, v),   M = d^2 T/dv dv,   f = Q + d(T - V)/dq - (d^2 T/dv dq) v,

where Q is what stands before delta q in delta W. A distributed body enters by its densities of energy: `integrated` turns
a density that is a polynomial in functions of place into one in their integrals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy

from mechsmith.symbolic.names import ModelError


@dataclass(frozen=True)
class Mechanism:
    """A mechanical system: its coordinates, energies and the virtual work of what has no potential.

    Parameters
    ----------
    coordinates, velocities, variations : tuple of sympy.Symbol
        q, dq/dt and delta q, of equal length.
    kinetic, potential : sympy.Expr
        T, quadratic in the velocities, and V, a function of the coordinates alone. J.
    virtual_work : sympy.Expr
        delta W, linear in the variations: motors, damping, loads. J.

    Raises
    ------
    ModelError
        If lengths differ, V depends on velocities, or delta W is not linear in the variations.
    """

    coordinates: tuple[sympy.Symbol, ...]
    velocities: tuple[sympy.Symbol, ...]
    variations: tuple[sympy.Symbol, ...]
    kinetic: sympy.Expr
    potential: sympy.Expr
    virtual_work: sympy.Expr

    def __post_init__(self) -> None:
        sizes = {len(self.coordinates), len(self.velocities), len(self.variations)}
        if len(sizes) != 1:
            raise ModelError(
                f"mechanism: {len(self.coordinates)} coordinates, {len(self.velocities)} velocities and "
                f"{len(self.variations)} variations. Give as many of each."
            )
        moving = self.potential.free_symbols & {*self.velocities, *self.variations}
        if moving:
            raise ModelError(
                f"mechanism: the potential depends on {', '.join(sorted(s.name for s in moving))}. "
                "Put what depends on velocities into the virtual work."
            )
        zero = dict.fromkeys(self.variations, 0)
        known = set(self.variations)
        nonlinear = any((force.free_symbols & known) for force in self.generalised_forces)
        if nonlinear or sympy.expand(self.virtual_work.xreplace(zero)) != 0:
            raise ModelError(
                "mechanism: the virtual work is not linear in the variations. Write it as a sum of a force times a variation each."
            )

    @cached_property
    def generalised_forces(self) -> tuple[sympy.Expr, ...]:
        """Q: what stands before each variation in the virtual work."""
        return tuple(sympy.diff(self.virtual_work, variation) for variation in self.variations)

    @cached_property
    def momenta(self) -> tuple[sympy.Expr, ...]:
        """dT/dv for each coordinate."""
        return tuple(sympy.diff(self.kinetic, velocity) for velocity in self.velocities)

    @cached_property
    def mass(self) -> sympy.Matrix:
        """M, symmetric as it is computed."""
        size = len(self.velocities)
        mass = sympy.zeros(size, size)
        for i in range(size):
            for j in range(i, size):
                mass[i, j] = mass[j, i] = sympy.diff(self.momenta[i], self.velocities[j])
        if mass.free_symbols & set(self.velocities):
            raise ModelError("mechanism: the kinetic energy is not quadratic in the velocities.")
        return mass

    @cached_property
    def forces(self) -> tuple[sympy.Expr, ...]:
        """f, so that M a = f: generalised, elastic, Coriolis and centrifugal forces."""
        result = []
        for i, coordinate in enumerate(self.coordinates):
            transported = sum(
                (
                    sympy.diff(self.momenta[i], other) * velocity
                    for other, velocity in zip(self.coordinates, self.velocities, strict=True)
                ),
                sympy.Integer(0),
            )
            result.append(
                self.generalised_forces[i]
                + sympy.diff(self.kinetic, coordinate)
                - sympy.diff(self.potential, coordinate)
                - transported
            )
        return tuple(result)

    @property
    def energy(self) -> sympy.Expr:
        """T + V."""
        return self.kinetic + self.potential

    @cached_property
    def power(self) -> sympy.Expr:
        """What the generalised forces do, d(T + V)/dt along every motion."""
        return sum(
            (q * v for q, v in zip(self.generalised_forces, self.velocities, strict=True)), sympy.Integer(0)
        )


def integrated(
    density: sympy.Expr, functions: Sequence[sympy.Symbol], integral: Callable[[sympy.Expr], sympy.Expr]
) -> sympy.Expr:
    """Return the integral over a body of a density that is a polynomial in functions of place.

    Parameters
    ----------
    density : sympy.Expr
        What is integrated.
    functions : sequence of sympy.Symbol
        What varies over the body: place itself, shape functions and their derivatives, each as a symbol.
    integral : callable
        Gives the integral of each product of `functions` that occurs, for instance ``x**2`` or ``phi_1*phi_2``.
    """
    collected: dict[sympy.Expr, list[sympy.Expr]] = {}
    for term in sympy.Add.make_args(sympy.expand(density)):
        constant, product = term.as_independent(*functions, as_Add=False)
        collected.setdefault(product, []).append(constant)
    return sympy.Add(*(integral(product) * sympy.Add(*constants) for product, constants in collected.items()))


def truncated(expression: sympy.Expr, small: Sequence[sympy.Symbol], order: int) -> sympy.Expr:
    """Return the Taylor polynomial of an expression in several symbols together, up to an order."""
    epsilon = sympy.Dummy("epsilon")
    scaled = expression.xreplace({symbol: epsilon * symbol for symbol in small})
    terms = []
    for k in range(order + 1):
        terms.append(scaled.xreplace({epsilon: sympy.Integer(0)}) / sympy.factorial(k))
        scaled = sympy.diff(scaled, epsilon)
    return sympy.Add(*terms)
