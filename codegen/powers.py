"""Powers and the cardinal sine in CasADi, with derivatives that stay finite where the true ones are."""

import casadi
import sympy

SX = casadi.SX
LARGEST_PRODUCT = 64  # an integer power up to this one is written as products: at most 10 of them


def constant_power(base: SX, exponent: sympy.Expr) -> SX:
    """Return base**exponent for a positive number as exponent: products and square roots where they serve."""
    doubled = 2 * exponent
    if exponent.is_Integer and exponent <= LARGEST_PRODUCT:
        return _integer_power(base, int(exponent))
    if doubled.is_Integer and doubled <= 2 * LARGEST_PRODUCT:
        root = SX.unary(casadi.OP_SQRT, base)
        whole = (int(doubled) - 1) // 2
        return root if whole == 0 else _integer_power(base, whole) * root
    return SX.binary(casadi.OP_CONSTPOW, base, SX(float(exponent)))


def _integer_power(base: SX, exponent: int) -> SX:
    factors = []
    square = base
    while True:
        if exponent & 1:
            factors.append(square)
        exponent >>= 1
        if not exponent:
            break
        square = SX.unary(casadi.OP_SQ, square)
    result = factors[0]
    for factor in factors[1:]:
        result = SX.binary(casadi.OP_MUL, result, factor)
    return result


def free_power(base: SX, exponent: SX, *, nonnegative: bool) -> SX:
    """Return base**exponent for an exponent that is no number.

    The derivative of the plain power with respect to the exponent holds log(base), not a number at zero
    where the true one is 0 (|v|^a in a Stribeck curve at v = 0). A negative base has a real power only for
    an integer exponent; elsewhere the result is not a number.
    """
    zero, one, nan = SX(0), SX(1), SX(float("nan"))
    positive = SX.binary(casadi.OP_LT, zero, base)
    above = SX.binary(casadi.OP_POW, casadi.if_else(positive, base, one), exponent)
    at_zero = casadi.if_else(
        exponent > 0, zero, casadi.if_else(SX.binary(casadi.OP_EQ, exponent, zero), one, SX(float("inf")))
    )
    if nonnegative:
        return casadi.if_else(positive, above, at_zero)
    negative = SX.binary(casadi.OP_LT, base, zero)
    magnitude = SX.binary(casadi.OP_POW, casadi.if_else(negative, -base, one), exponent)
    whole = SX.binary(casadi.OP_EQ, exponent, casadi.floor(exponent))
    below = casadi.if_else(whole, casadi.cos(casadi.pi * exponent) * magnitude, nan)
    return casadi.if_else(
        positive, above, casadi.if_else(negative, below, casadi.if_else(base == 0, at_zero, nan))
    )


def cardinal_sine(angle: SX) -> SX:
    """Return sin(angle)/angle, by its series where |angle| < 1/2.

    The derivatives of the quotient lose all digits near zero. Eight terms leave a remainder of
    (1/2)^16/17! = 4e-20, below half a unit in the last place, and of 3e-18 in the first derivative.
    """
    square = SX.unary(casadi.OP_SQ, angle)
    series = SX(1)
    for k in range(7, 0, -1):
        series = 1 - series * square / (2 * k * (2 * k + 1))
    near = casadi.fabs(angle) < 0.5
    far = casadi.if_else(near, SX(1), angle)
    return casadi.if_else(near, series, casadi.sin(far) / far)
