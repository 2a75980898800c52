"""The demo: the whole way, with a compiler and without one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from mechsmith.codegen import build
from mechsmith.demo import truth_rows
from mechsmith.identification.estimate import Estimate
from mechsmith.study.run import run_study
from mechsmith.study.schema import load_study

Cli = Callable[..., Result]


@pytest.mark.parametrize("compiled", [True, False])
def test_the_demo_finds_the_joint_it_simulated(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    if not compiled:
        monkeypatch.setattr(build, "find_compiler", lambda: None)
    elif build.find_compiler() is None:
        pytest.skip("no C compiler")
    # As the README has it: a folder relative to where one is.
    monkeypatch.chdir(tmp_path.parent)
    result = cli("demo", "-o", tmp_path.name)
    assert result.exit_code == 0
    assert ("0 off" in result.stdout) is compiled
    assert ("There is no C compiler" in result.stdout) is not compiled
    assert "22 as expected" in result.stdout
    written = {path.name for path in tmp_path.iterdir()}
    assert {"joint.py", "study.toml", "log.csv", "second_log.csv", "estimate.toml", "report.html"} <= written
    assert f"{tmp_path.name}/report.html" in result.stdout
    estimate = Estimate.load(tmp_path / "estimate.toml")
    assert estimate.success
    # The noise of the current is 0.065 N m, given to the study: the residual has nothing but that in it, so its standard
    # deviation over the noise is 1 within 5 / sqrt(2 * 9800) = 0.036, and within as much for what the encoder adds.
    assert abs(estimate.residual_deviation - 1.0) < 0.07

    if compiled:
        again = run_study(load_study(tmp_path / "study.toml"))
        assert again.estimate.free == estimate.free
        # Ten 95 % intervals from one seed, fixed beforehand: fewer than 7 of 10 has the probability 0.1 % (binomial).
        assert sum(inside for *_, inside in truth_rows(again)) >= 7
