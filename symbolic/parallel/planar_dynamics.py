"""Dynamics of the planar robot with three 2R chains and three motors, (8.23)-(8.27), horizontal.

The platform is cut off at its point, each chain is a planar double pendulum in absolute angles with three inertia parameters,
    alpha = J_a + m_a r_a^2 + m_b l_a^2,   beta = J_b + m_b r_b^2,   gamma = m_b l_a r_b,
and the chains are projected on the point's coordinates. Motors' torques tau and friction f then obey two equations,

    S^T (tau - f) = F(O, dO/dt, d^2O/dt^2),

which leave one combination of the three torques, the internal torque n with S^T n = 0, to the controller.
"""

import sympy
from sympy import Piecewise, cos, sqrt

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.parallel.dynamics_identities import (
    BALANCE_IDENTITIES,
    MOTION_IDENTITIES,
    TORQUE_IDENTITIES,
)
from mechsmith.symbolic.parallel.mechanisms import LECTURE
from mechsmith.symbolic.parallel.planar import (
    CHAINS,
    ChainSymbols,
    geometry,
    inverse_definitions,
    jacobian_definitions,
    modes,
    point,
    symbol,
)
from mechsmith.symbolic.quantity import Quantity

_INERTIA = {
    "alpha": (0.0817, 0.0795, 0.0836),
    "beta": (0.0189, 0.0184, 0.0193),
    "gamma": (0.0293, 0.0288, 0.0299),
}
_FRICTION = {
    "coulomb_plus": (1.05, 0.88, 1.15),
    "viscous_plus": (0.42, 0.37, 0.45),
    "coulomb_minus": (0.95, 1.02, 1.08),
    "viscous_minus": (0.48, 0.40, 0.41),
}
# Plausible numbers: the source's tables are lost.


def inertias() -> tuple[Quantity, ...]:
    """Return alpha, beta and gamma of each chain, kg m^2."""
    meaning = {"alpha": "about the base", "beta": "of the distal link about the elbow", "gamma": "coupling"}
    return tuple(
        Quantity(
            f"{name}_{i}",
            "kg*m^2",
            description=f"inertia {meaning[name]}, chain {i}",
            nominal=values[i - 1],
            lower=-10.0,
            upper=10.0,
        )
        for i in CHAINS
        for name, values in _INERTIA.items()
    )


def frictions() -> tuple[Quantity, ...]:
    """Return Coulomb (N m) and viscous (N m s/rad) friction of each motor, for either direction."""
    return tuple(
        Quantity(
            f"{name}_{i}",
            "N*m*s/rad" if name.startswith("viscous") else "N*m",
            description=f"{name.replace('_', ' ')}, motor {i}",
            nominal=values[i - 1],
            lower=-100.0,
            upper=100.0,
        )
        for i in CHAINS
        for name, values in _FRICTION.items()
    )


def weights() -> tuple[Quantity, ...]:
    """Return the weights by which torques are distributed to the motors."""
    return tuple(
        Quantity(
            f"weight_{i}", "", description=f"cost of motor {i}'s torque", nominal=1.0, lower=1e-3, upper=1e3
        )
        for i in CHAINS
    )


def motion(*, accelerations: bool = True) -> tuple[Quantity, ...]:
    """Return the velocity and acceleration of the platform's point."""
    result = [Quantity(f"{axis}_rate", "m/s", description="velocity of the platform") for axis in "xy"]
    if accelerations:
        result += [
            Quantity(f"{axis}_acceleration", "m/s^2", description="acceleration of the platform")
            for axis in "xy"
        ]
    return tuple(result)


def torques() -> tuple[Quantity, ...]:
    """Return the motors' torques, N m."""
    return tuple(Quantity(f"torque_{i}", "N*m", description=f"torque of motor {i}") for i in CHAINS)


