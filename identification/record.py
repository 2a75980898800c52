"""Measured or simulated signals over time, in SI units, with the history of how they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechsmith.identification.record_checks import RecordError, find_issues, raise_errors
from mechsmith.identification.units import UnitError, conversion, is_si, si_unit

Array = NDArray[np.float64]


def _frozen(values: ArrayLike, what: str) -> Array:
    """Return a read-only float copy of `values`, which must be one-dimensional."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RecordError(f"{what}: the values are not real numbers ({error}).") from error
    if array.ndim != 1:
        raise RecordError(
            f"{what}: shape {array.shape}, allowed is one dimension (n,). Pass one column at a time."
        )
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Record:
    """Signals sampled at common times, every one in SI.

    Parameters
    ----------
    time
        Times of the samples, shape (n,), s.
    columns
        Values by name, each of shape (n,), in the unit `units` gives. Kept as read-only copies.
    units
        The coherent SI unit of every column.
    source
        Where the signals come from, a file name for example.
    provenance
        One line for each processing step, numbers included, oldest first.

    Raises
    ------
    RecordError
        When a column has another length than `time`, or has no unit, or its unit is not coherent SI.
        Values are not judged here: see `check_record`.
    """

    time: Array
    columns: Mapping[str, Array]
    units: Mapping[str, str]
    source: str = ""
    provenance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        time = _frozen(self.time, "record: time")
        columns = {name: _frozen(values, f"record: column {name!r}") for name, values in self.columns.items()}
        for name, values in columns.items():
            if len(values) != len(time):
                raise RecordError(
                    f"record: column {name!r} has {len(values)} samples, time has {len(time)}. "
                    "All columns must have the same length."
                )
        if set(self.units) != set(columns):
            raise RecordError(
                f"record: units are given for {sorted(self.units)}, columns are {sorted(columns)}. "
                "Every column needs exactly one unit."
            )
        for name, unit in self.units.items():
            _require_si(name, unit)
        # a frozen dataclass can only normalise its own fields this way; nothing is set after construction
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "columns", MappingProxyType(columns))
        object.__setattr__(self, "units", MappingProxyType({name: self.units[name] for name in columns}))
        object.__setattr__(self, "provenance", tuple(self.provenance))

    def __reduce__(self) -> tuple[Any, ...]:
        # a mappingproxy does not pickle, and records are sent to worker processes
        return type(self), (self.time, dict(self.columns), dict(self.units), self.source, self.provenance)

    @classmethod
    def from_arrays(
        cls,
        time: ArrayLike,
        columns: Mapping[str, tuple[ArrayLike, str]],
        *,
        source: str = "arrays",
        provenance: Sequence[str] = (),
        check: bool = True,
    ) -> "Record":
        """Return a record of arrays given with their units, converted to SI.

        Parameters
        ----------
        time
            Shape (n,), s.
        columns
            By name the values, shape (n,), and their unit: ``{"angle": (values, "deg")}`` is kept in rad.
        source, provenance
            As in the class.
        check
            Whether NaN, infinity, repeated or decreasing times, and fewer than two samples are refused.
            Uneven sampling is not: the functions that need even sampling refuse it themselves.

        Raises
        ------
        RecordError
            When shapes or units do not fit, or `check` finds an error; row numbers are indices from 0.
        """
        arrays: dict[str, Array] = {}
        units: dict[str, str] = {}
        lines = list(provenance)
        for name, (values, unit) in columns.items():
            arrays[name], units[name], line = _to_si(name, values, unit)
            lines += [line] if line else []
        record = cls(np.asarray(time), arrays, units, source, tuple(lines))
        if check:
            raise_errors(find_issues(record.time, record.columns, record.units), f"record {source!r}")
        return record

    def __len__(self) -> int:
        return len(self.time)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Array:
        """Return the column `name`, shape (n,), read-only, in ``units[name]``."""
        if name not in self.columns:
            raise RecordError(
                f"record {self.source!r}: there is no column {name!r}; there are {list(self.columns)}."
            )
        return self.columns[name]

    @property
    def sample_period(self) -> float:
        """The mean of the intervals that lie within half of their median, s: gaps do not count in it."""
        steps = np.diff(self.time)
        steps = steps[steps > 0.0]
        if len(steps) == 0:
            raise RecordError(
                f"record {self.source!r}: {len(self)} sample(s) with no increasing time have no period."
            )
        middle = float(np.median(steps))
        return float(np.mean(steps[np.abs(steps - middle) <= 0.5 * middle]))

    def with_column(
        self, name: str, values: ArrayLike, unit: str, *, provenance: str, overwrite: bool = False
    ) -> "Record":
        """Return the record with one more column.

        Parameters
        ----------
        name
            Its name; an existing one is refused unless `overwrite`.
        values
            Shape (n,), in `unit`, which is converted to SI.
        unit
            Any unit of pint.
        provenance
            How the column was made, one line.
        overwrite
            Whether an existing column may be replaced.
        """
        if name in self.columns and not overwrite:
            raise RecordError(
                f"record {self.source!r}: there is a column {name!r} already. Choose another name or pass "
                "overwrite=True."
            )
        array, si, line = _to_si(name, values, unit)
        return Record(
            self.time,
            {**self.columns, name: array},
            {**self.units, name: si},
            self.source,
            (*self.provenance, provenance, *([line] if line else [])),
        )

    def rename(self, names: Mapping[str, str]) -> "Record":
        """Return the record with columns renamed from the keys of `names` to its values."""
        for old in names:
            self[old]  # raises for an unknown name
        new = [names.get(old, old) for old in self.columns]
        if len(set(new)) != len(new):
            raise RecordError(f"record {self.source!r}: renaming by {dict(names)} gives a name twice: {new}.")
        pairs = dict(zip(new, self.columns, strict=True))
        line = "renamed " + ", ".join(f"{old} to {name}" for old, name in names.items())
        return Record(
            self.time,
            {name: self.columns[old] for name, old in pairs.items()},
            {name: self.units[old] for name, old in pairs.items()},
            self.source,
            (*self.provenance, line),
        )

    def select(self, names: Sequence[str]) -> "Record":
        """Return the record with the columns `names` only, in that order."""
        chosen = {name: self[name] for name in names}
        line = "selected " + ", ".join(names)
        return Record(
            self.time,
            chosen,
            {name: self.units[name] for name in chosen},
            self.source,
            (*self.provenance, line),
        )

    def slice(self, start: int | None = None, stop: int | None = None) -> "Record":
        """Return samples `start` (included) to `stop` (excluded), counted as Python does; times are kept."""
        first, last, _ = slice(start, stop).indices(len(self))
        if last <= first:
            raise RecordError(
                f"record {self.source!r}: slice({start}, {stop}) of {len(self)} samples is empty."
            )
        return self.take(
            np.arange(first, last), provenance=f"samples {first} to {last - 1} (from 0) of {len(self)} kept"
        )

    def take(self, rows: NDArray[np.intp], *, provenance: str) -> "Record":
        """Return the samples with the indices `rows`, shape (m,), from 0."""
        return Record(
            self.time[rows],
            {name: values[rows] for name, values in self.columns.items()},
            self.units,
            self.source,
            (*self.provenance, provenance),
        )


def _require_si(name: str, unit: str) -> None:
    """Raise unless `unit` is coherent SI."""
    try:
        coherent = is_si(unit)
    except UnitError as error:
        raise RecordError(f"record: column {name!r}: {error}") from error
    if not coherent:
        raise RecordError(
            f"record: column {name!r} has the unit {unit!r}, which is not coherent SI; allowed is "
            f"{si_unit(unit)!r}. "
            "Record.from_arrays and read_record convert."
        )


def _to_si(name: str, values: ArrayLike, unit: str) -> tuple[Array, str, str]:
    """Return values in SI, the SI unit, and the line for the provenance (empty when nothing changed)."""
    array = _frozen(values, f"record: column {name!r}")
    try:
        target = si_unit(unit)
        change = conversion(unit, "", target)
    except UnitError as error:
        raise RecordError(f"record: column {name!r}: {error}") from error
    if target == unit:
        return array, unit, ""
    shift = f" + {change.shift:g}" if change.shift else ""
    return (
        change.factor * array + change.shift,
        target,
        f"{name}: {unit} to {target} (times {change.factor:.15g}{shift})",
    )
