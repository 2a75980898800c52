"""Several models joined to one: names prefixed, units checked at each connection, loops found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import sympy

from mechsmith.symbolic import graph
from mechsmith.symbolic.model import Kind, Model, Role
from mechsmith.symbolic.names import ModelError, identifier
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.units import DimensionError, parse_unit

Expressions = tuple[Any, ...]  # SymPy expressions, one for each element of a quantity


def compose(
    name: str,
    parts: Mapping[str, Model],
    connect: Mapping[str, str],
    *,
    share: Mapping[str, Sequence[str]] | None = None,
    unknowns: Sequence[str] = (),
    expose: Mapping[str, str] | None = None,
    description: str = "",
    references: Sequence[str] = (),
) -> Model:
    """Return the parts as one flat model; `name` of a part becomes `part_name`.

    An input connected to an output becomes a definition, one connected to any other quantity is replaced by
    it. Inputs left unconnected stay inputs, outputs stay outputs. The sample times of all parts with
    discrete states become one parameter, `sample_time`. Identities are carried along.

    Parameters
    ----------
    name : str
        Name of the composed model.
    parts : mapping of name to Model
        The parts; the name is the prefix of all their quantities.
    connect : mapping of "part.input" to "part.quantity"
        What each connected input is: an output, state, discrete state, unknown, input or definition.
    share : mapping of name to sequence of "part.quantity", optional
        Parameters (or inputs) that are one and the same; the name is the whole model's. Bounds are intersected,
        the first nominal value is kept.
    unknowns : sequence of "part.input", optional
        Connected inputs that close an algebraic loop and are solved for, from their nominal value.
    expose : mapping of name to "part.quantity", optional
        More outputs: the name, and what is shown under it.
    description : str
        What the composed model is; by default it lists the parts.
    references : sequence of str
        Added to those of the parts.

    Raises
    ------
    ModelError
        If an end does not exist, is connected twice, or the connections form an algebraic loop.
    DimensionError
        If the ends of a connection differ in dimension.
    """
    whole = _Composition(name, _renamed(name, parts, dict(share or {})), dict(connect), tuple(unknowns))
    return Model(
        name=name,
        states=whole.quantities("states"),
        discrete_states=whole.quantities("discrete_states"),
        unknowns=whole.quantities("unknowns"),
        inputs=whole.quantities("inputs"),
        parameters=whole.quantities("parameters"),
        definitions=whole.definitions,
        derivatives=whole.equations("derivative"),
        mass=whole.mass,
        updates=whole.equations("update"),
        sample_time=whole.sample_time,
        constraints=whole.constraints,
        outputs=whole.outputs(expose or {}),
        crossings=whole.crossings,
        integrals=whole.integrals,
        identities=whole.identities,
        description=description
        or f"Composition of {', '.join(f'{p} ({m.name})' for p, m in parts.items())}.",
        references=tuple(dict.fromkeys([*(r for m in parts.values() for r in m.references), *references])),
    )


@dataclass(frozen=True)
class _Part:
    """A model, and its quantities under their new names."""

    name: str
    model: Model
    quantities: Mapping[str, Quantity]


class _End(NamedTuple):
    """A quantity of a part, as ``part.name`` writes it."""

    text: str
    part: str
    name: str
    quantity: Quantity
    role: Role


class _Connection(NamedTuple):
    """An input and the quantity it is connected to."""

    target: _End
    source: _End


@dataclass(frozen=True)
class _Composition:
    """The parts under their new names and the connections between them."""

    name: str
    parts: Mapping[str, _Part]
    connect: Mapping[str, str]
    unknown: tuple[str, ...]

    def end(self, text: str, where: str) -> _End:
        """Return the quantity that ``part.name`` writes."""
        return _end(self.name, self.parts, text, where)

    @cached_property
    def connections(self) -> tuple[_Connection, ...]:
        """The connections, each checked."""
        found: dict[str, _Connection] = {}
        for target_text, source_text in self.connect.items():
            where = f"connect[{target_text!r}]"
            target, source = self.end(target_text, where), self.end(source_text, where)
            if target.role != "inputs":
                raise ModelError(
                    f"composition {self.name!r}: {where}: {target_text} is one of the {target.role}. Only inputs are connected; "
                    f"{target.part!r} has: {', '.join(q.name for q in self.parts[target.part].model.inputs) or 'none'}."
                )
            _check_ends(self.name, target, source)
            if target.quantity.name in found:
                other = found[target.quantity.name].target.text
                raise ModelError(
                    f"composition {self.name!r}: {target_text} and {other} are one shared input, connected twice. Connect it once."
                )
            found[target.quantity.name] = _Connection(target, source)
        for text in self.unknown:
            if text not in self.connect:
                raise ModelError(
                    f"composition {self.name!r}: unknowns: {text!r} is not a connected input. "
                    f"Connected are: {', '.join(self.connect) or 'none'}."
                )
        return tuple(found.values())

    @cached_property
    def replaced(self) -> Mapping[str, Quantity]:
        """Connected inputs that are another quantity, by their new name, and that quantity."""
        direct = {
            c.target.quantity.name: c.source
            for c in self.connections
            if c.source.role != "outputs" and c.target.text not in self.unknown
        }
        result = {}
        for name in direct:
            path = [name]
            while path[-1] in direct:
                path.append(direct[path[-1]].quantity.name)
                if path[-1] in path[:-1]:
                    raise _loop(self.name, path[path.index(path[-1]) :], self.connections)
            result[name] = direct[path[-2]].quantity
        return result

    @cached_property
    def defined(self) -> tuple[_Connection, ...]:
        """Connections of an input to an output, other than unknowns."""
        return tuple(
            c for c in self.connections if c.source.role == "outputs" and c.target.text not in self.unknown
        )

    @cached_property
    def _expressions(self) -> Mapping[tuple[Kind, str], Expressions]:
        """The parts' equations in the new symbols, by kind and new name of the quantity; crossings by part."""
        result: dict[tuple[Kind, str], Expressions] = {}
        for part in self.parts.values():
            table = {
                old: new
                for name, quantity in part.model.quantities.items()
                for old, new in zip(quantity.elements, self._final(part, name).elements, strict=True)
            }
            equations = part.model.equations
            for equation, expression in zip(
                equations, graph.substitute([e.expression for e in equations], table), strict=True
            ):
                own = equation.quantity.name
                name = part.name if equation.kind == "crossing" else part.quantities[own].name
                result[equation.kind, name] = (*result.get((equation.kind, name), ()), expression)
        return result

    def _final(self, part: _Part, name: str) -> Quantity:
        """Return what a part's quantity is in the whole model."""
        quantity = part.quantities[name]
        return self.replaced.get(quantity.name, quantity)

    def quantities(self, role: Role) -> tuple[Quantity, ...]:
        """Return the whole model's quantities of a role."""
        connected = {c.target.quantity.name: c for c in self.connections}
        kept = {}
        for part in self.parts.values():
            for own in getattr(part.model, role):
                quantity = part.quantities[own.name]
                if role != "inputs" or quantity.name not in connected:
                    kept[quantity.name] = quantity
        if role == "unknowns":
            for c in self.connections:
                if c.target.text in self.unknown:
                    kept[c.target.quantity.name] = c.target.quantity
        return tuple(kept.values())

    def equations(self, kind: Kind) -> dict[sympy.Basic | str, Expressions]:
        """Return the right-hand sides of a kind by the name of their quantity."""
        return {name: values for (of, name), values in self._expressions.items() if of == kind}

    @cached_property
    def definitions(self) -> dict[Quantity, Expressions]:
        """The parts' definitions and the connected inputs that are outputs, each after what it uses."""
        by_name = {
            part.quantities[own.name].name: part.quantities[own.name]
            for part in self.parts.values()
            for own in part.model.definitions
        }
        values = {name: self._expressions["definition", name] for name in by_name}
        for c in self.defined:
            by_name[c.target.quantity.name] = c.target.quantity
            values[c.target.quantity.name] = self._expressions["output", c.source.quantity.name]
        owner = {e.name: name for name, quantity in by_name.items() for e in quantity.elements}
        uses = {
            name: [owner[leaf.name] for leaf in graph.leaves(value) if getattr(leaf, "name", None) in owner]
            for name, value in values.items()
        }
        return {by_name[name]: values[name] for name in _ordered(self.name, uses, self.connections)}

    @cached_property
    def constraints(self) -> dict[sympy.Basic | str, Expressions]:
        """The parts' constraints, and of each loop that its unknown is what it is connected to."""
        result = self.equations("constraint")
        for c in self.connections:
            if c.target.text in self.unknown:
                value = self._value(c.source)
                elements = c.target.quantity.elements
                result[c.target.quantity.name] = tuple(e - v for e, v in zip(elements, value, strict=True))
        return result

    def _value(self, end: _End) -> Expressions:
        if end.role == "outputs":
            return self._expressions["output", end.quantity.name]
        return self.replaced.get(end.quantity.name, end.quantity).elements

    def outputs(self, expose: Mapping[str, str]) -> dict[Quantity, Expressions]:
        """Return the parts' outputs and those exposed; one that feeds an input is that input's definition."""
        feeding = {c.source.quantity.name: c.target.quantity for c in reversed(self.defined)}
        result: dict[Quantity, Expressions] = {}
        for part in self.parts.values():
            for own in part.model.outputs:
                quantity = part.quantities[own.name]
                fed = feeding.get(quantity.name)
                result[quantity] = self._expressions["output", quantity.name] if fed is None else fed.elements
        for name, text in expose.items():
            end = self.end(text, f"expose[{name!r}]")
            result[end.quantity.renamed(name)] = (
                result[end.quantity] if end.role == "outputs" else self._value(end)
            )
        return result

    @property
    def crossings(self) -> Expressions:
        """The crossings of all parts, each once."""
        found = [c for (kind, _), values in self._expressions.items() if kind == "crossing" for c in values]
        return tuple(dict.fromkeys(found))

    @property
    def integrals(self) -> dict[str, Quantity]:
        """The integrals of inputs that are left unconnected."""
        connected = {c.target.quantity.name for c in self.connections}
        return {
            part.quantities[name].name: integral.renamed(f"{part.name}_{integral.name}")
            for part in self.parts.values()
            for name, integral in part.model.integrals.items()
            if part.quantities[name].name not in connected
        }

    @property
    def mass(self) -> sympy.Matrix | None:
        """The block-diagonal mass matrix; the identity for a part that has none."""
        if all(part.model.mass is None for part in self.parts.values()):
            return None
        blocks = []
        for part in self.parts.values():
            size = sum(quantity.size for quantity in part.model.states)
            own = [part.quantities[quantity.name].name for quantity in part.model.states]
            rows = [value for name in own for value in self._expressions.get(("mass", name), ())]
            blocks.append(sympy.Matrix(size, size, rows) if rows else sympy.eye(size))
        return sympy.diag(*blocks)

    @property
    def sample_time(self) -> str | None:
        """The name of the one sample time, when there is one."""
        names = [
            part.quantities[part.model.sample_time].name
            for part in self.parts.values()
            if part.model.sample_time is not None
        ]
        if len(set(names)) > 1:
            raise ModelError(
                f"composition {self.name!r}: its parts have the sample times {', '.join(names)}. "
                "A model has one: share them all under one name."
            )
        return names[0] if names else None

    @property
    def identities(self) -> tuple[Any, ...]:
        """The parts' identities, told where their names are now."""
        found = []
        for part in self.parts.values():
            aliases = {}
            for name, own in part.model.quantities.items():
                final = self._final(part, name)
                if final.name != f"{part.name}_{name}":
                    aliases[name] = final.name
                    pairs = zip(own.elements, final.elements, strict=True)
                    aliases.update({old.name: new.name for old, new in pairs})
            found += [i.prefixed(part.name, aliases=aliases) for i in part.model.identities]
        return tuple(found)


