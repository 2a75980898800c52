"""What is compared with the measurement: outputs at every sample, or outputs of a simulation.

`EquationError` puts measured inputs and states into the outputs' equations; `OutputError` simulates from initial
states. Both are linear in the difference afterwards: filtered alike on both sides, divided by the noise.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from mechsmith.codegen.functions import FunctionSet, FunctionSetError
from mechsmith.identification.layout import Arguments, ProblemError
from mechsmith.identification.preprocessing import Decimation
from mechsmith.identification.record import Record
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

if TYPE_CHECKING:
    from mechsmith.codegen.simulator import Simulator

Array = NDArray[np.float64]
# Step of the difference by which a simulation is differentiated with respect to dead time, in sample periods.
DEAD_TIME_STEP = 0.01


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Predicted outputs of one record with their derivatives; n samples, before decimation.

    Parameters
    ----------
    outputs : array
        Shape (n, outputs).
    by_p, by_x0 : array
        Shape (n, outputs, parameters) and (n, outputs, states).
    by_dead_time : array
        Shape (n, outputs), per s.
    status : str
        Empty when fine, else the simulator's word.
    """

    outputs: Array
    by_p: Array
    by_x0: Array
    by_dead_time: Array
    status: str = ""


class Prediction(Protocol):
    """One record, ready to be predicted with any arguments."""

    def outputs(self, arguments: Arguments) -> tuple[Array, str]:
        """Return the predicted outputs (n, outputs) and a status, empty when fine."""

    def sensitivities(self, arguments: Arguments, *, dead_time: bool) -> Sensitivities:
        """Return outputs and exact derivatives; that by dead time only when asked for, else zeros."""

    def outputs_of_many(self, p: Array, arguments: Arguments) -> tuple[Array, tuple[str, ...]]:
        """Return the outputs (k, n, outputs) for k parameter vectors, and a status for each."""


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


class Residual(Protocol):
    """The kinds of residual: `EquationError` and `OutputError`."""

    @property
    def simulates(self) -> bool:
        """Whether initial states matter."""

    @property
    def outputs(self) -> Mapping[str, str] | None:
        """Columns by output."""

    @property
    def noise(self) -> Mapping[str, float]:
        """Standard deviations by output."""

    @property
    def decimation(self) -> Decimation | None:
        """The filter applied to both sides."""

    def prepare(
        self,
        system: "FunctionSet | Simulator",
        record: Record,
        rows: NDArray[np.intp],
        delayed: frozenset[str],
    ) -> Prediction:
        """Return the record ready for prediction of the outputs at `rows`; `delayed` columns come later."""


@dataclass(frozen=True)
class EquationError:
    """Outputs at every sample, of measured inputs and states, minus measured columns.

    Parameters
    ----------
    outputs : mapping of output to column, optional
        By default the outputs that have a column of their own name in every record.
    noise : mapping of output to float
        Standard deviation of the measured column, in its unit. Needed when outputs have different units, or with priors.
    decimation : Decimation, optional
        Applied to predicted and measured columns alike.
    """

    outputs: Mapping[str, str] | None = None
    noise: Mapping[str, float] = field(default_factory=dict)
    decimation: Decimation | None = None

    @property
    def simulates(self) -> bool:
        """False."""
        return False

    def prepare(
        self,
        system: "FunctionSet | Simulator",
        record: Record,
        rows: NDArray[np.intp],
        delayed: frozenset[str],
    ) -> Prediction:
        """Return the record ready for prediction."""
        functions = functions_of(system)
        if (
            not {"output_p", "output_u"} <= set(functions.functions)
            and "derivatives" in functions.capabilities
        ):
            functions = functions.with_jacobians(("output", "p"), ("output", "u"))
        return _Pointwise(functions, record, rows, delayed, _sampled_arguments(functions, record))


@dataclass(frozen=True)
class OutputError:
    """Simulated outputs minus measured columns.

    Parameters
    ----------
    outputs, noise, decimation
        As in `EquationError`.
    """

    outputs: Mapping[str, str] | None = None
    noise: Mapping[str, float] = field(default_factory=dict)
    decimation: Decimation | None = None

    @property
    def simulates(self) -> bool:
        """True."""
        return True

    def prepare(
        self,
        system: "FunctionSet | Simulator",
        record: Record,
        rows: NDArray[np.intp],
        delayed: frozenset[str],
    ) -> Prediction:
        """Return the record ready for simulation.

        Raises
        ------
        ProblemError
            If the system can't be simulated, or a column is missing.
        """
        if isinstance(system, FunctionSet):
            raise ProblemError(
                f"problem: OutputError needs a simulator, {system.name!r} is a FunctionSet. Discretise it first "
                "(mechsmith.codegen.discretise), or use EquationError for outputs without states."
            )
        samples = _columns(record, system.samples, f"the simulator of {system.functions.name!r}")
        return _Simulated(system, record, rows, delayed, samples)


