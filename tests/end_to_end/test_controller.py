"""The example of a joint that generated C controls."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mechsmith.codegen.build import find_compiler

EXAMPLE = Path(__file__).parents[2] / "examples" / "controller" / "friction_compensation.py"


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_compiled_observer_compensates_friction() -> None:
    spec = importlib.util.spec_from_file_location("friction_compensation_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    def rms(*, observer: bool, factor: float = 1.0) -> float:
        return float(np.sqrt(np.mean(example.run(observer=observer, factor=factor, end=2.0) ** 2)))

    alone, exact, low = rms(observer=False), rms(observer=True), rms(observer=True, factor=0.9)
    # Friction of at least a0 = 1 N m against Kp = 400 N m/rad, but for the reversals.
    assert alone > 0.9 / 400.0
    assert exact < 0.1 * alone
    # The loop is linear but for friction: a tenth of it uncompensated leaves a tenth of the error, and what the exact one has.
    assert low == pytest.approx(0.1 * alone, abs=exact)
