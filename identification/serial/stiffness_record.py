"""Records of stiffness experiments: one sample for each gauge reading, at a pose and under a load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.record import Record

Array = NDArray[np.float64]
READING, AFTER = "loaded_reading", "unloaded_reading"


class StiffnessError(ValueError):
    """An experiment that does not fit the model, or can't be evaluated; the message says what to do."""


@dataclass(frozen=True)
class Gauge:
    """A dial gauge on the flange.

    Parameters
    ----------
    point : tuple of float
        Where it touches, m, flange axes.
    direction : tuple of float
        Unit vector along which it measures, flange axes.
    """

    point: tuple[float, float, float]
    direction: tuple[float, float, float]

    def __post_init__(self) -> None:
        length = float(np.linalg.norm(self.direction))
        if abs(length - 1.0) > 1e-6:  # directions are written with six digits or more
            raise StiffnessError(
                f"gauge at {self.point}: its direction has the length {length:g}. Give a unit vector."
            )


def gauges_along_flange(point: tuple[float, float, float]) -> tuple[Gauge, Gauge, Gauge]:
    """Return three gauges at one point, along the flange's x, y and z axes."""
    return (
        Gauge(point, (1.0, 0.0, 0.0)),
        Gauge(point, (0.0, 1.0, 0.0)),
        Gauge(point, (0.0, 0.0, 1.0)),
    )


def gauge_record(
    positions: ArrayLike,
    load: Mapping[str, ArrayLike],
    gauges: Sequence[Gauge],
    *,
    loaded: ArrayLike | None = None,
    unloaded: ArrayLike | None = None,
    units: Sequence[str] = (),
    source: str = "arrays",
) -> Record:
    """Return the record of an experiment, or of its plan when there are no readings yet.

    Parameters
    ----------
    positions : array
        Joint positions by condition, (n, joints), in `units`.
    load : mapping of name to array
        Inputs of the model by condition, (n,): ``pulley_x``... (m) and ``mass`` (kg), or ``force_x``... (N) and
        ``moment_x``... (N m).
    gauges : sequence of Gauge
        The same in every condition.
    loaded, unloaded : array, optional
        Readings in m, (n, gauges) or (n, repeats, gauges): under the load, and after unloading.
    units : sequence of str
        Of the joints; rad when not given, m for prismatic ones.
    source : str
        Of the record.

    Returns
    -------
    Record
        One sample for each reading, in the order of conditions, repeats and gauges; its time counts them.

    Raises
    ------
    StiffnessError
        If shapes do not agree.
    """
    poses = np.atleast_2d(np.asarray(positions, dtype=float))
    given = ((READING, loaded), (AFTER, unloaded))
    readings = {
        name: _readings(values, len(poses), len(gauges), name) for name, values in given if values is not None
    }
    shapes = {values.shape for values in readings.values()}
    if len(shapes) > 1:
        raise StiffnessError(
            f"stiffness record: loaded and unloaded readings have the shapes {sorted(shapes)}."
        )
    repeats = next(iter(shapes))[1] if shapes else 1
    each = repeats * len(gauges)
    joint_units = tuple(units) or ("rad",) * poses.shape[1]
    if len(joint_units) != poses.shape[1]:
        raise StiffnessError(
            f"stiffness record: {len(joint_units)} units for {poses.shape[1]} joints. Give one for each."
        )
    columns = {
        f"q_{i + 1}": (np.repeat(column, each), unit)
        for i, (column, unit) in enumerate(zip(poses.T, joint_units, strict=True))
    }
    for name, values in load.items():
        array = np.broadcast_to(np.asarray(values, dtype=float), (len(poses),))
        columns[name] = (np.repeat(array, each), _unit(name))
    for i, axis in enumerate("xyz"):
        for name, unit in (("point", "m"), ("direction", "")):
            column = np.tile([getattr(gauge, name)[i] for gauge in gauges], len(poses) * repeats)
            columns[f"{'measured' if name == 'point' else name}_{axis}"] = (column, unit)
    columns |= {name: (values.reshape(-1), "m") for name, values in readings.items()}
    count = len(poses) * each
    return Record.from_arrays(np.arange(count, dtype=float), columns, source=source)


def _unit(name: str) -> str:
    units = {"pulley": "m", "mass": "kg", "force": "N", "moment": "N*m"}
    kind = name.split("_")[0]
    if kind not in units:
        raise StiffnessError(
            f"stiffness record: load {name!r} is none of {', '.join(units)} (with _x, _y, _z)."
        )
    return units[kind]


def _readings(values: ArrayLike, conditions: int, gauges: int, what: str) -> Array:
    array = np.asarray(values, dtype=float)
    array = array[:, None, :] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[0] != conditions or array.shape[2] != gauges:
        raise StiffnessError(
            f"stiffness record: {what} has shape {np.shape(values)}. It must be ({conditions}, {gauges}) or "
            f"({conditions}, repeats, {gauges}): conditions, repeats, gauges."
        )
    return array


@dataclass(frozen=True, eq=False)
class Regressor:
    """What readings are made of: ``reading = matrix @ compliances + unloaded reading``.

    Parameters
    ----------
    names : tuple of str
        ``compliance_1`` and so on, one for each column.
    matrix : array
        (readings, joints), m per unit of compliance.
    torques : array
        (readings, joints), N m, by the load.
    """

    names: tuple[str, ...]
    matrix: Array
    torques: Array


def stiffness_regressor(
    functions: FunctionSet, record: Record, *, parameters: Mapping[str, float] | None = None
) -> Regressor:
    """Return the regressor of a gauge model at the readings of a record.

    Parameters
    ----------
    functions : FunctionSet
        Of `make_gauge`, with derivatives; ``output_p`` is added where it is missing.
    record : Record
        As `gauge_record` makes it.
    parameters : mapping of name to float, optional
        Geometry, for instance ``loaded_y``; nominal values fill the rest.

    Raises
    ------
    StiffnessError
        If the record lacks an input of the functions, or a value is not finite.
    """
    labels = functions.labels("y")
    if READING not in labels:
        raise StiffnessError(
            f"functions {functions.name!r}: there is no output {READING!r}. Use a gauge model, made by make_gauge."
        )
    functions = functions.with_jacobians(("output", "p"))
    inputs = functions.labels("u")
    missing = [name for name in inputs if name not in record.columns and name != AFTER]
    if missing:
        raise StiffnessError(
            f"record {record.source!r}: no column {', '.join(missing)}, which {functions.name!r} needs. "
            f"It has: {', '.join(record.columns)}."
        )
    zeros = np.zeros(len(record.time))
    points = np.column_stack([record.columns[n] if n != AFTER else zeros for n in inputs])
    p = functions.vector("p", parameters)
    names = tuple(name for name in functions.labels("p") if name.startswith("compliance_"))
    slopes = functions.batch("output_p", u=points, p=p)[:, labels.index(READING), :]
    matrix = slopes[:, [functions.labels("p").index(name) for name in names]]
    outputs = functions.batch("output", u=points, p=p)[:, :, 0]
    torques = outputs[:, [labels.index(name.replace("compliance", "torque")) for name in names]]
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        raise StiffnessError(
            f"record {record.source!r}: the regressor of reading {int(bad[0])} (from 0) is not finite. "
            "Is its pulley at the loaded point?"
        )
    return Regressor(names, matrix, torques)
