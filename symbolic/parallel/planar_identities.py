"""The numbered equations (8.1)-(8.12) of the source on the planar robot as identities of its kinematic models.

The source is garbled in places; what it prints wrongly is entered as printed, and must be refuted.
"""

from collections.abc import Callable, Sequence

import sympy
from sympy import atan2, cos, sin, sqrt

from mechsmith.symbolic.parallel.mechanisms import BASES, LECTURE
from mechsmith.symbolic.statement import Identity, IdentityKind, Scope, Side, Statement, Status

CHAINS = (1, 2, 3)


def ranges(scope: Scope) -> dict[str, tuple[float, float]]:
    """Return intervals about the source's geometry in which every chain reaches every point."""
    result = {scope.name("x"): (0.26, 0.32), scope.name("y"): (0.22, 0.28)}
    for i, base in zip(CHAINS, BASES, strict=True):
        result |= {scope.name(f"base_{i}_{a}"): (v - 0.01, v + 0.01) for a, v in zip("xy", base, strict=True)}
        result |= {scope.name(f"{link}_{i}"): (0.23, 0.26) for link in ("arm", "distal")}
        result[scope.name(f"driven_angle_{i}")] = {1: (0.7, 1.1), 2: (2.8, 3.2), 3: (-1.4, -0.9)}[i]
        # The equations hold for any sign, and the working modes are the two values +1 and -1 of it.
        result[scope.name(f"mode_{i}")] = (0.999, 1.001)
    return result


def statement(scope: Scope, left: Side, right: Side, units: dict[str, str] | None = None) -> Statement:
    """Return a statement within `ranges`."""
    return Statement(left, right, units or {}, ranges(scope))


def make_identity(
    name: str,
    kind: IdentityKind,
    function: Callable[[Scope], Statement],
    note: str,
    expected: Status = "supported",
) -> Identity:
    """Return an identity of the source."""
    return Identity(name, kind, function, expected, f"{LECTURE.split(',')[0]}: {note}")


def column(entries: Sequence[sympy.Expr]) -> sympy.Matrix:
    """Return a column of expressions."""
    return sympy.Matrix(list(entries))


def _exact_mode(scope: Scope, expression: sympy.Expr) -> sympy.Expr:
    """Return an expression, definitions put in, in working mode a: loops close only for signs of exactly one."""
    return scope.expand(expression).xreplace({scope[f"mode_{i}"]: sympy.Integer(1) for i in CHAINS})


def _loop(scope: Scope) -> Statement:
    left, right = [], []
    for i in CHAINS:
        q, s, arm, distal = (scope[f"{n}_{i}"] for n in ("q", "s", "arm", "distal"))
        for axis, function in (("x", cos), ("y", sin)):
            left.append(
                _exact_mode(scope, scope[f"base_{i}_{axis}"] + arm * function(q) + distal * function(s))
            )
            right.append(scope[axis])
    return statement(scope, column(left), column(right))


def _elbow(scope: Scope) -> Statement:
    left = [scope.expand(scope[f"elbow_{a}_{i}"]) for i in CHAINS for a in "xy"]
    right = [scope.expand(scope[f"arm_{i}"] * f(scope[f"q_{i}"])) for i in CHAINS for f in (cos, sin)]
    return statement(scope, column(left), column(right))


def _distance(scope: Scope) -> Statement:
    left = [
        _exact_mode(
            scope,
            (scope[f"offset_x_{i}"] - scope[f"elbow_x_{i}"]) ** 2
            + (scope[f"offset_y_{i}"] - scope[f"elbow_y_{i}"]) ** 2,
        )
        for i in CHAINS
    ]
    return statement(scope, column(left), column([scope[f"distal_{i}"] ** 2 for i in CHAINS]))


def _workspace(scope: Scope) -> Statement:
    # (8.5) with <=: the cosine of the opening lies within [-1, 1] just where |reach - arm| <= distal <= ...
    # stated for equal links: reach <= 2 l means 1 - cos^2 >= 0, that is 4 l^2 - reach^2 = (2 l sin(opening))^2.
    left, right = [], []
    for i in CHAINS:
        link = {scope[f"distal_{i}"]: scope[f"arm_{i}"]}
        arm = scope[f"arm_{i}"]
        left.append(scope.expand(4 * arm**2 - scope[f"reach_squared_{i}"]).xreplace(link))
        right.append(scope.expand((2 * arm * sin(scope[f"opening_{i}"])) ** 2).xreplace(link))
    return statement(scope, column(left), column(right))