def rate_definitions() -> dict[Quantity, sympy.Expr]:
    """Return each chain's velocities, and its accelerations where the point has none."""
    result: dict[Quantity, sympy.Expr] = {}
    vx, vy = symbol("x_rate"), symbol("y_rate")
    for i in CHAINS:
        c = ChainSymbols(i)
        arm, distal, qr, sr, cosine = c["arm"], c["distal"], c["q_rate"], c["s_rate"], c["cosine"]
        result |= {
            Quantity(qr, "rad/s", description="velocity of the driven link"): c["drive_x"] * vx
            + c["drive_y"] * vy,
            Quantity(sr, "rad/s", description="velocity of the distal link"): c["swing_x"] * vx
            + c["swing_y"] * vy,
            Quantity(cosine, "", description="cosine of the elbow angle"): cos(c["s"] - c["q"]),
            # Twice differentiated loop, dotted with the other link's direction.
            Quantity(c["q_bias"], "rad/s^2"): (arm * cosine * qr**2 + distal * sr**2) / (arm * c["bend"]),
            Quantity(c["s_bias"], "rad/s^2"): -(arm * qr**2 + distal * cosine * sr**2) / (distal * c["bend"]),
        }
    return result


def force_definitions() -> dict[Quantity, sympy.Expr]:
    """Return (8.23), each chain's torques of inertia, and their projection, the force F on the platform's point."""
    result: dict[Quantity, sympy.Expr] = {}
    ax, ay = symbol("x_acceleration"), symbol("y_acceleration")
    for i in CHAINS:
        c = ChainSymbols(i)
        qa, sa, gamma = c["q_acceleration"], c["s_acceleration"], c["gamma"]
        result |= {
            Quantity(qa, "rad/s^2"): c["drive_x"] * ax + c["drive_y"] * ay + c["q_bias"],
            Quantity(sa, "rad/s^2"): c["swing_x"] * ax + c["swing_y"] * ay + c["s_bias"],
            Quantity(c["drive_torque"], "N*m", description="torque of inertia on the driven link"): c["alpha"]
            * qa
            + gamma * (c["cosine"] * sa - c["bend"] * c["s_rate"] ** 2),
            Quantity(c["swing_torque"], "N*m", description="torque of inertia on the distal link"): c["beta"]
            * sa
            + gamma * (c["cosine"] * qa + c["bend"] * c["q_rate"] ** 2),
        }
    for axis in "xy":
        result[Quantity(f"force_{axis}", "N", description="force of inertia at the platform's point")] = (
            sympy.Add(
                *(
                    ChainSymbols(i)[f"drive_{axis}"] * ChainSymbols(i)["drive_torque"]
                    + ChainSymbols(i)[f"swing_{axis}"] * ChainSymbols(i)["swing_torque"]
                    for i in CHAINS
                )
            )
        )
    return result


def friction_definitions() -> dict[Quantity, sympy.Expr]:
    """Return (8.24): Coulomb and viscous friction that depend on the direction; at rest as in positive direction."""
    result: dict[Quantity, sympy.Expr] = {}
    for i in CHAINS:
        c = ChainSymbols(i)
        rate = c["q_rate"]
        result[Quantity(c["friction"], "N*m", description=f"friction of motor {i}")] = Piecewise(
            (c["coulomb_plus"] + c["viscous_plus"] * rate, rate >= 0),
            (-c["coulomb_minus"] + c["viscous_minus"] * rate, True),
        )
    return result


def distribution_definitions(*, weighted: bool) -> dict[Quantity, sympy.Expr]:
    """Return the torques of least weighted sum of squares that make the force F, and the internal torques."""
    rows = [(ChainSymbols(i)["drive_x"], ChainSymbols(i)["drive_y"]) for i in CHAINS]
    cost = [symbol(f"weight_{i}") if weighted else sympy.Integer(1) for i in CHAINS]
    xx, xy, yy, det = (symbol(f"normal_{name}") for name in ("xx", "xy", "yy", "det"))
    fx, fy = symbol("force_x"), symbol("force_y")
    px, py = symbol("multiplier_x"), symbol("multiplier_y")
    result: dict[Quantity, sympy.Expr] = {
        Quantity(xx, "1/m^2"): sympy.Add(*(a**2 / w for (a, _), w in zip(rows, cost, strict=True))),
        Quantity(xy, "1/m^2"): sympy.Add(*(a * b / w for (a, b), w in zip(rows, cost, strict=True))),
        Quantity(yy, "1/m^2"): sympy.Add(*(b**2 / w for (_, b), w in zip(rows, cost, strict=True))),
        Quantity(det, "1/m^4"): xx * yy - xy**2,
        Quantity(px, "N*m^2"): (yy * fx - xy * fy) / det,
        Quantity(py, "N*m^2"): (xx * fy - xy * fx) / det,
    }
    for i, (a, b), w in zip(CHAINS, rows, cost, strict=True):
        result[Quantity(f"least_{i}", "N*m", description="torque of least norm")] = (a * px + b * py) / w
    return result


