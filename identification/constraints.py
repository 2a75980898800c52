"""Linear constraints between parameters."""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass


class ConstraintError(ValueError):
    """A constraint that can't be read, is not linear, or names nothing that is there."""


@dataclass(frozen=True)
class Constraint:
    """lower <= sum of coefficient times parameter <= upper.

    Parameters
    ----------
    coefficients : mapping of name to float
        At least one; a name of a free or fixed parameter, or of an initial state such as ``x0:position``.
    lower, upper : float
        In the unit of the sum; equal for an equation.

    Raises
    ------
    ConstraintError
        If there is no coefficient, a number is NaN, or the bounds are out of order.
    """

    coefficients: Mapping[str, float]
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", {n: float(c) for n, c in self.coefficients.items() if c})
        if not self.coefficients:
            raise ConstraintError("constraint: no coefficient differs from 0. Name at least one parameter.")
        if any(not math.isfinite(c) for c in self.coefficients.values()):
            raise ConstraintError(f"constraint: coefficients {self.coefficients} are not all finite.")
        if not self.lower <= self.upper:
            raise ConstraintError(f"constraint: lower {self.lower} must not be above upper {self.upper}.")

    def __str__(self) -> str:
        terms = " + ".join(f"{c:g}*{name}" for name, c in self.coefficients.items())
        if self.lower == self.upper:
            return f"{terms} == {self.lower:g}"
        left = f"{self.lower:g} <= " if math.isfinite(self.lower) else ""
        right = f" <= {self.upper:g}" if math.isfinite(self.upper) else ""
        return f"{left}{terms}{right}"


def parse_constraint(text: str) -> Constraint:
    """Return the constraint that a text says, for instance ``"Fs >= Fc"`` or ``"a <= 2*b + 3"``.

    Both sides are linear: numbers, names, ``+``, ``-``, numbers times names, names divided by numbers, parentheses.
    One comparison by ``>=``, ``<=`` or ``==``; strict inequalities are refused since no solver keeps them apart.

    Raises
    ------
    ConstraintError
        With the text and what can't be read.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ConstraintError(
            f"constraint {text!r}: {error.msg}. Write for example 'Fs >= Fc' or 'a <= 2*b + 3'; for names that are no "
            "identifiers use Constraint."
        ) from error
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        raise ConstraintError(f"constraint {text!r}: there must be exactly one of >=, <=, ==.")
    left, right = _linear(tree.left, text), _linear(tree.comparators[0], text)
    difference = {name: left.get(name, 0.0) - right.get(name, 0.0) for name in {**left, **right}}
    constant = -difference.pop("", 0.0)
    operator = tree.ops[0]
    if isinstance(operator, ast.GtE):
        return Constraint(difference, lower=constant)
    if isinstance(operator, ast.LtE):
        return Constraint(difference, upper=constant)
    if isinstance(operator, ast.Eq):
        return Constraint(difference, lower=constant, upper=constant)
    raise ConstraintError(f"constraint {text!r}: the comparison must be >=, <= or ==.")


def _linear(node: ast.expr, text: str) -> dict[str, float]:
    """Return the coefficients of a linear expression by name; the constant is under the empty name."""
    if isinstance(node, ast.Name):
        return {node.id: 1.0}
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return {"": float(node.value)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        return {name: sign * value for name, value in _linear(node.operand, text).items()}
    if isinstance(node, ast.BinOp):
        left, right = _linear(node.left, text), _linear(node.right, text)
        if isinstance(node.op, ast.Add | ast.Sub):
            sign = 1.0 if isinstance(node.op, ast.Add) else -1.0
            return {n: left.get(n, 0.0) + sign * right.get(n, 0.0) for n in {**left, **right}}
        if isinstance(node.op, ast.Mult) and (set(left) <= {""} or set(right) <= {""}):
            factor, other = (left[""], right) if set(left) <= {""} else (right[""], left)
            return {name: factor * value for name, value in other.items()}
        if isinstance(node.op, ast.Div) and set(right) <= {""} and right[""] != 0.0:
            return {name: value / right[""] for name, value in left.items()}
    raise ConstraintError(
        f"constraint {text!r}: {ast.unparse(node)!r} is not linear. Allowed are numbers, names, sums, and numbers times names."
    )
