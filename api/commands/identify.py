"""``identify``: a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechsmith.codegen.files import write_text
from mechsmith.commands import common

if TYPE_CHECKING:
    from mechsmith.identification.method import Progress
    from mechsmith.study.run import StudyResult


def identify(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY.toml", help="What is identified, see docs/study.md.")
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="[NAME=]PATH",
            help="File of a record, or a folder with the files; in place of the study's. May be repeated.",
        ),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is standard output."),
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a report.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="ESTIMATE.toml", help="Write the estimate (.toml, .json)."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="In place of the study's.", min=0)] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also when the data do not determine a parameter.")
    ] = False,
) -> None:
    """Identify what a study says, validate it, and write estimate, report and JSON.

    Exit code 1 when the last method did not converge, the data determine none of the parameters, or the simulation of
    a validation failed: files are written all the same, and say so. Interrupted (Ctrl-C), what the methods before have
    found is kept, and the exit code is 130.
    """
    from mechsmith.study.run import run_study
    from mechsmith.study.schema import load_study

    asked = load_study(study)
    paths = {
        "estimate": output or asked.outputs.estimate,
        "report": report or asked.outputs.report,
        "json": Path(json) if json not in (None, "-") else (None if json == "-" else asked.outputs.json),
    }
    _check_outputs(paths)
    with common.progress_bar() as bar:
        task = bar.add_task(f"study {asked.title}")

        def tell(text: str, progress: "Progress | None") -> None:
            detail = "" if progress is None else f": {progress.evaluation}, residual norm {progress.norm:.6g}"
            bar.update(task, description=text + detail)

        result = run_study(asked, data=data or [], seed=seed, tell=tell)
        written = _write(result, paths)
    if json == "-":
        common.emit_json(result_plain(result), "-")
    else:
        _print(result)
        for path in written:
            common.print_wrapped(common.console(), f"written: {path}")
    _leave(result, strict=strict)


def _check_outputs(paths: dict[str, Path | None]) -> None:
    """Raise before the work begins when what it finds could not be written."""
    from mechsmith.values import InputError

    allowed = {"estimate": (".toml", ".json"), "report": (".html",), "json": (".json",)}
    for what, path in paths.items():
        if path is None:
            continue
        if path.suffix not in allowed[what]:
            raise InputError(f"{what} {str(path)!r}: the suffix must be {' or '.join(allowed[what])}.")
        if path.is_dir():
            raise InputError(f"{what} {str(path)!r} is a folder. Give a file.")


def _write(result: "StudyResult", paths: dict[str, Path | None]) -> list[Path]:
    from mechsmith.report.document import write_report

    written = []
    if (path := paths["estimate"]) is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        result.estimate.save(path)
        written.append(path)
    if (path := paths["report"]) is not None:
        write_report(result, path)
        written.append(path)
    if (path := paths["json"]) is not None:
        write_text(path, common.json_text(result_plain(result)))
        written.append(path)
    return written


def result_plain(result: "StudyResult") -> dict[str, Any]:
    """Return what a study found as plain data."""
    from mechsmith import __version__
    from mechsmith.report.tables import estimate_plain, validation_plain

    return {
        "study": result.study.title,
        "mechsmith": __version__,
        "trustworthy": not result.doubts,
        "doubts": list(result.doubts),
        "simulation": result.simulation,
        "files": {name: path.name for name, path in result.files.items()},
        "estimate": estimate_plain(result.estimate),
        "methods": [
            {
                "method": stage.estimate.method,
                "success": stage.estimate.success,
                "status": stage.estimate.status,
                "residual_norm": stage.estimate.residual_norm,
                "relative_error_percent": stage.estimate.relative_error,
                "parameters": stage.estimate.free,
                "evaluations": stage.estimate.evaluations,
            }
            for stage in result.stages
        ],
        "validation": [validation_plain(trial.name, trial.validation) for trial in result.trials],
    }


def _print(result: "StudyResult") -> None:
    from mechsmith.report.tables import estimate_table, percent, validation_table

    target = common.console()
    for stage in result.stages[:-1]:
        estimate = stage.estimate
        state = "converged" if estimate.success else "not converged"
        common.print_wrapped(
            target,
            f"{estimate.method}: {state} ({estimate.status}), relative error {percent(estimate.relative_error)} %, "
            f"{stage.seconds:.1f} s",
        )
    target.print(estimate_table(result.estimate, width=target.width))
    if result.trials:
        target.print()
        target.print(validation_table([(trial.name, trial.validation) for trial in result.trials]))


def _leave(result: "StudyResult", *, strict: bool) -> None:
    for doubt in result.doubts:
        common.say(f"not trustworthy: {doubt}", style="bold red")
    undetermined = result.estimate.undetermined
    if undetermined:
        common.say(f"warning: the data do not determine {', '.join(undetermined)}", style="yellow")
    if result.interrupted:
        raise typer.Exit(common.INTERRUPTED)
    if result.doubts or (strict and undetermined):
        raise typer.Exit(common.DOUBTFUL)