def internal_definitions() -> dict[Quantity, sympy.Expr]:
    """Return n, the unit null vector of S^T."""
    rows = [(ChainSymbols(i)["drive_x"], ChainSymbols(i)["drive_y"]) for i in CHAINS]
    result: dict[Quantity, sympy.Expr] = {
        Quantity(f"internal_{i}", "1/m^2"): rows[j][0] * rows[k][1] - rows[k][0] * rows[j][1]
        for i, (j, k) in zip(CHAINS, ((1, 2), (2, 0), (0, 1)), strict=True)
    }
    squares = sympy.Add(*(symbol(f"internal_{i}") ** 2 for i in CHAINS))
    return result | {Quantity("internal_squared", "1/m^4"): squares}


def make_planar_inverse_dynamics() -> Model:
    """Return the motors' torques for a motion of the platform's point, (8.25): weighted least norm plus a given preload.

    With weights of 1 and no preload this is the source's (8.25), the pseudo-inverse; the weights distribute the force
    otherwise, and `preload` (N m) is the share of the internal torque n. Torques are linear in inertia and friction
    parameters.
    """
    preload = Quantity("preload", "N*m", description="internal torque, along the null vector of S^T")
    outputs: dict[Quantity, object] = {
        Quantity(f"torque_{i}", "N*m", description=f"torque of motor {i}"): symbol(f"least_{i}")
        + symbol("preload") * symbol(f"internal_{i}") / sqrt(symbol("internal_squared"))
        + symbol(f"friction_{i}")
        for i in CHAINS
    }
    outputs[Quantity("force", "N", (2,), description="force of inertia at the platform's point")] = [
        symbol("force_x"),
        symbol("force_y"),
    ]
    return Model(
        name="planar_inverse_dynamics",
        inputs=(*point(), *motion(), *modes(), preload),
        parameters=(*geometry(), *inertias(), *frictions(), *weights()),
        definitions={
            **_kinematic_definitions(),
            **force_definitions(),
            **friction_definitions(),
            **distribution_definitions(weighted=True),
            **internal_definitions(),
        },
        outputs=outputs,
        identities=TORQUE_IDENTITIES,
        description="Inverse dynamics of the planar robot with three 2R chains, redundantly actuated.",
        references=(LECTURE,),
    )


def make_planar_balance() -> Model:
    """Return what is left of the equations of motion for measured motions and torques: residuals for identification.

    `whitened_1`, `whitened_2` (N m): S^T (tau - f) - F, two equations, divided by the Cholesky factor of S^T S, so that white noise
    of the torques stays white. No internal torque changes them. `excess_i` (N m): the source's three rows (8.27), tau - f -
    (S^T)^+ F, which are biased by every internal torque. All are linear in inertia and friction parameters.
    """
    measured = [symbol(f"torque_{i}") for i in CHAINS]
    balance = {
        Quantity(f"balance_{axis}", "N", description="S^T (tau - f) - F"): sympy.Add(
            *(
                ChainSymbols(i)[f"drive_{axis}"] * (tau - ChainSymbols(i)["friction"])
                for i, tau in zip(CHAINS, measured, strict=True)
            )
        )
        - symbol(f"force_{axis}")
        for axis in "xy"
    }
    first, second = symbol("first"), symbol("second")
    xx, xy, det = (symbol(f"normal_{name}") for name in ("xx", "xy", "det"))
    whitened = {
        Quantity(first, "N*m"): symbol("balance_x") / sqrt(xx),
        Quantity(second, "N*m"): (symbol("balance_y") - xy / xx * symbol("balance_x")) / sqrt(det / xx),
    }
    outputs: dict[Quantity, object] = {
        Quantity("whitened_1", "N*m", description="balance of forces, white"): first,
        Quantity("whitened_2", "N*m", description="balance of forces, white"): second,
        Quantity("task_x", "N", description="balance of forces"): symbol("balance_x"),
        Quantity("task_y", "N", description="balance of forces"): symbol("balance_y"),
    }
    for i, tau in zip(CHAINS, measured, strict=True):
        outputs[Quantity(f"excess_{i}", "N*m", description="torque less that of least norm and friction")] = (
            tau - symbol(f"friction_{i}") - symbol(f"least_{i}")
        )
    return Model(
        name="planar_balance",
        inputs=(*point(), *motion(), *modes(), *torques()),
        parameters=(*geometry(), *inertias(), *frictions()),
        definitions={
            **_kinematic_definitions(),
            **force_definitions(),
            **friction_definitions(),
            **distribution_definitions(weighted=False),
            **balance,
            **whitened,
        },
        outputs=outputs,
        identities=BALANCE_IDENTITIES,
        description="Balance of forces of the planar robot for measured motions and torques.",
        references=(LECTURE,),
    )


