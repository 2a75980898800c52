"""Algebraic unknowns: solved by Newton's method, with derivatives by the implicit-function theorem.

0 = g(x, d, z, u, p) defines the unknowns z. Each starts at its nominal value. Where all have finite bounds and each
equation depends on its own unknown and earlier ones alone, they are solved one after another, each kept between its
bounds, where its equation must change sign. `eliminate` gives functions in which z is no argument any more.
The same routine is printed in C as ``<model>_solve`` by `mechsmith.codegen.emit_c`.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy
from numpy.typing import NDArray

from mechsmith.codegen.functions import ARGUMENTS, Array, FunctionSet, FunctionSetError

ITERATIONS = 50
TOLERANCE = 1e-12  # last change of each unknown, relative to its size or, where larger, to that of its start (1 for a start of 0)
ROUGH = 1e-7  # the same where Newton's steps do not shrink any more


@dataclass(frozen=True)
class Solved:
    """Unknowns at n points, shape (n, nz), and which of them were found, shape (n,)."""

    values: Array
    found: NDArray[numpy.bool_]


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

    @cached_property
    def brackets(self) -> tuple[tuple[float, float], ...] | None:
        """The bounds of each unknown, where all are finite and the equations can be solved one after another."""
        bounds = [
            (variable.lower, variable.upper)
            for variable in self.functions.unknowns
            for _ in range(variable.size)
        ]
        if not bounds or not numpy.isfinite(bounds).all():
            return None
        pattern = self.functions.casadi_function("constraint").jac_sparsity(0, ARGUMENTS.index("z"))
        rows, columns = pattern.get_triplet()
        ordered = all(row >= column for row, column in zip(rows, columns, strict=True))
        return tuple(bounds) if ordered else None

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
        brackets = self.brackets
        if brackets is not None:
            found = numpy.ones(count, dtype=bool)
            for j, bracket in enumerate(brackets):
                found &= self._solve_bracketed(x, d, z, u, p, j, bracket)
            return Solved(z, found)
        size = numpy.where(z == 0.0, 1.0, numpy.abs(z))
        done = numpy.zeros(count, dtype=bool)
        before = numpy.full(count, numpy.inf)
        for _ in range(ITERATIONS):
            residual = self._with_jacobian.batch("constraint", x, d, z, u, p)
            step = _solve_each(self._with_jacobian.batch("constraint_z", x, d, z, u, p), residual)[:, :, 0]
            z = numpy.where(done[:, None], z, z - step)
            change = (numpy.abs(step) / numpy.maximum(numpy.abs(z), size)).max(axis=1)
            # A step that no longer shrinks is rounding, which an ill-conditioned root makes larger than the tolerance.
            done |= (change <= TOLERANCE) | ((change <= ROUGH) & (change >= 0.5 * before))
            before = change
            if done.all():
                break
        return Solved(z, done & numpy.isfinite(z).all(axis=1))

    def _solve_bracketed(
        self, x: Array, d: Array, z: Array, u: Array, p: Array, j: int, bracket: tuple[float, float]
    ) -> NDArray[numpy.bool_]:
        """Solve for unknown j in place by Newton's method that falls back on bisection; tell where it was found.

        Press et al., Numerical Recipes, 9.4.
        """
        low, high = numpy.full(len(z), bracket[0]), numpy.full(len(z), bracket[1])
        g_low, _ = self._value(x, d, z, u, p, j, low)
        g_high, _ = self._value(x, d, z, u, p, j, high)
        rising = g_high > g_low
        possible = g_low * g_high <= 0.0
        value = numpy.clip(z[:, j], *bracket)
        done = numpy.zeros(len(z), dtype=bool)
        for _ in range(4 * ITERATIONS):
            g, slope = self._value(x, d, z, u, p, j, value)
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
        z[:, j] = value
        return done & possible

    def _value(
        self, x: Array, d: Array, z: Array, u: Array, p: Array, j: int, value: Array
    ) -> tuple[Array, Array]:
        """Return equation j and its slope where unknown j has a value."""
        at = z.copy()
        at[:, j] = value
        g = self._with_jacobian.batch("constraint", x, d, at, u, p)[:, j, 0]
        return g, self._with_jacobian.batch("constraint_z", x, d, at, u, p)[:, j, j]


def _solve_each(matrices: Array, right: Array) -> Array:
    """Return the solution of each linear system; NaN where one is singular."""
    try:
        return numpy.asarray(numpy.linalg.solve(matrices, right), dtype=float)
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
