import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mechsmith.identification.metrics import (
    MetricError,
    autocorrelation,
    ljung_box,
    max_percentage_error,
    relative_error,
    wape,
)


def test_reference_L09(reference: Path) -> None:
    """Source: the project's own reference values, computed independently; tolerance as stated there."""
    data = json.loads((reference / "friction" / "L09_metrics.json").read_text(encoding="utf-8"))
    assert len(data["expected"]) == 2
    for case in data["expected"]:
        predicted, measured = case["T_predict"], case["T_real"]
        tolerance = data["tolerance"]["abs"]
        assert wape(predicted, measured) == pytest.approx(case["WAPE_percent"], abs=tolerance)
        assert max_percentage_error(predicted, measured) == pytest.approx(
            case["maxPE_percent"], abs=tolerance
        )


@pytest.mark.parametrize("measure", [wape, max_percentage_error, relative_error])
def test_undefined_is_an_error(measure: object) -> None:
    assert callable(measure)
    with pytest.raises(MetricError, match="every measured value is 0"):
        measure([1.0, 2.0], [0.0, 0.0])
    with pytest.raises(MetricError, match="shape"):
        measure([1.0, 2.0], [1.0])
    with pytest.raises(MetricError, match="no values"):
        measure([], [])
    with pytest.raises(MetricError, match=r"value 1 .* is nan"):
        measure([1.0, np.nan], [1.0, 1.0])


@given(st.sampled_from([1e-300, 1e-100, 1.0, 1e100, 1e300]))
def test_scale_drops_out(scale: float) -> None:
    predicted, measured = np.array([3.1, 0.0, -4.0]), np.array([3.0, 0.0, -4.0])
    # a few roundings
    assert relative_error(scale * predicted, scale * measured) == pytest.approx(2.0, rel=1e-12)
    assert wape(scale * predicted, scale * measured) == pytest.approx(100 * 0.1 / 7, rel=1e-12)
    assert max_percentage_error(scale * predicted, scale * measured) == pytest.approx(
        300 * 0.1 / 7, rel=1e-12
    )


def test_autocorrelation_by_hand() -> None:
    # mean 2.5, deviations -1.5 -0.5 0.5 1.5: r1 = (0.75 - 0.25 + 0.75) / 5, r2 = (-0.75 - 0.75) / 5, r3 =
    # -2.25 / 5
    np.testing.assert_allclose(autocorrelation([1, 2, 3, 4], 3), [1.0, 0.25, -0.3, -0.45], rtol=1e-15)
    np.testing.assert_allclose(autocorrelation(np.array([1, 2, 3, 4]) * 1e-300, 1), [1.0, 0.25], rtol=1e-14)
    with pytest.raises(MetricError, match="all 3 values are 2"):
        autocorrelation([2.0, 2.0, 2.0], 1)
    for lags in (0, 4):
        with pytest.raises(MetricError, match=f"lags is {lags}, allowed is 1 to 3"):
            autocorrelation([1, 2, 3, 4], lags)


def test_ljung_box_by_hand() -> None:
    test = ljung_box([1, 2, 3, 4], 2)
    # Q = 4 * 6 * (0.25^2 / 3 + 0.3^2 / 2) = 1.58; with two degrees of freedom the chi-square tail is exp(-Q /
    # 2)
    assert test.statistic == pytest.approx(1.58, rel=1e-14)
    assert test.p_value == pytest.approx(math.exp(-0.79), rel=1e-12)
    assert test.is_white()
    assert ljung_box([1, 2, 3, 4], 2, fitted=1).degrees_of_freedom == 1
    with pytest.raises(MetricError, match="fitted is 2"):
        ljung_box([1, 2, 3, 4], 2, fitted=2)


def test_ljung_box_level_and_power() -> None:
    """White noise is rejected in 5 % of the trials, judged binomially at 0.1 %; a first-order process "
    "always."""
    trials, rejected = 200, 0
    for seed in range(trials):
        noise = np.random.default_rng(seed).standard_normal(500)
        rejected += not ljung_box(noise, 10).is_white(0.05)
        coloured = noise.copy()
        for k in range(1, len(noise)):
            coloured[k] += 0.5 * coloured[k - 1]
        # n r1^2 = 125 against 29.6, the 0.1 % point of chi-square with 10
        assert ljung_box(coloured, 10).p_value < 1e-3
    low, high = binom.ppf([0.0005, 0.9995], trials, 0.05)
    assert low <= rejected <= high
