"""The command line in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mechsmith.cli import app

SLIDER = """
import sympy
from mechsmith import Identity, Model, Quantity, Statement


def _work(scope):
    return Statement(scope["force"] * scope["velocity"], scope.expression("power"))


def make_slider(flipped=False):
    mass, damping, force, velocity = sympy.symbols("mass damping force velocity", real=True)
    power = force * velocity
    return Model(
        name="slider",
        states=(Quantity(velocity, "m/s"),),
        inputs=(Quantity(force, "N"),),
        parameters=(
            Quantity(mass, "kg", nominal=20.0, lower=1.0, upper=500.0),
            Quantity(damping, "N*s/m", nominal=30.0, lower=0.0, upper=2000.0),
        ),
        derivatives={velocity: (force - damping * velocity) / mass},
        outputs={
            Quantity("speed", "m/s"): velocity,
            Quantity("power", "W"): -power if flipped else power,
        },
        identities=(Identity("work", "identity", _work),),
    )


def make_flipped():
    return make_slider(flipped=True)


def make_broken():
    return 1 / 0
"""


@pytest.fixture
def cli() -> Callable[..., Result]:
    """Return a function that runs a command and gives its exit code, stdout and stderr; errors are not swallowed."""

    def run(*arguments: object, stdin: str | None = None) -> Result:
        result = CliRunner(env={"COLUMNS": "160"}).invoke(
            app, [str(argument) for argument in arguments], input=stdin
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def slider(tmp_path: Path) -> Path:
    path = tmp_path / "slider.py"
    path.write_text(SLIDER)
    return path