def make_planar_dynamics() -> Model:
    """Return the equations of motion of the planar robot in the coordinates of its point: M_e d^2O/dt^2 = S^T tau - C_e dO/dt.

    The working mode is a parameter: it can't change in motion. Torques are those on the driven links: friction is subtracted by
    whoever connects a friction model to `driven_rate_i`, since (8.24) says nothing of a motor that sticks.
    """
    definitions = _kinematic_definitions()
    mass = _mass_matrix()
    for name, entry in (("xx", mass[0, 0]), ("xy", mass[0, 1]), ("yy", mass[1, 1])):
        definitions[Quantity(f"mass_{name}", "kg", description="inertia seen at the platform's point")] = (
            entry
        )
    xx, xy, yy = (symbol(f"mass_{name}") for name in ("xx", "xy", "yy"))
    vx, vy = symbol("x_rate"), symbol("y_rate")
    kinetic = (xx * vx**2 + 2 * xy * vx * vy + yy * vy**2) / 2
    force = [
        sympy.Add(*(ChainSymbols(i)[f"drive_{a}"] * symbol(f"torque_{i}") for i in CHAINS)) - _bias_force(a)
        for a in "xy"
    ]
    outputs = {
        Quantity("kinetic_energy", "J"): kinetic,
        Quantity("power", "W", description="of the torques"): sympy.Add(
            *(symbol(f"torque_{i}") * symbol(f"q_rate_{i}") for i in CHAINS)
        ),
    }
    for i in CHAINS:
        outputs[Quantity(f"driven_rate_{i}", "rad/s", description=f"velocity of motor {i}")] = symbol(
            f"q_rate_{i}"
        )
    return Model(
        name="planar_dynamics",
        states=(*point(), *motion(accelerations=False)),
        inputs=torques(),
        parameters=(*geometry(), *modes(), *inertias()),
        definitions=definitions,
        mass=sympy.Matrix([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, xx, xy], [0, 0, xy, yy]]),
        derivatives={"x": vx, "y": vy, "x_rate": force[0], "y_rate": force[1]},
        outputs=outputs,
        identities=MOTION_IDENTITIES,
        description="Equations of motion of the planar robot with three 2R chains, redundantly actuated.",
        references=(LECTURE,),
    )


def _kinematic_definitions() -> dict[Quantity, sympy.Expr]:
    return {**inverse_definitions(), **jacobian_definitions(), **rate_definitions()}


def _mass_matrix() -> sympy.Matrix:
    """Return M_e, the sum over chains of W^T M W."""
    total = sympy.zeros(2, 2)
    for i in CHAINS:
        c = ChainSymbols(i)
        projection = sympy.Matrix([[c["drive_x"], c["drive_y"]], [c["swing_x"], c["swing_y"]]])
        coupling = c["gamma"] * c["cosine"]
        total += projection.T * sympy.Matrix([[c["alpha"], coupling], [coupling, c["beta"]]]) * projection
    return total


def _bias_force(axis: str) -> sympy.Expr:
    """Return the force of inertia at the point where its acceleration is zero: C_e dO/dt."""
    terms = []
    for i in CHAINS:
        c = ChainSymbols(i)
        drive = c["alpha"] * c["q_bias"] + c["gamma"] * (
            c["cosine"] * c["s_bias"] - c["bend"] * c["s_rate"] ** 2
        )
        swing = c["beta"] * c["s_bias"] + c["gamma"] * (
            c["cosine"] * c["q_bias"] + c["bend"] * c["q_rate"] ** 2
        )
        terms.append(c[f"drive_{axis}"] * drive + c[f"swing_{axis}"] * swing)
    return sympy.Add(*terms)
