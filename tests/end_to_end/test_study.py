"""Studies: from a TOML file and data to an estimate, and every way in which a study can be wrong."""

import dataclasses
import importlib
import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from typer.testing import Result

from mechsmith.identification.estimate import Estimate
from mechsmith.identification.friction.shape_factor import LugreStart
from mechsmith.identification.method import Solution
from mechsmith.identification.search import LeastSquares, MultiStart
from mechsmith.identification.uncertainty import Uncertainty
from mechsmith.study.data import find_files
from mechsmith.study.methods import METHODS
from mechsmith.study.run import run_study
from mechsmith.study.schema import load_study
from mechsmith.study.sources import (
    ColumnSource,
    OutputPaths,
    ProblemSource,
    RecordSource,
    ResidualSource,
)
from mechsmith.study.steps import KEYS
from mechsmith.values import InputError

Cli = Callable[..., Result]

STUDY = """
title = "a carriage"
seed = 3

[model]
name = "emps"

[[records]]
name = "first"
file = "log.csv"
time = { source = "t_ms", unit = "ms" }

[records.columns]
velocity = { source = "v_mm", unit = "mm/s" }
force = { source = "current", unit = "A", gain = 50.0, gain_unit = "N/A" }

[[validation]]
name = "second"
file = "other.csv"

[[preprocessing]]
kind = "differentiate"
column = "velocity"
name = "acceleration"

[problem]
free = ["mass", "viscous", "coulomb"]

[problem.fixed]
offset = "-2 N"

[problem.bounds]
mass = ["1 kg", "200 kg"]

[residual]
outputs = ["force"]

[[method]]
kind = "linear"
"""
TRUTH = {"mass": 80.0, "viscous": 150.0, "coulomb": 12.0}


