"""Expressions as the shared graphs they are: one node for each distinct subexpression.

SymPy compares structurally and without memory, so walking an expression as a tree, or keying a dictionary
by expressions, costs time exponential in the depth of a shared graph. Here nodes are interned on their
class and the numbers of their children, and every walk is a loop: depth has no limit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sympy
from sympy.core.function import AppliedUndef


class Node(NamedTuple):
    """One distinct subexpression and the numbers of its children in `Graph.nodes`."""

    expression: sympy.Basic
    children: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """Distinct subexpressions, children before parents, and where the given expressions are among them."""

    nodes: tuple[Node, ...]
    roots: tuple[int, ...]

    def below(self, root: int) -> list[int]:
        """Return the numbers of a node and of all it is made of, each once."""
        seen = {root}
        stack = [root]
        while stack:
            for child in self.nodes[stack.pop()].children:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return sorted(seen)

    def leaves(self, root: int) -> list[sympy.Basic]:
        """Return the distinct leaves below a node that are not numbers, in order of first appearance."""
        return [
            self.nodes[number].expression
            for number in self.below(root)
            if not self.nodes[number].children
            and not isinstance(self.nodes[number].expression, sympy.Number | sympy.NumberSymbol)
        ]


# Walked as they stand: their arguments are not subexpressions to compute.
_OPAQUE = (AppliedUndef, sympy.Derivative)


def is_leaf(expression: sympy.Basic) -> bool:
    """Tell whether an expression is a symbol, a number, a function of time or a derivative of one."""
    return not expression.args or isinstance(expression, _OPAQUE)


def intern(expressions: Iterable[sympy.Basic]) -> Graph:
    """Return the graph of distinct subexpressions, in time linear in their number.

    Parameters
    ----------
    expressions : iterable of sympy.Basic
        The expressions; subexpressions that they share become one node.
    """
    nodes: list[Node] = []
    by_identity: dict[int, int] = {}
    by_structure: dict[object, int] = {}
    keep_alive: list[sympy.Basic] = []
    roots = []
    for root in expressions:
        keep_alive.append(root)
        stack = [root]
        while stack:
            expression = stack[-1]
            if id(expression) in by_identity:
                stack.pop()
                continue
            arguments = expression.args
            children: tuple[int, ...] = ()
            if not arguments or isinstance(expression, _OPAQUE):
                key: object = (type(expression), expression)
            else:
                pending = [arg for arg in arguments if id(arg) not in by_identity]
                if pending:
                    stack.extend(reversed(pending))
                    continue
                children = tuple([by_identity[id(arg)] for arg in arguments])
                key = (type(expression), children)
            stack.pop()
            number = by_structure.get(key)
            if number is None:
                number = len(nodes)
                by_structure[key] = number
                nodes.append(Node(expression, children))
            by_identity[id(expression)] = number
        roots.append(by_identity[id(root)])
    return Graph(tuple(nodes), tuple(roots))


def leaves(expressions: Iterable[sympy.Basic]) -> list[sympy.Basic]:
    """Return the distinct leaves that are not numbers, in order of first appearance."""
    graph = intern(expressions)
    return [
        node.expression
        for node in graph.nodes
        if not node.children and not isinstance(node.expression, sympy.Number | sympy.NumberSymbol)
    ]


def rebuild(expression: sympy.Basic, arguments: Sequence[sympy.Basic]) -> sympy.Basic:
    """Return an expression of the same class on other arguments, without simplifying it.

    Evaluation is switched off where SymPy allows it: it recurses, and may reorder numbers.
    """
    if isinstance(expression, sympy.Function | sympy.Add | sympy.Mul | sympy.Pow) and not isinstance(
        expression, sympy.Piecewise
    ):
        return expression.func(*arguments, evaluate=False)
    return expression.func(*arguments)


def substitute(
    expressions: Sequence[sympy.Basic], replacements: Mapping[sympy.Basic, sympy.Basic]
) -> tuple[sympy.Basic, ...]:
    """Replace leaves at once, keeping the sharing of subexpressions.

    Parameters
    ----------
    expressions : sequence of sympy.Basic
        What to replace in.
    replacements : mapping
        Leaf (symbol, function of time or its derivative) to what takes its place; not applied again to
        what was put in.
    """
    graph = intern(expressions)
    built: list[sympy.Basic] = []
    for node in graph.nodes:
        if not node.children:
            built.append(replacements.get(node.expression, node.expression))
            continue
        arguments = [built[child] for child in node.children]
        if all(
            new is graph.nodes[child].expression for new, child in zip(arguments, node.children, strict=True)
        ):
            built.append(node.expression)
        else:
            built.append(rebuild(node.expression, arguments))
        # Asked for later, of the parent, SymPy would find it by recursion; here the children's are known.
        _ = getattr(built[-1], "is_commutative", None)
    return tuple(built[root] for root in graph.roots)


def shown(expression: sympy.Basic) -> str:
    """Return an expression as text, or what kind of expression it is when it is too long to read.

    SymPy prints by recursion and writes shared subexpressions out, so size is counted before.
    """
    sizes: list[int] = []
    interned = intern([expression])
    for node in interned.nodes:
        sizes.append(1 + sum(sizes[child] for child in node.children))
    if sizes[-1] <= 120:
        return str(expression)
    return f"{type(expression).__name__}(...) of {len(sizes)} distinct subexpressions"
