"""How well known parameters predict another record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.estimate import Estimate
from mechsmith.identification.metrics import max_percentage_error, relative_error, wape
from mechsmith.identification.norms import norm
from mechsmith.identification.problem import Problem
from mechsmith.identification.record import Record
from mechsmith.identification.residuals import Residual

if TYPE_CHECKING:
    from mechsmith.codegen.simulator import Simulator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OutputFit:
    """How well one output is predicted.

    Parameters
    ----------
    output, unit : str
        Which, and its unit.
    relative_error, wape, max_percentage_error : float
        %, see `mechsmith.identification.metrics`; NaN when every measured value is 0.
    root_mean_square : float
        Of the error, in the unit.
    """

    output: str
    unit: str
    relative_error: float
    wape: float
    max_percentage_error: float
    root_mean_square: float


@dataclass(frozen=True, eq=False)
class Validation:
    """The prediction of a record and its errors.

    Parameters
    ----------
    model : str
        Name of the model.
    status : str
        Empty when fine, else the simulator's word.
    success : bool
        Whether the prediction is finite throughout.
    relative_error : float
        Over all outputs, weighted by noise where given, %.
    outputs : tuple of OutputFit
        By output.
    predicted : Record
        The predicted outputs at every sample, before decimation.
    """

    model: str
    status: str
    success: bool
    relative_error: float
    outputs: tuple[OutputFit, ...]
    predicted: Record

    def __getitem__(self, output: str) -> OutputFit:
        """Return the fit of one output."""
        for fit in self.outputs:
            if fit.output == output:
                return fit
        raise KeyError(
            f"validation: no output {output!r}; there are {', '.join(f.output for f in self.outputs)}."
        )

    def table(self) -> str:
        """Return the errors as text for reading."""
        lines = [f"{self.model}: relative error {self.relative_error:.4f} % {self.status}".rstrip()]
        for fit in self.outputs:
            lines.append(
                f"  {fit.output}: relative {fit.relative_error:.4f} %, WAPE {fit.wape:.4f} %, "
                f"maxPE {fit.max_percentage_error:.2f} %, RMS {fit.root_mean_square:.6g} {fit.unit or '1'}"
            )
        return "\n".join(lines)


def validate(
    system: "FunctionSet | Simulator",
    record: Record,
    parameters: Estimate | Mapping[str, float],
    residual: Residual,
    *,
    measured: tuple[str, ...] = (),
    initial: Mapping[str, float] | None = None,
    delayed: tuple[str, ...] = (),
) -> Validation:
    """Predict a record with known parameters and compare.

    Parameters
    ----------
    system : FunctionSet or Simulator
        As for `Problem`.
    record : Record
        Not one that the parameters come from, to be worth something.
    parameters : Estimate or mapping of name to float
        Of an estimate, its parameters as its first record had them; its initial states are not used.
    residual : EquationError or OutputError
        What is compared.
    measured : tuple of str
        Initial states, as ``x0:position``, taken from the record's first sample.
    initial : mapping of name to float, optional
        Other initial states; nominal values or 0 fill the rest.
    delayed : tuple of str
        Columns that come later by ``dead_time``, if that is among the parameters.

    Returns
    -------
    Validation
        With a `status` when a simulation failed.

    Raises
    ------
    ProblemError
        If a name is unknown or a column is missing.
    """
    values = parameters.parameters_for(0) if isinstance(parameters, Estimate) else dict(parameters)
    problem = Problem(
        system,
        (record,),
        (),
        residual,
        fixed={**values, **(initial or {})},
        measured=measured,
        delayed=delayed,
    )
    nothing = np.zeros(0)
    outputs, status = problem.predictions[0].outputs(problem.arguments(nothing, 0))
    success = not status and bool(np.isfinite(outputs).all())
    comparison = problem.comparison
    # outputs that failed stay NaN in the record: the status says why
    predicted = Record(
        record.time,
        {name: outputs[:, i] for i, name in enumerate(comparison.names)},
        dict(zip(comparison.names, comparison.units, strict=True)),
        f"{problem.functions.name} on {record.source}",
        (*record.provenance, f"predicted by {problem.functions.name} with {_described(values)}"),
    )
    error, measurement = problem.record_residual(nothing, 0), problem.measurements[0]
    size = norm(measurement / comparison.noise)
    relative = 100.0 * norm(error) / size if size > 0.0 else np.inf
    fits = tuple(
        _fit(name, comparison.units[i], error[:, i] * comparison.noise[i], measurement[:, i])
        for i, name in enumerate(comparison.names)
    )
    return Validation(problem.functions.name, status, success, float(relative), fits, predicted)


def _described(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items()) or "nominal values"


def _fit(name: str, unit: str, error: Array, measured: Array) -> OutputFit:
    if not np.isfinite(error).all():
        return OutputFit(name, unit, np.nan, np.nan, np.nan, np.nan)
    root_mean_square = norm(error) / np.sqrt(len(error))
    if not measured.any():
        return OutputFit(name, unit, np.nan, np.nan, np.nan, float(root_mean_square))
    predicted = measured + error
    return OutputFit(
        name,
        unit,
        relative_error(predicted, measured),
        wape(predicted, measured),
        max_percentage_error(predicted, measured),
        float(root_mean_square),
    )
