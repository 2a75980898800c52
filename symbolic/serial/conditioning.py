"""How far a pose is from a singularity: characteristic length, conditioning KF and manipulability; (4)-(7).

With J_N = diag(I/L, I) J and n joints, A = J_N^T J_N (J_N J_N^T for more than six joints) is positive definite away
from singularities, and its factors A = Lower D Lower^T give the trace of its inverse and its determinant.
"""

import sympy

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.serial.chain import Chain
from mechsmith.symbolic.serial.frames import lay_out
from mechsmith.symbolic.serial.kinematics import (
    SOURCE,
    Column,
    column,
    jacobian_columns,
    output_model,
    point_quantities,
)
from mechsmith.symbolic.serial.let import Let


def make_conditioning(chain: Chain) -> Model:
    """Return characteristic length, conditioning KF, its inverse and manipulability of a chain.

    Parameters
    ----------
    chain : Chain
        Revolute joints only: prismatic ones have no arm for a characteristic length. Inputs ``q_1`` and so on;
        ``point_x, _y, _z`` are the reference point in flange axes (m, nominal the flange centre).

    Returns
    -------
    Model
        Outputs ``characteristic_length`` L (m), ``conditioning`` KF >= 1, ``inverse_conditioning`` 1/KF, and
        ``manipulability`` sqrt(det A), of the normalised Jacobian (times L^3 it is Yoshikawa's, for six or more
        joints). At a singularity KF is infinite or not a number.

    Raises
    ------
    ModelError
        If a joint is prismatic.
    """
    prismatic = [joint.name for joint in chain.moving if joint.kind == "prismatic"]
    if prismatic:
        raise ModelError(
            f"conditioning of {chain.name!r}: {', '.join(prismatic)} is prismatic; a characteristic length needs revolute "
            "joints. Use the Jacobian and a length of your choice."
        )
    let = Let()
    frames = lay_out(chain, let)
    local = point_quantities("point", nominal=(0.0, 0.0, 0.0), text="reference point in flange axes")
    point = let.matrix("point", "m", frames.flange.point(column(local)))
    columns = jacobian_columns(frames, let, point)
    length = let(
        "length",
        "m",
        sympy.sqrt(sum((c.linear.dot(c.linear) for c in columns), sympy.Integer(0)) / len(columns)),
    )
    gram = let.matrix("gram", "", gram_matrix(columns, length))
    lower, pivots = factorise(gram, let)
    trace, size = gram.trace(), gram.shape[0]
    inverse_trace = let("inverse_trace", "", trace_of_inverse(lower, pivots, let))
    conditioning = let("frobenius", "", sympy.sqrt(trace * inverse_trace) / size)
    outputs = {
        Quantity("characteristic_length", "m", description="L, (4)"): length,
        Quantity("conditioning", "", description="KF, (7), at least 1"): conditioning,
        Quantity("inverse_conditioning", "", description="1/KF, distance from singularity"): 1 / conditioning,
        Quantity("manipulability", "", description="of the normalised Jacobian"): sympy.sqrt(
            sympy.prod(pivots)
        ),
    }
    return output_model(
        f"{chain.name}_conditioning",
        let,
        outputs,
        inputs=frames.coordinates,
        parameters=(*frames.geometry, *local),
        description="Characteristic length, conditioning and manipulability of a pose.",
        references=(*chain.references, f"{SOURCE}, (4)-(7)"),
    )


def gram_matrix(columns: list[Column], length: sympy.Expr) -> sympy.Matrix:
    """Return J_N^T J_N, or J_N J_N^T when there are more than six joints."""
    whole = sympy.Matrix.hstack(*(sympy.Matrix.vstack(c.linear / length, c.angular) for c in columns))
    return whole.T * whole if len(columns) <= 6 else whole * whole.T


def factorise(matrix: sympy.Matrix, let: Let) -> tuple[sympy.Matrix, list[sympy.Expr]]:
    """Return the unit lower triangular factor and the pivots of a symmetric matrix, as definitions."""
    size = matrix.shape[0]
    lower = sympy.eye(size)
    pivots: list[sympy.Expr] = []
    for j in range(size):
        inner = sum((lower[j, k] ** 2 * pivots[k] for k in range(j)), sympy.Integer(0))
        pivots.append(let(f"pivot_{j + 1}", "", matrix[j, j] - inner))
        for i in range(j + 1, size):
            inner = sum((lower[i, k] * lower[j, k] * pivots[k] for k in range(j)), sympy.Integer(0))
            lower[i, j] = let(f"lower_{i + 1}{j + 1}", "", (matrix[i, j] - inner) / pivots[j])
    return lower, pivots


def trace_of_inverse(lower: sympy.Matrix, pivots: list[sympy.Expr], let: Let) -> sympy.Expr:
    """Return the trace of (Lower D Lower^T)^-1, the sum of squares of Lower^-1 over the pivots."""
    size = len(pivots)
    inverse, trace = sympy.eye(size), sympy.Integer(0)
    for i in range(size):
        for j in range(i):
            inner = sum((lower[i, k] * inverse[k, j] for k in range(j, i)), sympy.Integer(0))
            inverse[i, j] = let(f"inverse_{i + 1}{j + 1}", "", -inner)
        trace += sum((inverse[i, j] ** 2 for j in range(i + 1)), sympy.Integer(0)) / pivots[i]
    return trace
