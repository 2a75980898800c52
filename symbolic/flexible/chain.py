"""Two flexible links in a plane, each on a flexible joint: the second motor sits at the tip of the first link.

The same derivation as for one link, with the tip of the first one as the moving base of the second. Kinetic energy to
second order in the deformations, without shortening: for slow motions, in which its stiffening does not matter.

The dynamics take the modal integrals as inputs; `compose` connects them to two beams, whose roots are unknowns. What
depends on parameters alone is computed once (`mechsmith.codegen.held`).
"""

from dataclasses import dataclass
from functools import cached_property

import sympy

from mechsmith.symbolic.compose import compose
from mechsmith.symbolic.flexible.beam import SOURCE
from mechsmith.symbolic.flexible.modes import make_beam_modes
from mechsmith.symbolic.mechanics import Mechanism, integrated, truncated
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

HALF = sympy.Rational(1, 2)
# (name, unit, whether one for each mode) of what the dynamics need of a beam
NEEDED = (
    ("mass", "kg", False),
    ("first_moment", "kg*m", False),
    ("link_inertia", "kg*m^2", False),
    ("modal_mass", "kg", True),
    ("modal_stiffness", "N/m", True),
    ("hub_coupling", "kg*m", True),
    ("mean_deflection", "kg", True),
    ("root_slope", "1/m", True),
    ("tip_slope", "1/m", True),
)
NOT_NEEDED = {
    ("first", "mean_deflection"),
    ("first", "first_moment"),
    ("first", "mass"),
    ("second", "tip_slope"),
}


def make_flexible_chain(*, modes: int = 2) -> Model:
    """Return two flexible links in a chain, with torques at both joints.

    Parameters
    ----------
    modes : int
        Of each link.
    """
    dynamics = _Chain(modes).model()
    connect: dict[str, str] = {}
    for link in ("first", "second"):
        connect |= {
            f"chain.{link}_{name}": f"{link}.beam_{name}"
            for name, _, _ in NEEDED
            if (link, name) not in NOT_NEEDED
        }
    return compose(
        "flexible_chain",
        parts={
            "first": make_beam_modes(modes=modes, order="zero", points=2, tip_mass=True),
            "second": make_beam_modes(modes=modes, order="zero", points=2),
            "chain": dynamics,
        },
        connect=connect,
        share={"first_length": ["first.length", "chain.first_length"]},
        description="Two flexible links on flexible joints in a plane.",
    )


