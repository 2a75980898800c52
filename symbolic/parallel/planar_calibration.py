"""Residuals for the self-calibration of the planar robot from its three joint sensors, (8.13)-(8.22).

Two degrees of freedom and three sensors: each configuration gives one equation, whatever the platform's point is. That
point is not measured and is eliminated, in closed form (`make_planar_closure_error`) or by least squares in
the sensors' readings (`make_planar_misfit`). Driven links and sensors' offsets enter as arm_cos = l cos(offset) and arm_sin =
l sin(offset), (8.18), so that every parameter is a length.

Not all parameters can be found: places, angles and scale of the whole robot are not seen by angle sensors (a similarity, four
parameters). Freeze base_1_x, base_1_y, base_2_x and one more.
"""

import sympy
from sympy import atan2, cos, sin, sqrt

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.parallel.calibration_identities import CLOSURE_IDENTITIES, MISFIT_IDENTITIES
from mechsmith.symbolic.parallel.mechanisms import LECTURE, length
from mechsmith.symbolic.parallel.planar import (
    CHAINS,
    ChainSymbols,
    forward_definitions,
    geometry,
    modes,
    symbol,
)
from mechsmith.symbolic.quantity import Quantity

# Gauss-Newton steps for the platform's point. Each leaves a share of the error of the size of the readings' noise (rad) times
# a curvature of order 10: with noise of 1e-3 rad three leave 1e-6 of some 1e-5 m.
STEPS = 3


def calibrated() -> tuple[Quantity, ...]:
    """Return the parameters of the calibration, all in m."""
    arms = [
        length(f"arm_{part}_{i}", nominal, f"driven link times {word} of the sensor's offset", positive=False)
        for i in CHAINS
        for part, word, nominal in (("cos", "cosine", 0.244), ("sin", "sine", 0.0))
    ]
    return (*geometry(arms=False), *arms)


def readings() -> tuple[Quantity, ...]:
    """Return the readings of the joint sensors, without their offsets."""
    return tuple(
        Quantity(f"reading_{i}", "rad", description=f"joint sensor of chain {i}", nominal=nominal)
        for i, nominal in zip(CHAINS, (0.94, 3.03, -1.16), strict=True)
    )


def elbows() -> list[tuple[sympy.Expr, sympy.Expr]]:
    """Return the elbows from the readings, (8.18)."""
    result = []
    for i in CHAINS:
        c = ChainSymbols(i)
        lc, ls, q = c["arm_cos"], c["arm_sin"], c["reading"]
        result.append((c["base_x"] + lc * cos(q) - ls * sin(q), c["base_y"] + lc * sin(q) + ls * cos(q)))
    return result


def make_planar_closure_error() -> Model:
    """Return (8.19) with the point eliminated in closed form by (8.4): one residual for each configuration, m^2.

    With (8.4) the three residuals of (8.19) are equal, so that (8.20) is three times its sum of squares. Polynomial in
    the driven links but slightly biased by noise; a start for `make_planar_misfit`.
    """
    x, y, first = symbol("radical_x"), symbol("radical_y"), ChainSymbols(1)
    return Model(
        name="planar_closure_error",
        inputs=readings(),
        parameters=calibrated(),
        definitions=forward_definitions(elbows()),
        outputs={
            Quantity("closure_error", "m^2", description="power of the point; zero where the loops close"): (
                x - first["center_x"]
            )
            ** 2
            + (y - first["center_y"]) ** 2
            - first["distal"] ** 2,
        },
        identities=CLOSURE_IDENTITIES,
        description="Closure error of the planar robot for the readings of three joint sensors.",
        references=(LECTURE,),
    )


def make_planar_misfit() -> Model:
    """Return the misfit of the readings, rad, least over the platform's points: the maximum-likelihood residual.

    Of the readings corrected by their offsets, less the inverse kinematics of the point nearest to them (three Gauss-Newton
    steps from (8.4)), what remains is along the null vector of S^T; the misfit is its length, signed. Its sum of
    squares is least where that of all sensors' noises is.
    """
    definitions = forward_definitions(elbows())
    for i in CHAINS:
        c = ChainSymbols(i)
        definitions |= {
            Quantity(c["arm_squared"], "m^2"): c["arm_cos"] ** 2 + c["arm_sin"] ** 2,
            Quantity(c["arm"], "m", description="length of the driven link, (8.21)"): sqrt(c["arm_squared"]),
        }
    x, y = symbol("radical_x"), symbol("radical_y")
    for step in range(STEPS):
        definitions |= _misfits(step, x, y)
        definitions |= _gauss_newton(step, x, y)
        x, y = symbol(f"nearest_x_at_{step}"), symbol(f"nearest_y_at_{step}")
    definitions |= _misfits(STEPS, x, y)
    return Model(
        name="planar_misfit",
        inputs=(*readings(), *modes()),
        parameters=calibrated(),
        definitions=definitions | _null_vector(STEPS),
        outputs={
            Quantity(
                "misfit", "rad", description="of the readings, least over the platform's points"
            ): sympy.Add(*(symbol(f"null_{i}") * symbol(f"residual_{i}_at_{STEPS}") for i in CHAINS))
            / sqrt(symbol("null_squared")),
        },
        identities=MISFIT_IDENTITIES,
        description="Misfit of three redundant joint sensors of the planar robot.",
        references=(LECTURE,),
    )