def _end(composition: str, parts: Mapping[str, _Part], text: str, where: str) -> _End:
    part_name, _, name = text.partition(".")
    if part_name not in parts or not name:
        raise ModelError(
            f"composition {composition!r}: {where}: {text!r} names no part. Write part.name; parts are: {', '.join(parts)}."
        )
    part = parts[part_name]
    if name not in part.quantities:
        raise ModelError(
            f"composition {composition!r}: {where}: part {part_name!r} ({part.model.name}) has no {name!r}. "
            f"It has: {', '.join(part.quantities)}."
        )
    return _End(text, part_name, name, part.quantities[name], part.model.role_of(name))


def _check_ends(composition: str, target: _End, source: _End) -> None:
    if target.quantity.shape != source.quantity.shape:
        raise ModelError(
            f"composition {composition!r}: {target.text} has shape {target.quantity.shape}, {source.text} has "
            f"{source.quantity.shape}. Connect quantities of one shape."
        )
    for wanted, given in zip(target.quantity.units, source.quantity.units, strict=True):
        if not parse_unit(wanted).agrees(parse_unit(given)):
            raise DimensionError(
                f"composition {composition!r}: {target.text} is in {wanted or '1'} ({parse_unit(wanted)}), but {source.text}, "
                f"which is connected to it, is in {given or '1'} ({parse_unit(given)})."
            )


