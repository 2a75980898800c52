"""Named functions of a model with the names, shapes and units of every argument.

A `FunctionSet` is the seam of mechsmith: lowering a model, importing a generated module and compiling
generated C all give one, and whoever takes one need not know which.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import casadi
import numpy
from numpy.typing import ArrayLike, NDArray

ARGUMENTS = ("x", "d", "z", "u", "p")
ROLE_OF_ARGUMENT = {
    "x": "states",
    "d": "discrete_states",
    "z": "unknowns",
    "u": "inputs",
    "p": "parameters",
}
Capability = Literal["embeddable", "derivatives", "batch"]
Array = NDArray[numpy.float64]


class FunctionSetError(ValueError):
    """A function, argument or capability that is not there, or a value of the wrong size."""


@dataclass(frozen=True)
class Variable:
    """One quantity as executable code sees it.

    Parameters
    ----------
    name, unit, description : str
        As in the model; `unit` has one entry for each element.
    shape : tuple of int
        Empty for a scalar.
    nominal, lower, upper : float
        In the unit. `nominal` is None when the model gives none.
    """

    name: str
    unit: tuple[str, ...]
    shape: tuple[int, ...] = ()
    description: str = ""
    nominal: float | None = None
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each element, row by row."""
        if not self.shape:
            return (self.name,)
        return tuple(f"{self.name}_{'_'.join(map(str, index))}" for index in numpy.ndindex(*self.shape))


class Evaluator(Protocol):
    """One function of (x, d, z, u, p) that returns a matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result."""

    def __call__(self, *arguments: Array) -> Array:
        """Evaluate at one point; arguments are flat, the result has `shape`."""

    def batch(self, *arguments: Array) -> Array:
        """Evaluate at many points: each argument `(n, size)` or `(1, size)`; the result is `(n, *shape)`."""


@dataclass(frozen=True)
class CasadiEvaluator:
    """A CasADi function of (x, d, z, u, p) with one dense output."""

    function: casadi.Function

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        return (int(self.function.size1_out(0)), int(self.function.size2_out(0)))

    def __call__(self, *arguments: Array) -> Array:
        """Evaluate at one point."""
        return numpy.asarray(self.function(*arguments).full(), dtype=float)

    def batch(self, *arguments: Array) -> Array:
        """Evaluate at many points in CasADi's machine."""
        rows, columns = self.shape
        count = max(argument.shape[0] for argument in arguments)
        whole = [numpy.broadcast_to(a, (count, a.shape[1])).T if a.shape[0] == 1 else a.T for a in arguments]
        result = self.function.map(count)(*whole).full()
        return numpy.ascontiguousarray(result.reshape(rows, count, columns).transpose(1, 0, 2))