def functions_of(system: "FunctionSet | Simulator") -> FunctionSet:
    """Return the functions of a system."""
    return system if isinstance(system, FunctionSet) else system.functions


def compare(functions: FunctionSet, residual: Residual, records: tuple[Record, ...]) -> Comparison:
    """Return which outputs are compared with which columns.

    Raises
    ------
    ProblemError
        If an output or column is missing, a noise is not positive, or units differ and no noise is given.
    """
    labels, all_units = functions.labels("y"), functions.units("y")
    chosen = residual.outputs
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
            _columns(record, (column,), f"output {output!r}")
    names = tuple(chosen)
    rows = np.array([labels.index(name) for name in names], dtype=np.intp)
    units = tuple(all_units[row] for row in rows)
    return Comparison(names, rows, tuple(chosen.values()), units, *_noise(residual, names, units))


def _noise(residual: Residual, names: tuple[str, ...], units: tuple[str, ...]) -> tuple[Array, bool]:
    for name, value in residual.noise.items():
        if name not in names:
            raise ProblemError(
                f"problem: residual: noise names {name!r}; compared outputs are {', '.join(names)}."
            )
        if not (math.isfinite(value) and value > 0.0):
            raise ProblemError(
                f"problem: residual: noise[{name!r}] is {value}; it must be positive and finite."
            )
    missing = [name for name in names if name not in residual.noise]
    if missing and (residual.noise or len(set(units)) > 1):
        raise ProblemError(
            f"problem: residual: no noise for {', '.join(missing)}. Outputs of different units can only be summed when each "
            "has a standard deviation: give noise={output: value} for all."
        )
    return np.array([float(residual.noise.get(name, 1.0)) for name in names]), not missing


def _columns(record: Record, names: tuple[str, ...], who: str) -> Array:
    """Return columns as (n, len(names))."""
    missing = [name for name in names if name not in record]
    if missing:
        raise ProblemError(
            f"problem: record {record.source!r} has no column {', '.join(map(repr, missing))}, which {who} needs. It has "
            f"{', '.join(record.columns)}. Rename a column (Record.rename) or compute it."
        )
    return np.column_stack([record[name] for name in names]) if names else np.zeros((len(record), 0))


def _sampled_arguments(functions: FunctionSet, record: Record) -> dict[str, Array]:
    """Return x, d, z, u from columns; what the outputs do not depend on is zero when there is no column."""
    sampled = {}
    for index, argument in enumerate(("x", "d", "z", "u")):
        needed = [True] * functions.size(argument)
        if "embeddable" in functions.capabilities and needed:
            sparsity = functions.casadi_function("output").jac_sparsity(0, index)
            needed = [bool(sparsity.colind()[i + 1] - sparsity.colind()[i]) for i in range(len(needed))]
        columns = []
        for label, wanted in zip(functions.labels(argument), needed, strict=True):
            if wanted or label in record:
                columns.append(_columns(record, (label,), f"EquationError on {functions.name!r}")[:, 0])
            else:
                columns.append(np.zeros(len(record)))
        sampled[argument] = np.column_stack(columns) if columns else np.zeros((1, 0))
    return sampled


def _delay(
    record: Record, names: tuple[str, ...], values: Array, delayed: frozenset[str], dead_time: float
) -> tuple[Array, Array]:
    """Return columns at time t - dead time, and their derivative by dead time; the first value holds before the record.

    Between samples a monotone cubic (PCHIP), continuous with its slope, so that the residual has a derivative.
    """
    shifted, slopes = values.copy(), np.zeros_like(values)
    at = record.time - dead_time
    before = at < record.time[0]
    for i, name in enumerate(names):
        if name in delayed and len(record) > 1:
            curve = PchipInterpolator(record.time, values[:, i])
            inner = np.clip(at, record.time[0], record.time[-1])
            shifted[:, i] = curve(inner)
            slopes[:, i] = np.where(before, 0.0, -curve(inner, 1))
    return shifted, slopes


