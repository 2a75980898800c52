"""Estimates and validations as tables for a terminal, and as plain data for JSON."""

import math
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mechsmith.identification.estimate import Estimate
from mechsmith.identification.validate import Validation

# Columns of a terminal that take the whole table of parameters.
WIDE = 125


def digits(value: float, count: int = 7) -> str:
    """Return a number with so many significant digits, infinity as ∞."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{count}g}"


def percent(value: float) -> str:
    """Return a percentage with four decimals, or with three digits where those would be zeros."""
    return f"{value:.4f}" if value >= 0.01 else f"{value:.3g}"


def parameter_rows(estimate: Estimate) -> list[dict[str, str]]:
    """Return what is told of each free parameter, as text."""
    rows = []
    for i, name in enumerate(estimate.names):
        value, deviation = float(estimate.values[i]), float(estimate.deviations[i])
        low, high = estimate.interval(name)
        rows.append(
            {
                "name": name,
                "value": digits(value),
                "unit": estimate.units[i] or "1",
                "white": f"{float(estimate.deviations_white[i]):#.5g}",
                "corrected": f"{float(estimate.deviations_corrected[i]):#.5g}",
                "relative": digits(100.0 * deviation / abs(value), 3) if value else "",
                "low": digits(low, 6),
                "high": digits(high, 6),
                "note": _note(estimate, name),
            }
        )
    return rows


def _note(estimate: Estimate, name: str) -> str:
    notes = [
        text
        for text, names in (
            ("not determined by these data", estimate.undetermined),
            ("at a bound", estimate.at_bound),
        )
        if name in names
    ]
    return ", ".join(notes)


def estimate_table(estimate: Estimate, *, width: int = 140) -> RenderableType:
    """Return an estimate for a terminal of so many columns; below `WIDE` without white and relative ones."""
    columns = {
        "parameter": "name",
        "value": "value",
        "sd, white": "white",
        "sd, corrected": "corrected",
        "sd %": "relative",
        f"{100 * estimate.confidence:g} % interval": "interval",
        "unit": "unit",
    }
    if width < WIDE:
        dropped = ("white", "relative")
        columns = {
            "sd" if key == "corrected" else heading: key
            for heading, key in columns.items()
            if key not in dropped
        }
    rows = parameter_rows(estimate)
    if any(row["note"] for row in rows):
        columns["note"] = "note"
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for heading, key in columns.items():
        left = key in ("name", "unit", "note")
        table.add_column(heading, justify="left" if left else "right", no_wrap=key != "note")
    for row in rows:
        row["interval"] = f"{row['low']} … {row['high']}"
        table.add_row(*(escape(row[key]) for key in columns.values()))
    verdict = "[green]converged[/]" if estimate.success else "[bold red]NOT CONVERGED[/]"
    head = f"{escape(estimate.model)}: {verdict} ({escape(estimate.status)})"
    lines = (Text(line) for line in estimate_lines(estimate))
    return Group(head, Text(f"  {estimate.method}"), "", table, "", *lines)


def estimate_lines(estimate: Estimate) -> list[str]:
    """Return what is told of an estimate besides its parameters."""
    lines = [
        f"relative error {percent(estimate.relative_error)} %, R² {estimate.determination:.6f}, residual norm "
        f"{estimate.residual_norm:.7g}, its deviation {estimate.residual_deviation:.6g} over {estimate.samples} samples "
        f"({estimate.degrees_of_freedom}), condition {_condition(estimate.condition)}"
    ]
    if estimate.message:
        lines.append(estimate.message)
    if not estimate.white:
        lines.append(
            f"residuals are not white: deviations and intervals are corrected for their correlation over "
            f"{estimate.correction_lags} samples"
        )
    for direction in estimate.null_directions:
        lines.append("not seen by the data: " + " ".join(f"{c:+.4g} {n}" for n, c in direction.items()))
    if estimate.at_bound:
        lines.append("at a bound: " + ", ".join(estimate.at_bound))
    fixed = {name: value for name, value in estimate.fixed.items() if not name.startswith("d0:")}
    if fixed:
        lines.append("not free: " + ", ".join(f"{name} = {value:.7g}" for name, value in fixed.items()))
    return lines


def _condition(value: float) -> str:
    return f"{value:.4f}" if value < 1e5 else f"{value:.4g}"


def validation_table(validations: Sequence[tuple[str, Validation]]) -> Table:
    """Return the errors of predictions for the terminal."""
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        title="validation",
        title_justify="left",
    )
    table.add_column("record")
    table.add_column("output")
    for heading in ("relative error %", "WAPE %", "largest error %", "RMS"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    for name, validation in validations:
        for fit in validation.outputs:
            figures = map(percent, (fit.relative_error, fit.wape, fit.max_percentage_error))
            rms = f"{fit.root_mean_square:.6g}"
            table.add_row(escape(name), fit.output, *figures, rms, fit.unit or "1")
    return table


def validation_plain(name: str, validation: Validation) -> dict[str, Any]:
    """Return a validation as plain data."""
    return {
        "record": name,
        "model": validation.model,
        "success": validation.success,
        "status": validation.status,
        "relative_error_percent": validation.relative_error,
        "outputs": {
            fit.output: {
                "unit": fit.unit,
                "relative_error_percent": fit.relative_error,
                "wape_percent": fit.wape,
                "largest_error_percent": fit.max_percentage_error,
                "root_mean_square": fit.root_mean_square,
            }
            for fit in validation.outputs
        },
    }


def estimate_plain(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as plain data; an interval that is open to one side has an infinity there."""
    parameters = {}
    for i, name in enumerate(estimate.names):
        low, high = estimate.interval(name)
        parameters[name] = {
            "value": float(estimate.values[i]),
            "unit": estimate.units[i],
            "deviation": float(estimate.deviations[i]),
            "deviation_white": float(estimate.deviations_white[i]),
            "deviation_corrected": float(estimate.deviations_corrected[i]),
            "interval": [low, high],
            "undetermined": name in estimate.undetermined,
            "at_bound": name in estimate.at_bound,
        }
    return {
        "model": estimate.model,
        "success": estimate.success,
        "status": estimate.status,
        "message": estimate.message,
        "method": estimate.method,
        "parameters": parameters,
        "not_free": estimate.fixed,
        "confidence": estimate.confidence,
        "correlations": estimate.correlations.tolist(),
        "undetermined": list(estimate.undetermined),
        "at_bound": list(estimate.at_bound),
        "null_directions": [dict(direction) for direction in estimate.null_directions],
        "relative_error_percent": estimate.relative_error,
        "determination": estimate.determination,
        "residual_norm": estimate.residual_norm,
        "residual_deviation": estimate.residual_deviation,
        "degrees_of_freedom": estimate.degrees_of_freedom,
        "condition": estimate.condition,
        "samples": estimate.samples,
        "white": estimate.white,
        "evaluations": estimate.evaluations,
        "records": list(estimate.records),
        "provenance": list(estimate.provenance),
    }
