"""The numbered equations (1)-(16) of the LuGre source as identities of the model.

Each left side is taken from the model, by looking up, differentiating or integrating; each right side is what
the source states. g(v), s1(v) and f(v) stand for whatever the model defines, so that the statements that hold
for every Stribeck curve survive another one. The source's misprints are entered too, and must be refuted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import sympy
from sympy import Abs, exp, log, sign

from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.prove import evaluated
from mechsmith.symbolic.statement import Expansion, Identity, IdentityKind, Limit, Scope, Statement, Status

SOURCE = "LuGre identification by shape factors (journal paper, in Chinese), equations (1)-(16)"


@dataclass(frozen=True)
class _Lugre:
    """The symbols of a LuGre model, named as in the source, and what is derived from its equations."""

    scope: Scope

    def __getattr__(self, name: str) -> sympy.Symbol:
        return self.scope[{"v": "velocity", "g": "stribeck"}.get(name, name)]

    # Symbols of the statements: travel x from the start of the move, deflection z0 there, acceleration a.

    @cached_property
    def x(self) -> sympy.Symbol:
        return self.scope.fresh("travel")

    @cached_property
    def z_start(self) -> sympy.Symbol:
        return self.scope.fresh("z_start")

    @cached_property
    def acceleration(self) -> sympy.Symbol:
        return self.scope.fresh("acceleration")

    @cached_property
    def constant(self) -> sympy.Symbol:
        return self.scope.fresh("constant")

    @cached_property
    def small(self) -> sympy.Symbol:
        return self.scope.fresh("small")

    # What follows from the model.

    def of(self, name: str, *keep: str) -> sympy.Expr:
        """Return the right-hand side of an equation in terms of velocity and the definitions in `keep`."""
        return self.scope.expand(self.scope.expression(name), keep=("velocity", *keep))

    def steady(self, *keep: str) -> sympy.Expr:
        """Return the force where dz/dt = 0."""
        offset, slope = self._affine(self.of("z", "stribeck"))
        force = evaluated(self.of("force", "stribeck", *keep), {self.z: -offset / slope})
        return force if "stribeck" in keep else self.scope.expand(force, keep=("velocity", *keep))

    def coulomb(self) -> sympy.Expr:
        """Return the force where dz/dt = 0 and g = a0."""
        return evaluated(self.steady("stribeck"), {self.g: self.a0})

    def solution(self) -> sympy.Expr:
        """Return z after the travel x from z_start, for v > 0 and constant g, by integrating dz/dx."""
        everything = (*self.scope.model.symbols.values(), self.x)
        positive = {symbol: sympy.Dummy(symbol.name, positive=True) for symbol in everything}
        del positive[self.z]
        per_travel = evaluated(self.of("z", "stribeck") / self.v, positive)
        offset, slope = self._affine(per_travel)
        x = positive[self.x]
        along = sympy.Dummy("along", positive=True)
        forced = sympy.integrate(offset * exp(-slope * along), (along, 0, x))
        solved = exp(slope * x) * (self.z_start + forced)
        return evaluated(solved, {dummy: symbol for symbol, dummy in positive.items()})

    def presliding_force(self) -> sympy.Expr:
        """Return (8) along the solution, with v and g constant."""
        near_rest = self.s0 * self.z + self.s1 * self.of("z", "stribeck")
        return evaluated(near_rest, {self.z: self.solution()})

    def _affine(self, rate: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
        slope = sympy.diff(rate, self.z)
        if slope.has(self.z) and sympy.simplify(sympy.diff(slope, self.z)) != 0:
            raise ModelError(
                f"model {self.scope.model.name!r}: dz/dt is not affine in z, so it isn't solved in closed form."
            )
        return rate.subs(self.z, 0), slope.subs(self.z, 0)

    # Parts of the source's right-hand sides.

    def viscous_and_coulomb(self) -> sympy.Expr:
        return self.a0 * sign(self.v) + self.a2 * self.v + self.a3 * sign(self.v) * self.v**2

    def c(self) -> sympy.Expr:
        return -log(1 - self.s0 * self.z_start / self.g)

    # Statements.

    def statement(
        self,
        left: sympy.Expr,
        right: sympy.Expr,
        *,
        forward: bool = False,
        expansion: Expansion | None = None,
        limit: Limit | None = None,
        constants: Mapping[sympy.Symbol, tuple[sympy.Symbol, ...]] | None = None,
    ) -> Statement:
        """Return the statement, with velocities about v0 (positive if `forward`) and deflections short of sliding."""
        name, unit, nominal = self.scope.name, self.scope.unit, self.scope.nominal
        speed, coulomb = 3.0 * nominal("v0", 0.01), nominal("a0")
        slip = coulomb / nominal("s0")
        free = {leaf.name for leaf in (left.free_symbols | right.free_symbols)}
        ranges = {
            name("velocity"): (0.0 if forward else -speed, speed),
            name("z"): (-0.8 * slip, 0.8 * slip),
            self.x.name: (0.0, 2.0 * slip),
            self.z_start.name: (-0.3 * slip, 0.3 * slip),
            self.acceleration.name: (-50.0 * speed, 50.0 * speed),
        }
        if self.x.name in free:
            # g is constant along the solution whatever v is.
            ranges[name("stribeck")] = (0.8 * coulomb, 1.6 * coulomb)
        units = {
            self.x.name: unit("z"),
            self.z_start.name: unit("z"),
            self.acceleration.name: f"{unit('velocity')}/s",
            self.constant.name: unit("stribeck"),
            self.small.name: "",
        }
        return Statement(left, right, units, ranges, limit, expansion, constants or {})


def _force(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(scope.expression("force"), m.s0 * m.z + m.damping * m.bristle_rate + m.viscous)


def _bristle_rate(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.of("z", "stribeck"), m.v - m.s0 * Abs(m.v) * m.z / m.g)


def _stribeck(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.of("stribeck"), m.a0 + m.a1 * exp(-((m.v / m.v0) ** 2)))


def _damping(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.of("damping"), m.s1 * exp(-((m.v / m.vd) ** 2)))


def _viscous(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.of("viscous"), m.a2 * m.v + m.a3 * sign(m.v) * m.v**2)


def _viscous_printed(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.of("viscous"), m.a0 * m.v + m.a3 * sign(m.v) * m.v**2)


def _steady(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.steady("stribeck", "viscous"), sign(m.v) * m.g + m.viscous)


def _steady_limit(scope: Scope) -> Statement:
    # Once |v| >> v0, that is for v0 -> 0 at any v.
    m = _Lugre(scope)
    return m.statement(m.steady(), m.viscous_and_coulomb(), limit=Limit(m.v0))


def _slope(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.of("z", "stribeck") / m.v, 1 - m.s0 * sign(m.v) * m.z / m.g)


def _near_rest(scope: Scope) -> Statement:
    # v small, and f small beside the bristle damping: both of first order, so that their product is dropped.
    m = _Lugre(scope)
    slow = {m.v: m.small * m.v}
    viscous = m.small * evaluated(m.of("viscous"), slow)
    left = evaluated(m.of("force", "viscous"), {**slow, m.viscous: viscous})
    right = m.s0 * m.z + m.s1 * evaluated(m.of("z"), slow)
    return m.statement(left, right, expansion=Expansion(m.small, 1))


def _near_rest_slope(m: _Lugre) -> sympy.Expr:
    """Return dF/dx of (8) by the chain rule, with dz/dx of the model and dv/dx = a/v."""
    force = m.s0 * m.z + m.s1 * m.of("z")
    return force.diff(m.z) * m.of("z") / m.v + force.diff(m.v) * m.acceleration / m.v


def _force_slope(scope: Scope) -> Statement:
    m = _Lugre(scope)
    g = m.of("stribeck")
    z_slope, v_slope = 1 - m.s0 * m.z / g, m.acceleration / m.v
    right = (
        z_slope * (m.s0 + m.s1 * v_slope - m.s0 * m.s1 * Abs(m.v) / g)
        + m.s0 * m.s1 * Abs(m.v) * m.z * g.diff(m.v) * v_slope / g**2
    )
    return m.statement(_near_rest_slope(m), right, forward=True)


def _force_slope_printed(scope: Scope) -> Statement:
    m = _Lugre(scope)
    g = m.of("stribeck")
    force = m.s0 * m.z + m.s1 * m.of("z")
    # Printed is 1/|g|; g is positive.
    right = m.s0 * (1 - force * sign(m.v) / g) + m.s1 * m.s0 * (1 / g).diff(m.v) * m.acceleration
    return m.statement(_near_rest_slope(m), right, forward=True)


def _stribeck_force(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.force - m.coulomb(), m.force - m.viscous_and_coulomb())


def _peak(scope: Scope) -> Statement:
    m = _Lugre(scope)
    left = sign(m.v) * (m.steady() - m.coulomb())
    return m.statement(left, m.a1 * exp(-((m.v / m.v0) ** 2)))


def _separated(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.of("z", "stribeck") / (1 - m.s0 * m.z / m.g), m.v, forward=True)


def _integrated(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(1 / (1 - m.s0 * m.solution() / m.g), exp(m.s0 * m.x / m.g + m.c()), forward=True)


def _integrated_printed(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(
        1 / (1 - m.s0 * m.solution() / m.g), exp(m.s0 * m.x / m.g + exp(m.z_start)), forward=True
    )


def _bristle_force(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return m.statement(m.s0 * m.solution(), m.g * (1 - exp(-(m.s0 * m.x / m.g + m.c()))), forward=True)


def _presliding(scope: Scope) -> Statement:
    m = _Lugre(scope)
    decay = exp(-m.c()) * exp(-m.s0 * m.x / m.g)
    return m.statement(m.presliding_force(), m.g - m.g * decay + m.s1 * m.v * decay, forward=True)


def _presliding_printed(scope: Scope) -> Statement:
    m = _Lugre(scope)
    decay = exp(-m.s0 * m.x / m.g)
    right = m.constant - m.g * decay + m.s1 * m.v * decay * exp(m.c())
    return m.statement(m.presliding_force(), right, forward=True, constants={m.constant: (m.x, m.v)})


def _first_order(m: _Lugre, offset: sympy.Expr, factor: sympy.Expr) -> Statement:
    x = m.small * m.x
    left = evaluated(m.presliding_force(), {m.x: x})
    right = offset + factor * (m.s0 * x + m.s1 * m.v - m.s0 * m.s1 / m.g * m.v * x)
    constants = {m.constant: (m.x, m.v)} if offset == m.constant else {}
    return m.statement(left, right, forward=True, expansion=Expansion(m.small, 1), constants=constants)


def _hysteresis(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return _first_order(m, m.g * (1 - exp(-m.c())), exp(-m.c()))


def _hysteresis_printed(scope: Scope) -> Statement:
    m = _Lugre(scope)
    return _first_order(m, m.constant, exp(m.c()))


def _identity(
    name: str,
    kind: IdentityKind,
    statement: Callable[[Scope], Statement],
    note: str,
    expected: Status = "proved",
) -> Identity:
    return Identity(name, kind, statement, expected, f"{SOURCE.split(',')[0]}: {note}")


LUGRE_IDENTITIES = (
    _identity("(1)", "definition", _force, "force"),
    _identity("(2)", "definition", _bristle_rate, "rate of the bristles"),
    _identity("(3)", "definition", _stribeck, "Stribeck curve"),
    _identity("(4)", "definition", _damping, "bristle damping"),
    _identity("(5)", "definition", _viscous, "viscous friction, a2 for the printed a0"),
    _identity("(5) as printed", "definition", _viscous_printed, "a0 v is no force", "refuted"),
    _identity("(6) at any speed", "identity", _steady, "force once dz/dt = 0"),
    _identity("(6)", "limit", _steady_limit, "force once dz/dt = 0 and |v| >> v0"),
    _identity("(7)", "identity", _slope, "dz/dx"),
    _identity("(8)", "expansion", _near_rest, "near rest, first order in v and f"),
    _identity("(9)", "identity", _force_slope, "slope of (8) over the travel, corrected"),
    _identity("(9) as printed", "identity", _force_slope_printed, "d/dx and d/dt exchanged", "refuted"),
    _identity("(10)", "definition", _stribeck_force, "force above the Coulomb model (6)"),
    _identity("(11)", "identity", _peak, "sgn(v) times (10) once dz/dt = 0, a = a1 and b = v0"),
    _identity("(12)", "identity", _separated, "variables separated, v > 0"),
    _identity("(13)", "identity", _integrated, "(12) integrated, c = -ln(1 - s0 z0/g)"),
    _identity("(13) as printed", "identity", _integrated_printed, "c = e^z0", "refuted"),
    _identity("(14)", "identity", _bristle_force, "(13) solved for s0 z"),
    _identity("(15)", "identity", _presliding, "force in presliding, corrected"),
    _identity("(15) as printed", "identity", _presliding_printed, "for any constant C0", "refuted"),
    _identity("(16)", "expansion", _hysteresis, "(15) to first order in s0 x/g, corrected"),
    _identity("(16) as printed", "expansion", _hysteresis_printed, "for any constant C01", "refuted"),
)
