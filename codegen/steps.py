"""Functions that step with the state, sign(x) above all, inside implicit integrators.

Their Jacobian is zero where it exists, so that neither Newton's method nor a test for linearity sees them.
"""

from collections.abc import Callable

import casadi

SX = casadi.SX
Rate = Callable[[SX, SX], SX]  # dx/dt of (x, u)

# Fraction of a substep after which its signs are taken: past the rounding error of a zero that was located, and
# so soon that while the next zero is located the sign is the one before it.
SIDE = 1e-6
STEPS = frozenset(
    {
        casadi.OP_SIGN,
        casadi.OP_FLOOR,
        casadi.OP_CEIL,
        casadi.OP_FMOD,
        casadi.OP_LT,
        casadi.OP_LE,
        casadi.OP_EQ,
    }
    | {casadi.OP_NE, casadi.OP_NOT, casadi.OP_AND, casadi.OP_OR}
)


def has_steps(expression: SX, x: SX) -> bool:
    """Tell whether an expression steps with x: sign(x) has the Jacobian 0 and is not constant."""
    others = [symbol for symbol in casadi.symvar(expression) if not casadi.depends_on(symbol, x)]
    function = casadi.Function("steps", [x, casadi.vertcat(*others)], [expression])
    depends: dict[int, bool] = {}
    for k in range(function.n_instructions()):
        code, inputs = function.instruction_id(k), function.instruction_input(k)
        if code == casadi.OP_OUTPUT:
            continue
        target = function.instruction_output(k)[0]
        if code in (casadi.OP_INPUT, casadi.OP_CONST):
            depends[target] = code == casadi.OP_INPUT and inputs[0] == 0
            continue
        found = [depends[operand] for operand in inputs]
        if any(found) and (code in STEPS or (code == casadi.OP_IF_ELSE_ZERO and found[0])):
            return True
        depends[target] = any(found)
    return False


def with_held_signs(rate: Rate, x: SX, side: SX) -> Rate:
    """Return the rate with every sign(...) of states taken at one state for the whole substep.

    A substep ends where a velocity is zero; the stage there would see either sign by rounding, and Newton's
    iteration would go back and forth between them. Just after its start the sign is that of the substep.
    """

    def held(state: SX, inputs: SX) -> SX:
        expression = rate(x, inputs)
        others = [symbol for symbol in casadi.symvar(expression) if not casadi.depends_on(symbol, x)]
        function = casadi.Function("rate", [x, casadi.vertcat(*others)], [expression])
        if not any(function.instruction_id(k) == casadi.OP_SIGN for k in range(function.n_instructions())):
            return rate(state, inputs)
        return _evaluate_with_held_signs(function, state, side, casadi.vertcat(*others))

    return held


def _evaluate_with_held_signs(function: casadi.Function, state: SX, side: SX, others: SX) -> SX:
    arguments = ((state, others), (side, others))
    values: dict[int, tuple[SX, SX]] = {}
    result = SX.zeros(function.numel_out(0))
    for k in range(function.n_instructions()):
        code, inputs = function.instruction_id(k), function.instruction_input(k)
        target = function.instruction_output(k)
        if code == casadi.OP_OUTPUT:
            result[target[1]] = values[inputs[0]][0]
        elif code == casadi.OP_CONST:
            values[target[0]] = (SX(function.instruction_constant(k)),) * 2
        elif code == casadi.OP_INPUT:
            values[target[0]] = tuple(a[inputs[0]][inputs[1]] for a in arguments)  # type: ignore[assignment]
        else:
            operation = SX.unary if len(inputs) == 1 else SX.binary
            at_state, at_side = (operation(code, *(values[i][j] for i in inputs)) for j in (0, 1))
            values[target[0]] = (at_side if code == casadi.OP_SIGN else at_state, at_side)
    return result
