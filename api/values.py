"""Numbers and numbers with a unit, as they are written in TOML, JSON and on the command line."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechsmith.codegen.functions import FunctionSet
    from mechsmith.identification.estimate import Estimate

_NUMBER = re.compile(r"\s*([-+]?(?:inf|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))\s*(.*?)\s*$", re.DOTALL)


class InputError(ValueError):
    """Something that the user gave is wrong; the message says what, and what is allowed."""


def number(value: object, unit: str, what: str) -> float:
    """Return a number in `unit` from a number, or from a text such as ``"3 deg"``.

    Parameters
    ----------
    value : int, float or str
        A plain number is in `unit` already.
    unit : str
        The coherent SI unit of the quantity.
    what : str
        How the value is called in messages.

    Raises
    ------
    InputError
        If it is no number, or its unit is of another dimension.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isnan(value):
            raise InputError(f"{what} is NaN. Give a number.")
        return float(value)
    match = _NUMBER.match(value) if isinstance(value, str) else None
    if match is None:
        raise InputError(
            f"{what} is {value!r}. Give a number in {unit or '1'}, or text such as '3 {unit or '1'}'."
        )
    from mechsmith.identification.units import UnitError, conversion

    amount, given = float(match.group(1)), match.group(2)
    if not given:
        return amount
    try:
        change = conversion("" if given == "1" else given, "", unit)
    except UnitError as error:
        raise InputError(f"{what} is {value!r}: the unit does not fit {unit or '1'!r} ({error}).") from None
    return change.factor * amount + change.shift


def read_mapping(path: Path) -> Mapping[str, object]:
    """Return what a ``.toml`` or ``.json`` file holds at its top level.

    Raises
    ------
    InputError
        If it can't be read as such.
    """
    if path.suffix not in (".toml", ".json"):
        raise InputError(f"{path}: the suffix is {path.suffix!r}; allowed are .toml and .json.")
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}.") from error
    if not isinstance(data, dict):
        raise InputError(
            f"{path} holds a {type(data).__name__} at its top level, it must be names with values."
        )
    return data


def units_by_name(functions: "FunctionSet", arguments: str = "xdzup") -> dict[str, str]:
    """Return the unit of every element of some arguments (``x``, ``d``, ``z``, ``u``, ``p``, ``y``) by its name."""
    return {
        label: unit
        for argument in arguments
        for label, unit in zip(functions.labels(argument), functions.units(argument), strict=True)
    }


def read_parameters(path: Path, functions: "FunctionSet") -> "tuple[dict[str, float], Estimate | None]":
    """Return parameters of a model from an estimate, or from a plain file of names with values.

    Parameters
    ----------
    path : Path
        As `Estimate.save` wrote it, or a ``.toml`` or ``.json`` file of ``name = value`` with values as numbers in SI
        or as text with a unit.
    functions : FunctionSet
        Of the model.

    Returns
    -------
    (dict, Estimate or None)
        The parameters that belong to the model, and the estimate where the file holds one. The dead time of an
        estimate, which is no parameter of a model, is left out of the former.

    Raises
    ------
    InputError
        If a name is no parameter of the model or a value has another unit.
    """
    from mechsmith.identification.estimate import Estimate

    data = read_mapping(path)
    labels = functions.labels("p")
    if "format" in data:
        estimate = Estimate.load(path)
        found: dict[str, float] = dict(estimate.parameters_for(0))
        known = {name: value for name, value in found.items() if name in labels}
        strangers = [name for name in found if name not in labels and name != "dead_time"]
        if strangers:
            raise InputError(
                f"{path} is an estimate of {estimate.model!r}; {functions.name!r} has no parameter "
                f"{', '.join(map(repr, strangers))}. It has: {', '.join(labels) or 'none'}."
            )
        return within_bounds(path, functions, known), estimate
    units = units_by_name(functions, "p")
    for name in data:
        if name not in units:
            raise InputError(
                f"{path}: {functions.name!r} has no parameter {name!r}. It has: {', '.join(labels) or 'none'}."
            )
    found = {name: number(value, units[name], f"{path}: {name}") for name, value in data.items()}
    return within_bounds(path, functions, found), None


def within_bounds(path: Path, functions: "FunctionSet", values: dict[str, float]) -> dict[str, float]:
    """Return the values, or raise `InputError` naming the first that is outside its parameter's bounds."""
    for variable in functions.parameters:
        for label in variable.labels:
            value = values.get(label, variable.lower)
            if not variable.lower <= value <= variable.upper:
                raise InputError(
                    f"{path}: {label} is {value}, allowed is {variable.lower} to {variable.upper} {variable.unit[0]}. "
                    "Correct the value, or the bounds of the model."
                )
    return values
