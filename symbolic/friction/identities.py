"""What holds of every friction model: its Coulomb-viscous limit, and how much power it takes out of the motion.

Passivity is read off the dissipation: a model takes power out wherever its right side can't be negative.
"""

from collections.abc import Callable

import sympy
from sympy import Abs, sign

from mechsmith.symbolic.prove import evaluated
from mechsmith.symbolic.statement import Identity, Limit, Scope, Statement, Status

COULOMB_VISCOUS = "Coulomb-viscous limit"
DISSIPATION = "dissipation"


def family_identity(
    name: str,
    statement: Callable[[Scope], Statement],
    source: str,
    *,
    limit: bool = False,
    expected: Status = "proved",
) -> Identity:
    """Return an identity of a friction model."""
    return Identity(name, "limit" if limit else "identity", statement, expected, source)


def coulomb_viscous(scope: Scope) -> sympy.Expr:
    """Return a0 sgn(v) and the viscous terms that the model has the parameters of; equation (6) of the LuGre source."""
    v = scope["velocity"]
    total = scope["a0"] * sign(v)
    for name, term in (("a2", v), ("a3", v * Abs(v)), ("a4", v**3)):
        if name in scope:
            total += scope[name] * term
    return total


def statement(scope: Scope, left: sympy.Expr, right: sympy.Expr, *, limit: Limit | None = None) -> Statement:
    """Return a statement for velocities of both signs and bristles short of sliding."""
    speed = 3.0 * scope.nominal("v0", 0.01)
    ranges = {scope.name("velocity"): (-speed, speed)}
    if "z" in scope:
        slip = scope.nominal("a0", 1.0) / scope.nominal("s0", 1.0)
        ranges[scope.name("z")] = (-0.8 * slip, 0.8 * slip)
    return Statement(left, right, ranges=ranges, limit=limit)


def static_limit(scope: Scope) -> Statement:
    """State that the force is (6) once |v| >> v0, that is for v0 -> 0 at any v."""
    force = scope.expand(scope.expression("force"))
    return statement(scope, force, coulomb_viscous(scope), limit=Limit(scope["v0"]))


def bristle_limit(scope: Scope) -> Statement:
    """State that the force is (6) once the bristles rest at z = sgn(v) g / s0 and |v| >> v0."""
    v, z = scope["velocity"], scope["z"]
    resting = {z: sign(v) * scope.expand(scope.expression("stribeck")) / scope["s0"]}
    force = evaluated(
        scope.expand(scope.expression("force"), keep=("bristle_rate",)), {scope["bristle_rate"]: sympy.S.Zero}
    )
    return statement(scope, evaluated(force, resting), coulomb_viscous(scope), limit=Limit(scope["v0"]))


def bristles_rest(scope: Scope) -> Statement:
    """State that the bristles rest at z = sgn(v) g / s0."""
    v, z = scope["velocity"], scope["z"]
    stribeck = scope.expand(scope.expression("stribeck")) if "stribeck" in scope else scope["a0"]
    rate = evaluated(scope.expand(scope.expression("z")), {z: sign(v) * stribeck / scope["s0"]})
    return statement(scope, rate, sympy.S.Zero)


def static_dissipation(scope: Scope) -> Statement:
    """State that F v is the sum of its terms, each of which dissipates while its coefficient is not negative."""
    v = scope["velocity"]
    power = v * scope.expand(scope.expression("force"), keep=("stribeck", "viscous"))
    dry, wet = _first(scope, "stribeck", "a0"), _first(scope, "viscous")
    return statement(scope, power, dry * Abs(v) + wet * v)


def bristle_dissipation(scope: Scope) -> Statement:
    """State where the power goes that the bristles do not store as s0 z^2 / 2.

    F v - d/dt (s0 z^2 / 2) = k |v| / g (s0 z - s1(v) v / 2)^2 + v^2 (s1(v) - k s1(v)^2 |v| / (4 g)) + f(v) v

    with the share k of the velocity that slips, 1 but for elasto-plastic friction. So the model is passive where
    s1(v)^2 |v| <= 4 g(v) (s1(v) + f(v)/v), since k <= 1: see `mechsmith.symbolic.friction.passivity`.
    """
    v, z, s0 = scope["velocity"], scope["z"], scope["s0"]
    kept = tuple(name for name in ("stribeck", "damping", "viscous", "slip_share") if name in scope)

    g, viscous, damping = (
        _first(scope, "stribeck", "a0"),
        _first(scope, "viscous"),
        _first(scope, "damping", "s1"),
    )
    share = next((scope[name] for name in ("slip_share",) if name in scope), sympy.S.One)
    rate = scope.expand(scope.expression("z"), keep=kept)
    left = v * scope.expand(scope.expression("force"), keep=kept) - s0 * z * rate
    right = (
        share * Abs(v) / g * (s0 * z - damping * v / 2) ** 2
        + v**2 * (damping - share * damping**2 * Abs(v) / (4 * g))
        + viscous * v
    )
    return _positive_stribeck(scope, statement(scope, left, right))


def _first(scope: Scope, *names: str) -> sympy.Expr:
    """Return the first of the quantities that the model has, else 0."""
    return next((scope[name] for name in names if name in scope), sympy.S.Zero)


def _positive_stribeck(scope: Scope, made: Statement) -> Statement:
    """Vary g(v) and the share that slips freely where they stand as symbols."""
    coulomb = scope.nominal("a0", 1.0)
    free = {leaf.name for leaf in (made.left.free_symbols | made.right.free_symbols)}
    freely = {scope.name("stribeck"): (0.8 * coulomb, 1.6 * coulomb), scope.name("slip_share"): (0.0, 1.0)}
    ranges = {**made.ranges, **{name: interval for name, interval in freely.items() if name in free}}
    return Statement(made.left, made.right, ranges=ranges, limit=made.limit)


STATIC_IDENTITIES = (
    family_identity(COULOMB_VISCOUS, static_limit, "equation (6): |v| >> v0", limit=True),
    family_identity(DISSIPATION, static_dissipation, "power F v"),
)
BRISTLE_IDENTITIES = (
    family_identity("bristles at rest", bristles_rest, "z = sgn(v) g / s0"),
    family_identity(
        DISSIPATION, bristle_dissipation, "power F v less the rate of the stored energy s0 z^2 / 2"
    ),
)
