"""Generated C: C99, no allocation, no globals, re-entrant; it needs only <math.h>.

Every argument is a struct named after its role, with a member for each quantity. Functions take the
arguments that the model has, in the order state, memory, unknown, input, parameters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mechsmith.codegen import discretise as rules
from mechsmith.codegen import unknowns
from mechsmith.codegen.c_body import Body, make_body
from mechsmith.codegen.c_names import ArgumentStruct, Names
from mechsmith.codegen.discretise import Discretisation
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.integrators import RUNGE_KUTTA_LIMIT
from mechsmith.codegen.program import Program, make_program
from mechsmith.codegen.text import c_number, environment

Scalar = Literal["double", "float"]
# Where a function's result is one of the structs; every other result is an array, row by row.
RESULT_STRUCTS: Mapping[str, str] = {"derivative": "x", "update": "d", "output": "y"}

# Just above the logarithm of the smallest normal number.
EXP_CUT: Mapping[str, float] = {"double": -708.0, "float": -87.0}


@dataclass(frozen=True)
class CFunction:
    """One generated function: its declaration without the semicolon, its body, and what it costs."""

    name: str
    declaration: str
    body: Body
    operations: str
    meaning: str
    unused: tuple[str, ...]
    result_cast: str
    size: int


def emit_c(
    functions: FunctionSet, *, discretisation: Discretisation | None = None, scalar: Scalar = "double"
) -> dict[str, str]:
    """Return the texts of ``<model>.h`` and ``<model>.c``.

    Parameters
    ----------
    functions : FunctionSet
        With CasADi functions; each with a result becomes a C function ``<model>_<name>``.
    discretisation : Discretisation, optional
        Of the same functions; adds ``<model>_step``.
    scalar : {"double", "float"}
        The type of every number. With float, literals and math functions are those of float.

    Raises
    ------
    OverflowError
        If a constant does not fit in a float, being too large or so small that it would be zero.
    """
    functions.require("embeddable", "emit_c")
    if functions.unknowns:
        functions = functions.with_jacobians(("constraint", "z"))
    names = Names(functions, scalar, discretisation)
    context = _context(names)
    templates = environment()
    return {
        f"{names.prefix}.h": templates.get_template("model.h.j2").render(context),
        f"{names.prefix}.c": templates.get_template("model.c.j2").render(context),
    }


def emit_batch(
    functions: FunctionSet, *, discretisation: Discretisation | None = None, sensitivities: bool = True
) -> str:
    """Return the text of a C file that includes ``<model>.c`` and evaluates many points and whole motions.

    Parameters
    ----------
    functions : FunctionSet
        As given to `emit_c`. With a discretisation it must hold the Jacobians `sensitivity_pairs`.
    discretisation : Discretisation, optional
        Adds rollouts.
    sensitivities : bool
        Whether rollouts with sensitivities are added.
    """
    if functions.unknowns:
        functions = functions.with_jacobians(("constraint", "z"))
    names = Names(functions, "double", discretisation)
    context = _context(names)
    sizes = {letter: functions.size(letter) for letter in ("x", "d", "z", "u", "p", "y")}
    sizes["s"] = len(discretisation.sample_labels) if discretisation is not None else 0
    context |= {"sizes": sizes, "letters": ("x", "d", "z", "u", "p"), "sensitivity": None}
    if sensitivities and discretisation is not None and context["step"] is not None:
        context |= _sensitivity(names, discretisation)
    return environment().get_template("batch.c.j2").render(context)


def sensitivity_pairs(functions: FunctionSet) -> tuple[tuple[str, str], ...]:
    """Return the Jacobians that rollouts with sensitivities need."""
    return tuple(
        (of, wrt)
        for of in ("output", "update", "crossing")
        if of in functions.functions
        for wrt in ("x", "d", "p")
        if functions.size(wrt)
    )


def _sensitivity(names: Names, discretisation: Discretisation) -> dict[str, object]:
    program = make_program(discretisation.kernels["substep_sensitivity"])
    access, signature = kernel_access(names, discretisation)
    targets = [[f"next->{member}" for member in names.structs["x"].members], ["*residual"]]
    declarations = [*(d for d, _ in signature), f"{names.structs['x'].type} *next", "double *residual"]
    for result in program.results[2:]:
        count = result.shape[0] * result.shape[1]
        targets.append([f"{result.name}[{i}]" for i in range(count)])
        if count:
            declarations.append(f"double {result.name}[{count}]")
    name = f"{names.prefix}_substep_sensitivity"
    chains = [("output", "out")] if names.functions.outputs else []
    chains += [("update", "s->d_next")] if names.functions.discrete_states else []
    arguments = names.arguments("x", "d", "u", "p")
    return {
        "sensitivity": make_body(program, access, targets, "double", name, signature, names.prefix),
        "sensitivity_parameters": ", ".join(declarations),
        "sensitivity_unused": [a for _, a in signature if a not in program.used_arguments],
        "chains": [(of, names.functions[of].shape[0], target) for of, target in chains],
        "chain_parameters": ", ".join(a.parameter for a in arguments),
        "chain_call": ", ".join(a.argument for a in arguments),
        "rate": _rate(names, discretisation),
        "rate_parameters": ", ".join(
            [*(a.parameter for a in arguments), f"double out[{names.functions.size('x')}]"]
        ),
        "carried": f", {names.prefix}_sensitivity_t *s",
        "carried_call": ", s",
    }


def _rate(names: Names, discretisation: Discretisation) -> Body:
    arguments = names.arguments("x", "d", "u", "p")
    access = {a.argument: [f"{a.argument}->{member}" for member in a.members] for a in arguments}
    targets = [[f"out[{i}]" for i in range(names.functions.size("x"))]]
    program = make_program(discretisation.kernels["rate"])
    return make_body(
        program, access, targets, "double", f"{names.prefix}_rate", _signature(arguments), names.prefix
    )


def _context(names: Names) -> dict[str, object]:
    functions, scalar = names.functions, names.scalar
    # C has no arrays of length zero: a Jacobian by an argument that the model lacks is left out.
    exported = [
        _function(names, name, make_program(functions.casadi_function(name)))
        for name in functions.functions
        if all(functions[name].shape)
    ]
    step = None if names.discretisation is None else _step(names, names.discretisation)
    bodies = [function.body for function in exported] + ([step.substep] if step is not None else [])
    return {
        "names": names,
        "functions": functions,
        "exported": exported,
        "step": step,
        "solve": _solve(names) if functions.unknowns else None,
        "unknowns": unknowns,
        "scalar": scalar,
        "suffix": "" if scalar == "double" else "f",
        "uses_exp": any(body.uses_exp for body in bodies),
        "exp_cut": EXP_CUT[scalar],
        "number": lambda value: c_number(value, scalar),
        "rules": rules,
        "tag": "",
        "carried": "",
        "carried_call": "",
    }


def _function(names: Names, name: str, program: Program) -> CFunction:
    rows, columns = program.results[0].shape
    struct = names.structs.get(RESULT_STRUCTS.get(name, ""))
    if struct is not None:
        result, targets = f"{struct.type} *out", [f"out->{member}" for member in struct.members]
    else:
        result, targets = (
            f"{names.scalar} out[{rows * columns}]",
            [f"out[{i}]" for i in range(rows * columns)],
        )
    arguments = [names.structs[a] for a in ("x", "d", "z", "u", "p") if a in names.structs]
    declaration = f"void {names.prefix}_{name}({', '.join([*(a.parameter for a in arguments), result])})"
    access = {a.argument: [f"{a.argument}->{member}" for member in a.members] for a in arguments}
    body = make_body(
        program,
        access,
        [targets],
        names.scalar,
        f"{names.prefix}_{name}",
        _signature(arguments),
        names.prefix,
    )
    unused = tuple(a.argument for a in arguments if a.argument not in program.used_arguments)
    cast = f"{names.scalar} *" if struct is None else f"{struct.type} *"
    meaning = _meaning(names, name, rows, columns)
    return CFunction(name, declaration, body, operations(program), meaning, unused, cast, rows * columns)


def _signature(arguments: Sequence[ArgumentStruct]) -> tuple[tuple[str, str], ...]:
    return tuple((a.parameter, a.argument) for a in arguments)


def _meaning(names: Names, name: str, rows: int, columns: int) -> str:
    plain = {
        "derivative": "Time derivative of the state (the right-hand side f, if there is a mass matrix).",
        "update": "Next values of the discrete states.",
        "output": "Outputs.",
        "constraint": "Constraint residuals; zero where the unknowns are right.",
        "mass": f"Mass matrix, {rows} by {columns}, row by row.",
        "crossing": "Crossing functions; the model switches where one passes zero.",
    }
    if name in plain:
        return plain[name]
    of, _, wrt = name.rpartition("_")
    role = names.functions.variables(wrt) if wrt in ("x", "d", "z", "u", "p", "y") else ()
    by = ", ".join(variable.name for variable in role)
    return f"Derivative of {of} by {by or wrt}, {rows} by {columns}, row by row."


def operations(program: Program) -> str:
    """Return the operation counts of a program as one line."""
    words = {"add": "additions", "mul": "multiplications", "div": "divisions"}
    parts = [f"{count} {words.get(kind, kind)}" for kind, count in program.counts.items()]
    return ", ".join(parts) or "none"


@dataclass(frozen=True)
class CStep:
    """What the step template prints: kernels, and the parameters and arguments of the functions around them."""

    reconstruct: Body | None
    reconstruct_parameters: str
    reconstruct_unused: tuple[str, ...]
    substep: Body
    substep_parameters: str
    substep_unused: tuple[str, ...]
    operations: str
    nodes: tuple[float, ...]
    least: int
    crossing: str
    crossing_size: int
    implicit: bool
    checks_mass: bool
    explicit_limit: str
    method: str
    reconstruction: str
    parameters: str
    sample_parameters: str
    part_parameters: str
    at_parameters: str
    substep_call: str
    part_call: str
    trial_call: str
    start_call: str
    jump_call: str
    end_call: str
    beside_call: str
    here_call: str
    crossing_call: str


def _step(names: Names, discretisation: Discretisation) -> CStep | None:
    if not discretisation.functions.states:
        return None
    program = make_program(discretisation.kernels["substep"])
    has = names.structs.__contains__
    sample = f"const {names.structs['s'].type} *from, const {names.structs['s'].type} *to" if has("s") else ""
    state = f"{names.structs['x'].type} *x"
    held = [a.parameter for a in names.arguments("d")]
    fixed = [a.parameter for a in names.arguments("p")]
    ends = [sample] if sample else []
    _, signature = kernel_access(names, discretisation)
    substep_arguments = [argument for _, argument in signature[:-1]]
    reconstruct_signature = _reconstruct_signature(names) if has("u") else ()
    reconstruct_program = make_program(discretisation.kernels["reconstruct"])
    d_call = ["d"] if has("d") else []
    ends_call = ["from", "to"] if has("s") else []
    p_call = ["p"] if has("p") else []
    shown = ["&input"] if has("u") else []
    return CStep(
        reconstruct=reconstruct_body(names, discretisation),
        reconstruct_parameters=", ".join(
            [*(d for d, _ in reconstruct_signature), f"{names.structs['u'].type} *out"]
        )
        if has("u")
        else "",
        reconstruct_unused=tuple(
            a for _, a in reconstruct_signature if a not in reconstruct_program.used_arguments
        ),
        substep=substep_body(names, discretisation, program),
        substep_parameters=", ".join(
            [*(d for d, _ in signature), f"{names.structs['x'].type} *next", f"{names.scalar} *residual"]
        ),
        substep_unused=tuple(a for _, a in signature if a not in program.used_arguments),
        operations=operations(program),
        nodes=discretisation.integrator.nodes,
        least=discretisation.integrator.substeps,
        crossing=discretisation.crossing,
        crossing_size=discretisation.functions["crossing"].shape[0]
        if discretisation.crossing != "none"
        else 0,
        implicit=program.instructions[program.results[1].values[0]].operation != "const",
        checks_mass=discretisation.checks_mass,
        explicit_limit=f"{RUNGE_KUTTA_LIMIT:.2f}" if discretisation.integrator.explicit else "",
        method=repr(discretisation.integrator),
        reconstruction=", ".join(f"{name} {kind}" for name, kind in discretisation.reconstruction),
        parameters=", ".join(
            [
                state,
                *held,
                *ends,
                *fixed,
                f"{names.scalar} dt",
            ]
        ),
        sample_parameters=sample,
        part_parameters=", ".join([state, *held, *ends, *fixed]),
        at_parameters=", ".join([f"const {state}", *held, *ends, *fixed]),
        substep_call=", ".join(substep_arguments),
        part_call=", ".join(["x", *d_call, *ends_call, *p_call]),
        trial_call=", ".join(["&trial", *d_call, *ends_call, *p_call]),
        end_call=", ".join(["&end", *d_call, *ends_call, *p_call]),
        beside_call=", ".join(["&beside", *d_call, *shown, *p_call]),
        here_call=", ".join(["x", *d_call, *shown, *p_call]),
        jump_call=", ".join(["&start", "x", *d_call, *ends_call, *p_call, "s"]),
        start_call=", ".join(["&start", *d_call, *ends_call, *p_call]),
        crossing_call=", ".join(["x", *d_call, *shown, *p_call]),
    )


@dataclass(frozen=True)
class CSolve:
    """What the template of the solver for unknowns prints."""

    parameters: str
    call: str
    size: int
    brackets: tuple[tuple[float, float], ...] | None
    tolerance: float
    rough: float
    tiny: float


def _solve(names: Names) -> CSolve:
    order = names.arguments("x", "d", "z", "u", "p")
    parameters = [a.parameter.removeprefix("const ") if a.argument == "z" else a.parameter for a in order]
    return CSolve(
        parameters=", ".join(parameters),
        call=", ".join("&at" if a.argument == "z" else a.argument for a in order),
        size=names.functions.size("z"),
        brackets=unknowns.UnknownsSolver(names.functions).brackets,
        # In float the last change can't be smaller than a few units in the last place.
        tolerance=unknowns.TOLERANCE if names.scalar == "double" else 1e-6,
        rough=unknowns.ROUGH if names.scalar == "double" else 1e-4,
        tiny=1e-300 if names.scalar == "double" else 1e-36,
    )


def _reconstruct_signature(names: Names) -> tuple[tuple[str, str], ...]:
    sample = names.structs["s"]
    return (
        (f"const {sample.type} *from", "from"),
        (f"const {sample.type} *to", "to"),
        (f"{names.scalar} length", "length"),
        (f"{names.scalar} fraction", "fraction"),
    )


def reconstruct_body(names: Names, discretisation: Discretisation) -> Body | None:
    """Return the body of the function that gives the inputs between two samples."""
    if "u" not in names.structs:
        return None
    sample = names.structs["s"]
    access = {
        "from": [f"from->{member}" for member in sample.members],
        "to": [f"to->{member}" for member in sample.members],
        "length": ["length"],
        "fraction": ["fraction"],
    }
    targets = [[f"out->{member}" for member in names.structs["u"].members]]
    program = make_program(discretisation.kernels["reconstruct"])
    return make_body(
        program,
        access,
        targets,
        names.scalar,
        f"{names.prefix}_reconstruct",
        _reconstruct_signature(names),
        names.prefix,
    )


def kernel_access(
    names: Names, discretisation: Discretisation
) -> tuple[Mapping[str, list[str]], tuple[tuple[str, str], ...]]:
    """Return how the substep kernels reach their arguments x, d, v, p, h, and their signature."""
    access: dict[str, list[str]] = {"h": ["h"]}
    signature: list[tuple[str, str]] = []
    for argument in ("x", "d", "v", "p"):
        struct = names.structs.get("u" if argument == "v" else argument)
        if struct is None:
            continue
        if argument == "v":
            count = len(discretisation.integrator.nodes)
            access["v"] = [f"v[{i}].{member}" for i in range(count) for member in struct.members]
            signature.append((f"const {struct.type} v[{count}]", "v"))
        else:
            access[argument] = [f"{argument}->{member}" for member in struct.members]
            signature.append((struct.parameter, argument))
    signature.append((f"{names.scalar} h", "h"))
    return access, tuple(signature)


def substep_body(names: Names, discretisation: Discretisation, program: Program) -> Body:
    """Return the body of the substep: it writes `next` and the residual."""
    access, signature = kernel_access(names, discretisation)
    state = [f"next->{member}" for member in names.structs["x"].members]
    return make_body(
        program,
        access,
        [state, ["*residual"]],
        names.scalar,
        f"{names.prefix}_substep",
        signature,
        names.prefix,
    )
