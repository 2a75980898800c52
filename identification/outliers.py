"""Samples that are far off the fit: put aside, so that they do not draw the estimate."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.method import Method
from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.record import Record

Array = NDArray[np.float64]
# A normal variable's standard deviation over its median absolute deviation.
SPREAD_OF_MEDIAN = 1.4826


class Cleaned(NamedTuple):
    """A problem without outliers, how many samples were put aside in each record, and the values it was judged with."""

    problem: Problem
    counts: tuple[int, ...]
    vector: Array


def without_outliers(
    problem: Problem, vector: Array, method: Method, *, threshold: float = 6.0, rounds: int = 40
) -> Cleaned:
    """Return the problem with measurements far off the fit replaced by the prediction, to be identified again.

    A replaced sample has no residual, so it no longer counts (Huber, *Robust Statistics*, 1981, section 7.8: pseudo-values, here
    with a cut at 0). The first fit is drawn by the outliers, so the farthest samples go first: each round puts aside what is beyond
    the threshold and a share of the largest residual, and solves again; where the same samples go twice the share is halved, down to 0.

    Parameters
    ----------
    problem : Problem
        Not decimated: a filter smears an outlier over its neighbours.
    vector : array
        Where to begin, shape (n,): the values of a first estimate.
    method : Method
        That solves each round from the last; `LeastSquares`, for instance.
    threshold : float
        In standard deviations, which come from the median absolute deviation; at 6 one good sample in 5e8 of normal noise goes.
    rounds : int
        At most.

    Raises
    ------
    ProblemError
        If the problem is decimated, or the threshold is below 3.
    """
    if problem.residual.decimation is not None:
        raise ProblemError("without_outliers: the residual is decimated. Clean the record first.")
    if not threshold >= 3.0:
        raise ProblemError(
            f"without_outliers: threshold is {threshold}, allowed is 3 or more: below it good samples go."
        )
    cleaned, share = problem, 0.5
    far = [np.zeros(measured.shape, dtype=bool) for measured in problem.measurements]
    for _ in range(rounds):
        found = [_far(problem, vector, k, threshold, share) for k in range(len(problem.records))]
        settled = all(np.array_equal(new, old) for new, old in zip(found, far, strict=True))
        if settled and share == 0.0:
            break
        # the same samples are far twice: the fit is no longer drawn by others, so the limit may come down
        share = (0.5 * share if share > 0.05 else 0.0) if settled else share
        far = found
        cleaned = _replaced(problem, vector, far, threshold)
        vector = method.solve(cleaned, vector, None).vector
    return Cleaned(cleaned, tuple(int(np.count_nonzero(one)) for one in far), vector)


def _far(problem: Problem, vector: Array, k: int, threshold: float, share: float) -> NDArray[np.bool_]:
    """Return which samples of a record are beyond the threshold and beyond a share of the largest residual, (n, outputs)."""
    residual = problem.record_residual(vector, k)
    away = np.abs(residual - np.median(residual, axis=0))
    deviation = SPREAD_OF_MEDIAN * np.median(away, axis=0)
    return np.asarray((away > threshold * deviation) & (away >= share * away.max(axis=0)))


def _replaced(problem: Problem, vector: Array, far: list[NDArray[np.bool_]], threshold: float) -> Problem:
    records = []
    for k, record in enumerate(problem.records):
        predicted, _ = problem.predicted(vector, k)
        columns = dict(record.columns)
        for i, column in enumerate(problem.comparison.columns):
            columns[column] = np.where(far[k][:, i], predicted[:, i], record[column])
        count = int(np.count_nonzero(far[k]))
        line = f"{count} outliers beyond {threshold:g} deviations replaced by the prediction"
        lines = (*record.provenance, line) if count else record.provenance
        records.append(Record(record.time, columns, record.units, record.source, lines))
    return replace(problem, records=tuple(records))
