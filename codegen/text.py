"""How numbers, names and nested data are printed: reproducible to the byte, whatever the locale."""

import json
import math
from functools import cache
from typing import Any

import jinja2
import numpy

from mechsmith.symbolic.names import identifier

RESERVED = frozenset(
    # C99 and C11 keywords, and what C23 and C++ add
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false "
    "nullptr constexpr typeof alignas alignof thread_local static_assert asm class new delete this template private public "
    "protected virtual friend operator namespace using try catch throw typename explicit export mutable and or not xor "
    "bitand bitor compl and_eq or_eq not_eq xor_eq concept requires "
    # macros and functions of the standard headers
    "I complex imaginary NULL EOF NAN INFINITY HUGE_VAL assert errno stdin stdout stderr offsetof "
    "M_PI M_E M_LN2 M_LN10 M_SQRT2 acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp "
    "ldexp log log10 log1p log2 logb modf scalbn cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint "
    "round trunc fmod remainder remquo copysign nan nextafter fdim fmax fmin fma fpclassify isfinite isinf isnan isnormal "
    "signbit gamma j0 j1 jn y0 y1 yn abs div exit abort signal raise index main time clock unix linux near far "
    # Python keywords
    "None True False as assert async await def del elif except finally from global import in is lambda nonlocal pass raise "
    "with yield".split()
)


def comment(text: str) -> str:
    """Return a text for the inside of a C comment: on one line, and neither opening nor closing one."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split())


def docstring(text: str) -> str:
    """Return a text for the inside of a Python docstring."""
    return " ".join(text.replace("\\", "\\\\").replace('"', '\\"').split())


@cache
def environment() -> jinja2.Environment:
    """Return the template environment; a name that a template misspells is an error."""
    result = jinja2.Environment(
        loader=jinja2.PackageLoader("mechsmith.codegen", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 -- the text is C and Python, not HTML
    )
    result.filters |= {"comment": comment, "docstring": docstring}
    return result


def python_literal(value: Any) -> str:
    """Return a Python literal; infinities and NaN as ``float("inf")``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python_literal(k)}: {python_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(python_literal(item) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        # Not ASCII only: JSON writes characters beyond 16 bits as surrogates, which Python does not join.
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def c_number(value: float, scalar: str) -> str:
    """Return a C literal of type double or float, the shortest that reads back to the same number."""
    if not math.isfinite(value):
        # Both macros are of type float, and a silent promotion is a warning.
        text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return text if scalar == "float" else f"(double){text}"
    if scalar == "double":
        return _with_point(repr(value))
    with numpy.errstate(over="ignore"):
        single = numpy.float32(value)
    if not numpy.isfinite(single) or (single == 0.0 and value != 0.0):
        raise OverflowError(
            f"constant {value!r} does not fit in a float. Scale the model or generate double."
        )
    return (
        _with_point(
            numpy.format_float_scientific(single, unique=True, trim="-")
            if abs(value) < 1e-4 or abs(value) >= 1e16
            else str(single)
        )
        + "f"
    )


def _with_point(text: str) -> str:
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent)}"
    return text if "." in text else text + ".0"


def unique_identifiers(names: list[str]) -> dict[str, str]:
    """Return the identifier of each name: cleaned, not reserved, and unique.

    A reserved word gets an underscore at its end; a name whose identifier is taken gets ``_2``, ``_3``, in order.
    """
    taken: set[str] = set()
    result = {}
    for name in names:
        cleaned = identifier(name)
        if cleaned in RESERVED:
            cleaned += "_"
        candidate, count = cleaned, 1
        while candidate in taken:
            count += 1
            candidate = f"{cleaned}_{count}"
        taken.add(candidate)
        result[name] = candidate
    return result
