"""Frequency equations of a uniform beam: a torsional spring at the root, a free or loaded tip, a hub that is held or turns.

The equation of the source, kappa (1 + cos z cosh z) = z (sin z cosh z - cos z sinh z) with kappa = k l/EI, is divided by
cosh z and by 1 + kappa: every term stays of order 1 for any z and any stiffness. A tip mass and a hub that turns
against its inertia are added by the same rules.
"""

from typing import Literal

import sympy
from sympy import cos, exp, pi, sin

Root = Literal["spring", "clamped", "pinned"]
ROOTS: tuple[Root, ...] = ("spring", "clamped", "pinned")

# cos z cosh z = -1 and tan z = tanh z. Beyond these roots they are (i - 1/2) pi and (i + 1/4) pi to 2 exp(-z), 4e-9 of z,
# which the outward margin covers.
_CLAMPED = (
    1.87510406871196117,
    4.69409113297417458,
    7.85475743823761256,
    10.995540734875467,
    14.1371683910464706,
)
_PINNED = (3.92660231204791878, 7.06858274562873209, 10.2101761228130305, 13.3517687777540931)
_MARGIN = 1e-8


def clamped(z: sympy.Expr, mass_ratio: sympy.Expr) -> sympy.Expr:
    """Return what vanishes for a clamped root, over cosh z: 1/cosh z + cos z + mu z (cos z tanh z - sin z)."""
    double = exp(-2 * z)
    free = 2 * exp(-z) + cos(z) * (1 + double)
    load = mass_ratio * z * (cos(z) * (1 - double) - sin(z) * (1 + double))
    return (free + load) / (1 + double)


def pinned(z: sympy.Expr, mass_ratio: sympy.Expr) -> sympy.Expr:
    """Return what vanishes for a pinned root, over cosh z: sin z - cos z tanh z + 2 mu z sin z tanh z."""
    double = exp(-2 * z)
    free = sin(z) * (1 + double) - cos(z) * (1 - double)
    return (free + 2 * mass_ratio * z * sin(z) * (1 - double)) / (1 + double)


def held(z: sympy.Expr, stiffness_ratio: sympy.Expr, mass_ratio: sympy.Expr) -> sympy.Expr:
    """Return what vanishes at the roots for a spring of kappa against a hub that is held (source, equation (32))."""
    kappa = stiffness_ratio
    return (kappa * clamped(z, mass_ratio) - z * pinned(z, mass_ratio)) / (1 + kappa)


def turning(
    z: sympy.Expr, stiffness_ratio: sympy.Expr, mass_ratio: sympy.Expr, inertia_ratio: sympy.Expr
) -> sympy.Expr:
    """Return what vanishes at the elastic roots where the hub turns against its inertia, gamma = J/(rho A l^3).

    The stiffness k becomes that of spring and hub in series, k Z/(k + Z) with Z = -J omega^2, that is
    kappa (-gamma z^4)/(kappa - gamma z^4).
    """
    kappa, gamma = stiffness_ratio, inertia_ratio
    whole = kappa * gamma * z**3 * clamped(z, mass_ratio) + (kappa - gamma * z**4) * pinned(z, mass_ratio)
    return whole / ((1 + kappa) * (1 + gamma * z**4))


def bracket(mode: int, root: Root, *, tip_mass: bool) -> tuple[float, float]:
    """Return bounds between which there is the root of a mode (from 1) and no other, for a hub that is held.

    Stiffness raises every root and a tip mass lowers it, so root i lies between the (i-1)th one of the pinned and
    the ith one of the clamped beam, both with their tip free; with a tip mass of any size not below (i-1) pi, where
    both ends are pinned.
    """
    if root == "pinned":
        low = mode * float(pi) if tip_mass else _pinned(mode) * (1.0 - 1e-3)
        return low, _outward(_pinned(mode), 1)
    if root == "clamped" and not tip_mass:
        return _clamped(mode) * (1.0 - 1e-3), _outward(_clamped(mode), 1)
    if mode == 1:
        return 0.0, _outward(_clamped(1), 1)
    low = (mode - 1) * float(pi) if tip_mass else _outward(_pinned(mode - 1), -1)
    return low, _outward(_clamped(mode), 1)


def middle(mode: int, root: Root) -> float:
    """Return where the search for a root may begin."""
    return {"spring": 0.5 * (_pinned(mode - 1) + _clamped(mode)), "clamped": _clamped(mode)}.get(
        root, _pinned(mode)
    )


def _clamped(mode: int) -> float:
    return _CLAMPED[mode - 1] if mode <= len(_CLAMPED) else (mode - 0.5) * float(pi)


def _pinned(mode: int) -> float:
    if mode == 0:
        return 0.0
    return _PINNED[mode - 1] if mode <= len(_PINNED) else (mode + 0.25) * float(pi)


def _outward(value: float, side: int) -> float:
    # A root may be as near to the limit as its rounding.
    return value * (1.0 + side * _MARGIN)
