"""``generate``: code for one model, or the folder of generated code for the whole catalogue."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechsmith.commands import common
from mechsmith.values import InputError, read_parameters

if TYPE_CHECKING:
    from mechsmith.codegen.discretise import Discretisation
    from mechsmith.codegen.emit_c import Scalar
    from mechsmith.codegen.functions import FunctionSet


MEND = "mechsmith generate --all -o {folder}"


class Target(StrEnum):
    """What can be generated."""

    PYTHON = "python"
    C = "c"


class ScalarName(StrEnum):
    """Number types of C."""

    DOUBLE = "double"
    FLOAT = "float"


class IntegratorName(StrEnum):
    """The keys of `mechsmith.systems.INTEGRATORS`."""

    RADAU = "radau"
    RUNGE_KUTTA_4 = "runge_kutta_4"
    EXPONENTIAL = "exponential"
    IMPLICIT_MIDPOINT = "implicit_midpoint"


def generate(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="Catalogue name, or path/to/file.py:function.")
    ] = None,
    target: Annotated[list[Target] | None, typer.Option(help="What to generate; may be given twice.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder; with --all and --check it is 'generated' by default."),
    ] = None,
    scalar: Annotated[ScalarName, typer.Option(help="Number type of C.")] = ScalarName.DOUBLE,
    parameters: Annotated[
        Path | None,
        typer.Option(help="Estimate, or file of name = value, whose parameters are baked in as numbers."),
    ] = None,
    integrator: Annotated[
        IntegratorName | None, typer.Option(help="Of the step function in C; radau by default.")
    ] = None,
    substeps: Annotated[int, typer.Option(help="Equal substeps in a step.", min=1)] = 1,
    jacobian: Annotated[
        list[str] | None,
        typer.Option(metavar="FUNCTION:ARGUMENT", help="Jacobian to add, such as output:p; may be repeated."),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Write the folder of the whole catalogue, and remove what is in it else."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only compare that folder with what belongs in it; exit code 1 if stale."
        ),
    ] = False,
) -> None:
    """Generate Python or C from a model, or the whole catalogue's folder."""
    if everything or check:
        if model is not None or target or parameters or jacobian or integrator or everything is check:
            raise InputError(
                "generate: --all and --check are about the whole catalogue: give one of them, without MODEL, --target, "
                "--parameters, --integrator and --jacobian."
            )
        _catalogue(output or Path("generated"), check=check)
        return
    if model is None or not target or output is None:
        missing = [
            name for name, there in (("MODEL", model), ("--target", target), ("-o DIR", output)) if not there
        ]
        raise InputError(f"generate: {', '.join(missing)} is missing. For the whole catalogue use --all.")
    functions = _functions(model, parameters, jacobian or [])
    _write(functions, tuple(target), output, scalar, integrator, substeps)


def _functions(model: str, parameters: Path | None, jacobians: list[str]) -> "FunctionSet":
    from mechsmith.codegen.lower import lower
    from mechsmith.systems import load_model

    functions = lower(load_model(model))
    if parameters is not None:
        values, estimate = read_parameters(parameters, functions)
        if functions.sample_time in values:
            common.say(f"note: {functions.sample_time} is the sample time and stays an argument.")
        baked = {name: value for name, value in values.items() if name != functions.sample_time}
        if estimate is not None and not estimate.success:
            common.say(f"warning: the estimate has not converged ({estimate.status})", style="yellow")
        if estimate is not None and estimate.undetermined:
            names = ", ".join(estimate.undetermined)
            common.say(f"warning: its data do not determine {names}", style="yellow")
        functions = functions.bake(baked)
    pairs = []
    for text in jacobians:
        of, colon, wrt = text.partition(":")
        if not colon:
            raise InputError(f"--jacobian {text!r}: write function:argument, for instance output:p.")
        pairs.append((of, wrt))
    return functions.with_jacobians(*pairs) if pairs else functions


def _write(
    functions: "FunctionSet",
    targets: tuple[Target, ...],
    folder: Path,
    scalar: ScalarName,
    integrator: IntegratorName | None,
    substeps: int,
) -> None:
    from mechsmith.codegen.tree import c_files, python_files, write_files

    files: dict[str, str] = {}
    if Target.PYTHON in targets:
        files |= python_files(functions)
    if Target.C in targets:
        discretisation = _discretisation(functions, integrator, substeps)
        kind: Scalar = "float" if scalar is ScalarName.FLOAT else "double"
        try:
            files |= c_files(functions, discretisation=discretisation, scalar=kind)
        except OverflowError as error:
            raise InputError(f"--scalar {kind}: {error}") from error
    write_files(folder, files)
    for name in files:
        common.print_wrapped(common.console(), str(folder / name))


def _discretisation(
    functions: "FunctionSet", integrator: IntegratorName | None, substeps: int
) -> "Discretisation | None":
    from mechsmith.systems import IntegratorChoice

    if not functions.states or functions.unknowns:
        if integrator is not None:
            raise InputError(
                f"--integrator {integrator}: {functions.name!r} has no states to integrate, or has unknowns. Leave it out."
            )
        return None
    return IntegratorChoice(kind=(integrator or IntegratorName.RADAU).value, substeps=substeps).discretise(
        functions
    )


def _catalogue(folder: Path, *, check: bool) -> None:
    from mechsmith.codegen.lower import lower
    from mechsmith.codegen.tree import catalogue_files, differences, remove_orphans, write_files
    from mechsmith.symbolic.catalogue import CATALOGUE

    if check and not folder.is_dir():
        raise InputError(f"generate --check: there is no folder {str(folder)!r}. Give it with -o.")
    with common.progress_bar() as bar:
        bar.add_task("generating the catalogue")
        files = catalogue_files([lower(make()) for make in CATALOGUE.values()])
    found = differences(folder, files)
    target = common.console()
    if not check:
        write_files(folder, files)
        orphans = remove_orphans(folder, files)
        changed = sum(difference.kind != "orphan" for difference in found)
        common.print_wrapped(
            target, f"{folder}: {len(files)} files, {changed} changed, {len(orphans)} removed"
        )
        return
    for difference in found:
        common.print_wrapped(target, f"{difference.kind}: {difference.file}", "red")
        if difference.diff:
            common.print_wrapped(target, difference.diff)
    if found:
        common.print_wrapped(target, f"{folder} is out of date. Mend it with: {MEND.format(folder=folder)}")
        raise typer.Exit(common.DOUBTFUL)
    common.print_wrapped(target, f"{folder}: {len(files)} files, all current")
