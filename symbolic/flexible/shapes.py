"""Mode shapes of a uniform beam from the roots of its frequency equation, without functions that grow.

With xi = x/l and z = beta l a mode shape of unit deflection at the tip is

    phi = c1 sin(z xi) + c2 cos(z xi) + c3 exp(-z xi) + c4 exp(-z (1 - xi)).

The two exponentials decay from the root and from the tip, so nothing overflows and nothing large cancels, however
high the mode. The coefficients follow from phi(0) = 0 and the free tip (a tip mass included); what happens at the
root is in z alone, so that one form serves spring, clamp, pin and rotating hub.
"""

from dataclasses import dataclass
from functools import cached_property

import sympy
from sympy import cos, exp, sin

from mechsmith.symbolic.quantity import Quantity

HALF = sympy.Rational(1, 2)


def gauss_legendre(count: int) -> tuple[tuple[float, float], ...]:
    """Return nodes on (0, 1) and their weights, exact for polynomials of degree 2 count - 1.

    Newton's method on the Legendre polynomial (Press et al., Numerical Recipes, 4.6).
    """
    pairs = []
    for i in range(count):
        x = sympy.cos(sympy.pi * (i + 0.75) / (count + 0.5))
        x, slope = float(x), 1.0
        for _ in range(100):
            before, value = 1.0, x
            for degree in range(2, count + 1):
                before, value = value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree
            slope = count * (x * value - before) / (x * x - 1.0) if count > 1 else 1.0
            step = value / slope
            x -= step
            if abs(step) < 1e-15:
                break
        pairs.append((0.5 * (1.0 + x), 1.0 / ((1.0 - x * x) * slope * slope)))
    return tuple(sorted(pairs))


def pairs(modes: int) -> tuple[tuple[int, int], ...]:
    """Return the places (i, j), i <= j, of a symmetric matrix, in the order in which its elements are kept."""
    return tuple((i, j) for i in range(modes) for j in range(i, modes))


@dataclass(frozen=True)
class Shapes:
    """The coefficients of mode shapes as definitions of a model, and what is computed from them.

    Parameters
    ----------
    roots : tuple of sympy.Expr
        z of each mode.
    mass_ratio : sympy.Expr
        Tip mass over the mass of the beam, mu.
    """

    roots: tuple[sympy.Expr, ...]
    mass_ratio: sympy.Expr

    @property
    def modes(self) -> int:
        """How many."""
        return len(self.roots)

    @cached_property
    def coefficients(self) -> tuple[Quantity, Quantity, Quantity, Quantity]:
        """c1 to c4 as quantities, one element for each mode."""
        texts = ("sine", "cosine", "exponential from the root", "exponential from the tip")
        return tuple(  # type: ignore[return-value]
            Quantity(f"shape_{i}", "", (self.modes,), description=f"coefficient of the {text}, c{i}")
            for i, text in enumerate(texts, start=1)
        )

    @cached_property
    def definitions(self) -> dict[Quantity, list[sympy.Expr]]:
        """The coefficients' values, in the order in which they use each other."""
        c1, c2, c3, c4 = self.coefficients
        values: dict[Quantity, list[sympy.Expr]] = {c2: [], c4: [], c3: [], c1: []}
        for i, z in enumerate(self.roots):
            decay = exp(-z)
            width = 1 - exp(-2 * z)
            load = self.mass_ratio * z
            second = (cos(z) * HALF - sin(z) * (1 / width - HALF + load)) / (1 + 2 * sin(z) * decay / width)
            values[c2].append(second)
            values[c4].append((HALF + c2.elements[i] * decay) / width)
            values[c3].append(-c2.elements[i] - c4.elements[i] * decay)
            values[c1].append(sin(z) * HALF + cos(z) * (2 * c4.elements[i] - HALF + load))
        return values

    def value(self, mode: int, xi: sympy.Expr | float, order: int = 0) -> sympy.Expr:
        """Return the derivative of a mode shape by xi, of an order from 0 to 4, at xi from 0 to 1."""
        z = self.roots[mode]
        c1, c2, c3, c4 = (quantity.elements[mode] for quantity in self.coefficients)
        sine, cosine = sin(z * xi), cos(z * xi)
        waves = (
            c1 * sine + c2 * cosine,
            c1 * cosine - c2 * sine,
            -c1 * sine - c2 * cosine,
            -c1 * cosine + c2 * sine,
        )[order % 4]
        decaying = c3 * exp(-z * xi) * (-1) ** order + c4 * exp(-z * (1 - xi))
        return z**order * (waves + decaying)

    def at_root(self, mode: int, order: int) -> sympy.Expr:
        """Return the derivative by xi at the root."""
        z = self.roots[mode]
        c1, c2, c3, c4 = (quantity.elements[mode] for quantity in self.coefficients)
        waves = (c2, c1, -c2, -c1)[order % 4]
        return z**order * (waves + c3 * (-1) ** order + c4 * exp(-z))

    def at_tip(self, mode: int, order: int) -> sympy.Expr:
        """Return the derivative by xi at the tip: 1, the slope, 0, and the load of the tip mass."""
        z = self.roots[mode]
        c4 = self.coefficients[3].elements[mode]
        slope = z * (4 * c4 - 1 + self.mass_ratio * z)
        return (sympy.Integer(1), slope, sympy.Integer(0), -self.mass_ratio * z**4)[order]

    def norm(self, mode: int) -> sympy.Expr:
        """Return the integral of phi^2 over the length, over l, in closed form.

        4 z^4 int phi^2 = [3 phi phi''' + xi z^4 phi^2 - 2 xi phi' phi''' - phi' phi'' + xi phi''^2], since phi'''' = z^4 phi.
        """
        z, mu = self.roots[mode], self.mass_ratio
        tip = (1 - 3 * mu + 2 * mu * self.at_tip(mode, 1)) / 4
        return tip + self.at_root(mode, 1) * self.at_root(mode, 2) / (4 * z**4)
