"""Faults of other generators of C: names, numbers, length, locale (reference/traps.md, B)."""

import ctypes
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import casadi
import numpy
import pytest
import sympy
from sympy import Rational

from mechsmith.codegen import c_body
from mechsmith.codegen.build import build, build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.emit_c import emit_batch, emit_c
from mechsmith.codegen.emit_python import emit_python
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.text import c_number
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

NAMES = (
    *("lambda", "I", "in", "double", "x_{1}", "\\theta", "Delta", "y1", "gamma", "j0", "out", "x", "p", "t0"),
    *("NULL", "M_PI", "class", "w", "from", "to", "next", "a{b}", "a_b", "h", "residual", "f*/", "/*g", "v"),
)
x, y = sympy.symbols("x y", real=True)


def with_names(name: str) -> Model:
    quantities = tuple(Quantity(sympy.Symbol(n, real=True), "") for n in NAMES)
    symbols = [q.elements[0] for q in quantities]
    state, dt = sympy.Symbol("int", real=True), Quantity("d t", "s")
    rate = sum(symbols[:20]) / dt.elements[0]
    return Model(
        name=name,
        states=(Quantity(state, ""),),
        inputs=quantities[:10],
        parameters=(*quantities[10:], dt),
        derivatives={state: rate - state / dt.elements[0]},
        outputs={
            Quantity("return", "", shape=(2,)): [state + sum(symbols), symbols[0]],
            Quantity("void", ""): state * symbols[1],
        },
        description='It says "*/ and \\N and ends """ here.',
        references=("Somebody's /* book */",),
    )


@pytest.mark.parametrize("name", ["sin", "main", "double", "x_{1}", "exp", "time", 'a"""\\b*/'])
def test_b1_names(name: str, compiler: str, compile_strictly: Callable[..., Path]) -> None:
    functions = lower(with_names(name)).with_jacobians(("output", "u"), ("output", "p"), ("output", "x"))
    discretisation = discretise(functions)
    texts = emit_c(functions, discretisation=discretisation)
    header = next(text for file, text in texts.items() if file.endswith(".h"))
    compile_strictly(texts, compiler)
    prefix = next(file for file in texts if file.endswith(".h"))[:-2]
    compile_strictly(
        {**texts, f"{prefix}_batch.c": emit_batch(functions, discretisation=discretisation)},
        compiler,
        main=f"{prefix}_batch.c",
    )
    # What was renamed is listed beside its new name.
    for written, cleaned in (
        ("lambda", "lambda_"),
        ("I", "I_"),
        ("x_{1}", "x_1"),
        ("\\theta", "theta"),
        ("j0", "j0_"),
    ):
        assert re.search(rf"double {cleaned}; /\* .*named {re.escape(written)} in the model", header)
    assert "double a_b; /* 1; named a{b} in the model */" in header
    assert "double a_b_2; /* 1; named a_b in the model */" in header


def test_b1_values_arrive_under_their_names(
    three_ways: Callable[[FunctionSet], dict[str, FunctionSet]], cache: Path
) -> None:
    functions = lower(with_names("main"))
    rng = numpy.random.default_rng(0)
    point = {key: rng.integers(1, 9, functions.size(key)).astype(float) for key in "xup"}
    total = point["x"][0] + point["u"].sum() + point["p"][:-1].sum()
    for way in three_ways(functions).values():
        got = way.evaluate("output", **point)[:, 0]
        assert got.tolist() == [total, point["u"][0], point["x"][0] * point["u"][1]]
    assert build_simulator(discretise(functions), cache=cache).functions.labels("p")[-1] == "d t"


def test_a_description_beyond_16_bits_survives(through_python: Callable[[FunctionSet], FunctionSet]) -> None:
    text = "\U0001d6fc \u2028 \\d \"quoted\" 'too'"
    model = Model(name="text", inputs=(Quantity(x, "", description=text),), outputs={Quantity("out", ""): x})
    assert through_python(lower(model)).inputs[0].description == text


def test_b2_a_constant_that_is_no_float_is_an_error() -> None:
    for number in ("1e300", "-1e39", "1e-300"):
        model = Model(
            name="b2", inputs=(Quantity(x, ""),), outputs={Quantity("out", ""): x * sympy.Float(number)}
        )
        with pytest.raises(OverflowError, match="does not fit in a float"):
            emit_c(lower(model), scalar="float")


