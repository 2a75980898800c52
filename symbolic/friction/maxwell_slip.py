"""Generalised Maxwell-slip friction: elements in parallel, each of which sticks as a spring or slips with a lag."""

import sympy
from sympy import Abs, Max, Min, exp, sign

from mechsmith.symbolic.friction.identities import COULOMB_VISCOUS, family_identity, statement
from mechsmith.symbolic.friction.parameters import (
    UNITS,
    Motion,
    force_output,
    named,
    parameter,
    position_integral,
    velocity_input,
)
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.prove import evaluated
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.statement import Limit, Scope, Statement

AL_BENDER = (
    "Al-Bender, Lampaert, Swevers 2005, The generalized Maxwell-slip model: a novel model for friction simulation and "
    "compensation, IEEE Trans. Automatic Control 50(11), 1883-1887, equations (9)-(12)"
)


def make_maxwell_slip(*, elements: int = 4, motion: Motion = "rotary") -> Model:
    """Return the generalised Maxwell-slip model with N elements, of which each knows whether it sticks or slips.

    Element i sticks with dF_i/dt = k_i v until |F_i| = w_i g(v); from then on it slips with
    dF_i/dt = C (w_i sgn(v) - F_i / g(v)) until the velocity passes zero. w_1 + ... + w_N = 1; F = sum F_i + f(v).

    Whether an element slips is a memory that no differential equation has, so the elements are discrete states, and
    the travel is a continuous one: over a sample a spring follows the travel exactly, and a slipping element the exact
    solution for the g(v) of the sample's end. The parameter `sample_time` must be the records' sample period.

    Springs only store. A slipping element dissipates where C (w_i - |F_i| / g) <= k_i |v|, so the model is passive while
    that holds; it always does at |F_i| = w_i g.

    Parameters
    ----------
    elements : int
        N, 2 or more. The nominal stiffness k_i falls by half from element to element, so that each slips at another travel.
    motion : "rotary" or "linear"
        Angle and torque (rad, N*m), or position and force (m, N).

    Raises
    ------
    ModelError
        If there are fewer than 2 elements.
    """
    if elements < 2:
        raise ModelError(f"generalised Maxwell-slip: elements is {elements}, allowed is 2 or more.")
    parts = _Parts(elements, motion)
    v, travel = parts.velocity.elements[0], parts.travel.elements[0]
    a0, a1, v0, a2, a3 = (quantity.elements[0] for quantity in parts.common[:5])
    definitions = {
        parts.stribeck: a0 + a1 * exp(-((v / v0) ** 2)),
        parts.step: travel - parts.previous.elements[0],
        parts.viscous: a2 * v + a3 * Abs(v) * v,
        parts.last_share: 1 - sympy.Add(*(share.elements[0] for share in parts.shares)),
    }
    updates: dict[str, sympy.Expr] = {"previous_travel": travel}
    for i in range(elements):
        force, way = parts.element(i)
        definitions[parts.next_forces[i]] = force
        updates[f"force_{i + 1}"], updates[f"slipping_{i + 1}"] = parts.next_forces[i].elements[0], way
    total = sympy.Add(*(force.elements[0] for force in parts.forces))
    return Model(
        name=named("maxwell_slip", motion),
        states=(parts.travel,),
        discrete_states=(*parts.forces, *parts.ways, parts.previous),
        inputs=(parts.velocity,),
        parameters=(*parts.common, *parts.stiffnesses, *parts.shares),
        definitions=definitions,
        derivatives={"travel": v},
        updates=updates,
        sample_time="sample_time",
        integrals=position_integral(motion),
        outputs={force_output(motion): total + parts.viscous.elements[0]},
        identities=(
            family_identity(
                "elements at rest", _resting, "equation (12): F_i = w_i sgn(v) g(v)", expected="supported"
            ),
            family_identity(COULOMB_VISCOUS, _limit, "equation (6) once every element slips", limit=True),
        ),
        description=f"Generalised Maxwell-slip friction with {elements} elements.",
        references=(AL_BENDER,),
    )


