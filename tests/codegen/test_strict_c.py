"""Generated C compiles without a warning, for every kind of model, integrator and scalar, and runs clean under sanitizers."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sympy

from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.emit_c import emit_batch, emit_c, sensitivity_pairs
from mechsmith.codegen.integrators import Exponential, ImplicitMidpoint, Integrator, Radau, RungeKutta4
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

x, w, u, d, k, dt = sympy.symbols("x w u d k dt", real=True)
INTEGRATORS = (RungeKutta4(3), Exponential(), Radau(), ImplicitMidpoint(2))
KINDS = ("none", "input", "state")


def make(crossing: str, *, discrete: bool, mass: bool, linear: bool = False) -> Model:
    """Return a model with a crossing of a kind, a vector parameter and a matrix output."""
    stiffness = Quantity("c", "", shape=(2,))
    c0, c1 = stiffness.elements
    rate = k * ((-x if linear else -sympy.sinh(x)) + c0 * sympy.Abs(u) + (d if discrete else 0))
    crossings = {"none": (), "input": (u, u - c1), "state": (x - c0,)}[crossing]
    return Model(
        name=f"{crossing}_{'discrete' if discrete else 'plain'}_{'mass' if mass else 'unit'}",
        states=(Quantity(x, ""), Quantity(w, "")),
        discrete_states=(Quantity(d, ""),) if discrete else (),
        inputs=(Quantity(u, ""),),
        parameters=(Quantity(k, "1/s"), stiffness) + ((Quantity(dt, "s"),) if discrete else ()),
        derivatives={x: rate, w: k * (u - w * c1)},
        mass=sympy.Matrix([[2 + c0**2, 0], [0, 1]]) if mass else None,
        updates={d: d + x * dt * k} if discrete else {},
        sample_time="dt" if discrete else None,
        outputs={Quantity("y", "", shape=(2, 2)): sympy.Matrix([[x, w], [sympy.sign(u), u**2]])},
        crossings=crossings,
    )


@pytest.mark.parametrize("integrator", INTEGRATORS, ids=lambda i: type(i).__name__)
@pytest.mark.parametrize("scalar", ["double", "float"])
def test_steps(
    integrator: Integrator, scalar: str, compiler: str, compile_strictly: Callable[..., Path]
) -> None:
    for crossing in KINDS:
        for discrete in (False, True):
            for mass in (False, True):
                model = make(
                    crossing, discrete=discrete, mass=mass, linear=isinstance(integrator, Exponential)
                )
                functions = lower(model)
                functions = functions.with_jacobians(*sensitivity_pairs(functions))
                discretisation = discretise(functions, integrator)
                assert discretisation.crossing == crossing
                texts = emit_c(functions, discretisation=discretisation, scalar=scalar)
                main = f"{model.name}.c"
                if scalar == "double":
                    main = f"{model.name}_batch.c"
                    texts[main] = emit_batch(functions, discretisation=discretisation)
                compile_strictly(texts, compiler, main=main, flags=("-fsyntax-only", "-Wno-unused-function"))


def test_objects_without_unused_functions(compiler: str, compile_strictly: Callable[..., Path]) -> None:
    """The flags of `test_steps` stop after parsing; here code is made, and every static function must be used."""
    for crossing in KINDS:
        functions = lower(make(crossing, discrete=True, mass=True))
        functions = functions.with_jacobians(*sensitivity_pairs(functions))
        discretisation = discretise(functions)
        texts = emit_c(functions, discretisation=discretisation)
        main = f"{functions.name}_batch.c"
        texts[main] = emit_batch(functions, discretisation=discretisation)
        compile_strictly(texts, compiler, main=f"{functions.name}.c", flags=("-O1",))
        compile_strictly(texts, compiler, main=main, flags=("-O1",))


def test_float_is_float_throughout(compiler: str, compile_strictly: Callable[..., Path]) -> None:
    for crossing in KINDS:
        functions = lower(make(crossing, discrete=True, mass=False))
        functions = functions.with_jacobians(("output", "p"), ("derivative", "x"))
        discretisation = discretise(functions, Radau())
        texts = emit_c(functions, discretisation=discretisation, scalar="float")
        code = re.sub(r"/\*.*?\*/|#.*", "", "".join(texts.values()), flags=re.DOTALL)
        assert "double" not in code
        assert not re.findall(r"(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?(?![\w.])", code), "a literal without suffix"
        target = compile_strictly(texts, compiler)
        names = subprocess.run(["nm", "-u", target], capture_output=True, text=True, check=True).stdout
        called = {line.split()[-1] for line in names.splitlines()}
        # Integer code and the math functions of float; isfinite may be a function of its own.
        assert all(name.endswith("f") or name.startswith("_") for name in called), called


def test_fast_math_is_refused(compiler: str, tmp_path: Path) -> None:
    for name, text in emit_c(lower(make("none", discrete=False, mass=False))).items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [compiler, "-ffast-math", "-c", "none_plain_unit.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert "compile it without -ffast-math" in done.stderr


@pytest.mark.parametrize(
    "model",
    [
        Model(
            name="bare", states=(Quantity(x, ""),), derivatives={x: -k * x}, parameters=(Quantity(k, "1/s"),)
        ),
        Model(name="constant", outputs={Quantity("y", ""): sympy.Integer(1)}),
        Model(name="gain", inputs=(Quantity(u, ""),), outputs={Quantity("y", ""): 2 * u}),
        Model(name="number", parameters=(Quantity(k, ""),), outputs={Quantity("y", ""): k**2}),
        Model(
            name="memory",
            discrete_states=(Quantity(d, ""),),
            parameters=(Quantity(dt, "s"),),
            updates={d: 2 * d},
            sample_time="dt",
        ),
        Model(
            name="driven",
            states=(Quantity(x, ""),),
            inputs=(Quantity(u, "1/s"),),
            derivatives={x: u},
            crossings=(x,),
        ),
        Model(
            name="free",
            states=(Quantity(x, ""), Quantity(w, "1/s")),
            derivatives={x: w, w: 0},
            crossings=(x,),
        ),
    ],
    ids=lambda model: model.name,
)
def test_trap_b4_models_without_some_role(
    model: Model, compiler: str, compile_strictly: Callable[..., Path]
) -> None:
    plain = lower(model)
    pairs = [(of, wrt) for of in plain.functions for wrt in ("x", "u", "p")]
    functions = plain.with_jacobians(*pairs)  # some of them have no columns
    discretisation = discretise(functions)
    texts = emit_c(functions, discretisation=discretisation)
    main = f"{model.name}_batch.c"
    texts[main] = emit_batch(functions, discretisation=discretisation)
    compile_strictly(texts, compiler, main=f"{model.name}.c")
    compile_strictly(texts, compiler, main=main)
    assert "[0]" not in re.sub(r"(?<=\w)\[0\](?= =|;|\)|,| [-+*/<>!])", "", texts[f"{model.name}.h"])


DRIVER = """
#include "state_discrete_mass_batch.c"
#include <stdio.h>
int main(void)
{
    const double time[5] = {0.0, 0.1, 0.2, 0.3, 0.4};
    const double samples[5] = {1.0, -1.0, 2.0, 0.5, -0.5};
    const double p[8] = {1.0, 0.1, 0.4, 0.1, 2.0, 0.2, 0.3, 0.1};
    const double x0[4] = {1.0, 0.5, -1.0, 0.2};
    const double d0[1] = {0.1};
    double outputs[2 * 5 * 4], states[5 * 2], memories[5], derivatives[5 * 4 * 6], out[8];
    int statuses[2];
    size_t failed[2] = {0, 0};
    int status = state_discrete_mass_rollout(5, time, samples, x0, d0, p, outputs, states, memories, failed);
    status |= state_discrete_mass_rollout_sensitivity(5, time, samples, x0, d0, p, outputs, derivatives, failed);
    state_discrete_mass_rollout_batch(2, 5, time, samples, x0, 2, d0, p, outputs, statuses, failed);
    state_discrete_mass_batch_output(2, x0, 2, d0, 0, NULL, 0, samples, 1, p, 4, out);
    printf("%d %d %d %.17g %.17g", status, statuses[0], statuses[1], outputs[19], derivatives[119]);
    return 0;
}
"""


def test_sanitizers(compiler: str, tmp_path: Path) -> None:
    functions = lower(make("state", discrete=True, mass=True))
    functions = functions.with_jacobians(*sensitivity_pairs(functions))
    discretisation = discretise(functions)
    texts = emit_c(functions, discretisation=discretisation)
    texts["state_discrete_mass_batch.c"] = emit_batch(functions, discretisation=discretisation)
    texts["driver.c"] = DRIVER
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    flags = ["-std=c99", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    done = subprocess.run(
        [compiler, *flags, "driver.c", "-o", "driver", "-lm"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "cannot find" in done.stderr and "san" in done.stderr:
        pytest.skip(f"{compiler} has no sanitizer libraries")
    assert done.returncode == 0, done.stderr
    run = subprocess.run([tmp_path / "driver"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("0 0 0 ")


def test_there_is_a_compiler_to_test_with() -> None:
    assert shutil.which("gcc") or shutil.which("clang"), "these tests need gcc or clang"
