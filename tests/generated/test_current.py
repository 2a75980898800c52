"""generated/ is what the catalogue gives now, and its modules give what the lowered models give."""

import importlib
import json
from pathlib import Path

import mechsmith.generated
import numpy as np
import pytest
from mechsmith.codegen.functions import FunctionSet, from_casadi
from mechsmith.codegen.lower import lower
from mechsmith.codegen.tree import catalogue_files, differences
from mechsmith.symbolic.catalogue import CATALOGUE

FOLDER = Path(mechsmith.generated.__path__[0])


@pytest.fixture(scope="module")
def sets() -> list[FunctionSet]:
    return [lower(make()) for make in CATALOGUE.values()]


def test_generated_is_current(sets: list[FunctionSet]) -> None:
    found = differences(FOLDER, catalogue_files(sets))
    report = "\n".join(f"{d.file}: {d.kind}\n{d.diff}" for d in found)
    assert not found, f"{report}\nMend it: mechsmith generate --all"


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_generated_module_gives_its_vectors(name: str) -> None:
    module = importlib.import_module(f"mechsmith.generated.{name}")
    functions = from_casadi(module.METADATA, module.functions())
    vectors = json.loads((FOLDER / f"{name}.json").read_text())["vectors"]
    checked = [vector for vector in vectors if vector["function"] != "step"]
    assert checked
    for vector in checked:
        arguments = {key: vector["arguments"][key] for key in "xdzup"}
        value = functions.evaluate(vector["function"], **arguments).reshape(-1)
        expected = np.array(vector["expected"])
        # Twelve digits are kept; sums may cancel some of them against their largest term.
        np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max(initial=0.0))
