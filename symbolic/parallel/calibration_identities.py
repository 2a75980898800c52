"""The numbered equations (8.13)-(8.22) of the source on self-calibration as identities of the residuals.

What they show beyond the source: angle sensors do not see a similarity of the whole robot, while the source's
cost (8.20) shrinks with it, so that its minimum runs away along what can't be determined.
"""

from collections.abc import Mapping

import sympy
from sympy import acos, atan, atan2, cos, sin, sqrt

from mechsmith.symbolic import graph
from mechsmith.symbolic.parallel.mechanisms import BASES
from mechsmith.symbolic.parallel.planar_identities import CHAINS, column, make_identity
from mechsmith.symbolic.statement import Scope, Side, Statement

_READINGS = (0.94, 3.03, -1.16)
# Points at which misfits are taken: the statements hold for any, so they are varied freely instead of being computed.
_POINTS = (("radical_x", "radical_y"), *((f"nearest_x_at_{k}", f"nearest_y_at_{k}") for k in range(3)))
_MIDDLE = ((0.27, 0.31), (0.23, 0.27))
_KEPT = tuple(name for pair in _POINTS for name in pair)


def _statement(
    scope: Scope,
    left: Side,
    right: Side,
    *,
    units: Mapping[str, str] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Statement:
    """Return a statement near readings that close the loops: the residuals are defined there."""
    result: dict[str, tuple[float, float]] = {}
    for i, base, reading in zip(CHAINS, BASES, _READINGS, strict=True):
        result |= {
            scope.name(f"base_{i}_{a}"): (v - 0.002, v + 0.002) for a, v in zip("xy", base, strict=True)
        }
        result |= {scope.name(f"{link}_{i}"): (0.242, 0.246) for link in ("arm_cos", "distal")}
        result[scope.name(f"arm_sin_{i}")] = (-0.002, 0.002)
        result[scope.name(f"reading_{i}")] = (reading - 0.01, reading + 0.01)
        # Working mode a; equations that hold for the sign itself hold for every number near it.
        result[scope.name(f"mode_{i}")] = (0.999, 1.001)
    return Statement(left, right, units or {}, {**result, **(ranges or {})})


def _free_points(scope: Scope) -> dict[str, tuple[float, float]]:
    """Return the intervals of the points that are varied freely."""
    return {scope.name(n): bounds for pair in _POINTS for n, bounds in zip(pair, _MIDDLE, strict=True)}


def _elbows(scope: Scope) -> Statement:
    left, right = [], []
    for i in CHAINS:
        lc, ls = scope[f"arm_cos_{i}"], scope[f"arm_sin_{i}"]
        angle, arm = scope[f"reading_{i}"] + atan2(ls, lc), sqrt(lc**2 + ls**2)
        for axis, function in (("x", cos), ("y", sin)):
            left.append(scope.expand(scope[f"center_{axis}_{i}"]))
            right.append(scope[f"base_{i}_{axis}"] + arm * function(angle))
    return _statement(scope, column(left), column(right))


def _errors(scope: Scope) -> list[sympy.Expr]:
    """Return (8.19) at the point of (8.4)."""
    errors = []
    for i in CHAINS:
        lc, ls, q = scope[f"arm_cos_{i}"], scope[f"arm_sin_{i}"], scope[f"reading_{i}"]
        ex = scope["radical_x"] - scope[f"base_{i}_x"] - lc * cos(q) + ls * sin(q)
        ey = scope["radical_y"] - scope[f"base_{i}_y"] - lc * sin(q) - ls * cos(q)
        errors.append(ex**2 + ey**2 - scope[f"distal_{i}"] ** 2)
    return errors


def _equal_errors(scope: Scope) -> Statement:
    left = [scope.expand(error) for error in _errors(scope)]
    return _statement(scope, column(left), column([scope.expand(scope.expression("closure_error"))] * 3))


def _cost(scope: Scope) -> Statement:
    left = scope.expand(sympy.Add(*(error**2 for error in _errors(scope))))
    return _statement(scope, left, scope.expand(3 * scope.expression("closure_error") ** 2))


def _similar(scope: Scope, output: str) -> tuple[sympy.Expr, sympy.Expr, sympy.Symbol]:
    """Return an output, and the same of a robot scaled and turned about its first base, and the scale."""
    scale, turn = scope.fresh("scale"), scope.fresh("turn")
    c, s = scale * cos(turn), scale * sin(turn)
    moved: dict[sympy.Basic, sympy.Basic] = {}
    x1, y1 = scope["base_1_x"], scope["base_1_y"]
    for i in CHAINS:
        moved[scope[f"distal_{i}"]] = scale * scope[f"distal_{i}"]
        x, y = scope[f"arm_cos_{i}"], scope[f"arm_sin_{i}"]
        moved |= {x: c * x - s * y, y: s * x + c * y}
        if i > 1:
            x, y = scope[f"base_{i}_x"], scope[f"base_{i}_y"]
            moved |= {x: x1 + c * (x - x1) - s * (y - y1), y: y1 + s * (x - x1) + c * (y - y1)}
    if output == "misfit":
        x, y = (scope[name] for name in _POINTS[-1])
        moved |= {x: x1 + c * (x - x1) - s * (y - y1), y: y1 + s * (x - x1) + c * (y - y1)}
    expression = scope.expand(scope.expression(output), keep=_KEPT if output == "misfit" else ())
    # Shared subexpressions are many: only the graph is walked in reasonable time.
    (similar,) = graph.substitute([expression], moved)
    return expression, similar, scale


def _similarity_statement(
    scope: Scope, left: sympy.Expr, right: sympy.Expr, *, free: bool = False
) -> Statement:
    return _statement(
        scope,
        left,
        right,
        units={"scale": "", "turn": "rad"},
        ranges={"scale": (0.8, 1.3), "turn": (-0.5, 0.5), **(_free_points(scope) if free else {})},
    )


def _cost_scales(scope: Scope) -> Statement:
    original, similar, scale = _similar(scope, "closure_error")
    return _similarity_statement(scope, similar, scale**2 * original)


def _cost_printed(scope: Scope) -> Statement:
    original, similar, _ = _similar(scope, "closure_error")
    return _similarity_statement(scope, similar, original)


def _misfit_invariant(scope: Scope) -> Statement:
    original, similar, _ = _similar(scope, "misfit")
    return _similarity_statement(scope, similar, original, free=True)


def _length(scope: Scope) -> Statement:
    left, right = [], []
    for i in CHAINS:
        lc, ls = scope[f"arm_cos_{i}"], scope[f"arm_sin_{i}"]
        arm, offset = sqrt(lc**2 + ls**2), atan2(ls, lc)
        left += [scope.expand(scope[f"arm_{i}"], keep=_KEPT) * f(offset) for f in (cos, sin)]
        right += [arm * f(offset) for f in (cos, sin)]
        left.append(arm * cos(offset))
        right.append(lc)
    return _statement(scope, column(left), column(right), ranges=_free_points(scope))


def _offset_printed(scope: Scope) -> Statement:
    lc, ls = scope["arm_cos_1"], scope["arm_sin_1"]
    # A sensor that counts from the other end: the cosine is negative, and an arc tangent alone is off by pi.
    ranges = _free_points(scope) | {scope.name("arm_cos_1"): (-0.246, -0.242)}
    return _statement(scope, atan2(ls, lc), atan(ls / lc), ranges=ranges)


def _deviation(scope: Scope, *, with_offset: bool) -> Statement:
    left, right = [], []
    for i in CHAINS:
        dx, dy, r2 = (scope[f"{name}_{i}_at_0"] for name in ("dx", "dy", "reach_squared"))
        arm, distal = scope[f"arm_{i}"], scope[f"distal_{i}"]
        opening = acos((r2 + arm**2 - distal**2) / (2 * arm * sqrt(r2)))
        offset = atan2(scope[f"arm_sin_{i}"], scope[f"arm_cos_{i}"]) if with_offset else 0
        # Loops close for signs of exactly one.
        exact = {scope[f"mode_{k}"]: sympy.Integer(1) for k in CHAINS}
        left.append(scope.expand(scope[f"residual_{i}_at_0"], keep=_KEPT).xreplace(exact))
        deviation = scope[f"reading_{i}"] + offset - (atan2(dy, dx) + opening)
        right.append(scope.expand(deviation, keep=_KEPT))
    return _statement(scope, column(left), column(right), ranges=_free_points(scope))


def _deviation_corrected(scope: Scope) -> Statement:
    return _deviation(scope, with_offset=True)


def _deviation_printed(scope: Scope) -> Statement:
    return _deviation(scope, with_offset=False)


CLOSURE_IDENTITIES = (
    make_identity("(8.13), (8.18)", "identity", _elbows, "readings corrected by their offsets"),
    make_identity("(8.19)", "identity", _equal_errors, "with (8.4) the three errors are equal"),
    make_identity("(8.20)", "identity", _cost, "the cost is three times the squared closure error"),
    make_identity("(8.20) scaled", "identity", _cost_scales, "the error shrinks with the robot: biased"),
    make_identity(
        "(8.20) as printed", "identity", _cost_printed, "no cost that ignores the robot's scale", "refuted"
    ),
)
MISFIT_IDENTITIES = (
    make_identity("(8.21)", "identity", _length, "length and offset of a driven link, with atan2"),
    make_identity("(8.21) as printed", "identity", _offset_printed, "arc tangent of the quotient", "refuted"),
    make_identity("(8.22)", "identity", _deviation_corrected, "deviation of a reading, its offset included"),
    make_identity("(8.22) as printed", "identity", _deviation_printed, "the offset is missing", "refuted"),
    make_identity("(8.22) similar", "identity", _misfit_invariant, "a similarity is not seen: rank 11 of 12"),
)
