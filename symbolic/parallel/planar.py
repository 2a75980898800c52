"""The planar robot with three 2R chains in closed form: inverse and forward kinematics, Jacobian, torque transmission.

Angles are absolute. A working mode is a sign for each chain: +1 puts the driven link to the left of the line from
its base to the platform's point. The eight working modes are named as in table 8.1 of the source (`WORKING_MODES`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import sympy
from sympy import acos, atan2, cos, sin, sqrt

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.parallel.mechanisms import BASES, LECTURE
from mechsmith.symbolic.parallel.planar_identities import FORWARD_IDENTITIES, INVERSE_IDENTITIES
from mechsmith.symbolic.quantity import Quantity

CHAINS = (1, 2, 3)
WORKING_MODES: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "a": (1, 1, 1),
        "b": (1, 1, -1),
        "c": (1, -1, -1),
        "d": (1, -1, 1),
        "e": (-1, -1, 1),
        "f": (-1, -1, -1),
        "g": (-1, 1, -1),
        "h": (-1, 1, 1),
    }
)


def symbol(name: str) -> sympy.Symbol:
    """Return the real symbol of a name."""
    return sympy.Symbol(name, real=True)


@dataclass(frozen=True)
class ChainSymbols:
    """The symbols of one chain, named as in the models of this module."""

    number: int

    def __getitem__(self, name: str) -> sympy.Symbol:
        """Return the symbol `<name>_<number>`; `base_x` is `base_<number>_x`."""
        if name.startswith("base_"):
            return symbol(f"base_{self.number}_{name[-1]}")
        return symbol(f"{name}_{self.number}")


def geometry(*, arms: bool = True) -> tuple[Quantity, ...]:
    """Return the lengths of the robot, m: places of the bases, driven links unless not wanted, and distal links.

    Bounds are 20 mm about the source's values: wide for a calibration, and every point near the middle is reached.
    """
    result: list[Quantity] = []
    for i, base in zip(CHAINS, BASES, strict=True):
        result += [
            _near(f"base_{i}_{axis}", value, f"base of chain {i}")
            for axis, value in zip("xy", base, strict=True)
        ]
    if arms:
        result += [_near(f"arm_{i}", 0.244, f"driven link of chain {i}") for i in CHAINS]
    return (*result, *(_near(f"distal_{i}", 0.244, f"distal link of chain {i}") for i in CHAINS))


def _near(name: str, value: float, description: str) -> Quantity:
    return Quantity(name, "m", description=description, nominal=value, lower=value - 0.02, upper=value + 0.02)


def modes() -> tuple[Quantity, ...]:
    """Return the signs of the chains that name the working mode."""
    return tuple(
        Quantity(
            f"mode_{i}", "", description=f"sign of chain {i}: +1 or -1", nominal=1.0, lower=-1.0, upper=1.0
        )
        for i in CHAINS
    )


def point() -> tuple[Quantity, ...]:
    """Return the coordinates of the platform's point, m."""
    return tuple(
        Quantity(axis, "m", description="platform", nominal=value)
        for axis, value in (("x", 0.29), ("y", 0.25))
    )


def inverse_definitions() -> dict[Quantity, sympy.Expr]:
    """Return (8.6)-(8.8) as definitions: reach, angles and elbow of each chain."""
    result: dict[Quantity, sympy.Expr] = {}
    for i in CHAINS:
        c = ChainSymbols(i)
        dx, dy = c["offset_x"], c["offset_y"]
        arm, distal = c["arm"], c["distal"]
        result |= {
            Quantity(dx, "m"): symbol("x") - c["base_x"],
            Quantity(dy, "m"): symbol("y") - c["base_y"],
            Quantity(c["reach_squared"], "m^2"): dx**2 + dy**2,
            Quantity(c["opening"], "rad", description="angle at the base between arm and reach"): acos(
                (c["reach_squared"] + arm**2 - distal**2) / (2 * arm * sqrt(c["reach_squared"]))
            ),
            Quantity(c["q"], "rad", description="angle of the driven link"): atan2(dy, dx)
            + c["mode"] * c["opening"],
            Quantity(c["elbow_x"], "m", description="elbow from the base"): arm * cos(c["q"]),
            Quantity(c["elbow_y"], "m", description="elbow from the base"): arm * sin(c["q"]),
            Quantity(c["s"], "rad", description="angle of the distal link"): atan2(
                dy - c["elbow_y"], dx - c["elbow_x"]
            ),
        }
    return result


