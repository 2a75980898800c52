"""``validate``: known parameters on a record that they do not come from."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy
import typer

from mechsmith.commands import common
from mechsmith.commands.columns import (
    Columns,
    DataFile,
    Initial,
    Period,
    TimeColumn,
    initial_states,
    read_columns,
)
from mechsmith.commands.models import ModelName
from mechsmith.values import InputError, read_parameters, units_by_name

if TYPE_CHECKING:
    from mechsmith.codegen.functions import FunctionSet
    from mechsmith.codegen.simulator import Simulator
    from mechsmith.identification.record import Record
    from mechsmith.identification.residuals import EquationError, OutputError


class ResidualKind(StrEnum):
    """How prediction and measurement are compared."""

    EQUATION = "equation"
    OUTPUT = "output"


def validate(
    model: ModelName,
    data: DataFile,
    parameters: Annotated[Path, typer.Option("--parameters", help="Estimate, or file of name = value.")],
    study: Annotated[
        Path | None,
        typer.Option(
            help="Study whose columns, preprocessing, residual and measured initial states apply to DATA."
        ),
    ] = None,
    residual: Annotated[
        ResidualKind | None,
        typer.Option(
            help="Outputs at every sample, or of a simulation; by default output when there are states."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(metavar="OUTPUT", help="Output to compare, all by default; may be repeated."),
    ] = None,
    time: TimeColumn = "time",
    sample_period: Period = None,
    column: Columns = None,
    initial: Initial = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE", help="State that begins with the first value of its column; may be repeated."
        ),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the figures as JSON; - is standard output."),
    ] = None,
) -> None:
    """Compare what known parameters predict with a measured record.

    Exit code 1 when the simulation fails.
    """
    from mechsmith.codegen.lower import lower
    from mechsmith.identification.validate import validate as validate_record
    from mechsmith.report.tables import validation_plain, validation_table
    from mechsmith.systems import load_model

    functions = lower(load_model(model))
    values = read_parameters(parameters, functions)[0]
    starts = initial_states(functions, initial or [])
    given = {f"{argument}0:{name}": v for argument, named in starts.items() for name, v in named.items()}
    begins = tuple(name if name[:3] in ("x0:", "d0:") else f"x0:{name}" for name in measured or [])
    with common.progress_bar() as bar:
        bar.add_task(f"validating {functions.name}")
        if study is not None:
            if column or compare or residual or sample_period is not None or time != "time":
                raise InputError(
                    "validate: --study says what columns and residual are: leave --column, --compare, --residual, --time "
                    "and --sample-period out."
                )
            system, record, how, begins = _by_study(functions, study, data, begins)
        else:
            places = (time, sample_period, column or [])
            system, record, how = _by_columns(functions, data, residual, compare or [], places, begins)
        begins = tuple(name for name in begins if name not in given)
        found = validate_record(system, record, values, how, measured=begins, initial=given)
    if json is not None:
        common.emit_json(validation_plain(data.name, found), json)
    if json != "-":
        common.console().print(validation_table([(data.name, found)]))
    if not found.success:
        common.say(f"error: {found.status or 'the prediction is not finite'}", style="red")
        raise typer.Exit(common.DOUBTFUL)


def _by_study(
    functions: "FunctionSet", path: Path, data: Path, begins: tuple[str, ...]
) -> "tuple[FunctionSet | Simulator, Record, EquationError | OutputError, tuple[str, ...]]":
    """Return system, record, residual and measured initial states as a study has them for its records.

    The study's record whose file has the name of `data` says what the columns are, else its first.
    """
    from mechsmith.study.data import load_record
    from mechsmith.study.run import make_residual
    from mechsmith.study.schema import load_study
    from mechsmith.systems import make_simulator

    study = load_study(path)
    sources = (*study.records, *study.validation)
    source = next((one for one in sources if Path(one.file).name == data.name), sources[0])
    chosen = study.problem.measured
    record = load_record(study, source, data, functions, chosen)
    system = (
        functions if study.residual.kind == "equation" else make_simulator(functions, study.integrator)[0]
    )
    return system, record, make_residual(study, functions), (*chosen, *begins)


def _by_columns(
    functions: "FunctionSet",
    data: Path,
    kind: ResidualKind | None,
    compare: Sequence[str],
    places: tuple[str, float | None, list[str]],
    begins: tuple[str, ...],
) -> "tuple[FunctionSet | Simulator, Record, EquationError | OutputError]":
    """Return system, record and residual from columns named as the model's quantities."""
    from mechsmith.identification.residuals import EquationError, OutputError
    from mechsmith.systems import IntegratorChoice, make_simulator

    outputs = tuple(compare) or functions.labels("y")
    units = units_by_name(functions, "y")
    for name in outputs:
        if name not in units:
            raise InputError(
                f"--compare {name!r}: outputs of {functions.name!r} are {', '.join(units) or 'none'}."
            )
    simulates = kind is ResidualKind.OUTPUT or (kind is None and bool(functions.states))
    system: FunctionSet | Simulator = functions
    needed = (
        *functions.labels("u"),
        *(() if simulates else (*functions.labels("x"), *functions.labels("d"))),
    )
    if simulates:
        system = make_simulator(functions, IntegratorChoice())[0]
        needed = system.samples
    starts = tuple(name.partition(":")[2] for name in begins)
    record = read_columns(functions, data, tuple(dict.fromkeys((*needed, *outputs, *starts))), *places)
    noise = {}
    if len({units[name] for name in outputs}) > 1:
        # outputs of different units are weighed by their size, which only the figure over all of them shows
        noise = {name: float(numpy.sqrt(numpy.mean(record[name] ** 2))) or 1.0 for name in outputs}
    made = OutputError if simulates else EquationError
    return system, record, made(outputs={name: name for name in outputs}, noise=noise)
