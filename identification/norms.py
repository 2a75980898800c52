"""Norms that neither overflow nor vanish, and factors of tall matrices."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def norm(values: Sequence[float] | Array) -> float:
    """Return the Euclidean norm without overflow or underflow of the squares; infinite if a value is not finite."""
    array = np.asarray(values, dtype=float)
    largest = float(np.max(np.abs(array), initial=0.0))
    if not np.isfinite(largest):
        return float("inf")
    return 0.0 if largest == 0.0 else largest * float(np.linalg.norm(array / largest))


def triangular_factor(matrix: Array) -> Array:
    """Return R, (n, n) with R'R = A'A, of a tall matrix A, (m, n), by orthogonal transformations.

    Blocks of rows are decomposed, then their factors stacked and decomposed again (Demmel, Grigori, Hoemmen, Langou,
    *Communication-optimal parallel and sequential QR and LU factorizations*, SIAM J. Sci. Comput. 34 (2012), A206-A239, section
    4: TSQR). LAPACK would use several threads for the whole matrix, which takes milliseconds alone and ten times as
    long when another process wants the processor; small blocks stay on one.
    """
    columns = matrix.shape[1]
    block = max(64, 4 * columns)
    while len(matrix) > block:
        count = -(-len(matrix) // block)
        padded = np.zeros((count * block, columns))
        padded[: len(matrix)] = matrix
        factors = np.linalg.qr(padded.reshape(count, block, columns), mode="r")
        matrix = np.asarray(factors).reshape(count * columns, columns)
    padded = np.zeros((max(len(matrix), columns), columns))
    padded[: len(matrix)] = matrix
    return np.asarray(np.linalg.qr(padded, mode="r"), dtype=float)
