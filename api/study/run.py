"""Running a study: records, problem, chain of methods, validation."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import Simulator
from mechsmith.identification.estimate import Estimate
from mechsmith.identification.identify import identify
from mechsmith.identification.method import Method, Progress
from mechsmith.identification.problem import Prior, Problem
from mechsmith.identification.record import Record
from mechsmith.identification.residuals import EquationError, OutputError
from mechsmith.identification.scaling import Identity, Log, Transform
from mechsmith.identification.validate import Validation, validate
from mechsmith.study.data import check_step_records, find_files, load_record
from mechsmith.study.sources import ProblemSource, RecordSource, Study
from mechsmith.study.table import StudyError, Table, nearest
from mechsmith.symbolic.model import Model
from mechsmith.systems import load_model, make_simulator
from mechsmith.values import number, units_by_name

TRANSFORMS: Mapping[str, Transform] = {"log": Log(), "identity": Identity()}
# What methods that keep their best when the user stops them (Ctrl-C) say.
INTERRUPTED = ("interrupted", "User_Requested_Stop")
Teller = Callable[[str, Progress | None], None]


@dataclass(frozen=True, eq=False)
class Stage:
    """What one method of the chain found, and how long it took in s."""

    estimate: Estimate
    seconds: float


@dataclass(frozen=True, eq=False)
class Trial:
    """A validation: the record it was on, by name, and what came out."""

    name: str
    record: Record
    validation: Validation


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found.

    Parameters
    ----------
    study : Study
        As asked for.
    model : Model
        What was identified.
    problem : Problem
        With its records.
    simulation : str
        How simulations ran; empty when there were none.
    files : mapping of record name to Path
        What was read.
    stages : tuple of Stage
        One for each method that ended, in order; at least one.
    trials : tuple of Trial
        One for each validation.
    interrupted : bool
        Whether the user stopped it: the stages before are kept.
    """

    study: Study
    model: Model
    problem: Problem
    simulation: str
    files: Mapping[str, Path]
    stages: tuple[Stage, ...]
    trials: tuple[Trial, ...]
    interrupted: bool = False

    @property
    def estimate(self) -> Estimate:
        """The last stage's."""
        return self.stages[-1].estimate

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the result is not to be trusted; empty when it is."""
        found = []
        estimate = self.estimate
        if self.interrupted:
            found.append(f"interrupted after {len(self.stages)} of {len(self.study.methods)} methods")
        if not estimate.success:
            found.append(f"not converged: {estimate.status}")
        if set(estimate.undetermined) >= set(estimate.names):
            found.append("the data determine none of the parameters")
        found += [
            f"the simulation of {trial.name} failed: {trial.validation.status or 'the prediction is not finite'}"
            for trial in self.trials
            if not trial.validation.success
        ]
        return tuple(found)


def run_study(
    study: Study, *, data: Sequence[str] = (), seed: int | None = None, tell: Teller | None = None
) -> StudyResult:
    """Return what a study finds.

    Parameters
    ----------
    study : Study
        From `load_study`.
    data : sequence of str
        Files in place of the study's, see `mechsmith.study.data.find_files`.
    seed : int, optional
        In place of the study's.
    tell : function of (text, Progress or None), optional
        Called at each stage with what it is, and during those methods that tell their progress.

    Returns
    -------
    StudyResult
        An interrupt (Ctrl-C) after the first method keeps what is there.

    Raises
    ------
    StudyError, InputError, ModelError, RecordError, ProblemError, MethodError
        If the study, its data or their combination does not fit.
    """
    say: Teller = tell or (lambda text, progress: None)
    check_step_records(study)
    files = find_files(study, data)
    say(f"model {study.model}", None)
    model = load_model(study.model)
    functions = lower(model)
    measured = study.problem.measured
    records = []
    for source in study.records:
        say(f"reading {files[source.name].name}", None)
        records.append(load_record(study, source, files[source.name], functions, measured))
    system, simulation = _system(study, functions, say)
    problem = _problem(study, system, tuple(records))
    start = _start(study.problem, problem)
    stages, interrupted = _run_methods(study, problem, start, seed, say)
    result = StudyResult(study, model, problem, simulation, files, stages, (), interrupted)
    return dataclasses.replace(result, trials=() if interrupted else _trials(study, result, say))


def _system(study: Study, functions: FunctionSet, say: Teller) -> tuple[FunctionSet | Simulator, str]:
    if study.residual.kind == "equation":
        return functions, ""
    say("compiling", None)
    return make_simulator(functions, study.integrator)


def _run_methods(
    study: Study, problem: Problem, start: Mapping[str, float], seed: int | None, say: Teller
) -> tuple[tuple[Stage, ...], bool]:
    """Return the stages, and whether the user stopped them."""
    generator = numpy.random.default_rng(study.seed if seed is None else seed)
    children = generator.spawn(len(study.methods))
    stages: list[Stage] = []
    begin: Estimate | Mapping[str, float] = start
    for method, rng in zip(study.methods, children, strict=True):
        text = f"{type(method).__name__} ({len(stages) + 1} of {len(study.methods)})"
        say(text, None)
        before = time.perf_counter()
        try:
            estimate = identify(
                problem,
                _telling(method, text, say),
                start=begin,
                rng=rng,
                uncertainty=study.uncertainty,
            )
        except KeyboardInterrupt:
            if not stages:
                raise
            return tuple(stages), True
        estimate = dataclasses.replace(estimate, method=repr(method))
        stages.append(Stage(estimate, time.perf_counter() - before))
        if estimate.status in INTERRUPTED:
            return tuple(stages), True
        begin = estimate
    return tuple(stages), False


def _telling(method: Method, text: str, say: Teller) -> Method:
    """Return the method with its progress told, where it has any."""
    if not dataclasses.is_dataclass(method) or "progress" not in {f.name for f in dataclasses.fields(method)}:
        return method
    return dataclasses.replace(method, progress=lambda progress: say(text, progress))


def _problem(study: Study, system: FunctionSet | Simulator, records: tuple[Record, ...]) -> Problem:
    source, file = study.problem, study.path.name
    functions = system if isinstance(system, FunctionSet) else system.functions
    units = slot_units(functions)
    return Problem(
        system=system,
        records=records,
        free=source.free,
        residual=make_residual(study, functions),
        per_record=source.per_record,
        fixed=_numbers(source.fixed, units, f"{file}: [problem.fixed]"),
        bounds=_bounds(source.bounds, units, f"{file}: [problem.bounds]"),
        transforms={name: TRANSFORMS[str(kind)] for name, kind in source.transforms.items()},
        constraints=source.constraints,
        measured=tuple(source.measured),
        delayed=source.delayed,
        priors=_priors(source.priors, units, f"{file}: [problem.priors]"),
    )


def make_residual(study: Study, functions: FunctionSet) -> EquationError | OutputError:
    """Return how a study compares prediction and measurement."""
    source = study.residual
    where = f"{study.path.name}: [residual.noise]"
    noise = _numbers(source.noise, units_by_name(functions, "y"), where)
    kind = EquationError if source.kind == "equation" else OutputError
    return kind(outputs=source.outputs, noise=noise, decimation=source.decimation)


def slot_units(functions: FunctionSet) -> dict[str, str]:
    """Return the unit of everything that a problem names: parameters, initial states, dead time."""
    units = {"dead_time": "s", **units_by_name(functions, "p")}
    for argument, prefix in (("p", ""), ("x", "x0:"), ("d", "d0:")):
        for variable in functions.variables(argument):
            units.setdefault(prefix + variable.name, variable.unit[0])
            units |= {
                prefix + label: unit for label, unit in zip(variable.labels, variable.unit, strict=True)
            }
    return units


def _unit(name: str, units: Mapping[str, str], where: str) -> str:
    base = name.partition("[")[0]
    if base not in units:
        raise StudyError(
            f"{where}: there is no {name!r}.{nearest(base, list(units))} There are: {', '.join(units)}."
        )
    return units[base]


def _numbers(values: Mapping[str, object], units: Mapping[str, str], where: str) -> dict[str, float]:
    return {
        name: number(value, _unit(name, units, where), f"{where} {name}") for name, value in values.items()
    }


def _bounds(
    values: Mapping[str, object], units: Mapping[str, str], where: str
) -> dict[str, tuple[float, float]]:
    found = {}
    for name, pair in values.items():
        if not isinstance(pair, list) or len(pair) != 2:
            raise StudyError(f"{where}: {name} is {pair!r}; it must be [lower, upper].")
        unit = _unit(name, units, where)
        lower, upper = (number(value, unit, f"{where} {name}") for value in pair)
        found[name] = (lower, upper)
    return found


def _priors(values: Mapping[str, object], units: Mapping[str, str], where: str) -> dict[str, Prior]:
    found = {}
    for name, entry in values.items():
        if not isinstance(entry, dict):
            raise StudyError(f"{where}: {name} is {entry!r}; it must be {{ mean = ..., deviation = ... }}.")
        table = Table(f"{where} {name}", entry)
        table.only("mean", "deviation")
        unit = _unit(name, units, where)
        mean, deviation = (
            number(entry.get(key), unit, f"{where} {name}: {key}") for key in ("mean", "deviation")
        )
        found[name] = Prior(mean, deviation)
    return found


def _start(source: ProblemSource, problem: Problem) -> dict[str, float]:
    """Return the start by name: closed forms, and over them what is given.

    Names that are not free are an error here, since a study means what it says.
    """
    known = [name for slot in problem.slots for name in (slot.name, slot.base)]
    for name in source.start:
        if name not in known:
            raise StudyError(
                f"[problem.start]: {name!r} is not free.{nearest(name, known)} Free: {', '.join(problem.names)}."
            )
    given = _numbers(source.start, slot_units(problem.functions), "[problem.start]")
    for slot in problem.slots:
        for name in (slot.name, slot.base):
            if name in given and not slot.lower <= given[name] <= slot.upper:
                raise StudyError(
                    f"[problem.start]: {name} is {given[name]}, allowed is {slot.lower} to {slot.upper}. "
                    "Start within the bounds, or give others in [problem.bounds]."
                )
    if source.lugre_start is None:
        return given
    lugre = source.lugre_start
    found = lugre.options.values(problem.records[0], velocity=lugre.velocity, force=lugre.force)
    return {**{lugre.prefix + name: value for name, value in found.items()}, **given}


def _trials(study: Study, result: StudyResult, say: Teller) -> tuple[Trial, ...]:
    functions = result.problem.functions
    trials = []
    for source in study.validation:
        say(f"validating on {source.name}", None)
        path = result.files[source.name]
        record = load_record(study, source, path, functions, study.problem.measured)
        trials.append(Trial(source.name, record, try_record(study, result, source, record)))
    return tuple(trials)


def try_record(study: Study, result: StudyResult, source: RecordSource, record: Record) -> Validation:
    """Return how the result's parameters predict a record."""
    problem = result.problem
    initial = _numbers(
        source.initial, slot_units(problem.functions), f"{study.path.name}: record {source.name!r}: initial"
    )
    measured = tuple(name for name in study.problem.measured if name not in initial)
    return validate(
        problem.system,
        record,
        result.estimate,
        problem.residual,
        measured=measured,
        initial=initial,
        delayed=problem.delayed,
    )
