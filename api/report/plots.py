"""Plots of a report as SVG text."""

import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mechsmith.identification.method import Progress

Array = NDArray[numpy.float64]

MEASURED, PREDICTED, RESIDUAL, BAND = "#6b7280", "#1d4ed8", "#b45309", "#e5e7eb"
# Buckets into which a long signal is cut for drawing; each shows its smallest and largest value.
BUCKETS = 1200
LAGS = 100
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9ca3af",
    "axes.labelcolor": "#374151",
    "xtick.color": "#6b7280",
    "ytick.color": "#6b7280",
    "axes.grid": True,
    "grid.color": "#eef0f3",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
}


@dataclass(frozen=True, eq=False)
class Fit:
    """One output of one record, measured and predicted.

    Parameters
    ----------
    record, output, unit : str
        Which, and its unit.
    time : array
        s, shape (n,).
    measured, predicted : array
        Shape (n,).
    """

    record: str
    output: str
    unit: str
    time: Array
    measured: Array
    predicted: Array


def fit_plot(fit: Fit) -> str:
    """Return measured and predicted over time and their difference below; at the right, closer, where it is largest."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"fit {fit.record} {fit.output}"}):
        figure = Figure(figsize=(9.2, 3.9), layout="constrained")
        axes = figure.subplots(2, 2, sharex="col", height_ratios=(2.3, 1.0), width_ratios=(3.0, 1.0))
        for column, rows in ((0, slice(None)), (1, _worst(fit))):
            above, below = axes[:, column]
            time, measured, predicted = fit.time[rows], fit.measured[rows], fit.predicted[rows]
            above.plot(*_thinned(time, measured), color=MEASURED, linewidth=1.5, label="measured")
            above.plot(*_thinned(time, predicted), color=PREDICTED, linewidth=0.9, label="predicted")
            below.plot(*_thinned(time, predicted - measured), color=RESIDUAL, linewidth=0.7)
            below.axhline(0.0, color="#9ca3af", linewidth=0.7)
            below.set_xlabel("time / s")
        axes[0, 0].set_ylabel(_label(fit.output, fit.unit))
        axes[1, 0].set_ylabel("difference")
        axes[0, 0].legend(loc="upper right", ncols=2, borderaxespad=0.0, bbox_to_anchor=(1.0, 1.12))
        axes[0, 1].set_title("where it differs most", fontsize=9, color="#374151")
        figure.align_ylabels(axes[:, 0])
        return _svg(figure)


def _worst(fit: Fit) -> slice:
    """Return the twenty-fifth of the samples about the largest difference."""
    count = len(fit.time)
    width = max(count // 25, min(count, 50))
    middle = int(numpy.argmax(numpy.abs(fit.predicted - fit.measured)))
    start = min(max(middle - width // 2, 0), count - width)
    return slice(start, start + width)


def residual_plot(fit: Fit) -> str:
    """Return the autocorrelation and the distribution of the difference."""
    difference = fit.predicted - fit.measured
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"residual {fit.record} {fit.output}"}):
        figure = Figure(figsize=(9.2, 2.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(2.0, 1.0))
        _autocorrelation(left, difference)
        right.hist(difference, bins=50, color=RESIDUAL, alpha=0.75)
        right.set_xlabel(f"difference / {fit.unit or '1'}")
        right.set_ylabel("samples")
        return _svg(figure)


def _autocorrelation(axes: Axes, difference: Array) -> None:
    count = len(difference)
    lags = min(LAGS, count // 4)
    centred = difference - difference.mean()
    spectrum = numpy.fft.rfft(centred, 2 * count)
    covariance = numpy.fft.irfft(numpy.abs(spectrum) ** 2)[: lags + 1]
    correlation = covariance / covariance[0] if covariance[0] > 0.0 else numpy.zeros(lags + 1)
    # 95 % of the autocorrelations of white noise lie within 1.96 / sqrt(n) of zero
    limit = 1.96 / numpy.sqrt(count)
    axes.axhspan(-limit, limit, color=BAND, label="95 % of white noise")
    axes.vlines(numpy.arange(1, lags + 1), 0.0, correlation[1:], color=RESIDUAL, linewidth=1.2)
    axes.axhline(0.0, color="#9ca3af", linewidth=0.7)
    axes.set_xlabel("lag / samples")
    axes.set_ylabel("autocorrelation")
    axes.legend(loc="upper right")


def velocity_plot(
    velocity: tuple[str, str, Array], output: tuple[str, str], measured: Array, predicted: Array
) -> str:
    """Return an output over velocity, measured and predicted.

    Parameters
    ----------
    velocity : (name, unit, values)
        Values (n,).
    output : (name, unit)
        What stands on the other axis.
    measured, predicted : array
        Shape (n,).
    """
    name, unit, values = velocity
    step = max(1, len(values) // 4000)
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"velocity {name} {output[0]}"}):
        figure = Figure(figsize=(9.2, 3.2), layout="constrained")
        wide, near = figure.subplots(1, 2)
        fast = float(numpy.max(numpy.abs(values), initial=0.0))
        for axes, limit in ((wide, fast), (near, 0.1 * fast)):
            inside = numpy.flatnonzero(numpy.abs(values) <= limit)[:: step if axes is wide else 1]
            chosen = inside[:: max(1, len(inside) // 4000)]
            both = (("measured", measured, MEASURED, 5.0), ("predicted", predicted, PREDICTED, 1.2))
            for label, drawn, colour, size in both:
                axes.plot(
                    *(values[chosen], drawn[chosen]),
                    linestyle="none",
                    marker=".",
                    markersize=size,
                    markeredgewidth=0.0,
                    color=colour,
                    alpha=0.6 if label == "measured" else 1.0,
                    label=label,
                    rasterized=True,
                )
            axes.set_xlabel(_label(name, unit))
        wide.set_ylabel(_label(*output))
        near.set_title("near rest", fontsize=9, color="#374151")
        wide.legend(loc="lower right", markerscale=2)
        return _svg(figure)


def history_plot(stages: Sequence[tuple[str, Sequence[Progress]]]) -> str:
    """Return the residual norm over evaluations, for each method of a chain that has a history."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": "history"}):
        figure = Figure(figsize=(9.2, 2.4), layout="constrained")
        axes = figure.subplots()
        colours = ("#1d4ed8", "#b45309", "#047857", "#7c3aed")
        for number, (name, history) in enumerate(stages):
            starts = sorted({line.start for line in history})
            for start in starts:
                lines = [line for line in history if line.start == start]
                label = name if start == starts[0] else None
                xs, ys = [line.evaluation for line in lines], [line.norm for line in lines]
                axes.step(
                    xs, ys, where="post", color=colours[number % 4], linewidth=1.0, label=label, alpha=0.8
                )
        axes.set_yscale("log")
        axes.set_xlabel("evaluation, iteration or generation")
        axes.set_ylabel("residual norm")
        axes.legend(loc="upper right")
        return _svg(figure)


def _label(name: str, unit: str) -> str:
    return f"{name.replace('_', ' ')} / {unit or '1'}"


def _thinned(time: Array, values: Array) -> tuple[Array, Array]:
    """Return a signal with the extremes of each of `BUCKETS` stretches, which looks the same when drawn."""
    count = len(time)
    if count <= 2 * BUCKETS:
        return time, values
    edges = numpy.linspace(0, count, BUCKETS + 1).astype(int)
    chosen = set()
    for left, right in itertools.pairwise(edges):
        part = values[left:right]
        if numpy.isfinite(part).any():
            chosen |= {left + int(numpy.nanargmin(part)), left + int(numpy.nanargmax(part))}
    places = numpy.array(sorted({0, count - 1, *chosen}))
    return time[places], values[places]


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(
        buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), dpi=150
    )
    text = buffer.getvalue()
    # an inline SVG has no XML declaration and no document type
    return text[text.index("<svg") :]
