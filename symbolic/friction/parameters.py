"""Units and parameters that the friction models share: one name means the same in each of them."""

from typing import Literal, NamedTuple

import sympy

from mechsmith.symbolic.quantity import Quantity

Motion = Literal["rotary", "linear"]

# Smallest stiffness and velocities, in their units: above zero, below anything that can be measured.
ABOVE_ZERO = 1e-6


class Units(NamedTuple):
    """The unit of travel and that of friction, for a shaft or a slide."""

    length: str
    force: str


UNITS: dict[Motion, Units] = {"rotary": Units("rad", "N*m"), "linear": Units("m", "N")}

# Unit in terms of {f}orce and {l}ength, smallest value, nominal values rotary and linear, meaning.
_KNOWN: dict[str, tuple[str, float, float, float, str]] = {
    "s0": ("{f}/{l}", ABOVE_ZERO, 1e5, 1e6, "bristle stiffness"),
    "s1": ("{f}*s/{l}", 0.0, 316.22776601683796, 1000.0, "bristle damping"),
    "a0": ("{f}", 0.0, 1.0, 20.0, "Coulomb friction"),
    "a1": ("{f}", 0.0, 0.5, 5.0, "height of the Stribeck peak over Coulomb friction"),
    "v0": ("{l}/s", ABOVE_ZERO, 0.01, 0.01, "Stribeck velocity"),
    "a2": ("{f}*s/{l}", 0.0, 0.4, 200.0, "viscous friction, linear"),
    "a3": ("{f}*s^2/{l}^2", -sympy.oo, 0.1, 20.0, "viscous friction, quadratic"),
    "a4": ("{f}*s^3/{l}^3", -sympy.oo, 0.05, 5.0, "viscous friction, cubic"),
}


def parameter(name: str, motion: Motion, *, called: str = "", note: str = "") -> Quantity:
    """Return a parameter of the family by its name, or under another name with a note on its meaning."""
    unit, lower, rotary, linear, text = _KNOWN[name]
    length, force = UNITS[motion]
    return Quantity(
        called or name,
        unit.format(f=force, l=length),
        description=f"{text}{note}",
        nominal=rotary if motion == "rotary" else linear,
        lower=float(lower),
    )


def velocity_input(motion: Motion) -> Quantity:
    """Return the input that every friction model has."""
    return Quantity(
        "velocity", f"{UNITS[motion].length}/s", description="relative velocity of the surfaces, v"
    )


def force_output(motion: Motion) -> Quantity:
    """Return the output that every friction model has: positive where it opposes a positive velocity."""
    return Quantity("force", UNITS[motion].force, description="friction against the motion, F")


def position_integral(motion: Motion) -> dict[str, Quantity]:
    """Return what a log also holds of the velocity."""
    return {"velocity": Quantity("position", UNITS[motion].length, description="integral of the velocity")}


def named(name: str, motion: Motion) -> str:
    """Return a model's name: the linear one says so."""
    return name if motion == "rotary" else f"{name}_linear"
