"""The plots that people expect of friction: over velocity, over travel, and what is left over time."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mechsmith.identification.friction.shape_regressions import Windows, starts_from_rest
from mechsmith.identification.record import Record

Array = NDArray[np.float64]
Predictions = Mapping[str, Array]


def plot_over_velocity(
    record: Record,
    predictions: Predictions,
    *,
    velocity: str = "velocity",
    force: str = "force",
    windows: Windows | None = None,
) -> Figure:
    """Return friction over velocity, whole and around the Stribeck peak.

    Parameters
    ----------
    record : Record
        With the measured friction.
    predictions : mapping of name to array (n,)
        Friction by way.
    velocity, force : str
        Columns.
    windows : Windows, optional
        The right axes end at its sliding velocity.
    """
    window = (windows or Windows()).sliding_velocity
    figure = Figure(figsize=(10.0, 4.0), layout="constrained")
    whole, peak = figure.subplots(1, 2)
    v, near = record[velocity], np.abs(record[velocity]) < window
    for axes, chosen in ((whole, np.ones(len(v), dtype=bool)), (peak, near)):
        axes.plot(v[chosen], record[force][chosen], ".", color="0.6", markersize=2, label="measured")
        for name, values in predictions.items():
            axes.plot(v[chosen], values[chosen], linewidth=1, label=name)
        axes.set_xlabel(f"velocity ({record.units[velocity]})")
        axes.set_ylabel(f"friction ({record.units[force]})")
        axes.grid(visible=True, linewidth=0.3)
    peak.set_title("around the Stribeck peak")
    whole.legend()
    return figure


def plot_hysteresis(
    record: Record,
    predictions: Predictions,
    *,
    position: str = "position",
    velocity: str = "velocity",
    force: str = "force",
    travel: float = 1e-4,
) -> Figure:
    """Return the friction over the travel from each start from rest: the branches of the hysteresis loop.

    Parameters
    ----------
    record : Record
        With position, velocity and the measured friction.
    predictions : mapping of name to array (n,)
        Friction by way.
    position, velocity, force : str
        Columns.
    travel : float
        How far each branch is followed; rad or m.
    """
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    q = record[position]
    first = True
    for start in starts_from_rest(record[velocity], np.inf):
        away = np.abs(q - q[start.rest])
        ends = np.flatnonzero(away[start.rest :] > travel)
        branch = slice(start.rest, start.rest + int(ends[0]) if len(ends) else len(q))
        x = q[branch] - q[start.rest]
        axes.plot(x, record[force][branch], ".", color="0.6", label="measured" if first else None)
        for number, (name, values) in enumerate(predictions.items()):
            axes.plot(x, values[branch], color=f"C{number}", linewidth=1, label=name if first else None)
        first = False
    axes.ticklabel_format(axis="x", style="scientific", scilimits=(-2, 2))
    axes.set_xlabel(f"travel from rest ({record.units[position]})")
    axes.set_ylabel(f"friction ({record.units[force]})")
    axes.grid(visible=True, linewidth=0.3)
    axes.legend()
    return figure


def plot_residuals(record: Record, predictions: Predictions, *, force: str = "force") -> Figure:
    """Return predicted minus measured friction over time, one axes for each way.

    Parameters
    ----------
    record : Record
        With the measured friction.
    predictions : mapping of name to array (n,)
        Friction by way.
    force : str
        Its column.
    """
    figure = Figure(figsize=(8.0, 1.2 + 1.6 * len(predictions)), layout="constrained")
    rows = figure.subplots(len(predictions), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, values) in zip(rows, predictions.items(), strict=True):
        axes.plot(record.time, values - record[force], linewidth=0.8)
        axes.set_title(name, loc="left", fontsize="small")
        axes.set_ylabel(f"residual ({record.units[force]})")
        axes.grid(visible=True, linewidth=0.3)
    rows[-1].set_xlabel("time (s)")
    return figure
