"""One substep of a fixed-step integrator as a straight-line expression in CasADi.

Every integrator is a frozen set of options. Its `build` gives the state after a substep of length h from
the state before it and the inputs at its nodes; implicit ones also give how far the stage equations are
from being solved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi
import numpy

from mechsmith.codegen import steps
from mechsmith.codegen.functions import FunctionSetError

SX = casadi.SX
Rate = steps.Rate

_ROOT = 6.0**0.5
RADAU_NODES = ((4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0)
# Radau IIA of order 5: Hairer & Wanner, Solving Ordinary Differential Equations II, table IV.5.6.
RADAU_MATRIX = (
    ((88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225),
    ((296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225),
    ((16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9),
)
# Where h |lambda| on the negative real axis leaves the stability region of the classical method of order 4.
RUNGE_KUTTA_LIMIT = 2.785293563405282
LARGEST_ADJUGATE = 3  # rows of a matrix whose system is solved by Cramer's rule


@dataclass(frozen=True)
class Substep:
    """Expressions of one substep.

    Parameters
    ----------
    state : SX (nx, 1)
        The state at its end.
    residual : SX
        Largest change in the last Newton iteration, relative to each state; 0 for explicit and closed forms.
    by_state, by_others : SX
        Exact derivatives of `state`, (nx, nx) and (nx, n of the other symbols).
    """

    state: SX
    residual: SX
    by_state: SX
    by_others: SX


@dataclass(frozen=True)
class RungeKutta4:
    """The classical explicit method of order 4.

    Parameters
    ----------
    substeps : int
        Equal substeps in a sample.
    """

    substeps: int = 1
    nodes: ClassVar[tuple[float, ...]] = (0.0, 0.5, 1.0)
    explicit: ClassVar[bool] = True

    def build(self, rate: Rate, x: SX, stages: Sequence[SX], h: SX, others: SX) -> Substep:
        """Return the substep; `others` are the symbols to differentiate by, besides the state."""
        first, middle, last = stages
        rate = steps.with_held_signs(rate, x, x + steps.SIDE * h * rate(x, first))
        k1 = rate(x, first)
        k2 = rate(x + h / 2 * k1, middle)
        k3 = rate(x + h / 2 * k2, middle)
        k4 = rate(x + h * k3, last)
        return _differentiated(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), x, others)


@dataclass(frozen=True)
class Exponential:
    """Exact for dx/dt = A x + b with A and b frozen at the middle of the step: cheap, order 2.

    It needs a right-hand side affine in the state whose matrix is diagonal.
    """

    substeps: int = 1
    nodes: ClassVar[tuple[float, ...]] = (0.5,)
    explicit: ClassVar[bool] = False

    def build(self, rate: Rate, x: SX, stages: Sequence[SX], h: SX, others: SX) -> Substep:
        """Return the substep; `others` are the symbols to differentiate by, besides the state."""
        slope = rate(x, stages[0])
        matrix = casadi.jacobian(slope, x)
        off_diagonal = matrix - casadi.diag(casadi.diag(matrix))
        if not is_affine(slope, x) or casadi.sparsify(off_diagonal).nnz():
            raise FunctionSetError(
                "integrator Exponential needs derivatives that are affine in the state with a diagonal matrix. "
                "Use Radau()."
            )
        product = h * casadi.diag(matrix)
        small = casadi.fabs(product) < 1e-8
        # (exp(a) - 1)/a, by its series where the quotient would lose digits: 1e-8^2/6 is below rounding.
        safe = casadi.if_else(small, 1.0, product)
        weight = casadi.if_else(small, 1 + product / 2, casadi.expm1(safe) / safe)
        return _differentiated(x + h * weight * slope, x, others)


@dataclass(frozen=True)
class Radau:
    """Radau IIA with three stages, order 5, stiffly accurate.

    Where the derivatives are affine in the state the stage equations are linear and solved in closed form;
    otherwise by Newton's method with a fixed number of iterations.

    Parameters
    ----------
    substeps : int
        Equal substeps in a sample, before any refinement at crossings.
    iterations : int
        Newton iterations, for derivatives that are not affine.
    """

    substeps: int = 1
    iterations: int = 4
    nodes: ClassVar[tuple[float, ...]] = RADAU_NODES
    explicit: ClassVar[bool] = False

    def build(self, rate: Rate, x: SX, stages: Sequence[SX], h: SX, others: SX) -> Substep:
        """Return the substep; `others` are the symbols to differentiate by, besides the state."""
        return _collocated(rate, x, stages, h, others, numpy.array(RADAU_MATRIX), self.iterations)


@dataclass(frozen=True)
class ImplicitMidpoint:
    """The implicit midpoint rule, order 2, A-stable and symplectic.

    Parameters
    ----------
    substeps : int
        Equal substeps in a sample.
    iterations : int
        Newton iterations, for derivatives that are not affine.
    """

    substeps: int = 1
    iterations: int = 4
    nodes: ClassVar[tuple[float, ...]] = (0.5,)
    explicit: ClassVar[bool] = False

    def build(self, rate: Rate, x: SX, stages: Sequence[SX], h: SX, others: SX) -> Substep:
        """Return the substep; `others` are the symbols to differentiate by, besides the state."""
        middle = _collocated(rate, x, stages, h, others, numpy.array([[0.5]]), self.iterations)
        return Substep(
            2 * middle.state - x,
            middle.residual,
            2 * middle.by_state - SX.eye(x.numel()),
            2 * middle.by_others,
        )


Integrator = RungeKutta4 | Exponential | Radau | ImplicitMidpoint


def is_affine(expression: SX, x: SX) -> bool:
    """Tell whether an expression is affine in x, from CasADi's graph."""
    return not casadi.depends_on(casadi.jacobian(expression, x), x) and not steps.has_steps(expression, x)


