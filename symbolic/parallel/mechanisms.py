"""Mechanisms that come with mechsmith, as data."""

import sympy

from mechsmith.symbolic.parallel.loops import (
    X_AXIS,
    Y_AXIS,
    Z_AXIS,
    Body,
    Chain,
    Joint,
    Link,
    Mechanism,
    Rod,
    RodMass,
    Turn,
)
from mechsmith.symbolic.quantity import Quantity

MERLET = "Merlet 2006, Parallel Robots, 2nd ed., Springer"
DIETMAIER = (
    "Dietmaier 1998, The Stewart-Gough platform of general geometry can have 40 real postures, "
    "Advances in Robot Kinematics: Analysis and Control, 7-16"
)
LECTURE = (
    "Lecture notes on a planar parallel robot with redundant actuation (in Chinese), equations (8.1)-(8.27)"
)
# Bases of the seed's robot, m, and the inverse solution "a" at the middle, rad, where Newton's method starts.
BASES = ((0.0, 0.25), (0.433, 0.0), (0.433, 0.5))
ARM_ANGLES = (0.94, 3.03, -1.16)
DISTAL_ANGLES = (-0.94, 1.16, -3.03)
# Joints on the base and on the platform, and legs, of the hexapod with 40 real postures; m.
_DIETMAIER_BASE = (
    (0.0, 0.0, 0.0),
    (1.107915, 0.0, 0.0),
    (0.549094, 0.756063, 0.0),
    (0.735077, -0.223935, 0.525991),
    (0.514188, -0.526063, -0.368418),
    (0.590473, 0.094733, -0.205018),
)
_DIETMAIER_PLATFORM = (
    (0.0, 0.0, 0.0),
    (0.542805, 0.0, 0.0),
    (0.956919, -0.528915, 0.0),
    (0.665885, -0.353482, 1.402538),
    (0.478359, 1.158742, 0.107672),
    (-0.137087, -0.235121, 0.353913),
)
_DIETMAIER_LEGS = (1.0, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071)
_MASS_UNIT, _INERTIA_UNIT = "kg", "kg*m^2"


def length(name: str, nominal: float, description: str = "length", *, positive: bool = True) -> Quantity:
    """Return a length, m."""
    lower = 1e-6 if positive else -10.0
    return Quantity(name, "m", description=description, nominal=nominal, lower=lower, upper=10.0)


def mass(name: str, nominal: float) -> Quantity:
    """Return a mass, kg."""
    return Quantity(name, _MASS_UNIT, description="mass", nominal=nominal, lower=0.0, upper=1e4)


def inertia(name: str, nominal: float) -> Quantity:
    """Return a moment of inertia about the centre of mass, kg m^2."""
    return Quantity(
        name,
        _INERTIA_UNIT,
        description="inertia about the centre of mass",
        nominal=nominal,
        lower=0.0,
        upper=1e3,
    )


def planar_point(x: float, y: float) -> tuple[Joint, ...]:
    """Return the platform of a planar mechanism that is a point: coordinates x and y."""
    return (
        Joint("x", "prismatic", X_AXIS, nominal=x),
        Joint("y", "prismatic", Y_AXIS, nominal=y),
    )


def planar_body(x: float, y: float, phi: float) -> tuple[Joint, ...]:
    """Return the platform of a planar mechanism: coordinates x, y and phi."""
    return (*planar_point(x, y), Joint("phi", nominal=phi))


def spatial_point(x: float, y: float, z: float) -> tuple[Joint, ...]:
    """Return a platform that does not turn: coordinates x, y and z."""
    return (*planar_point(x, y), Joint("z", "prismatic", Z_AXIS, nominal=z))


def spatial_body(
    position: tuple[float, float, float], angles: tuple[float, float, float]
) -> tuple[Joint, ...]:
    """Return a free platform: x, y, z, then yaw about z, pitch about the new y, roll about the new x."""
    yaw, pitch, roll = angles
    return (
        *spatial_point(*position),
        Joint("yaw", axis=Z_AXIS, nominal=yaw),
        Joint("pitch", axis=Y_AXIS, nominal=pitch),
        Joint("roll", axis=X_AXIS, nominal=roll),
    )


