"""Methods as a study names them: ``kind`` and the options of the class behind it."""

import dataclasses
import importlib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from mechsmith.identification.method import Method
from mechsmith.identification.search import LeastSquares
from mechsmith.study.table import StudyError, Table

# Kind, and module and class of its options.
METHODS: Mapping[str, tuple[str, str]] = {
    "linear": ("linear", "LinearLeastSquares"),
    "least_squares": ("search", "LeastSquares"),
    "multistart": ("search", "MultiStart"),
    "ipopt": ("nlp", "Ipopt"),
    "differential_evolution": ("evolution", "DifferentialEvolution"),
}


def make_method(table: Table, folder: Path) -> Method:
    """Return the method of a ``[[method]]`` table; paths are relative to `folder`.

    Raises
    ------
    StudyError
        If the kind or an option is unknown, or a value is of the wrong type.
    MethodError
        If a value is out of range.
    """
    module, name = METHODS[table.choice("kind", tuple(METHODS))]
    found: Any = getattr(importlib.import_module(f"mechsmith.identification.{module}"), name)
    hints = typing.get_type_hints(found)
    options = [f.name for f in dataclasses.fields(found) if f.init and f.name != "progress"]
    table.only("kind", *options)
    given: dict[str, Any] = {}
    for key in options:
        if key in table.values:
            nested = hints[key] is Method
            given[key] = (
                make_method(table.table(key), folder) if nested else _converted(table, key, hints[key])
            )
            if isinstance(given[key], Path):
                given[key] = folder / given[key]
        elif hints[key] is Method:
            given[key] = LeastSquares()
        elif not _has_default(found, key):
            raise StudyError(f"{table.where}: {key!r} is missing. Give {_words(hints[key])}.")
    return cast(Method, found(**given))


def _has_default(found: Any, key: str) -> bool:
    field = next(f for f in dataclasses.fields(found) if f.name == key)
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _converted(table: Table, key: str, hint: Any) -> Any:
    """Return a value as the type that an option is annotated with."""
    value = table.values[key]
    ok, result = _fitted(value, hint)
    if not ok:
        raise StudyError(f"{table.where}: {key} is {value!r}; it must be {_words(hint)}.")
    return result


def _fitted(value: Any, hint: Any) -> tuple[bool, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return value in arguments, value
    if origin in (typing.Union, types.UnionType):
        tried = [_fitted(value, one) for one in arguments if one is not type(None)]
        return next(((ok, result) for ok, result in tried if ok), (False, None))
    if origin is not None and issubclass(origin, Mapping):
        return _fitted_mapping(value, arguments)
    if origin is tuple:
        return _fitted_tuple(value, arguments)
    if hint is Path:
        return isinstance(value, str), Path(value) if isinstance(value, str) else None
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return True, float(value)
    return isinstance(hint, type) and type(value) is hint, value


def _fitted_mapping(value: Any, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    if not isinstance(value, dict):
        return False, None
    pairs = {key: _fitted(entry, arguments[1]) for key, entry in value.items()}
    return all(ok for ok, _ in pairs.values()), {key: result for key, (_, result) in pairs.items()}


def _fitted_tuple(value: Any, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    if not isinstance(value, list):
        return False, None
    hints = arguments[:1] * len(value) if arguments[-1] is ... else arguments
    if len(hints) != len(value):
        return False, None
    entries = [_fitted(entry, one) for entry, one in zip(value, hints, strict=True)]
    return all(ok for ok, _ in entries), tuple(result for _, result in entries)


def _words(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(one) for one in arguments if one is not type(None))
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", Path: "a path"}
    if origin is not None and issubclass(origin, Mapping):
        return f"a table with entries that are {_words(arguments[1])}"
    if origin is tuple:
        return f"a list ({', '.join('...' if a is ... else _words(a) for a in arguments)})"
    return names.get(hint, str(hint))
