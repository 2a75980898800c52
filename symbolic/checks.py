"""What is checked of a model when it is built, other than dimensions."""

import warnings
from collections.abc import Mapping, Sequence

import sympy
from sympy.core.function import AppliedUndef

from mechsmith.symbolic import graph
from mechsmith.symbolic.model import ROLES, Equation, Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity, leaf_name


class ModelWarning(UserWarning):
    """A model that is well formed and may still not be what its author wants."""


def check_types(model: Model) -> None:
    """Raise `ModelError` where a field holds something else than it should, before anything else is looked at."""
    if not isinstance(model.name, str):
        raise ModelError(f"model: name is {model.name!r}. Give text.")
    for field in (*ROLES, "crossings", "identities", "references"):
        value = getattr(model, field)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise ModelError(
                f"model {model.name!r}: {field} is {value!r}. Give a tuple; one of one has a comma: (x,)."
            )
    for field in ("definitions", "derivatives", "updates", "constraints", "outputs", "integrals"):
        if not isinstance(getattr(model, field), Mapping):
            raise ModelError(
                f"model {model.name!r}: {field} is {getattr(model, field)!r}. Give a mapping {{quantity: expression}}."
            )
    for field in (*ROLES, "definitions", "outputs"):
        for quantity in getattr(model, field):
            if not isinstance(quantity, Quantity):
                raise ModelError(
                    f"model {model.name!r}: {field} holds {quantity!r}, a {type(quantity).__name__}. "
                    f"Give a Quantity, which has a unit: Quantity({str(quantity)!r}, unit)."
                )


def check_model(model: Model) -> None:
    """Raise `ModelError` when a model is not well formed."""
    _check_names(model)
    _check_keys(model, "derivatives", "states")
    _check_keys(model, "updates", "discrete_states")
    _check_keys(model, "constraints", "unknowns")
    _check_mass(model)
    _check_sample_time(model)
    _check_integrals(model)
    _check_symbols(model)
    _warn_of_roots(model)


def _check_names(model: Model) -> None:
    taken: dict[str, str] = {}
    for role in (*ROLES, "definitions", "outputs"):
        for quantity in getattr(model, role):
            names = (
                [quantity.name]
                if not quantity.shape
                else [quantity.name, *(e.name for e in quantity.elements)]
            )
            for name in names:
                if name in taken:
                    raise ModelError(
                        f"model {model.name!r}: {name!r} is declared twice, in {taken[name]} and in {role}. Rename one of them."
                    )
                taken[name] = role


def _check_keys(model: Model, field: str, role: str) -> None:
    names = [key if isinstance(key, str) else _key_name(model, field, key) for key in getattr(model, field)]
    declared = [quantity.name for quantity in getattr(model, role)]
    for name in names:
        if name not in declared:
            raise ModelError(
                f"model {model.name!r}: {field}[{name}] belongs to none of the {role.replace('_', ' ')} "
                f"({', '.join(declared) or 'none declared'}). Declare {name!r} there or remove the equation."
            )
    for name in declared:
        if names.count(name) != 1:
            raise ModelError(
                f"model {model.name!r}: {name!r} of {role.replace('_', ' ')} has {names.count(name)} entries in {field}. Give one."
            )


def _key_name(model: Model, field: str, key: object) -> str:
    if isinstance(key, sympy.Symbol | AppliedUndef | sympy.Derivative):
        return leaf_name(key)
    raise ModelError(
        f"model {model.name!r}: {field} has the key {key!r}. Use the symbol or the name of a quantity."
    )


def _check_mass(model: Model) -> None:
    if model.mass is None:
        return
    size = sum(quantity.size for quantity in model.states)
    if model.mass.shape != (size, size):
        raise ModelError(
            f"model {model.name!r}: mass has shape {model.mass.shape}, its states have {size} elements. Give ({size}, {size})."
        )


def _check_sample_time(model: Model) -> None:
    parameters = [quantity.name for quantity in model.parameters]
    if model.discrete_states and model.sample_time is None:
        raise ModelError(
            f"model {model.name!r}: it has discrete states and no sample_time. Give the name of the parameter that holds it."
        )
    if model.sample_time is not None and model.sample_time not in parameters:
        raise ModelError(
            f"model {model.name!r}: sample_time {model.sample_time!r} is none of the parameters ({', '.join(parameters)})."
        )


