"""What a study asks for, as frozen data: a field for each key of the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mechsmith.identification.friction.shape_factor import LugreStart
from mechsmith.identification.method import Method
from mechsmith.identification.preprocessing import Decimation
from mechsmith.identification.readers import CsvFormat
from mechsmith.identification.uncertainty import Uncertainty
from mechsmith.study.steps import Step
from mechsmith.systems import IntegratorChoice


@dataclass(frozen=True)
class ColumnSource:
    """Where a column comes from: as `mechsmith.identification.readers.ColumnSpec`, with the model's unit unknown yet.

    `unit` is None when the column is in the model's own unit.
    """

    source: str
    unit: str | None = None
    gain: float = 1.0
    gain_unit: str = ""
    offset: float = 0.0
    largest: float | None = None


@dataclass(frozen=True)
class RecordSource:
    """A file of measured data and how its columns are called.

    Parameters
    ----------
    name : str
        For messages, reports and ``--data name=path``.
    file : str
        Path from the study's folder.
    time : ColumnSource, optional
        The time column; else `sample_period` is given.
    sample_period : float, optional
        s.
    columns : mapping of name to ColumnSource
        By the name in the model.
    constants : mapping of name to value
        Columns that do not change, as numbers or texts with a unit.
    csv : CsvFormat
        How a CSV file is written.
    jitter_tolerance : float
        Relative, of the sampling.
    initial : mapping of name to value
        Initial states for validation.
    """

    name: str
    file: str
    time: ColumnSource | None
    sample_period: float | None
    columns: Mapping[str, ColumnSource]
    constants: Mapping[str, object]
    csv: CsvFormat
    jitter_tolerance: float
    initial: Mapping[str, object]


@dataclass(frozen=True)
class LugreSource:
    """A start for LuGre friction by closed forms from the first record.

    Parameters
    ----------
    options : LugreStart
        Where the closed forms look.
    velocity, force : str
        Columns.
    prefix : str
        What stands before the names of the friction's parameters, ``friction_`` in a composed model.
    """

    options: LugreStart
    velocity: str
    force: str
    prefix: str


@dataclass(frozen=True)
class ProblemSource:
    """The fields of `mechsmith.identification.Problem` as the file has them, units not yet converted."""

    free: tuple[str, ...]
    per_record: tuple[str, ...]
    constraints: tuple[str, ...]
    measured: Mapping[str, str]
    delayed: tuple[str, ...]
    fixed: Mapping[str, object]
    start: Mapping[str, object]
    bounds: Mapping[str, object]
    transforms: Mapping[str, object]
    priors: Mapping[str, object]
    lugre_start: LugreSource | None


@dataclass(frozen=True)
class ResidualSource:
    """How prediction and measurement are compared."""

    kind: str = "equation"
    outputs: Mapping[str, str] | None = None
    noise: Mapping[str, object] = field(default_factory=dict)
    decimation: Decimation | None = None


@dataclass(frozen=True)
class OutputPaths:
    """Files that a study writes; None is not written."""

    estimate: Path | None = None
    report: Path | None = None
    json: Path | None = None


@dataclass(frozen=True)
class Study:
    """What is identified, from which data, and how.

    Parameters
    ----------
    path : Path
        Of the file; paths in it are relative to its folder.
    text : str
        The file.
    title : str
        For the report.
    seed : int
        Of everything that is random.
    model : str
        Catalogue name, or ``file.py:function`` with the file's path from the current folder.
    integrator : IntegratorChoice
        For simulations.
    records, validation : tuple of RecordSource
        What the parameters come from, and what they are tried on.
    steps : tuple of Step
        Preprocessing of every record, in order.
    problem, residual, uncertainty
        What is free, how it is compared, and how precision is judged.
    methods : tuple of Method
        A chain; each begins where the one before ended.
    outputs : OutputPaths
        What is written.
    """

    path: Path
    text: str
    title: str
    seed: int
    model: str
    integrator: IntegratorChoice
    records: tuple[RecordSource, ...]
    validation: tuple[RecordSource, ...]
    steps: tuple[Step, ...]
    problem: ProblemSource
    residual: ResidualSource
    uncertainty: Uncertainty
    methods: tuple[Method, ...]
    outputs: OutputPaths
