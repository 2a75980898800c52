"""A ball on the flange held in sockets: the constraint that calibrates a chain with its own joint sensors alone."""

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.chain import AXES, Chain
from mechsmith.symbolic.serial.frames import lay_out
from mechsmith.symbolic.serial.kinematics import column, output_model, point_quantities
from mechsmith.symbolic.serial.let import Let


def make_ball_in_sockets(chain: Chain) -> Model:
    """Return by how much a ball on the flange misses the socket that holds it; two sockets at a known distance.

    Parameters
    ----------
    chain : Chain
        Inputs ``q_1``...; open what is to be calibrated (`Chain.opened`).

    Returns
    -------
    Model
        Input ``second``: 0 in the first socket, 1 in the second. Parameters: ``ball_x``... (m, flange axes), ``socket_x``...
        (m, base axes, of the first), ``spacing`` (m) and the direction ``azimuth``, ``elevation`` (rad) to the second.
        Outputs ``miss_x``... (m, base axes), which are zero, and ``place_x``..., of the ball's centre.
    """
    let = Let()
    frames = lay_out(chain, let)
    ball = point_quantities("ball", nominal=(0.0, 0.0, 0.0), text="centre of the ball in flange axes")
    socket = point_quantities("socket", nominal=(0.4, 0.0, 0.0), text="first socket in base axes")
    spacing = Quantity("spacing", "m", description="between the sockets", nominal=0.05, lower=0.0)
    azimuth = Quantity("azimuth", "rad", description="direction to the second socket, about z", nominal=0.0)
    elevation = Quantity("elevation", "rad", description="direction to the second socket, up", nominal=0.0)
    second = Quantity("second", "", description="0 in the first socket, 1 in the second", nominal=0.0)
    a, e = azimuth.elements[0], elevation.elements[0]
    flat = let("flat", "", sympy.cos(e))
    direction = let.matrix(
        "towards", "", sympy.Matrix([flat * sympy.cos(a), flat * sympy.sin(a), sympy.sin(e)])
    )
    held = column(socket) + second.elements[0] * spacing.elements[0] * direction
    place = let.matrix("centre", "m", frames.flange.point(column(ball)))
    outputs = {
        Quantity(f"miss_{axis}", "m", description="of the ball's centre, base axes"): value
        for axis, value in zip(AXES, place - held, strict=True)
    } | {
        Quantity(f"place_{axis}", "m", description="of the ball's centre, base axes"): value
        for axis, value in zip(AXES, place, strict=True)
    }
    return output_model(
        f"{chain.name}_ball_in_sockets",
        let,
        outputs,
        inputs=(*frames.coordinates, second),
        parameters=(*frames.geometry, *ball, *socket, spacing, azimuth, elevation),
        description="Miss of a ball on the flange held in one of two sockets.",
        references=chain.references,
    )