def three_chains() -> Mechanism:
    """Return the planar robot with two degrees of freedom, three 2R chains and three motors; absolute angles."""
    parameters: list[Quantity] = []
    chains, bodies = [], []
    for i, (base, arm, distal) in enumerate(zip(BASES, ARM_ANGLES, DISTAL_ANGLES, strict=True), 1):
        parameters += [
            length(f"base_{i}_x", base[0], "place of a base", positive=False),
            length(f"base_{i}_y", base[1], "place of a base", positive=False),
            length(f"arm_{i}", 0.244, "length of a driven link"),
            length(f"distal_{i}", 0.244, "length of a distal link"),
            length(f"arm_center_{i}", 0.12, "centre of mass along a driven link", positive=False),
            length(f"distal_center_{i}", 0.1, "centre of mass along a distal link", positive=False),
            mass(f"arm_mass_{i}", 1.1),
            mass(f"distal_mass_{i}", 0.6),
            inertia(f"arm_inertia_{i}", 0.02),
            inertia(f"distal_inertia_{i}", 0.006),
        ]
        chains.append(
            Chain(
                f"chain_{i}",
                (
                    Link((f"base_{i}_x", f"base_{i}_y")),
                    Joint(f"arm_angle_{i}", actuated=True, absolute=True, nominal=arm),
                    Link((f"arm_{i}", 0)),
                    Joint(f"distal_angle_{i}", absolute=True, nominal=distal),
                    Link((f"distal_{i}", 0)),
                ),
            )
        )
        bodies += [
            Body(f"arm_angle_{i}", f"arm_mass_{i}", (f"arm_center_{i}", 0), (f"arm_inertia_{i}",)),
            Body(
                f"distal_angle_{i}", f"distal_mass_{i}", (f"distal_center_{i}", 0), (f"distal_inertia_{i}",)
            ),
        ]
    return Mechanism(
        "three_chains",
        planar_point(0.29, 0.25),
        tuple(chains),
        tuple(parameters),
        bodies=tuple(bodies),
        description="Planar robot with two degrees of freedom and three 2R chains, redundantly actuated.",
        references=(LECTURE,),
    )


def five_bar() -> Mechanism:
    """Return the five-bar linkage: two driven arms, whose distal links meet in a point."""
    parameters = [length("span", 0.3, "distance of the motors")]
    chains, bodies = [], []
    for i, (arm, distal) in enumerate(((2.1, -1.52), (1.04, 1.52)), 1):
        parameters += [length(f"arm_{i}", 0.2), length(f"distal_{i}", 0.3)]
        parameters += [mass(f"arm_mass_{i}", 0.4), mass(f"distal_mass_{i}", 0.3)]
        parameters += [inertia(f"arm_inertia_{i}", 0.0014), inertia(f"distal_inertia_{i}", 0.0023)]
        base = Link((0 if i == 1 else "span", 0))
        chains.append(
            Chain(
                f"chain_{i}",
                (
                    base,
                    Joint(f"arm_angle_{i}", actuated=True, nominal=arm),
                    Link((f"arm_{i}", 0)),
                    Joint(f"elbow_angle_{i}", nominal=distal),
                    Link((f"distal_{i}", 0)),
                ),
            )
        )
        half = sympy.Rational(1, 2)
        bodies += [
            Body(
                f"{joint}_angle_{i}",
                f"{link}_mass_{i}",
                (half * sympy.Symbol(f"{link}_{i}", real=True), 0),
                (f"{link}_inertia_{i}",),
            )
            for joint, link in (("arm", "arm"), ("elbow", "distal"))
        ]
    return Mechanism(
        "five_bar",
        planar_point(0.15, 0.337),
        tuple(chains),
        (*parameters, _gravity()),
        bodies=tuple(bodies),
        gravity=(0, -_gravity().elements[0]),
        description="Five-bar linkage with two motors, in a vertical plane; links are uniform.",
        references=(f"{MERLET}, section 2.1",),
    )


def four_bar() -> Mechanism:
    """Return the four-bar linkage: a driven crank, a coupler (the platform) and a rocker."""
    return Mechanism(
        "four_bar",
        planar_body(0.05, 0.087, 0.4),
        (
            Chain("crank", (Joint("crank_angle", actuated=True, nominal=1.05), Link(("crank_length", 0)))),
            Chain(
                "rocker",
                (Link(("ground", 0)), Joint("rocker_angle", nominal=1.6), Link(("rocker_length", 0))),
                anchor=("coupler", 0),
            ),
        ),
        (
            length("ground", 0.3),
            length("crank_length", 0.1),
            length("coupler", 0.28),
            length("rocker_length", 0.22),
            mass("crank_mass", 0.2),
            mass("coupler_mass", 0.5),
            inertia("coupler_inertia", 0.004),
            _gravity(),
        ),
        bodies=(
            Body("crank_angle", "crank_mass", ("crank_length", 0)),
            Body("phi", "coupler_mass", ("coupler", 0), ("coupler_inertia",)),
        ),
        gravity=(0, -_gravity().elements[0]),
        description="Four-bar linkage with a driven crank, in a vertical plane.",
        references=("Hartenberg, Denavit 1964, Kinematic Synthesis of Linkages, McGraw-Hill",),
    )


