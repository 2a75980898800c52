"""A mechanism of one's own: a slider-crank, whose motor turns the crank. Its equations follow from this description."""

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.parallel.closure import make_forward
from mechsmith.symbolic.parallel.dynamics import make_dynamics
from mechsmith.symbolic.parallel.loops import X_AXIS, Body, Chain, Joint, Link, Mechanism, Rod, RodMass
from mechsmith.symbolic.parallel.mechanisms import length, mass

CRANK = Chain("crank", (Joint("angle", actuated=True, nominal=0.8), Link(("radius", 0))), rod=Rod("rod"))
SLIDER_CRANK = Mechanism(
    "slider_crank",
    platform=(Joint("stroke", "prismatic", X_AXIS, nominal=0.25),),
    chains=(CRANK,),
    parameters=(length("radius", 0.05), length("rod", 0.2), mass("rod_mass", 0.4), mass("piston", 0.6)),
    bodies=(RodMass("crank", "rod_mass"), Body("stroke", "piston")),
    description="A slider-crank with a slender rod.",
)


def make_slider_crank() -> Model:
    """Return the equations of motion; the state is the crank's angle."""
    return make_dynamics(SLIDER_CRANK, independent=("angle",))


def make_slider_crank_kinematics() -> Model:
    """Return the piston's stroke, velocity and acceleration for those of the crank."""
    return make_forward(SLIDER_CRANK, rates=2)
