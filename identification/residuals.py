"""What is compared with the measurement: outputs at every sample, or outputs of a simulation.

`EquationError` puts measured inputs and states into the outputs' equations; `OutputError` simulates from initial
states. Both are linear in the difference afterwards: filtered alike on both sides, divided by the noise.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from mechsmith.codegen.functions import FunctionSet, FunctionSetError
from mechsmith.identification.comparison import record_columns
from mechsmith.identification.consistency import integral_mismatch
from mechsmith.identification.layout import Arguments, ProblemError
from mechsmith.identification.preprocessing import Decimation
from mechsmith.identification.record import Record
from mechsmith.identification.record_checks import RecordWarning

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

    def outputs_of_many(self, many: Sequence[Arguments]) -> tuple[Array, tuple[str, ...]]:
        """Return the outputs (k, n, outputs) for k arguments, and a status for each."""


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
        return _Pointwise(functions, record, rows, delayed, _sampled_arguments(functions, record, rows))


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
        samples = record_columns(record, system.samples, f"the simulator of {system.functions.name!r}")
        check_integrals(record, system)
        return _Simulated(system, record, rows, delayed, samples)


def check_integrals(record: Record, system: "Simulator") -> None:
    """Raise `ProblemError` where a column and its logged integral differ by a factor of units or a sign, and warn of any other.

    Both go into the reconstruction between samples: a simulation would follow neither.
    """
    for rate, variable in system.functions.integrals:
        if variable.name not in system.samples:
            continue
        mismatch = integral_mismatch(record, rate, variable.name)
        if mismatch is not None and mismatch.cause:
            raise ProblemError(f"problem: record {record.source!r}: {mismatch.message}")
        if mismatch is not None:
            warnings.warn(f"record {record.source!r}: {mismatch.message}", RecordWarning, stacklevel=2)


def functions_of(system: "FunctionSet | Simulator") -> FunctionSet:
    """Return the functions of a system."""
    return system if isinstance(system, FunctionSet) else system.functions


def _sampled_arguments(functions: FunctionSet, record: Record, rows: NDArray[np.intp]) -> dict[str, Array]:
    """Return x, d, z, u from columns; what the outputs at `rows` do not depend on is zero when there is no column."""
    sampled = {}
    for index, argument in enumerate(("x", "d", "z", "u")):
        needed = [True] * functions.size(argument)
        if "embeddable" in functions.capabilities and needed:
            pattern = np.array(functions.casadi_function("output").jac_sparsity(0, index), dtype=bool)
            needed = [bool(column.any()) for column in pattern[rows].T]
        columns = []
        for label, wanted in zip(functions.labels(argument), needed, strict=True):
            if wanted or label in record:
                columns.append(record_columns(record, (label,), f"EquationError on {functions.name!r}")[:, 0])
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

    def outputs_of_many(self, many: Sequence[Arguments]) -> tuple[Array, tuple[str, ...]]:
        return _one_by_one(self, many)


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

    def outputs_of_many(self, many: Sequence[Arguments]) -> tuple[Array, tuple[str, ...]]:
        first = many[0]
        alike = all(each.dead_time == first.dead_time and np.array_equal(each.d0, first.d0) for each in many)
        if not alike:
            return _one_by_one(self, many)
        p, x0 = np.stack([each.p for each in many]), np.stack([each.x0 for each in many])
        try:
            outputs, statuses = self.simulator.rollout_batch(
                self.record.time, self._samples(first.dead_time), x0, first.d0, p
            )
        except FunctionSetError:
            # one refused vector refuses the batch, so they are tried one by one
            return _one_by_one(self, many)
        chosen = np.array(outputs)[:, :, self.rows]
        chosen[[bool(status) for status in statuses]] = np.nan
        return chosen, tuple(statuses)


def _one_by_one(
    prediction: "_Pointwise | _Simulated", many: Sequence[Arguments]
) -> tuple[Array, tuple[str, ...]]:
    found = [prediction.outputs(each) for each in many]
    return np.stack([outputs for outputs, _ in found]), tuple(status for _, status in found)
