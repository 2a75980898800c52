"""Bodies of generated C functions from straight-line programs; long ones are split into parts.

A compiler's time and memory grow faster than linearly with the length of a function. Past `LONGEST`
instructions a body becomes a row of static functions that hand values on in one array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechsmith.codegen.program import COMPARISONS, Instruction, Program
from mechsmith.codegen.text import c_number

LONGEST = 4000  # instructions in one C function
FORMS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "square": "{0} * {0}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "not": "!{0}",
    "and": "{0} && {1}",
    "or": "{0} || {1}",
}
LOGICAL = frozenset({"not", "and", "or"})
CALLS = {
    **{
        name: name
        for name in ("log", "expm1", "log1p", "pow", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan")
    },
    **{
        name: name
        for name in ("atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "hypot", "floor", "ceil")
    },
    **{name: name for name in ("fmod", "copysign", "erf")},
    "abs": "fabs",
    "min": "fmin",
    "max": "fmax",
}


@dataclass(frozen=True)
class Part:
    """A static function that computes a part of a long body."""

    declaration: str
    lines: tuple[str, ...]
    unused: tuple[str, ...]


@dataclass(frozen=True)
class Body:
    """The lines of a function body, the parts that it calls, and whether it uses the helper for exp."""

    lines: tuple[str, ...]
    parts: tuple[Part, ...]
    uses_exp: bool


def make_body(
    program: Program,
    access: Mapping[str, Sequence[str]],
    targets: Sequence[Sequence[str]],
    scalar: str,
    name: str,
    signature: Sequence[tuple[str, str]],
    prefix: str,
) -> Body:
    """Return the body of a program.

    Parameters
    ----------
    program : Program
        What to print.
    access : mapping of argument to expressions
        How each element of an argument is read.
    targets : sequence of sequences
        Where each element of each result is written, row by row.
    scalar : str
        double or float.
    name : str
        Name of the function, from which parts take theirs.
    signature : sequence of (declaration, argument name)
        The parameters that parts take too.
    prefix : str
        What the names in this file begin with.
    """
    printer = _Printer(program, access, scalar, name, prefix)
    writes = [
        (target, value)
        for result, places in zip(program.results, targets, strict=True)
        for target, value in zip(places, result.values, strict=True)
    ]
    uses_exp = any(instruction.operation == "exp" for instruction in program.instructions)
    if len(program.instructions) <= LONGEST:
        lines = [
            printer.line(number) for number in range(len(program.instructions)) if not printer.is_leaf(number)
        ]
        lines += [f"{target} = {printer.operand(value, real=True)};" for target, value in writes]
        return Body(tuple(lines), (), uses_exp)
    return _split(program, printer, writes, scalar, name, signature, uses_exp)


def _split(
    program: Program,
    printer: "_Printer",
    writes: Sequence[tuple[str, int]],
    scalar: str,
    name: str,
    signature: Sequence[tuple[str, str]],
    uses_exp: bool,
) -> Body:
    chunk_of = [number // LONGEST for number in range(len(program.instructions))]
    last_use = list(chunk_of)
    for number, instruction in enumerate(program.instructions):
        for operand in instruction.operands:
            last_use[operand] = max(last_use[operand], chunk_of[number])
    final = chunk_of[-1] + 1
    for _, value in writes:
        last_use[value] = final
    slots, size = _assign_slots(program, printer, chunk_of, last_use)
    parts = []
    for chunk in range(final):
        numbers = [
            i for i in range(len(program.instructions)) if chunk_of[i] == chunk and not printer.is_leaf(i)
        ]
        part_printer = printer.handing_on({v: s for v, s in slots.items() if chunk_of[v] < chunk})
        lines = [part_printer.line(number) for number in numbers]
        lines += [f"w[{slots[n]}] = {part_printer.operand(n, real=True)};" for n in numbers if n in slots]
        used = {
            program.instructions[o].argument
            for n in numbers
            for o in program.instructions[n].operands
            if program.instructions[o].operation == "input"
        }
        names_used = {program.arguments[argument][0] for argument in used}
        parameters = ", ".join([*(declaration for declaration, _ in signature), f"{scalar} w[{size}]"])
        unused = [argument for _, argument in signature if argument not in names_used]
        if not any("w[" in line for line in lines):
            unused.append("w")
        parts.append(Part(f"static void {name}_part{chunk}({parameters})", tuple(lines), tuple(unused)))
    arguments = ", ".join([*(argument for _, argument in signature), "w"])
    closing = printer.handing_on(slots)
    lines = [f"{scalar} w[{size}];", *(f"{name}_part{chunk}({arguments});" for chunk in range(final))]
    lines += [f"{target} = {closing.operand(value, real=True)};" for target, value in writes]
    return Body(tuple(lines), tuple(parts), uses_exp)


def _assign_slots(
    program: Program, printer: "_Printer", chunk_of: Sequence[int], last_use: Sequence[int]
) -> tuple[dict[int, int], int]:
    """Return the place in the array of each value used in a later part; places are used again after a last use."""
    slots: dict[int, int] = {}
    free: list[int] = []
    size = 0
    expiring: dict[int, list[int]] = {}
    current = 0
    for number in range(len(program.instructions)):
        while current < chunk_of[number]:
            # A value last read in a part may still be read there while that part writes: free it one part later.
            free += sorted(expiring.pop(current - 1, []), reverse=True)
            current += 1
        if printer.is_leaf(number) or last_use[number] <= chunk_of[number]:
            continue
        if free:
            slot = free.pop()
        else:
            slot, size = size, size + 1
        slots[number] = slot
        expiring.setdefault(last_use[number], []).append(slot)
    return slots, max(size, 1)


@dataclass(frozen=True)
class _Printer:
    program: Program
    access: Mapping[str, Sequence[str]]
    scalar: str
    name: str
    prefix: str
    stored: Mapping[int, int] | None = None

    def handing_on(self, stored: Mapping[int, int]) -> "_Printer":
        return _Printer(self.program, self.access, self.scalar, self.name, self.prefix, stored)

    def is_leaf(self, number: int) -> bool:
        return self.program.instructions[number].operation in ("const", "input")

    def line(self, number: int) -> str:
        instruction = self.program.instructions[number]
        kind = "int" if instruction.operation in COMPARISONS else self.scalar
        return f"const {kind} t{number} = {self._expression(instruction)};"

    def operand(self, number: int, *, real: bool) -> str:
        instruction = self.program.instructions[number]
        if self.stored is not None and number in self.stored:
            text = f"w[{self.stored[number]}]"
            return text if real else f"({text} != {self._number(0.0)})"
        if instruction.operation == "const":
            return self._number(instruction.value)
        if instruction.operation == "input":
            text = self.access[self.program.arguments[instruction.argument][0]][instruction.element]
        else:
            text = f"t{number}"
        is_logical = instruction.operation in COMPARISONS
        if real:
            return f"({self.scalar}){text}" if is_logical else text
        return text if is_logical else f"({text} != {self._number(0.0)})"

    def _number(self, value: float) -> str:
        text = c_number(value, self.scalar)
        return f"({text})" if text.startswith("-") else text

    def _call(self, name: str) -> str:
        return name if self.scalar == "double" else name + "f"

    def _expression(self, instruction: Instruction) -> str:
        operation = instruction.operation
        if operation == "select":
            test, value, other = instruction.operands
            return f"{self.operand(test, real=False)} ? {self.operand(value, real=True)} : {self.operand(other, real=True)}"
        if operation == "if_else_zero":
            test, value = instruction.operands
            return (
                f"{self.operand(test, real=False)} ? {self.operand(value, real=True)} : {self._number(0.0)}"
            )
        operands = [self.operand(o, real=operation not in LOGICAL) for o in instruction.operands]
        if operation in FORMS:
            return FORMS[operation].format(*operands)
        if operation == "twice":
            return f"{self._number(2.0)} * {operands[0]}"
        if operation == "reciprocal":
            return f"{self._number(1.0)} / {operands[0]}"
        if operation == "sign":
            zero, one, a = self._number(0.0), self._number(1.0), operands[0]
            return f"({a} < {zero}) ? {self._number(-1.0)} : (({a} > {zero}) ? {one} : {a})"
        if operation == "exp":
            return f"{self.prefix}_exp({operands[0]})"
        if operation in CALLS:
            return f"{self._call(CALLS[operation])}({', '.join(operands)})"
        raise ValueError(f"function {self.name!r}: operation {operation!r} has no C form.")