def _check_integrals(model: Model) -> None:
    inputs = [quantity.name for quantity in model.inputs if not quantity.shape]
    for name, quantity in model.integrals.items():
        if name not in inputs:
            raise ModelError(
                f"model {model.name!r}: integrals[{name}] belongs to no scalar input ({', '.join(inputs) or 'none'}). "
                "Declare the input or remove the entry."
            )
        if quantity.name in model.quantities:
            raise ModelError(
                f"model {model.name!r}: integrals[{name}] is called {quantity.name!r}, which is declared already. Rename it."
            )


def _check_symbols(model: Model) -> None:
    equations = model.equations
    declared = {symbol.name: symbol for role in ROLES for q in getattr(model, role) for symbol in q.elements}
    used: set[str] = set() if model.sample_time is None else {model.sample_time}
    for equation, root in zip(equations, model.expression_graph.roots, strict=True):
        for leaf in model.expression_graph.leaves(root):
            if isinstance(leaf, sympy.Symbol):
                _check_declared(model, equation, leaf, declared)
                used.add(leaf.name)
            elif isinstance(leaf, sympy.Derivative):
                raise ModelError(
                    f"model {model.name!r}: {place(equation)} holds the derivative {leaf}. "
                    f"Declare {leaf_name(leaf)!r} as a state or input with that derivative as its symbol, or differentiate first (doit)."
                )
            elif isinstance(leaf, AppliedUndef):
                raise ModelError(
                    f"model {model.name!r}: {place(equation)} holds the function {leaf}, which is not declared. "
                    "Declare it as a state, or replace it by an expression."
                )
        if equation.kind == "definition":
            declared[equation.symbol.name] = equation.symbol
    for role in ("inputs", "parameters", "definitions", "unknowns"):
        for quantity in getattr(model, role):
            if not used & {element.name for element in quantity.elements}:
                raise ModelError(
                    f"model {model.name!r}: {quantity.name!r} of {role} is used by no equation. Use it or remove it."
                )


def _check_declared(
    model: Model, equation: Equation, symbol: sympy.Symbol, declared: Mapping[str, sympy.Symbol]
) -> None:
    if symbol.name not in declared:
        later = symbol.name in model.symbols
        hint = (
            f"{symbol.name!r} is defined later: definitions are ordered. Move it up."
            if later
            else "Declare it as a Quantity of this model."
        )
        listed = "; ".join(
            f"{role.replace('_', ' ')} {', '.join(q.name for q in getattr(model, role))}"
            for role in (*ROLES, "definitions")
            if getattr(model, role)
        )
        raise ModelError(
            f"model {model.name!r}: {place(equation)} uses undeclared symbol {symbol.name!r}.\nDeclared: {listed}.\n{hint}"
        )
    if symbol != declared[symbol.name]:
        raise ModelError(
            f"model {model.name!r}: {place(equation)} uses a symbol {symbol.name!r} with assumptions {_assumptions(symbol)}, "
            f"declared is {symbol.name!r} with {_assumptions(declared[symbol.name])}: to SymPy these are two symbols. "
            "Use one object for both; symbols are real."
        )


def _assumptions(symbol: sympy.Symbol) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(symbol._assumptions_orig.items())) or "none"


def place(equation: Equation) -> str:
    """Return how an equation is named in messages: ``derivatives[velocity]``."""
    plural = {"mass": "mass", "crossing": "crossings"}.get(equation.kind, equation.kind + "s")
    return f"{plural}[{equation.symbol.name}]"


def _warn_of_roots(model: Model) -> None:
    """Warn of sqrt of a sum of squares: its derivative at zero is 0/0."""
    interned = model.expression_graph
    suspects = {number for number, node in enumerate(interned.nodes) if _is_norm(model, node.expression)}
    if not suspects:
        return
    for equation, root in zip(model.equations, interned.roots, strict=True):
        for number in suspects.intersection(interned.below(root)):
            warnings.warn(
                f"model {model.name!r}: {place(equation)} holds {graph.shown(interned.nodes[number].expression)}, "
                "whose derivative is 0/0 where all its terms vanish. "
                "Use the square, or add a small positive constant under the root.",
                ModelWarning,
                stacklevel=5,
            )


def _is_norm(model: Model, expression: sympy.Basic) -> bool:
    """Tell whether it is the root of a sum of squares, none of which is a constant other than zero."""
    if not (
        isinstance(expression, sympy.Pow)
        and isinstance(expression.base, sympy.Add)
        and isinstance(expression.exp, sympy.Number)
        and abs(expression.exp) == sympy.S.Half
    ):
        return False
    squares = [term for term in expression.base.args if isinstance(term, sympy.Pow) and term.exp == 2]
    positive = {symbol for quantity in model.parameters if quantity.lower > 0 for symbol in quantity.elements}
    return len(squares) == len(expression.base.args) and not any(
        square.base in positive for square in squares
    )
