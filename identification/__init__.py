"""From functions and records to parameters, with what the data say about their precision. SymPy is never loaded."""

from mechsmith.identification.constraints import Constraint, ConstraintError
from mechsmith.identification.estimate import Estimate, EstimateError
from mechsmith.identification.evolution import DifferentialEvolution
from mechsmith.identification.identify import IdentificationFailed, identify
from mechsmith.identification.linear import LinearLeastSquares
from mechsmith.identification.method import Method, MethodError, Solution
from mechsmith.identification.nlp.ipopt import Ipopt
from mechsmith.identification.preprocessing import Decimation
from mechsmith.identification.problem import Prior, Problem, ProblemError
from mechsmith.identification.record import Record
from mechsmith.identification.residuals import EquationError, OutputError
from mechsmith.identification.scaling import Identity, Log
from mechsmith.identification.search import LeastSquares, MultiStart
from mechsmith.identification.uncertainty import Uncertainty
from mechsmith.identification.validate import Validation, validate

__all__ = [
    "Constraint",
    "ConstraintError",
    "Decimation",
    "DifferentialEvolution",
    "EquationError",
    "Estimate",
    "EstimateError",
    "IdentificationFailed",
    "Identity",
    "Ipopt",
    "LeastSquares",
    "LinearLeastSquares",
    "Log",
    "Method",
    "MethodError",
    "MultiStart",
    "OutputError",
    "Prior",
    "Problem",
    "ProblemError",
    "Record",
    "Solution",
    "Uncertainty",
    "Validation",
    "identify",
    "validate",
]