@dataclass(frozen=True, eq=False)
class _Pointwise:
    functions: FunctionSet
    record: Record
    rows: NDArray[np.intp]
    delayed: frozenset[str]
    sampled: Mapping[str, Array]

    def _arguments(self, arguments: Arguments) -> tuple[tuple[Array, ...], Array]:
        u, slopes = self.sampled["u"], np.zeros_like(self.sampled["u"])
        if self.delayed:
            u, slopes = _delay(self.record, self.functions.labels("u"), u, self.delayed, arguments.dead_time)
        return (self.sampled["x"], self.sampled["d"], self.sampled["z"], u, arguments.p), slopes

    def _every(self, values: Array) -> Array:
        return np.broadcast_to(values, (len(self.record), *values.shape[1:]))

    def outputs(self, arguments: Arguments) -> tuple[Array, str]:
        at, _ = self._arguments(arguments)
        return self._every(self.functions.batch("output", *at))[:, self.rows, 0], ""

    def sensitivities(self, arguments: Arguments, *, dead_time: bool) -> Sensitivities:
        at, slopes = self._arguments(arguments)
        outputs = self._every(self.functions.batch("output", *at))[:, self.rows, 0]
        by_p = self._every(self.functions.batch("output_p", *at))[:, self.rows, :]
        by_dead_time = np.zeros_like(outputs)
        if dead_time:
            by_u = self._every(self.functions.batch("output_u", *at))[:, self.rows, :]
            by_dead_time = np.einsum("nyu,nu->ny", by_u, slopes)
        return Sensitivities(
            outputs, by_p, np.zeros((*outputs.shape, self.functions.size("x"))), by_dead_time
        )

    def outputs_of_many(self, p: Array, arguments: Arguments) -> tuple[Array, tuple[str, ...]]:
        one = [Arguments(row, arguments.x0, arguments.d0, arguments.dead_time) for row in p]
        return np.stack([self.outputs(each)[0] for each in one]), ("",) * len(p)


@dataclass(frozen=True, eq=False)
class _Simulated:
    simulator: "Simulator"
    record: Record
    rows: NDArray[np.intp]
    delayed: frozenset[str]
    samples: Array

    def _samples(self, dead_time: float) -> Array:
        if not self.delayed:
            return self.samples
        return _delay(self.record, self.simulator.samples, self.samples, self.delayed, dead_time)[0]

    def _outputs_at(self, arguments: Arguments, dead_time: float) -> tuple[Array, str]:
        samples = self._samples(dead_time)
        try:
            rollout = self.simulator.rollout(
                self.record.time, samples, arguments.x0, arguments.d0, arguments.p
            )
        except FunctionSetError as error:
            # an integrator refuses parameters at which it would diverge: to a solver that is a failed trial
            return self._failed(), str(error)
        return (self._failed() if rollout.status else rollout.outputs[:, self.rows]), rollout.status

    def _failed(self) -> Array:
        return np.full((len(self.record), len(self.rows)), np.nan)

    def outputs(self, arguments: Arguments) -> tuple[Array, str]:
        return self._outputs_at(arguments, arguments.dead_time)

    def sensitivities(self, arguments: Arguments, *, dead_time: bool) -> Sensitivities:
        samples = self._samples(arguments.dead_time)
        try:
            rollout = self.simulator.rollout_sensitivities(
                self.record.time, samples, arguments.x0, arguments.d0, arguments.p
            )
        except FunctionSetError as error:
            failed, functions = self._failed(), self.simulator.functions
            by_p, by_x0 = (
                np.full((*failed.shape, functions.size(argument)), np.nan) for argument in ("p", "x")
            )
            return Sensitivities(failed, by_p, by_x0, failed, str(error))
        outputs = self._failed() if rollout.status else rollout.outputs[:, self.rows]
        by_dead_time = np.zeros_like(outputs)
        if dead_time:
            step = DEAD_TIME_STEP * self.record.sample_period
            later, _ = self._outputs_at(arguments, arguments.dead_time + step)
            earlier, _ = self._outputs_at(arguments, arguments.dead_time - step)
            by_dead_time = (later - earlier) / (2.0 * step)
        by_p, by_x0 = rollout.by_parameters[:, self.rows, :], rollout.by_initial_state[:, self.rows, :]
        return Sensitivities(outputs, by_p, by_x0, by_dead_time, rollout.status)

    def outputs_of_many(self, p: Array, arguments: Arguments) -> tuple[Array, tuple[str, ...]]:
        samples = self._samples(arguments.dead_time)
        try:
            outputs, statuses = self.simulator.rollout_batch(
                self.record.time, samples, arguments.x0, arguments.d0, p
            )
        except FunctionSetError:
            # one refused vector refuses the batch, so the others are tried one by one
            one = [self.outputs(Arguments(row, arguments.x0, arguments.d0, arguments.dead_time)) for row in p]
            return np.stack([each[0] for each in one]), tuple(each[1] for each in one)
        chosen = np.array(outputs)[:, :, self.rows]
        chosen[[bool(status) for status in statuses]] = np.nan
        return chosen, tuple(statuses)
