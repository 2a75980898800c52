"""Robots whose geometry is known by name."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.serial.chain import Chain, DHRow, dh_chain

_RIGHT = math.pi / 2.0


def irb6700() -> Chain:
    """Return ABB's IRB6700-200/2.60; modified DH as in the source on joint stiffness, limits of the ROS description."""
    limits = (
        (-170.0, 170.0),
        (-65.0, 85.0),
        (-180.0, 70.0),
        (-300.0, 300.0),
        (-130.0, 130.0),
        (-360.0, 360.0),
    )
    table = (
        (0.0, 0.0, 0.780, 0.0),
        (0.320, -_RIGHT, 0.0, -_RIGHT),
        (1.125, 0.0, 0.0, 0.0),
        (0.200, -_RIGHT, 1.1425, 0.0),
        (0.0, _RIGHT, 0.0, 0.0),
        (0.0, -_RIGHT, 0.200, math.pi),
    )
    rows = [
        DHRow(a, alpha, d, offset, lower=math.radians(lower), upper=math.radians(upper))
        for (a, alpha, d, offset), (lower, upper) in zip(table, limits, strict=True)
    ]
    return dh_chain(
        "irb6700",
        rows,
        convention="modified",
        references=("ros-industrial/abb, abb_irb6700_support, irb6700_200_260",),
    )


ROBOTS: Mapping[str, Callable[[], Chain]] = MappingProxyType({"irb6700": irb6700})


def robot(name: str) -> Chain:
    """Return the chain of a robot of `ROBOTS`.

    Raises
    ------
    ModelError
        If there is none of that name.
    """
    if name not in ROBOTS:
        raise ModelError(
            f"there is no robot {name!r}. There are: {', '.join(ROBOTS)}. Read yours from TOML, CSV or URDF."
        )
    return ROBOTS[name]()
