"""SymPy's own values of expressions, to compare with the functions read from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_EVALUATED = 5_000
"""Operations above which SymPy would take longer than reading does."""
DIGITS = 30


class SympyValues:
    """Values of expressions at given symbols; each is computed once, operands first.

    Examples
    --------
    >>> import sympy
    >>> x = sympy.Symbol("x")
    >>> SympyValues([x**2 - 1, sympy.sqrt(x)], [x])([np.array(-3.0)])
    [array(8.), array(nan)]
    """

    def __init__(self, expressions: Sequence[Any], symbols: Sequence[Any]) -> None:
        self.expressions = expressions
        self.symbols = symbols

    def __call__(self, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return an array for each expression, with nan where it is not real."""
        import sympy

        point = {
            symbol: _number(value[()]) if value.ndim == 0 else _matrix(value)
            for symbol, value in zip(self.symbols, values, strict=True)
        }
        value_of = ExpressionFold(
            lambda expression: () if expression in point else expression.args,
            lambda expression, values: (
                point[expression] if expression in point else _computed(expression, values)
            ),
        )
        arrays = []
        for expression in self.expressions:
            if isinstance(expression, sympy.MatrixBase):
                cells = [value_of(cell) for cell in expression.flat()]
                arrays.append(np.array(list(map(_real, cells))).reshape(expression.shape))
                continue
            value = value_of(expression)
            if isinstance(value, sympy.MatrixBase):
                cells = [_real(cell) for cell in value.flat()]
                arrays.append(np.array(cells).reshape(value.shape))
            else:
                arrays.append(np.array(_real(value)))
        return arrays


def _number(value: Any) -> Any:
    """Return the exact number; an integer is one, which conditions compare."""
    import sympy

    number = float(value)
    return sympy.Integer(int(number)) if number.is_integer() else sympy.Float(number, DIGITS)


def _matrix(values: NDArray[Any]) -> Any:
    import sympy

    return sympy.ImmutableDenseMatrix(*values.shape, list(map(_number, values.reshape(-1))))


class ExpressionFold:
    """Values of expressions by those of their operands, with an explicit stack; each is made once.

    Parameters
    ----------
    operands : callable
        Returns the operands of an expression that are needed.
    made : callable
        Returns the value of an expression from its operands' values.
    """

    def __init__(
        self, operands: Callable[[Any], Sequence[Any]], made: Callable[[Any, list[Any]], Any]
    ) -> None:
        self.operands, self.made = operands, made
        self.values: dict[int, Any] = {}
        # Expressions are known by their ids, which need the objects alive.
        self._alive: list[Any] = []

    def __call__(self, expression: Any) -> Any:
        """Return the value of an expression."""
        stack = [expression]
        while stack:
            current = stack[-1]
            if id(current) in self.values:
                stack.pop()
                continue
            operands = self.operands(current)
            self._alive += [current, operands, *operands]
            missing = [operand for operand in operands if id(operand) not in self.values]
            if missing:
                stack += missing[::-1]
                continue
            values = [self.values[id(operand)] for operand in operands]
            self.values[id(current)] = self.made(current, values)
            stack.pop()
        return self.values[id(expression)]


def _computed(expression: Any, operands: Sequence[Any]) -> Any:
    """Evaluate an expression without symbols."""
    import sympy

    if not operands or isinstance(expression, sympy.Number | sympy.NumberSymbol | sympy.Tuple):
        return expression.func(*operands) if operands else expression
    made = expression.func(*operands)
    if isinstance(made, sympy.MatrixExpr):
        return made.doit()
    plain = isinstance(made, sympy.Expr) and not isinstance(made, sympy.Number)
    return made.evalf(DIGITS) if plain else made


def _real(value: Any) -> float:
    """Return a real number; nan for anything else."""
    import sympy

    if isinstance(value, sympy.logic.boolalg.BooleanAtom):
        return float(bool(value))
    number = value.evalf(DIGITS) if isinstance(value, sympy.Expr) else value
    return float(number) if number.is_Number else float("nan")
