"""A physical quantity: a symbol, its unit, its shape and the range it may take."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import sympy
from sympy.core.function import AppliedUndef

from mechsmith.symbolic.names import ModelError, identifier


@dataclass(frozen=True)
class Quantity:
    """A quantity of a model: state, input, parameter, definition or output.

    Parameters
    ----------
    symbol : sympy.Symbol, function of time, its derivative, or str
        A string makes a real symbol of that name. A function of time `q(t)` is stored as the symbol `q`,
        its derivative as `q_dot`. With a shape it is the name of the whole; its elements are
        `name_0`, `name_1` or `name_0_0`, see `elements`.
    unit : str or tuple of str
        Unit as pint writes it, for instance ``"N*m/rad"``; with a shape one unit, or one for each row.
        The empty string is dimensionless.
    shape : tuple of int
        Empty for a scalar, ``(n,)`` or ``(rows, columns)``.
    description : str
        A few words for reports and headers.
    nominal, lower, upper : float
        Typical value and bounds, in the unit, for each element. An unknown starts at its nominal value.

    Raises
    ------
    ModelError
        If the name can't become an identifier, bounds are out of order, the nominal value is outside them,
        a shape is empty, or the units do not fit the shape.
    """

    symbol: sympy.Basic | str
    unit: str | tuple[str, ...]
    shape: tuple[int, ...] = ()
    description: str = ""
    nominal: float | None = None
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbol", _as_leaf(self.symbol))
        identifier(self.name)
        self._check_types()
        if any(size < 1 for size in self.shape) or len(self.shape) > 2:
            raise ModelError(
                f"quantity {self.name!r}: shape {self.shape} is not allowed. Use (), (n,) or (rows, columns), n >= 1."
            )
        if isinstance(self.unit, tuple) and (not self.shape or len(self.unit) != self.shape[0]):
            raise ModelError(
                f"quantity {self.name!r}: {len(self.unit)} units for shape {self.shape}. Give one unit, or one for each row."
            )
        self._check_bounds()

    def _check_types(self) -> None:
        units = self.unit if isinstance(self.unit, tuple) else (self.unit,)
        if not all(isinstance(unit, str) for unit in units):
            raise ModelError(
                f"quantity {self.name!r}: unit is {self.unit!r}. Give text such as 'N*m/rad' ('' where there is none), "
                "or with a shape a tuple of such texts, one for each row."
            )
        if not isinstance(self.shape, tuple) or not all(isinstance(size, int) for size in self.shape):
            raise ModelError(
                f"quantity {self.name!r}: shape is {self.shape!r}. Give a tuple such as () or (3,)."
            )
        for field in ("nominal", "lower", "upper"):
            value = getattr(self, field)
            if value is None and field == "nominal":
                continue
            try:
                number = float(value) if not isinstance(value, str) else None
            except TypeError:
                number = None
            if number is None:
                raise ModelError(
                    f"quantity {self.name!r}: {field} is {value!r}. Give a number in {self.unit!r}."
                )
            object.__setattr__(self, field, number)

    def _check_bounds(self) -> None:
        for field in ("nominal", "lower", "upper"):
            value = getattr(self, field)
            if value is not None and math.isnan(value):
                raise ModelError(f"quantity {self.name!r}: {field} is NaN. Give a number.")
        if not self.lower <= self.upper:
            raise ModelError(
                f"quantity {self.name!r}: lower {self.lower} is above upper {self.upper}. Exchange or correct them."
            )
        if self.nominal is not None and not self.lower <= self.nominal <= self.upper:
            raise ModelError(
                f"quantity {self.name!r}: nominal {self.nominal} is outside [{self.lower}, {self.upper}]. "
                "Correct the nominal value or the bounds."
            )

    @property
    def name(self) -> str:
        """The name: of the symbol, of the function of time, or of its derivative with `_dot` for each order."""
        return leaf_name(self.symbol)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @cached_property
    def elements(self) -> tuple[sympy.Symbol, ...]:
        """The scalar symbols, row by row; for a scalar the symbol itself (always real)."""
        if not self.shape:
            symbol = self.symbol
            if isinstance(symbol, sympy.Symbol) and symbol.is_real:
                return (symbol,)
            return (sympy.Symbol(self.name, real=True),)
        indices: list[tuple[int, ...]] = [(i,) for i in range(self.shape[0])]
        if len(self.shape) == 2:
            indices = [(i, j) for i in range(self.shape[0]) for j in range(self.shape[1])]
        return tuple(sympy.Symbol(f"{self.name}_{'_'.join(map(str, index))}", real=True) for index in indices)

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each element."""
        if isinstance(self.unit, str):
            return (self.unit,) * self.size
        per_row = self.size // self.shape[0]
        return tuple(unit for unit in self.unit for _ in range(per_row))

    @property
    def array(self) -> sympy.Matrix:
        """The elements as a matrix, `(n, 1)` for a vector, to write equations with."""
        rows, columns = (*self.shape, 1, 1)[:2]
        return sympy.Matrix(rows, columns, self.elements)

    def renamed(self, name: str) -> "Quantity":
        """Return the same quantity under another name, its symbol with the same assumptions."""
        symbol = self.symbol
        if isinstance(symbol, sympy.Symbol):
            return replace(self, symbol=sympy.Symbol(name, **{**symbol._assumptions_orig, "real": True}))
        return replace(self, symbol=name)


def leaf_name(symbol: object) -> str:
    """Return the name of a symbol, of a function of time, or of its derivative (`q_dot`, `q_ddot`)."""
    if isinstance(symbol, sympy.Symbol):
        return str(symbol.name)
    if isinstance(symbol, sympy.Derivative):
        order = int(symbol.derivative_count)
        return f"{leaf_name(symbol.expr)}_{'d' * order}ot"
    return str(symbol.func.__name__)  # type: ignore[attr-defined]


def _as_leaf(symbol: object) -> sympy.Basic:
    if isinstance(symbol, str):
        if not symbol.strip():
            raise ModelError("a quantity has an empty name. Give it one.")
        return sympy.Symbol(symbol, real=True)
    if isinstance(symbol, sympy.Symbol):
        if symbol.is_real is False:
            raise ModelError(
                f"quantity {symbol.name!r}: its symbol is declared not real. Every quantity is real."
            )
        return symbol
    of_time = symbol.expr if isinstance(symbol, sympy.Derivative) else symbol
    if isinstance(of_time, AppliedUndef) and len(of_time.args) == 1:
        return symbol
    raise ModelError(
        f"quantity {symbol!r}: got a {type(symbol).__name__}. Give a symbol, a name, a function of time or its derivative."
    )
