"""A uniform beam on a torsional spring: its frequencies, mode shapes and modal integrals as a Model.

The roots of the frequency equation are algebraic unknowns that depend on parameters alone; everything else follows from
them in closed form or by Gauss-Legendre quadrature. Derivatives by stiffness, bending stiffness, length and mass
come by the implicit-function theorem (`mechsmith.codegen.unknowns.eliminate`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import sympy

from mechsmith.symbolic.flexible import frequency
from mechsmith.symbolic.flexible.frequency import ROOTS, Root
from mechsmith.symbolic.flexible.shapes import Shapes
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity

Hub = Literal["held", "turning"]

SOURCE = (
    "Flexible joint and flexible link by assumed modes with an elastic constraint (journal paper, in Chinese), "
    "equations (32), (34), (35), (55)"
)

# Round steel, E = 207 GPa, rho = 7801 kg/m^3, 2 mm thick and 1 m long: EI/l is the 0.1626 N m/rad of the source.
BENDING_STIFFNESS = 0.16257741982327184
MASS_PER_LENGTH = 0.02450756429065398
AXIAL_STIFFNESS = 650309.6792930872


@dataclass(frozen=True)
class Beam:
    """A uniform beam with its first modes: quantities and equations that models of it share.

    Parameters
    ----------
    modes : int
        How many.
    root : "spring", "clamped" or "pinned"
        A torsional spring, and its limits for infinite and for no stiffness (of a pinned beam the elastic modes).
    tip_mass : bool
        Whether a point mass sits at the tip.

    Raises
    ------
    ModelError
        If there are no modes or the root is none of the three.
    """

    modes: int
    root: Root = "spring"
    tip_mass: bool = False

    def __post_init__(self) -> None:
        if self.modes < 1:
            raise ModelError(f"beam: modes is {self.modes}. Give 1 or more.")
        if self.root not in ROOTS:
            raise ModelError(f"beam: root is {self.root!r}, allowed are {', '.join(ROOTS)}.")

    # -- parameters -----------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> tuple[Quantity, ...]:
        """Stiffness of the joint, bending stiffness, length, mass per length, tip mass; those that there are."""
        spring = (
            Quantity(
                "joint_stiffness",
                "N*m/rad",
                description="stiffness of the torsional spring at the root, k",
                nominal=1.0,
                lower=1e-9,
                upper=1e12,
            ),
        )
        beam = (
            Quantity(
                "bending_stiffness",
                "N*m^2",
                description="EI",
                nominal=BENDING_STIFFNESS,
                lower=1e-9,
                upper=1e12,
            ),
            Quantity("length", "m", description="l", nominal=1.0, lower=1e-6, upper=1e4),
            Quantity(
                "mass_per_length",
                "kg/m",
                description="rho A",
                nominal=MASS_PER_LENGTH,
                lower=1e-9,
                upper=1e6,
            ),
        )
        load = (
            Quantity(
                "tip_mass", "kg", description="point mass at the tip", nominal=0.01, lower=0.0, upper=1e6
            ),
        )
        return (spring if self.root == "spring" else ()) + beam + (load if self.tip_mass else ())

    def __getitem__(self, name: str) -> sympy.Symbol:
        """Return the symbol of a parameter."""
        return {quantity.name: quantity.elements[0] for quantity in self.parameters}[name]

    @property
    def mass_ratio(self) -> sympy.Expr:
        """Tip mass over the mass of the beam, mu."""
        if not self.tip_mass:
            return sympy.Integer(0)
        return self["tip_mass"] / (self["mass_per_length"] * self["length"])

    @property
    def stiffness_ratio(self) -> sympy.Expr:
        """k l/EI, kappa."""
        return self["joint_stiffness"] * self["length"] / self["bending_stiffness"]

    # -- roots ----------------------------------------------------------------------------------------

    def unknowns(self, count: int) -> tuple[Quantity, ...]:
        """Return the first roots z, each between bounds that hold no other root."""
        found = []
        for mode in range(1, count + 1):
            low, high = frequency.bracket(mode, self.root, tip_mass=self.tip_mass)
            start = min(max(frequency.middle(mode, self.root), low), high)
            text = f"z = beta l of mode {mode}"
            found.append(Quantity(f"root_{mode}", "", description=text, nominal=start, lower=low, upper=high))
        return tuple(found)

    def equation(self, z: sympy.Expr) -> sympy.Expr:
        """Return what vanishes at the roots while the hub is held."""
        if self.root == "spring":
            return frequency.held(z, self.stiffness_ratio, self.mass_ratio)
        return (frequency.clamped if self.root == "clamped" else frequency.pinned)(z, self.mass_ratio)

    def turning_equation(self, z: sympy.Expr, hub_inertia: sympy.Symbol) -> sympy.Expr:
        """Return what vanishes at the elastic roots while the hub turns against its inertia."""
        gamma = hub_inertia / (self["mass_per_length"] * self["length"] ** 3)
        if self.root == "clamped":
            # the spring's equation over kappa, as kappa grows beyond all bounds
            whole = gamma * z**3 * frequency.clamped(z, self.mass_ratio) + frequency.pinned(
                z, self.mass_ratio
            )
            return whole / (1 + gamma * z**4)
        return frequency.turning(z, self.stiffness_ratio, self.mass_ratio, gamma)

    def frequency(self, z: sympy.Expr) -> sympy.Expr:
        """Return the angular frequency of a root (source, equation (34))."""
        return (z / self["length"]) ** 2 * sympy.sqrt(self["bending_stiffness"] / self["mass_per_length"])

    @cached_property
    def roots(self) -> tuple[sympy.Symbol, ...]:
        """The symbols of the roots."""
        return tuple(quantity.elements[0] for quantity in self.unknowns(self.modes))

    @cached_property
    def shapes(self) -> Shapes:
        """The mode shapes."""
        return Shapes(self.roots, self.mass_ratio)

    @cached_property
    def constraints(self) -> Mapping[str, sympy.Expr]:
        """The frequency equation for each root."""
        return {z.name: self.equation(z) for z in self.roots}


def make_beam_frequencies(
    *, modes: int = 4, root: Root = "spring", hub: Hub = "held", tip_mass: bool = False
) -> Model:
    """Return the natural frequencies and damping ratios of a beam on a spring.

    Parameters
    ----------
    modes : int
        How many, from the lowest elastic one.
    root : "spring", "clamped" or "pinned"
        A torsional spring at the root, or its limits.
    hub : "held" or "turning"
        Whether the hub behind the spring is held, or turns freely against its inertia.
    tip_mass : bool
        Whether a point mass sits at the tip.

    Raises
    ------
    ModelError
        If an option is none of those, or a pinned beam is to turn a hub, to which it isn't coupled.
    """
    beam = Beam(modes, root, tip_mass)
    if hub not in ("held", "turning"):
        raise ModelError(f"beam: hub is {hub!r}, allowed are held, turning.")
    if hub == "turning" and root == "pinned":
        raise ModelError("beam: a pinned root carries no torque to the hub. Use hub='held'.")
    inertia = Quantity("hub_inertia", "kg*m^2", description="J", nominal=0.002, lower=1e-12, upper=1e6)
    turning = hub == "turning"
    unknowns = list(beam.unknowns(modes + 1 if turning else modes))
    constraints = {q.name: beam.equation(q.elements[0]) for q in unknowns}
    roots = [q.elements[0] for q in unknowns]
    if turning:
        shares = _shares(modes)
        held, roots = roots, []
        for i, share in enumerate(shares):
            roots.append(held[i] + (share.elements[0] - 1) * (held[i + 1] - held[i]))
            constraints[share.name] = beam.turning_equation(roots[-1], inertia.elements[0])
        unknowns += shares
    outputs = {
        Quantity("frequency", "rad/s", (modes,), description="natural frequencies"): [
            beam.frequency(z) for z in roots
        ]
    }
    return Model(
        name="beam_frequencies",
        unknowns=tuple(unknowns),
        parameters=(*beam.parameters, *((inertia,) if turning else ())),
        constraints=constraints,
        outputs=outputs,
        description=f"Natural frequencies of a uniform beam, root {root}, hub {hub}.",
        references=(SOURCE,),
    )


def _shares(modes: int) -> list[Quantity]:
    """Return the place of each root of the turning beam between two of the held one.

    Holding the hub is one constraint, so there is one root between two. A heavy hub hardly turns, and the root may be as
    near to the first as its rounding; counted from 1 that has a size.
    """
    return [
        Quantity(
            f"share_{i}",
            "",
            description="1 to 2 between two roots",
            nominal=1.5,
            lower=1 - 1e-14,
            upper=2 - 1e-14,
        )
        for i in range(1, modes + 1)
    ]
