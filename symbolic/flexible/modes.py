"""The modes of a beam as a Model: mode shapes at points along it, and the modal integrals."""

import sympy

from mechsmith.symbolic.flexible.beam import AXIAL_STIFFNESS, SOURCE, Beam
from mechsmith.symbolic.flexible.frequency import Root
from mechsmith.symbolic.flexible.integrals import Integrals, Order
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity


def make_beam_modes(
    *,
    modes: int = 4,
    root: Root = "spring",
    tip_mass: bool = False,
    axial: int = 0,
    order: Order = "first",
    points: int = 11,
) -> Model:
    """Return mode shapes, with unit deflection at the tip, and the modal integrals of a beam.

    Outputs are ``mode_shape`` (modes, points) and, with ``beam_`` before their names, the integrals: ``beam_natural_frequency``,
    ``beam_modal_mass``, ``beam_modal_stiffness``, ``beam_hub_coupling``, ``beam_root_slope``, ``beam_link_inertia``, and
    those that `axial` and `order` ask for. Symmetric matrices are their upper triangle, row by row.

    Parameters
    ----------
    modes : int
        How many.
    root : "spring", "clamped" or "pinned"
        A torsional spring at the root, or its limits.
    tip_mass : bool
        Whether a point mass sits at the tip.
    axial : int
        Axial modes.
    order : "zero", "first", "fourth" or "inconsistent"
        Which integrals: those that the equations of motion of that order need.
    points : int
        Equally spaced from root to tip.

    Raises
    ------
    ModelError
        If an option is not one of those.
    """
    if points < 2:
        raise ModelError(f"beam modes: points is {points}. Give 2 or more.")
    integrals = Integrals(Beam(modes, root, tip_mass), axial, order)
    beam = integrals.beam
    places = [sympy.Rational(i, points - 1) for i in range(points)]
    shape = Quantity(
        "mode_shape", "", (modes, points), description="deflection of each mode from root to tip"
    )
    values = [beam.shapes.value(i, xi) for i in range(modes) for xi in places]
    stretching = Quantity(
        "axial_stiffness", "N", description="EA", nominal=AXIAL_STIFFNESS, lower=1e-6, upper=1e15
    )
    outputs = {q.renamed(f"beam_{name}"): list(q.elements) for name, q in integrals.quantities.items()}
    outputs |= _moments(integrals)
    return Model(
        name="beam_modes",
        unknowns=beam.unknowns(modes),
        parameters=(*beam.parameters, *((stretching,) if axial else ())),
        definitions=integrals.definitions,
        constraints=beam.constraints,
        outputs={shape: values, **outputs},
        description=f"Mode shapes and modal integrals of a uniform beam, root {root}.",
        references=(SOURCE,),
    )


def _moments(integrals: Integrals) -> dict[Quantity, list[sympy.Expr]]:
    """Return mass, first moments and slope at the tip, which a chain of links needs besides."""
    beam, shapes = integrals.beam, integrals.beam.shapes
    length, line = beam["length"], beam["mass_per_length"]
    load = beam["tip_mass"] if beam.tip_mass else sympy.Integer(0)
    modes = range(integrals.modes)
    # the fourth derivative is z^4 phi; the tip mass cancels against the third one at the tip
    mean = [-line * length * shapes.at_root(i, 3) / beam.roots[i] ** 4 for i in modes]
    return {
        Quantity("beam_mass", "kg", description="of beam and tip"): [line * length + load],
        Quantity("beam_first_moment", "kg*m", description="int x dm"): [line * length**2 / 2 + load * length],
        Quantity("beam_mean_deflection", "kg", (integrals.modes,), description="int phi_i dm"): mean,
        Quantity("beam_tip_slope", "1/m", (integrals.modes,), description="phi_i'(l)"): [
            shapes.at_tip(i, 1) / length for i in modes
        ],
    }