class _Parts:
    """The quantities of the model, and what an element does over a sample. `g` here is that of the sample."""

    def __init__(self, count: int, motion: Motion) -> None:
        length, force = UNITS[motion]
        self.count = count
        self.velocity = velocity_input(motion)
        self.common = _common_parameters(motion)
        self.stiffnesses, self.shares = _element_parameters(count, motion)
        self.forces = self._states("force", force, "friction of element")
        self.ways = self._states("slipping", "", "direction in which it slips, 0 when it sticks: element")
        self.travel = Quantity("travel", length, description="integral of the velocity", nominal=0.0)
        self.previous = Quantity("previous_travel", length, description="travel one sample ago", nominal=0.0)
        self.stribeck = Quantity("stribeck", force, description="steady friction without viscosity, g(v)")
        self.step = Quantity("step", length, description="travel since the sample before")
        self.viscous = Quantity("viscous", force, description="viscous friction, f(v)")
        self.last_share = Quantity("last_share", "", description="share of the last element")
        self.next_forces = tuple(
            Quantity(f"next_force_{i + 1}", force, description=f"friction of element {i + 1} at this sample")
            for i in range(count)
        )

    def _states(self, name: str, unit: str, text: str) -> tuple[Quantity, ...]:
        return tuple(
            Quantity(f"{name}_{i + 1}", unit, description=f"{text} {i + 1}", nominal=0.0)
            for i in range(self.count)
        )

    def element(self, i: int) -> tuple[sympy.Expr, sympy.Expr]:
        """Return force and direction of slip of element i at this sample."""
        v, g, step = (q.elements[0] for q in (self.velocity, self.stribeck, self.step))
        force, way, stiffness = (q[i].elements[0] for q in (self.forces, self.ways, self.stiffnesses))
        share = self.last_share.elements[0] if i == self.count - 1 else self.shares[i].elements[0]
        attraction, period = (q.elements[0] for q in self.common[-2:])
        limit = share * g
        goal = sign(v) * limit
        slipping = goal + (force - goal) * exp(-attraction * period / g)
        sticking = Max(-limit, Min(limit, force + stiffness * step))
        now = self.next_forces[i].elements[0]
        return (
            sympy.Piecewise((slipping, way * v > 0), (sticking, True)),
            sympy.Piecewise((way, way * v > 0), (sign(v), (now * v > 0) & (Abs(now) >= limit)), (0, True)),
        )


def _common_parameters(motion: Motion) -> tuple[Quantity, ...]:
    """Return a0, a1, v0, a2, a3, attraction and sample_time."""
    coulomb = parameter("a0", motion)
    attraction = Quantity(
        "attraction",
        f"{UNITS[motion].force}/s",
        description="rate at which slipping elements go to g(v), C",
        nominal=20.0 * (coulomb.nominal or 1.0),
        lower=0.0,
    )
    period = Quantity(
        "sample_time", "s", description="time between samples", nominal=1e-3, lower=1e-6, upper=1.0
    )
    return (coulomb, *(parameter(name, motion) for name in ("a1", "v0", "a2", "a3")), attraction, period)


def _element_parameters(count: int, motion: Motion) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...]]:
    """Return stiffnesses, each half of the one before, and shares of all elements but the last."""
    whole = parameter("s0", motion)
    first = (whole.nominal or 1.0) / (2.0 * (1.0 - 0.5**count))
    stiffnesses = tuple(
        Quantity(
            f"k{i + 1}",
            whole.unit,
            description=f"stiffness of element {i + 1}",
            nominal=first * 0.5**i,
            lower=whole.lower,
        )
        for i in range(count)
    )
    shares = tuple(
        Quantity(
            f"w{i + 1}",
            "",
            description=f"share of element {i + 1} in the friction",
            nominal=1.0 / count,
            lower=0.0,
            upper=1.0,
        )
        for i in range(count - 1)
    )
    return stiffnesses, shares


def _count(scope: Scope) -> int:
    count = 0
    while f"force_{count + 1}" in scope:
        count += 1
    return count


def _slid(scope: Scope) -> dict[sympy.Basic, sympy.Expr]:
    """Return the element forces of steady sliding."""
    v, g, count = scope["velocity"], scope["stribeck"], _count(scope)
    shares = [scope[f"w{i + 1}"] for i in range(count - 1)]
    shares.append(1 - sympy.Add(*shares))
    return {scope[f"force_{i + 1}"]: share * sign(v) * g for i, share in enumerate(shares)}


def _resting(scope: Scope) -> Statement:
    """State that the first element, slipping along the motion, stays where it is."""
    v, table = scope["velocity"], _slid(scope)
    first = scope["force_1"]
    update = scope.expand(scope.expression("next_force_1"), keep=("stribeck",))
    left = evaluated(update, {first: table[first], scope["slipping_1"]: sign(v)})
    made = statement(scope, left, table[first])
    coulomb = scope.nominal("a0", 1.0)
    return Statement(
        made.left, made.right, ranges={**made.ranges, scope.name("stribeck"): (0.8 * coulomb, 1.6 * coulomb)}
    )


def _limit(scope: Scope) -> Statement:
    v = scope["velocity"]
    force = evaluated(scope.expand(scope.expression("force"), keep=("stribeck",)), _slid(scope))
    right = scope["a0"] * sign(v) + scope["a2"] * v + scope["a3"] * Abs(v) * v
    return statement(scope, scope.expand(force), right, limit=Limit(scope["v0"]))
