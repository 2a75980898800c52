"""``evaluate``: a model's outputs at one point, from JSON to JSON."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy
import typer

from mechsmith.commands import common
from mechsmith.commands.models import ModelName
from mechsmith.values import InputError, number

if TYPE_CHECKING:
    from mechsmith.codegen.functions import Array, FunctionSet, Variable

# What `--derivatives` adds: the function, the key in the result, and whose names its values have.
ADDED = (("derivative", "derivatives", "x"), ("update", "updates", "d"), ("constraint", "constraints", "z"))
ROLES = {"x": "state", "d": "discrete state", "z": "unknown", "u": "input", "p": "parameter"}


def evaluate(
    model: ModelName,
    json_file: Annotated[
        str, typer.Option("--json", metavar="FILE", help="JSON object of named values; - is standard input.")
    ],
    derivatives: Annotated[
        bool,
        typer.Option(
            "--derivatives",
            help="Also print derivatives of states, updates, constraint residuals and solved unknowns, under the keys "
            "derivatives, updates, constraints and unknowns.",
        ),
    ] = False,
) -> None:
    """Evaluate a model at one point: a JSON object of named values in, one of named outputs out.

    A value is a number in SI, text with a unit ("3 deg"), or a list for a quantity with a shape. What is not given
    has its nominal value. Unknowns are solved for; a value for one is where that begins. Exit code 1 when an output
    is not finite (it is null then) or the unknowns are not found.
    """
    from mechsmith.codegen.lower import lower
    from mechsmith.systems import load_model

    functions = lower(load_model(model))
    given = _read(json_file)
    wanted = [("output", "", "y")] if functions.outputs else []
    if derivatives:
        wanted += [entry for entry in ADDED if entry[0] in functions.functions]
    values = _arguments(functions, given, [name for name, _, _ in wanted])
    result: dict[str, Any] = {}
    unsolved = _solve_unknowns(functions, values, [name for name, _, _ in wanted])
    if derivatives and functions.unknowns:
        result["unknowns"] = _named(functions.unknowns, values[2])
    for name, key, letter in wanted:
        named = _named(functions.variables(letter), _evaluated(functions, name, values))
        if key:
            result[key] = named
        else:
            result |= named
    common.emit_json(result, "-")
    bad = _not_finite(result)
    if unsolved:
        common.say(
            f"error: Newton's method does not find the unknowns ({', '.join(functions.labels('z'))}) from where they begin. "
            "Give them values near the solution.",
            style="red",
        )
    if bad:
        common.say(f"error: {', '.join(bad)} is not finite at this point.", style="red")
    if bad or unsolved:
        raise typer.Exit(common.DOUBTFUL)


def _read(source: str) -> dict[str, object]:
    if source == "-":
        text, what = sys.stdin.read(), "standard input"
    else:
        path = Path(source)
        if not path.is_file():
            raise InputError(f"--json: there is no file {source!r}.")
        text, what = path.read_text(encoding="utf-8"), source
    try:
        data = json.loads(text, object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        raise InputError(f"{what} is no JSON: {error}.") from error
    if not isinstance(data, dict):
        raise InputError(f"{what} holds a {type(data).__name__}; it must be an object of names with values.")
    return data


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"{name!r} is given twice.")
        found[name] = value
    return found


def _arguments(functions: "FunctionSet", given: dict[str, object], wanted: list[str]) -> "list[Array]":
    """Return x, d, z, u, p; what no wanted function depends on is 0 when it is neither given nor nominal."""
    known = {v.name: (a, v) for a in ROLES for v in functions.variables(a)}
    labels = {label: (a, v) for a, v in known.values() for label in v.labels}
    for name in given:
        if name not in known and name not in labels:
            from mechsmith.study.table import nearest

            raise InputError(
                f"{functions.name!r} has no quantity {name!r} to be given.{nearest(name, [*known, *labels])} "
                f"It has: {', '.join(known)}."
            )
    vectors = []
    for index, argument in enumerate(ROLES):
        needed = _needed(functions, wanted, index)
        flat: list[float] = []
        for variable in functions.variables(argument):
            flat += _elements(functions, argument, variable, given, needed[len(flat) :])
        vectors.append(numpy.array(flat, dtype=float))
    return vectors


def _needed(functions: "FunctionSet", wanted: list[str], index: int) -> list[bool]:
    """Return for each element of an argument whether a wanted function depends on it."""
    needed = [False] * functions.sizes[index]
    names = [*wanted, *(["mass"] if "derivative" in wanted and "mass" in functions.functions else [])]
    for name in names:
        columns = functions.casadi_function(name).jac_sparsity(0, index).colind()
        needed = [old or columns[i + 1] > columns[i] for i, old in enumerate(needed)]
    return needed


def _elements(
    functions: "FunctionSet",
    argument: str,
    variable: "Variable",
    given: dict[str, object],
    needed: list[bool],
) -> list[float]:
    what = f"{ROLES[argument]} {variable.name!r} of {functions.name!r}"
    if variable.name in given:
        flat = _flat(given[variable.name])
        if len(flat) != variable.size:
            shape = f"its shape is {list(variable.shape)}" if variable.shape else "it is a scalar"
            raise InputError(f"{what} has {len(flat)} values, {shape}. Give {variable.size}.")
        return [_checked(value, variable, i, what) for i, value in enumerate(flat)]
    values = []
    for i, label in enumerate(variable.labels):
        if label in given:
            values.append(
                _checked(given[label], variable, i, f"{ROLES[argument]} {label!r} of {functions.name!r}")
            )
        elif variable.nominal is not None:
            values.append(variable.nominal)
        elif needed[i]:
            unit = variable.unit[i] or "1"
            raise InputError(f"{what} ({unit}) is not given and has no nominal value. Give it.")
        else:
            values.append(0.0)
    return values


def _flat(value: object) -> list[object]:
    if isinstance(value, list):
        return [entry for part in value for entry in _flat(part)]
    return [value]


def _checked(value: object, variable: "Variable", index: int, what: str) -> float:
    unit = variable.unit[index]
    amount = number(value, unit, what)
    if not math.isfinite(amount) or not variable.lower <= amount <= variable.upper:
        raise InputError(
            f"{what} is {amount:g} {unit or '1'}; allowed is {variable.lower:g} to {variable.upper:g}."
        )
    return amount


def _solve_unknowns(functions: "FunctionSet", values: "list[Array]", wanted: list[str]) -> bool:
    """Put the solved unknowns in the place of where they begin, where they matter; return whether that failed."""
    if not any(_needed(functions, wanted, 2)):
        return False
    from mechsmith.codegen.unknowns import UnknownsSolver

    x, d, begin, u, p = values
    solved = UnknownsSolver(functions).solve(*(a.reshape(1, -1) for a in (x, d, u, p)), start=begin)
    values[2] = solved.values[0]
    return not bool(solved.found.all())


def _evaluated(functions: "FunctionSet", name: str, values: "list[Array]") -> "Array":
    result = functions.evaluate(name, *values)
    if name == "derivative" and "mass" in functions.functions:
        mass = functions.evaluate("mass", *values)
        try:
            return numpy.asarray(numpy.linalg.solve(mass, result), dtype=numpy.float64).reshape(-1)
        except numpy.linalg.LinAlgError:
            return numpy.full(result.size, numpy.nan)
    return result.reshape(-1)


def _named(variables: "tuple[Variable, ...]", flat: "Array") -> dict[str, Any]:
    """Return values by name, nested lists for what has a shape."""
    named: dict[str, Any] = {}
    place = 0
    for variable in variables:
        part = flat[place : place + variable.size]
        named[variable.name] = part.reshape(variable.shape).tolist() if variable.shape else float(part[0])
        place += variable.size
    return named


def _not_finite(result: dict[str, Any], prefix: str = "") -> list[str]:
    bad: list[str] = []
    for name, value in result.items():
        if isinstance(value, dict):
            bad += _not_finite(value, f"{name}.")
        elif not numpy.isfinite(numpy.asarray(value, dtype=float)).all():
            bad.append(prefix + name)
    return bad
