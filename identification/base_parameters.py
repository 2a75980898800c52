"""Base parameters: the combinations that a linear regressor determines, found from its numbers.

Gautier, *Numerical calculation of the base inertial parameters of robots*, J. Robotic Systems 8 (1991), 485-506.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.norms import triangular_factor
from mechsmith.identification.problem import Problem, ProblemError

Array = NDArray[np.float64]
# Singular values of the column-scaled regressor below this share of the largest are rounding.
RANK_TOLERANCE = 1e-10
# Coefficients of groupings below this are rounding.
COEFFICIENT = 1e-8


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """What a regressor determines of the parameters that it multiplies.

    Parameters
    ----------
    names : tuple of str
        All parameters, n.
    independent, dependent : tuple of str
        The parameters whose columns are kept, in order, and those whose columns are combinations of them.
    grouping : array
        Shape (rank, dependent): base parameters = independent + grouping @ dependent.
    null_vectors : array
        Shape (n - rank, n): changes of all parameters that no row sees, one for each dependent parameter, in which it is 1.
    singular_values : array
        Of the column-scaled regressor, descending, relative to the largest, (n,).
    """

    names: tuple[str, ...]
    independent: tuple[str, ...]
    dependent: tuple[str, ...]
    grouping: Array
    null_vectors: Array
    singular_values: Array

    @property
    def rank(self) -> int:
        """How many combinations are determined."""
        return len(self.independent)

    @property
    def condition(self) -> float:
        """Of the column-scaled regressor, without its null space."""
        return float(1.0 / self.singular_values[self.rank - 1])

    def values(self, parameters: Array) -> Array:
        """Return the base parameters, (rank,), of all parameters, (n,)."""
        place = {name: i for i, name in enumerate(self.names)}
        kept = np.array([parameters[place[name]] for name in self.independent])
        others = np.array([parameters[place[name]] for name in self.dependent])
        return np.asarray(kept + self.grouping @ others)

    def expressions(self) -> tuple[str, ...]:
        """Return each base parameter as text, for instance ``alpha_1 + beta_2 - 0.5 beta_3``."""
        lines = []
        for name, row in zip(self.independent, self.grouping, strict=True):
            parts = [name]
            for other, share in zip(self.dependent, row, strict=True):
                if share:
                    size = "" if abs(abs(share) - 1.0) < COEFFICIENT else f"{abs(share):.10g} "
                    parts.append(f"{'+' if share > 0 else '-'} {size}{other}")
            lines.append(" ".join(parts))
        return tuple(lines)


def base_parameters(
    regressor: Array, names: Sequence[str], *, dependent_first: Sequence[str] = ()
) -> BaseParameters:
    """Return the base parameters of a regressor.

    Parameters
    ----------
    regressor : array
        Shape (rows, n), from motions that excite everything; rows may be weighted.
    names : sequence of str
        Of the columns.
    dependent_first : sequence of str
        Parameters to make dependent where there is a choice; otherwise the later ones of `names` are.

    Raises
    ------
    ProblemError
        If sizes do not fit, a name is unknown, or the regressor is not finite.
    """
    if regressor.ndim != 2 or regressor.shape[1] != len(names):
        raise ProblemError(
            f"base_parameters: the regressor has shape {regressor.shape}, for {len(names)} names."
        )
    unknown = [name for name in dependent_first if name not in names]
    if unknown:
        raise ProblemError(
            f"base_parameters: dependent_first names {unknown}, which are not among {', '.join(names)}."
        )
    if not np.isfinite(regressor).all():
        raise ProblemError("base_parameters: the regressor is not finite. Use motions within the workspace.")
    scale = np.linalg.norm(regressor, axis=0)
    scaled = regressor / np.where(scale > 0.0, scale, 1.0)
    factor = triangular_factor(scaled)
    singular = np.linalg.svd(factor, compute_uv=False)
    kept = _independent(factor, [names.index(n) for n in _ordered(names, dependent_first)])
    others = [i for i in range(len(names)) if i not in kept]
    solved = np.linalg.lstsq(factor[:, kept], factor[:, others], rcond=None)[0]
    # Back to the parameters' own units: columns were divided by their norms.
    unit = np.where(scale > 0.0, scale, 1.0)
    grouping = solved * unit[others] / unit[kept][:, None]
    grouping[np.abs(grouping) < COEFFICIENT * np.max(np.abs(grouping), initial=0.0)] = 0.0
    null = np.zeros((len(others), len(names)))
    null[:, kept] = -grouping.T
    null[np.arange(len(others)), others] = 1.0
    return BaseParameters(
        tuple(names),
        tuple(names[i] for i in kept),
        tuple(names[i] for i in others),
        grouping,
        null,
        singular / singular[0],
    )


def regressor_of(problem: Problem) -> Array:
    """Return the regressor of a problem whose residual is linear in the free parameters, (rows, n), over the noise."""
    return problem.data_jacobian(problem.start_vector(None, required=False))


def _ordered(names: Sequence[str], dependent_first: Sequence[str]) -> list[str]:
    return [name for name in names if name not in dependent_first] + list(dependent_first)


def _independent(factor: Array, order: Sequence[int]) -> list[int]:
    """Return the columns that are no combinations of those before them in an order, in their own order."""
    basis = np.zeros((len(factor), 0))
    kept = []
    for column in order:
        vector = factor[:, column]
        # Twice, so that rounding of the first projection does not count.
        rest = vector - basis @ (basis.T @ vector)
        rest = rest - basis @ (basis.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > RANK_TOLERANCE:
            basis = np.column_stack([basis, rest / size])
            kept.append(column)
    return sorted(kept)
