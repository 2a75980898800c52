"""The command line: ``mechsmith``.

Exit codes: 0 done; 1 the numerical result is not to be trusted (not converged, nothing determined, a simulation
failed, a verdict other than expected, generated code out of date); 2 the input is wrong; 130 interrupted.
"""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mechsmith import __version__
from mechsmith.commands import common, demo, evaluate, generate, identify, models, plot, simulate, validate

EPILOG = (
    "Exit codes: 0 done, 1 the numerical result is not to be trusted, 2 the input is wrong, 130 interrupted. "
    "A model is a name of the catalogue, or path/to/file.py:function for one of your own."
)


class GuardedGroup(TyperGroup):
    """The commands, with every error turned into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with common.guarded(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


app = typer.Typer(
    name="mechsmith",
    cls=GuardedGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mechsmith {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Mechanics in SymPy, verified, generated to CasADi and C, and identified from data."""


app.command("models")(models.list_models)
app.command("show")(models.show)
app.command("verify")(models.verify)
app.command("generate")(generate.generate)
app.command("evaluate")(evaluate.evaluate)
app.command("simulate")(simulate.simulate)
app.command("identify")(identify.identify)
app.command("validate")(validate.validate)
app.command("demo")(demo.demo)
app.add_typer(plot.app)


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    app()
