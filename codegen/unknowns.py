"""Algebraic unknowns: solved by Newton's method, with derivatives by the implicit-function theorem.

0 = g(x, d, z, u, p) defines the unknowns z. Each starts at its nominal value; a single unknown with finite bounds
between which g changes sign is kept bracketed. `eliminate` gives functions in which z is no argument any more.
The same routine is printed in C as ``<model>_solve`` by `mechsmith.codegen.emit_c`.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy

from mechsmith.codegen.functions import ARGUMENTS, Array, FunctionSet, FunctionSetError

ITERATIONS = 50
TOLERANCE = 1e-12  # last change of each unknown, relative to its size or, where larger, to that of its start


@dataclass(frozen=True)
class Solved:
    """Unknowns at n points, shape (n, nz), and which of them were found, shape (n,)."""

    values: Array
    found: Array


@dataclass(frozen=True)
class UnknownsSolver:
    """Solves g = 0 for the unknowns of a model at many points together.

    Parameters
    ----------
    functions : FunctionSet
        With unknowns and CasADi functions.
    """

    functions: FunctionSet

    @cached_property
    def _with_jacobian(self) -> FunctionSet:
        return self.functions.with_jacobians(("constraint", "z"))

    @property
    def start(self) -> Array:
        """The nominal values of the unknowns, shape (nz,)."""
        return self.functions.vector("z")

    @property
    def bracket(self) -> tuple[float, float] | None:
        """The bounds of a single unknown where both are finite."""
        unknowns = self.functions.unknowns
        if sum(variable.size for variable in unknowns) != 1:
            return None
        low, high = unknowns[0].lower, unknowns[0].upper
        return (low, high) if numpy.isfinite([low, high]).all() else None

    def solve(self, x: Array, d: Array, u: Array, p: Array, *, start: Array | None = None) -> Solved:
        """Return the unknowns at points.

        Parameters
        ----------
        x, d, u, p : array
            Shape (n, size), or (1, size) where all points share them.
        start : array, optional
            Where Newton's method begins, (nz,) or (n, nz): it chooses the branch. Nominal values when not given.
        """
        count = max(len(a) for a in (x, d, u, p))
        begin = self.start if start is None else numpy.asarray(start, dtype=float)
        z = numpy.array(numpy.broadcast_to(begin, (count, begin.shape[-1])))
        bracket = self.bracket
        if bracket is not None:
            return self._solve_bracketed(x, d, z, u, p, bracket)
        size = numpy.maximum(numpy.abs(z), 1e-300)
        done = numpy.zeros(count, dtype=bool)
        for _ in range(ITERATIONS):
            residual = self._with_jacobian.batch("constraint", x, d, z, u, p)
            step = _solve_each(self._with_jacobian.batch("constraint_z", x, d, z, u, p), residual)[:, :, 0]
            z = numpy.where(done[:, None], z, z - step)
            scale = numpy.maximum(numpy.abs(z), size)
            done |= (numpy.abs(step) <= TOLERANCE * scale).all(axis=1)
            if done.all():
                break
        return Solved(z, done & numpy.isfinite(z).all(axis=1))

    def _solve_bracketed(
        self, x: Array, d: Array, z: Array, u: Array, p: Array, bracket: tuple[float, float]
    ) -> Solved:
        """Newton's method that falls back on bisection (Press et al., Numerical Recipes, 9.4)."""
        low, high = numpy.full(len(z), bracket[0]), numpy.full(len(z), bracket[1])
        g_low = self._value(x, d, low, u, p)
        g_high = self._value(x, d, high, u, p)
        rising = g_high > g_low
        possible = g_low * g_high <= 0.0
        value = numpy.clip(z[:, 0], *bracket)
        done = numpy.zeros(len(z), dtype=bool)
        for _ in range(4 * ITERATIONS):
            g = self._value(x, d, value, u, p)
            slope = self._with_jacobian.batch("constraint_z", x, d, value[:, None], u, p)[:, 0, 0]
            above = (g > 0.0) == rising
            high, low = numpy.where(above, value, high), numpy.where(above, low, value)
            with numpy.errstate(divide="ignore", invalid="ignore"):
                newton = value - g / slope
            inside = (newton >= low) & (newton <= high)
            proposed = numpy.where(inside, newton, 0.5 * (low + high))
            proposed = numpy.where(g == 0.0, value, proposed)
            change = numpy.abs(proposed - value)
            value = numpy.where(done, value, proposed)
            done |= change <= TOLERANCE * numpy.maximum(numpy.abs(value), 1e-300)
            if done.all():
                break
        return Solved(value[:, None], done & possible)

    def _value(self, x: Array, d: Array, z: Array, u: Array, p: Array) -> Array:
        return self._with_jacobian.batch("constraint", x, d, z[:, None], u, p)[:, 0, 0]