@pytest.mark.parametrize("scalar", ["double", "float"])
def test_numbers_that_are_not_finite(
    scalar: str, compiler: str, compile_strictly: Callable[..., Path]
) -> None:
    """A free power and an open Piecewise hold NaN and infinity, whose macros are of type float."""
    model = Model(
        name="open",
        inputs=(Quantity(x, ""), Quantity(y, "")),
        outputs={
            Quantity("power", ""): x**y,
            Quantity("open_end", ""): sympy.Piecewise((x, y > 0)),
            Quantity("lowest", ""): sympy.Max(x, sympy.Piecewise((-sympy.oo, y > 0), (y, True))),
        },
    )
    compile_strictly(emit_c(lower(model), scalar=scalar), compiler)


def test_b3_no_integer_division(
    functions_of: Callable[..., FunctionSet], three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]
) -> None:
    cases = [Rational(1, 2) + 0 * x, 3 / x, -1 / x, x**-2, x ** Rational(3, 2), Rational(1, 3) * x, x / 7]
    expected = [0.5, 0.75, -0.25, 0.0625, 8.0, 4 / 3, 4 / 7]
    functions = functions_of(cases, (x,))
    for way in three_ways(functions).values():
        numpy.testing.assert_allclose(way.evaluate("output", u=[4.0])[:, 0], expected, rtol=2.0**-52)
    code = re.sub(r"/\*.*?\*/", "", emit_c(functions)["expressions.c"], flags=re.DOTALL)
    assert not re.search(r"[^\w.\[]\d+\s*/", code), "a whole number is divided"
    assert not re.search(r"/\s*\d+[^\w.]", code), "something is divided by a whole number"


def long_functions(length: int, functions_of: Callable[..., FunctionSet]) -> FunctionSet:
    """Return two outputs of a recurrence with some 2 `length` operations, with comparisons and uses far apart."""
    value: sympy.Expr = x
    for i in range(length):
        if i % 500 == 250:
            value = sympy.Piecewise((value, y > i), (value * y, True), evaluate=False)
        elif i % 2:
            value = sympy.Add(value, sympy.Mul(x, sympy.Integer(i), evaluate=False), evaluate=False)
        else:
            value = sympy.sin(value, evaluate=False)
        _ = value.is_commutative
    return functions_of([value, value * y + sympy.exp(x)], (x, y), name="long")


def test_b5_a_long_function_is_split(
    functions_of: Callable[..., FunctionSet], three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]
) -> None:
    functions = long_functions(14_000, functions_of)
    texts = emit_c(functions)
    parts = re.findall(r"static void long_output_part\d+\([^)]*\)\n\{(.*?)\n\}", texts["long.c"], re.DOTALL)
    assert len(parts) >= 20_000 // c_body.LONGEST
    # Each instruction is a line; values handed on and (void) lines come on top.
    assert all(part.count("const double") + part.count("const int") <= c_body.LONGEST for part in parts)
    ways = three_ways(functions)
    for point in ([0.3, 2.0], [-1.0, 1e5], [0.0, 0.5]):
        reference = ways["casadi"].evaluate("output", u=point)
        # sin of values up to 1e5 doubles no error, and the sums start anew after each: one ulp of libm apart.
        numpy.testing.assert_allclose(ways["c"].evaluate("output", u=point), reference, rtol=1e-10)
        numpy.testing.assert_allclose(ways["python"].evaluate("output", u=point), reference, rtol=1e-10)