def _misfits(step: int, x: sympy.Expr, y: sympy.Expr) -> dict[Quantity, sympy.Expr]:
    """Return residual and row of S of each chain at a point."""
    result: dict[Quantity, sympy.Expr] = {}
    for i in CHAINS:
        c = ChainSymbols(i)

        def at(name: str, i: int = i) -> sympy.Symbol:
            return symbol(f"{name}_{i}_at_{step}")

        dx, dy, r2, ux, uy = at("dx"), at("dy"), at("reach_squared"), at("ux"), at("uy")
        arm, hx, hy = c["arm"], c["center_x"] - c["base_x"], c["center_y"] - c["base_y"]
        result |= {
            Quantity(dx, "m"): x - c["base_x"],
            Quantity(dy, "m"): y - c["base_y"],
            Quantity(r2, "m^2"): dx**2 + dy**2,
            Quantity(at("along"), "1/m", description="law of cosines, over the reach"): (
                r2 + c["arm_squared"] - c["distal"] ** 2
            )
            / (2 * arm * r2),
            Quantity(at("across"), "1/m"): c["mode"] * sqrt(1 / r2 - at("along") ** 2),
        }
        result |= {
            Quantity(ux, "", description="driven link as the point has it"): at("along") * dx
            - at("across") * dy,
            Quantity(uy, ""): at("along") * dy + at("across") * dx,
            Quantity(at("residual"), "rad", description="reading less inverse kinematics"): atan2(
                ux * hy - uy * hx, ux * hx + uy * hy
            ),
            Quantity(at("wx"), "m", description="distal link"): dx - arm * ux,
            Quantity(at("wy"), "m"): dy - arm * uy,
            Quantity(at("lever"), "m^2"): arm * (ux * at("wy") - uy * at("wx")),
            Quantity(at("sx"), "1/m", description="row of S"): at("wx") / at("lever"),
            Quantity(at("sy"), "1/m"): at("wy") / at("lever"),
        }
    return result


def _gauss_newton(step: int, x: sympy.Expr, y: sympy.Expr) -> dict[Quantity, sympy.Expr]:
    """Return the point after one Gauss-Newton step: the normal equations, two by two."""
    rows = [(symbol(f"sx_{i}_at_{step}"), symbol(f"sy_{i}_at_{step}")) for i in CHAINS]
    residual = [symbol(f"residual_{i}_at_{step}") for i in CHAINS]

    def at(name: str) -> sympy.Symbol:
        return symbol(f"{name}_at_{step}")

    xx, xy, yy, fx, fy = (at(name) for name in ("xx", "xy", "yy", "fx", "fy"))
    det = at("det")
    return {
        Quantity(xx, "1/m^2"): sympy.Add(*(a**2 for a, _ in rows)),
        Quantity(xy, "1/m^2"): sympy.Add(*(a * b for a, b in rows)),
        Quantity(yy, "1/m^2"): sympy.Add(*(b**2 for _, b in rows)),
        Quantity(fx, "1/m"): sympy.Add(*(a * r for (a, _), r in zip(rows, residual, strict=True))),
        Quantity(fy, "1/m"): sympy.Add(*(b * r for (_, b), r in zip(rows, residual, strict=True))),
        Quantity(det, "1/m^4"): xx * yy - xy**2,
        Quantity(at("nearest_x"), "m"): x + (yy * fx - xy * fy) / det,
        Quantity(at("nearest_y"), "m"): y + (xx * fy - xy * fx) / det,
    }


def _null_vector(step: int) -> dict[Quantity, sympy.Expr]:
    """Return the null vector of S^T, the cross product of the columns of S."""
    sx, sy = ([symbol(f"{name}_{i}_at_{step}") for i in CHAINS] for name in ("sx", "sy"))
    null = [symbol(f"null_{i}") for i in CHAINS]
    turn = ((1, 2), (2, 0), (0, 1))
    definitions = {
        Quantity(n, "1/m^2", description="null vector of S^T"): sx[j] * sy[k] - sx[k] * sy[j]
        for n, (j, k) in zip(null, turn, strict=True)
    }
    return definitions | {Quantity("null_squared", "1/m^4"): sympy.Add(*(n**2 for n in null))}