def _workspace_printed(scope: Scope) -> Statement:
    # Printed as an equation: every point would lie on the boundary.
    left = [scope.expand(scope[f"reach_squared_{i}"]) for i in CHAINS]
    return statement(scope, column(left), column([4 * scope[f"arm_{i}"] ** 2 for i in CHAINS]))


def _opening(scope: Scope) -> Statement:
    left, right = [], []
    for i in CHAINS:
        arm, distal, r2 = (scope[f"{n}_{i}"] for n in ("arm", "distal", "reach_squared"))
        reach_angle = atan2(scope[f"offset_y_{i}"], scope[f"offset_x_{i}"])
        left.append(_exact_mode(scope, cos(scope[f"q_{i}"] - reach_angle)))
        right.append(scope.expand((r2 + arm**2 - distal**2) / (2 * arm * sqrt(r2))))
    return statement(scope, column(left), column(right))


def _opening_unequal(scope: Scope) -> Statement:
    # Printed is |A O| / (2 l), for equal links.
    base = _opening(scope)
    right = [scope.expand(sqrt(scope[f"reach_squared_{i}"]) / (2 * scope[f"arm_{i}"])) for i in CHAINS]
    return statement(scope, base.left, column(right))


def _opening_printed(scope: Scope) -> Statement:
    unequal = _opening_unequal(scope)
    equal = {scope[f"distal_{i}"]: scope[f"arm_{i}"] for i in CHAINS}
    return statement(scope, unequal.left.xreplace(equal), unequal.right)


def _driven(scope: Scope) -> Statement:
    left, right = [], []
    for i in CHAINS:
        left.append(scope.expand(scope[f"q_{i}"]))
        reach_angle = atan2(scope["y"] - scope[f"base_{i}_y"], scope["x"] - scope[f"base_{i}_x"])
        right.append(scope.expand(reach_angle + scope[f"mode_{i}"] * scope[f"opening_{i}"]))
    return statement(scope, column(left), column(right))


def _distal(scope: Scope) -> Statement:
    left = [scope.expand(scope[f"s_{i}"]) for i in CHAINS]
    right = [
        scope.expand(
            atan2(
                scope["y"] - scope[f"base_{i}_y"] - scope[f"arm_{i}"] * sin(scope[f"q_{i}"]),
                scope["x"] - scope[f"base_{i}_x"] - scope[f"arm_{i}"] * cos(scope[f"q_{i}"]),
            )
        )
        for i in CHAINS
    ]
    return statement(scope, column(left), column(right))


def _rates(scope: Scope, angle: str, row: str) -> Statement:
    left, right = [], []
    for i in CHAINS:
        expression = _exact_mode(scope, scope[f"{angle}_{i}"])
        for axis in "xy":
            left.append(sympy.diff(expression, scope[axis]))
            right.append(_exact_mode(scope, scope[f"{row}_{axis}_{i}"]))
    return statement(scope, column(left), column(right))


def _driven_rates(scope: Scope) -> Statement:
    return _rates(scope, "q", "drive")


def _distal_rates(scope: Scope) -> Statement:
    return _rates(scope, "s", "swing")


def _normal(scope: Scope) -> sympy.Matrix:
    rows = sympy.Matrix(3, 2, [scope[f"drive_{a}_{i}"] for i in CHAINS for a in "xy"])
    return rows.T * rows


def _bounds(scope: Scope) -> Statement:
    # (8.11) upper bound and (8.12): both bounds are eigenvalues of S^T S: their sum is its trace, their product its determinant.
    normal = _normal(scope)
    large, small = scope["largest_squared"], scope["smallest_squared"]
    left = [scope.expand(large + small), scope.expand(large * small)]
    right = [scope.expand(normal.trace()), scope.expand(normal.det())]
    return statement(scope, column(left), column(right))