def jacobian_definitions() -> dict[Quantity, sympy.Expr]:
    """Return (8.9) as definitions: the rows of S = dq/dO and of ds/dO, 1/m."""
    result: dict[Quantity, sympy.Expr] = {}
    for i in CHAINS:
        c = ChainSymbols(i)
        bend, q, s = c["bend"], c["q"], c["s"]
        result |= {
            Quantity(bend, "", description="sine of the elbow angle"): sin(s - q),
            Quantity(c["drive_x"], "1/m"): cos(s) / (c["arm"] * bend),
            Quantity(c["drive_y"], "1/m"): sin(s) / (c["arm"] * bend),
            Quantity(c["swing_x"], "1/m"): -cos(q) / (c["distal"] * bend),
            Quantity(c["swing_y"], "1/m"): -sin(q) / (c["distal"] * bend),
        }
    return result


def transmission_definitions() -> dict[Quantity, sympy.Expr]:
    """Return the squared singular values of S, from the entries of S^T S."""
    rows = [(ChainSymbols(i)["drive_x"], ChainSymbols(i)["drive_y"]) for i in CHAINS]
    xx, xy, yy, spread = (symbol(f"normal_{name}") for name in ("xx", "xy", "yy", "spread"))
    return {
        Quantity(xx, "1/m^2"): sympy.Add(*(a**2 for a, _ in rows)),
        Quantity(xy, "1/m^2"): sympy.Add(*(a * b for a, b in rows)),
        Quantity(yy, "1/m^2"): sympy.Add(*(b**2 for _, b in rows)),
        Quantity(spread, "1/m^2", description="difference of the eigenvalues"): sqrt(
            (xx - yy) ** 2 + 4 * xy**2
        ),
        Quantity("largest_squared", "1/m^2"): (xx + yy + spread) / 2,
        # From the determinant as a sum of squares (Binet-Cauchy): no digits are lost near a singularity.
        Quantity("smallest_squared", "1/m^2"): sympy.Add(
            *((rows[i][0] * rows[j][1] - rows[i][1] * rows[j][0]) ** 2 for i, j in ((0, 1), (0, 2), (1, 2)))
        )
        / symbol("largest_squared"),
    }


def make_planar_inverse() -> Model:
    """Return the inverse kinematics (8.6)-(8.9) and the torque transmission index (8.12) of the planar robot.

    Inputs are the platform's point and the working mode; outputs the angles of driven links `driven_angle_i` and distal
    links `distal_angle_i`, rad, S = dq/dO as `transmission` (3, 2), its counterpart for the distal links `distal_rate` (3, 2),
    1/m, both singular values of S and the index `eta`, their ratio.
    """
    rows = [ChainSymbols(i) for i in CHAINS]
    outputs: dict[Quantity, object] = {}
    for i in CHAINS:
        outputs[Quantity(f"driven_angle_{i}", "rad", description="angle of a driven link")] = symbol(f"q_{i}")
    for i in CHAINS:
        outputs[Quantity(f"distal_angle_{i}", "rad", description="angle of a distal link")] = symbol(f"s_{i}")
    outputs |= {
        Quantity(
            "transmission", "1/m", (3, 2), description="S, rates of driven links by the point's velocity"
        ): [[c["drive_x"], c["drive_y"]] for c in rows],
        Quantity("distal_rate", "1/m", (3, 2), description="rates of distal links by the point's velocity"): [
            [c["swing_x"], c["swing_y"]] for c in rows
        ],
        Quantity("largest", "1/m", description="largest singular value of S"): sqrt(
            symbol("largest_squared")
        ),
        Quantity("smallest", "1/m", description="smallest singular value of S"): sqrt(
            symbol("smallest_squared")
        ),
        Quantity("eta", "", description="torque transmission index"): sqrt(
            symbol("smallest_squared") / symbol("largest_squared")
        ),
    }
    return Model(
        name="planar_inverse",
        inputs=(*point(), *modes()),
        parameters=geometry(),
        definitions={**inverse_definitions(), **jacobian_definitions(), **transmission_definitions()},
        outputs=outputs,
        identities=INVERSE_IDENTITIES,
        description="Inverse kinematics and torque transmission of the planar robot with three 2R chains.",
        references=(LECTURE,),
    )


