"""The numbered equations (8.23)-(8.27) of the source on dynamics as identities of the planar robot's models."""

import sympy
from sympy import cos, sin

from mechsmith.symbolic.parallel.planar_identities import CHAINS, column, make_identity, ranges
from mechsmith.symbolic.statement import Scope, Side, Statement

# Kinematic definitions that statements treat as given: what is said of torques holds whatever their values are.
_JACOBIAN = tuple(f"{row}_{axis}_{i}" for i in CHAINS for row in ("drive", "swing") for axis in "xy")
_CHAIN = tuple(
    f"{name}_{i}"
    for i in CHAINS
    for name in ("q", "s", "q_rate", "s_rate", "q_acceleration", "s_acceleration")
)


def _statement(
    scope: Scope, left: Side, right: Side, free: tuple[str, ...] = (), **intervals: tuple[float, float]
) -> Statement:
    """Return a statement in which the definitions `free` are varied freely."""
    result = ranges(scope)
    result |= {scope.name(f"{axis}_rate"): (0.05, 0.4) for axis in "xy"}
    result |= {scope.name(f"{axis}_acceleration"): (-2.0, 2.0) for axis in "xy"}
    result |= {scope.name(name): (-2.0, 2.0) for name in free}
    return Statement(left, right, {}, result | {scope.name(name): v for name, v in intervals.items()})


def _chain_torques(scope: Scope) -> Statement:
    # Lagrange's equations of T = (alpha dq^2 + beta ds^2)/2 + gamma cos(q - s) dq ds, differentiated with respect to time.
    left, right = [], []
    for i in CHAINS:
        alpha, beta, gamma, q, s, qd, sd, qdd, sdd = (
            scope[f"{name}_{i}"]
            for name in (
                "alpha",
                "beta",
                "gamma",
                "q",
                "s",
                "q_rate",
                "s_rate",
                "q_acceleration",
                "s_acceleration",
            )
        )
        energy = (alpha * qd**2 + beta * sd**2) / 2 + gamma * cos(q - s) * qd * sd
        for angle, rate, name in ((q, qd, "drive_torque"), (s, sd, "swing_torque")):
            momentum = sympy.diff(energy, rate)
            change = sum(sympy.diff(momentum, v) * r for v, r in ((q, qd), (s, sd), (qd, qdd), (sd, sdd)))
            left.append(scope.expand(scope[f"{name}_{i}"], keep=_CHAIN))
            right.append(change - sympy.diff(energy, angle))
    return _statement(scope, column(left), column(right), _CHAIN)


def _accelerations(scope: Scope) -> Statement:
    # The twice differentiated loop: l_a (n(q) q'' - u(q) q'^2) + l_b (n(s) s'' - u(s) s'^2) is the point's acceleration.
    # Loops close for signs of exactly one.
    exact = {scope[f"mode_{i}"]: sympy.Integer(1) for i in CHAINS}
    left, right = [], []
    for i in CHAINS:
        total = sympy.zeros(2, 1)
        for link, angle in (("arm", "q"), ("distal", "s")):
            at, rate, acceleration = (scope[f"{angle}{part}_{i}"] for part in ("", "_rate", "_acceleration"))
            along, across = sympy.Matrix([cos(at), sin(at)]), sympy.Matrix([-sin(at), cos(at)])
            total += scope[f"{link}_{i}"] * (across * acceleration - along * rate**2)
        left += [scope.expand(entry).xreplace(exact) for entry in total]
        right += [scope[f"{axis}_acceleration"] for axis in "xy"]
    return _statement(scope, column(left), column(right))


def _friction(scope: Scope) -> Statement:
    left, right = [], []
    for i in CHAINS:
        rate = scope[f"q_rate_{i}"]
        friction = scope.expand(scope[f"friction_{i}"], keep=_CHAIN)
        for sign, word in ((1, "plus"), (-1, "minus")):
            left.append(friction.xreplace({rate: sign * sympy.Abs(rate)}))
            right.append(
                sign * (scope[f"coulomb_{word}_{i}"] + scope[f"viscous_{word}_{i}"] * sympy.Abs(rate))
            )
    return _statement(scope, column(left), column(right), _CHAIN)


