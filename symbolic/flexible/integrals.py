"""Modal integrals of a beam: what the equations of motion need of its mode shapes, as definitions of a Model.

Integrals of one shape are in closed form; integrals of products of slopes, and of shapes with axial ones, are sums over
Gauss-Legendre nodes, enough of them that the rule is exact to rounding: a product of m shapes has m z_N/(2 pi) waves,
z_N is about N pi, and the rule needs a node for each half wave and some ten more.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import sympy

from mechsmith.symbolic.flexible.beam import Beam
from mechsmith.symbolic.flexible.shapes import gauss_legendre, pairs
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity

Order = Literal["zero", "first", "fourth", "inconsistent"]
ORDERS: tuple[Order, ...] = ("zero", "first", "fourth", "inconsistent")
Values = dict[Quantity, list[sympy.Expr]]


@dataclass(frozen=True)
class Integrals:
    """The modal integrals of a beam.

    Parameters
    ----------
    beam : Beam
        The beam and its transverse modes.
    axial : int
        Axial modes sin((2 j - 1) pi x/(2 l)).
    order : "zero", "first", "fourth" or "inconsistent"
        The order of the kinematics; see `mechsmith.symbolic.flexible.link`.
    """

    beam: Beam
    axial: int = 0
    order: Order = "first"

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ModelError(f"flexible link: order is {self.order!r}, allowed are {', '.join(ORDERS)}.")
        if self.axial < 0:
            raise ModelError(f"flexible link: axial is {self.axial}. Give 0 or more axial modes.")

    @property
    def modes(self) -> int:
        """Transverse modes."""
        return self.beam.modes

    @property
    def all_orders(self) -> bool:
        """Whether the shortening is kept to all orders in the kinetic energy."""
        return self.order in ("fourth", "inconsistent")

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of the elements of symmetric matrices of the modes."""
        return pairs(self.modes)

    @cached_property
    def _nodes(self) -> tuple[tuple[float, float], ...]:
        return gauss_legendre((8 if self.all_orders else 4) * self.modes + 2 * self.axial + 12)

    def _sum(self, *factors: list[sympy.Expr] | list[float]) -> sympy.Expr:
        """Return the integral over xi of a product of functions given at the nodes."""
        terms = []
        for q, (_, weight) in enumerate(self._nodes):
            number, product = weight, []
            for factor in factors:
                if isinstance(factor[q], float):
                    number *= factor[q]
                else:
                    product.append(factor[q])
            terms.append(sympy.Mul(sympy.Float(number), *product))
        return sympy.Add(*terms)

    # -- quantities -----------------------------------------------------------------------------------

    @cached_property
    def quantities(self) -> dict[str, Quantity]:
        """Every modal integral by name."""
        n, a, p = self.modes, self.axial, len(self.pairs)
        declared = [
            ("link_inertia", "kg*m^2", (), "of the straight link about its root"),
            ("natural_frequency", "rad/s", (n,), "with the hub held"),
            ("modal_mass", "kg", (n,), "int phi_i^2 dm"),
            ("modal_stiffness", "N/m", (n,), "bending and joint"),
            ("hub_coupling", "kg*m", (n,), "int x phi_i dm, S"),
        ]
        if self.beam.root != "clamped":
            declared.append(("root_slope", "1/m", (n,), "phi_i'(0): deflection of the joint"))
        if self.order != "zero":
            declared += [
                ("shortening", "1/m", (p,), "int phi_i' phi_j' dx over the whole length, H(l)"),
                ("stiffening", "kg", (p,), "int x H_ij dm"),
            ]
        if self.all_orders:
            declared += [
                ("shortening_coupling", "kg/m", (p, n), "int H_ij phi_k dm"),
                ("shortening_inertia", "kg/m^2", (p, p), "int H_ij H_km dm"),
            ]
        if self.order == "fourth":
            declared.append(
                ("quartic_stiffness", "N/m^3", (p, p), "EI/2 int phi_i'' phi_j'' phi_k' phi_m' dx")
            )
        if a:
            declared += [
                ("axial_mass", "kg", (len(pairs(a)),), "int psi_i psi_j dm"),
                ("axial_modal_stiffness", "N/m", (a,), "int EA psi_i'^2 dx"),
                ("axial_coupling", "kg*m", (a,), "int x psi_i dm"),
                ("axial_transverse", "kg", (a, n), "int psi_i phi_j dm"),
            ]
            if self.all_orders:
                declared.append(("axial_shortening", "kg/m", (a, p), "int psi_i H_jk dm"))
        return {name: Quantity(name, unit, shape, description=text) for name, unit, shape, text in declared}

    def element(self, name: str, *place: int) -> sympy.Symbol:
        """Return an element of a modal integral."""
        quantity = self.quantities[name]
        if not quantity.shape:
            return quantity.elements[0]
        index = place[0] if len(quantity.shape) == 1 else place[0] * quantity.shape[1] + place[1]
        return quantity.elements[index]

    # -- values ---------------------------------------------------------------------------------------

    @cached_property
    def definitions(self) -> Values:
        """Shapes and integrals, in the order in which they use each other."""
        beam, shapes = self.beam, self.beam.shapes
        length, line, tip = beam["length"], beam["mass_per_length"], self._tip_mass
        modes = range(self.modes)
        omega = [beam.frequency(z) for z in beam.roots]
        values: Values = dict(shapes.definitions)
        one_shape = {
            "link_inertia": [line * length**3 / 3 + tip * length**2],
            "natural_frequency": omega,
            "modal_mass": [line * length * shapes.norm(i) + tip for i in modes],
            "modal_stiffness": [
                self.element("modal_mass", i) * self.element("natural_frequency", i) ** 2 for i in modes
            ],
            "hub_coupling": [line * length**2 * shapes.at_root(i, 2) / beam.roots[i] ** 4 for i in modes],
        }
        if self.beam.root != "clamped":
            one_shape["root_slope"] = [shapes.at_root(i, 1) / length for i in modes]
        values |= {self.quantities[name]: value for name, value in one_shape.items()}
        if self.order != "zero":
            values |= self._slopes()
        if self.all_orders:
            values |= self._higher()
        if self.axial:
            values |= self._axial()
        return values

    @property
    def _tip_mass(self) -> sympy.Expr:
        return self.beam["tip_mass"] if self.beam.tip_mass else sympy.Integer(0)

    def _at_nodes(self, name: str, order: int) -> tuple[Quantity, list[list[sympy.Symbol]]]:
        count = len(self._nodes)
        text = ("deflection", "slope by x/l", "curvature by x/l")[order]
        quantity = Quantity(name, "", (self.modes, count), description=f"{text} of each mode at the nodes")
        rows = [list(quantity.elements[i * count : (i + 1) * count]) for i in range(self.modes)]
        return quantity, rows

    def _node_values(self, order: int) -> list[sympy.Expr]:
        return [
            self.beam.shapes.value(i, sympy.Float(xi), order)
            for i in range(self.modes)
            for xi, _ in self._nodes
        ]

    def _slopes(self) -> Values:
        length, line, tip = self.beam["length"], self.beam["mass_per_length"], self._tip_mass
        quantity, slope = self._at_nodes("node_slope", 1)
        # x H(x) integrated by parts: (l^2 - x^2)/2 phi_i' phi_j'
        arm = [0.5 * (1.0 - xi * xi) for xi, _ in self._nodes]
        whole = [self._sum(slope[i], slope[j]) / length for i, j in self.pairs]
        stiffening = [
            line * length * self._sum(arm, slope[i], slope[j])
            + tip * length * self.element("shortening", place)
            for place, (i, j) in enumerate(self.pairs)
        ]
        return {
            quantity: self._node_values(1),
            self.quantities["shortening"]: whole,
            self.quantities["stiffening"]: stiffening,
        }

    def _higher(self) -> Values:
        length, line, tip = self.beam["length"], self.beam["mass_per_length"], self._tip_mass
        deflection, phi = self._at_nodes("node_deflection", 0)
        curvature, bend = self._at_nodes("node_curvature", 2)
        _, slope = self._at_nodes("node_slope", 1)
        count, size = len(self._nodes), len(self.pairs)
        local = Quantity("node_shortening", "", (size, count), description="l H_ij at the nodes")
        heights = [list(local.elements[p * count : (p + 1) * count]) for p in range(size)]
        result: Values = {
            deflection: self._node_values(0),
            curvature: self._node_values(2),
            local: [
                self._shortening_to(i, j, q, phi, slope, bend) for i, j in self.pairs for q in range(count)
            ],
        }
        tip_value = [self.element("shortening", p) for p in range(size)]
        result[self.quantities["shortening_coupling"]] = [
            line * self._sum(heights[p], phi[k]) + tip * tip_value[p]
            for p in range(size)
            for k in range(self.modes)
        ]
        result[self.quantities["shortening_inertia"]] = [
            line / length * self._sum(heights[p], heights[r]) + tip * tip_value[p] * tip_value[r]
            for p in range(size)
            for r in range(size)
        ]
        if self.order == "fourth":
            stiffness = self.beam["bending_stiffness"] / (2 * length**5)
            result[self.quantities["quartic_stiffness"]] = [
                stiffness * self._sum(bend[i], bend[j], slope[k], slope[m])
                for i, j in self.pairs
                for k, m in self.pairs
            ]
        return result

    def _shortening_to(
        self,
        i: int,
        j: int,
        node: int,
        phi: list[list[sympy.Symbol]],
        slope: list[list[sympy.Symbol]],
        bend: list[list[sympy.Symbol]],
    ) -> sympy.Expr:
        """Return the integral of phi_i' phi_j' by xi from the root to a node, in closed form.

        For i != j from (z_i^4 - z_j^4) phi_i' phi_j' = (phi_i'''' phi_j' - phi_i''' phi_j'' + phi_i'' phi_j''' - phi_i' phi_j'''')';
        for i = j from the integral of a squared function that is z^-4 times its own fourth derivative.
        """
        shapes = self.beam.shapes
        xi = sympy.Float(self._nodes[node][0])
        third = {k: shapes.value(k, xi, 3) for k in {i, j}}
        a, b = (shapes.roots[k] ** 4 for k in (i, j))
        f, g = slope[i][node], slope[j][node]
        if i == j:
            here = 3 * f * a * phi[i][node] + xi * a * f**2 - 2 * xi * bend[i][node] * a * phi[i][node]
            here += -bend[i][node] * third[i] + xi * third[i] ** 2
            return (here + shapes.at_root(i, 2) * shapes.at_root(i, 3)) / (4 * a)
        here = (
            a * phi[i][node] * g - third[i] * bend[j][node] + bend[i][node] * third[j] - b * f * phi[j][node]
        )
        root = -shapes.at_root(i, 3) * shapes.at_root(j, 2) + shapes.at_root(i, 2) * shapes.at_root(j, 3)
        return (here - root) / (a - b)

    def _axial(self) -> Values:
        length, line, tip = self.beam["length"], self.beam["mass_per_length"], self._tip_mass
        number = [(2 * j + 1) * sympy.pi / 2 for j in range(self.axial)]
        end = [sympy.Integer((-1) ** j) for j in range(self.axial)]
        waves = [[float(sympy.sin(a * xi)) for xi, _ in self._nodes] for a in number]
        result: Values = {}
        if self.all_orders:
            _, phi = self._at_nodes("node_deflection", 0)
        else:
            deflection, phi = self._at_nodes("node_deflection", 0)
            result[deflection] = self._node_values(0)
        result[self.quantities["axial_mass"]] = [
            (line * length / 2 if i == j else 0) + tip * end[i] * end[j] for i, j in pairs(self.axial)
        ]
        result[self.quantities["axial_modal_stiffness"]] = [
            sympy.Symbol("axial_stiffness", real=True) * a**2 / (2 * length) for a in number
        ]
        result[self.quantities["axial_coupling"]] = [
            line * length**2 * e / a**2 + tip * length * e for a, e in zip(number, end, strict=True)
        ]
        result[self.quantities["axial_transverse"]] = [
            line * length * self._sum(waves[j], phi[i]) + tip * end[j]
            for j in range(self.axial)
            for i in range(self.modes)
        ]
        if self.all_orders:
            size, count = len(self.pairs), len(self._nodes)
            local = Quantity("node_shortening", "", (size, count))
            heights = [list(local.elements[p * count : (p + 1) * count]) for p in range(size)]
            result[self.quantities["axial_shortening"]] = [
                line * self._sum(waves[j], heights[p]) + tip * end[j] * self.element("shortening", p)
                for j in range(self.axial)
                for p in range(size)
            ]
        return result