def _solve_each(matrices: Array, right: Array) -> Array:
    """Return the solution of each linear system; NaN where one is singular."""
    try:
        return numpy.linalg.solve(matrices, right)
    except numpy.linalg.LinAlgError:
        result = numpy.full(right.shape, numpy.nan)
        for k in range(len(matrices)):
            try:
                result[k] = numpy.linalg.solve(matrices[k], right[k])
            except numpy.linalg.LinAlgError:
                continue
        return result


@dataclass(frozen=True)
class SolvedEvaluator:
    """A function of (x, d, u, p) in which the unknowns are solved for; NaN where they are not found.

    Parameters
    ----------
    functions : FunctionSet
        With the unknowns.
    of : str
        Which function.
    wrt : str
        Argument to differentiate by, or empty for the value.
    """

    functions: FunctionSet
    of: str
    wrt: str = ""

    @cached_property
    def _needed(self) -> FunctionSet:
        pairs = [("constraint", "z")]
        if self.wrt:
            pairs += [(self.of, self.wrt), (self.of, "z"), ("constraint", self.wrt)]
        return self.functions.with_jacobians(*pairs)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        rows, columns = self.functions[self.of].shape
        return (rows * columns, self.functions.size(self.wrt)) if self.wrt else (rows, columns)

    def __call__(self, *arguments: Array) -> Array:
        """Evaluate at one point of (x, d, z, u, p), with no elements in z."""
        return self.batch(*(argument.reshape(1, -1) for argument in arguments))[0]

    def batch(self, *arguments: Array) -> Array:
        """Evaluate at many points."""
        x, d, _, u, p = arguments
        solved = UnknownsSolver(self.functions).solve(x, d, u, p)
        point = (x, d, solved.values, u, p)
        result = self._needed.batch(f"{self.of}_{self.wrt}" if self.wrt else self.of, *point)
        if self.wrt:
            # dz/dw = -g_z^-1 g_w
            moved = _solve_each(
                self._needed.batch("constraint_z", *point),
                self._needed.batch(f"constraint_{self.wrt}", *point),
            )
            result = result - self._needed.batch(f"{self.of}_z", *point) @ moved
        return numpy.where(solved.found[:, None, None], result, numpy.nan)


def eliminate(functions: FunctionSet) -> FunctionSet:
    """Return the functions with the unknowns solved for: values, and exact Jacobians by x, d, u and p.

    Functions without unknowns are returned as they are.
    """
    if not functions.unknowns:
        return functions
    functions.require("embeddable", "solving for unknowns")
    kept = [
        name for name in functions.functions if name != "constraint" and not _is_jacobian(functions, name)
    ]
    evaluators = {name: SolvedEvaluator(functions, name) for name in kept}
    evaluators |= {
        f"{name}_{wrt}": SolvedEvaluator(functions, name, wrt)
        for name in kept
        for wrt in ARGUMENTS
        if wrt != "z"
    }
    return dataclasses.replace(
        functions,
        unknowns=(),
        functions=evaluators,
        capabilities=frozenset[str](),  # type: ignore[arg-type]
    )


def _is_jacobian(functions: FunctionSet, name: str) -> bool:
    of, _, wrt = name.rpartition("_")
    return wrt in ARGUMENTS and of in functions.functions


def require_found(functions: FunctionSet, solved: Solved, names: Sequence[str]) -> None:
    """Raise `FunctionSetError` when the unknowns of some point were not found."""
    if not solved.found.all():
        point = int(numpy.flatnonzero(~solved.found)[0])
        raise FunctionSetError(
            f"functions {functions.name!r}: no {', '.join(names)} solve the constraints at point {point} of {len(solved.found)}. "
            "Start nearer to the branch that is meant (nominal values), or check that the point can be reached."
        )
