"""The report of a study: one HTML file that needs nothing else."""

import hashlib
import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy

from mechsmith import __version__
from mechsmith.codegen.files import write_text
from mechsmith.identification.estimate import Estimate
from mechsmith.identification.problem import Problem
from mechsmith.identification.record import Record
from mechsmith.identification.residuals import EquationError, OutputError
from mechsmith.identification.validate import validate
from mechsmith.report import plots
from mechsmith.report.equations import mathml_equations
from mechsmith.report.tables import estimate_lines, parameter_rows, percent
from mechsmith.study.run import StudyResult, Trial
from mechsmith.symbolic.model import ROLES, Model
from mechsmith.symbolic.verify import Row, verify, verify_table

PACKAGES = ("casadi", "numpy", "scipy", "sympy")
ACCELERATIONS = ("m/s^2", "rad/s^2", "m/s**2", "rad/s**2")
VELOCITIES = ("m/s", "rad/s")


def write_report(result: StudyResult, path: Path, *, verdicts: Sequence[Row] | None = None) -> None:
    """Write the report of a study, whole or not at all; see `report_html`."""
    write_text(path, report_html(result, verdicts=verdicts))


def report_html(result: StudyResult, *, verdicts: Sequence[Row] | None = None) -> str:
    """Return the report of a study as HTML: a single file with its plots and equations in it.

    Parameters
    ----------
    result : StudyResult
        What was found.
    verdicts : sequence of Row, optional
        On the model's identities; they are verified here when not given.
    """
    rows = verify_table(verify(result.model)) if verdicts is None else tuple(verdicts)
    template = _environment().get_template("report.html.j2")
    return template.render(
        title=result.study.title,
        percent=percent,
        version=__version__,
        result=result,
        estimate=result.estimate,
        doubts=result.doubts,
        parameters=parameter_rows(result.estimate),
        lines=estimate_lines(result.estimate),
        correlations=_correlations(result.estimate),
        stages=_stages(result),
        history=_history(result),
        fits=[_fit_section(fit) for fit in record_fits(result)],
        velocity=_velocity_plots(result),
        trials=[_trial_section(result, trial) for trial in result.trials],
        sections=mathml_equations(result.model),
        quantities=_quantities(result.model),
        verdicts=rows,
        expected=sum(row.as_expected for row in rows),
        files=_files(result),
        versions=_versions(),
    )


def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("mechsmith", "templates")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)


def record_fits(result: StudyResult) -> list[plots.Fit]:
    """Return measurement and prediction of every output of every record, as they were compared."""
    problem, found = result.problem, []
    for k, (source, record) in enumerate(zip(result.study.records, problem.records, strict=True)):
        predicted, _ = problem.predicted(result.estimate.values, k)
        time = _compared_time(problem, record)
        for i, name in enumerate(problem.comparison.names):
            unit = problem.comparison.units[i]
            found.append(
                plots.Fit(source.name, name, unit, time, problem.measurements[k][:, i], predicted[:, i])
            )
    return found


def _compared_time(problem: Problem, record: Record) -> Any:
    decimation = problem.residual.decimation
    return record.time if decimation is None else record.time[decimation.rows(len(record))]


def _fit_section(fit: plots.Fit) -> dict[str, str]:
    if not numpy.isfinite(fit.predicted).all():
        return {"record": fit.record, "output": fit.output, "plot": "", "residual": ""}
    return {
        "record": fit.record,
        "output": fit.output,
        "plot": plots.fit_plot(fit),
        "residual": plots.residual_plot(fit),
    }


def _trial_section(result: StudyResult, trial: Trial) -> dict[str, Any]:
    fits = []
    comparison = result.problem.comparison
    if trial.validation.success:
        decimated = result.problem.decimated
        time = _compared_time(result.problem, trial.record)
        for name, column in zip(comparison.names, comparison.columns, strict=True):
            both = numpy.column_stack([trial.record[column], trial.validation.predicted[name]])
            measured, predicted = decimated(both).T
            unit = trial.validation[name].unit
            fits.append(plots.fit_plot(plots.Fit(trial.name, name, unit, time, measured, predicted)))
    return {"name": trial.name, "validation": trial.validation, "fits": fits}


