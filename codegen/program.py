"""Straight-line programs taken from CasADi functions: what every backend prints.

A `Program` is in single-assignment form: each instruction defines one value, in order, from values before
it. It has no dead code, a choice between two values is one instruction, and its operations are counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi

OPERATIONS: Mapping[int, str] = {
    casadi.OP_ADD: "add",
    casadi.OP_SUB: "sub",
    casadi.OP_MUL: "mul",
    casadi.OP_DIV: "div",
    casadi.OP_NEG: "neg",
    casadi.OP_SQ: "square",
    casadi.OP_TWICE: "twice",
    casadi.OP_INV: "reciprocal",
    casadi.OP_EXP: "exp",
    casadi.OP_LOG: "log",
    casadi.OP_EXPM1: "expm1",
    casadi.OP_LOG1P: "log1p",
    casadi.OP_POW: "pow",
    casadi.OP_CONSTPOW: "pow",
    casadi.OP_SQRT: "sqrt",
    casadi.OP_SIN: "sin",
    casadi.OP_COS: "cos",
    casadi.OP_TAN: "tan",
    casadi.OP_ASIN: "asin",
    casadi.OP_ACOS: "acos",
    casadi.OP_ATAN: "atan",
    casadi.OP_ATAN2: "atan2",
    casadi.OP_SINH: "sinh",
    casadi.OP_COSH: "cosh",
    casadi.OP_TANH: "tanh",
    casadi.OP_ASINH: "asinh",
    casadi.OP_ACOSH: "acosh",
    casadi.OP_ATANH: "atanh",
    casadi.OP_HYPOT: "hypot",
    casadi.OP_FABS: "abs",
    casadi.OP_SIGN: "sign",
    casadi.OP_FMIN: "min",
    casadi.OP_FMAX: "max",
    casadi.OP_FLOOR: "floor",
    casadi.OP_CEIL: "ceil",
    casadi.OP_FMOD: "fmod",
    casadi.OP_COPYSIGN: "copysign",
    casadi.OP_ERF: "erf",
    casadi.OP_LT: "less",
    casadi.OP_LE: "less_equal",
    casadi.OP_EQ: "equal",
    casadi.OP_NE: "not_equal",
    casadi.OP_NOT: "not",
    casadi.OP_AND: "and",
    casadi.OP_OR: "or",
    casadi.OP_IF_ELSE_ZERO: "if_else_zero",
    casadi.OP_ASSIGN: "assign",
}
COMPARISONS = frozenset({"less", "less_equal", "equal", "not_equal", "not", "and", "or"})
COUNTED_AS = {"sub": "add", "square": "mul", "twice": "add", "reciprocal": "div"}
FREE = COMPARISONS | {
    "const",
    "input",
    "neg",
    "select",
    "if_else_zero",
    "assign",
    "abs",
    "sign",
    "min",
    "max",
}


class Instruction(NamedTuple):
    """One value: of a constant, of an input element, or of an operation on earlier values."""

    operation: str
    operands: tuple[int, ...] = ()
    value: float = 0.0
    argument: int = 0
    element: int = 0


class Result(NamedTuple):
    """One output: its name, shape, and which values its elements are, row by row."""

    name: str
    shape: tuple[int, int]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """Straight-line program of a function.

    Parameters
    ----------
    name : str
        Name of the function.
    arguments : tuple of (name, size)
        Its arguments, flat.
    instructions : tuple of Instruction
        In order; operands are positions in this tuple.
    results : tuple of Result
        The outputs.
    """

    name: str
    arguments: tuple[tuple[str, int], ...]
    instructions: tuple[Instruction, ...]
    results: tuple[Result, ...]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Operations by kind: add, mul, div, and calls by name; comparisons, choices and signs are not counted."""
        kinds = Counter(
            COUNTED_AS.get(instruction.operation, instruction.operation)
            for instruction in self.instructions
            if instruction.operation not in FREE
        )
        first = ("add", "mul", "div")
        return {key: kinds[key] for key in (*first, *sorted(set(kinds) - set(first))) if kinds[key]}

    @cached_property
    def used_arguments(self) -> frozenset[str]:
        """Names of the arguments that some instruction reads."""
        return frozenset(self.arguments[i.argument][0] for i in self.instructions if i.operation == "input")


