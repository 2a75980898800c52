"""The result of an identification: values, how well they are determined, and how they were found."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.method import Progress
from mechsmith.identification.uncertainty import Whiteness

Array = NDArray[np.float64]


class EstimateError(ValueError):
    """A name that an estimate does not have, or a file that holds none."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters found from data.

    Parameters
    ----------
    model : str
        Name of the model.
    names, units : tuple of str
        Of the free vector; SI units.
    values : array
        Shape (n,).
    parameters : mapping of name to float
        Every value the system was evaluated with, free, fixed, measured or nominal; initial states as ``x0:position``.
        With several records, what belongs to a record carries its place: ``offset[0]``.
    status : str
        The solver's own word.
    success : bool
        Whether the solver converged.
    message : str
        More in words.
    method : str
        The method with its options.
    samples : int
        Residuals, m.
    residual_norm, residual_deviation : float
        Of prediction minus measurement (over noise where that is given).
    relative_error : float
        Norm of the residual relative to the norm of the measurement, %.
    determination : float
        R^2, the share of the measurement's variance about its mean that the prediction explains.
    condition, scaled_condition : float
        Of the Jacobian in physical units, and with its columns divided by their norms.
    singular_values : array
        Of the latter, descending.
    null_directions : tuple of mapping
        Combinations of parameters that the data do not see.
    undetermined, at_bound : tuple of str
        What the data can't determine, and what stands at a bound or is an active constraint (standard deviations
        are those without it).
    intervals : array
        Confidence intervals, shape (n, 2); open to infinity for what is undetermined.
    confidence : float
        Of the intervals.
    covariance_white, covariance_corrected : array
        (n, n): for white residuals, and corrected for their autocorrelation (Newey-West). See `covariance`.
    white : bool
        Whether the residual may be white; otherwise the corrected covariance counts.
    correction_lags : int
        Bandwidth of the correction, samples.
    whiteness : tuple of Whiteness
        Tests by record and output.
    degrees_of_freedom : str
        How the residual's deviation was computed.
    history : tuple of Progress
        Norms on the way.
    evaluations : int
        Residuals evaluated.
    records : tuple of str
        Sources of the records.
    provenance : tuple of str
        How the records were made, a line a step, with the record's place.
    """

    model: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    parameters: Mapping[str, float]
    status: str
    success: bool
    message: str
    method: str
    samples: int
    residual_norm: float
    residual_deviation: float
    relative_error: float
    determination: float
    condition: float
    scaled_condition: float
    singular_values: Array
    null_directions: tuple[Mapping[str, float], ...]
    undetermined: tuple[str, ...]
    at_bound: tuple[str, ...]
    intervals: Array
    confidence: float
    covariance_white: Array
    covariance_corrected: Array
    white: bool
    correction_lags: int
    whiteness: tuple[Whiteness, ...]
    degrees_of_freedom: str
    history: tuple[Progress, ...]
    evaluations: int
    records: tuple[str, ...]
    provenance: tuple[str, ...]

    def __getitem__(self, name: str) -> float:
        """Return the value of a free or fixed parameter."""
        if name not in self.parameters:
            raise EstimateError(
                f"estimate of {self.model!r}: no {name!r}. It has: {', '.join(self.parameters)}."
            )
        return self.parameters[name]

    @property
    def free(self) -> dict[str, float]:
        """The estimated values by name."""
        return dict(zip(self.names, map(float, self.values), strict=True))

    @property
    def fixed(self) -> dict[str, float]:
        """The values that were not estimated, by name."""
        return {name: value for name, value in self.parameters.items() if name not in self.names}

    @property
    def cost(self) -> float:
        """Half the squared residual norm; infinite or 0 where that is out of floating-point range."""
        return 0.5 * self.residual_norm * self.residual_norm

    @property
    def covariance(self) -> Array:
        """The covariance that counts, (n, n): white if the residual may be, else corrected."""
        return self.covariance_white if self.white else self.covariance_corrected

    @property
    def deviations(self) -> Array:
        """Standard deviations, shape (n,), from `covariance`."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def deviations_white(self) -> Array:
        """Standard deviations as if residuals were white, shape (n,)."""
        return np.sqrt(np.diag(self.covariance_white))

    @property
    def deviations_corrected(self) -> Array:
        """Standard deviations corrected for autocorrelation, shape (n,)."""
        return np.sqrt(np.diag(self.covariance_corrected))

    @property
    def correlations(self) -> Array:
        """Correlations of the estimates, (n, n); NaN for what is in a null direction."""
        deviation = self.deviations
        usable = np.where(np.isfinite(deviation) & (deviation > 0.0), deviation, np.nan)
        return self.covariance / usable[:, None] / usable[None, :]

    def deviation(self, name: str) -> float:
        """Return the standard deviation of a free parameter."""
        return float(self.deviations[self._place(name)])

    def interval(self, name: str) -> tuple[float, float]:
        """Return the confidence interval of a free parameter."""
        low, high = self.intervals[self._place(name)]
        return float(low), float(high)

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise EstimateError(
                f"estimate of {self.model!r}: {name!r} is not free. Free: {', '.join(self.names)}."
            )
        return self.names.index(name)

    def parameters_for(self, record: int = 0) -> dict[str, float]:
        """Return the parameters as one record had them, without the record's place in the names; no initial states."""
        suffix = f"[{record}]"
        result = {}
        for name, value in self.parameters.items():
            if name.startswith(("x0:", "d0:")):
                continue
            base, bracket, _ = name.partition("[")
            if not bracket:
                result[name] = value
            elif name.endswith(suffix):
                result[base] = value
        return result

    def table(self) -> str:
        """Return the estimate as text for reading."""
        lines = [f"{self.model}: {'converged' if self.success else 'NOT CONVERGED'} ({self.status})"]
        lines += [f"  {self.method}"] + ([f"  {self.message}"] if self.message else [])
        lines += ["", *self._rows(), ""]
        lines += [
            f"residual: norm {self.residual_norm:.6g}, relative {self.relative_error:.4f} %, R2 {self.determination:.6f}, "
            f"standard deviation {self.residual_deviation:.6g} ({self.degrees_of_freedom}), {self.samples} samples",
            f"condition {self.condition:.6g}, with columns scaled {self.scaled_condition:.6g}",
        ]
        for test in self.whiteness:
            verdict = "" if self.white else "; the corrected deviations count"
            lines.append(
                f"whiteness of {test.output} in record {test.record}: Q({test.lags}) = {test.statistic:.4g}, "
                f"p = {test.p_value:.3g}{verdict}"
            )
        for direction in self.null_directions:
            lines.append("not determined: " + " ".join(f"{c:+.4g}*{n}" for n, c in direction.items()))
        if self.undetermined:
            lines.append("undetermined by these data: " + ", ".join(self.undetermined))
        if self.at_bound:
            lines.append("at a bound: " + ", ".join(self.at_bound))
        if self.fixed:
            lines.append("fixed: " + ", ".join(f"{n} = {v:.6g}" for n, v in self.fixed.items()))
        return "\n".join(lines)

    def _rows(self) -> list[str]:
        percent = f"{100.0 * self.confidence:g} % interval"
        rows = [("parameter", "value", "white sd", "corrected sd", "sd %", percent, "unit")]
        for i, name in enumerate(self.names):
            value, deviation = float(self.values[i]), float(self.deviations[i])
            relative = 100.0 * deviation / abs(value) if value else math.inf
            low, high = self.intervals[i]
            rows.append(
                (
                    name,
                    f"{value:.6g}",
                    f"{self.deviations_white[i]:.4g}",
                    f"{self.deviations_corrected[i]:.4g}",
                    f"{relative:.3g}",
                    f"[{low:.6g}, {high:.6g}]",
                    self.units[i] or "1",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return [
            "  ".join(
                cell.ljust(width) if column in (0, 6) else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def save(self, path: str | Path) -> None:
        """Write the estimate to a ``.toml`` or ``.json`` file, whole or not at all."""
        from mechsmith.identification.storage import save_estimate

        save_estimate(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Estimate":
        """Return the estimate that `save` wrote."""
        from mechsmith.identification.storage import load_estimate

        return load_estimate(Path(path))