@dataclass(frozen=True)
class FunctionSet:
    """Functions by name, all of (x, d, z, u, p) as flat vectors.

    Parameters
    ----------
    name : str
        Name of the model.
    states, discrete_states, unknowns, inputs, parameters, outputs : tuple of Variable
        The quantities by role.
    functions : mapping of str to Evaluator
        ``derivative`` (nx, 1), ``mass`` (nx, nx), ``update`` (nd, 1), ``constraint`` (nz, 1),
        ``output`` (ny, 1), ``crossing`` (nc, 1): those that the model has; and Jacobians, named as
        ``output_p`` for the derivative of the outputs with respect to the parameters.
    capabilities : frozenset
        ``embeddable``: the functions are CasADi's and can stand in another expression;
        ``derivatives``: Jacobians can be added; ``batch``: many points are evaluated in compiled code.
    sample_time : str, optional
        Name of the parameter that is the sample time of the discrete states.
    integrals : tuple of (input, Variable)
        Inputs whose integral over time may be sampled too, and that integral.
    description : str
        One sentence.
    references : tuple of str
        Where the equations come from.
    """

    name: str
    states: tuple[Variable, ...]
    discrete_states: tuple[Variable, ...]
    unknowns: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    functions: Mapping[str, Evaluator]
    capabilities: frozenset[Capability]
    sample_time: str | None = None
    integrals: tuple[tuple[str, Variable], ...] = ()
    description: str = ""
    references: tuple[str, ...] = ()

    # -- names and values -------------------------------------------------------------------------------

    def variables(self, argument: str) -> tuple[Variable, ...]:
        """Return the quantities of an argument (``x``, ``d``, ``z``, ``u``, ``p``) or of ``y``, the outputs."""
        role = ROLE_OF_ARGUMENT.get(argument, "outputs" if argument == "y" else "")
        if not role:
            raise FunctionSetError(
                f"functions {self.name!r}: no argument {argument!r}. Use one of x, d, z, u, p, y."
            )
        return getattr(self, role)

    def labels(self, argument: str) -> tuple[str, ...]:
        """Return the name of each element of an argument, or of the outputs with ``y``."""
        return tuple(label for variable in self.variables(argument) for label in variable.labels)

    def units(self, argument: str) -> tuple[str, ...]:
        """Return the unit of each element of an argument, or of the outputs with ``y``."""
        return tuple(unit for variable in self.variables(argument) for unit in variable.unit)

    def size(self, argument: str) -> int:
        """Return the number of elements of an argument, or of the outputs with ``y``."""
        return sum(variable.size for variable in self.variables(argument))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of elements of x, d, z, u, p."""
        return tuple(self.size(argument) for argument in ARGUMENTS)

    def vector(self, argument: str, values: Mapping[str, ArrayLike] | None = None) -> Array:
        """Return the flat vector of an argument from named values; nominal values fill what is not given.

        Parameters
        ----------
        argument : str
            ``x``, ``d``, ``z``, ``u`` or ``p``.
        values : mapping of name to number or array
            Names of quantities or of their elements.

        Raises
        ------
        FunctionSetError
            If a name is unknown, a size is wrong, or a value is neither given nor nominal.
        """
        remaining = dict(values or {})
        flat: list[float] = []
        missing: list[str] = []
        for variable in self.variables(argument):
            flat += self._elements(argument, variable, remaining, missing)
        if remaining:
            raise FunctionSetError(
                f"functions {self.name!r}: no {', '.join(map(repr, remaining))} among the {ROLE_OF_ARGUMENT[argument]} "
                f"({', '.join(self.labels(argument)) or 'none'})."
            )
        if missing:
            raise FunctionSetError(
                f"functions {self.name!r}: no value for {', '.join(map(repr, missing))} of {ROLE_OF_ARGUMENT[argument]}, "
                "and no nominal value. Give one."
            )
        return numpy.array(flat, dtype=float)

    def _elements(
        self, argument: str, variable: Variable, remaining: dict[str, ArrayLike], missing: list[str]
    ) -> list[float]:
        if variable.name in remaining:
            given = numpy.asarray(remaining.pop(variable.name), dtype=float).reshape(-1)
            if given.size != variable.size:
                raise FunctionSetError(
                    f"functions {self.name!r}: {variable.name!r} of {ROLE_OF_ARGUMENT[argument]} got {given.size} values, "
                    f"its shape is {variable.shape}. Give {variable.size}."
                )
            return [float(value) for value in given]
        default = variable.nominal
        if default is None and argument in ("x", "d"):
            default = 0.0
        elements = []
        for label in variable.labels:
            value = remaining.pop(label, default)
            if value is None:
                missing.append(label)
                value = math.nan
            elements.append(float(numpy.asarray(value)))
        return elements

    # -- evaluation -------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Evaluator:
        """Return the function of that name."""
        if name not in self.functions:
            raise FunctionSetError(
                f"functions {self.name!r}: there is no {name!r}. It has: {', '.join(self.functions)}."
            )
        return self.functions[name]

    def evaluate(
        self,
        name: str,
        x: ArrayLike = (),
        d: ArrayLike = (),
        z: ArrayLike = (),
        u: ArrayLike = (),
        p: ArrayLike = (),
    ) -> Array:
        """Evaluate a function at one point, shape as in `functions`."""
        return self[name](*self._checked(name, (x, d, z, u, p), 1))

    def batch(
        self,
        name: str,
        x: ArrayLike = (),
        d: ArrayLike = (),
        z: ArrayLike = (),
        u: ArrayLike = (),
        p: ArrayLike = (),
    ) -> Array:
        """Evaluate a function at many points.

        Parameters
        ----------
        name : str
            Which function.
        x, d, z, u, p : array
            Shape ``(n, size)``, or ``(size,)`` for a value that all points share.

        Returns
        -------
        array
            Shape ``(n, rows, columns)``.
        """
        arguments = self._checked(name, (x, d, z, u, p), 2)
        if any(argument.shape[0] == 0 for argument in arguments):
            return numpy.empty((0, *self[name].shape))
        return self[name].batch(*arguments)

    def _checked(self, name: str, arguments: Sequence[ArrayLike], dimensions: int) -> list[Array]:
        checked = []
        count = 1
        for argument, size, value in zip(ARGUMENTS, self.sizes, arguments, strict=True):
            array = numpy.ascontiguousarray(value, dtype=float)
            if array.size == 0 and size == 0:
                array = array.reshape(0)
            if array.ndim > dimensions or array.ndim < 1 or array.shape[-1] != size:
                raise FunctionSetError(
                    f"functions {self.name!r}: {name}: {argument} has shape {array.shape}, its last axis must have {size} "
                    f"({', '.join(self.labels(argument)) or 'none'})."
                )
            if dimensions == 2:
                array = array.reshape(-1, size) if size else array.reshape(1, 0)
                if array.shape[0] != 1:
                    if count not in (1, array.shape[0]):
                        raise FunctionSetError(
                            f"functions {self.name!r}: {name}: {argument} has {array.shape[0]} points, another argument {count}."
                        )
                    count = array.shape[0]
            checked.append(array)
        return checked

    # -- CasADi -----------------------------------------------------------------------------------------

    def require(self, capability: Capability, who: str) -> None:
        """Raise `FunctionSetError` when a capability is missing; `who` needs it."""
        if capability not in self.capabilities:
            raise FunctionSetError(
                f"{who} needs functions with the capability {capability!r}; {self.name!r} has "
                f"{', '.join(sorted(self.capabilities)) or 'none'}. Use the functions lowered from the model or a generated module."
            )

    def casadi_function(self, name: str) -> casadi.Function:
        """Return the CasADi function of that name, of (x, d, z, u, p)."""
        self.require("embeddable", f"the CasADi function {name!r}")
        evaluator = self[name]
        if not isinstance(evaluator, CasadiEvaluator):
            raise FunctionSetError(f"functions {self.name!r}: {name!r} is no CasADi function.")
        return evaluator.function

    def arguments(self) -> tuple[casadi.SX, ...]:
        """Return fresh CasADi symbols for x, d, z, u, p."""
        return tuple(
            casadi.SX.sym(argument, size) for argument, size in zip(ARGUMENTS, self.sizes, strict=True)
        )

    def with_functions(self, added: Mapping[str, casadi.Function]) -> "FunctionSet":
        """Return the set with CasADi functions added; each is of (x, d, z, u, p) with one output."""
        self.require("embeddable", "adding functions")
        evaluators = {name: CasadiEvaluator(function) for name, function in added.items()}
        return dataclasses.replace(self, functions={**self.functions, **evaluators})

    def with_jacobians(self, *pairs: tuple[str, str]) -> "FunctionSet":
        """Return the set with Jacobians added, exact and dense.

        Parameters
        ----------
        *pairs : (function, argument)
            ``("output", "p")`` adds ``output_p`` of shape (outputs, parameters).
        """
        pairs = tuple(pair for pair in pairs if "_".join(pair) not in self.functions)
        if not pairs:
            return self
        self.require("derivatives", "a Jacobian")
        added = {}
        for of, wrt in pairs:
            if wrt not in ARGUMENTS:
                raise FunctionSetError(
                    f"functions {self.name!r}: no argument {wrt!r}. Use one of {', '.join(ARGUMENTS)}."
                )
            symbols = self.arguments()
            expression = casadi.vec(self.casadi_function(of)(*symbols))
            jacobian = casadi.densify(casadi.jacobian(expression, symbols[ARGUMENTS.index(wrt)]))
            added[f"{of}_{wrt}"] = make_function(f"{of}_{wrt}", symbols, jacobian)
        return self.with_functions(added)

    def bake(self, values: Mapping[str, float]) -> "FunctionSet":
        """Return the functions with some parameters put in as numbers, which are then no arguments any more.

        Parameters
        ----------
        values : mapping of parameter name to number
            Scalar parameters, in their units.

        Raises
        ------
        FunctionSetError
            If a name is no scalar parameter, or a value is outside its bounds.
        """
        self.require("embeddable", "baking parameters in")
        scalars = {variable.name: variable for variable in self.parameters if not variable.shape}
        for name, value in values.items():
            if name not in scalars:
                raise FunctionSetError(
                    f"functions {self.name!r}: can't bake {name!r}, which is no scalar parameter ({', '.join(scalars)})."
                )
            if not scalars[name].lower <= value <= scalars[name].upper:
                raise FunctionSetError(
                    f"functions {self.name!r}: {name} = {value} is outside [{scalars[name].lower}, {scalars[name].upper}]."
                )
        if self.sample_time in values:
            raise FunctionSetError(
                f"functions {self.name!r}: {self.sample_time!r} is the sample time and stays open."
            )
        kept = tuple(variable for variable in self.parameters if variable.name not in values)
        reduced = dataclasses.replace(self, parameters=kept)
        symbols = reduced.arguments()
        places = {label: symbols[4][i] for i, label in enumerate(reduced.labels("p"))}
        full = casadi.vertcat(
            *(places[label] if label in places else values[label] for label in self.labels("p"))
        )
        functions = {
            name: make_function(name, symbols, self.casadi_function(name)(*symbols[:4], full))
            for name in self.functions
        }
        evaluators = {name: CasadiEvaluator(function) for name, function in functions.items()}
        return dataclasses.replace(reduced, functions=evaluators)

    def product(self, of: str, wrt: str, direction: Literal["forward", "adjoint"]) -> casadi.Function:
        """Return the Jacobian times a vector (forward) or its transpose times a vector (adjoint).

        The CasADi function is of (x, d, z, u, p, vector).
        """
        self.require("derivatives", "a Jacobian product")
        symbols = self.arguments()
        expression = casadi.vec(self.casadi_function(of)(*symbols))
        target = symbols[ARGUMENTS.index(wrt)]
        transposed = direction == "adjoint"
        vector = casadi.SX.sym("vector", expression.numel() if transposed else target.numel())
        result = casadi.densify(casadi.jtimes(expression, target, vector, transposed))
        return casadi.Function(f"{of}_{wrt}_{direction}", [*symbols, vector], [result])


def make_function(name: str, symbols: Sequence[casadi.SX], expression: casadi.SX) -> casadi.Function:
    """Return a CasADi function of (x, d, z, u, p) with one dense output, shared subexpressions computed once."""
    dense = casadi.densify(casadi.cse(expression))
    return casadi.Function(name, list(symbols), [dense], list(ARGUMENTS), [name + "_out"])


def metadata(functions: FunctionSet) -> dict[str, Any]:
    """Return the names, shapes, units and bounds as plain dictionaries, in a fixed order."""
    result: dict[str, Any] = {
        "name": functions.name,
        "description": functions.description,
        "references": list(functions.references),
        "sample_time": functions.sample_time,
    }
    for argument in (*ARGUMENTS, "y"):
        role = ROLE_OF_ARGUMENT.get(argument, "outputs")
        result[role] = [_to_dictionary(variable) for variable in functions.variables(argument)]
    result["integrals"] = {name: _to_dictionary(variable) for name, variable in functions.integrals}
    return result


def _to_dictionary(variable: Variable) -> dict[str, Any]:
    return {**dataclasses.asdict(variable), "unit": list(variable.unit), "shape": list(variable.shape)}


def _from_dictionary(entry: Mapping[str, Any]) -> Variable:
    return Variable(**{**entry, "unit": tuple(entry["unit"]), "shape": tuple(entry["shape"])})


def from_metadata(
    data: Mapping[str, Any], evaluators: Mapping[str, Evaluator], capabilities: frozenset[Capability]
) -> FunctionSet:
    """Return a FunctionSet from what `metadata` gave and the functions."""

    def variables(role: str) -> tuple[Variable, ...]:
        return tuple(
            Variable(**{**entry, "unit": tuple(entry["unit"]), "shape": tuple(entry["shape"])})
            for entry in data[role]
        )

    return FunctionSet(
        name=data["name"],
        states=variables("states"),
        discrete_states=variables("discrete_states"),
        unknowns=variables("unknowns"),
        inputs=variables("inputs"),
        parameters=variables("parameters"),
        outputs=variables("outputs"),
        functions=dict(evaluators),
        capabilities=capabilities,
        sample_time=data["sample_time"],
        integrals=tuple((name, _from_dictionary(entry)) for name, entry in data["integrals"].items()),
        description=data["description"],
        references=tuple(data["references"]),
    )


def from_casadi(data: Mapping[str, Any], functions: Mapping[str, casadi.Function]) -> FunctionSet:
    """Return the FunctionSet of CasADi functions, for instance of a generated module's."""
    evaluators = {name: CasadiEvaluator(function) for name, function in functions.items()}
    return from_metadata(data, evaluators, frozenset({"embeddable", "derivatives"}))
