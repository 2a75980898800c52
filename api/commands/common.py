"""What the commands share: consoles, exit codes, and files written whole or not at all."""

import json
import math
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mechsmith.codegen.files import write_text

DONE, DOUBTFUL, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
# Columns of what is printed to a file or a pipe, where there is no window to fit into.
PIPED_WIDTH = 140


def console(*, error: bool = False) -> Console:
    """Return a console on standard output, or on standard error."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
    return Console(file=stream, width=width, soft_wrap=False, highlight=False, emoji=False)


def say(text: str, *, style: str = "") -> None:
    """Print a line for the user on standard error, where it does not mix with results."""
    print_wrapped(console(error=True), text, style)


def print_wrapped(target: Console, text: str, style: str = "") -> None:
    """Print text as it stands, with no markup read into it and no line broken at a console's width."""
    target.print(escape(text), style=style or None, soft_wrap=True)


def make_table(*columns: str, title: str = "", right: Sequence[str] = ()) -> Table:
    """Return a table with headings; the columns in `right` are for numbers."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        header_style="bold",
        show_edge=False,
        pad_edge=False,
    )
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


@contextmanager
def guarded(*, debug: bool) -> Iterator[None]:
    """Turn errors into one line on standard error and an exit code; with `debug`, show where they come from.

    2 for wrong input, 130 for Ctrl-C, and 1 for what should not happen.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _show_warning
        try:
            yield
        except KeyboardInterrupt:
            say("interrupted", style="red")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # whoever read the output has gone: nothing is left to say, and to nobody
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(DOUBTFUL) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):
                raise
            if debug:
                say(traceback.format_exc())
            _explain(error)
            raise typer.Exit(WRONG_INPUT if is_users(error) else DOUBTFUL) from None


def is_users(error: BaseException) -> bool:
    """Return whether an error is about what the user gave: mechsmith's own errors, and files that can't be used."""
    ours = type(error).__module__.partition(".")[0] == "mechsmith" and isinstance(error, ValueError)
    return ours or isinstance(error, OSError)


def _explain(error: Exception) -> None:
    if is_users(error):
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}."
        say(f"error: {text}", style="red")
    elif type(error) is ArithmeticError:
        # raised where a computation that everything else rests on came to nothing
        say(f"error: {error}", style="red")
    else:
        name = type(error).__name__
        say(
            f"internal error: {name}: {error}. `mechsmith --debug ...` shows where; please report it.",
            style="red",
        )


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"warning: {message}", style="yellow")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show what is going on while it goes on, on standard error; nothing where that is no terminal."""
    target = console(error=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=target,
        transient=True,
        redirect_stdout=False,  # results on standard output stay there, even where that is a file
        disable=not target.is_terminal,
    )
    with bar:
        yield bar


def json_text(data: Any) -> str:
    """Return JSON for people and programs; what is not finite is null."""
    return json.dumps(finite(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """Return plain data with null in the place of infinity and NaN, which JSON lacks."""
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def emit_json(data: Any, target: str) -> None:
    """Write JSON to a file, or to standard output where the target is ``-``."""
    if target == "-":
        sys.stdout.write(json_text(data))
        sys.stdout.flush()
    else:
        write_text(Path(target), json_text(data))
