"""Mass, centre of mass and inertia of a link, about any point, and whether a body can have them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mpmath
import sympy

from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.serial.frames import skew

PARAMETERS = ("mass", "first_x", "first_y", "first_z", "xx", "xy", "xz", "yy", "yz", "zz")
UNITS = ("kg", "kg*m", "kg*m", "kg*m", *("kg*m^2",) * 6)
# Densities may vanish on one side of a thin plate, and tables are rounded: this share of the largest moment is nothing.
_CONSISTENT = 1e-6
Tensor = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class Body:
    """A rigid link.

    Parameters
    ----------
    mass : float
        kg.
    centre : tuple of float
        Centre of mass in the link's frame, m.
    inertia : tuple of float
        Moments and products xx, yy, zz, xy, yz, xz about the centre of mass, along the link's axes, kg m^2; the off-diagonal
        elements of the matrix as they stand in it (minus the integral of x y).
    partial : bool
        Whether the table gives only what some motion shows (of the Puma 560's first link one moment), so that it need not
        belong to a distribution of mass.

    Raises
    ------
    ModelError
        If the mass is negative, or no distribution of mass has this inertia: a principal moment is negative or larger
        than the sum of the other two.
    """

    mass: float = 0.0
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: Tensor = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    partial: bool = False

    def __post_init__(self) -> None:
        if not (self.mass >= 0.0 and math.isfinite(self.mass)):
            raise ModelError(f"body: its mass is {self.mass} kg. Give a finite mass that is not negative.")
        if self.partial:
            return
        moments = [
            float(value) for value in mpmath.eigsy(mpmath.matrix(self.tensor.tolist()), eigvals_only=True)
        ]
        slack = _CONSISTENT * max(map(abs, moments))
        largest = max(moments)
        if min(moments) < -slack or largest > sum(moments) - largest + slack:
            raise ModelError(
                f"body of {self.mass} kg: principal moments {', '.join(f'{m:.6g}' for m in moments)} kg m^2 belong to no distribution "
                "of mass: each must be at most the sum of the other two. Is the inertia about the centre of mass? If the table "
                "gives only a part, say partial=True."
            )

    @property
    def tensor(self) -> sympy.Matrix:
        """The inertia about the centre of mass as a matrix (3, 3)."""
        xx, yy, zz, xy, yz, xz = self.inertia
        return sympy.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def values(self) -> Mapping[str, float]:
        """Mass, first moments and inertia about the origin of the link's frame, by the names in `PARAMETERS`."""
        c = skew(sympy.Matrix(self.centre))
        about = self.tensor - self.mass * c * c
        elements = [about[i, j] for i in range(3) for j in range(i, 3)]
        numbers = (self.mass, *(self.mass * x for x in self.centre), *map(float, elements))
        return dict(zip(PARAMETERS, numbers, strict=True))


def body_about_frame(mass: float, centre: Sequence[float], inertia: Tensor) -> Body:
    """Return a body whose inertia is given about the origin of the link's frame, not about its centre of mass."""
    x, y, z = centre
    c = skew(sympy.Matrix([x, y, z]))
    xx, yy, zz, xy, yz, xz = inertia
    about = sympy.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) + mass * c * c
    return Body(mass, (x, y, z), tensor_of(about))


def tensor_of(matrix: sympy.Matrix) -> Tensor:
    """Return xx, yy, zz, xy, yz, xz of a matrix (3, 3)."""
    places = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))
    xx, yy, zz, xy, yz, xz = (float(matrix[i, j]) for i, j in places)
    return xx, yy, zz, xy, yz, xz