def make_program(function: casadi.Function) -> Program:
    """Return the program of a CasADi SX function with dense outputs."""
    instructions: list[Instruction] = []
    registers: dict[int, int] = {}
    interned: dict[Instruction, int] = {}
    outputs: dict[tuple[int, int], int] = {}

    def put(instruction: Instruction) -> int:
        # repr tells -0.0 from 0.0 and finds NaN equal to itself.
        key = instruction._replace(value=repr(instruction.value))  # type: ignore[arg-type]
        if key not in interned:
            interned[key] = len(instructions)
            instructions.append(instruction)
        return interned[key]

    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        inputs = function.instruction_input(k)
        if code == casadi.OP_OUTPUT:
            result, element = function.instruction_output(k)
            outputs[result, element] = registers[inputs[0]]
            continue
        target = function.instruction_output(k)[0]
        if code == casadi.OP_CONST:
            registers[target] = put(Instruction("const", value=float(function.instruction_constant(k))))
        elif code == casadi.OP_INPUT:
            registers[target] = put(Instruction("input", argument=inputs[0], element=inputs[1]))
        elif code in OPERATIONS:
            registers[target] = _put_operation(
                put, instructions, OPERATIONS[code], [registers[i] for i in inputs]
            )
        else:
            raise ValueError(
                f"function {function.name()!r}: CasADi operation number {code} has no translation."
            )
    results = tuple(_result(function, i, outputs) for i in range(function.n_out()))
    return _without_dead_code(
        Program(
            name=function.name(),
            arguments=tuple((function.name_in(i), int(function.numel_in(i))) for i in range(function.n_in())),
            instructions=tuple(instructions),
            results=results,
        )
    )


def _result(function: casadi.Function, index: int, outputs: Mapping[tuple[int, int], int]) -> Result:
    rows, columns = int(function.size1_out(index)), int(function.size2_out(index))
    # CasADi numbers elements column by column, a Result row by row.
    values = tuple(outputs[index, column * rows + row] for row in range(rows) for column in range(columns))
    return Result(function.name_out(index), (rows, columns), values)


def _put_operation(put, instructions: Sequence[Instruction], operation: str, operands: list[int]) -> int:  # type: ignore[no-untyped-def]
    if operation == "assign":
        return operands[0]
    first = instructions[operands[0]]
    if operation == "add":
        second = instructions[operands[1]]
        if first.operation == second.operation == "if_else_zero":
            (test, value), (other_test, other) = first.operands, second.operands
            if instructions[other_test] == Instruction("not", (test,)):
                return put(Instruction("select", (test, value, other)))
            if instructions[test] == Instruction("not", (other_test,)):
                return put(Instruction("select", (other_test, other, value)))
        if second.operation == "neg":
            return put(Instruction("sub", (operands[0], second.operands[0])))
    if operation == "sub" and instructions[operands[1]].operation == "neg":
        return put(Instruction("add", (operands[0], instructions[operands[1]].operands[0])))
    if operation == "neg" and first.operation == "neg":
        return first.operands[0]
    return put(Instruction(operation, tuple(operands)))


def _without_dead_code(program: Program) -> Program:
    alive = [False] * len(program.instructions)
    for result in program.results:
        for value in result.values:
            alive[value] = True
    for number in range(len(alive) - 1, -1, -1):
        if alive[number]:
            for operand in program.instructions[number].operands:
                alive[operand] = True
    renumbered = {old: new for new, old in enumerate(i for i, used in enumerate(alive) if used)}
    instructions = tuple(
        program.instructions[old]._replace(
            operands=tuple(renumbered[o] for o in program.instructions[old].operands)
        )
        for old in renumbered
    )
    results = tuple(r._replace(values=tuple(renumbered[v] for v in r.values)) for r in program.results)
    return Program(program.name, program.arguments, instructions, results)
