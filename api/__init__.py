"""mechsmith: mechanics in SymPy, verified, generated to CasADi and C, identified from data."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechsmith.codegen.build import build, build_simulator
    from mechsmith.codegen.discretise import Discretisation, discretise
    from mechsmith.codegen.functions import FunctionSet
    from mechsmith.codegen.integrators import Exponential, ImplicitMidpoint, Radau, RungeKutta4
    from mechsmith.codegen.lower import lower
    from mechsmith.codegen.simulator import CasadiSimulator
    from mechsmith.identification.estimate import Estimate
    from mechsmith.identification.identify import identify
    from mechsmith.identification.linear import LinearLeastSquares
    from mechsmith.identification.problem import Prior, Problem
    from mechsmith.identification.readers import ColumnSpec, read_record
    from mechsmith.identification.record import Record
    from mechsmith.identification.residuals import EquationError, OutputError
    from mechsmith.identification.search import LeastSquares, MultiStart
    from mechsmith.identification.validate import Validation, validate
    from mechsmith.report.document import report_html, write_report
    from mechsmith.study.run import StudyResult, run_study
    from mechsmith.study.schema import load_study
    from mechsmith.study.sources import Study
    from mechsmith.symbolic.catalogue import CATALOGUE, make_model
    from mechsmith.symbolic.compose import compose
    from mechsmith.symbolic.model import Model
    from mechsmith.symbolic.names import ModelError
    from mechsmith.symbolic.quantity import Quantity
    from mechsmith.symbolic.statement import Identity, Statement
    from mechsmith.symbolic.verify import Verdict, verify

__version__ = "0.1.0"

# Where each public name is. They are loaded on first use (PEP 562), so that `import mechsmith.identification` does
# not load SymPy and the command line answers at once.
_PLACES = {
    "build": "codegen.build",
    "build_simulator": "codegen.build",
    "Discretisation": "codegen.discretise",
    "discretise": "codegen.discretise",
    "FunctionSet": "codegen.functions",
    "Exponential": "codegen.integrators",
    "ImplicitMidpoint": "codegen.integrators",
    "Radau": "codegen.integrators",
    "RungeKutta4": "codegen.integrators",
    "lower": "codegen.lower",
    "CasadiSimulator": "codegen.simulator",
    "Estimate": "identification.estimate",
    "identify": "identification.identify",
    "LinearLeastSquares": "identification.linear",
    "Prior": "identification.problem",
    "Problem": "identification.problem",
    "ColumnSpec": "identification.readers",
    "read_record": "identification.readers",
    "Record": "identification.record",
    "EquationError": "identification.residuals",
    "OutputError": "identification.residuals",
    "LeastSquares": "identification.search",
    "MultiStart": "identification.search",
    "Validation": "identification.validate",
    "validate": "identification.validate",
    "report_html": "report.document",
    "write_report": "report.document",
    "StudyResult": "study.run",
    "run_study": "study.run",
    "Study": "study.sources",
    "load_study": "study.schema",
    "CATALOGUE": "symbolic.catalogue",
    "make_model": "symbolic.catalogue",
    "compose": "symbolic.compose",
    "Model": "symbolic.model",
    "ModelError": "symbolic.names",
    "Quantity": "symbolic.quantity",
    "Identity": "symbolic.statement",
    "Statement": "symbolic.statement",
    "Verdict": "symbolic.verify",
    "verify": "symbolic.verify",
}

__all__ = [
    "CATALOGUE",
    "CasadiSimulator",
    "ColumnSpec",
    "Discretisation",
    "EquationError",
    "Estimate",
    "Exponential",
    "FunctionSet",
    "Identity",
    "ImplicitMidpoint",
    "LeastSquares",
    "LinearLeastSquares",
    "Model",
    "ModelError",
    "MultiStart",
    "OutputError",
    "Prior",
    "Problem",
    "Quantity",
    "Radau",
    "Record",
    "RungeKutta4",
    "Statement",
    "Study",
    "StudyResult",
    "Validation",
    "Verdict",
    "__version__",
    "build",
    "build_simulator",
    "compose",
    "discretise",
    "identify",
    "load_study",
    "lower",
    "make_model",
    "read_record",
    "report_html",
    "run_study",
    "validate",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name not in _PLACES:
        raise AttributeError(f"module 'mechsmith' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"mechsmith.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
