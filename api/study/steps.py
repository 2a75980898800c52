"""Preprocessing steps as a study names them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

import numpy

from mechsmith.identification import preprocessing
from mechsmith.identification.record import Record
from mechsmith.identification.units import derivative_unit
from mechsmith.study.table import StudyError, Table
from mechsmith.values import number

KEYS: Mapping[str, tuple[str, ...]] = {
    "butterworth": ("columns", "order", "cutoff", "edge_padding"),
    "differentiate": ("column", "name", "unit"),
    "drop": ("first", "last"),
    "slice": ("start", "stop"),
    "decimate": ("factor", "columns", "order", "ripple_db", "unit_gain"),
    "resample": ("period", "method", "longest_gap"),
    "rename": ("names",),
    "copy": ("column", "name"),
    "constant": ("name", "value", "unit"),
}
EDGES = ("odd", "even", "constant")


@dataclass(frozen=True)
class Step:
    """One preprocessing step.

    Parameters
    ----------
    kind : str
        A key of `KEYS`.
    options : Table
        Its options, whose names are checked.
    records : tuple of str
        Names of the records that it is for; empty for all.
    """

    kind: str
    options: Table
    records: tuple[str, ...]


def make_step(table: Table) -> Step:
    """Return the step of a ``[[preprocessing]]`` table; names of keys are checked.

    Raises
    ------
    StudyError
        If the kind or a key is unknown.
    """
    kind = table.choice("kind", tuple(KEYS))
    table.only("kind", "records", *KEYS[kind])
    return Step(kind, table, table.texts("records"))


def apply_steps(record: Record, name: str, steps: tuple[Step, ...], units: Mapping[str, str]) -> Record:
    """Return the record of that name after all steps that are for it.

    Parameters
    ----------
    record : Record
        In SI.
    name : str
        What the study calls it.
    steps : tuple of Step
        In order.
    units : mapping of name to unit
        The model's quantities, whose units new columns get.

    Raises
    ------
    StudyError, RecordError
        If an option is missing or of the wrong kind, or the step does not suit the record.
    """
    for step in steps:
        if not step.records or name in step.records:
            record = _STEPS[step.kind](record, step.options, units)
    return record


def _butterworth(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    if "cutoff" not in options:
        raise StudyError(
            f"{options.where}: 'cutoff' is missing. Give a frequency in Hz, or text such as '100 Hz'."
        )
    edge = options.choice("edge_padding", EDGES, "odd")
    return preprocessing.butterworth_zero_phase(
        record,
        options.texts("columns"),
        order=options.integer("order"),
        cutoff_hz=number(options.values["cutoff"], "Hz", f"{options.where}: cutoff"),
        edge_padding=cast(Literal["odd", "even", "constant"], edge),
    )


def _differentiate(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    column, name = options.text("column"), options.text("name")
    unit = options.text("unit") if "unit" in options else units.get(name)
    if column in record and unit is None:
        unit = derivative_unit(record.units[column])
    return preprocessing.differentiate(record, column, name, unit)


def _drop(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    return preprocessing.drop(record, first=options.integer("first", 0), last=options.integer("last", 0))


def _slice(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    ends = (options.integer(key) if key in options else None for key in ("start", "stop"))
    return record.slice(*ends)


def _decimate(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    return preprocessing.decimate(
        record,
        options.integer("factor"),
        columns=options.texts("columns") or None,
        order=options.integer("order", 8),
        ripple_db=options.number("ripple_db", 0.05),
        unit_gain=options.truth("unit_gain", True),
    )


def _resample(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    method = options.choice("method", ("linear", "cubic"), "linear")
    return preprocessing.resample(
        record,
        number(options.values.get("period"), "s", f"{options.where}: period"),
        method=cast(Literal["linear", "cubic"], method),
        longest_gap=options.number("longest_gap") if "longest_gap" in options else None,
    )


def _rename(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    names = options.table("names")
    return record.rename({old: names.text(old) for old in names.values})


def _copy(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    return copied(record, options.text("column"), options.text("name"))


def copied(record: Record, column: str, name: str) -> Record:
    """Return the record with a column twice, the second time under another name."""
    return record.with_column(
        name, record[column], record.units[column], provenance=f"{name}: a copy of {column}"
    )


def _constant(record: Record, options: Table, units: Mapping[str, str]) -> Record:
    name = options.text("name")
    unit = options.text("unit") if "unit" in options else units.get(name)
    if "value" not in options or unit is None:
        raise StudyError(f"{options.where}: give value, and unit where {name!r} is no quantity of the model.")
    return constant(record, name, options.values["value"], unit, options.where)


def constant(record: Record, name: str, value: object, unit: str, where: str) -> Record:
    """Return the record with a column that does not change, in the SI unit `unit`."""
    amount = number(value, unit, f"{where}: {name}")
    return record.with_column(
        name, numpy.full(len(record), amount), unit, provenance=f"{name}: {amount!r} {unit or '1'} throughout"
    )


_STEPS: Mapping[str, Callable[[Record, Table, Mapping[str, str]], Record]] = {
    "butterworth": _butterworth,
    "differentiate": _differentiate,
    "drop": _drop,
    "slice": _slice,
    "decimate": _decimate,
    "resample": _resample,
    "rename": _rename,
    "copy": _copy,
    "constant": _constant,
}
