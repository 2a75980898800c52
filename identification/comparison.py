"""Which outputs are compared with which columns, and how they are weighted."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.layout import ProblemError
from mechsmith.identification.record import Record

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """Which outputs are compared with which columns.

    Parameters
    ----------
    names : tuple of str
        Labels of the outputs.
    rows : array of int
        Their places among all outputs.
    columns, units : tuple of str
        Columns of the records, and units.
    noise : array
        Standard deviations; 1 where none is given.
    noise_given : bool
        Whether they were given.
    """

    names: tuple[str, ...]
    rows: NDArray[np.intp]
    columns: tuple[str, ...]
    units: tuple[str, ...]
    noise: Array
    noise_given: bool


def compare(
    functions: FunctionSet,
    chosen: Mapping[str, str] | None,
    noise: Mapping[str, float],
    records: tuple[Record, ...],
) -> Comparison:
    """Return which outputs are compared with which columns.

    Raises
    ------
    ProblemError
        If an output or column is missing, a noise is not positive, or units differ and no noise is given.
    """
    labels, all_units = functions.labels("y"), functions.units("y")
    if chosen is None:
        chosen = {name: name for name in labels if all(name in record for record in records)}
        if not chosen:
            raise ProblemError(
                f"problem: no output of {functions.name!r} ({', '.join(labels) or 'none'}) is a column of every record "
                f"({', '.join(records[0].columns)}). Give outputs={{output: column}} to the residual."
            )
    for output, column in chosen.items():
        if output not in labels:
            raise ProblemError(
                f"problem: residual: no output {output!r}; {functions.name!r} has {', '.join(labels) or 'none'}."
            )
        for record in records:
            record_columns(record, (column,), f"output {output!r}")
    names = tuple(chosen)
    rows = np.array([labels.index(name) for name in names], dtype=np.intp)
    units = tuple(all_units[row] for row in rows)
    return Comparison(names, rows, tuple(chosen.values()), units, *_noise(noise, names, units))


def _noise(noise: Mapping[str, float], names: tuple[str, ...], units: tuple[str, ...]) -> tuple[Array, bool]:
    for name, value in noise.items():
        if name not in names:
            raise ProblemError(
                f"problem: residual: noise names {name!r}; compared outputs are {', '.join(names)}."
            )
        if not (math.isfinite(value) and value > 0.0):
            raise ProblemError(
                f"problem: residual: noise[{name!r}] is {value}; it must be positive and finite."
            )
    missing = [name for name in names if name not in noise]
    if missing and (noise or len(set(units)) > 1):
        raise ProblemError(
            f"problem: residual: no noise for {', '.join(missing)}. Outputs of different units can only be summed when each "
            "has a standard deviation: give noise={output: value} for all."
        )
    return np.array([float(noise.get(name, 1.0)) for name in names]), not missing


def record_columns(record: Record, names: tuple[str, ...], who: str) -> Array:
    """Return columns as (n, len(names))."""
    missing = [name for name in names if name not in record]
    if missing:
        raise ProblemError(
            f"problem: record {record.source!r} has no column {', '.join(map(repr, missing))}, which {who} needs. It has "
            f"{', '.join(record.columns)}. Rename a column (Record.rename) or compute it."
        )
    return np.column_stack([record[name] for name in names]) if names else np.zeros((len(record), 0))
