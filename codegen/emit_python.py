"""Generated Python: a module that needs only casadi and rebuilds the functions of a model."""

from collections.abc import Sequence

from mechsmith.codegen.functions import ARGUMENTS, FunctionSet, metadata
from mechsmith.codegen.program import Instruction, Program, make_program
from mechsmith.codegen.text import environment, python_literal

FUNCTIONS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "square": "{0} * {0}",
    "twice": "2.0 * {0}",
    "reciprocal": "1.0 / {0}",
    "abs": "casadi.fabs({0})",
    "min": "casadi.fmin({0}, {1})",
    "max": "casadi.fmax({0}, {1})",
    "pow": "{0} ** {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "not": "casadi.logic_not({0})",
    "and": "casadi.logic_and({0}, {1})",
    "or": "casadi.logic_or({0}, {1})",
    "select": "casadi.if_else({0}, {1}, {2})",
    "if_else_zero": "casadi.if_else({0}, {1}, 0.0)",
}
MODULE_FUNCTIONS = (
    *(
        "exp",
        "log",
        "expm1",
        "log1p",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
    ),
    *("tanh", "asinh", "acosh", "atanh", "hypot", "sign", "floor", "ceil", "fmod", "copysign", "erf"),
)


def emit_python(functions: FunctionSet) -> str:
    """Return the text of a module with ``METADATA`` and ``functions()``.

    ``functions()`` returns the CasADi functions by name, each of (x, d, z, u, p). The module imports
    casadi only. Wrap it with `mechsmith.codegen.functions.from_casadi(METADATA, functions())`.

    Parameters
    ----------
    functions : FunctionSet
        With CasADi functions.
    """
    functions.require("embeddable", "emit_python")
    programs = [make_program(functions.casadi_function(name)) for name in functions.functions]
    return (
        environment()
        .get_template("module.py.j2")
        .render(
            functions=functions,
            arguments=[(argument, functions.size(argument)) for argument in ARGUMENTS],
            metadata=python_literal(metadata(functions)),
            programs=[(program, _lines(program), _outputs(program)) for program in programs],
        )
    )


def _lines(program: Program) -> list[str]:
    lines = []
    for number, instruction in enumerate(program.instructions):
        if instruction.operation not in ("const", "input"):
            operands = [_operand(program, operand) for operand in instruction.operands]
            lines.append(f"t{number} = {_expression(instruction, operands)}")
    return lines


def _expression(instruction: Instruction, operands: Sequence[str]) -> str:
    if instruction.operation in FUNCTIONS:
        return FUNCTIONS[instruction.operation].format(*operands)
    if instruction.operation in MODULE_FUNCTIONS:
        return f"casadi.{instruction.operation}({', '.join(operands)})"
    raise ValueError(f"operation {instruction.operation!r} has no Python form.")


def _operand(program: Program, number: int) -> str:
    instruction = program.instructions[number]
    if instruction.operation == "const":
        return f"casadi.SX({python_literal(instruction.value)})"
    if instruction.operation == "input":
        return f"{program.arguments[instruction.argument][0]}[{instruction.element}]"
    return f"t{number}"


def _outputs(program: Program) -> list[tuple[int, int, list[str]]]:
    outputs = []
    for result in program.results:
        rows, columns = result.shape
        # casadi.reshape fills column by column.
        order = [result.values[row * columns + column] for column in range(columns) for row in range(rows)]
        outputs.append((rows, columns, [_operand(program, value) for value in order]))
    return outputs
