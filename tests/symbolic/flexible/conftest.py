"""What the tests of flexible links share: reference values, parameters by the references' names, functions by option."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.functions import Array, FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.flexible.link import make_flexible_link, make_spong_link

NAMES = {
    "k": "joint_stiffness",
    "EI": "bending_stiffness",
    "l": "length",
    "rhoA": "mass_per_length",
    "J": "hub_inertia",
    "EA": "axial_stiffness",
}


@pytest.fixture(scope="session")
def flexible(reference: Path) -> Callable[[str], dict[str, Any]]:
    """Return what loads a reference file of flexible links."""
    return lambda name: json.loads((reference / "flexible" / f"p2_{name}.json").read_text())


@pytest.fixture(scope="session")
def named() -> Callable[[FunctionSet, Mapping[str, float]], Array]:
    """Return the parameter vector of functions from a beam of the references."""

    def run(functions: FunctionSet, beam: Mapping[str, float]) -> Array:
        values = {NAMES[key]: value for key, value in beam.items() if key in NAMES}
        own = functions.labels("p")
        return functions.vector("p", {name: value for name, value in values.items() if name in own})

    return run


@pytest.fixture(scope="session")
def link() -> Callable[..., FunctionSet]:
    """Return what makes the functions of a flexible link, each once."""

    @cache
    def run(modes: int = 4, axial: int = 0, order: str = "first", separate: bool = False) -> FunctionSet:
        make = make_spong_link if separate else make_flexible_link
        return lower(make(modes=modes, axial=axial, order=order))  # type: ignore[arg-type]

    return run


@pytest.fixture(scope="session")
def point() -> Callable[..., Array]:
    """Return what makes random states: deflections of up to so much, rates of up to ten times that."""

    def run(size: int, *, seed: int, deflection: float = 0.05) -> Array:
        rng = np.random.default_rng(seed)
        scale = np.concatenate([np.full(size // 2, deflection), np.full(size // 2, 10.0 * deflection)])
        return scale * rng.uniform(-1.0, 1.0, size)

    return run