def test_b5_split_code_is_clean(
    functions_of: Callable[..., FunctionSet],
    compiler: str,
    compile_strictly: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(c_body, "LONGEST", 7)
    compile_strictly(emit_c(long_functions(1200, functions_of)), compiler)
    model = Model(
        name="split",
        states=(Quantity(x, ""),),
        parameters=(Quantity("k", "1/s"), Quantity("w", "", shape=(3,))),
        derivatives={x: sympy.Symbol("k", real=True) * sympy.sin(x) * sympy.Symbol("w_1", real=True)},
        outputs={Quantity("out", ""): sum(sympy.symbols("w_0 w_2", real=True)) * sympy.exp(x)},
    )
    functions = lower(model).with_jacobians(("output", "x"), ("output", "p"))
    discretisation = discretise(functions)
    texts = emit_c(functions, discretisation=discretisation)
    texts["split_batch.c"] = emit_batch(functions, discretisation=discretisation)
    compile_strictly(texts, compiler, main="split_batch.c")


def test_b5_splitting_changes_no_value(
    functions_of: Callable[..., FunctionSet], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = long_functions(600, functions_of)
    whole = build(functions, cache=cache).evaluate("output", u=[0.3, 300.0])
    for longest in (5, 64):
        monkeypatch.setattr(c_body, "LONGEST", longest)
        numpy.testing.assert_array_equal(
            build(functions, cache=cache).evaluate("output", u=[0.3, 300.0]), whole
        )


def test_b5_text_grows_linearly(functions_of: Callable[..., FunctionSet]) -> None:
    sizes = [len(emit_c(long_functions(n, functions_of))["long.c"]) for n in (1_000, 2_000, 4_000)]
    growth = [later / sooner for sooner, later in itertools.pairwise(sizes)]
    # Twice the length, and a tenth more for the digits of the numbers of its values and for what is handed on.
    assert all(2.0 <= ratio < 2.2 for ratio in growth), growth


EXTREMES = (
    1e-25,
    1e300,
    -0.0,
    0.1,
    1 / 3,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    123456789.0,
    1e22,
)


def test_b6_numbers_survive(
    three_ways: Callable[[FunctionSet], dict[str, FunctionSet]], functions_of: Callable[..., FunctionSet]
) -> None:
    """CasADi holds one zero for both signs, so -0.0 survives as a value and in print, not as its constant."""
    kept = [value for value in EXTREMES if value]
    functions = functions_of([x] * len(kept), (x,))
    for way in three_ways(functions).values():
        assert {value.hex() for value in way.evaluate("output", u=[-0.0])[:, 0].tolist()} == {"-0x0.0p+0"}
    u = casadi.SX.sym("u", 1)
    empty = casadi.SX.sym("e", 0)
    constants = casadi.Function(
        "output", [empty, empty, empty, u, empty], [casadi.vertcat(*kept)], ["x", "d", "z", "u", "p"], ["out"]
    )
    functions = functions.with_functions({"output": constants})
    for name, way in three_ways(functions).items():
        got = way.evaluate("output", u=[1.0])[:, 0]
        assert [value.hex() for value in got.tolist()] == [value.hex() for value in kept], name


def test_b6_literals_read_back() -> None:
    rng = numpy.random.default_rng(0)
    bits = rng.integers(0, 2**64, 2000, dtype=numpy.uint64).view(numpy.float64)
    for value in [*EXTREMES, *bits[numpy.isfinite(bits)].tolist()]:
        text = c_number(value, "double")
        assert float(text).hex() == float(value).hex()
        assert re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", text)
    singles = rng.integers(0, 2**32, 2000, dtype=numpy.uint32).view(numpy.float32)
    for single in singles[numpy.isfinite(singles)]:
        text = c_number(float(single), "float")
        assert numpy.float32(text[:-1]).tobytes() == single.tobytes()
        assert re.fullmatch(r"-?\d+\.\d+(e-?\d+)?f", text)


def test_b6_a_decimal_comma_changes_nothing(tmp_path: Path) -> None:
    """Emit and build under a German locale, made here where the system has its sources."""
    if not shutil.which("localedef"):
        pytest.skip("localedef is not installed, so no locale with a decimal comma can be made")
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode > 1 or not (tmp_path / "de_DE.UTF-8").is_dir():
        pytest.skip(f"no locale with a decimal comma: {made.stderr.strip()[:100]}")
    script = (
        "import locale, sys, hashlib\n"
        "if sys.argv[1] == 'comma':\n"
        "    locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\n"
        "    assert locale.localeconv()['decimal_point'] == ','\n"
        "from mechsmith.codegen.emit_c import emit_c\n"
        "from mechsmith.codegen.emit_python import emit_python\n"
        "from mechsmith.codegen.lower import lower\n"
        "from mechsmith.symbolic.friction.lugre import make_lugre\n"
        "functions = lower(make_lugre()).bake({'v0': 0.0125, 'a3': 1e-25})\n"
        "print(hashlib.sha256((''.join(emit_c(functions).values()) + emit_python(functions)).encode()).hexdigest())\n"
    )
    environment = {**os.environ, "LOCPATH": str(tmp_path), "PYTHONUTF8": "1"}
    printed = {
        subprocess.run(
            [sys.executable, "-c", script, mode], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for mode in ("point", "comma")
    }
    assert len(printed) == 1


def test_an_underflow_of_exp_is_zero(
    functions_of: Callable[..., FunctionSet], three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]
) -> None:
    functions = functions_of([sympy.exp(-(x**2))], (x,))
    for way in three_ways(functions).values():
        assert way.evaluate("output", u=[26.0]).item() == pytest.approx(numpy.exp(-676.0), rel=1e-15)
        assert way.evaluate("output", u=[100.0]).item() == 0.0
        assert numpy.isnan(way.evaluate("output", u=[float("nan")]).item())


def test_a_library_leaves_denormals_alone(functions_of: Callable[..., FunctionSet], cache: Path) -> None:
    """A library linked with -ffast-math would flush them to zero in the whole process."""
    build(functions_of([x * y], (x, y)), cache=cache).evaluate("output", u=[1.0, 1.0])
    smallest = ctypes.c_double(5e-324)
    assert float(numpy.float64(smallest.value) * 1.0) == 5e-324
    assert "casadi" in emit_python(functions_of([x], (x,)))
