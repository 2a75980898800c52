"""What the tests of serial robots share: reference values, and a model evaluated in all four ways."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.build import build
from mechsmith.codegen.emit_python import emit_python
from mechsmith.codegen.functions import from_casadi
from mechsmith.codegen.lower import lower
from mechsmith.symbolic import graph
from mechsmith.symbolic.evaluate import Evaluator
from mechsmith.symbolic.model import Model

Values = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def known(reference: Path) -> Callable[[str], Any]:
    """Return what reads a reference file by the start of its name."""

    def read(start: str) -> Any:
        (path,) = (reference / "serial").glob(f"{start}_*.json")
        return json.loads(path.read_text())

    return read


def by_sympy(model: Model, points: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return the outputs (n, outputs) in 50-digit arithmetic, definitions put in."""
    table: dict[Any, Any] = {}
    for equation in model.of_kind("definition"):
        (table[equation.symbol],) = graph.substitute([equation.expression], table)
    outputs = graph.substitute([equation.expression for equation in model.of_kind("output")], table)
    evaluator = Evaluator(outputs)
    inputs = [element.name for quantity in model.inputs for element in quantity.elements]
    names = [element.name for quantity in model.parameters for element in quantity.elements]
    fixed = dict(zip(names, map(float, parameters), strict=True))
    return np.array(
        [
            [float(value) for value in evaluator(fixed | dict(zip(inputs, map(float, point), strict=True)))]
            for point in points
        ]
    )


@pytest.fixture(scope="session")
def four_ways(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Values]:
    """Return what evaluates a model's outputs (n, outputs) in SymPy, CasADi, generated Python and generated C."""
    cache = tmp_path_factory.mktemp("compiled")

    def run(model: Model, points: np.ndarray, values: dict[str, float] | None = None) -> Values:
        functions = lower(model)
        parameters = functions.vector("p", values)
        namespace: dict[str, Any] = {}
        exec(emit_python(functions), namespace)
        ways = {
            "casadi": functions,
            "python": from_casadi(namespace["METADATA"], namespace["functions"]()),
            "c": build(functions, cache=cache),
        }
        result = {name: way.batch("output", u=points, p=parameters)[:, :, 0] for name, way in ways.items()}
        return {"sympy": by_sympy(model, points, parameters)} | result

    return run
