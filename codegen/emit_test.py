"""The test program that goes with generated C."""

from dataclasses import dataclass
from typing import Any

from mechsmith.codegen.c_names import ArgumentStruct, Names
from mechsmith.codegen.discretise import Discretisation
from mechsmith.codegen.emit_c import RESULT_STRUCTS, Scalar
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.text import c_number, environment
from mechsmith.codegen.vectors import Vector


@dataclass(frozen=True)
class Case:
    """One vector as the template prints it: structs with their values, and the arguments of the call."""

    vector: Vector
    structs: tuple[tuple[str, str, list[Any]], ...]
    struct: ArgumentStruct | None
    call: str


def emit_test(
    functions: FunctionSet,
    vectors: tuple[Vector, ...],
    *,
    discretisation: Discretisation | None = None,
    scalar: Scalar = "double",
) -> str:
    """Return a C program that checks ``<model>.c`` against vectors and returns how many values are off."""
    names = Names(functions, scalar, discretisation)
    return (
        environment()
        .get_template("test.c.j2")
        .render(
            names=names,
            scalar=scalar,
            cases=[_case(names, vector) for vector in vectors],
            number=lambda value: c_number(value, scalar),
            double=lambda value: c_number(value, "double"),
        )
    )


def _case(names: Names, vector: Vector) -> Case:
    if vector.function == "step":
        order = [("x", "x", "x0"), ("d", "d", "d"), ("s", "from", "from"), ("s", "to", "to"), ("p", "p", "p")]
    else:
        order = [(letter, letter, letter) for letter in ("x", "d", "z", "u", "p")]
    structs = [
        (names.structs[letter].type, name, _by_member(names.structs[letter], vector.arguments[key]))
        for letter, key, name in order
        if letter in names.structs
    ]
    called = [f"&{name}" for _, name, _ in structs if name != "x0"]
    call = ", ".join(called)
    if vector.function == "step" and called:
        call = ", " + call
    return Case(vector, tuple(structs), names.structs.get(RESULT_STRUCTS.get(vector.function, "")), call)


def _by_member(struct: ArgumentStruct, values: list[float]) -> list[Any]:
    grouped: list[Any] = []
    place = 0
    for field in struct.fields:
        size = field.variable.size
        grouped.append(values[place : place + size] if field.variable.shape else values[place])
        place += size
    return grouped