def three_rrr() -> Mechanism:
    """Return the planar 3-RRR: a triangle on three 2R chains, whose first joints are driven."""
    parameters = [
        length("base_radius", 0.35, "circle through the motors"),
        length("platform_radius", 0.1, "circle through the platform's joints"),
        length("arm", 0.2),
        length("distal", 0.2),
        mass("arm_mass", 0.3),
        mass("platform_mass", 0.8),
        inertia("arm_inertia", 0.001),
        inertia("platform_inertia", 0.004),
    ]
    chains, bodies = [], []
    half = sympy.Rational(1, 2)
    for i in range(1, 4):
        angle = 2 * sympy.pi * (i - 1) / 3
        chains.append(
            Chain(
                f"chain_{i}",
                (
                    Turn(angle),
                    Link(("base_radius", 0)),
                    Joint(f"arm_angle_{i}", actuated=True, nominal=2.2),
                    Link(("arm", 0)),
                    Joint(f"elbow_angle_{i}", nominal=1.6),
                    Link(("distal", 0)),
                ),
                anchor=tuple(
                    sympy.Symbol("platform_radius", real=True) * f(angle) for f in (sympy.cos, sympy.sin)
                ),
            )
        )
        bodies.append(
            Body(f"arm_angle_{i}", "arm_mass", (half * sympy.Symbol("arm", real=True), 0), ("arm_inertia",))
        )
    return Mechanism(
        "three_rrr",
        planar_body(0.01, 0.01, 0.1),
        tuple(chains),
        tuple(parameters),
        bodies=(*bodies, Body("phi", "platform_mass", inertia=("platform_inertia",))),
        description="Planar 3-RRR with three degrees of freedom; massless distal links.",
        references=(f"{MERLET}, section 2.1",),
    )


def delta() -> Mechanism:
    """Return Clavel's Delta robot: three driven arms with parallelograms, a platform that only translates.

    A parallelogram counts as one rod between the middles of its ends; with radii reduced by the platform's, the rods
    meet in the platform's point.
    """
    chains: list[Chain] = []
    bodies: list[Body | RodMass] = []
    for i in range(1, 4):
        chains.append(
            Chain(
                f"chain_{i}",
                (
                    Turn(2 * sympy.pi * (i - 1) / 3),
                    Link(("base_radius", 0, 0)),
                    Joint(f"arm_angle_{i}", axis=Y_AXIS, actuated=True, nominal=0.4),
                    Link(("arm", 0, 0)),
                ),
                rod=Rod("rod"),
            )
        )
        center = sympy.Symbol("arm", real=True) / 2
        bodies += [
            Body(f"arm_angle_{i}", "arm_mass", (center, 0, 0), ("arm_axial", "arm_inertia", "arm_inertia")),
            RodMass(f"chain_{i}", "rod_mass"),
        ]
    return Mechanism(
        "delta",
        spatial_point(0.01, 0.01, -0.45),
        tuple(chains),
        (
            length("base_radius", 0.12, "radius of the motors less that of the platform's joints"),
            length("arm", 0.2),
            length("rod", 0.46),
            mass("arm_mass", 0.4),
            mass("rod_mass", 0.15),
            mass("platform_mass", 0.5),
            inertia("arm_axial", 1e-4),
            inertia("arm_inertia", 1.5e-3),
            _gravity(),
        ),
        planar=False,
        bodies=(*bodies, Body("z", "platform_mass")),
        gravity=(0, 0, -_gravity().elements[0]),
        description="Delta robot with three degrees of freedom.",
        references=(
            "Clavel 1988, DELTA, a fast robot with parallel geometry, 18th Int. Symp. Industrial Robots, 91-100",
        ),
    )


def hexapod() -> Mechanism:
    """Return the general Gough-Stewart platform 6-UPS; nominal joints are Dietmaier's, with 40 real postures.

    Legs are massless; the platform's frame is at its first joint, Dietmaier's geometry in metres.
    """
    parameters, chains = [], []
    for i in range(6):
        names = {part: tuple(f"{part}_{i + 1}_{axis}" for axis in "xyz") for part in ("base", "platform")}
        for part, points in (("base", _DIETMAIER_BASE), ("platform", _DIETMAIER_PLATFORM)):
            parameters += [
                length(name, value, f"joint on the {part}", positive=False)
                for name, value in zip(names[part], points[i], strict=True)
            ]
        leg = Joint(f"leg_{i + 1}", "prismatic", actuated=True, nominal=_DIETMAIER_LEGS[i], lower=1e-6)
        chains.append(
            Chain(f"chain_{i + 1}", (Link(names["base"]),), names["platform"], Rod(leg.coordinate, leg))
        )
    center = tuple(f"center_{axis}" for axis in "xyz")
    moments = tuple(f"inertia_{axis}" for axis in "xyz")
    return Mechanism(
        "hexapod",
        spatial_body((0.968, 0.237, -0.082), (1.362, -1.02, 0.884)),
        tuple(chains),
        (
            *parameters,
            *(
                length(name, value, "centre of mass", positive=False)
                for name, value in zip(center, (0.4, 0.1, 0.3), strict=True)
            ),
            mass("platform_mass", 20.0),
            *(inertia(name, value) for name, value in zip(moments, (1.5, 2.0, 2.5), strict=True)),
            _gravity(),
        ),
        planar=False,
        bodies=(Body("roll", "platform_mass", center, moments),),
        gravity=(0, 0, -_gravity().elements[0]),
        description="Gough-Stewart platform 6-UPS of general geometry.",
        references=(MERLET, DIETMAIER),
    )


def _gravity() -> Quantity:
    return Quantity(
        "gravity", "m/s^2", description="acceleration of gravity", nominal=9.80665, lower=0.0, upper=30.0
    )