def _projected(scope: Scope) -> Statement:
    # Whatever the weights and the preload are, the torques make the force: S^T (tau - f) = F.
    kept = (*_JACOBIAN, "force_x", "force_y", *(f"friction_{i}" for i in CHAINS))
    tau = [scope.expand(scope.expression(f"torque_{i}"), keep=kept) for i in CHAINS]
    left = [
        sympy.Add(
            *(
                scope[f"drive_{a}_{i}"] * (t - scope[f"friction_{i}"])
                for i, t in zip(CHAINS, tau, strict=True)
            )
        )
        for a in "xy"
    ]
    return _statement(scope, column(left), column([scope["force_x"], scope["force_y"]]), kept)


def _least_norm(scope: Scope) -> Statement:
    # With equal weights and no preload the torques less friction have no share along n: the pseudo-inverse, (8.25).
    kept = (*_JACOBIAN, "force_x", "force_y")
    equal = {scope[f"weight_{i}"]: sympy.Integer(1) for i in CHAINS}
    left = sympy.Add(
        *(
            scope.expand(scope[f"least_{i}"] * scope[f"internal_{i}"], keep=kept).xreplace(equal)
            for i in CHAINS
        )
    )
    return _statement(scope, left, sympy.Integer(0), kept)


def _least_norm_printed(scope: Scope) -> Statement:
    # Printed as the torques of any motion: an internal torque would have to be absent.
    kept = (*_JACOBIAN, "force_x", "force_y", *(f"friction_{i}" for i in CHAINS))
    left, right = [], []
    for i in CHAINS:
        left.append(scope.expand(scope.expression(f"torque_{i}"), keep=kept))
        right.append(scope.expand(scope[f"least_{i}"] + scope[f"friction_{i}"], keep=kept))
    return _statement(scope, column(left), column(right), kept, preload=(0.1, 1.0))


def _inertia(scope: Scope) -> list[sympy.Symbol]:
    return [scope[f"{name}_{i}"] for i in CHAINS for name in ("alpha", "beta", "gamma")]


def _regressor(scope: Scope) -> Statement:
    force = sympy.Matrix([scope.expand(scope[f"force_{a}"], keep=(*_CHAIN, *_JACOBIAN)) for a in "xy"])
    parameters = _inertia(scope)
    linear = force.jacobian(parameters) * sympy.Matrix(parameters)
    return _statement(scope, force, linear, (*_CHAIN, *_JACOBIAN))


def _null_vectors(scope: Scope) -> Statement:
    # A point mass at the platform's point can belong to any chain: (l_a^2, l_b^2, l_a l_b) in one less that in another.
    left = []
    # Loops close for signs of exactly one.
    exact = {scope[f"mode_{i}"]: sympy.Integer(1) for i in CHAINS}
    for axis in "xy":
        force = scope.expand(scope[f"force_{axis}"])
        shares = []
        for i in CHAINS:
            arm, distal = scope[f"arm_{i}"], scope[f"distal_{i}"]
            shares.append(
                sympy.diff(force, scope[f"alpha_{i}"]) * arm**2
                + sympy.diff(force, scope[f"beta_{i}"]) * distal**2
                + sympy.diff(force, scope[f"gamma_{i}"]) * arm * distal
            )
        left += [(shares[0] - share).xreplace(exact) for share in shares[1:]]
    return _statement(scope, column(left), sympy.zeros(4, 1))


def _point_mass(scope: Scope) -> Statement:
    # Such a set of parameters is a mass of 1 kg at the point: its force is the point's acceleration.
    exact = {scope[f"mode_{i}"]: sympy.Integer(1) for i in CHAINS}
    left = []
    for axis in "xy":
        force = scope.expand(scope[f"force_{axis}"])
        arm, distal = scope["arm_1"], scope["distal_1"]
        share = (
            sympy.diff(force, scope["alpha_1"]) * arm**2
            + sympy.diff(force, scope["beta_1"]) * distal**2
            + sympy.diff(force, scope["gamma_1"]) * arm * distal
        )
        left.append(share.xreplace(exact))
    return _statement(scope, column(left), column([scope["x_acceleration"], scope["y_acceleration"]]))


def _white(scope: Scope) -> Statement:
    # The two rows times S, over the Cholesky factor: their product with their transpose is the identity.
    kept = _JACOBIAN
    rows = sympy.Matrix(
        [
            [
                sympy.diff(
                    scope.expand(scope.expression(f"whitened_{k}"), keep=(*kept, *_CHAIN)),
                    scope[f"torque_{i}"],
                )
                for i in CHAINS
            ]
            for k in (1, 2)
        ]
    )
    return _statement(scope, rows * rows.T, sympy.eye(2), kept)


