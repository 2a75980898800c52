"""When a joint may be taken as rigid: the stiffness at which the first frequency reaches a share of the clamped beam's.

k_c = P(r) EI/l with z = 1.8751 sqrt(r) and P(r) = z (sin z cosh z - cos z sinh z)/(1 + cos z cosh z): the frequency
equation, solved for the stiffness. Near 1 it is 2/(1 - r) - 2.8765055. (Source, equation (55); its printed P(0.95),
P(0.97), P(0.99) are fits, good to five digits.)
"""

import sympy

from mechsmith.symbolic.flexible import frequency
from mechsmith.symbolic.flexible.beam import SOURCE, Beam
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

FIRST_CLAMPED_ROOT = sympy.Float("1.87510406871196116645", 20)


def critical_stiffness_ratio(frequency_ratio: sympy.Expr) -> sympy.Expr:
    """Return P(r), k_c l/EI, for the ratio r of the first frequency to that of the clamped beam, 0 < r < 1."""
    z = FIRST_CLAMPED_ROOT * sympy.sqrt(frequency_ratio)
    return z * frequency.pinned(z, sympy.Integer(0)) / frequency.clamped(z, sympy.Integer(0))


def make_critical_stiffness() -> Model:
    """Return P(r) and k_c of a beam, for an input r, the ratio of its first frequency to the clamped beam's."""
    ratio = Quantity(
        "frequency_ratio",
        "",
        description="first frequency over that of the clamped beam, r",
        nominal=0.95,
        lower=1e-6,
        upper=1.0 - 1e-9,
    )
    stiffness, length = (q for q in Beam(1, "clamped").parameters if q.name != "mass_per_length")
    value = Quantity("critical_ratio", "", description="P(r)")
    return Model(
        name="critical_stiffness",
        inputs=(ratio,),
        parameters=(stiffness, length),
        definitions={value: critical_stiffness_ratio(ratio.elements[0])},
        outputs={
            Quantity("stiffness_ratio", "", description="k_c l/EI"): value.elements[0],
            Quantity(
                "stiffness", "N*m/rad", description="above it the joint counts as rigid, k_c"
            ): value.elements[0] * stiffness.elements[0] / length.elements[0],
        },
        description="Stiffness of a joint from which on it may be taken as rigid.",
        references=(SOURCE,),
    )
