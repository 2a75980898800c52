"""Serial robots on the command line: the stiffness study that comes as an example, and maps."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mechsmith.identification import Estimate

Cli = Callable[..., Result]
EXAMPLES = Path(__file__).parents[2] / "examples/serial"


def test_the_example_finds_the_stiffness_of_the_reference(cli: Cli, reference: Path, tmp_path: Path) -> None:
    found = tmp_path / "estimate.json"
    result = cli("identify", str(EXAMPLES / "stiffness.toml"), "--output", str(found))
    assert result.exit_code == 0, result.stdout
    estimate = Estimate.load(found)
    assert estimate.names == tuple(f"compliance_{i}" for i in range(1, 7))
    expected = json.loads((reference / "serial/K06_experiment.json").read_text())["expected"]["K_B"]
    assert 1.0 / estimate.values == pytest.approx(expected, rel=1e-6)


def test_maps_are_drawn_and_written_as_numbers(cli: Cli, tmp_path: Path) -> None:
    picture, numbers = tmp_path / "map.png", tmp_path / "map.csv"
    assert cli("plot", "stiffness", "irb6700", "-o", str(picture), "--points", "9").exit_code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    arguments = ("--points", "3", "--joints", "3", "2", "--position", "0,0,0,0,50,0")
    assert cli("plot", "conditioning", "irb6700", "-o", str(numbers), *arguments).exit_code == 0
    rows = list(csv.reader(numbers.read_text().splitlines()))
    assert rows[0] == ["q_3 rad", "q_2 rad", "1/KF"]
    assert len(rows) == 10
    values = np.array([float(row[2]) for row in rows[1:]])
    assert ((values >= 0.0) & (values <= 1.0)).all()


def test_a_robot_in_a_file_and_its_stiffness(cli: Cli, tmp_path: Path) -> None:
    path = str(EXAMPLES / "irb6700.toml")
    maps = []
    for i, options in enumerate(([path, "--stiffness", "3.7e6,6.7e6,3.3e6,3.3e5,6.1e5,1.4e4"], ["irb6700"])):
        target = tmp_path / f"{i}.csv"
        result = cli("plot", "stiffness", *options, "-o", str(target), "--points", "4", "--direction", "z")
        assert result.exit_code == 0, result.stdout
        maps.append(np.loadtxt(target, delimiter=",", skiprows=1))
    assert maps[0] == pytest.approx(maps[1], rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stiffness", "puma"), "there is no robot 'puma'"),
        (("stiffness", str(EXAMPLES / "irb6700.toml")), "--stiffness is needed"),
        (("stiffness", "irb6700", "--stiffness", "1,2"), "Give 6 finite numbers"),
        (("stiffness", "irb6700", "--stiffness", "1,2,3,4,5,-6"), "must be positive"),
        (("conditioning", "irb6700", "--joints", "2", "2"), "two different ones from 1 to 6"),
        (("conditioning", "irb6700", "--position", "a"), "is no list of numbers"),
    ],
)
def test_what_will_not_do(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli("plot", *arguments, "-o", str(tmp_path / "map.png"))
    assert result.exit_code == 2
    assert message in result.stderr
    assert (
        cli("plot", "conditioning", "irb6700", "-o", str(tmp_path / "map.txt"), "--points", "2").exit_code
        == 2
    )