def _no_internal(scope: Scope) -> Statement:
    kept = _JACOBIAN
    sx, sy = ([scope[f"drive_{a}_{i}"] for i in CHAINS] for a in "xy")
    null = sympy.Matrix(sx).cross(sympy.Matrix(sy))
    left = [
        sympy.Add(
            *(
                sympy.diff(
                    scope.expand(scope.expression(f"whitened_{k}"), keep=(*kept, *_CHAIN)),
                    scope[f"torque_{i}"],
                )
                * null[i - 1]
                for i in CHAINS
            )
        )
        for k in (1, 2)
    ]
    return _statement(scope, column(left), sympy.zeros(2, 1), kept)


def _rows_printed(scope: Scope) -> Statement:
    # (8.27) as printed takes three rows a sample for equations: an internal torque would have to leave them unchanged.
    kept = (*_JACOBIAN, *_CHAIN)
    sx, sy = ([scope[f"drive_{a}_{i}"] for i in CHAINS] for a in "xy")
    null = sympy.Matrix(sx).cross(sympy.Matrix(sy))
    left = [
        sympy.Add(
            *(
                sympy.diff(scope.expand(scope.expression(f"excess_{k}"), keep=kept), scope[f"torque_{i}"])
                * null[i - 1]
                for i in CHAINS
            )
        )
        for k in CHAINS
    ]
    return _statement(scope, column(left), sympy.zeros(3, 1), kept)


def _energy(scope: Scope) -> Statement:
    # The kinetic energy at the point is that of the chains.
    kept = ("cosine_1", "cosine_2", "cosine_3", *_JACOBIAN)
    left = scope.expand(scope.expression("kinetic_energy"), keep=kept)
    right = sympy.Integer(0)
    for i in CHAINS:
        qd, sd = (scope.expand(scope[f"{name}_{i}"], keep=kept) for name in ("q_rate", "s_rate"))
        right += (scope[f"alpha_{i}"] * qd**2 + scope[f"beta_{i}"] * sd**2) / 2
        right += scope[f"gamma_{i}"] * scope[f"cosine_{i}"] * qd * sd
    return _statement(scope, left, right, kept)


def _power(scope: Scope) -> Statement:
    # d/dt of the kinetic energy is the motors' power: M_e and C_e belong together.
    exact = {scope[f"mode_{i}"]: sympy.Integer(1) for i in CHAINS}

    def fix(expression: sympy.Expr) -> sympy.Expr:
        return scope.expand(expression).xreplace(exact)

    kinetic = fix(scope.expression("kinetic_energy"))
    vx, vy = scope["x_rate"], scope["y_rate"]
    force = [fix(scope.expression(f"{a}_rate")) for a in "xy"]
    drift = sympy.diff(kinetic, scope["x"]) * vx + sympy.diff(kinetic, scope["y"]) * vy
    # M_e dv/dt is the force, so dT/dv . dv/dt = v . force.
    left = drift + vx * force[0] + vy * force[1]
    return _statement(scope, left, fix(scope.expression("power")))


TORQUE_IDENTITIES = (
    make_identity("(8.23)", "identity", _chain_torques, "a chain's torques, by Lagrange's equations"),
    make_identity("(8.23) accelerations", "identity", _accelerations, "the loop differentiated twice"),
    make_identity("(8.24)", "definition", _friction, "friction in either direction"),
    make_identity("(8.25)", "identity", _projected, "S^T (tau - f) = F for every distribution"),
    make_identity(
        "(8.25) least norm", "identity", _least_norm, "equal weights, no preload: no internal torque"
    ),
    make_identity(
        "(8.25) as printed", "identity", _least_norm_printed, "the internal torque is missing", "refuted"
    ),
    make_identity("(8.26)", "identity", _regressor, "linear in the inertia parameters"),
    make_identity("(8.27)", "identity", _null_vectors, "two null vectors: rank 19 of 21, not full"),
    make_identity("(8.27) mass", "identity", _point_mass, "what they move is a mass at the platform's point"),
)
BALANCE_IDENTITIES = (
    make_identity("(8.27) white", "identity", _white, "white torque noise stays white in the two rows"),
    make_identity("(8.27) two rows", "identity", _no_internal, "no internal torque changes them"),
    make_identity(
        "(8.27) as printed", "identity", _rows_printed, "an internal torque changes the three rows", "refuted"
    ),
)
MOTION_IDENTITIES = (
    make_identity("energy", "identity", _energy, "kinetic energy of the chains and at the point"),
    make_identity("power", "identity", _power, "the kinetic energy grows by the torques' power"),
)
