"""Models by name, and from a user's file."""

import re
from pathlib import Path

import pytest

from mechsmith.symbolic.catalogue import CATALOGUE, make_model
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.verify import verify

DAHL = """
from sympy import Abs, symbols

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity


def make_dahl(stiffness=1e5):
    z, velocity, s0, coulomb = symbols("z velocity s0 coulomb", real=True)
    return Model(
        name="dahl",
        states=(Quantity(z, "m"),),
        inputs=(Quantity(velocity, "m/s"),),
        parameters=(Quantity(s0, "N/m", nominal=stiffness), Quantity(coulomb, "N", nominal=20.0)),
        derivatives={z: velocity - s0 * Abs(velocity) * z / coulomb},
        outputs={Quantity("force", "N"): s0 * z},
    )


def make_scaled(factor):
    return make_dahl(1e5 * factor)


def make_nothing():
    return None
"""


@pytest.fixture
def dahl(tmp_path: Path) -> Path:
    path = tmp_path / "dahl.py"
    path.write_text(DAHL)
    return path


@pytest.mark.parametrize("name", CATALOGUE)
def test_models_have_the_name_they_are_listed_by(name: str) -> None:
    model = make_model(name)
    assert isinstance(model, Model)
    assert model.name == name
    assert model.description


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_identity_of_the_catalogue_is_as_expected(name: str) -> None:
    assert [verdict.identity.name for verdict in verify(make_model(name)) if not verdict.as_expected] == []


def test_every_parameter_has_a_nominal_value_within_its_bounds() -> None:
    for name in CATALOGUE:
        for quantity in make_model(name).parameters:
            assert quantity.nominal is not None, f"{name}: {quantity.name}"
            assert quantity.lower <= quantity.nominal <= quantity.upper


def test_a_name_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(ModelError) as error:
        make_model("lugr")
    assert "Did you mean 'lugre'?" in str(error.value)
    assert ", ".join(CATALOGUE) in str(error.value)


def test_a_model_from_a_file(dahl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_model(f"{dahl}:make_dahl").name == "dahl"
    monkeypatch.chdir(dahl.parent)
    assert make_model("dahl.py:make_dahl").parameters[0].nominal == 1e5


def test_a_file_is_read_anew(dahl: Path) -> None:
    make_model(f"{dahl}:make_dahl")
    # Another length: the interpreter's cache of compiled files goes by time and length.
    dahl.write_text(DAHL.replace('name="dahl"', 'name="dahl_again"'))
    assert make_model(f"{dahl}:make_dahl").name == "dahl_again"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("make_dahle", "Did you mean 'make_dahl'?"),
        ("make_scaled", "needs the arguments factor"),
        ("make_nothing", "returned a NoneType"),
    ],
)
def test_a_function_that_will_not_do(dahl: Path, function: str, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        make_model(f"{dahl}:{function}")


def test_a_file_that_will_not_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file"):
        make_model(f"{tmp_path / 'none.py'}:make")
    (tmp_path / "broken.py").write_text("def make(:\n")
    with pytest.raises(ModelError, match=r"broken\.py.*SyntaxError"):
        make_model(f"{tmp_path / 'broken.py'}:make")
    (tmp_path / "failing.py").write_text("1 / 0\n")
    with pytest.raises(ModelError, match="ZeroDivisionError"):
        make_model(f"{tmp_path / 'failing.py'}:make")


def test_a_file_that_exits_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "leaves.py"
    path.write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ModelError, match="SystemExit"):
        make_model(f"{path}:make")
