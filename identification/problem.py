"""An identification problem: a system, records, what is free, and how the two are compared.

A problem knows no solver. It gives residuals and Jacobians of the free vector in physical units; `Problem.space`
maps that vector to the numbers of order 1 that solvers work on.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification import layout
from mechsmith.identification.comparison import Comparison, compare
from mechsmith.identification.constraints import Constraint, parse_constraint
from mechsmith.identification.layout import Arguments, ProblemError, Slot
from mechsmith.identification.norms import norm
from mechsmith.identification.record import Record
from mechsmith.identification.residuals import (
    EquationError,
    Prediction,
    Residual,
    functions_of,
)
from mechsmith.identification.scaling import Space, Transform, make_space

if TYPE_CHECKING:
    from mechsmith.codegen.simulator import Simulator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """What is known of a parameter beforehand: normal with a mean and a standard deviation, in its unit."""

    mean: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Parameters of a system to be found from records.

    The free vector holds, in the order of the system's parameters, then initial states, then dead time: one number for each
    shared parameter, and one for each record where a parameter belongs to the record. Initial states always do. With
    several records such a number is called ``offset[0]``, ``offset[1]``, ... after the record's place; an initial state
    ``x0:position``, a discrete one ``d0:memory``. Wherever a name is expected, ``offset`` stands for all of its records
    and the name of a vector for all of its elements.

    Parameters
    ----------
    system : FunctionSet or Simulator
        Functions for `EquationError`, a simulator for `OutputError`.
    records : tuple of Record
        With columns named as the inputs (and states, for `EquationError`) and the measured outputs.
    free : tuple of str
        Parameters and initial states to be found. May be empty for a prediction.
    residual : EquationError or OutputError
        How prediction and measurement are compared.
    per_record : tuple of str
        Parameters that have a value for each record.
    fixed : mapping of name to float
        Values of what is not free; nominal values fill the rest.
    bounds : mapping of name to (lower, upper)
        In place of the model's, for free names.
    transforms : mapping of name to Transform
        In place of `Log` for positive lower bounds and `Identity` else.
    constraints : tuple of Constraint or str
        Linear, for instance ``"Fs >= Fc"``; a name of a per-record parameter means each record's.
    measured : tuple of str
        Initial states, as ``x0:position``, which are the first value of the record's column of that state's name.
    delayed : tuple of str
        Columns that reach the system `dead_time` later than recorded; ``dead_time`` (s, from 0) may then be free, fixed and per record.
    priors : mapping of name to Prior
        Of free names; they need the residual's noise.

    Raises
    ------
    ProblemError
        If anything is unknown, contradictory or missing; it says what.
    """

    system: "FunctionSet | Simulator"
    records: tuple[Record, ...]
    free: tuple[str, ...]
    residual: Residual = field(default_factory=EquationError)
    per_record: tuple[str, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    constraints: tuple[Constraint | str, ...] = ()
    measured: tuple[str, ...] = ()
    delayed: tuple[str, ...] = ()
    priors: Mapping[str, Prior] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sequences = {"records": self.records, "free": self.free, "per_record": self.per_record}
        sequences |= {"constraints": self.constraints, "measured": self.measured, "delayed": self.delayed}
        for name, value in sequences.items():
            if isinstance(value, str | Record):
                raise ProblemError(
                    f"problem: {name} is one {type(value).__name__}, it must be a tuple: ({name},)."
                )
            object.__setattr__(self, name, tuple(value))
        for name in ("fixed", "bounds", "transforms", "priors"):
            object.__setattr__(self, name, dict(getattr(self, name)))
        parsed = tuple(parse_constraint(c) if isinstance(c, str) else c for c in self.constraints)
        object.__setattr__(self, "constraints", parsed)
        if not self.records:
            raise ProblemError("problem: there are no records. Give at least one.")
        self._check()

    def __getstate__(self) -> dict[str, Any]:
        # what is computed from the fields is not sent to workers: they compute it
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def _check(self) -> None:
        grouped, slots = self._groups, self._all_slots
        per_record = layout.expand_names(self.per_record, slots, grouped, "per_record")
        if states := sorted(name for name in per_record if name[:3] in ("x0:", "d0:")):
            raise ProblemError(
                f"problem: per_record names {states[0]!r}; initial states always belong to a record."
            )
        free = layout.expand_names(self.free, slots, grouped, "free")
        measured = layout.expand_names(self.measured, slots, grouped, "measured")
        fixed = set(self._fixed)
        for first, second, names in (("free", "fixed", free & fixed), ("free", "measured", free & measured)):
            if names:
                raise ProblemError(
                    f"problem: {min(names)!r} is both {first} and {second}. Take it out of one."
                )
        for what, mapping in (
            ("bounds", self.bounds),
            ("transforms", self.transforms),
            ("priors", self.priors),
        ):
            named = layout.expand_names(tuple(mapping), slots, grouped, what)
            if named - free:
                raise ProblemError(f"problem: {what} names {min(named - free)!r}, which is not free.")
        self._check_delay(free | fixed)
        if self.priors and not self.comparison.noise_given:
            raise ProblemError(
                "problem: priors weigh against the noise of the outputs: give noise to the residual."
            )
        for name, prior in self.priors.items():
            if not prior.deviation > 0.0:
                raise ProblemError(
                    f"problem: priors[{name!r}].deviation is {prior.deviation}; it must be positive."
                )
        _ = self._bases, self.space, self.constraint_rows, self.predictions

    def _check_delay(self, named: set[str]) -> None:
        known = {
            *self.functions.labels("u"),
            *(() if isinstance(self.system, FunctionSet) else self.system.samples),
        }
        for name in self.delayed:
            if name not in known:
                raise ProblemError(f"problem: delayed names {name!r}; inputs are {', '.join(sorted(known))}.")
        dead_time = any(slot.kind == "dead_time" and slot.name in named for slot in self._all_slots)
        if dead_time and not self.delayed:
            raise ProblemError(
                "problem: dead_time is given, but no column is delayed. Name them: delayed=(...,)."
            )

    # -- names and values -----------------------------------------------------------------------------------

    @property
    def functions(self) -> FunctionSet:
        """The functions of the system."""
        return functions_of(self.system)

    @cached_property
    def _groups(self) -> dict[str, tuple[str, ...]]:
        return layout.groups(self.functions)

    @cached_property
    def _all_slots(self) -> tuple[Slot, ...]:
        return layout.find_slots(self.functions, len(self.records), self.per_record)

    @cached_property
    def _fixed(self) -> dict[str, object]:
        return layout.expand_mapping(self.fixed, self._all_slots, self._groups, "fixed")

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What each element of the free vector is; bounds as overridden."""
        free = layout.expand_names(self.free, self._all_slots, self._groups, "free")
        bounds = layout.expand_mapping(self.bounds, self._all_slots, self._groups, "bounds")
        result = []
        for slot in self._all_slots:
            if slot.name in free:
                lower, upper = layout.check_bounds(slot, bounds.get(slot.name))
                result.append(dataclasses.replace(slot, lower=lower, upper=upper))
        return tuple(result)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free vector's elements."""
        return tuple(slot.name for slot in self.slots)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the free vector's elements."""
        return tuple(slot.unit for slot in self.slots)

    @cached_property
    def space(self) -> Space:
        """The map between the free vector and what solvers work on; it holds the bounds."""
        lower = np.array([slot.lower for slot in self.slots], dtype=float)
        upper = np.array([slot.upper for slot in self.slots], dtype=float)
        given = layout.expand_mapping(self.transforms, self._all_slots, self._groups, "transforms")
        transforms: list[Any] = [given.get(name) for name in self.names]
        return make_space(self.names, lower, upper, [slot.nominal for slot in self.slots], transforms)

    @cached_property
    def _bases(self) -> tuple[Arguments, ...]:
        """The arguments of every record, with zero for what is free."""
        measured = layout.expand_names(self.measured, self._all_slots, self._groups, "measured")
        free = set(self.names)
        sizes = {"parameter": "p", "state": "x", "discrete_state": "d"}
        bases = []
        for k in range(len(self.records)):
            flat = {kind: np.zeros(self.functions.size(argument)) for kind, argument in sizes.items()}
            flat["dead_time"] = np.zeros(1)
            for slot in self._all_slots:
                if slot.record in (None, k) and slot.name not in free:
                    flat[slot.kind][slot.index] = layout.known_value(
                        slot, self._fixed, measured, self.records
                    )
            bases.append(
                Arguments(
                    flat["parameter"], flat["state"], flat["discrete_state"], float(flat["dead_time"][0])
                )
            )
        return tuple(bases)

    def arguments(self, vector: Array, record: int) -> Arguments:
        """Return p, x0, d0 and dead time of a record for a free vector in physical units, shape (n,)."""
        base = self._bases[record]
        flat = {"parameter": base.p.copy(), "state": base.x0.copy(), "discrete_state": base.d0.copy()}
        flat["dead_time"] = np.array([base.dead_time])
        for slot, value in zip(self.slots, vector, strict=True):
            if slot.record in (None, record):
                flat[slot.kind][slot.index] = value
        return Arguments(
            flat["parameter"], flat["state"], flat["discrete_state"], float(flat["dead_time"][0])
        )

    def all_values(self, vector: Array) -> dict[str, float]:
        """Return every value by name: parameters, and initial states and dead time where they count."""
        kinds = {"parameter": "p", "state": "x0", "discrete_state": "d0"}
        result: dict[str, float] = {}
        for slot in self._all_slots:
            arguments = self.arguments(vector, slot.record or 0)
            if slot.kind == "dead_time":
                if self.delayed:
                    result[slot.name] = arguments.dead_time
            elif slot.kind == "parameter" or self.residual.simulates:
                result[slot.name] = float(getattr(arguments, kinds[slot.kind])[slot.index])
        return result

    def start_vector(self, start: Mapping[str, float] | None = None, *, required: bool = True) -> Array:
        """Return the free vector of named values; else nominal, measured or mid-box ones fill it, shape (n,).

        Parameters
        ----------
        start : mapping of name to float, optional
            Names of elements, or without the record's number for all records; names that are not free are passed over,
            so that the values of another problem can be given.
        required : bool
            Whether an element with neither value, nominal value nor finite bounds is an error; else it is 0 or its nearest bound.
        """
        given = dict(start or {})
        values, missing = [], []
        for slot in self.slots:
            numbered = given.get(f"{slot.base}[{slot.record}]", layout.default_start(slot, self.records))
            value = given.get(slot.name, given.get(slot.base, numbered))
            if value is None:
                missing.append(slot.name)
                value = 0.0
            values.append(min(max(float(value), slot.lower), slot.upper))
            if not np.isfinite(float(value)):
                raise ProblemError(f"problem: the start of {slot.name!r} is {value}. Give a finite number.")
        if missing and required:
            raise ProblemError(
                f"problem: no start for {', '.join(map(repr, missing))}: neither given, nor nominal, nor between finite bounds. "
                "Give start={name: value}, or bounds."
            )
        return np.array(values, dtype=float)

    # -- constraints and priors -----------------------------------------------------------------------------

    @cached_property
    def constraint_rows(self) -> tuple[Array, Array, Array]:
        """Constraints of the free vector: matrix (c, n), lower (c,) and upper (c,); fixed values are in the bounds."""
        constraints: list[Any] = list(self.constraints)
        values = self.all_values(np.zeros(len(self.slots)))
        return layout.constraint_rows(constraints, self._all_slots, self.names, values, len(self.records))

    @cached_property
    def prior_rows(self) -> tuple[NDArray[np.intp], Array, Array]:
        """Priors: places in the free vector, means and standard deviations."""
        priors = layout.expand_mapping(self.priors, self._all_slots, self._groups, "priors")
        chosen: list[tuple[int, Any]] = [(i, priors[n]) for i, n in enumerate(self.names) if n in priors]
        places = np.array([i for i, _ in chosen], dtype=np.intp)
        return places, np.array([p.mean for _, p in chosen]), np.array([p.deviation for _, p in chosen])

    # -- residuals ------------------------------------------------------------------------------------------

    @cached_property
    def comparison(self) -> Comparison:
        """Which outputs are compared with which columns."""
        return compare(self.functions, self.residual.outputs, self.residual.noise, self.records)

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """Every record, ready to be predicted."""
        delayed = frozenset(self.delayed)
        rows = self.comparison.rows
        return tuple(self.residual.prepare(self.system, record, rows, delayed) for record in self.records)

    @cached_property
    def measurements(self) -> tuple[Array, ...]:
        """The measured columns of every record as compared, (rows, outputs), in their units."""
        columns = self.comparison.columns
        return tuple(self.decimated(np.column_stack([record[c] for c in columns])) for record in self.records)

    def decimated(self, values: Array) -> Array:
        """Return columns, (n, k), filtered and decimated as the residual says."""
        decimation = self.residual.decimation
        return values if decimation is None else decimation.apply(values)

    def predicted(self, vector: Array, record: int) -> tuple[Array, str]:
        """Return the predicted columns of a record as compared, (rows, outputs), and a status, empty when fine."""
        outputs, status = self.predictions[record].outputs(self.arguments(vector, record))
        return self.decimated(outputs), status

    def record_residual(self, vector: Array, record: int) -> Array:
        """Return prediction minus measurement over noise of one record, (rows, outputs); NaN where a simulation failed."""
        return (self.predicted(vector, record)[0] - self.measurements[record]) / self.comparison.noise

    def record_linearised(self, vector: Array, record: int) -> tuple[Array, Array]:
        """Return `record_residual` and its exact derivative by the free vector, (rows, outputs, n), from one simulation."""
        dead_time = any(slot.kind == "dead_time" for slot in self.slots)
        found = self.predictions[record].sensitivities(self.arguments(vector, record), dead_time=dead_time)
        n, outputs = found.outputs.shape
        columns = np.zeros((n, outputs, len(self.slots) + 1))
        for j, slot in enumerate(self.slots):
            if slot.record not in (None, record):
                continue
            if slot.kind == "parameter":
                columns[:, :, j] = found.by_p[:, :, slot.index]
            elif slot.kind == "state":
                columns[:, :, j] = found.by_x0[:, :, slot.index]
            elif slot.kind == "dead_time":
                columns[:, :, j] = found.by_dead_time
            else:
                raise ProblemError(
                    f"problem: {slot.name!r}: there are no derivatives by a discrete initial state."
                )
        columns[:, :, -1] = found.outputs
        flat = self.decimated(columns.reshape(n, -1)).reshape(-1, outputs, len(self.slots) + 1)
        residual = (flat[:, :, -1] - self.measurements[record]) / self.comparison.noise
        return residual, flat[:, :, :-1] / self.comparison.noise[:, None]

    def data_residual(self, vector: Array) -> Array:
        """Return the residual of all records in turn, sample by sample, shape (m,), without priors."""
        parts = [self.record_residual(vector, k).reshape(-1) for k in range(len(self.records))]
        return np.concatenate(parts)

    def data_jacobian(self, vector: Array) -> Array:
        """Return the derivative of `data_residual`, exact, shape (m, n)."""
        n = len(self.slots)
        parts = [self.record_linearised(vector, k)[1].reshape(-1, n) for k in range(len(self.records))]
        return np.vstack(parts)

    def residual_vector(self, vector: Array) -> Array:
        """Return what least squares minimises: `data_residual`, then one row for each prior."""
        places, mean, deviation = self.prior_rows
        return np.concatenate([self.data_residual(vector), (np.asarray(vector)[places] - mean) / deviation])

    def jacobian(self, vector: Array) -> Array:
        """Return the derivative of `residual_vector`, exact, shape (m + priors, n)."""
        return self.linearised(vector)[1]

    def linearised(self, vector: Array) -> tuple[Array, Array]:
        """Return `residual_vector` and `jacobian` at once, from one simulation of each record."""
        places, mean, deviation = self.prior_rows
        parts = [self.record_linearised(vector, k) for k in range(len(self.records))]
        rows = np.zeros((len(places), len(self.slots)))
        rows[np.arange(len(places)), places] = 1.0 / deviation
        residuals = [residual.reshape(-1) for residual, _ in parts]
        jacobians = [jacobian.reshape(-1, len(self.slots)) for _, jacobian in parts]
        prior = (np.asarray(vector)[places] - mean) / deviation
        return np.concatenate([*residuals, prior]), np.vstack([*jacobians, rows])

    def norms(self, vectors: Array) -> Array:
        """Return the norm of the residual for k free vectors, (k, n) -> (k,); infinite where it is not finite."""
        vectors = np.atleast_2d(vectors)
        places, mean, deviation = self.prior_rows
        stacks = [(vectors[:, places] - mean) / deviation]
        for k, prediction in enumerate(self.predictions):
            outputs, _ = prediction.outputs_of_many([self.arguments(vector, k) for vector in vectors])
            compared = np.stack([self.decimated(each) for each in outputs])
            difference = (compared - self.measurements[k]) / self.comparison.noise
            stacks.append(difference.reshape(len(vectors), -1))
        return np.array([norm(row) for row in np.hstack(stacks)])


__all__ = ["Prior", "Problem", "ProblemError"]
