"""The equations of a model for reading: Unicode, LaTeX and MathML."""

from collections.abc import Callable
from typing import Any

import sympy
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.pretty.pretty import PrettyPrinter
from sympy.printing.pretty.pretty_symbology import pretty_symbol
from sympy.printing.pretty.stringpict import prettyForm

from mechsmith.symbolic.model import Equation, Model

# Nodes of an expression beyond which it is not typeset: nobody reads it, and SymPy's printers take long.
LONGEST = 2000
NEXT = "⁺"  # marks the value of a discrete state after its update

HEADINGS = {
    "definition": "Definitions",
    "mass": "Mass matrix",
    "derivative": "Derivatives",
    "update": "Updates at every sample",
    "constraint": "Constraints",
    "output": "Outputs",
    "crossing": "Switching where one passes zero",
}


class _Unicode(PrettyPrinter):  # type: ignore[misc]
    """SymPy's printer, with names as they are: only ``a0`` becomes a₀."""

    def _print_Symbol(self, symbol: sympy.Symbol, bold_name: bool = False) -> Any:
        base, index = _parts(symbol.name)
        return prettyForm(pretty_symbol(base + index) if index else symbol.name)

    def _print_Max(self, expression: sympy.Basic) -> Any:
        return self._helper_print_function(expression.func, expression.args, func_name="max")

    def _print_Min(self, expression: sympy.Basic) -> Any:
        return self._helper_print_function(expression.func, expression.args, func_name="min")


class _MathML(MathMLPresentationPrinter):  # type: ignore[misc]
    """SymPy's printer, with names as they are: only ``a0`` gets an index."""

    def _print_Symbol(self, symbol: sympy.Symbol, style: str = "plain") -> Any:
        base, index = _parts(symbol.name)
        name = self.dom.createElement("mi")
        name.appendChild(self.dom.createTextNode(base))
        if not index:
            return name
        number, both = self.dom.createElement("mn"), self.dom.createElement("msub")
        number.appendChild(self.dom.createTextNode(index))
        both.appendChild(name)
        both.appendChild(number)
        return both


def _parts(name: str) -> tuple[str, str]:
    """Return a letter and its number (``a0``), or the name and nothing."""
    letter = name[0].isalpha() and name[1:].isdecimal()
    return (name[0], name[1:]) if letter else (name, "")


def _latex_name(name: str) -> str:
    base, index = _parts(name)
    if index:
        return f"{base}_{{{index}}}"
    spelled = base.removesuffix(NEXT).replace("_", r"\_")
    plain = spelled if len(spelled) == 1 else rf"\mathrm{{{spelled}}}"
    return plain + "^{+}" if base.endswith(NEXT) else plain


def unicode_equations(model: Model) -> str:
    """Return the equations as Unicode text, under headings."""
    printer = _Unicode({"use_unicode": True, "wrap_line": False})

    def written(equation: Equation, left: sympy.Basic) -> str:
        if equation.kind == "crossing":
            return str(printer.doprint(equation.expression))
        return str(printer.doprint(sympy.Eq(left, _with_exp(equation.expression), evaluate=False)))

    parts = []
    for heading, lines in _sections(model, written):
        rows = ("\n".join(f"  {row}".rstrip() for row in line.splitlines()) + "\n" for line in lines)
        parts += [heading, "", *rows]
    return "\n".join(parts).rstrip()


def latex_equations(model: Model) -> str:
    """Return the equations as LaTeX, one ``align*`` environment for each heading (amsmath)."""

    def latex(expression: sympy.Basic) -> str:
        names = {symbol: _latex_name(symbol.name) for symbol in expression.atoms(sympy.Symbol)}
        return str(sympy.latex(expression, symbol_names=names, mul_symbol=r" \, "))

    def written(equation: Equation, left: sympy.Basic) -> str:
        right = latex(equation.expression)
        return right if equation.kind == "crossing" else f"{latex(left)} &= {right}"

    parts = []
    for heading, lines in _sections(model, written):
        body = " \\\\\n".join(lines)
        parts.append(f"% {heading}\n\\begin{{align*}}\n{body}\n\\end{{align*}}")
    return "\n\n".join(parts)


def mathml_equations(model: Model) -> list[tuple[str, list[str]]]:
    """Return headings, each with its equations as presentation MathML."""
    printer = _MathML({"mul_symbol": "dot"})

    def mathml(expression: sympy.Basic) -> str:
        return str(printer.doprint(expression))

    def written(equation: Equation, left: sympy.Basic) -> str:
        right = mathml(_with_exp(equation.expression))
        if equation.kind == "derivative":
            name, d = mathml(equation.symbol), "<mi>d</mi>"
            side = f'<mfrac><mrow>{d}<mspace width="0.15em"/>{name}</mrow><mrow>{d}<mi>t</mi></mrow></mfrac>'
        else:
            side = mathml(left)
        whole = right if equation.kind == "crossing" else f"{side}<mo>=</mo>{right}"
        return f'<math display="block"><mrow>{whole}</mrow></math>'

    return _sections(model, written)


def _sections(model: Model, written: Callable[[Equation, sympy.Basic], str]) -> list[tuple[str, list[str]]]:
    """Return the headings that the model has equations for, with the equations."""
    sections = []
    for kind, heading in HEADINGS.items():
        lines = []
        for equation in model.equations:
            if equation.kind == kind and not (kind == "mass" and equation.expression == 0):
                lines.append(written(_readable(equation), _left(equation)))
        if lines:
            sections.append((heading, lines))
    return sections


def _readable(equation: Equation) -> Equation:
    size = sum(
        1 for _ in zip(range(LONGEST + 1), sympy.preorder_traversal(equation.expression), strict=False)
    )
    if size <= LONGEST:
        return equation
    return equation._replace(expression=sympy.Symbol(f"(more than {LONGEST} terms)"))


def _with_exp(expression: sympy.Basic) -> sympy.Basic:
    """Return the expression with exp written as a function: a fraction in an exponent is too small to read."""
    return expression.replace(sympy.exp, sympy.Function("exp"))


def _left(equation: Equation) -> sympy.Basic:
    """Return what stands left of the equals sign."""
    symbol = equation.symbol
    if equation.kind == "derivative":
        return sympy.Derivative(symbol, sympy.Symbol("t"), evaluate=False)
    if equation.kind == "update":
        return sympy.Symbol(symbol.name + NEXT)
    if equation.kind == "constraint":
        return sympy.Integer(0)
    return symbol
