"""Options and reading that ``simulate`` and ``validate`` share: columns of a file by the model's names."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechsmith.values import InputError, number

if TYPE_CHECKING:
    from mechsmith.codegen.functions import FunctionSet
    from mechsmith.identification.record import Record

DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="Measured data: .csv, .csv.gz, .parquet, .mat or .npz.")
]
ParameterFile = Annotated[
    Path | None,
    typer.Option("--parameters", help="Estimate, or file of name = value; nominal values fill the rest."),
]
TimeColumn = Annotated[str, typer.Option("--time", metavar="COLUMN[:UNIT]", help="The time column.")]
Period = Annotated[
    float | None, typer.Option(help="Seconds between samples, in place of a time column.", min=0.0)
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=SOURCE[:UNIT]",
        help="Where a quantity of the model is in the file, such as velocity=dq:deg/s; may be repeated. "
        "By default it has the model's name and unit.",
    ),
]
Initial = Annotated[
    list[str] | None,
    typer.Option(metavar="STATE=VALUE", help="Initial state, such as 'position=3 mm'; may be repeated."),
]


def read_columns(
    functions: "FunctionSet",
    path: Path,
    needed: tuple[str, ...],
    time: str,
    sample_period: float | None,
    given: list[str],
) -> "Record":
    """Return the record with the columns that are needed, named by the model or as given."""
    from mechsmith.identification.readers import ColumnSpec, read_record
    from mechsmith.study.data import model_units
    from mechsmith.study.table import nearest

    units = model_units(functions)
    specs: dict[str, ColumnSpec] = {name: ColumnSpec(name, units[name], units[name]) for name in needed}
    for text in given:
        name, equals, place = text.partition("=")
        if not equals or name not in units:
            raise InputError(
                f"--column {text!r}: write NAME=SOURCE[:UNIT] with a quantity of {functions.name!r}.{nearest(name, list(units))} "
                f"It has: {', '.join(units)}."
            )
        source, _, unit = place.partition(":")
        specs[name] = ColumnSpec(source, unit or units[name], units[name])
    source, _, unit = time.partition(":")
    return read_record(
        path,
        time=None if sample_period is not None else ColumnSpec(source, unit or "s", "s"),
        columns=specs,
        sample_period=sample_period,
    )


def initial_states(functions: "FunctionSet", given: list[str]) -> dict[str, dict[str, float]]:
    """Return initial states by argument and name."""
    found: dict[str, dict[str, float]] = {"x": {}, "d": {}}
    units = {
        label: (argument, unit)
        for argument in ("x", "d")
        for label, unit in zip(functions.labels(argument), functions.units(argument), strict=True)
    }
    for text in given:
        name, equals, value = text.partition("=")
        name = name.removeprefix("x0:").removeprefix("d0:")
        if not equals or name not in units:
            raise InputError(
                f"--initial {text!r}: write STATE=VALUE with a state of {functions.name!r} ({', '.join(units) or 'none'})."
            )
        argument, unit = units[name]
        found[argument][name] = number(value, unit, f"--initial {name}")
    return found