def _renamed(name: str, parts: Mapping[str, Model], share: dict[str, Sequence[str]]) -> Mapping[str, _Part]:
    """Return the parts with every quantity prefixed, or under the name it is shared by."""
    for part in parts:
        if identifier(part) != part:
            raise ModelError(
                f"composition {name!r}: {part!r} can't be the name of a part: it becomes a prefix. Use letters, digits, underscores."
            )
    prefixed = {
        part: _Part(part, model, {old: q.renamed(f"{part}_{old}") for old, q in model.quantities.items()})
        for part, model in parts.items()
    }
    shared = {text for texts in share.values() for text in texts}
    clocks = [f"{part}.{model.sample_time}" for part, model in parts.items() if model.sample_time]
    if clocks and not shared & set(clocks):
        _check_clocks(name, [_end(name, prefixed, text, "sample_time") for text in clocks])
        share = {**share, "sample_time": clocks}
    for shown, texts in share.items():
        ends = [_end(name, prefixed, text, f"share[{shown!r}]") for text in texts]
        merged = _merged(name, shown, ends)
        for end in ends:
            owner = prefixed[end.part]
            prefixed[end.part] = replace(owner, quantities={**owner.quantities, end.name: merged})
    return prefixed


def _check_clocks(composition: str, ends: Sequence[_End]) -> None:
    given = {end.quantity.nominal for end in ends if end.quantity.nominal is not None}
    if len(given) > 1:
        listed = ", ".join(f"{end.text} = {end.quantity.nominal} {end.quantity.unit}" for end in ends)
        raise ModelError(
            f"composition {composition!r}: its parts are sampled at different times ({listed}). A model has one sample time: "
            "give the parts the same."
        )


