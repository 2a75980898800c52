"""Where a study's files are, and its records read, preprocessed and checked."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.readers import ColumnSpec, read_record
from mechsmith.identification.record import Record
from mechsmith.identification.units import UnitError, conversion, si_unit
from mechsmith.study.sources import ColumnSource, RecordSource, Study
from mechsmith.study.steps import apply_steps, constant, copied
from mechsmith.study.table import StudyError, nearest
from mechsmith.values import InputError, units_by_name


def find_files(study: Study, data: Sequence[str] = ()) -> dict[str, Path]:
    """Return the file of every record and validation by its name.

    Parameters
    ----------
    study : Study
        Its files are relative to its folder.
    data : sequence of str
        What takes their place: ``name=path`` for one record; a folder, in which files are looked for by their own
        name first; or a file, which is that of the record whose file has the same name, else of the first record that
        has none yet. In the folder of such a file the others are looked for too.

    Raises
    ------
    InputError
        If a file is not there, or `data` names a record that the study does not have.
    """
    sources = (*study.records, *study.validation)
    names = [source.name for source in sources]
    found: dict[str, Path] = {}
    folders: list[Path] = []
    for text in data:
        name, equals, rest = text.partition("=")
        if equals and name in names:
            found[name] = Path(rest)
            continue
        path = Path(text)
        if path.is_dir():
            folders.append(path)
            continue
        if not path.is_file():
            hint = nearest(name, names) if equals else ""
            raise InputError(
                f"--data {text}: there is no such file or folder, and no record of that name.{hint} Records: {', '.join(names)}."
            )
        found[_taker(sources, found, path)] = path
        folders.append(path.parent)
    for source in sources:
        if source.name not in found:
            found[source.name] = _looked_up(study, source, folders)
    for name, path in found.items():
        if not path.is_file():
            raise InputError(
                f"record {name!r}: there is no file {str(path)!r}. Give --data {name}=PATH, or --data with its folder."
            )
    return found


def _taker(sources: Sequence[RecordSource], found: Mapping[str, Path], path: Path) -> str:
    """Return the name of the record that a file given without a name is for."""
    free = [source for source in sources if source.name not in found]
    if not free:
        raise InputError(
            f"--data {path}: every record has a file already ({', '.join(s.name for s in sources)})."
        )
    same = [source for source in free if Path(source.file).name == path.name]
    return (same or free)[0].name


def _looked_up(study: Study, source: RecordSource, folders: Sequence[Path]) -> Path:
    named = Path(source.file).name
    return next(
        (folder / named for folder in folders if (folder / named).is_file()), study.path.parent / source.file
    )


def model_units(functions: FunctionSet) -> dict[str, str]:
    """Return the units of what columns may be: every quantity of the model, outputs and integrals of inputs."""
    integrals = {variable.name: variable.unit[0] for _, variable in functions.integrals}
    return {**integrals, **units_by_name(functions, "xdzuy")}


def load_record(
    study: Study, source: RecordSource, path: Path, functions: FunctionSet, measured: Mapping[str, str]
) -> Record:
    """Return one record in SI, preprocessed, with the columns that measured initial states need.

    Parameters
    ----------
    study : Study
        For the preprocessing.
    source : RecordSource
        The record.
    path : Path
        Its file.
    functions : FunctionSet
        Of the model, whose units columns get.
    measured : mapping of ``x0:state`` to column
        The column is copied under the state's name, unless it is empty.

    Raises
    ------
    StudyError, RecordError
        If something of the file, its columns, units or the steps does not fit.
    """
    units = model_units(functions)
    where = f"{study.path.name}: record {source.name!r}"
    record = read_record(
        path,
        time=None if source.time is None else _spec(source.time, "time", {"time": "s"}, where),
        columns={name: _spec(column, name, units, where) for name, column in source.columns.items()},
        sample_period=source.sample_period,
        csv_format=source.csv,
        jitter_tolerance=source.jitter_tolerance,
    )
    for name, value in source.constants.items():
        if name not in units:
            raise StudyError(
                f"{where}: constants: {name!r} is no quantity of {functions.name!r}.{nearest(name, list(units))}"
            )
        record = constant(record, name, value, units[name], f"{where}: constants")
    record = apply_steps(record, source.name, study.steps, units)
    for state, column in measured.items():
        if column:
            record = copied(record, column, state.partition(":")[2])
    _check_units(record, units, where)
    return record


def _spec(column: ColumnSource, name: str, units: Mapping[str, str], where: str) -> ColumnSpec:
    """Return a column with its unit and that of the model: its own, or the SI unit of the same kind."""
    unit, target = column.unit, units.get(name)
    if unit is None:
        if target is None:
            raise StudyError(
                f"{where}: columns: {name!r} is no quantity of the model, so its unit must be given: "
                f"{name} = {{ source = {column.source!r}, unit = '...' }}.{nearest(name, list(units))}"
            )
        unit = target
    if target is None:
        try:
            target = si_unit(unit) if not column.gain_unit else si_unit(f"({unit})*({column.gain_unit})")
        except UnitError as error:
            raise StudyError(f"{where}: columns: {name}: {error}") from None
    return ColumnSpec(
        column.source,
        unit,
        target,
        gain=column.gain,
        gain_unit=column.gain_unit,
        offset=column.offset,
        largest=column.largest,
    )


def _check_units(record: Record, units: Mapping[str, str], where: str) -> None:
    """Raise where steps gave a column another unit than the model's quantity of that name has."""
    for name in record.columns:
        if name in units:
            try:
                conversion(record.units[name], "", units[name])
            except UnitError as error:
                raise StudyError(f"{where}: column {name!r}: {error}") from None


def check_step_records(study: Study) -> None:
    """Raise when a preprocessing step is for a record that is not there."""
    names = [source.name for source in (*study.records, *study.validation)]
    for step in study.steps:
        for name in step.records:
            if name not in names:
                raise StudyError(
                    f"{step.options.where}: there is no record {name!r}.{nearest(name, names)} Records: {', '.join(names)}."
                )
