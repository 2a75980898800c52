"""Files of measured data -> `Record`: CSV, Parquet, MATLAB and NumPy archives."""

import csv
import gzip
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from mechsmith.identification.record import Record
from mechsmith.identification.record_checks import (
    JITTER_TOLERANCE,
    Place,
    RecordError,
    RecordWarning,
    find_issues,
    raise_errors,
)
from mechsmith.identification.units import UnitError, conversion

Array = NDArray[np.float64]
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".mat", ".npz")


@dataclass(frozen=True)
class ColumnSpec:
    """Where a column is in a file and how it becomes SI: ``gain * raw + offset``, then the units.

    Parameters
    ----------
    source
        Its name in the file. In `.mat` and `.npz` files ``"q[2]"`` is the third column of a matrix q (n, k)
        and ``"log.q"`` a field of a structure; in a CSV file without header columns are called "1", "2" and
        so on.
    unit
        The unit of the raw values: ``"deg"``, ``"rpm"``, ``"mA"``, ``"count"``.
    model_unit
        The coherent SI unit that the model declares: ``"rad"``, ``"rad/s"``, ``"N*m"``.
    gain
        Factor on the raw values, in `gain_unit`: a torque constant in N*m/A, a drive gain in N/V, 2 pi/4096
        in rad/count.
    gain_unit
        The unit of `gain`, ``""`` for a plain number.
    offset
        Added after the gain, in `unit` times `gain_unit`.
    largest
        The largest magnitude that is possible, in `model_unit`; a value beyond is an error. It catches what
        no unit can: degrees declared as rad, mA declared as A. Without it, see `record_checks.PLAUSIBLE`.
    """

    source: str
    unit: str
    model_unit: str
    gain: float = field(default=1.0, kw_only=True)
    gain_unit: str = field(default="", kw_only=True)
    offset: float = field(default=0.0, kw_only=True)
    largest: float | None = field(default=None, kw_only=True)

    def apply(self, raw: Array, name: str) -> tuple[Array, str]:
        """Return raw values, shape (n,), in `model_unit`, and the line for the provenance.

        Raises
        ------
        RecordError
            When the units do not fit; it names the column, both units and dimensions.
        """
        try:
            change = conversion(self.unit, self.gain_unit, self.model_unit)
        except UnitError as error:
            raise RecordError(f"column {name!r} (in the file {self.source!r}): {error}") from error
        values = np.asarray(change.factor * (self.gain * raw + self.offset) + change.shift, dtype=np.float64)
        gain = (
            ""
            if self.gain == 1.0 and not self.gain_unit
            else f", gain {self.gain!r} {self.gain_unit}".rstrip()
        )
        offset = "" if self.offset == 0.0 else f", offset {self.offset!r}"
        return (
            values,
            f"{name}: {self.source} in {self.unit or '1'}{gain}{offset}, to {self.model_unit or '1'}",
        )


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written.

    Parameters
    ----------
    delimiter
        Between the fields; ``";"`` or a tab often.
    decimal
        The decimal mark, ``"."`` or ``","``.
    header
        Whether the first line names the columns.
    comment
        Lines that start with this text are skipped.
    """

    delimiter: str = ","
    decimal: str = "."
    header: bool = True
    comment: str = "#"


@dataclass(frozen=True)
class _Raw:
    """Columns as they are in the file, and the line of every sample if it has lines."""

    columns: Mapping[str, Array]
    lines: Sequence[int] | None = None


def read_record(
    path: Path | str,
    *,
    time: ColumnSpec | None,
    columns: Mapping[str, ColumnSpec],
    sample_period: float | None = None,
    csv_format: CsvFormat | None = None,
    jitter_tolerance: float = JITTER_TOLERANCE,
) -> Record:
    """Return the named columns of a file as a record in SI, checked.

    Parameters
    ----------
    path
        A `.csv` (or `.csv.gz`), `.parquet` (needs ``pip install mechsmith[parquet]``), `.mat` (before version
        7.3) or `.npz` file.
    time
        The time column, with `model_unit` "s"; None when samples are `sample_period` apart.
    columns
        By the name in the model, where to find the column.
    sample_period
        Seconds between samples, in place of a time column; time then starts at 0.
    csv_format
        For CSV files, by default comma, point and header.
    jitter_tolerance
        The part of the median period by which an interval may differ from it without a warning.

    Returns
    -------
    Record
        With the conversion of every column in its provenance.

    Raises
    ------
    RecordError
        When the file or a column is missing or is not numeric, units do not fit, columns differ in length, a
        value is not finite, or times repeat or decrease. Rows are named by the line of the file for CSV, else
        by the sample, from 0.

    Warns
    -----
    RecordWarning
        For jitter, gaps (over 1.5 median periods) and implausible magnitudes.
    """
    path = Path(path)
    if (time is None) == (sample_period is None):
        raise RecordError(f"read_record: {path.name}: give either time or sample_period, and not both.")
    if sample_period is not None and not sample_period > 0.0:
        raise RecordError(
            f"read_record: {path.name}: sample_period is {sample_period}, allowed is above 0 s."
        )
    if time is not None and time.model_unit != "s":
        raise RecordError(
            f"read_record: {path.name}: model_unit of time is {time.model_unit!r}, allowed is 's'."
        )
    specs = dict(columns) if time is None else {"time": time, **columns}
    if not columns or (time is not None and "time" in columns):
        raise RecordError(
            f"read_record: {path.name}: columns must name at least one column, and none of them 'time'."
        )
    raw = _load(path, tuple(spec.source for spec in specs.values()), csv_format or CsvFormat())
    _require_equal_lengths(path, specs, raw)
    values: dict[str, Array] = {}
    lines = [f"read from {path.name}"]
    for name, spec in specs.items():
        values[name], line = spec.apply(raw.columns[spec.source], name)
        lines.append(line)
    if sample_period is not None:
        values["time"] = sample_period * np.arange(len(next(iter(values.values()))), dtype=np.float64)
        lines.append(f"time: from a sample period of {sample_period!r} s")
    times = values.pop("time")
    units = {name: columns[name].model_unit for name in values}
    issues = find_issues(
        times,
        values,
        units,
        largest={name: spec.largest for name, spec in columns.items() if spec.largest is not None},
        jitter_tolerance=jitter_tolerance,
        place=Place(raw.lines, {name: spec.source for name, spec in specs.items()}),
    )
    for issue in raise_errors(issues, path.name):
        warnings.warn(f"{path.name}: {issue.message}", RecordWarning, stacklevel=2)
    return Record(times, values, units, path.as_posix(), tuple(lines))


def _require_equal_lengths(path: Path, specs: Mapping[str, ColumnSpec], raw: _Raw) -> None:
    """Raise, naming every length, when columns of the file differ in length."""
    lengths = {spec.source: len(raw.columns[spec.source]) for spec in specs.values()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{source!r} {length}" for source, length in lengths.items())
        raise RecordError(
            f"read_record: {path.name}: columns differ in length, samples: {listed}. All must have the same "
            "length."
        )


def _load(path: Path, sources: Sequence[str], csv_format: CsvFormat) -> _Raw:
    """Return the columns `sources` of a file, by the kind its suffix says."""
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise RecordError(
            f"read_record: {path.name}: the suffix is not known; allowed are {', '.join(SUFFIXES)}."
        )
    if not path.is_file():
        raise RecordError(f"read_record: there is no file {path}.")
    if name.endswith((".csv", ".csv.gz")):
        return _load_csv(path, sources, csv_format)
    if name.endswith(".parquet"):
        return _load_parquet(path, sources)
    variables = _mat_variables(path) if name.endswith(".mat") else _npz_variables(path)
    return _Raw({source: _from_variables(path, variables, source) for source in sources})


def _missing(path: Path, source: str, available: Sequence[str]) -> RecordError:
    """Return the error for a column that is not in the file."""
    return RecordError(
        f"read_record: {path.name}: there is no column {source!r}; there are {sorted(available)}."
    )


def _open_text(path: Path) -> IO[str]:
    """Open a text file, packed or not; a byte-order mark, as Excel writes it, is skipped."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _load_csv(path: Path, sources: Sequence[str], how: CsvFormat) -> _Raw:
    """Return columns of a CSV file; an empty field is NaN, so that the checks name it."""
    rows: list[list[str]] = []
    lines: list[int] = []
    with _open_text(path) as stream:
        reader = csv.reader(stream, delimiter=how.delimiter)
        for row in reader:
            if any(text.strip() for text in row) and not row[0].lstrip().startswith(how.comment):
                rows.append(row)
                lines.append(reader.line_num)
    if not rows:
        raise RecordError(f"read_record: {path.name}: the file has no rows.")
    names = [text.strip() for text in rows[0]] if how.header else [str(k + 1) for k in range(len(rows[0]))]
    if how.header:
        rows, lines = rows[1:], lines[1:]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise RecordError(
                f"read_record: {path.name}, line {line}: {len(row)} fields, expected are {len(names)}. "
                f"Is the delimiter {how.delimiter!r} right?"
            )
    columns = {}
    for source in sources:
        if names.count(source) != 1:
            if source in names:
                raise RecordError(
                    f"read_record: {path.name}: {names.count(source)} columns are called {source!r}."
                )
            raise _missing(path, source, names)
        index = names.index(source)
        cells = (_number(path, source, row[index], line, how) for row, line in zip(rows, lines, strict=True))
        columns[source] = np.fromiter(cells, dtype=np.float64, count=len(rows))
    return _Raw(columns, tuple(lines))


