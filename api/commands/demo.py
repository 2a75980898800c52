"""``demo``: the whole way, on a log that it simulates."""

from pathlib import Path
from typing import Annotated

import typer

from mechsmith.commands import common


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for everything it writes.")] = Path(
        "mechsmith-demo"
    ),
    seed: Annotated[int, typer.Option(help="Of the noise and of the search.", min=0)] = 0,
) -> None:
    """Go the whole way in under a minute: model, verification, code, log, identification, validation, report."""
    from mechsmith.demo import run_demo, truth_rows
    from mechsmith.report.tables import estimate_table, validation_table

    target = common.console()
    with common.progress_bar() as bar:
        task = bar.add_task("demo")

        def tell(text: str) -> None:
            bar.stop()
            common.print_wrapped(target, text)
            bar.start()

        done = run_demo(
            output,
            tell=tell,
            progress=lambda text: bar.update(task, description=text),
            seed=seed,
        )
    result = done.result
    target.print()
    target.print(estimate_table(result.estimate, width=target.width))
    target.print()
    headings = ("parameter", "true", "found", "sd", "in the interval")
    table = common.make_table(*headings, right=("true", "found", "sd"))
    for name, true, found, deviation, inside in truth_rows(result):
        table.add_row(name, f"{true:g}", f"{found:.5g}", f"{deviation:.2g}", "yes" if inside else "no")
    target.print(table)
    target.print()
    target.print(validation_table([(trial.name, trial.validation) for trial in result.trials]))
    target.print()
    common.print_wrapped(target, f"Run it again: mechsmith identify {done.folder / 'study.toml'}")
    common.print_wrapped(target, f"Open the report: {done.report}", "bold")
    for doubt in result.doubts:
        common.say(f"not trustworthy: {doubt}", style="bold red")
    if result.doubts or not all(row.as_expected for row in done.verdicts):
        raise typer.Exit(common.DOUBTFUL)
