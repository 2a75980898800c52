"""Norms that neither overflow nor vanish."""

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
