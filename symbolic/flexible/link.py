"""A flexible link on a flexible joint: equations of motion by Hamilton's principle.

The link is seen from a frame that turns with the rotor (angle theta). Its points move by

    u_x = w_1 - 1/2 int_0^x w'^2 dx,   u_y = w,   w = sum phi_i q_i,   w_1 = sum psi_j s_j,

where w'(0) is the deflection of the joint: the modes hold the joint's spring as an elastic constraint, and there is no
coordinate for the joint. In the model of Spong, for comparison, there is one, and the modes are those of a clamped beam.

**Orders.** ``first`` takes the kinetic energy to second order in the deformation, the shortening included (centrifugal
stiffening). ``zero`` leaves the shortening out. ``fourth`` keeps the shortening whole and takes the strain energy of
bending and joint to fourth order, w''^2 (1 + w'^2) and the angle asin w'(0), which is consistent. ``inconsistent`` keeps
it whole with quadratic strain energy; it is worse than ``first`` and here for comparison only.

The elastic constraint holds for small deflections of the joint, below 0.2 to 0.3 rad; beyond, use Spong's coordinate.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import sympy

from mechsmith.symbolic.flexible.beam import AXIAL_STIFFNESS, SOURCE, Beam
from mechsmith.symbolic.flexible.integrals import Integrals, Order
from mechsmith.symbolic.flexible.link_identities import link_identities
from mechsmith.symbolic.flexible.shapes import pairs
from mechsmith.symbolic.mechanics import Mechanism, integrated, truncated
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

HALF = sympy.Rational(1, 2)


def make_flexible_link(
    *,
    modes: int = 4,
    axial: int = 0,
    order: Order = "first",
    tip_mass: bool = False,
    name: str = "flexible_link",
) -> Model:
    """Return a hub with a flexible link on a flexible joint, held in the modes as an elastic constraint.

    Parameters
    ----------
    modes : int
        Transverse modes.
    axial : int
        Axial modes; their frequencies are hundreds of times higher and make explicit integrators stiff.
    order : "zero", "first", "fourth" or "inconsistent"
        Of the kinematics; see the module.
    tip_mass : bool
        Whether a point mass sits at the tip.
    name : str
        Of the model.

    Raises
    ------
    ModelError
        If an option is not one of those.
    """
    return _Link(Integrals(Beam(modes, "spring", tip_mass), axial, order), separate=False).model(name)


def make_spong_link(
    *,
    modes: int = 4,
    axial: int = 0,
    order: Order = "first",
    tip_mass: bool = False,
    name: str = "spong_link",
) -> Model:
    """Return a hub with a flexible link where the joint's deflection is a coordinate and the modes are a clamped beam's.

    Spong, *Modeling and control of elastic joint robots*, J. Dyn. Sys. Meas. Control 109 (1987), 310-319. Parameters as in
    `make_flexible_link`. With few modes and ``first`` its mass matrix loses definiteness at small deflections.
    """
    return _Link(Integrals(Beam(modes, "clamped", tip_mass), axial, order), separate=True).model(name)


class _Functions(NamedTuple):
    """x, phi_i, psi_j and H_ij."""

    place: sympy.Symbol
    transverse: tuple[sympy.Symbol, ...]
    axial: tuple[sympy.Symbol, ...]
    shortening: tuple[sympy.Symbol, ...]


@dataclass(frozen=True)
class _Link:
    """The derivation; `separate` tells whether the joint has a coordinate of its own."""

    integrals: Integrals
    separate: bool

    # -- quantities -----------------------------------------------------------------------------------

    @cached_property
    def coordinates(self) -> tuple[Quantity, ...]:
        """Angle of the rotor, of the joint if it has one, stretch and deflection."""
        found = [Quantity("angle", "rad", description="of the rotor", nominal=0.0)]
        if self.separate:
            found.append(Quantity("joint", "rad", description="deflection of the joint", nominal=0.0))
        if self.integrals.axial:
            shape = (self.integrals.axial,)
            found.append(Quantity("stretch", "m", shape, description="axial coordinates", nominal=0.0))
        shape = (self.integrals.modes,)
        text = "share of each mode in the tip's deflection"
        return (*found, Quantity("deflection", "m", shape, description=text, nominal=0.0))

    @cached_property
    def rates(self) -> tuple[Quantity, ...]:
        """Their time derivatives."""
        return tuple(
            Quantity(f"{q.name}_rate", f"{q.unit}/s", q.shape, description=f"d{q.name}/dt", nominal=0.0)
            for q in self.coordinates
        )

    @cached_property
    def parameters(self) -> tuple[Quantity, ...]:
        """Hub, joint, damping, and the beam's."""
        spring = () if not self.separate else Beam(1).parameters[:1]
        axial = (
            Quantity(
                "axial_stiffness", "N", description="EA", nominal=AXIAL_STIFFNESS, lower=1e-6, upper=1e15
            ),
            Quantity("axial_damping", "1/s", description="alpha_1", nominal=0.0, lower=0.0),
        )
        return (
            Quantity("hub_inertia", "kg*m^2", description="J", nominal=0.002, lower=1e-12, upper=1e6),
            *spring,
            *self.integrals.beam.parameters,
            Quantity("joint_damping", "N*m*s/rad", description="c", nominal=0.0, lower=0.0),
            Quantity(
                "structural_damping",
                "1/s",
                description="alpha_2, damping over mass: zeta_i = alpha_2/(2 omega_i)",
                nominal=0.0,
                lower=0.0,
            ),
            *(axial if self.integrals.axial else ()),
        )

    def _symbols(self, name: str) -> tuple[sympy.Symbol, ...]:
        found = {q.name: q.elements for q in (*self.coordinates, *self.rates, *self.parameters)}
        return found.get(name, ())

    # -- derivation -----------------------------------------------------------------------------------

    @cached_property
    def mechanism(self) -> Mechanism:
        """The energies and the virtual work."""
        flat = [symbol for quantity in self.coordinates for symbol in quantity.elements]
        return Mechanism(
            coordinates=tuple(flat),
            velocities=tuple(symbol for quantity in self.rates for symbol in quantity.elements),
            variations=tuple(sympy.Symbol(f"delta_{symbol.name}", real=True) for symbol in flat),
            kinetic=self.kinetic,
            potential=self.potential,
            virtual_work=self.virtual_work,
        )

    @cached_property
    def kinetic(self) -> sympy.Expr:
        """T = J theta'^2/2 + 1/2 int (velocity of the link's points)^2 dm."""
        x, phi, psi, height = self._functions
        q, q_rate = self._symbols("deflection"), self._symbols("deflection_rate")
        s, s_rate = self._symbols("stretch"), self._symbols("stretch_rate")
        turning = self._symbols("angle_rate")[0] + sum(self._symbols("joint_rate"), sympy.Integer(0))
        along = _sum(psi, s) - HALF * _quadratic(height, q, q)
        along_rate = _sum(psi, s_rate) - _quadratic(height, q, q_rate)
        across, across_rate = _sum(phi, q), _sum(phi, q_rate)
        velocity_along = along_rate - turning * across
        velocity_across = across_rate + turning * (x + along)
        density = HALF * (velocity_along**2 + velocity_across**2)
        if not self.integrals.all_orders:
            density = truncated(density, (*q, *q_rate, *s, *s_rate), 2)
        functions = (x, *phi, *psi, *height)
        (inertia,), (rate,) = self._symbols("hub_inertia"), self._symbols("angle_rate")
        return inertia * rate**2 / 2 + integrated(density, functions, self._integral)

    @cached_property
    def _functions(self) -> "_Functions":
        """Functions of place as symbols; none for the shortening in order zero."""
        modes, shortened = self.integrals.modes, self.integrals.order != "zero"
        return _Functions(
            sympy.Symbol("x", real=True),
            sympy.symbols(f"phi_:{modes}", real=True),
            sympy.symbols(f"psi_:{self.integrals.axial}", real=True),
            tuple(sympy.Symbol(f"H_{i}_{j}", real=True) for i, j in self.integrals.pairs)
            if shortened
            else (),
        )

    def _integral(self, product: sympy.Expr) -> sympy.Expr:
        """Return int (product) dm as a symbol; the modes are orthogonal."""
        x, phi, psi, height = self._functions
        factors = [base for base, power in product.as_powers_dict().items() for _ in range(int(power))]
        shapes = sorted(phi.index(f) for f in factors if f in phi)
        waves = sorted(psi.index(f) for f in factors if f in psi)
        heights = sorted(height.index(f) for f in factors if f in height)
        element = self.integrals.element
        table = {
            (2, 0, 0, 0): "link_inertia",
            (1, 1, 0, 0): "hub_coupling",
            (1, 0, 1, 0): "axial_coupling",
            (1, 0, 0, 1): "stiffening",
            (0, 0, 1, 1): "axial_shortening",
            (0, 0, 0, 2): "shortening_inertia",
        }
        kind = (factors.count(x), len(shapes), len(waves), len(heights))
        if kind == (0, 2, 0, 0):
            return element("modal_mass", shapes[0]) if shapes[0] == shapes[1] else sympy.Integer(0)
        if kind == (0, 0, 2, 0):
            return element("axial_mass", pairs(self.integrals.axial).index((waves[0], waves[1])))
        if kind == (0, 1, 1, 0):
            return element("axial_transverse", waves[0], shapes[0])
        if kind == (0, 1, 0, 1):
            return element("shortening_coupling", heights[0], shapes[0])
        return element(table[kind], *shapes, *waves, *heights)

    @cached_property
    def potential(self) -> sympy.Expr:
        """V: bending and joint together are diagonal in the modes; the fourth order adds its terms."""
        integrals, q = self.integrals, self._symbols("deflection")
        energy = sum(
            (integrals.element("modal_stiffness", i) * q[i] ** 2 / 2 for i in range(integrals.modes)),
            sympy.Integer(0),
        )
        for j, s in enumerate(self._symbols("stretch")):
            energy += integrals.element("axial_modal_stiffness", j) * s**2 / 2
        stiffness = self._symbols("joint_stiffness")[0]
        if self.separate:
            energy += stiffness * self._symbols("joint")[0] ** 2 / 2
        if integrals.order == "fourth":
            if not self.separate:
                energy += stiffness * self._joint_angle(q) ** 4 / 6
            products = [(1 if i == j else 2) * q[i] * q[j] for i, j in integrals.pairs]
            energy += sum(
                (
                    integrals.element("quartic_stiffness", p, r) * products[p] * products[r]
                    for p in range(len(products))
                    for r in range(len(products))
                ),
                sympy.Integer(0),
            )
        return energy

    def _joint_angle(self, deflection: tuple[sympy.Symbol, ...]) -> sympy.Expr:
        slope = [self.integrals.element("root_slope", i) for i in range(self.integrals.modes)]
        return _sum(slope, deflection)

    @cached_property
    def virtual_work(self) -> sympy.Expr:
        """Motor torque, damping of the joint, and structural damping in proportion to the modal masses."""

        def variations(name: str) -> tuple[sympy.Symbol, ...]:
            return tuple(sympy.Symbol(f"delta_{s.name}", real=True) for s in self._symbols(name))

        q_rate, delta_q = self._symbols("deflection_rate"), variations("deflection")
        (damping,), (alpha,) = self._symbols("joint_damping"), self._symbols("structural_damping")
        work = sympy.Symbol("torque", real=True) * variations("angle")[0]
        if self.separate:
            work -= damping * self._symbols("joint_rate")[0] * variations("joint")[0]
        else:
            work -= damping * self._joint_angle(q_rate) * self._joint_angle(delta_q)
        for i, (rate, delta) in enumerate(zip(q_rate, delta_q, strict=True)):
            work -= alpha * self.integrals.element("modal_mass", i) * rate * delta
        s_rate, delta_s = self._symbols("stretch_rate"), variations("stretch")
        for place, (i, j) in enumerate(pairs(self.integrals.axial)):
            drag = self._symbols("axial_damping")[0] * self.integrals.element("axial_mass", place)
            work -= drag * s_rate[j] * delta_s[i]
            work -= drag * s_rate[i] * delta_s[j] if i != j else 0
        return work

    # -- model ----------------------------------------------------------------------------------------

    @cached_property
    def outputs(self) -> dict[Quantity, sympy.Expr]:
        """What is measured, and what is conserved."""
        q, mechanism = self._symbols("deflection"), self.mechanism
        across: sympy.Expr = sympy.Add(*q)
        if self.separate:
            (joint,) = self._symbols("joint")
            along = self.integrals.beam["length"] + self._tip_along
            across, joint_angle = sympy.sin(joint) * along + sympy.cos(joint) * across, joint
        else:
            joint_angle = self._joint_angle(q)
        text = "across, in the frame of the rotor"
        found: dict[Quantity, sympy.Expr] = {
            Quantity("hub_angle", "rad", description="of the rotor"): self._symbols("angle")[0],
            Quantity("tip_deflection", "m", description=text): across,
            Quantity("joint_angle", "rad", description="deflection of the joint"): joint_angle,
        }
        found[Quantity("tip_shortening", "m", description="of the tip along the link")] = -self._tip_along
        found[Quantity("energy", "J", description="kinetic and strain energy")] = mechanism.energy
        momentum = Quantity("angular_momentum", "kg*m^2/s", description="about the hub's axis")
        found[momentum] = mechanism.momenta[0]
        power = Quantity("power", "W", description="of motor and damping: the energy's rate")
        found[power] = mechanism.power
        return found

    @property
    def _tip_along(self) -> sympy.Expr:
        q = self._symbols("deflection")
        height = (
            [self.integrals.element("shortening", p) for p in range(len(self.integrals.pairs))]
            if self.integrals.order != "zero"
            else []
        )
        stretch = [(-1) ** j * s for j, s in enumerate(self._symbols("stretch"))]
        return sympy.Add(*stretch) - HALF * _quadratic(height, q, q)

    def model(self, name: str) -> Model:
        """Return the model."""
        mechanism, beam = self.mechanism, self.integrals.beam
        size = len(mechanism.coordinates)
        derivatives: dict[str, list[sympy.Expr]] = {}
        forces = list(mechanism.forces)
        for coordinate, rate in zip(self.coordinates, self.rates, strict=True):
            derivatives[coordinate.name] = list(rate.elements)
            derivatives[rate.name] = [forces.pop(0) for _ in rate.elements]
        held = "Spong's coordinate" if self.separate else "an elastic constraint"
        return Model(
            name=name,
            states=(*self.coordinates, *self.rates),
            unknowns=beam.unknowns(beam.modes),
            inputs=(Quantity("torque", "N*m", description="of the motor on the hub"),),
            parameters=self.parameters,
            definitions=self.integrals.definitions,
            derivatives=derivatives,
            mass=sympy.diag(sympy.eye(size), mechanism.mass),
            constraints=beam.constraints,
            outputs=self.outputs,
            identities=link_identities(),
            description=f"Hub, flexible joint as {held} and flexible link; {self.integrals.order} order.",
            references=(SOURCE,),
        )


def _sum(
    coefficients: "tuple[sympy.Expr, ...] | list[sympy.Expr]", values: tuple[sympy.Symbol, ...]
) -> sympy.Expr:
    return sympy.Add(*(c * v for c, v in zip(coefficients, values, strict=True)))


def _quadratic(
    matrix: "tuple[sympy.Expr, ...] | list[sympy.Expr]",
    left: tuple[sympy.Symbol, ...],
    right: tuple[sympy.Symbol, ...],
) -> sympy.Expr:
    """Return left' matrix right for a symmetric matrix given by its upper triangle; an empty one is zero."""
    if not matrix:
        return sympy.Integer(0)
    terms = []
    for element, (i, j) in zip(matrix, pairs(len(left)), strict=True):
        terms.append(element * left[i] * right[j])
        if i != j:
            terms.append(element * left[j] * right[i])
    return sympy.Add(*terms)