def forward_definitions(elbows: Sequence[tuple[sympy.Expr, sympy.Expr]]) -> dict[Quantity, sympy.Expr]:
    """Return (8.4) generalised to unequal links as definitions: the radical centre of three circles about the elbows.

    Parameters
    ----------
    elbows : sequence of (x, y)
        The elbows in the base's frame.
    """
    result: dict[Quantity, sympy.Expr] = {}
    for i, (x, y) in zip(CHAINS, elbows, strict=True):
        c = ChainSymbols(i)
        result |= {
            Quantity(c["center_x"], "m"): x,
            Quantity(c["center_y"], "m"): y,
            Quantity(c["power"], "m^2"): c["center_x"] ** 2 + c["center_y"] ** 2 - c["distal"] ** 2,
        }
    bx, by, d = ([ChainSymbols(i)[name] for i in CHAINS] for name in ("center_x", "center_y", "power"))
    turn = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    area = symbol("area")
    return result | {
        Quantity(area, "m^2", description="four times the area of the elbows' triangle"): 2
        * sympy.Add(*(bx[i] * (by[j] - by[k]) for i, j, k in turn)),
        Quantity("radical_x", "m"): sympy.Add(*(d[i] * (by[j] - by[k]) for i, j, k in turn)) / area,
        Quantity("radical_y", "m"): sympy.Add(*(d[i] * (bx[k] - bx[j]) for i, j, k in turn)) / area,
    }


def make_planar_forward() -> Model:
    """Return the forward kinematics (8.4): the platform's point from all three driven angles, in closed form.

    For measured angles that do not fit together it is the point whose powers with respect to the three circles are equal;
    that power is the output `power`, zero where the loops close.
    """
    angles = [symbol(f"driven_angle_{i}") for i in CHAINS]
    elbows = [
        (
            ChainSymbols(i)["base_x"] + ChainSymbols(i)["arm"] * cos(q),
            ChainSymbols(i)["base_y"] + ChainSymbols(i)["arm"] * sin(q),
        )
        for i, q in zip(CHAINS, angles, strict=True)
    ]
    x, y = symbol("radical_x"), symbol("radical_y")
    first = ChainSymbols(1)
    return Model(
        name="planar_forward",
        inputs=tuple(
            Quantity(q, "rad", description="angle of a driven link", nominal=nominal)
            for q, nominal in zip(angles, (0.94, 3.03, -1.16), strict=True)
        ),
        parameters=geometry(),
        definitions=forward_definitions(elbows),
        outputs={
            Quantity("x", "m", description="platform"): x,
            Quantity("y", "m", description="platform"): y,
            Quantity("excess", "m^2", description="power of the point; zero where the loops close"): (
                x - first["center_x"]
            )
            ** 2
            + (y - first["center_y"]) ** 2
            - first["distal"] ** 2,
        },
        identities=FORWARD_IDENTITIES,
        description="Forward kinematics of the planar robot with three 2R chains.",
        references=(LECTURE,),
    )