def _number(path: Path, source: str, text: str, line: int, how: CsvFormat) -> float:
    """Return the number in a field of a CSV file."""
    stripped = text.strip()
    if not stripped:
        return float("nan")
    try:
        return float(stripped if how.decimal == "." else stripped.replace(how.decimal, "."))
    except ValueError as error:
        raise RecordError(
            f"read_record: {path.name}, line {line}, column {source!r}: {text!r} is not a number "
            f"(decimal mark {how.decimal!r})."
        ) from error


def _load_parquet(path: Path, sources: Sequence[str]) -> _Raw:
    """Return columns of a Parquet file; a null is NaN, so that the checks name it."""
    try:
        # an extra: most users have no Parquet files, and pyarrow is large
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise RecordError(
            f"read_record: {path.name}: Parquet needs pyarrow. Install it with: pip install "
            "mechsmith[parquet]"
        ) from error
    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise RecordError(f"read_record: {path.name}: this is no Parquet file ({error}).") from error
    with file:
        for source in sources:
            if source not in file.schema_arrow.names:
                raise _missing(path, source, file.schema_arrow.names)
        table = file.read(columns=list(dict.fromkeys(sources)))
    return _Raw({source: _real(path, source, table[source].to_numpy()) for source in sources})


def _mat_variables(path: Path) -> Mapping[str, Any]:
    """Return the variables of a MATLAB file, structures as dictionaries."""
    try:
        loaded = loadmat(path, simplify_cells=True)
    except NotImplementedError as error:
        raise RecordError(
            f"read_record: {path.name}: MATLAB files of version 7.3 (HDF5) are not read; save with '-v7'."
        ) from error
    except (ValueError, MatReadError) as error:
        raise RecordError(f"read_record: {path.name}: this is no MATLAB file ({error}).") from error
    return {name: value for name, value in loaded.items() if not name.startswith("__")}


