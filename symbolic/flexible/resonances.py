"""Resonances: what a modal test of a flexible link measures, from its stiffnesses and damping; and from modal values alone."""

import sympy

from mechsmith.symbolic.flexible.beam import SOURCE, Beam
from mechsmith.symbolic.flexible.integrals import Integrals
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity


def make_resonances(*, modes: int = 4, tip_mass: bool = False) -> Model:
    """Return natural frequencies and damping ratios of a flexible link on a flexible joint, the hub held.

    Damping is that of joint and structure, zeta_i = (alpha_2 + c phi_i'(0)^2/m_i)/(2 omega_i); the joint's coupling of the
    modes is left out, which is of second order in the damping.

    Parameters
    ----------
    modes : int
        How many.
    tip_mass : bool
        Whether a point mass sits at the tip.
    """
    integrals = Integrals(Beam(modes, "spring", tip_mass), order="zero")
    beam = integrals.beam
    joint = Quantity("joint_damping", "N*m*s/rad", description="c", nominal=1e-3, lower=0.0)
    structure = Quantity("structural_damping", "1/s", description="alpha_2", nominal=0.1, lower=0.0)
    frequencies, ratios = [], []
    for i in range(modes):
        omega, mass = integrals.element("natural_frequency", i), integrals.element("modal_mass", i)
        slope = integrals.element("root_slope", i)
        frequencies.append(omega)
        ratios.append((structure.elements[0] + joint.elements[0] * slope**2 / mass) / (2 * omega))
    unused = {"link_inertia", "modal_stiffness", "hub_coupling"}
    return Model(
        name="resonances",
        unknowns=beam.unknowns(modes),
        parameters=(*beam.parameters, joint, structure),
        definitions={q: v for q, v in integrals.definitions.items() if q.name not in unused},
        constraints=beam.constraints,
        outputs={
            Quantity("frequency", "rad/s", (modes,), description="natural frequencies"): frequencies,
            Quantity("damping_ratio", "", (modes,), description="damping ratios"): ratios,
        },
        description="Natural frequencies and damping ratios of a flexible link on a flexible joint.",
        references=(SOURCE,),
    )


def make_modal_response(*, modes: int = 2) -> Model:
    """Return an acceleration in response to a torque as a sum of damped modes: q'' + 2 zeta w q' + w^2 q = g u.

    For a link of which nothing is known but a record. The output is the sum of the modal accelerations and a part in
    proportion to the torque, which stands for all higher modes.

    Parameters
    ----------
    modes : int
        How many.
    """
    if modes < 1:
        raise ModelError(f"modal response: modes is {modes}. Give 1 or more.")
    torque = Quantity("torque", "N*m")
    direct = Quantity("direct_gain", "1/kg/m", description="of the higher modes", nominal=0.0)
    states, rates, parameters = [], [], [direct]
    derivatives: dict[str, sympy.Expr] = {}
    total: sympy.Expr = direct.elements[0] * torque.elements[0]
    for i in range(1, modes + 1):
        position = Quantity(f"mode_{i}", "m", description=f"coordinate of mode {i}", nominal=0.0)
        rate = Quantity(f"mode_{i}_rate", "m/s", description="its rate", nominal=0.0)
        omega = Quantity(f"frequency_{i}", "rad/s", nominal=float(i), lower=1e-6, upper=1e6)
        zeta = Quantity(f"damping_ratio_{i}", "", nominal=0.02, lower=1e-6, upper=1.0)
        gain = Quantity(f"gain_{i}", "1/kg/m", description="of the torque", nominal=1.0)
        w, d, g = (q.elements[0] for q in (omega, zeta, gain))
        acceleration = g * torque.elements[0] - 2 * d * w * rate.elements[0] - w**2 * position.elements[0]
        derivatives |= {position.name: rate.elements[0], rate.name: acceleration}
        total += acceleration
        states.append(position)
        rates.append(rate)
        parameters += [omega, zeta, gain]
    return Model(
        name="modal_response",
        states=(*states, *rates),
        inputs=(torque,),
        parameters=tuple(parameters),
        derivatives=derivatives,
        outputs={Quantity("acceleration", "m/s^2"): total},
        description=f"Acceleration of a flexible link as the sum of {modes} damped modes.",
    )