def _differentiated(state: SX, x: SX, others: SX) -> Substep:
    return Substep(state, SX(0), casadi.jacobian(state, x), casadi.jacobian(state, others))


def _collocated(
    rate: Rate, x: SX, stages: Sequence[SX], h: SX, others: SX, matrix: numpy.ndarray, iterations: int
) -> Substep:
    """Return the last stage X_s of X_i = x + h sum_j a_ij f(X_j, u_j), with derivatives by implicit differentiation."""
    size, count = x.numel(), len(stages)
    rate = steps.with_held_signs(rate, x, x + steps.SIDE * h * rate(x, stages[0]))
    affine = is_affine(rate(x, stages[0]), x)
    if affine:
        rate = _affine_form(rate, x)
    increments = SX.zeros(size * count)
    correction = SX.zeros(size * count)
    for _ in range(1 if affine else iterations):
        points = [x + increments[i * size : (i + 1) * size] for i in range(count)]
        defect = _defect(rate, points, stages, h, matrix, increments, size)
        correction = _solve(_stage_matrix(rate, points, stages, h, matrix, size), [-defect])[0]
        increments = increments + correction
    points = [x + increments[i * size : (i + 1) * size] for i in range(count)]
    # The stage equations G(increments, x, others) = 0 define the increments; so do their derivatives.
    free = SX.sym("increments", size * count)
    points_free = [x + free[i * size : (i + 1) * size] for i in range(count)]
    equations = _defect(rate, points_free, stages, h, matrix, free, size)
    by_both = casadi.substitute(casadi.jacobian(equations, casadi.vertcat(x, others)), free, increments)
    right = [-by_both[:, j] for j in range(size + others.numel())]
    columns = _solve(_stage_matrix(rate, points, stages, h, matrix, size), right)
    derivative = casadi.horzcat(*(column[-size:] for column in columns))
    return Substep(
        points[-1],
        SX(0) if affine else _relative_change(x, increments, correction, size),
        SX.eye(size) + derivative[:, :size],
        derivative[:, size:],
    )


def _affine_form(rate: Rate, x: SX) -> Rate:
    """Return an affine rate as A x + b, which shares A with the stage matrix."""

    def affine(state: SX, inputs: SX) -> SX:
        slope = rate(x, inputs)
        return casadi.jacobian(slope, x) @ state + casadi.substitute(slope, x, SX.zeros(x.numel()))

    return affine


def _relative_change(x: SX, increments: SX, correction: SX, size: int) -> SX:
    """Return the largest change in the last iteration, each state relative to its own size in the step."""
    largest = SX(0)
    for k in range(size):
        change, scale = SX(0), casadi.fabs(x[k])
        for i in range(k, increments.numel(), size):
            change = casadi.fmax(change, casadi.fabs(correction[i]))
            scale = casadi.fmax(scale, casadi.fabs(increments[i]))
        largest = casadi.fmax(largest, change / (scale + 1e-12))
    return largest


def _defect(
    rate: Rate,
    points: Sequence[SX],
    stages: Sequence[SX],
    h: SX,
    matrix: numpy.ndarray,
    increments: SX,
    size: int,
) -> SX:
    slopes = [rate(point, stage) for point, stage in zip(points, stages, strict=True)]
    rows = []
    for i, row in enumerate(matrix):
        total = sum((float(a) * slope for a, slope in zip(row, slopes, strict=True)), SX.zeros(size))
        rows.append(increments[i * size : (i + 1) * size] - h * total)
    return casadi.vertcat(*rows)