def _velocity_plots(result: StudyResult) -> list[dict[str, str]]:
    """Return outputs over velocity, less what accelerations contribute, where velocity is an input of the model."""
    problem = result.problem
    functions, record = problem.functions, problem.records[0]
    inputs = dict(zip(functions.labels("u"), functions.units("u"), strict=True))
    velocities = [n for n, unit in inputs.items() if unit in VELOCITIES and n in record and "velocity" in n]
    if not velocities:
        return []
    name = velocities[0]
    resting = record
    accelerations = [n for n, unit in inputs.items() if unit in ACCELERATIONS]
    for one in accelerations:
        zeros = numpy.zeros(len(record))
        resting = resting.with_column(one, zeros, record.units[one], provenance=f"{one}: 0", overwrite=True)
    predicted, friction = (_predicted(result, one) for one in (record, resting))
    found = []
    for output, column in zip(problem.comparison.names, problem.comparison.columns, strict=True):
        if output not in predicted or not numpy.isfinite(friction[output]).all():
            continue
        unit = functions.units("y")[functions.labels("y").index(output)]
        measured = record[column] - predicted[output] + friction[output]
        label = f"{output} without acceleration" if accelerations else output
        plot = plots.velocity_plot(
            (name, inputs[name], record[name]), (label, unit), measured, friction[output]
        )
        found.append({"output": output, "plot": plot, "less": ", ".join(accelerations)})
    return found


def _predicted(result: StudyResult, record: Record) -> Record:
    """Return the outputs at every sample, not decimated."""
    problem = result.problem
    kind = OutputError if problem.residual.simulates else EquationError
    residual = kind(outputs=problem.residual.outputs, noise=problem.residual.noise)
    initial = {
        name.partition("[")[0]: value
        for name, value in result.estimate.parameters.items()
        if name.startswith(("x0:", "d0:")) and (name.endswith("[0]") or "[" not in name)
    }
    return validate(
        problem.system, record, result.estimate, residual, initial=initial, delayed=problem.delayed
    ).predicted


def _correlations(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the rows of the correlation table, with a colour for each cell."""
    rows = []
    for name, values in zip(estimate.names, estimate.correlations, strict=True):
        cells = []
        for value in values:
            finite = bool(numpy.isfinite(value))
            hue = "29, 78, 216" if value >= 0.0 else "180, 83, 9"
            cells.append(
                {
                    "text": f"{value:.2f}" if finite else "–",
                    "colour": f"rgba({hue}, {0.75 * abs(value) ** 2:.3f})" if finite else "transparent",
                    "strong": finite and abs(value) > 0.75,
                }
            )
        rows.append({"name": name, "cells": cells})
    return rows


def _stages(result: StudyResult) -> list[dict[str, Any]]:
    return [
        {"estimate": stage.estimate, "seconds": f"{stage.seconds:.1f}", "number": i + 1}
        for i, stage in enumerate(result.stages)
    ]


def _history(result: StudyResult) -> str:
    chosen = []
    for i, stage in enumerate(result.stages):
        lines = [line for line in stage.estimate.history if numpy.isfinite(line.norm) and line.norm > 0.0]
        if len(lines) > 2:
            chosen.append((f"{i + 1} {stage.estimate.method.partition('(')[0]}", lines))
    return plots.history_plot(chosen) if chosen else ""


def _quantities(model: Model) -> list[dict[str, str]]:
    rows = []
    for role in (*ROLES, "definitions", "outputs"):
        for quantity in getattr(model, role):
            unit = quantity.unit if isinstance(quantity.unit, str) else ", ".join(quantity.unit)
            bounds = [f"{float(b):.6g}".replace("inf", "∞") for b in (quantity.lower, quantity.upper)]
            rows.append(
                {
                    "role": role.replace("_", " ").removesuffix("s"),
                    "name": quantity.name,
                    "unit": unit or "1",
                    "bounds": "" if bounds == ["-∞", "∞"] else f"{bounds[0]} … {bounds[1]}",
                    "description": quantity.description,
                }
            )
    return rows


def _files(result: StudyResult) -> list[dict[str, str]]:
    return [
        {"name": name, "file": path.name, "digest": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in result.files.items()
    ]


def _versions() -> str:
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return f"mechsmith {__version__}, Python {platform.python_version()}, {packages}"
