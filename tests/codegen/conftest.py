"""What the tests of generated code share: models, the three ways to run one, and strict compilation."""

import dataclasses
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi
import numpy
import pytest
import sympy

from mechsmith.codegen.build import build
from mechsmith.codegen.emit_python import emit_python
from mechsmith.codegen.functions import CasadiEvaluator, FunctionSet, Variable, from_casadi, make_function
from mechsmith.codegen.lower import translate
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

STRICT = "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wdouble-promotion -Werror".split()

LUGRE_ORDER = ("sigma0", "sigma1", "alpha0", "alpha1", "v0", "vd", "alpha2", "alpha3")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one folder of compiled libraries for the session."""
    return tmp_path_factory.mktemp("compiled")


def _through_python(functions: FunctionSet) -> FunctionSet:
    namespace: dict[str, Any] = {}
    exec(emit_python(functions), namespace)
    return from_casadi(namespace["METADATA"], namespace["functions"]())


@pytest.fixture(scope="session")
def through_python() -> Callable[[FunctionSet], FunctionSet]:
    """Return what makes a function set from the text of its generated module."""
    return _through_python


@pytest.fixture(scope="session")
def three_ways(cache: Path) -> Callable[[FunctionSet], dict[str, FunctionSet]]:
    """Return what runs functions in CasADi, from generated Python and from generated C."""

    def run(functions: FunctionSet) -> dict[str, FunctionSet]:
        return {
            "casadi": functions,
            "python": _through_python(functions),
            "c": build(functions, cache=cache),
        }

    return run


@pytest.fixture(params=["gcc", "clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    """Return each compiler in turn."""
    path = shutil.which(request.param)
    if path is None:
        pytest.skip(f"{request.param} is not installed")
    return path


@pytest.fixture
def compile_strictly(tmp_path: Path) -> Callable[..., Path]:
    """Return what compiles generated texts with every warning an error, and gives the object file."""

    def run(texts: Mapping[str, str], compiler: str, *, main: str = "", flags: tuple[str, ...] = ()) -> Path:
        for name, text in texts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        source = main or next(name for name in texts if name.endswith(".c"))
        target = tmp_path / f"{source}.o"
        done = subprocess.run(
            [compiler, *STRICT, *flags, "-c", source, "-o", str(target)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{source}:\n{done.stderr[:3000]}"
        return target

    return run


@pytest.fixture(scope="session")
def lugre() -> Model:
    """Return the LuGre model with the position as the integral of its velocity."""
    model = make_lugre()
    return dataclasses.replace(model, integrals={"velocity": Quantity("position", "rad")})


@pytest.fixture(scope="session")
def lugre_parameters(reference: Path) -> dict[str, numpy.ndarray]:
    """Return the parameter vectors of the sets A, B, C, in the model's order."""
    sets = json.loads((reference / "friction/L00_parameter_sets.json").read_text())["sets"]
    return {name: numpy.array([values[key] for key in LUGRE_ORDER]) for name, values in sets.items()}


@pytest.fixture(scope="session")
def functions_of() -> Callable[..., FunctionSet]:
    """Return what makes functions with one output for each expression, of inputs without units."""

    def make(
        expressions: Sequence[sympy.Expr], symbols: Sequence[sympy.Symbol], *, name: str = "expressions"
    ) -> FunctionSet:
        empty = [casadi.SX.sym(letter, 0) for letter in "xdz"]
        inputs, parameters = casadi.SX.sym("u", len(symbols)), casadi.SX.sym("p", 0)
        table = {symbol.name: inputs[i] for i, symbol in enumerate(symbols)}
        values = casadi.vertcat(*translate(expressions, table, model=name))
        output = make_function("output", [*empty, inputs, parameters], values)
        return FunctionSet(
            name=name,
            states=(),
            discrete_states=(),
            unknowns=(),
            inputs=tuple(Variable(symbol.name, ("",)) for symbol in symbols),
            parameters=(),
            outputs=tuple(Variable(f"y{i}", ("",)) for i in range(len(expressions))),
            functions={"output": CasadiEvaluator(output)},
            capabilities=frozenset({"embeddable", "derivatives"}),
        )

    return make