def _bounds_printed(scope: Scope) -> Statement:
    # Printed: "square roots of the two singular values of S", so that con = sqrt(smax / smin).
    large, small = scope["largest_squared"], scope["smallest_squared"]
    left = scope.expand(scope.expression("eta"))
    return statement(scope, left, scope.expand((small / large) ** sympy.Rational(1, 4)))


def _lower_bound_printed(scope: Scope) -> Statement:
    # (8.11) states |S^T tau| >= smin |tau| for every tau; for the cross product of S's columns the left side is zero.
    rows = sympy.Matrix(3, 2, [scope[f"drive_{a}_{i}"] for i in CHAINS for a in "xy"])
    internal = rows[:, 0].cross(rows[:, 1])
    force = rows.T * internal
    left = scope.expand(force.dot(force))
    share = scope.expand(scope["smallest_squared"] * internal.dot(internal))
    # An inequality is refuted where the smaller side, less what it lacks, is not the larger one.
    return statement(scope, sympy.Max(left, share), left)


def _internal(scope: Scope) -> Statement:
    rows = sympy.Matrix(3, 2, [scope[f"drive_{a}_{i}"] for i in CHAINS for a in "xy"])
    force = rows.T * rows[:, 0].cross(rows[:, 1])
    return statement(scope, force.applyfunc(scope.expand), sympy.zeros(2, 1))


def _power(scope: Scope) -> Statement:
    x, y = scope.expand(scope.expression("x")), scope.expand(scope.expression("y"))

    def power(i: int) -> sympy.Expr:
        bx = scope[f"base_{i}_x"] + scope[f"arm_{i}"] * cos(scope[f"driven_angle_{i}"])
        by = scope[f"base_{i}_y"] + scope[f"arm_{i}"] * sin(scope[f"driven_angle_{i}"])
        return (x - bx) ** 2 + (y - by) ** 2 - scope[f"distal_{i}"] ** 2

    return statement(scope, column([power(1), power(2)]), column([power(2), power(3)]))


def _power_printed(scope: Scope) -> Statement:
    # That (8.4) satisfies (8.3) also for three measured angles that do not fit together.
    return statement(scope, scope.expand(scope.expression("excess")), sympy.Integer(0))


INVERSE_IDENTITIES = (
    make_identity("(8.1)", "identity", _loop, "loop closure of each chain"),
    make_identity("(8.2)", "definition", _elbow, "elbows"),
    make_identity("(8.3)", "identity", _distance, "distance of elbow and point"),
    make_identity("(8.5)", "identity", _workspace, "reach within twice the length: 4 l^2 - r^2 is a square"),
    make_identity(
        "(8.5) as printed", "identity", _workspace_printed, "an equation in place of <=", "refuted"
    ),
    make_identity("(8.6)", "identity", _opening, "law of cosines, generalised to unequal links"),
    make_identity("(8.6) as printed", "identity", _opening_printed, "equal links"),
    make_identity("(8.6) unequal", "identity", _opening_unequal, "as printed, for unequal links", "refuted"),
    make_identity("(8.7)", "definition", _driven, "angles of the driven links"),
    make_identity("(8.8)", "definition", _distal, "angles of the distal links"),
    make_identity("(8.9)", "identity", _driven_rates, "rows of S = dq/dO"),
    make_identity("(8.9) distal", "identity", _distal_rates, "rows of ds/dO"),
    make_identity("(8.10)", "identity", _internal, "the internal torques do no work: S^T n = 0"),
    make_identity(
        "(8.11) as printed",
        "identity",
        _lower_bound_printed,
        "lower bound, false in the null space",
        "refuted",
    ),
    make_identity("(8.12)", "identity", _bounds, "squared singular values of S are eigenvalues of S^T S"),
    make_identity(
        "(8.12) as printed", "definition", _bounds_printed, "square roots of singular values", "refuted"
    ),
)
FORWARD_IDENTITIES = (
    make_identity("(8.4)", "identity", _power, "equal powers with respect to the three circles"),
    make_identity(
        "(8.4) as printed", "identity", _power_printed, "measured angles need not close the loops", "refuted"
    ),
)
