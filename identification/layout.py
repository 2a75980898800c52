"""Which numbers make up the free vector of a problem, and where each of them goes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet, Variable
from mechsmith.identification.constraints import Constraint
from mechsmith.identification.record import Record

Array = NDArray[np.float64]
Kind = Literal["parameter", "state", "discrete_state", "dead_time"]
DEAD_TIME = "dead_time"
PREFIX: Mapping[Kind, str] = {"parameter": "", "state": "x0:", "discrete_state": "d0:", "dead_time": ""}
ARGUMENT: Mapping[Kind, str] = {"parameter": "p", "state": "x", "discrete_state": "d"}


class ProblemError(ValueError):
    """A problem that is not well posed. The message names the field, what was got and what to do."""


@dataclass(frozen=True)
class Slot:
    """One number that a problem may set: free, fixed, measured or nominal.

    Parameters
    ----------
    name : str
        ``mass``; ``offset[1]`` for record 1 (from 0) where there are several; ``x0:position[1]`` for an initial state.
    base : str
        The name without the record.
    kind : str
        What it is.
    index : int
        Its place in p, x or d.
    record : int, optional
        The record it belongs to; None when all share it.
    unit, lower, upper, nominal
        Of the quantity, in SI.
    """

    name: str
    base: str
    kind: Kind
    index: int
    record: int | None
    unit: str
    lower: float
    upper: float
    nominal: float | None


@dataclass(frozen=True, eq=False)
class Arguments:
    """What one record is evaluated with.

    Parameters
    ----------
    p, x0, d0 : array
        Parameters and initial states, flat.
    dead_time : float
        s.
    """

    p: Array
    x0: Array
    d0: Array
    dead_time: float


def find_slots(functions: FunctionSet, count: int, per_record: Sequence[str]) -> tuple[Slot, ...]:
    """Return every number that a problem with `count` records may set, in the order of p, x, d, dead time."""
    slots: list[Slot] = []
    whole = {label for v in functions.parameters if v.name in per_record for label in v.labels}
    for kind in ("parameter", "state", "discrete_state"):
        for index, (label, variable, unit) in enumerate(_elements(functions, ARGUMENT[kind])):
            base = PREFIX[kind] + label
            each = kind != "parameter" or label in per_record or label in whole
            slots += _copies(base, kind, index, variable, unit, count if each else None)
    delay = Variable(DEAD_TIME, ("s",), lower=0.0, nominal=0.0)
    if DEAD_TIME not in functions.labels("p"):
        slots += _copies(DEAD_TIME, "dead_time", 0, delay, "s", count if DEAD_TIME in per_record else None)
    return tuple(slots)


def _elements(functions: FunctionSet, argument: str) -> list[tuple[str, Variable, str]]:
    return [
        (label, variable, unit)
        for variable in functions.variables(argument)
        for label, unit in zip(variable.labels, variable.unit, strict=True)
    ]


def _copies(
    base: str, kind: Kind, index: int, variable: Variable, unit: str, count: int | None
) -> list[Slot]:
    nominal = variable.nominal
    if nominal is None and kind in ("state", "discrete_state"):
        nominal = 0.0

    def slot(name: str, record: int | None) -> Slot:
        return Slot(name, base, kind, index, record, unit, variable.lower, variable.upper, nominal)

    if count is None:
        return [slot(base, None)]
    return [slot(base, 0)] if count == 1 else [slot(f"{base}[{k}]", k) for k in range(count)]


def groups(functions: FunctionSet) -> dict[str, tuple[str, ...]]:
    """Return, for the name of each quantity with a shape, the names of its elements."""
    result: dict[str, tuple[str, ...]] = {}
    for kind, argument in ARGUMENT.items():
        for variable in functions.variables(argument):
            if variable.shape:
                prefix = PREFIX[kind]
                result[prefix + variable.name] = tuple(prefix + label for label in variable.labels)
    return result


def expand_names(
    names: Sequence[str], slots: Sequence[Slot], grouped: Mapping[str, tuple[str, ...]], field: str
) -> set[str]:
    """Return the slot names that names stand for: a slot, all records of a base, all elements of a quantity."""
    by_name: dict[str, set[str]] = {}
    for slot in slots:
        by_name.setdefault(slot.name, set()).add(slot.name)
        by_name.setdefault(slot.base, set()).add(slot.name)
    chosen: set[str] = set()
    for name in names:
        members = grouped.get(name, (name,))
        if any(member not in by_name for member in members):
            known = ", ".join(dict.fromkeys(slot.base for slot in slots))
            raise ProblemError(f"problem: {field}: there is no {name!r}. There are: {known}.")
        for member in members:
            chosen |= by_name[member]
    return chosen


def expand_mapping(
    values: Mapping[str, object], slots: Sequence[Slot], grouped: Mapping[str, tuple[str, ...]], field: str
) -> dict[str, object]:
    """Return a mapping by slot name; a more special name (one record, one element) overrides a general one."""
    result: dict[str, object] = {}
    special: dict[str, object] = {}
    for name, value in values.items():
        members = expand_names((name,), slots, grouped, field)
        if name in grouped and isinstance(value, list | tuple | np.ndarray) and field == "fixed":
            result |= _spread(name, value, slots, grouped)
            continue
        (special if name in members else result).update(dict.fromkeys(members, value))
    return result | special


def _spread(
    name: str, value: object, slots: Sequence[Slot], grouped: Mapping[str, tuple[str, ...]]
) -> dict[str, object]:
    flat = np.asarray(value, dtype=float).reshape(-1)
    if flat.size != len(grouped[name]):
        raise ProblemError(f"problem: fixed[{name!r}] has {flat.size} values, it needs {len(grouped[name])}.")
    by_base = dict(zip(grouped[name], flat, strict=True))
    return {slot.name: float(by_base[slot.base]) for slot in slots if slot.base in by_base}


def known_value(
    slot: Slot, fixed: Mapping[str, object], measured: set[str], records: Sequence[Record]
) -> float:
    """Return the value of a slot that is not free.

    Raises
    ------
    ProblemError
        If it is neither fixed, measured nor nominal.
    """
    if slot.name in fixed:
        value = float(fixed[slot.name])  # type: ignore[arg-type]
        if not slot.lower <= value <= slot.upper:
            raise ProblemError(
                f"problem: fixed[{slot.name!r}] is {value}, allowed is {slot.lower} to {slot.upper}. Fix it within its bounds."
            )
        return value
    if slot.name in measured and slot.record is not None:
        column = slot.base.split(":", 1)[1]
        record = records[slot.record]
        if column not in record:
            raise ProblemError(
                f"problem: measured: record {record.source!r} has no column {column!r} to begin with. It has "
                f"{list(record.columns)}. Rename a column, or make the initial state free or fixed."
            )
        return float(record[column][0])
    if slot.nominal is None:
        raise ProblemError(
            f"problem: parameter {slot.name!r} is neither free nor fixed, and has no nominal value. "
            f"Name it in free, or give fixed={{{slot.name!r}: value}}."
        )
    return slot.nominal


def default_start(slot: Slot, records: Sequence[Record]) -> float | None:
    """Return where a free slot starts when nothing is given: measured, nominal, or amid finite bounds; else None."""
    if slot.kind == "state" and slot.record is not None:
        column = slot.base.split(":", 1)[1]
        if column in records[slot.record]:
            return float(records[slot.record][column][0])
    if slot.nominal is not None:
        return slot.nominal
    if math.isfinite(slot.upper - slot.lower):
        return math.sqrt(slot.lower * slot.upper) if slot.lower > 0.0 else 0.5 * (slot.lower + slot.upper)
    return None


def check_bounds(slot: Slot, bounds: object) -> tuple[float, float]:
    """Return the bounds of a free slot, overridden where given."""
    try:
        lower, upper = (slot.lower, slot.upper) if bounds is None else map(float, bounds)  # type: ignore[call-overload]
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"problem: bounds[{slot.name!r}] is {bounds!r}, it must be (lower, upper)."
        ) from error
    if math.isnan(lower) or math.isnan(upper) or not lower < upper:
        raise ProblemError(
            f"problem: bounds of {slot.name!r} are ({lower}, {upper}); lower must be below upper. To hold it, fix it."
        )
    return lower, upper


def constraint_rows(
    constraints: Sequence[Constraint],
    slots: Sequence[Slot],
    free: tuple[str, ...],
    values: Mapping[str, float],
    count: int,
) -> tuple[Array, Array, Array]:
    """Return constraints as a matrix (c, n) on the free vector, and lower and upper bounds (c,).

    What is not free goes with its value into the bounds. A constraint on a per-record parameter is one for each record.
    """
    rows: list[Array] = []
    limits: list[tuple[float, float]] = []
    record_of = {slot.name: slot.record for slot in slots}
    for constraint in constraints:
        terms = [
            (expand_names((name,), slots, {}, "constraints"), factor)
            for name, factor in constraint.coefficients.items()
        ]
        each = any(len(members) > 1 for members, _ in terms)
        for k in range(count if each else 1):
            row, constant = np.zeros(len(free)), 0.0
            for members, factor in terms:
                name = next(m for m in members if len(members) == 1 or record_of[m] == k)
                if name in free:
                    row[free.index(name)] += factor
                else:
                    constant += factor * values.get(name, 0.0)
            if not row.any():
                raise ProblemError(f"problem: constraint {constraint} holds no free parameter. Take it out.")
            rows.append(row)
            limits.append((constraint.lower - constant, constraint.upper - constant))
    pairs = np.array(limits, dtype=float).reshape(len(rows), 2)
    return np.array(rows, dtype=float).reshape(len(rows), len(free)), pairs[:, 0], pairs[:, 1]
