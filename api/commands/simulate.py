"""``simulate``: a model with known parameters over the inputs in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy
import typer

from mechsmith.codegen.files import write_text, writing
from mechsmith.commands import common
from mechsmith.commands.columns import (
    Columns,
    DataFile,
    Initial,
    ParameterFile,
    Period,
    TimeColumn,
    initial_states,
    read_columns,
)
from mechsmith.commands.generate import IntegratorName
from mechsmith.commands.models import ModelName
from mechsmith.values import InputError, read_parameters

if TYPE_CHECKING:
    from mechsmith.codegen.functions import FunctionSet
    from mechsmith.codegen.simulator import Rollout
    from mechsmith.identification.record import Record


def simulate(
    model: ModelName,
    data: DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="What to write: .csv or .npz.")],
    parameters: ParameterFile = None,
    time: TimeColumn = "time",
    sample_period: Period = None,
    column: Columns = None,
    initial: Initial = None,
    integrator: Annotated[IntegratorName, typer.Option(help="For states.")] = IntegratorName.RADAU,
    substeps: Annotated[int, typer.Option(help="Equal substeps in a sample.", min=1)] = 1,
) -> None:
    """Simulate a model over the inputs in a file, and write inputs, states and outputs.

    Exit code 1 when the simulation fails; nothing is written then.
    """
    from mechsmith.codegen.lower import lower
    from mechsmith.identification.residuals import check_integrals
    from mechsmith.systems import IntegratorChoice, load_model, make_simulator

    if output.suffix not in (".csv", ".npz"):
        raise InputError(f"-o {output}: the suffix is {output.suffix!r}; allowed are .csv and .npz.")
    functions = lower(load_model(model))
    values = {} if parameters is None else read_parameters(parameters, functions)[0]
    choice = IntegratorChoice(kind=integrator.value, substeps=substeps)
    with common.progress_bar() as bar:
        bar.add_task(f"simulating {functions.name}")
        simulator, how = make_simulator(functions, choice)
        record = read_columns(functions, data, simulator.samples, time, sample_period, column or [])
        check_integrals(record, simulator)
        starts = initial_states(functions, initial or [])
        x0, d0 = (functions.vector(argument, starts[argument]) for argument in ("x", "d"))
        samples = numpy.column_stack([record[name] for name in simulator.samples])
        rollout = simulator.rollout(record.time, samples, x0, d0, functions.vector("p", values))
    if rollout.status or not numpy.isfinite(rollout.outputs).all():
        reason = rollout.status or "an output is not finite"
        common.say(f"error: the simulation failed: {reason}. Nothing is written.", style="red")
        raise typer.Exit(common.DOUBTFUL)
    written = _columns(functions, record, rollout)
    _write(output, record, written)
    common.print_wrapped(
        common.console(), f"{output}: {len(record)} samples of {', '.join(n for n, _ in written)} ({how})"
    )


def _columns(
    functions: "FunctionSet", record: "Record", rollout: "Rollout"
) -> "list[tuple[str, numpy.ndarray]]":
    """Return what is written, by name: inputs, states and outputs."""
    found = {name: record[name] for name in record.columns}
    for argument, values in (("x", rollout.states), ("d", rollout.discrete_states), ("y", rollout.outputs)):
        for i, label in enumerate(functions.labels(argument)):
            found[label] = values[:, i]
    return list(found.items())


def _write(path: Path, record: "Record", columns: "list[tuple[str, numpy.ndarray]]") -> None:
    if path.suffix == ".csv":
        names = ["time", *(name for name, _ in columns)]
        rows = numpy.column_stack([record.time, *(values for _, values in columns)]).tolist()
        lines = [",".join(names), *(",".join(map(repr, row)) for row in rows)]
        write_text(path, "\n".join(lines) + "\n")
        return
    arrays: dict[str, Any] = {"time": record.time, **dict(columns)}
    with writing(path) as stream:
        numpy.savez(stream, **arrays)
