"""Estimates as TOML or JSON files."""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from mechsmith.codegen.files import write_text
from mechsmith.identification.estimate import Estimate, EstimateError
from mechsmith.identification.method import Progress
from mechsmith.identification.uncertainty import Whiteness

ARRAYS = ("values", "singular_values", "intervals", "covariance_white", "covariance_corrected")
SEQUENCES = ("names", "units", "undetermined", "at_bound", "records", "provenance")
FORMAT = "mechsmith estimate 1"


def save_estimate(estimate: Estimate, path: Path) -> None:
    """Write an estimate; the suffix decides the format. The file appears whole or not at all."""
    data = to_plain(estimate)
    if path.suffix == ".toml":
        text = toml_text(data)
    elif path.suffix == ".json":
        text = json.dumps(_without_infinities(data), indent=1, allow_nan=False) + "\n"
    else:
        raise EstimateError(f"estimate: suffix {path.suffix!r} of {path.name}; allowed are .toml and .json.")
    write_text(path, text)


def load_estimate(path: Path) -> Estimate:
    """Return the estimate in a file.

    Raises
    ------
    EstimateError
        If the suffix is unknown, or the file does not hold an estimate.
    """
    try:
        if path.suffix == ".toml":
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".json":
            data = json.loads(path.read_text(encoding="utf-8"))
        else:
            raise EstimateError(
                f"estimate: suffix {path.suffix!r} of {path.name}; allowed are .toml and .json."
            )
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise EstimateError(f"estimate: {path} can't be read: {error}") from error
    return from_plain(data, str(path))


def to_plain(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as dictionaries, lists, numbers and text."""
    data: dict[str, Any] = {"format": FORMAT}
    for field in fields(estimate):
        value = getattr(estimate, field.name)
        if field.name in ARRAYS:
            data[field.name] = np.asarray(value).tolist()
        elif field.name in ("whiteness", "history"):
            data[field.name] = [asdict(entry) for entry in value]
        elif field.name == "null_directions":
            data[field.name] = [dict(direction) for direction in value]
        elif field.name == "parameters":
            data[field.name] = dict(value)
        else:
            data[field.name] = list(value) if field.name in SEQUENCES else value
    return data


def from_plain(data: Mapping[str, Any], where: str) -> Estimate:
    """Return the estimate of `to_plain`'s dictionary."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise EstimateError(f"estimate: {where} has the format {found!r}; it must be {FORMAT!r}.")
    missing = [field.name for field in fields(Estimate) if field.name not in data]
    if missing:
        raise EstimateError(f"estimate: {where} lacks {', '.join(missing)}.")
    values: dict[str, Any] = {field.name: _with_infinities(data[field.name]) for field in fields(Estimate)}
    size = len(values["names"])
    shapes = {"intervals": (size, 2), "covariance_white": (size, size), "covariance_corrected": (size, size)}
    try:
        for name in ARRAYS:
            values[name] = np.array(values[name], dtype=float).reshape(shapes.get(name, (size,)))
        for name in SEQUENCES:
            values[name] = tuple(values[name])
        values["whiteness"] = tuple(Whiteness(**entry) for entry in values["whiteness"])
        values["history"] = tuple(Progress(**entry) for entry in values["history"])
        values["null_directions"] = tuple(values["null_directions"])
    except (TypeError, ValueError) as error:
        raise EstimateError(f"estimate: {where} is damaged: {error}") from error
    return Estimate(**values)


def _without_infinities(value: Any) -> Any:
    # JSON has no infinity and no NaN: they are written as text
    if isinstance(value, float) and not math.isfinite(value):
        return {"not finite": repr(value)}
    if isinstance(value, dict):
        return {key: _without_infinities(entry) for key, entry in value.items()}
    return [_without_infinities(entry) for entry in value] if isinstance(value, list) else value


def _with_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"not finite"}:
            return float(value["not finite"])
        return {key: _with_infinities(entry) for key, entry in value.items()}
    return [_with_infinities(entry) for entry in value] if isinstance(value, list) else value


def toml_text(data: Mapping[str, Any]) -> str:
    """Return TOML of a mapping whose values are scalars, lists, mappings of scalars, or lists of such mappings."""
    lines: list[str] = []
    tables: list[str] = []
    for key, value in data.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_key(key)}]", *(f"{_key(k)} = {_value(v)}" for k, v in value.items())]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for entry in value:
                tables += ["", f"[[{_key(key)}]]", *(f"{_key(k)} = {_value(v)}" for k, v in entry.items())]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return "\n".join([*lines, *tables]) + "\n"


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if plain else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the delete character, which TOML does not allow
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    raise EstimateError(f"estimate: a {type(value).__name__} can't be written to TOML.")
