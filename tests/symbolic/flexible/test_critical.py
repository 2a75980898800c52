"""The stiffness from which on a joint counts as rigid."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mechsmith.codegen.lower import lower
from mechsmith.codegen.unknowns import eliminate
from mechsmith.symbolic.flexible.beam import make_beam_frequencies
from mechsmith.symbolic.flexible.critical import make_critical_stiffness


def test_ratios_against_the_reference(flexible: Callable[[str], dict[str, Any]]) -> None:
    data = flexible("P_of_rc")
    functions = lower(make_critical_stiffness())
    ratios = np.array([[float(case["rc"])] for case in data["cases"]])
    found = functions.batch("output", u=ratios, p=functions.vector("p"))[:, 0, 0]
    np.testing.assert_allclose(
        found, [float(case["P"]) for case in data["cases"]], rtol=data["tolerance"]["P_rel"]
    )
    values = dict(zip(ratios[:, 0], found, strict=True))
    # to twelve digits
    for ratio, expected in ((0.95, 37.1368511322575), (0.97, 63.7979369297040), (0.99, 197.126007977097)):
        assert values[ratio] == pytest.approx(expected, rel=1e-12)
        # the source's are fits
        printed = {0.95: 37.1361, 0.97: 63.8008, 0.99: 197.1245}[ratio]
        assert values[ratio] == pytest.approx(printed, rel=5e-5)
    assert values[0.999] == pytest.approx(2.0 / 1e-3 - 2.8765055, rel=1e-6)


def test_at_that_stiffness_the_frequency_is_that_share() -> None:
    functions = lower(make_critical_stiffness())
    spring = eliminate(lower(make_beam_frequencies(modes=1)))
    clamped = eliminate(lower(make_beam_frequencies(modes=1, root="clamped")))
    whole = clamped.evaluate("output", p=clamped.vector("p"))[0, 0]
    for ratio in (0.1, 0.5, 0.95, 0.999):
        stiffness = functions.evaluate("output", u=[ratio], p=functions.vector("p"))[1, 0]
        found = spring.evaluate("output", p=spring.vector("p", {"joint_stiffness": stiffness}))[0, 0]
        assert found / whole == pytest.approx(ratio, rel=1e-12)
    # the base case of the source: both of its stiffnesses, 1 and 0.1, are far below
    stiffness = functions.evaluate("output", u=[0.95], p=functions.vector("p"))[1, 0]
    # 37.1369 times EI/l, which is 0.1626 to the source's four digits
    assert stiffness == pytest.approx(6.03845, rel=2e-4)
