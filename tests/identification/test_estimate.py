"""What an estimate says about its precision, and how it is kept."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from mechsmith.identification import (
    Estimate,
    EstimateError,
    LeastSquares,
    LinearLeastSquares,
    Problem,
    ProblemError,
    Record,
    Uncertainty,
    identify,
)
from mechsmith.identification.storage import toml_text
from mechsmith.identification.uncertainty import bandwidth

FREE = ("mass", "viscous", "offset")


def fit(systems: Any, record: Record, **options: Any) -> Estimate:
    problem = Problem(systems.line, (record,), FREE)
    return identify(problem, LinearLeastSquares(), uncertainty=Uncertainty(**options))


def with_noise(record: Record, noise: np.ndarray) -> Record:
    return record.with_column("force", record["force"] + noise, "N", provenance="noise added", overwrite=True)


def test_covariance_is_the_textbook_one(systems: Any) -> None:
    record = systems.line_record(noise=0.5)
    estimate = fit(systems, record)
    regressor = np.column_stack([record["acceleration"], record["velocity"], np.ones(len(record))])
    residual = record["force"] - regressor @ estimate.values
    n = len(record)
    inverse = np.linalg.inv(regressor.T @ regressor)
    expected = residual @ residual / (n - 3) * inverse
    assert estimate.covariance_white == pytest.approx(expected, rel=1e-9, abs=1e-15)
    published = fit(systems, record, degrees_of_freedom="samples-1")
    assert published.covariance_white == pytest.approx(expected * (n - 3) / (n - 1), rel=1e-9, abs=1e-15)
    assert estimate.residual_deviation == pytest.approx(np.sqrt(residual @ residual / (n - 3)), rel=1e-12)
    assert estimate.determination == pytest.approx(1.0 - residual.var() / record["force"].var(), rel=1e-9)
    assert estimate.condition == pytest.approx(np.linalg.cond(regressor), rel=1e-9)
    diagonal = np.diag(estimate.correlations)
    assert diagonal == pytest.approx(np.ones(3), rel=1e-12)
    # Student's t for 397 degrees of freedom is 1.96595 (tables)
    low, high = estimate.interval("offset")
    assert (high - low) / 2.0 == pytest.approx(1.96595 * estimate.deviation("offset"), rel=1e-5)
    # a positive parameter's interval is symmetric in its logarithm
    low, high = estimate.interval("mass")
    assert low * high == pytest.approx(estimate["mass"] ** 2, rel=1e-12)
    assert np.log(high / low) / 2.0 == pytest.approx(
        1.96595 * estimate.deviation("mass") / estimate["mass"], rel=1e-5
    )


def test_white_residuals_are_taken_as_white(systems: Any) -> None:
    estimate = fit(systems, systems.line_record(noise=0.5, seed=0))
    assert estimate.white
    assert np.array_equal(estimate.covariance, estimate.covariance_white)


def test_intervals_cover_with_white_and_with_coloured_noise(systems: Any) -> None:
    """Seeds 0 to 99, fixed beforehand; coverage judged binomially at 0.1 % per parameter."""
    clean, runs = systems.line_record(), 100
    truth = np.array([12.0, 7.0, -1.5])
    for pole, promised in ((0.0, 0.95), (0.5, 0.95), (0.8, 0.85)):
        hits, narrow = np.zeros(3), np.zeros(3)
        for seed in range(runs):
            noise = lfilter(
                [1.0], [1.0, -pole], np.random.default_rng(seed).standard_normal(len(clean) + 200)
            )
            estimate = fit(systems, with_noise(clean, noise[200:]))
            hits += (estimate.intervals[:, 0] <= truth) & (truth <= estimate.intervals[:, 1])
            narrow += np.abs(estimate.values - truth) <= 1.97 * estimate.deviations_white
        # Bartlett weights make intervals too short where noise is correlated over a good part of the record, so at a
        # pole of 0.8 only 85 % are asked for (measured: 91, 91, 89 of 100; with the white covariance 61, 49, 46)
        assert np.all(hits >= binom.ppf(0.001, runs, promised))
        if pole > 0.0:
            assert np.all(narrow < binom.ppf(0.001, runs, 0.95))


def test_correction_is_near_the_true_deviation_of_a_mean(systems: Any) -> None:
    # the offset alone: the mean of n values of an autoregression with pole c has the variance s^2 / (n (1 - c)^2)
    n, pole = 20_000, 0.7
    noise = lfilter([1.0], [1.0, -pole], np.random.default_rng(0).standard_normal(n + 200))[200:]
    time = np.arange(n) * 0.001
    zero = np.zeros(n)
    columns = {"acceleration": (zero, "m/s^2"), "velocity": (zero, "m/s"), "force": (noise, "N")}
    problem = Problem(systems.line, (Record.from_arrays(time, columns),), ("offset",))
    estimate = identify(problem, LinearLeastSquares())
    assert not estimate.white
    expected = 1.0 / (np.sqrt(n) * (1.0 - pole))
    # Bartlett's bias is about 1.1 / bandwidth and the relative deviation sqrt(2 / 3 * bandwidth / n), each some percent
    assert estimate.deviation("offset") == pytest.approx(expected, rel=0.12)
    assert estimate.deviations_white[0] < 0.6 * expected


def test_bandwidth_follows_the_formula() -> None:
    # for one column and an autoregression of first order a(1) = 4 rho^2 / ((1 - rho)^2 (1 + rho)^2)
    n, pole = 50_000, 0.5
    scores = lfilter([1.0], [1.0, -pole], np.random.default_rng(0).standard_normal(n))[:, None]
    alpha = 4.0 * pole**2 / ((1.0 - pole) ** 2 * (1.0 + pole) ** 2)
    # rho is estimated to 1 / sqrt(n), and the result is an integer
    assert bandwidth(scores) == pytest.approx(1.1447 * (alpha * n) ** (1.0 / 3.0), abs=1.5)
    assert bandwidth(np.random.default_rng(0).standard_normal((5, 2))) == 0


def test_a_weak_parameter_is_open_to_infinity(systems: Any) -> None:
    # at speeds of 0.5 m/s with a Stribeck velocity of 1 mm/s the curve's start is never seen
    record = systems.stribeck_record(np.array([10.0, 20.0, 0.05, 15.0]), noise=0.01)
    rows = np.flatnonzero(np.abs(record["velocity"]) > 0.15)
    fast = record.take(rows, provenance="fast samples only")
    estimate = identify(
        Problem(systems.stribeck, (fast,), ("fc", "fs", "vs", "fv")),
        LeastSquares(),
        start={"fc": 10.0, "fs": 20.0, "vs": 0.05, "fv": 15.0},
    )
    assert "vs" in estimate.undetermined
    assert estimate.interval("vs") == (1e-3, np.inf)
    assert "fc" not in estimate.undetermined
    assert "undetermined by these data: " in estimate.table()


def test_fewer_samples_than_parameters(systems: Any) -> None:
    short = systems.line_record(noise=0.5).slice(0, 2)
    estimate = fit(systems, short)
    assert estimate.undetermined == FREE
    assert np.all(np.isinf(estimate.intervals[:, 1]))


def test_what_stands_at_a_bound_is_said(systems: Any) -> None:
    record = systems.line_record(viscous=0.0, noise=0.5, seed=4)
    problem = Problem(systems.line, (record,), FREE, bounds={"viscous": (1.0, 500.0)})
    for method in (LinearLeastSquares(), LeastSquares()):
        assert identify(problem, method).at_bound == ("viscous",)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_saved_and_loaded(systems: Any, tmp_path: Path, suffix: str) -> None:
    record = systems.line_record(noise=0.5)
    tied = record.with_column(
        "acceleration", 2.0 * record["velocity"], "m/s^2", provenance='tied "so"\n', overwrite=True
    )
    records = (
        tied,
        systems.line_record(noise=0.5, seed=1).with_column(
            "acceleration",
            2.0 * systems.line_record(seed=1)["velocity"],
            "m/s^2",
            provenance="é",
            overwrite=True,
        ),
    )
    problem = Problem(systems.line, records, FREE, per_record=("offset",))
    # infinities, NaN, quotes, line feeds and brackets in names all go through
    estimate = identify(problem, LinearLeastSquares())
    path = tmp_path / f"estimate{suffix}"
    estimate.save(path)
    again = Estimate.load(path)
    assert os.listdir(tmp_path) == [path.name]
    for name in Estimate.__dataclass_fields__:
        mine, loaded = getattr(estimate, name), getattr(again, name)
        if isinstance(mine, np.ndarray):
            assert np.array_equal(mine, loaded, equal_nan=True), name
        else:
            assert mine == loaded, name
    assert again.table() == estimate.table()
    start = problem.start_vector(again.free)
    assert np.array_equal(start, estimate.values)


def test_files_that_are_no_estimate(systems: Any, tmp_path: Path) -> None:
    estimate = fit(systems, systems.line_record())
    with pytest.raises(EstimateError, match=r"suffix '.txt'.*\.toml and \.json"):
        estimate.save(tmp_path / "estimate.txt")
    broken = tmp_path / "broken.toml"
    broken.write_text("values = [1.0,")
    with pytest.raises(EstimateError, match="can't be read"):
        Estimate.load(broken)
    broken.write_text("values = [1.0]")
    with pytest.raises(EstimateError, match="format"):
        Estimate.load(broken)
    broken.write_text('format = "mechsmith estimate 1"')
    with pytest.raises(EstimateError, match="lacks model, names"):
        Estimate.load(broken)


def test_a_failed_save_leaves_the_old_file(
    systems: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = fit(systems, systems.line_record())
    path = tmp_path / "estimate.toml"
    estimate.save(path)
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        estimate.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_toml_refuses_what_it_has_no_word_for() -> None:
    with pytest.raises(EstimateError, match="complex"):
        toml_text({"a": 1j})


def test_names_that_are_not_there(systems: Any) -> None:
    estimate = fit(systems, systems.line_record())
    with pytest.raises(EstimateError, match=r"no 'stray'.*mass, viscous, offset"):
        estimate["stray"]
    with pytest.raises(EstimateError, match="'stray' is not free"):
        estimate.deviation("stray")
    with pytest.raises(ProblemError, match="degrees_of_freedom"):
        Uncertainty(degrees_of_freedom="n")  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="confidence"):
        Uncertainty(confidence=95.0)