def _npz_variables(path: Path) -> Mapping[str, Any]:
    """Return the arrays of a NumPy archive; pickled objects are refused, since loading them runs code."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError) as error:
        raise RecordError(
            f"read_record: {path.name}: cannot be read as arrays of numbers ({error})."
        ) from error


def _from_variables(path: Path, variables: Mapping[str, Any], source: str) -> Array:
    """Return the variable, field, or matrix column that `source` names, shape (n,)."""
    name, bracket, index = source.partition("[")
    value: Any = variables
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise _missing(path, source, list(value) if isinstance(value, Mapping) else [])
        value = value[part]
    array = _real(path, source, value)
    if bracket:
        number = index.removesuffix("]")
        if array.ndim != 2 or not number.isdecimal() or int(number) >= array.shape[1]:
            raise RecordError(
                f"read_record: {path.name}: {source!r} does not name a column; {name!r} has the shape "
                f"{array.shape}, "
                "and columns count from 0."
            )
        return array[:, int(number)]
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise RecordError(
            f"read_record: {path.name}: {source!r} has the shape {array.shape}; name one of its columns, "
            f"as in '{source}[0]'."
        )
    return array


def _real(path: Path, source: str, value: object) -> Array:
    """Return `value` as an array of floats."""
    array = np.asarray(value)
    if array.dtype.kind not in "iufb":
        raise RecordError(
            f"read_record: {path.name}: column {source!r} holds {array.dtype}, allowed are real numbers."
        )
    return array.astype(np.float64)
