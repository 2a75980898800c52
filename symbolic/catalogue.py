"""The models that come with mechsmith by name, and models in files of the user's own."""

import difflib
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType

from mechsmith.symbolic.control.emps_controller import make_emps_controller
from mechsmith.symbolic.control.friction_compensation import make_friction_compensation
from mechsmith.symbolic.drive.closed_loop import make_emps_closed_loop
from mechsmith.symbolic.drive.emps import make_axis, make_emps_asymmetric, make_emps_axis, make_emps_static
from mechsmith.symbolic.drive.emps_lugre import make_emps_lugre
from mechsmith.symbolic.flexible.models import FLEXIBLE_MODELS
from mechsmith.symbolic.friction.coulomb import make_coulomb, make_coulomb_directional, make_coulomb_loaded
from mechsmith.symbolic.friction.dahl import make_dahl
from mechsmith.symbolic.friction.elasto_plastic import make_elasto_plastic
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.friction.lugre_variants import make_lugre_asymmetric, make_lugre_constant
from mechsmith.symbolic.friction.maxwell_slip import make_maxwell_slip
from mechsmith.symbolic.friction.static import make_coulomb_viscous
from mechsmith.symbolic.friction.stribeck import make_stribeck
from mechsmith.symbolic.friction.viscous import make_viscous
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.parallel.models import PARALLEL_MODELS
from mechsmith.symbolic.serial.irb6700 import SERIAL_MODELS


def make_lugre_linear() -> Model:
    """Return `make_lugre` for a carriage: position in metres, force in newtons."""
    return make_lugre(motion="linear")


def make_stribeck_exponent() -> Model:
    """Return `make_stribeck` with a free exponent."""
    return make_stribeck(shape="exponent")


def make_viscous_quadratic() -> Model:
    """Return `make_viscous` of order 2."""
    return make_viscous(order=2)


def make_viscous_cubic() -> Model:
    """Return `make_viscous` of order 3."""
    return make_viscous(order=3)


def make_emps_lugre_closed_loop() -> Model:
    """Return the EMPS axis with LuGre friction, under its sampled position controller."""
    return make_emps_closed_loop(make_lugre_linear()).replace(name="emps_lugre_closed_loop")


CATALOGUE: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "axis": make_axis,
        "coulomb": make_coulomb,
        "coulomb_directional": make_coulomb_directional,
        "coulomb_loaded": make_coulomb_loaded,
        "coulomb_viscous": make_coulomb_viscous,
        "dahl": make_dahl,
        "elasto_plastic": make_elasto_plastic,
        "emps": make_emps_static,
        "emps_asymmetric": make_emps_asymmetric,
        "emps_axis": make_emps_axis,
        "emps_closed_loop": make_emps_closed_loop,
        "emps_controller": make_emps_controller,
        "emps_lugre": make_emps_lugre,
        "emps_lugre_closed_loop": make_emps_lugre_closed_loop,
        "friction_compensation": make_friction_compensation,
        "lugre": make_lugre,
        "lugre_asymmetric": make_lugre_asymmetric,
        "lugre_constant": make_lugre_constant,
        "lugre_linear": make_lugre_linear,
        "maxwell_slip": make_maxwell_slip,
        "stribeck": make_stribeck,
        "stribeck_exponent": make_stribeck_exponent,
        "viscous": make_viscous,
        "viscous_cubic": make_viscous_cubic,
        "viscous_quadratic": make_viscous_quadratic,
        **FLEXIBLE_MODELS,
        **PARALLEL_MODELS,
        **SERIAL_MODELS,
    }
)


def make_model(name_or_path: str) -> Model:
    """Return a model of the catalogue, or one that a function in a user's file makes.

    Parameters
    ----------
    name_or_path : str
        A name of `CATALOGUE`, or ``path/to/file.py:function``; the function is called without arguments.

    Raises
    ------
    ModelError
        If there is no such name, file or function, if the file can't be loaded, or if the function needs
        arguments or returns something else than a Model.
    """
    if name_or_path in CATALOGUE:
        return CATALOGUE[name_or_path]()
    path, colon, function = name_or_path.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise ModelError(
            f"there is no model {name_or_path!r} in the catalogue{_nearest(name_or_path, CATALOGUE)}. "
            f"It has: {', '.join(CATALOGUE)}. A model of your own is named as path/to/file.py:make_model."
        )
    return _made(_load(Path(path)), path, function)


def _made(module: ModuleType, path: str, name: str) -> Model:
    functions = {
        key: value
        for key, value in vars(module).items()
        if callable(value) and not inspect.isclass(value) and not key.startswith("_")
    }
    own = [key for key, value in functions.items() if getattr(value, "__module__", "") == module.__name__]
    if name not in functions:
        raise ModelError(
            f"file {path!r} has no function {name!r}{_nearest(name, own)} It has: {', '.join(own) or 'none'}."
        )
    needed = [
        parameter.name
        for parameter in inspect.signature(functions[name]).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise ModelError(
            f"function {name!r} of {path!r} needs the arguments {', '.join(needed)}. "
            "Give them default values, or name a function without arguments that calls it."
        )
    model = functions[name]()
    if not isinstance(model, Model):
        raise ModelError(f"function {name!r} of {path!r} returned a {type(model).__name__}. Return a Model.")
    return model


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise ModelError(
            f"there is no file {str(path)!r}. Give the path of a Python file from the current folder."
        )
    # Named after the place, so that files of one name do not meet, and kept where dataclasses and pickle look.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"mechsmith_file_{digest}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"file {str(path)!r} can't be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ModelError:
        raise
    except (Exception, SystemExit) as error:  # whatever a user's file raises is told with the file's name
        del sys.modules[spec.name]
        raise ModelError(
            f"file {str(path)!r} fails when it is loaded: {type(error).__name__}: {error}"
        ) from error
    return module


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f". Did you mean {close[0]!r}?" if close else "."