def _stage_matrix(
    rate: Rate, points: Sequence[SX], stages: Sequence[SX], h: SX, matrix: numpy.ndarray, size: int
) -> list[list[SX]]:
    jacobians = []
    for point, stage in zip(points, stages, strict=True):
        symbol = SX.sym("point", size)
        jacobians.append(casadi.substitute(casadi.jacobian(rate(symbol, stage), symbol), symbol, point))
    count = len(points)
    rows = [[SX(1.0 if i == j else 0.0) for j in range(count * size)] for i in range(count * size)]
    for i in range(count):
        for j in range(count):
            for k in range(size):
                for m in range(size):
                    rows[i * size + k][j * size + m] -= float(matrix[i, j]) * h * jacobians[j][k, m]
    return rows


def _solve(rows: list[list[SX]], right: Sequence[SX]) -> list[SX]:
    """Return the solutions for several right-hand sides, without pivoting.

    The matrix is the identity minus h times a Jacobian: its leading minors vanish for no stable linear
    system, since the coefficient matrices have eigenvalues and leading minors with positive real part.
    """
    if len(rows) <= LARGEST_ADJUGATE:
        return _solve_by_adjugate(rows, right)
    factors = _factorise(rows)
    return [_substitute_back(factors, column) for column in right]


def _solve_by_adjugate(rows: list[list[SX]], right: Sequence[SX]) -> list[SX]:
    """Return the solutions by Cramer's rule: one division, and no chain of divisions that wait for each other."""
    size = len(rows)
    cofactors = [[_cofactor(rows, i, j) for j in range(size)] for i in range(size)]
    determinant = sum((rows[0][j] * cofactors[0][j] for j in range(size)), SX(0))
    return [
        casadi.vertcat(
            *(sum((cofactors[i][j] * b[i] for i in range(size)), SX(0)) / determinant for j in range(size))
        )
        for b in right
    ]


def _cofactor(rows: list[list[SX]], i: int, j: int) -> SX:
    minor = [[value for k, value in enumerate(row) if k != j] for m, row in enumerate(rows) if m != i]
    sign = -1.0 if (i + j) % 2 else 1.0
    if not minor:
        return SX(1)
    if len(minor) == 1:
        return sign * minor[0][0]
    return sign * (minor[0][0] * minor[1][1] - minor[0][1] * minor[1][0])


def _factorise(rows: list[list[SX]]) -> list[list[SX]]:
    """Return L and U in one table, skipping zeros."""
    table = [list(row) for row in rows]
    size = len(table)
    for k in range(size):
        for i in range(k + 1, size):
            if table[i][k].is_zero():
                continue
            table[i][k] = table[i][k] / table[k][k]
            for j in range(k + 1, size):
                if not table[k][j].is_zero():
                    table[i][j] = table[i][j] - table[i][k] * table[k][j]
    return table


def _substitute_back(factors: list[list[SX]], right: SX) -> SX:
    size = len(factors)
    values = [right[i] for i in range(size)]
    for i in range(size):
        for j in range(i):
            if not factors[i][j].is_zero() and not values[j].is_zero():
                values[i] = values[i] - factors[i][j] * values[j]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            if not factors[i][j].is_zero() and not values[j].is_zero():
                values[i] = values[i] - factors[i][j] * values[j]
        values[i] = values[i] / factors[i][i]
    return casadi.vertcat(*values)


def smallest_pivot(matrix: SX) -> SX | None:
    """Return the smallest pivot of a symmetric matrix, positive where it is positive definite; None for any other."""
    size = matrix.size1()
    if not casadi.is_equal(casadi.cse(matrix), casadi.cse(matrix.T), 20):
        return None
    factors = _factorise([[matrix[i, j] for j in range(size)] for i in range(size)])
    smallest = factors[0][0]
    for k in range(1, size):
        smallest = casadi.fmin(smallest, factors[k][k])
    return smallest


def solve_mass(matrix: SX, right: SX) -> SX:
    """Return the solution of M a = f.

    A symmetric M is positive definite and needs no pivoting. Any other is solved by QR, which divides by no
    entry of M: one that vanishes at a legal state does no harm.
    """
    size = matrix.size1()
    if casadi.is_equal(casadi.cse(matrix), casadi.cse(matrix.T), 20):
        rows = [[matrix[i, j] for j in range(size)] for i in range(size)]
        return _substitute_back(_factorise(rows), right)
    return casadi.solve(matrix, right)
