"""Closed-form values of the LuGre parameters from one record: a start for least squares, not an estimate.

Equations are numbered as in the source of `mechsmith.symbolic.friction.lugre`, in their corrected form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.friction.shape_regressions import (
    coulomb_viscous,
    sliding_regression,
    stribeck_shape,
)
from mechsmith.identification.method import Method, MethodError, Solution
from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.record import Record

Array = NDArray[np.float64]

SAMPLES_IN_START = 4  # the least that the presliding regression uses of one start
NAMES = ("s0", "s1", "a0", "a1", "v0", "vd", "a2", "a3")
HARDLY_DECAYING = 50.0  # vd over v0 at which s1(v) is constant wherever bristles move
WORSE = 1e-9  # relative: by how much a norm may exceed another by rounding
T = TypeVar("T")
FRESH_SHARE = 0.2  # least e^{-c}: below it the bristles are bent already and a start tells nothing of s0


@dataclass(frozen=True)
class LugreStart:
    """Where the closed forms look, and how (16) is truncated.

    Parameters
    ----------
    sliding_velocity : float
        Above it (17) is fitted, below it the peak (11); rad/s or m/s.
    presliding_velocity : float
        Up to it after each start from rest (16) is fitted.
    presliding_share : float
        Also only while the friction has moved by less than this share of a0 + a1: (16) is of first order.
    damping_decay : float
        vd as a multiple of v0; nothing short of least squares tells it.
    damping_time : float
        s1 / s0 where noise hides the damping, s.
    """

    sliding_velocity: float = 3.0 * np.pi / 180.0
    presliding_velocity: float = 1e-3
    presliding_share: float = 0.3
    damping_decay: float = 5.0
    damping_time: float = 3e-3

    def values(self, record: Record, *, velocity: str = "velocity", force: str = "force") -> dict[str, float]:
        """Return s0, s1, a0, a1, v0, vd, a2 and a3.

        Parameters
        ----------
        record : Record
            With a commanded or well measured velocity, and the friction.
        velocity, force : str
            Names of its columns.

        Raises
        ------
        ProblemError
            If the record has too few samples that slide, slow down, or start from rest after a rest or reversal.
        """
        v, friction = record[velocity], record[force]
        time = record.time
        a0, a2, a3 = sliding_regression(v, friction, self.sliding_velocity)
        excess = friction - coulomb_viscous(v, a0, a2, a3)
        a1, v0 = stribeck_shape(v, np.gradient(v, time), excess, self.sliding_velocity)
        s0, s1 = self._presliding(time, v, friction, a0 + a1)
        return {
            "s0": s0,
            "s1": s1,
            "a0": a0,
            "a1": a1,
            "v0": v0,
            "vd": self.damping_decay * v0,
            "a2": a2,
            "a3": a3,
        }

    def _presliding(self, time: Array, v: Array, friction: Array, breakaway: float) -> tuple[float, float]:
        """Return s0 and s1 by (16) over all starts from rest, each with its e^{-c} from the friction at rest."""
        rows, targets = [], []
        for begin in np.flatnonzero((v[:-1] == 0.0) & (v[1:] != 0.0)):
            direction = np.sign(v[begin + 1])
            fresh = 1.0 - direction * friction[begin] / breakaway
            moving = slice(begin + 1, self._end_of_zone(v, direction * friction, int(begin), breakaway))
            if fresh < FRESH_SHARE or moving.stop - moving.start < SAMPLES_IN_START:
                continue
            speed = np.abs(v[begin : moving.stop])
            steps = np.diff(time[begin : moving.stop])
            x, speed = np.cumsum(0.5 * (speed[1:] + speed[:-1]) * steps), speed[1:]
            rows.append(fresh * np.column_stack([x, speed, speed * x]))
            targets.append(direction * (friction[moving] - friction[begin]))
        if not rows:
            raise ProblemError(
                "LugreStart: no start from rest tells of presliding: the record needs a move after a rest with straight "
                f"bristles or after a reversal, with {SAMPLES_IN_START} samples below {self.presliding_velocity:.4g} and "
                f"{self.presliding_share:.0%} of break-away. A restart in the same direction carries no such information."
            )
        return self._stiffness_and_damping(np.vstack(rows), np.concatenate(targets))

    def _stiffness_and_damping(self, rows: Array, target: Array) -> tuple[float, float]:
        """Return s0 and s1, with fewer columns where noise makes one of them negative."""
        for count in (3, 2):
            s0, s1 = np.linalg.lstsq(rows[:, :count], target, rcond=None)[0][:2]
            if s0 > 0.0 and s1 > 0.0:
                return float(s0), float(s1)
        s0 = float(rows[:, 0] @ target / (rows[:, 0] @ rows[:, 0]))
        if not s0 > 0.0:
            raise ProblemError(
                "LugreStart: the friction does not rise with the travel after starts from rest: noise hides presliding, or the "
                "force has the wrong sign. Average several runs, or give s0 and s1 as a start to LeastSquares."
            )
        return s0, self.damping_time * s0

    def _end_of_zone(self, v: Array, toward: Array, begin: int, breakaway: float) -> int:
        """Return the first sample after a start that is too fast, or whose friction has moved too far, for (16)."""
        speed = np.abs(v[begin + 1 :])
        moved = np.abs(toward[begin + 1 :] - toward[begin])
        outside = (
            (speed > self.presliding_velocity) | (moved > self.presliding_share * breakaway) | (speed == 0.0)
        )
        ends = np.flatnonzero(outside)
        return begin + 1 + (int(ends[0]) if len(ends) else len(speed))


@dataclass(frozen=True)
class FromClosedForm:
    """A method that begins at the closed-form values of every record: the way to identify LuGre friction.

    Where vd is free it comes last, as it acts least: first all others are found with a bristle damping that hardly decays,
    then vd too. A solution with vd that fits worse than one without is a wrong minimum (vd below v0), and is looked for again from
    the damping that hardly decays. Where a record has no closed form (`LugreStart` says why), the problem's own start is used,
    and the estimate's message says so.

    Parameters
    ----------
    method : Method
        `LeastSquares` or `Ipopt`, for instance.
    closed_form : LugreStart
        Options of the closed forms.
    """

    method: Method
    closed_form: LugreStart = field(default_factory=LugreStart)

    @property
    def needs_start(self) -> bool:
        """False: it finds its own."""
        return False

    def solve(self, problem: Problem, start: Array, rng: np.random.Generator | None) -> Solution:
        """Solve from the closed forms.

        Raises
        ------
        MethodError
            If no free parameter is one of LuGre's.
        """
        begin, notes = closed_form_start(problem, start, self.closed_form)
        last = [i for i, slot in enumerate(problem.slots) if slot.base == "vd" and slot.kind == "parameter"]
        if not last or len(last) == len(problem.slots):
            return _noted(self.method.solve(problem, begin, rng), notes, 0)
        slow = begin.copy()
        slow[last] = np.clip(
            HARDLY_DECAYING / self.closed_form.damping_decay * begin[last],
            problem.space.lower[last],
            problem.space.upper[last],
        )
        without = self.method.solve(_held(problem, slow, last), np.delete(slow, last), rng)
        others = np.setdiff1d(np.arange(len(begin)), last)
        begin[others] = slow[others] = without.vector
        least, solution = problem.norms(slow)[0], self.method.solve(problem, begin, rng)
        evaluations = without.evaluations
        if not problem.norms(solution.vector)[0] <= least * (1.0 + WORSE):
            again = self.method.solve(problem, slow, rng)
            evaluations += solution.evaluations
            solution = again
        return _noted(solution, notes, evaluations)


def _held(problem: Problem, values: Array, places: list[int]) -> Problem:
    """Return the problem with some of its free parameters held at values."""
    names = {problem.slots[i].name: float(values[i]) for i in places}
    bases = {*names, *(problem.slots[i].base for i in places)}

    def without(mapping: Mapping[str, T]) -> dict[str, T]:
        return {name: value for name, value in mapping.items() if name not in bases}

    return replace(
        problem,
        free=tuple(name for name in problem.names if name not in names),
        fixed={**problem.fixed, **names},
        bounds=without(problem.bounds),
        transforms=without(problem.transforms),
        priors=without(problem.priors),
    )


def _noted(solution: Solution, notes: tuple[str, ...], evaluations: int) -> Solution:
    message = "; ".join([note for note in (*notes, solution.message) if note])
    return replace(solution, message=message, evaluations=solution.evaluations + evaluations)


def closed_form_start(
    problem: Problem, start: Array, closed_form: LugreStart
) -> tuple[Array, tuple[str, ...]]:
    """Return a start (n,) with the closed forms of each record in it, and a note for each record that has none.

    A parameter that records share gets the median of theirs.
    """
    force = lugre_force(problem, "FromClosedForm")
    found: list[Mapping[str, float]] = []
    notes = []
    for record in problem.records:
        try:
            found.append(closed_form.values(record, force=force))
        except ProblemError as error:
            found.append({})
            notes.append(f"no closed form of record {record.source!r}: {error}")
    values = start.copy()
    for i, slot in enumerate(problem.slots):
        chosen = found if slot.record is None else [found[slot.record]]
        known = [each[slot.base] for each in chosen if slot.kind == "parameter" and slot.base in each]
        if known:
            values[i] = np.clip(np.median(known), slot.lower, slot.upper)
    return values, tuple(notes)


def lugre_force(problem: Problem, who: str) -> str:
    """Return the column of the friction of a problem of LuGre friction alone.

    Raises
    ------
    MethodError
        If no free parameter is one of LuGre's, or not one output is compared.
    """
    if not set(NAMES) & {slot.base for slot in problem.slots} or len(problem.comparison.columns) != 1:
        raise MethodError(
            f"{who} is for LuGre friction alone, with one output: free are {', '.join(problem.names)}, compared "
            f"{', '.join(problem.comparison.columns)}. Subtract the other forces from the record, or use LeastSquares."
        )
    return problem.comparison.columns[0]
