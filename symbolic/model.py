"""The one form that holds every model.

    M dx/dt = f   continuous states x
    d[k+1]  = r   discrete states d
          0 = g   algebraic unknowns z
          y = h   outputs y, with inputs u and parameters p

A `Model` is frozen and checked when it is built; `Model.replace` makes a variant of it.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import sympy
from sympy.core.function import AppliedUndef

from mechsmith.symbolic import graph
from mechsmith.symbolic.names import ModelError, identifier
from mechsmith.symbolic.quantity import Quantity, leaf_name
from mechsmith.symbolic.reality import made_real

if TYPE_CHECKING:
    from mechsmith.symbolic.verify import Identity

Role = Literal["states", "discrete_states", "unknowns", "inputs", "parameters", "definitions", "outputs"]
Kind = Literal["definition", "derivative", "update", "constraint", "output", "mass", "crossing"]
Reference: TypeAlias = sympy.Basic | str
Value: TypeAlias = sympy.Basic | float | Sequence[object]

ROLES: tuple[Role, ...] = ("states", "discrete_states", "unknowns", "inputs", "parameters")


class Equation(NamedTuple):
    """One scalar equation ``symbol = expression`` of a model, in the role that `kind` names."""

    kind: Kind
    quantity: Quantity
    symbol: sympy.Symbol
    expression: sympy.Basic
    unit: str


@dataclass(frozen=True)
class Model:
    """Equations of a mechanism, with every quantity declared.

    Expressions may use every declared quantity and the definitions before them, as symbols or, for states,
    as SymPy functions of time. Inside the model each quantity is one real symbol of its name.

    Parameters
    ----------
    name : str
        Name of the model; generated code carries it as a prefix.
    states, discrete_states, unknowns, inputs, parameters : tuple of Quantity
        The quantities by role (x, d, z, u, p).
    definitions : mapping of Quantity to expression
        Ordered intermediate quantities, each in terms of those before it.
    derivatives : mapping of state to expression
        f, for every state (by symbol or name).
    mass : sympy.Matrix, optional
        M, one row for each state element; the identity when not given.
    updates : mapping of discrete state to expression
        r, for every discrete state.
    sample_time : str, optional
        Name of the parameter that is the sample time of the discrete states; needed with them.
    constraints : mapping of unknown to expression
        g, for every unknown the expression that vanishes.
    outputs : mapping of Quantity to expression
        h.
    crossings : tuple of expressions
        Where one of them passes zero, integrators split the step.
    integrals : mapping of input to Quantity
        The integral over time of an input, where a log has it too (position for a velocity): integrators
        then reconstruct the input between samples by Hermite interpolation.
    identities : tuple of Identity
        What must hold of this model; see `mechsmith.symbolic.verify`.
    description : str
        What the model is, one sentence.
    references : tuple of str
        Where the equations come from.

    Raises
    ------
    ModelError
        Names the model, the field, what was got and what to do.
    """

    name: str
    states: tuple[Quantity, ...] = ()
    discrete_states: tuple[Quantity, ...] = ()
    unknowns: tuple[Quantity, ...] = ()
    inputs: tuple[Quantity, ...] = ()
    parameters: tuple[Quantity, ...] = ()
    definitions: Mapping[Quantity, Value] = field(default_factory=dict)
    derivatives: Mapping[Reference, Value] = field(default_factory=dict)
    mass: sympy.Matrix | None = None
    updates: Mapping[Reference, Value] = field(default_factory=dict)
    sample_time: str | None = None
    constraints: Mapping[Reference, Value] = field(default_factory=dict)
    outputs: Mapping[Quantity, Value] = field(default_factory=dict)
    crossings: tuple[sympy.Expr, ...] = ()
    integrals: Mapping[str, Quantity] = field(default_factory=dict)
    identities: "tuple[Identity, ...]" = ()
    description: str = ""
    references: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        from mechsmith.symbolic.checks import check_model, check_types
        from mechsmith.symbolic.dimensions import check_dimensions

        check_types(self)
        for role in (*ROLES, "crossings", "identities", "references"):
            object.__setattr__(self, role, tuple(getattr(self, role)))
        identifier(self.name)
        check_model(self)
        check_dimensions(self)

    # -- looking things up ----------------------------------------------------------------------------

    @cached_property
    def quantities(self) -> Mapping[str, Quantity]:
        """Every quantity by its name: the five roles, then definitions, then outputs."""
        groups: Iterable[Iterable[Quantity]] = (
            *(getattr(self, role) for role in ROLES),
            self.definitions,
            self.outputs,
        )
        return {quantity.name: quantity for group in groups for quantity in group}

    @cached_property
    def symbols(self) -> Mapping[str, sympy.Symbol]:
        """Every scalar symbol by its name."""
        return {symbol.name: symbol for quantity in self.quantities.values() for symbol in quantity.elements}

    def __getitem__(self, name: str) -> sympy.Symbol:
        """Return the scalar symbol of that name."""
        if name not in self.symbols:
            raise ModelError(
                f"model {self.name!r} has no symbol {name!r}. It has: {', '.join(self.symbols)}."
            )
        return self.symbols[name]

    def role_of(self, name: str) -> Role:
        """Return the role of the quantity of that name."""
        for role in (*ROLES, "definitions", "outputs"):
            if any(quantity.name == name for quantity in getattr(self, role)):
                return role
        raise ModelError(
            f"model {self.name!r} has no quantity {name!r}. It has: {', '.join(self.quantities)}."
        )

    # -- the equations, scalar by scalar ----------------------------------------------------------------

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """Every scalar equation: definitions, derivatives, updates, constraints, outputs, mass, crossings.

        Functions of time and symbols without assumptions have become the quantities' own real symbols.
        """
        raw = [*self._keyed("definition", self.definitions)]
        raw += self._referred("derivative", self.derivatives, self.states)
        raw += self._referred("update", self.updates, self.discrete_states)
        raw += self._referred("constraint", self.constraints, self.unknowns)
        raw += self._keyed("output", self.outputs)
        if self.mass is not None:
            elements = [(quantity, symbol) for quantity in self.states for symbol in quantity.elements]
            for i, (quantity, symbol) in enumerate(elements):
                raw += [Equation("mass", quantity, symbol, self.mass[i, j], "") for j in range(len(elements))]
        for i, crossing in enumerate(self.crossings):
            symbol = sympy.Symbol(f"crossing_{i}", real=True)
            raw.append(Equation("crossing", Quantity(symbol, ""), symbol, sympy.sympify(crossing), ""))
        expressions = tuple(equation.expression for equation in raw)
        if self._canonical:
            expressions = graph.substitute(expressions, self._canonical)
        expressions = made_real(expressions, self._canonical)
        return tuple(
            equation._replace(expression=expression)
            for equation, expression in zip(raw, expressions, strict=True)
        )

    @cached_property
    def expression_graph(self) -> graph.Graph:
        """The expressions of all equations as one graph; its roots are in the order of `equations`."""
        return graph.intern(equation.expression for equation in self.equations)

    def of_kind(self, kind: Kind) -> tuple[Equation, ...]:
        """Return the scalar equations of one kind, in order."""
        return tuple(equation for equation in self.equations if equation.kind == kind)

    def expression(self, name: str) -> sympy.Expr:
        """Return the right-hand side of the definition, derivative, update, constraint or output of a name."""
        for equation in self.equations:
            if equation.symbol.name == name and equation.kind != "mass":
                return equation.expression
        raise ModelError(f"model {self.name!r} has no equation for {name!r}.")

    def expand(self, expression: sympy.Basic, *, keep: Collection[str] = ()) -> sympy.Expr:
        """Return an expression with every definition put in, but for those of the names in `keep`.

        For reading and verifying, never for code.
        """
        table: dict[sympy.Basic, sympy.Basic] = {}
        for equation in self.of_kind("definition"):
            if equation.symbol.name not in keep:
                (table[equation.symbol],) = graph.substitute([equation.expression], table)
        written = {leaf: table.get(symbol, symbol) for leaf, symbol in self._canonical.items()}
        (result,) = graph.substitute([sympy.sympify(expression)], {**written, **table})
        return result

    @cached_property
    def _canonical(self) -> Mapping[sympy.Basic, sympy.Basic]:
        """What is written for a scalar quantity, mapped to its real symbol."""
        table: dict[sympy.Basic, sympy.Basic] = {}
        for quantity in self.quantities.values():
            if not quantity.shape and quantity.symbol != quantity.elements[0]:
                table[quantity.symbol] = quantity.elements[0]
        return table

    def _keyed(self, kind: Kind, mapping: Mapping[Quantity, Value]) -> list[Equation]:
        return [
            Equation(kind, quantity, symbol, expression, unit)
            for quantity, value in mapping.items()
            for symbol, expression, unit in zip(
                quantity.elements, self._scalars(kind, quantity, value), quantity.units, strict=True
            )
        ]

    def _referred(
        self, kind: Kind, mapping: Mapping[Reference, Value], role: Sequence[Quantity]
    ) -> list[Equation]:
        by_name = {
            leaf_name(key) if not isinstance(key, str) else key: value for key, value in mapping.items()
        }
        return [
            Equation(kind, quantity, symbol, expression, unit)
            for quantity in role
            for symbol, expression, unit in zip(
                quantity.elements,
                self._scalars(kind, quantity, by_name[quantity.name]),
                quantity.units,
                strict=True,
            )
        ]

    def _scalars(self, kind: Kind, quantity: Quantity, value: Value) -> list[sympy.Basic]:
        where = f"model {self.name!r}: {kind} of {quantity.name!r}"
        if isinstance(value, sympy.MatrixBase):
            flat: list[object] = list(value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            flat = [
                item
                for row in value
                for item in (row if isinstance(row, Sequence) and not isinstance(row, str) else [row])
            ]
        else:
            flat = [value]
        if len(flat) != quantity.size:
            raise ModelError(
                f"{where}: got {len(flat)} expressions for shape {quantity.shape}. Give {quantity.size}."
            )
        scalars = []
        for item in flat:
            try:
                scalar = sympy.sympify(item, strict=True)
            except sympy.SympifyError:
                raise ModelError(
                    f"{where}: {item!r} is not an expression. Give a SymPy expression or a number."
                ) from None
            if not isinstance(scalar, sympy.Expr):
                raise ModelError(
                    f"{where}: got {scalar}, which is not a number. Use Piecewise((1, condition), (0, True))."
                )
            scalars.append(scalar)
        return scalars

    # -- variants ---------------------------------------------------------------------------------------

    def replace(
        self,
        *,
        name: str | None = None,
        definitions: Mapping[Quantity | Reference, Value] | None = None,
        derivatives: Mapping[Reference, Value] | None = None,
        updates: Mapping[Reference, Value] | None = None,
        constraints: Mapping[Reference, Value] | None = None,
        outputs: Mapping[Quantity | Reference, Value] | None = None,
        inputs: Sequence[Quantity] = (),
        parameters: Sequence[Quantity] = (),
        crossings: Sequence[sympy.Expr] | None = None,
        description: str | None = None,
        references: Sequence[str] = (),
    ) -> "Model":
        """Return a variant: equations exchanged by name, quantities added, the identities kept.

        Parameters
        ----------
        name : str, optional
            Name of the variant.
        definitions, derivatives, updates, constraints, outputs : mapping, optional
            New right-hand sides, by name or symbol; a `Quantity` as key may be new.
        inputs, parameters : sequence of Quantity
            Added, or put in the place of one of the same name. Inputs, parameters and definitions that no
            equation uses any more go.
        crossings : sequence of expressions, optional
            Take the place of the old ones.
        description, references
            New description; references are added.
        """
        new_definitions = _exchange(self.name, "definitions", self.definitions, definitions or {})
        new_outputs = _exchange(self.name, "outputs", self.outputs, outputs or {})
        new_derivatives = {**_by_name(self.derivatives), **_by_name(derivatives)}
        new_updates = {**_by_name(self.updates), **_by_name(updates)}
        new_constraints = {**_by_name(self.constraints), **_by_name(constraints)}
        new_crossings = self.crossings if crossings is None else tuple(crossings)
        equations = [
            *new_outputs.values(),
            *new_derivatives.values(),
            *new_updates.values(),
            *new_constraints.values(),
            *new_crossings,
            *(() if self.mass is None else self.mass),
        ]
        given = {_reference_name(key) for key in definitions or {}}
        kept, used = _still_used(new_definitions, equations, given)
        used.add(self.sample_time or "")

        def merged(old: tuple[Quantity, ...], added: Sequence[Quantity]) -> tuple[Quantity, ...]:
            table = {
                quantity.name: quantity for quantity in old if used & {e.name for e in quantity.elements}
            }
            return tuple({**table, **{quantity.name: quantity for quantity in added}}.values())

        new_inputs = merged(self.inputs, inputs)
        names = {quantity.name for quantity in new_inputs}
        return dataclasses.replace(
            self,
            name=self.name if name is None else name,
            definitions=kept,
            derivatives=new_derivatives,
            updates=new_updates,
            constraints=new_constraints,
            outputs=new_outputs,
            inputs=new_inputs,
            parameters=merged(self.parameters, parameters),
            crossings=new_crossings,
            integrals={key: integral for key, integral in self.integrals.items() if key in names},
            description=self.description if description is None else description,
            references=(*self.references, *references),
        )


def _by_name(mapping: Mapping[Reference, Value] | None) -> dict[str, Value]:
    return {key if isinstance(key, str) else leaf_name(key): value for key, value in (mapping or {}).items()}


def _names_in(values: Iterable[object]) -> set[str]:
    flat: list[sympy.Basic] = []
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, sympy.MatrixBase | list | tuple):
            pending.extend(value)
        else:
            flat.append(sympy.sympify(value))
    return {
        leaf_name(leaf)
        for leaf in graph.leaves(flat)
        if isinstance(leaf, sympy.Symbol | AppliedUndef | sympy.Derivative)
    }


def _still_used(
    definitions: Mapping[Quantity, Value], equations: Sequence[object], given: Collection[str]
) -> tuple[dict[Quantity, Value], set[str]]:
    """Return the definitions that equations use or that were given, and all names used with them."""
    used = _names_in(equations)
    kept: dict[Quantity, Value] = {}
    for quantity, value in reversed(list(definitions.items())):
        if quantity.name in given or used & {e.name for e in quantity.elements}:
            kept[quantity] = value
            used |= _names_in([value])
    return dict(reversed(kept.items())), used


def _exchange(
    model: str, field_name: str, old: Mapping[Quantity, Value], new: Mapping[Quantity | Reference, Value]
) -> dict[Quantity, Value]:
    """Exchange values by name; a new quantity stands before the first one exchanged, which may use it."""
    table = {quantity.name: (quantity, value) for quantity, value in old.items()}
    added = {}
    for key, value in new.items():
        name = _reference_name(key)
        if name in table:
            table[name] = (key if isinstance(key, Quantity) else table[name][0], value)
        elif isinstance(key, Quantity):
            added[name] = (key, value)
        else:
            raise ModelError(
                f"model {model!r}: replace({field_name}): there is no {name!r}. It has: {', '.join(table) or 'none'}. "
                "Give a Quantity as key to add one."
            )
    exchanged = [_reference_name(key) for key in new if _reference_name(key) in table]
    cut = list(table).index(exchanged[0]) if exchanged else len(table)
    items = [*table.values()]
    return dict([*items[:cut], *added.values(), *items[cut:]])


def _reference_name(key: Quantity | Reference) -> str:
    return key if isinstance(key, str) else key.name if isinstance(key, Quantity) else leaf_name(key)