def write_log(path: Path, *, seed: int, noise: float = 0.0) -> None:
    """Write time in ms, velocity in mm/s and current in A of a carriage with the parameters of `TRUTH`."""
    time = 0.002 * numpy.arange(1500)
    velocity = 0.2 * numpy.sin(2.0 * numpy.pi * (0.8 + 0.1 * seed) * time) + 0.03 * numpy.cos(13.0 * time)
    # the derivative as the study takes it, so that without noise the fit is exact
    acceleration = numpy.gradient(velocity, 0.002)
    force = 80.0 * acceleration + 150.0 * velocity + 12.0 * numpy.sign(velocity) - 2.0
    force += noise * numpy.random.default_rng(seed).standard_normal(len(time))
    rows = zip((1000.0 * time).tolist(), (1000.0 * velocity).tolist(), (force / 50.0).tolist(), strict=True)
    path.write_text("t_ms,v_mm,current\n" + "".join(f"{t!r},{v!r},{c!r}\n" for t, v, c in rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a study and its two logs."""
    (tmp_path / "study.toml").write_text(STUDY)
    write_log(tmp_path / "log.csv", seed=0)
    write_log(tmp_path / "other.csv", seed=1)
    return tmp_path


def changed(folder: Path, old: str, new: str) -> Path:
    """Write the study with a text exchanged and return its path."""
    assert old in STUDY
    path = folder / "study.toml"
    path.write_text(STUDY.replace(old, new))
    return path


def test_units_gains_and_fixed_values_arrive(folder: Path) -> None:
    result = run_study(load_study(folder / "study.toml"))
    # exact but for the rounding of 17 digits in the file, times a condition number of 26
    assert result.estimate.free == pytest.approx(TRUTH, rel=1e-9)
    assert result.estimate["offset"] == -2.0
    assert result.trials[0].validation.relative_error < 1e-7
    assert result.doubts == ()
    assert any("central differences of velocity" in line for line in result.estimate.provenance)


def test_identify_writes_estimate_report_and_json(cli: Cli, folder: Path) -> None:
    paths = [folder / "out" / name for name in ("estimate.toml", "report.html", "result.json")]
    result = cli("identify", folder / "study.toml", "-o", paths[0], "--report", paths[1], "--json", paths[2])
    assert result.exit_code == 0
    estimate = Estimate.load(paths[0])
    assert estimate.free == pytest.approx(TRUTH, rel=1e-9)
    data = json.loads(paths[2].read_text())
    assert data["estimate"]["parameters"]["mass"]["value"] == estimate["mass"]
    assert data["estimate"]["parameters"]["mass"]["unit"] == "kg"
    assert (data["trustworthy"], data["validation"][0]["record"]) == (True, "second")
    html = paths[1].read_text()
    assert "a carriage" in html
    assert html.count("<svg") >= 4
    assert "<math" in html
    assert "http" not in html.replace("http://www.w3.org", "")  # self-contained: nothing is fetched


def test_json_on_standard_output_is_alone_there(cli: Cli, folder: Path) -> None:
    result = cli("identify", folder / "study.toml", "--json", "-")
    assert json.loads(result.stdout)["study"] == "a carriage"


def test_outputs_of_the_study_are_beside_it(cli: Cli, folder: Path) -> None:
    changed(folder, "[[method]]", '[outputs]\nestimate = "e.json"\n\n[[method]]')
    assert cli("identify", folder / "study.toml").exit_code == 0
    assert Estimate.load(folder / "e.json").success


def test_an_estimate_goes_on_to_generate_simulate_and_validate(cli: Cli, folder: Path) -> None:
    estimate = folder / "estimate.toml"
    assert cli("identify", folder / "study.toml", "-o", estimate).exit_code == 0
    code = cli("generate", "emps", "--target", "c", "-o", folder / "c", "--parameters", estimate)
    assert code.exit_code == 0
    assert "parameters" not in (folder / "c" / "emps.c").read_text()
    checked = cli(
        "validate",
        "emps",
        folder / "other.csv",
        "--parameters",
        estimate,
        "--study",
        folder / "study.toml",
        "--json",
        "-",
    )
    assert json.loads(checked.stdout)["outputs"]["force"]["relative_error_percent"] < 1e-7
    log = folder / "plain.csv"
    log.write_text("time,velocity,acceleration\n0,0.1,1\n1,0.2,1\n")
    made = cli("simulate", "emps", log, "--parameters", estimate, "-o", folder / "out.csv")
    assert made.exit_code == 0
    force = numpy.genfromtxt(folder / "out.csv", delimiter=",", names=True)["force"]
    numpy.testing.assert_allclose(force, [80 + 15 + 12 - 2, 80 + 30 + 12 - 2], rtol=1e-8)


def test_a_chain_starts_each_method_at_the_last_result(folder: Path) -> None:
    chain = '[[method]]\nkind = "multistart"\nstarts = 3\nmethod = { kind = "least_squares", max_evaluations = 50 }\n\n[[method]]\nkind = "least_squares"\n'
    study = load_study(changed(folder, '[[method]]\nkind = "linear"\n', chain))
    assert study.methods == (MultiStart(LeastSquares(max_evaluations=50), starts=3), LeastSquares())
    result = run_study(study)
    assert [stage.estimate.success for stage in result.stages] == [True, True]
    # it begins at the solution, where there is nothing left to do but one look
    assert result.stages[1].estimate.evaluations <= 3
    assert result.estimate.free == pytest.approx(TRUTH, rel=1e-6)


def test_the_same_seed_gives_the_same_result_and_another_does_not(folder: Path) -> None:
    chain = '[[method]]\nkind = "multistart"\nstarts = 2\nmethod = { kind = "least_squares", max_evaluations = 2 }\n'
    study = load_study(changed(folder, '[[method]]\nkind = "linear"\n', chain))
    norms = [[line.norm for line in run_study(study, seed=seed).estimate.history] for seed in (None, 3, 4)]
    assert norms[0] == norms[1]
    assert norms[0] != norms[2]


def test_an_interrupt_keeps_what_the_methods_before_found(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(
        folder,
        '[[method]]\nkind = "linear"\n',
        '[[method]]\nkind = "linear"\n\n[[method]]\nkind = "least_squares"\n',
    )

    def interrupt(self: LeastSquares, *arguments: object) -> Solution:
        raise KeyboardInterrupt

    monkeypatch.setattr(LeastSquares, "solve", interrupt)
    result = cli("identify", folder / "study.toml", "-o", folder / "e.toml")
    assert result.exit_code == 130
    assert "interrupted after 1 of 2 methods" in result.stderr
    assert Estimate.load(folder / "e.toml").free == pytest.approx(TRUTH, rel=1e-9)


def test_not_converged_exits_with_1_and_says_so(cli: Cli, folder: Path) -> None:
    changed(folder, '[[method]]\nkind = "linear"', '[[method]]\nkind = "least_squares"\nmax_evaluations = 1')
    result = cli("identify", folder / "study.toml", "-o", folder / "e.toml", "--json", folder / "r.json")
    assert result.exit_code == 1
    assert "not converged" in result.stderr
    data = json.loads((folder / "r.json").read_text())
    assert data["trustworthy"] is False
    assert tomllib.loads((folder / "e.toml").read_text())["success"] is False


def test_strict_refuses_what_the_data_do_not_determine(cli: Cli, folder: Path) -> None:
    # a velocity proportional to the acceleration: mass and viscous friction can't be told apart
    time = 0.002 * numpy.arange(500)
    growth = numpy.exp(time)
    rows = zip((1000 * time).tolist(), (1000 * growth).tolist(), (growth + 0.24).tolist(), strict=True)
    (folder / "log.csv").write_text(
        "t_ms,v_mm,current\n" + "".join(f"{t!r},{v!r},{c!r}\n" for t, v, c in rows)
    )
    drop = '[[preprocessing]]\nkind = "drop"\nfirst = 1\nlast = 1\n\n[problem]'
    changed(folder, "[problem]", drop)
    result = cli("identify", folder / "study.toml")
    assert "do not determine mass, viscous" in result.stderr
    assert result.exit_code == 0
    assert cli("identify", folder / "study.toml", "--strict").exit_code == 1


def test_a_closed_loop_study_with_simulation(folder: Path) -> None:
    """Every key that a simulation needs: hold, constants, measured states by column, noise, several outputs."""
    rows = [f"{0.01 * (1.0 - math.cos(0.05 * k))!r},0.0,0.0" for k in range(200)]
    (folder / "loop.csv").write_text("q_ref,q,f\n" + "\n".join(rows) + "\n")
    path = folder / "loop.toml"
    path.write_text(
        """
        [model]
        name = "emps_closed_loop"
        integrator = "radau"
        substeps = 2
        reconstruction = { controller_reference = "hold" }
        [[records]]
        file = "loop.csv"
        sample_period = 0.001
        columns.controller_reference = "q_ref"
        columns.position = { source = "q", unit = "m" }
        columns.force = "f"
        constants.controller_pulse = "0 mV"
        [problem]
        free = ["axis_mass", "x0:axis_velocity"]
        measured = { "x0:axis_position" = "position", "d0:controller_previous_position" = "position" }
        bounds = { axis_mass = [10, "500 kg"], "x0:axis_velocity" = ["-1 mm/s", "1 mm/s"] }
        priors = { axis_mass = { mean = 95, deviation = 10 } }
        transforms = { axis_mass = "log" }
        start = { axis_mass = 80 }
        [residual]
        kind = "output"
        outputs = ["position", "force"]
        noise = { position = "0.1 mm", force = 1.0 }
        [[method]]
        kind = "least_squares"
        max_evaluations = 3
        """
    )
    result = run_study(load_study(path))
    assert result.problem.comparison.names == ("position", "force")
    assert result.problem.comparison.noise.tolist() == [1e-4, 1.0]
    assert result.problem.bounds["x0:axis_velocity"] == (-1e-3, 1e-3)
    assert (result.problem.records[0]["controller_pulse"] == 0.0).all()
    assert result.estimate.parameters["x0:axis_position"] == 0.0
    # nothing measured but zeros: whatever comes out, it was compared with the reference at hand
    assert result.estimate.samples == 400


def test_the_lugre_example_recovers_all_eight_parameters(cli: Cli) -> None:
    """Closed-form start and least squares on our own noise-free data (made by another solver)."""
    example = Path(__file__).parents[2] / "examples" / "lugre" / "noise_free.toml"
    result = cli("identify", example, "--json", "-")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    found = {name: entry["value"] for name, entry in data["estimate"]["parameters"].items()}
    truth = {"s0": 4e4, "s1": 150.0, "a0": 2.5, "a1": 0.9, "v0": 0.02, "vd": 0.2, "a2": 1.2, "a3": -0.25}
    # the issue asks for 0.1 %
    assert found == pytest.approx(truth, rel=1e-3)
    # the reference motions agree with ours within 1e-7 of the largest force, as the reference states
    assert data["validation"][0]["relative_error_percent"] < 1e-5


def test_several_records_with_parameters_of_their_own(cli: Cli, folder: Path) -> None:
    more = '[[records]]\nname = "third"\nfile = "other.csv"\n\n[[validation]]'
    changed(folder, "[[validation]]", more)
    text = (folder / "study.toml").read_text()
    text = text.replace('"coulomb"]', '"coulomb", "offset"]\nper_record = ["offset"]')
    text = text.replace('[problem.fixed]\noffset = "-2 N"\n', '[problem.start]\n"offset[1]" = "1 N"\n')
    (folder / "study.toml").write_text(text)
    result = cli("identify", folder / "study.toml", "--report", folder / "r.html", "--json", "-")
    assert result.exit_code == 0
    found = {n: p["value"] for n, p in json.loads(result.stdout)["estimate"]["parameters"].items()}
    assert found == pytest.approx({**TRUTH, "offset[0]": -2.0, "offset[1]": -2.0}, rel=1e-8)
    assert "force, record third" in (folder / "r.html").read_text()


def test_a_warning_about_the_data_is_told_and_no_more(cli: Cli, folder: Path) -> None:
    lines = (folder / "other.csv").read_text().splitlines()
    shifted = [lines[1].replace("0.0,", "0.7,", 1), *lines[2:]]
    (folder / "other.csv").write_text("\n".join([lines[0], *shifted]) + "\n")
    changed(folder, 'kind = "differentiate"', 'kind = "differentiate"\nrecords = ["first"]')
    study = (
        (folder / "study.toml")
        .read_text()
        .replace('file = "other.csv"', 'file = "other.csv"\nconstants = { acceleration = 0 }')
    )
    (folder / "study.toml").write_text(study)
    result = cli("identify", folder / "study.toml", "--json", "-")
    assert result.exit_code == 0
    assert "warning: other.csv" in result.stderr
    assert json.loads(result.stdout)["validation"][0]["record"] == "second"


def test_the_documentation_has_every_key() -> None:
    text = (Path(__file__).parents[2] / "docs" / "study.md").read_text()
    for kind, keys in KEYS.items():
        assert f"| `{kind}` | `" in text
        assert all(f"`{key}`" in text for key in keys), kind
    for kind, (module, name) in METHODS.items():
        options = importlib.import_module(f"mechsmith.identification.{module}")
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{kind}` |")]
        for field in dataclasses.fields(getattr(options, name)):
            assert f"`{field.name}`" in row or field.name == "progress" or not field.init, (kind, field.name)
    for source in (
        ProblemSource,
        ColumnSource,
        RecordSource,
        ResidualSource,
        OutputPaths,
        Uncertainty,
        LugreStart,
    ):
        for field in dataclasses.fields(source):
            assert f"`{field.name}`" in text, field.name


# -- where the data are -----------------------------------------------------------------------------------


def test_data_may_be_elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("data")
    for name in ("log.csv", "other.csv"):
        (folder / name).rename(elsewhere / name)
    study = load_study(folder / "study.toml")
    expected = {"first": elsewhere / "log.csv", "second": elsewhere / "other.csv"}
    for data in (
        [str(elsewhere)],
        [str(elsewhere / "log.csv")],
        [f"first={elsewhere / 'log.csv'}", f"second={elsewhere / 'other.csv'}"],
        [str(elsewhere / "other.csv"), str(elsewhere / "log.csv")],
    ):
        assert find_files(study, data) == expected
    renamed = (elsewhere / "log.csv").rename(elsewhere / "renamed.csv")
    assert find_files(study, [str(renamed)]) == {**expected, "first": renamed}
    with pytest.raises(InputError, match="record 'first': there is no file"):
        find_files(study, [])
    with pytest.raises(InputError, match="Did you mean 'first'"):
        find_files(study, ["frist=x.csv"])


# -- what is wrong is told ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title =", "titel =", "there is no key 'titel'. Did you mean 'title'?"),
        ("seed = 3", "seed = -3", "seed is -3"),
        ("seed = 3", "seed = true", "seed is True; it must be a whole number"),
        ('[model]\nname = "emps"', '[modell]\nname = "emps"', "Did you mean 'model'?"),
        ('name = "emps"', 'nam = "emps"', "[model]: there is no key 'nam'. Did you mean 'name'?"),
        ('name = "emps"', 'name = "emsp"', "Did you mean 'emps'?"),
        ('name = "emps"', 'name = "emps"\nintegrator = "radua"', "Did you mean 'radau'?"),
        (
            'file = "log.csv"',
            'fil = "log.csv"',
            "[[records]] number 1: there is no key 'fil'. Did you mean 'file'?",
        ),
        ('file = "log.csv"', "", "'file' is missing"),
        ('time = { source = "t_ms", unit = "ms" }', "", "give either time (a column) or sample_period"),
        ('unit = "ms"', 'unt = "ms"', "there is no key 'unt'. Did you mean 'unit'?"),
        ('"v_mm"', '"v"', "there is no column 'v'"),
        ('unit = "mm/s"', 'unit = "mm"', "dimension"),
        ('unit = "mm/s"', 'unit = "mmm/ss"', "not understood"),
        (
            'velocity = { source = "v_mm", unit = "mm/s" }',
            'speed = "v_mm"',
            "'speed' is no quantity of the model",
        ),
        ('name = "second"', 'name = "first"', "2 records are called 'first'"),
        ('kind = "differentiate"', 'kind = "diferentiate"', "Did you mean 'differentiate'?"),
        ('column = "velocity"', 'colum = "velocity"', "[[preprocessing]] number 1: there is no key 'colum'"),
        ('column = "velocity"', 'column = "speed"', "there is no column 'speed'"),
        ('name = "acceleration"', 'name = "acceleration"\nrecords = ["frist"]', "Did you mean 'first'?"),
        ('free = ["mass"', 'free = ["mas"', "there is no 'mas'"),
        ('free = ["mass", "viscous", "coulomb"]', "free = []", "nothing is free"),
        ('free = ["mass", "viscous", "coulomb"]', 'free = "mass"', "it must be a list of texts"),
        ('offset = "-2 N"', 'offset = "-2 kg"', "does not fit"),
        ('offset = "-2 N"', 'ofset = "-2 N"', "Did you mean 'offset'?"),
        ('mass = ["1 kg", "200 kg"]', 'mass = ["1 kg"]', "it must be [lower, upper]"),
        ('mass = ["1 kg", "200 kg"]', "mass = [200, 1]", "lower must be below upper"),
        ('mass = ["1 kg", "200 kg"]', "offset = [-3, 3]", "not free"),
        ("[problem.fixed]", "[problem.start]\noffset = 1.0\n[problem.fixed]", "'offset' is not free"),
        ("[problem.fixed]", '[problem.transforms]\nmass = "exp"\n[problem.fixed]', "Allowed: log, identity"),
        ('outputs = ["force"]', 'outputs = ["torque"]', "no output 'torque'"),
        ('outputs = ["force"]', 'outputs = ["force"]\ndecimation = { factor = 1 }', "factor is 1"),
        ('outputs = ["force"]', 'kind = "equations"', "Did you mean 'equation'?"),
        ('kind = "linear"', 'kind = "liner"', "Did you mean 'linear'?"),
        ('kind = "linear"', 'kind = "linear"\ntolerance = 1', "there is no key 'tolerance'"),
        ('kind = "linear"', 'kind = "least_squares"\nmax_evaluations = 1.5', "it must be a whole number"),
        ('kind = "linear"', 'kind = "least_squares"\nmax_evaluations = 0', "allowed is 1 or more"),
        ('kind = "linear"', 'kind = "ipopt"\nhessian = "exakt"', "it must be one of"),
        ('[[method]]\nkind = "linear"', "", "there is no [[method]]"),
        ('title = "a carriage"', 'title = "a carriage', "this is no TOML"),
    ],
)
def test_a_wrong_study_is_refused(cli: Cli, folder: Path, old: str, new: str, words: str) -> None:
    changed(folder, old, new)
    before = sorted(folder.iterdir())
    result = cli("identify", folder / "study.toml", "-o", folder / "e.toml")
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert sorted(folder.iterdir()) == before


def test_outputs_are_checked_before_the_work_begins(cli: Cli, folder: Path) -> None:
    result = cli("identify", folder / "study.toml", "-o", folder / "e.txt")
    assert (result.exit_code, "must be .toml or .json" in result.stderr) == (2, True)
