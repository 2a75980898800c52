"""The Dahl model from nothing: dF/dx = s0 (1 - sgn(v) F / Fc), written for the friction F as the state."""

from sympy import Abs, symbols

from mechsmith import Model, Quantity


def make_dahl() -> Model:
    """Return dF/dt = s0 (v - |v| F / Fc); Dahl 1968, A Solid Friction Model, equation for the exponent 1."""
    friction, velocity, s0, coulomb = symbols("friction velocity s0 coulomb", real=True)
    return Model(
        name="dahl",
        states=(Quantity(friction, "N*m", description="friction", nominal=0.0),),
        inputs=(Quantity(velocity, "rad/s", description="relative velocity"),),
        parameters=(
            Quantity(s0, "N*m/rad", description="stiffness at rest", nominal=1e4, lower=1.0, upper=1e7),
            Quantity(coulomb, "N*m", description="Coulomb friction", nominal=1.0, lower=1e-3, upper=100.0),
        ),
        derivatives={friction: s0 * (velocity - Abs(velocity) * friction / coulomb)},
        outputs={Quantity("torque", "N*m"): friction},
        crossings=(velocity,),
        integrals={"velocity": Quantity("position", "rad")},
    )
