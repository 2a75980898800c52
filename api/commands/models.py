"""``models``, ``show`` and ``verify``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from mechsmith.commands import common

if TYPE_CHECKING:
    from mechsmith.symbolic.model import Model
    from mechsmith.symbolic.quantity import Quantity
    from mechsmith.symbolic.verify import Row, Verdict

ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="Name in the catalogue, or path/to/file.py:function.")
]
STATUS_STYLES = {"proved": "green", "supported": "cyan", "refuted": "magenta"}


def list_models(
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object of names and descriptions.")
    ] = False,
) -> None:
    """List the models of the catalogue."""
    from mechsmith.symbolic.catalogue import CATALOGUE

    made = {name: make() for name, make in CATALOGUE.items()}
    if json:
        common.emit_json({name: model.description for name, model in made.items()}, "-")
        return
    table = common.make_table(
        "model", "states", "inputs", "outputs", "parameters", "identities", "what it is"
    )
    for name, model in made.items():
        counts = (len(model.states) + len(model.discrete_states), len(model.inputs), len(model.outputs))
        sizes = (*counts, len(model.parameters), len(model.identities))
        table.add_row(name, *map(str, sizes), model.description)
    common.console().print(table)


def show(
    model: ModelName,
    latex: Annotated[bool, typer.Option("--latex", help="Print the equations in LaTeX.")] = False,
) -> None:
    """Show all names of a model with units and bounds, its equations and its references."""
    from mechsmith.report.equations import latex_equations, unicode_equations
    from mechsmith.systems import load_model

    found = load_model(model)
    target = common.console()
    common.print_wrapped(
        target, f"{found.name}: {found.description}" if found.description else found.name, "bold"
    )
    target.print()
    target.print(_quantities(found))
    for name, quantity in found.integrals.items():
        common.print_wrapped(
            target, f"the integral of {name} may be sampled as {quantity.name} ({quantity.unit})"
        )
    if found.sample_time:
        common.print_wrapped(target, f"discrete states are updated every {found.sample_time}")
    target.print()
    common.print_wrapped(target, latex_equations(found) if latex else unicode_equations(found))
    if found.identities:
        target.print()
        common.print_wrapped(
            target, f"{len(found.identities)} identities; `mechsmith verify {model}` tells whether they hold"
        )
    if found.references:
        target.print()
        common.print_wrapped(target, "References", "bold")
        for reference in found.references:
            common.print_wrapped(target, f"  {reference}")


def _quantities(model: "Model") -> object:
    table = common.make_table(
        "role",
        "name",
        "unit",
        "nominal",
        "lower",
        "upper",
        "description",
        right=("nominal", "lower", "upper"),
    )
    roles = (*("states", "discrete_states", "unknowns", "inputs", "parameters", "definitions", "outputs"),)
    for role in roles:
        quantities: Sequence[Quantity] = tuple(getattr(model, role))
        for quantity in quantities:
            name = quantity.name + (f"[{', '.join(map(str, quantity.shape))}]" if quantity.shape else "")
            table.add_row(
                role.replace("_", " ").removesuffix("s"), name, *_numbers(quantity), quantity.description
            )
    return table


def _numbers(quantity: "Quantity") -> tuple[str, str, str, str]:
    unit = quantity.unit if isinstance(quantity.unit, str) else ", ".join(quantity.unit)
    nominal = "" if quantity.nominal is None else f"{quantity.nominal:.9g}"
    lower, upper = (f"{float(bound):.6g}".replace("inf", "∞") for bound in (quantity.lower, quantity.upper))
    return unit or "1", nominal, lower, upper


def verify(
    model: ModelName,
    seed: Annotated[int, typer.Option(help="Of the random points.", min=0)] = 0,
    points: Annotated[int, typer.Option(help="Random points that must agree.", min=1)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Verify the identities of a model: proved, supported by numbers, or refuted by a counter-example.

    Exit code 0 when all verdicts are as expected (a misprint is expected to be refuted), 1 otherwise.
    """
    from mechsmith.symbolic.verify import verify_identity, verify_table
    from mechsmith.systems import load_model

    found = load_model(model)
    verdicts = []
    with common.progress_bar() as bar:
        task = bar.add_task("")
        for identity in found.identities:
            bar.update(task, description=f"verifying {identity.name}")
            verdicts.append(verify_identity(found, identity, seed=seed, points=points))
    rows = verify_table(verdicts)
    if json:
        common.emit_json({"model": found.name, "verdicts": [_plain(row) for row in rows]}, "-")
    elif not rows:
        common.console().print(f"{found.name} has no identities: there is nothing to verify.")
    else:
        _print_verdicts(found.name, rows, verdicts)
    if not all(row.as_expected for row in rows):
        raise typer.Exit(common.DOUBTFUL)


def _plain(row: "Row") -> dict[str, object]:
    return {field: getattr(row, field) for field in row._fields if field != "seconds"}


def _print_verdicts(name: str, rows: "Sequence[Row]", verdicts: "Sequence[Verdict]") -> None:
    target = common.console()
    table = common.make_table("identity", "kind", "verdict", "expected", "", "by", "reason")
    for row, verdict in zip(rows, verdicts, strict=True):
        style = STATUS_STYLES[row.status]
        mark = "[green]✓[/]" if row.as_expected else "[red]✗[/]"
        detail = escape(verdict.detail)
        verdict_text = f"[{style}]{row.status}[/]"
        table.add_row(escape(row.name), row.kind, verdict_text, row.expected, mark, row.method, detail)
    target.print(table)
    refuted = [verdict for verdict in verdicts if verdict.counterexample is not None]
    if refuted:
        target.print()
        common.print_wrapped(target, "Counter-examples", "bold")
    for verdict in refuted:
        common.print_wrapped(target, f"  {verdict.identity.name}: {verdict.counterexample}")
    target.print()
    good = [row.name for row in rows if row.as_expected]
    bad = [row.name for row in rows if not row.as_expected]
    common.print_wrapped(target, f"{name}: {len(good)} of {len(rows)} verdicts as expected.")
    if bad:
        holding = [row.name for row in rows if row.as_expected and row.status != "refuted"]
        common.print_wrapped(target, f"still hold: {', '.join(holding) or 'none'}")
        common.print_wrapped(target, f"not as expected: {', '.join(bad)}", "red")
