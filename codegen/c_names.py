"""Names in generated C: structs by role, with members that are valid, unique and not reserved."""

from dataclasses import dataclass
from functools import cached_property

from mechsmith.codegen.discretise import Discretisation
from mechsmith.codegen.functions import FunctionSet, Variable
from mechsmith.codegen.text import comment, unique_identifiers
from mechsmith.symbolic.names import identifier

ROLES = {
    "x": "state",
    "d": "memory",
    "z": "unknown",
    "u": "input",
    "p": "parameters",
    "y": "output",
    "s": "sample",
}


@dataclass(frozen=True)
class Member:
    """One member of a struct: a scalar or an array of all elements, row by row."""

    name: str
    variable: Variable

    @property
    def declaration(self) -> str:
        """The declarator, with the length of an array."""
        return f"{self.name}[{self.variable.size}]" if self.variable.shape else self.name

    @property
    def comment(self) -> str:
        """Unit, bounds, description, and the model's name where it differs."""
        variable = self.variable
        units = list(dict.fromkeys(unit or "1" for unit in variable.unit))
        parts = [", ".join(units)]
        if variable.lower > float("-inf") or variable.upper < float("inf"):
            parts.append(f"{_bound('from', variable.lower)}{_bound('to', variable.upper)}".strip())
        if variable.description:
            parts.append(variable.description)
        if self.name != variable.name:
            parts.append(f"named {variable.name} in the model")
        return comment("; ".join(parts))


def _bound(word: str, value: float) -> str:
    return "" if value in (float("inf"), float("-inf")) else f" {word} {value!r}"


@dataclass(frozen=True)
class ArgumentStruct:
    """The struct of one role: `type` is its name, `argument` the letter that stands for it."""

    argument: str
    type: str
    fields: tuple[Member, ...]

    @property
    def parameter(self) -> str:
        """The parameter declaration of a function that reads it."""
        return f"const {self.type} *{self.argument}"

    @property
    def members(self) -> list[str]:
        """How each scalar element is reached inside the struct, in order."""
        return [
            f"{field.name}[{i}]" if field.variable.shape else field.name
            for field in self.fields
            for i in range(field.variable.size)
        ]


@dataclass(frozen=True)
class Names:
    """All names of one generated file."""

    functions: FunctionSet
    scalar: str
    discretisation: Discretisation | None = None

    @property
    def prefix(self) -> str:
        """What every external name begins with."""
        return identifier(self.functions.name)

    @cached_property
    def structs(self) -> dict[str, ArgumentStruct]:
        """The structs of the roles that the model has."""
        variables = {
            argument: self.functions.variables(argument) for argument in ("x", "d", "z", "u", "p", "y")
        }
        variables["s"] = self.discretisation.samples if self.discretisation is not None else ()
        structs = {}
        for argument, role in variables.items():
            if role:
                members = unique_identifiers([variable.name for variable in role])
                fields = tuple(Member(members[variable.name], variable) for variable in role)
                structs[argument] = ArgumentStruct(argument, f"{self.prefix}_{ROLES[argument]}_t", fields)
        return structs

    def arguments(self, *letters: str) -> list[ArgumentStruct]:
        """Return the structs of some roles, those that the model has."""
        return [self.structs[letter] for letter in letters if letter in self.structs]
