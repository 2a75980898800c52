"""The commands, one by one: what they print, what they write, and how they refuse."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from mechsmith import cli as cli_module
from mechsmith.codegen.files import write_text
from mechsmith.symbolic.catalogue import CATALOGUE, make_model

Cli = Callable[..., Result]

# -- models, show, verify ---------------------------------------------------------------------------------


def test_models_lists_the_whole_catalogue(cli: Cli) -> None:
    result = cli("models")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in CATALOGUE)
    listed = json.loads(cli("models", "--json").stdout)
    assert listed == {name: make().description for name, make in CATALOGUE.items()}


def test_show_names_everything(cli: Cli) -> None:
    result = cli("show", "lugre")
    assert result.exit_code == 0
    model = make_model("lugre")
    for quantity in model.quantities.values():
        assert quantity.name in result.stdout
        assert quantity.description in result.stdout
        assert str(quantity.unit) in result.stdout
    assert "316.227766" in result.stdout  # a nominal value
    assert "s₀⋅z⋅│velocity│" in result.stdout
    assert model.references[0] in result.stdout


def test_show_prints_latex(cli: Cli) -> None:
    text = cli("show", "emps_controller", "--latex").stdout
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") == 3
    assert r"\mathrm{previous\_position}^{+} &= \mathrm{position}" in text


def test_verify_exits_by_the_verdicts(cli: Cli, slider: Path) -> None:
    good = cli("verify", f"{slider}:make_slider")
    assert (good.exit_code, "1 of 1 verdicts as expected" in good.stdout) == (0, True)
    bad = cli("verify", f"{slider}:make_flipped")
    assert bad.exit_code == 1
    assert "Counter-examples" in bad.stdout
    assert "not as expected: work" in bad.stdout


def test_verify_of_a_model_without_identities_says_so(cli: Cli) -> None:
    result = cli("verify", "emps")
    assert (result.exit_code, "no identities" in result.stdout) == (0, True)


def test_verify_prints_json(cli: Cli, slider: Path) -> None:
    result = cli("verify", f"{slider}:make_flipped", "--json")
    assert result.exit_code == 1
    (verdict,) = json.loads(result.stdout)["verdicts"]
    assert (verdict["status"], verdict["expected"], verdict["as_expected"]) == ("refuted", "proved", False)


def test_verify_lugre_is_as_expected(cli: Cli) -> None:
    result = cli("verify", "lugre")
    assert result.exit_code == 0
    assert "(5) as printed" in result.stdout
    rows = [line for line in result.stdout.splitlines() if "✓" in line or "✗" in line]
    assert len(rows) == len(make_model("lugre").identities)


# -- generate ---------------------------------------------------------------------------------------------


def test_generate_writes_python_that_needs_casadi_alone(cli: Cli, tmp_path: Path) -> None:
    result = cli("generate", "emps", "--target", "python", "-o", tmp_path, "--jacobian", "output:p")
    assert result.exit_code == 0
    code = "import emps, sys; print(sorted(emps.functions()), 'sympy' in sys.modules, 'mechsmith' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['output', 'output_p'] False False"


@pytest.mark.compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
def test_generated_c_passes_its_own_test(cli: Cli, tmp_path: Path, scalar: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    made = cli("generate", "lugre", "--target", "c", "-o", tmp_path, "--scalar", scalar, "--substeps", 2)
    assert made.exit_code == 0
    command = [
        compiler,
        "-std=c99",
        "-pedantic",
        "-Wall",
        "-Werror",
        "-o",
        "t",
        "lugre_test.c",
        "lugre.c",
        "-lm",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "t"], check=False).returncode == 0


def test_generate_bakes_parameters_in(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('mass = "90 kg"\nviscous = 200.0\ncoulomb = 20.0\noffset = 0.0\n')
    assert (
        cli(
            "generate", "emps", "--target", "c", "-o", tmp_path, "--parameters", tmp_path / "p.toml"
        ).exit_code
        == 0
    )
    header = (tmp_path / "emps.h").read_text()
    assert "viscous;" not in header
    assert "200.0" in (tmp_path / "emps.c").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate", "emps"), "--target, -o DIR is missing"),
        (("generate", "--all", "emps"), "whole catalogue"),
        (("generate", "--all", "--check"), "give one of them"),
        (("generate", "emps", "--target", "c", "-o", "x", "--jacobian", "output"), "function:argument"),
        (
            ("generate", "emps", "--target", "c", "-o", "x", "--jacobian", "outputs:p"),
            "there is no 'outputs'",
        ),
        (("generate", "emps", "--target", "c", "-o", "x", "--integrator", "radau"), "no states"),
        (("generate", "lugree", "--target", "c", "-o", "x"), "Did you mean 'lugre'"),
        (("generate", "--check", "-o", "not_there"), "there is no folder"),
    ],
)
def test_generate_refuses(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_check_finds_stale_missing_and_orphan(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # two small models stand for the catalogue, whose own folder is checked in tests/generated
    from mechsmith.symbolic import catalogue

    monkeypatch.setattr(catalogue, "CATALOGUE", {name: CATALOGUE[name] for name in ("emps", "axis")})
    folder = tmp_path / "generated"
    assert cli("generate", "--all", "-o", folder).exit_code == 0
    assert cli("generate", "--check", "-o", folder).exit_code == 0
    text = (folder / "emps.c").read_text()
    (folder / "emps.c").write_text(text.replace("emps_output", "emps_exit"))
    (folder / "axis.h").unlink()
    (folder / "old.c").write_text("")
    result = cli("generate", "--check", "-o", folder)
    assert result.exit_code == 1
    assert {"stale: emps.c", "missing: axis.h", "orphan: old.c"} <= set(result.stdout.splitlines())
    assert "+void emps_output" in result.stdout
    assert f"mechsmith generate --all -o {folder}" in result.stdout
    assert cli("generate", "--all", "-o", folder).exit_code == 0
    assert (folder / "emps.c").read_text() == text
    assert not (folder / "old.c").exists()


# -- errors in general ------------------------------------------------------------------------------------


def test_a_users_function_that_fails_is_told_without_a_traceback(cli: Cli, slider: Path) -> None:
    result = cli("show", f"{slider}:make_broken")
    assert result.exit_code == 2
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in cli("--debug", "show", f"{slider}:make_broken").stderr


def test_an_interrupt_exits_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mechsmith.systems.load_model", interrupt)
    assert cli("show", "emps").exit_code == 130


def test_what_should_not_happen_is_told_as_such(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("mechsmith.systems.load_model", fail)
    result = cli("show", "emps")
    assert result.exit_code == 1
    assert "internal error: RuntimeError: a bug" in result.stderr


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "old")

    def fail(source: object, target: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_the_version_and_the_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mechsmith", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("mechsmith ")
    assert cli_module.app is not None


def test_the_package_loads_nothing_until_asked() -> None:
    code = "import mechsmith, sys; print([m for m in ('sympy', 'casadi', 'numpy') if m in sys.modules]); mechsmith.Model"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    import mechsmith

    assert set(mechsmith.__all__) <= set(dir(mechsmith))
    for name in mechsmith.__all__:
        assert getattr(mechsmith, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = mechsmith.nothing


def test_parameters_outside_their_bounds_are_refused(cli: Cli, tmp_path: Path) -> None:
    parameters, log = tmp_path / "negative.toml", tmp_path / "log.csv"
    parameters.write_text("s0 = -5.0\n")
    log.write_text("time,velocity,position\n0.0,0.0,0.0\n0.001,0.1,0.00005\n")
    result = cli("simulate", "lugre", log, "--parameters", parameters, "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "s0 is -5.0, allowed is 1e-06 to inf" in " ".join(result.stderr.split())
    assert not (tmp_path / "out.csv").exists()