def _merged(composition: str, name: str, ends: Sequence[_End]) -> Quantity:
    """Return the one quantity that several of the parts are."""
    first = ends[0]
    for end in ends:
        if end.role != first.role or end.role not in ("parameters", "inputs"):
            raise ModelError(
                f"composition {composition!r}: share[{name!r}]: {first.text} is one of the {first.role}, {end.text} of the "
                f"{end.role}. Share parameters with parameters or inputs with inputs."
            )
        _check_ends(composition, first, end)
    quantities = [end.quantity for end in ends]
    lower, upper = max(q.lower for q in quantities), min(q.upper for q in quantities)
    if lower > upper:
        raise ModelError(
            f"composition {composition!r}: share[{name!r}]: the bounds of {', '.join(end.text for end in ends)} have nothing in common."
        )
    nominal = next((q.nominal for q in quantities if q.nominal is not None), None)
    inside = None if nominal is None else min(max(nominal, lower), upper)
    return replace(first.quantity.renamed(name), lower=lower, upper=upper, nominal=inside)


def _ordered(
    composition: str, uses: Mapping[str, Sequence[str]], connections: Sequence[_Connection]
) -> list[str]:
    """Return the names so that each stands after those it uses; a loop is an error that shows it."""
    done: dict[str, None] = {}
    for root in uses:
        path, pending = [root], [iter(uses[root])]
        while path:
            used = next(pending[-1], None)
            if used is None:
                done.setdefault(path.pop())
                pending.pop()
            elif used in path:
                raise _loop(composition, [*path[path.index(used) :], used], connections)
            elif used not in done:
                path.append(used)
                pending.append(iter(uses[used]))
    return list(done)


def _loop(composition: str, names: Sequence[str], connections: Sequence[_Connection]) -> ModelError:
    shown = {c.target.quantity.name: f"{c.target.text} (= {c.source.text})" for c in connections}
    inputs = [c.target.text for c in connections if c.target.quantity.name in names]
    return ModelError(
        f"composition {composition!r}: algebraic loop: {' needs '.join(shown.get(name, name) for name in names)}. "
        f"Put a state between, or solve for one of the inputs: unknowns=({inputs[0]!r},)."
    )
