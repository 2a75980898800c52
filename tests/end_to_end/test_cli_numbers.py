"""``evaluate``, ``simulate`` and ``validate``: numbers in, numbers out."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from typer.testing import Result

Cli = Callable[..., Result]

# -- evaluate ---------------------------------------------------------------------------------------------


def test_evaluate_from_standard_input(cli: Cli) -> None:
    given = {
        "velocity": "200 mm/s",
        "acceleration": 1.0,
        "mass": 100.0,
        "viscous": 200.0,
        "coulomb": 20.0,
        "offset": -3.0,
    }
    result = cli("evaluate", "emps", "--json", "-", stdin=json.dumps(given))
    assert result.exit_code == 0
    assert json.loads(result.stdout) == pytest.approx({"force": 100.0 + 40.0 + 20.0 - 3.0}, rel=1e-14)


def test_evaluate_adds_derivatives_on_request(cli: Cli, slider: Path, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"velocity": 2.0, "force": 100.0}')
    result = cli("evaluate", f"{slider}:make_slider", "--json", tmp_path / "in.json", "--derivatives")
    values = json.loads(result.stdout)
    assert values == {
        "speed": 2.0,
        "power": 200.0,
        "derivatives": {"velocity": pytest.approx(2.0, rel=1e-14)},
    }


def test_evaluate_needs_only_what_outputs_depend_on(cli: Cli) -> None:
    # the forces on the axis have no nominal value and the encoder does not depend on them, the acceleration does
    result = cli("evaluate", "emps_controller", "--json", "-", stdin='{"voltage": 2.0}')
    assert result.exit_code == 0
    assert json.loads(result.stdout)["motor_force"] == pytest.approx(2 * 35.15065188248547, rel=1e-15)
    refused = cli("evaluate", "axis", "--json", "-", stdin='{"motor_force": 1.0}')
    assert refused.exit_code == 2
    assert "'friction_force' of 'axis' (N) is not given" in " ".join(refused.stderr.split())


def test_evaluate_says_what_is_not_finite(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "pole.py"
    path.write_text(
        "import sympy\nfrom mechsmith import Model, Quantity\n"
        "def make_pole():\n    x = sympy.Symbol('x', real=True)\n"
        "    return Model(name='pole', inputs=(Quantity(x, '1'),), outputs={Quantity('y', '1'): 1 / x})\n"
    )
    result = cli("evaluate", f"{path}:make_pole", "--json", "-", stdin='{"x": 0}')
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"y": None}
    assert "y is not finite" in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[1]", "holds a list"),
        ('{"velocty": 1}', "Did you mean 'velocity'"),
        ('{"acceleration": 0, "velocity": "1 N"}', "does not fit"),
        ('{"acceleration": 0, "velocity": "fast"}', "Give a number"),
        ('{"acceleration": 0, "velocity": true}', "Give a number"),
        ('{"acceleration": 0, "velocity": [1, 2]}', "it is a scalar"),
        ('{"velocity": 1, "velocity": 2}', "given twice"),
        ('{"velocity": NaN, "acceleration": 0}', "NaN"),
        ('{"velocity": 1, "acceleration": 0, "mass": -1}', "allowed is 1 to 1000"),
        ('{"velocity": 1}', "'acceleration' of 'emps' (m/s^2) is not given"),
    ],
)
def test_evaluate_refuses(cli: Cli, text: str, words: str) -> None:
    result = cli("evaluate", "emps", "--json", "-", stdin=text)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in " ".join(result.stderr.split())


SHAPED = """
import sympy
from mechsmith import Model, Quantity


def make_shaped():
    force = Quantity("force", "N", (2,))
    inertia = Quantity("inertia", "kg", (2, 2), nominal=1.0)
    speed = Quantity("speed", "m/s", (2,), nominal=0.0)
    return Model(
        name="shaped",
        states=(speed,),
        inputs=(force,),
        parameters=(inertia,),
        mass=inertia.array,
        derivatives={"speed": force.array},
        outputs={Quantity("both", "N", (2, 1)): force.array, Quantity("momentum", "N*s", (2,)): inertia.array * speed.array},
    )


def make_root():
    x, a = sympy.symbols("x a", real=True)
    return Model(
        name="root",
        unknowns=(Quantity(x, "", nominal=1.0),),
        inputs=(Quantity(a, ""),),
        constraints={x: x**2 - a},
        outputs={Quantity("root", ""): x},
    )
