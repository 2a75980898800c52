"""What a study file says, read and checked key by key. ``docs/study.md`` lists every key."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Literal, cast, get_args

from mechsmith.codegen.discretise import Reconstruction
from mechsmith.identification.friction.shape_factor import LugreStart
from mechsmith.identification.preprocessing import Decimation
from mechsmith.identification.readers import CsvFormat
from mechsmith.identification.record_checks import JITTER_TOLERANCE
from mechsmith.identification.uncertainty import Uncertainty
from mechsmith.study.methods import make_method
from mechsmith.study.sources import (
    ColumnSource,
    LugreSource,
    OutputPaths,
    ProblemSource,
    RecordSource,
    ResidualSource,
    Study,
)
from mechsmith.study.steps import make_step
from mechsmith.study.table import StudyError, Table
from mechsmith.systems import INTEGRATORS, IntegratorChoice

RESIDUALS = ("equation", "output")
TRANSFORMS = ("log", "identity")


def load_study(path: Path | str) -> Study:
    """Return the study in a TOML file.

    Raises
    ------
    StudyError
        If the file is no TOML, a key is unknown or missing, or a value is of the wrong kind.
    """
    path = Path(path)
    if not path.is_file():
        raise StudyError(f"there is no study {str(path)!r}. Give the path of a TOML file.")
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: this is no TOML: {error}.") from error
    top = Table(f"{path.name}: top level", values)
    top.only(
        *("title", "seed", "model", "records", "validation", "preprocessing", "problem", "residual"),
        *("uncertainty", "method", "outputs"),
    )
    return _study(path, text, Table(path.name, values))


def _study(path: Path, text: str, top: Table) -> Study:
    sections = {
        name: _section(top, name) for name in ("model", "problem", "residual", "uncertainty", "outputs")
    }
    records = _records(top)
    validation = tuple(
        _record(table, f"validation {i}", records[0]) for i, table in enumerate(top.tables("validation"))
    )
    _check_names(top, (*records, *validation))
    methods = tuple(make_method(table, path.parent) for table in top.tables("method"))
    if not methods:
        raise StudyError(
            f"{path.name}: there is no [[method]]. Add one, for instance with kind = 'least_squares'."
        )
    seed = top.integer("seed", 0)
    if seed < 0:
        raise StudyError(f"{path.name}: seed is {seed}; it must be 0 or more.")
    return Study(
        path=path,
        text=text,
        title=top.text("title", path.stem),
        seed=seed,
        model=_model(path, sections["model"]),
        integrator=_integrator(sections["model"]),
        records=records,
        validation=validation,
        steps=tuple(make_step(table) for table in top.tables("preprocessing")),
        problem=_problem(sections["problem"]),
        residual=_residual(sections["residual"]),
        uncertainty=_uncertainty(sections["uncertainty"]),
        methods=methods,
        outputs=_outputs(path, sections["outputs"]),
    )


def _section(top: Table, name: str) -> Table:
    return Table(f"{top.where}: [{name}]", top.table(name).values)


def _model(path: Path, table: Table) -> str:
    table.only("name", "integrator", "substeps", "iterations", "reconstruction", "split")
    name = table.text("name")
    file, colon, function = name.rpartition(":")
    return f"{path.parent / file}:{function}" if colon and file.endswith(".py") else name


def _integrator(table: Table) -> IntegratorChoice:
    inputs = table.table("reconstruction")
    reconstruction = {
        name: cast(Reconstruction, inputs.choice(name, get_args(Reconstruction))) for name in inputs.values
    }
    return IntegratorChoice(
        kind=table.choice("integrator", tuple(INTEGRATORS), "radau"),
        substeps=table.integer("substeps", 1),
        iterations=table.integer("iterations") if "iterations" in table else None,
        reconstruction=reconstruction,
        split=table.truth("split", True),
    )


def _records(top: Table) -> tuple[RecordSource, ...]:
    tables = top.tables("records")
    if not tables:
        raise StudyError(f"{top.where}: there are no [[records]]. Add one with a file and its columns.")
    first = _record(tables[0], "record 0", None)
    return (first, *(_record(table, f"record {i + 1}", first) for i, table in enumerate(tables[1:])))


def _record(table: Table, name: str, base: RecordSource | None) -> RecordSource:
    """Return a record; what it does not give is as in `base`."""
    table.only(
        "name", "file", "time", "sample_period", "columns", "constants", "csv", "jitter_tolerance", "initial"
    )
    file = table.text("file")
    columns = {key: _column(table.table("columns"), key) for key in table.table("columns").values}
    constants = dict(table.table("constants").values)
    time = _column(table, "time") if "time" in table else None
    period = table.number("sample_period") if "sample_period" in table else None
    csv, jitter = CsvFormat(), JITTER_TOLERANCE
    if base is not None:
        columns, constants = (
            {**{k: v for k, v in base.columns.items() if k not in constants}, **columns},
            {**{k: v for k, v in base.constants.items() if k not in columns}, **constants},
        )
        csv, jitter = base.csv, base.jitter_tolerance
        if time is None and period is None:
            time, period = base.time, base.sample_period
    if (time is None) == (period is None):
        raise StudyError(
            f"{table.where}: give either time (a column) or sample_period (s), {'not both' if time else 'one of them'}."
        )
    return RecordSource(
        name=table.text("name", Path(file).stem or name),
        file=file,
        time=time,
        sample_period=period,
        columns=columns,
        constants=constants,
        csv=_csv(table.table("csv"), csv),
        jitter_tolerance=table.number("jitter_tolerance", jitter),
        initial=dict(table.table("initial").values),
    )


def _column(table: Table, key: str) -> ColumnSource:
    if isinstance(table.values[key], str):
        return ColumnSource(table.values[key])
    entry = table.table(key)
    entry.only("source", "unit", "gain", "gain_unit", "offset", "largest")
    return ColumnSource(
        source=entry.text("source"),
        unit=entry.text("unit") if "unit" in entry else None,
        gain=entry.number("gain", 1.0),
        gain_unit=entry.text("gain_unit", ""),
        offset=entry.number("offset", 0.0),
        largest=entry.number("largest") if "largest" in entry else None,
    )


def _csv(table: Table, base: CsvFormat) -> CsvFormat:
    table.only("delimiter", "decimal", "header", "comment")
    return CsvFormat(
        delimiter=table.text("delimiter", base.delimiter),
        decimal=table.text("decimal", base.decimal),
        header=table.truth("header", base.header),
        comment=table.text("comment", base.comment),
    )


def _check_names(top: Table, records: tuple[RecordSource, ...]) -> None:
    names = [record.name for record in records]
    for name in names:
        if names.count(name) > 1:
            raise StudyError(
                f"{top.where}: {names.count(name)} records are called {name!r}. Give each a name of its own (name = ...)."
            )


def _problem(table: Table) -> ProblemSource:
    mappings = ("fixed", "start", "bounds", "transforms", "priors")
    table.only("free", "per_record", "constraints", "measured", "delayed", *mappings, "lugre_start")
    free = table.texts("free")
    if not free:
        raise StudyError(f"{table.where}: nothing is free. Give free = ['name', ...].")
    if isinstance(table.values.get("measured"), dict):
        chosen = table.table("measured")
        measured = {name: chosen.text(name) for name in chosen.values}
    else:
        measured = {name: "" for name in table.texts("measured")}
    tables = {name: dict(table.table(name).values) for name in mappings}
    for name in tables["transforms"]:
        table.table("transforms").choice(name, TRANSFORMS)
    return ProblemSource(
        free=free,
        per_record=table.texts("per_record"),
        constraints=table.texts("constraints"),
        measured=measured,
        delayed=table.texts("delayed"),
        lugre_start=_lugre_start(table.table("lugre_start")) if "lugre_start" in table else None,
        **tables,
    )


def _lugre_start(table: Table) -> LugreSource:
    names = [f.name for f in dataclasses.fields(LugreStart)]
    table.only("velocity", "force", "prefix", *names)
    default = LugreStart()
    options = LugreStart(**{name: table.number(name, getattr(default, name)) for name in names})
    texts = {name: table.text(name, name) for name in ("velocity", "force")}
    return LugreSource(options, **texts, prefix=table.text("prefix", ""))


def _residual(table: Table) -> ResidualSource:
    table.only("kind", "outputs", "noise", "decimation")
    outputs: dict[str, str] | None = None
    if isinstance(table.values.get("outputs"), dict):
        chosen = table.table("outputs")
        outputs = {name: chosen.text(name) for name in chosen.values}
    elif "outputs" in table:
        outputs = {name: name for name in table.texts("outputs")}
    decimation = None
    if "decimation" in table:
        options = table.table("decimation")
        options.only("factor", "order", "ripple_db", "unit_gain")
        default = Decimation(2)
        decimation = Decimation(
            factor=options.integer("factor"),
            order=options.integer("order", default.order),
            ripple_db=options.number("ripple_db", default.ripple_db),
            unit_gain=options.truth("unit_gain", default.unit_gain),
        )
    kind = table.choice("kind", RESIDUALS, "equation")
    return ResidualSource(kind, outputs, dict(table.table("noise").values), decimation)


def _uncertainty(table: Table) -> Uncertainty:
    default = Uncertainty()
    table.only(*(f.name for f in dataclasses.fields(Uncertainty)))
    degrees = table.choice(
        "degrees_of_freedom", ("samples-parameters", "samples-1"), default.degrees_of_freedom
    )
    return Uncertainty(
        degrees_of_freedom=cast(Literal["samples-parameters", "samples-1"], degrees),
        known_noise=table.truth("known_noise", False) if "known_noise" in table else None,
        confidence=table.number("confidence", default.confidence),
        whiteness_level=table.number("whiteness_level", default.whiteness_level),
        whiteness_lags=table.integer("whiteness_lags", default.whiteness_lags),
        rank_tolerance=table.number("rank_tolerance", default.rank_tolerance),
        weak_threshold=table.number("weak_threshold", default.weak_threshold),
    )


def _outputs(path: Path, table: Table) -> OutputPaths:
    table.only("estimate", "report", "json")
    chosen = {
        name: path.parent / table.text(name) for name in ("estimate", "report", "json") if name in table
    }
    return OutputPaths(**chosen)
