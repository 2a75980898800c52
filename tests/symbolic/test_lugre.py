"""LuGre: reference values at points, the table of identities, variants and compositions."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import sympy

from mechsmith.symbolic.catalogue import make_model
from mechsmith.symbolic.evaluate import Evaluator
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.units import DimensionError
from mechsmith.symbolic.verify import judge, verify

# The references' names of the parameters.
NAMES = {
    "s0": "sigma0",
    "s1": "sigma1",
    "a0": "alpha0",
    "a1": "alpha1",
    "v0": "v0",
    "vd": "vd",
    "a2": "alpha2",
    "a3": "alpha3",
}
# The references are 40-digit values rounded to doubles: half a unit in the last place, and as much again for
# inputs that are decimal there and double here, for each of some ten factors.
ROUNDING = 1e-14
MODEL = make_lugre()
IDENTITIES = {identity.name: identity for identity in MODEL.identities}
PRINTED = {"(5) as printed", "(9) as printed", "(13) as printed", "(15) as printed", "(16) as printed"}


def load(folder: Path, name: str) -> dict:
    return json.loads((folder / "friction" / name).read_text())


def parameters(values: dict) -> dict[str, float]:
    return {own: values[name] for own, name in NAMES.items()}


def broken(model: Model) -> set[str]:
    """Return the names of the identities that hold of LuGre and not of a model."""
    return {
        verdict.identity.name
        for verdict in verify(model)
        if verdict.identity.expected == "proved" and verdict.status == "refuted"
    }


def test_constitutive_equations_at_points(reference: Path) -> None:
    data = load(reference, "L01_constitutive.json")
    names = {"stribeck": "g", "damping": "sigma1_v", "viscous": "f", "bristle_rate": "zdot", "force": "F"}
    evaluator = Evaluator([MODEL.expand(MODEL.expression(name)) for name in names])
    for row in data["expected"]:
        given = {**parameters(data["inputs"][row["set"]]), "velocity": row["v"], "z": row["z"]}
        # zdot and F are differences; they are as good as their largest term.
        slipping = abs(row["v"]) * (1 + given["s0"] * abs(row["z"]) / row["g"])
        scale = {
            "zdot": slipping,
            "F": given["s0"] * abs(row["z"]) + row["sigma1_v"] * slipping + abs(row["f"]),
            "f": abs(given["a2"] * row["v"]) + abs(given["a3"]) * row["v"] ** 2,
        }
        for value, name in zip(evaluator(given), names.values(), strict=True):
            bound = ROUNDING * scale.get(name, abs(row[name]))
            assert abs(float(value) - row[name]) <= bound, (row, name)


def test_steady_force_at_points(reference: Path) -> None:
    data = load(reference, "L01_constitutive.json")
    evaluator = Evaluator([IDENTITIES["(6) at any speed"].of(MODEL).left])
    for row in data["expected"]:
        given = {**parameters(data["inputs"][row["set"]]), "velocity": row["v"], "z": row["z"]}
        (value,) = evaluator({**given, "stribeck": row["g"], "viscous": row["f"]})
        if row["v"] == 0:
            # 0/0 without the convention sgn(0) = 0 that the reference states.
            assert math.isnan(value)
            continue
        assert float(value) == pytest.approx(
            row["F_steady"], rel=0, abs=ROUNDING * (row["g"] + abs(row["f"]))
        )


def test_presliding_at_points(reference: Path) -> None:
    exact = IDENTITIES["(15)"].of(MODEL)
    first = IDENTITIES["(16)"].of(MODEL)
    bristles = IDENTITIES["(14)"].of(MODEL)
    slope = IDENTITIES["(13)"].of(MODEL)
    evaluator = Evaluator([exact.left, exact.right, first.right, bristles.left, 1 / slope.left])
    for row in load(reference, "L02_presliding_closed_form.json")["expected"]:
        given = {
            "s0": row["sigma0"],
            "s1": row["sigma1"],
            "stribeck": row["g"],
            "velocity": row["v"],
            "travel": row["x"],
            "z_start": row["z0"],
            "small": 1,
        }
        integrated, closed, linear, force, inverse = map(float, evaluator(given))
        bound = ROUNDING * (row["g"] + row["sigma1"] * row["v"]) * (1 + row["exp_minus_c"])
        assert integrated == pytest.approx(row["F15"], rel=0, abs=bound)
        assert closed == pytest.approx(row["F15"], rel=0, abs=bound)
        # (16) leaves its range: the terms grow with s0 x / g.
        assert linear == pytest.approx(
            row["F16"], rel=0, abs=bound * (1 + row["sigma0"] * row["x"] / row["g"])
        )
        assert force == pytest.approx(row["sigma0"] * row["z"], rel=0, abs=bound)
        assert inverse == pytest.approx(row["dzdx"], rel=0, abs=ROUNDING * (1 + row["exp_minus_c"]))


def test_slope_of_the_force_at_points(reference: Path) -> None:
    data = load(reference, "L04_dFdx.json")
    right, printed = (IDENTITIES[name].of(MODEL) for name in ("(9)", "(9) as printed"))
    evaluator = Evaluator([right.left, right.right, printed.right])
    for row in data["expected"]:
        given = parameters(data["inputs"][row["set"]])
        given |= {"velocity": row["v"], "z": row["z"], "acceleration": row["a"]}
        derived, closed, misprint = map(float, evaluator(given))
        # The largest terms: s1 a / v and s0, some ten times the result.
        bound = 10 * ROUNDING * (given["s1"] * abs(row["a"]) / row["v"] + given["s0"])
        assert derived == pytest.approx(row["dFdx_const_sigma1"], rel=0, abs=bound)
        assert closed == pytest.approx(row["dFdx_const_sigma1"], rel=0, abs=bound)
        assert misprint == pytest.approx(row["printed_eq9"], rel=10 * ROUNDING)


@pytest.mark.parametrize("motion", ["rotary", "linear"])
def test_every_verdict_is_as_expected(motion: str) -> None:
    verdicts = verify(make_lugre(motion=motion))
    assert {verdict.identity.name: verdict.status for verdict in verdicts} == {
        name: "refuted" if name in PRINTED else "proved" for name in IDENTITIES
    }
    assert all(verdict.as_expected for verdict in verdicts)
    numbered = {name.split()[0] for name in IDENTITIES}
    assert numbered == {f"({number})" for number in range(1, 17)}


def test_misprints_are_refuted_with_values_of_both_sides() -> None:
    for verdict in verify(MODEL):
        if verdict.identity.name in PRINTED:
            example = verdict.counterexample
            assert example is not None
            assert example.left != example.right
            assert example.values


def test_units_refute_what_they_can() -> None:
    by_units = {
        motion: {v.identity.name for v in verify(make_lugre(motion=motion)) if v.method == "units"}
        for motion in ("rotary", "linear")
    }
    # A radian is dimensionless: (9) and c of (13) are wrong by units for lengths only.
    assert by_units["rotary"] == {"(5) as printed"}
    assert by_units["linear"] == {"(5) as printed", "(9) as printed", "(13) as printed"}


def test_the_printed_equation_5_is_no_model() -> None:
    velocity, a0 = MODEL["velocity"], MODEL["a0"]
    with pytest.raises(DimensionError) as error:
        MODEL.replace(
            definitions={"viscous": a0 * velocity + MODEL["a3"] * sympy.sign(velocity) * velocity**2}
        )
    assert "a0*velocity" in str(error.value)


def test_printed_15_holds_after_a_fresh_start() -> None:
    statement = IDENTITIES["(15) as printed"].of(MODEL)
    start = sympy.Symbol("z_start", real=True)
    fresh = replace(statement, left=statement.left.subs(start, 0), right=statement.right.subs(start, 0))
    assert judge(MODEL, fresh).status == "proved"


@pytest.mark.parametrize("set_name", ["A", "B", "C"])
def test_bounds_admit_the_reference_sets(set_name: str, reference: Path) -> None:
    values = parameters(load(reference, "L00_parameter_sets.json")["sets"][set_name])
    for quantity in MODEL.parameters:
        assert quantity.lower <= values[quantity.name] <= quantity.upper
        if set_name == "A":
            assert quantity.nominal == values[quantity.name]


def test_another_stribeck_curve_breaks_what_speaks_of_the_curve_only() -> None:
    v, v0, a0, a1 = (MODEL[name] for name in ("velocity", "v0", "a0", "a1"))
    exponent = Quantity("exponent", "", nominal=1.0, lower=0.5, upper=4.0)
    curves = {
        "power": a0 + a1 * sympy.exp(-((sympy.Abs(v) / v0) ** exponent.symbol)),
        "rational": a0 + a1 / (1 + (v / v0) ** 2),
    }
    for name, curve in curves.items():
        added = (exponent,) if name == "power" else ()
        variant = MODEL.replace(name=name, definitions={"stribeck": curve}, parameters=added)
        assert broken(variant) == {"(3)", "(11)"}


def test_other_viscous_friction_breaks_what_speaks_of_it_only() -> None:
    warm = MODEL["a2"] * (1 + sympy.Symbol("thinning", real=True) * sympy.Symbol("temperature", real=True))
    variant = MODEL.replace(
        definitions={"viscous": warm * MODEL["velocity"]},
        inputs=(Quantity("temperature", "K"),),
        parameters=(Quantity("thinning", "1/K", nominal=-0.01),),
    )
    assert broken(variant) == {"(5)", "(6)", "(10)"}


def test_constant_damping_breaks_equation_4_only() -> None:
    assert broken(MODEL.replace(definitions={"damping": MODEL["s1"]})) == {"(4)"}


def test_a_bristle_rate_that_is_not_affine_is_told() -> None:
    z, v = MODEL["z"], MODEL["velocity"]
    rate = v - MODEL["s0"] ** 2 * sympy.Abs(v) * z**2 / MODEL["stribeck"] ** 2
    verdicts = {v.identity.name: v for v in verify(MODEL.replace(definitions={"bristle_rate": rate}))}
    assert verdicts["(15)"].method == "statement"
    assert "affine" in verdicts["(15)"].detail
    assert verdicts["(3)"].status == "proved"


def test_identities_hold_in_a_composition() -> None:
    loop = make_model("emps_lugre_closed_loop")
    verdicts = verify(loop)
    assert len(verdicts) == len(MODEL.identities)
    assert all(verdict.as_expected for verdict in verdicts)


def test_linear_and_rotary_differ_in_units_only() -> None:
    linear = make_lugre(motion="linear")
    assert [e.expression for e in linear.equations] == [e.expression for e in MODEL.equations]
    assert {q.unit for q in linear.quantities.values()}.isdisjoint({"rad", "N*m", "rad/s"})


def test_symmetry_of_the_force() -> None:
    # F(-z, -v) = -F(z, v): LuGre knows no preferred direction.
    z, v = MODEL["z"], MODEL["velocity"]
    force = MODEL.expand(MODEL.expression("force"))
    mirrored = force.subs({z: -z, v: -v}, simultaneous=True)
    evaluator = Evaluator([force, mirrored])
    given = parameters({name: 1.5 for name in NAMES.values()})
    for deflection, velocity in itertools.product((-0.3, 0.0, 0.2), (-0.7, 0.0, 1.1)):
        there, back = evaluator({**given, "z": deflection, "velocity": velocity})
        assert there == -back


def test_a_model_without_the_names_says_so() -> None:
    statement = IDENTITIES["(3)"]
    slider = Model(
        name="slider", outputs={Quantity("force", "N"): 2 * MODEL["v0"]}, parameters=(Quantity("v0", "N"),)
    )
    with pytest.raises(ModelError, match=r"no symbol 'velocity'|no equation for 'stribeck'"):
        statement.of(slider)