"""


def test_evaluate_takes_and_gives_shapes(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "shaped.py"
    path.write_text(SHAPED)
    given = {"force": ["2 kN", 1.0], "inertia": [[2.0, 0.0], [0.0, 4.0]], "speed": [1.0, 3.0]}
    result = cli("evaluate", f"{path}:make_shaped", "--json", "-", "--derivatives", stdin=json.dumps(given))
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "both": [[2000.0], [1.0]],
        "momentum": [2.0, 12.0],
        "derivatives": {"speed": [1000.0, 0.25]},
    }
    short = cli("evaluate", f"{path}:make_shaped", "--json", "-", stdin='{"force": [1]}')
    assert (short.exit_code, "has 1 values, its shape is [2]" in short.stderr) == (2, True)
    one = cli("evaluate", f"{path}:make_shaped", "--json", "-", stdin='{"force_0": 1, "force_1": "5 mN"}')
    assert json.loads(one.stdout)["both"] == [[1.0], [0.005]]


def test_evaluate_solves_for_unknowns_from_where_it_is_told(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "root.py"
    path.write_text(SHAPED)
    for begin, expected in (({}, 2.0), ({"x": -1.0}, -2.0)):
        result = cli("evaluate", f"{path}:make_root", "--json", "-", stdin=json.dumps({"a": 4.0, **begin}))
        assert result.exit_code == 0
        assert json.loads(result.stdout)["root"] == pytest.approx(expected, rel=1e-12)
    result = cli("evaluate", f"{path}:make_root", "--json", "-", "--derivatives", stdin='{"a": -1.0}')
    assert result.exit_code == 1
    assert "does not find the unknowns (x)" in " ".join(result.stderr.split())


# -- simulate and validate --------------------------------------------------------------------------------


def _slider_log(path: Path, *, force: str = "force", scale: float = 1.0) -> numpy.ndarray:
    """Write a force that is linear between samples, and return times."""
    time = 0.01 * numpy.arange(301)
    rows = [f"{t!r},{scale * 100.0 * t!r}" for t in time.tolist()]
    path.write_text("\n".join([f"time,{force}", *rows]) + "\n")
    return time


def _slider_speed(time: numpy.ndarray, mass: float, damping: float) -> numpy.ndarray:
    """Return the solution of mass dv/dt = 100 t - damping v, v(0) = 0."""
    rate = damping / mass
    return 100.0 / damping * (time - (1.0 - numpy.exp(-rate * time)) / rate)


def _table(path: Path) -> dict[str, numpy.ndarray]:
    data = numpy.genfromtxt(path, delimiter=",", names=True)
    return {name: data[name] for name in data.dtype.names}


def test_simulate_writes_what_can_be_read_back(cli: Cli, slider: Path, tmp_path: Path) -> None:
    time = _slider_log(tmp_path / "log.csv", force="F", scale=1e-3)
    (tmp_path / "p.json").write_text('{"mass": 25.0, "damping": "40 N*s/m"}')
    model = f"{slider}:make_slider"
    options = ("--parameters", tmp_path / "p.json", "--column", "force=F:kN")
    made = cli("simulate", model, tmp_path / "log.csv", "-o", tmp_path / "out.csv", *options)
    assert made.exit_code == 0
    out = _table(tmp_path / "out.csv")
    assert list(out) == ["time", "force", "velocity", "speed", "power"]
    # Radau IIA of order 5 with h rate = 0.016: its error constant is far below 1e-9
    numpy.testing.assert_allclose(out["speed"], _slider_speed(time, 25.0, 40.0), atol=1e-9)
    checked = cli("validate", model, tmp_path / "out.csv", "--parameters", tmp_path / "p.json", "--json", "-")
    assert checked.exit_code == 0
    # the same simulation of the same numbers, up to what CSV keeps: all of it
    assert json.loads(checked.stdout)["relative_error_percent"] < 1e-10


def test_simulate_writes_nothing_when_it_fails(cli: Cli, slider: Path, tmp_path: Path) -> None:
    _slider_log(tmp_path / "log.csv", scale=1e304)
    made = cli("simulate", f"{slider}:make_slider", tmp_path / "log.csv", "-o", tmp_path / "out.npz")
    assert made.exit_code == 1
    assert "the simulation failed" in made.stderr
    assert not list(tmp_path.glob("*.npz"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("log.csv", "-o", "out.txt"), "allowed are .csv and .npz"),
        (("none.csv", "-o", "out.csv"), "there is no file"),
        (("log.csv", "-o", "out.csv", "--column", "forc=F"), "Did you mean 'force'"),
        (("log.csv", "-o", "out.csv", "--column", "force=F"), "there is no column 'F'"),
        (("log.csv", "-o", "out.csv", "--column", "force=force:m"), "dimension"),
        (("log.csv", "-o", "out.csv", "--initial", "speed=1"), "write STATE=VALUE"),
        (("log.csv", "-o", "out.csv", "--integrator", "runge_kuta"), "is not one of"),
        (("log.csv", "-o", "out.csv", "--parameters", "none.toml"), "there is no file"),
    ],
)
def test_simulate_refuses(
    cli: Cli,
    slider: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    _slider_log(tmp_path / "log.csv")
    monkeypatch.chdir(tmp_path)
    result = cli("simulate", f"{slider}:make_slider", *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / "out.csv").exists()