@dataclass(frozen=True)
class _Chain:
    modes: int

    @cached_property
    def given(self) -> dict[str, Quantity]:
        """The modal integrals of both beams."""
        return {
            f"{link}_{name}": Quantity(f"{link}_{name}", unit, (self.modes,) if each else ())
            for link in ("first", "second")
            for name, unit, each in NEEDED
            if (link, name) not in NOT_NEEDED
        }

    @cached_property
    def coordinates(self) -> tuple[Quantity, ...]:
        """Angles of both rotors, each against the link before it, and the deflections."""
        shape = (self.modes,)
        return (
            Quantity("first_angle", "rad", nominal=0.0),
            Quantity("second_angle", "rad", nominal=0.0),
            Quantity("first_deflection", "m", shape, nominal=0.0),
            Quantity("second_deflection", "m", shape, nominal=0.0),
        )

    @cached_property
    def rates(self) -> tuple[Quantity, ...]:
        """Their time derivatives."""
        return tuple(
            Quantity(f"{q.name}_rate", f"{q.unit}/s", q.shape, nominal=0.0) for q in self.coordinates
        )

    @cached_property
    def parameters(self) -> tuple[Quantity, ...]:
        """Rotors, length of the first link, damping."""
        return (
            *(
                Quantity(
                    f"{link}_rotor",
                    "kg*m^2",
                    description=f"inertia of the {link} rotor",
                    nominal=0.002,
                    lower=1e-12,
                    upper=1e6,
                )
                for link in ("first", "second")
            ),
            Quantity(
                "first_length", "m", description="of the first link", nominal=1.0, lower=1e-6, upper=1e4
            ),
            Quantity("structural_damping", "1/s", description="over modal mass", nominal=0.0, lower=0.0),
        )

    def _of(self, name: str) -> tuple[sympy.Symbol, ...]:
        table = {q.name: q.elements for q in (*self.coordinates, *self.rates, *self.parameters)}
        return table[name] if name in table else self.given[name].elements

    @cached_property
    def kinetic(self) -> sympy.Expr:
        """Kinetic energy to second order in the deformations."""
        (turning,), (second_rate,) = self._of("first_angle_rate"), self._of("second_angle_rate")
        (second,), (length,) = self._of("second_angle"), self._of("first_length")
        q1, v1 = self._of("first_deflection"), self._of("first_deflection_rate")
        q2, v2 = self._of("second_deflection"), self._of("second_deflection_rate")
        slope = _dot(self._of("first_tip_slope"), q1)
        slope_rate = _dot(self._of("first_tip_slope"), v1)
        # tip of the first link, seen in its rotor's frame, and how the second rotor turns
        tip = (-turning * sympy.Add(*q1), sympy.Add(*v1) + turning * length)
        turning_2 = turning + slope_rate + second_rate
        angle = second + slope
        base = (
            sympy.cos(angle) * tip[0] + sympy.sin(angle) * tip[1],
            -sympy.sin(angle) * tip[0] + sympy.cos(angle) * tip[1],
        )
        small = (*q1, *v1, *q2, *v2)
        first = self._body("first", (sympy.Integer(0), sympy.Integer(0)), turning, q1, v1, small)
        other = self._body("second", base, turning_2, q2, v2, small)
        (rotor_1,), (rotor_2,) = self._of("first_rotor"), self._of("second_rotor")
        return first + other + HALF * rotor_1 * turning**2 + HALF * rotor_2 * turning_2**2

    def _body(
        self,
        link: str,
        base: tuple[sympy.Expr, sympy.Expr],
        turning: sympy.Expr,
        q: tuple[sympy.Symbol, ...],
        rate: tuple[sympy.Symbol, ...],
        small: tuple[sympy.Symbol, ...],
    ) -> sympy.Expr:
        """Return the kinetic energy of a link whose base moves."""
        x, phi = sympy.Symbol("x", real=True), sympy.symbols(f"phi_:{self.modes}", real=True)
        along = base[0] - turning * _dot(phi, q)
        across = base[1] + turning * x + _dot(phi, rate)
        density = truncated(HALF * (along**2 + across**2), small, 2)

        def integral(product: sympy.Expr) -> sympy.Expr:
            powers = product.as_powers_dict()
            shapes = [i for i, f in enumerate(phi) for _ in range(int(powers.get(f, 0)))]
            kind = (int(powers.get(x, 0)), len(shapes))
            if kind == (0, 2) and shapes[0] != shapes[1]:
                return sympy.Integer(0)
            name = {
                (0, 0): "mass",
                (1, 0): "first_moment",
                (2, 0): "link_inertia",
                (0, 1): "mean_deflection",
                (1, 1): "hub_coupling",
                (0, 2): "modal_mass",
            }[kind]
            return self._of(f"{link}_{name}")[shapes[0] if shapes else 0]

        return integrated(density, (x, *phi), integral)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The energies, and the virtual work of motors and structural damping."""
        flat = tuple(symbol for quantity in self.coordinates for symbol in quantity.elements)
        rates = tuple(symbol for quantity in self.rates for symbol in quantity.elements)
        delta = {symbol: sympy.Symbol(f"delta_{symbol.name}", real=True) for symbol in flat}
        torques = sympy.symbols("first_torque second_torque", real=True)
        work: sympy.Expr = torques[0] * delta[flat[0]] + torques[1] * delta[flat[1]]
        potential: sympy.Expr = sympy.Integer(0)
        (damping,) = self._of("structural_damping")
        for link in ("first", "second"):
            for i, (q, v) in enumerate(
                zip(self._of(f"{link}_deflection"), self._of(f"{link}_deflection_rate"), strict=True)
            ):
                potential += HALF * self._of(f"{link}_modal_stiffness")[i] * q**2
                work -= damping * self._of(f"{link}_modal_mass")[i] * v * delta[q]
        return Mechanism(flat, rates, tuple(delta.values()), self.kinetic, potential, work)

    def model(self) -> Model:
        """Return the dynamics, with the modal integrals as inputs."""
        mechanism, size = self.mechanism, len(self.mechanism.coordinates)
        derivatives: dict[str, list[sympy.Expr]] = {}
        forces = list(mechanism.forces)
        for coordinate, rate in zip(self.coordinates, self.rates, strict=True):
            derivatives[coordinate.name] = list(rate.elements)
            derivatives[rate.name] = [forces.pop(0) for _ in rate.elements]
        torques = (Quantity("first_torque", "N*m"), Quantity("second_torque", "N*m"))
        outputs = {
            Quantity("energy", "J"): mechanism.energy,
            Quantity("power", "W"): mechanism.power,
            Quantity("angular_momentum", "kg*m^2/s"): mechanism.momenta[0],
        }
        for link in ("first", "second"):
            q = self._of(f"{link}_deflection")
            outputs[Quantity(f"{link}_tip_deflection", "m")] = sympy.Add(*q)
            outputs[Quantity(f"{link}_joint_angle", "rad")] = _dot(self._of(f"{link}_root_slope"), q)
        return Model(
            name="chain",
            states=(*self.coordinates, *self.rates),
            inputs=(*torques, *self.given.values()),
            parameters=self.parameters,
            derivatives=derivatives,
            mass=sympy.diag(sympy.eye(size), mechanism.mass),
            outputs=outputs,
            description="Dynamics of two flexible links in a plane, of given modal integrals.",
            references=(SOURCE,),
        )


def _dot(coefficients: tuple[sympy.Expr, ...], values: tuple[sympy.Symbol, ...]) -> sympy.Expr:
    return sympy.Add(*(c * v for c, v in zip(coefficients, values, strict=True)))
