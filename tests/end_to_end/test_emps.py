"""The published identification of the EMPS axis, from the command line to all printed digits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

pytestmark = pytest.mark.shared

Cli = Callable[..., Result]
EXAMPLES = Path(__file__).parents[2] / "examples" / "emps"


def _four(values: list[float]) -> list[str]:
    return [f"{value:.4f}" for value in values]


def test_symmetric_friction_and_cross_test(cli: Cli, shared: Path, tmp_path: Path) -> None:
    """Janot, Gautier, Brunot 2019: parameters, standard deviations, errors, condition, cross test on PULSES."""
    data = shared / "data" / "emps"
    estimate = tmp_path / "estimate.toml"
    result = cli(
        *(
            "identify",
            EXAMPLES / "static.toml",
            "--data",
            data / "DATA_EMPS.mat",
            "--json",
            "-",
            "-o",
            estimate,
        )
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    parameters = found["estimate"]["parameters"]
    assert list(parameters) == ["mass", "viscous", "coulomb", "offset"]
    assert _four([p["value"] for p in parameters.values()]) == ["95.1089", "203.5034", "20.3935", "-3.1648"]
    # as published, for white residuals; they are not white, which the corrected deviations tell
    assert _four([p["deviation_white"] for p in parameters.values()]) == [
        "0.1085",
        "1.1460",
        "0.1012",
        "0.0444",
    ]
    assert all(p["deviation_corrected"] > p["deviation_white"] for p in parameters.values())
    figures = ("condition", "residual_norm", "relative_error_percent")
    assert _four([found["estimate"][name] for name in figures]) == ["25.9883", "108.7569", "4.0834"]
    (cross,) = found["validation"]
    assert _four([cross["outputs"]["force"]["relative_error_percent"]]) == ["5.9824"]

    again = cli(
        *("validate", "emps", data / "DATA_EMPS_PULSES.mat", "--parameters", estimate),
        *("--study", EXAMPLES / "static.toml", "--json", "-"),
    )
    assert again.exit_code == 0
    assert json.loads(again.stdout)["outputs"]["force"] == cross["outputs"]["force"]


def test_friction_by_direction(cli: Cli, shared: Path) -> None:
    """The same source: friction that depends on the direction, on the printed table."""
    result = cli("identify", EXAMPLES / "asymmetric.toml", "--data", shared / "data" / "emps")
    assert result.exit_code == 0
    rows = {line.split()[0]: line.split()[1] for line in result.stdout.splitlines() if len(line.split()) > 5}
    published = {
        "mass": "95.1540",
        "viscous_positive": "166.7061",
        "coulomb_positive": "20.1440",
        "viscous_negative": "240.4236",
        "coulomb_negative": "20.6277",
    }
    assert {name: f"{float(rows[name]):.4f}" for name in published} == published
    assert "relative error 3.1117 %" in result.stdout
