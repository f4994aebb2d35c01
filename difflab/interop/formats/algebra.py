"""Functions as expressions of SymPy, and equal forms of an expression among which to choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.errors import UnsupportedError
from difflab.graph.evaluate import fold
from difflab.graph.function import Function
from difflab.graph.interpreters import SympyInterpreter
from difflab.graph.ir import Number

DYADIC = 1024
"""The largest denominator of a decimal constant that becomes a fraction, which is exact."""
LARGEST = 300
"""Operations of SymPy beyond which its costly searches are not tried."""


FAILURES = (
    *(ArithmeticError, AttributeError, LookupError, NameError, NotImplementedError),
    *(RecursionError, TypeError, ValueError),
)
"""What SymPy raises where it has no result."""


def ordered_symbols(function: Function) -> list[Any]:
    """Return a symbol for each input, which SymPy sorts as the inputs appear in the formula.

    Raises
    ------
    UnsupportedError
        An input is an array, or there is none.
    """
    sympy = require("sympy")
    for name, shape in zip(function.inputs, function.input_shapes, strict=True):
        if shape:
            raise UnsupportedError(
                f"SymPy simplifies formulas of numbers, and {name!r} is an array"
            )
    if not function.inputs:
        raise UnsupportedError("the formula has no variable")
    nodes = sorted(function.input_nodes)
    width = len(str(len(nodes)))
    # Names that SymPy and the language have no meaning for.
    return [
        sympy.Symbol(f"v{nodes.index(node):0{width}}_", real=True) for node in function.input_nodes
    ]


def expressions(function: Function, symbols: Sequence[Any], *, exact: bool = False) -> list[Any]:
    """Return the flattened outputs as expressions of SymPy, with fractions for 0.5 and its like.

    Parameters
    ----------
    function : Function
    symbols : sequence
        A symbol for each input, or an array of symbols.
    exact : bool
        Whether every decimal becomes a fraction, of the float64 it is.

    Raises
    ------
    UnsupportedError
        SymPy cannot express an operation.
    """
    sympy = require("sympy")
    outputs = outputs_of(function, symbols, _Fractions() if exact else SympyInterpreter())
    flat = [entry for output in outputs for entry in np.asarray(output, dtype=object).ravel()]
    return [_with_fractions(sympy.sympify(entry)) for entry in flat]


def outputs_of(
    function: Function, symbols: Sequence[Any], interpreter: SympyInterpreter
) -> list[Any]:
    """Return the outputs as SymPy's expressions, or arrays of them; see `expressions`."""
    environment = dict(zip(function.input_nodes, symbols, strict=True))
    try:
        return fold(function.graph, environment, function.outputs, interpreter)
    except FAILURES as error:
        why = str(error)
        if "truth value of Relational" in why:
            why = "the number of steps of a loop depends on a variable"
        raise UnsupportedError(f"SymPy cannot express this function: {why}") from error


class _Fractions(SympyInterpreter):
    """Interpreter whose finite constants are the exact fractions of their float64 values."""

    def constant(self, value: Number, name: str | None) -> Any:
        if name or not math.isfinite(value):
            return super().constant(value, name)
        return self.sympy.Rational(*float(value).as_integer_ratio())


def _with_fractions(expression: Any) -> Any:
    """Return an expression with constants such as 0.5 as fractions, which SymPy can cancel."""
    sympy = require("sympy")
    fractions = {
        number: sympy.Rational(*ratio)
        for number in expression.atoms(sympy.Float)
        if number.is_finite and (ratio := float(number).as_integer_ratio())[1] <= DYADIC
    }
    return expression.xreplace(fractions)


def equal_forms(expression: Any) -> Iterator[Any]:
    """Yield forms of an expression, the costly ones only of a small one."""
    sympy = require("sympy")
    ways: list[Callable[[Any], Any]] = [sympy.factor_terms, sympy.cancel, sympy.together]
    if sympy.count_ops(expression) <= LARGEST:
        ways += [sympy.factor, sympy.simplify, lambda e: sympy.powsimp(sympy.cancel(e))]
    yield expression
    yield from attempted(expression, ways)


def attempted(expression: Any, ways: Sequence[Callable[[Any], Any]]) -> Iterator[Any]:
    """Yield the expression rewritten by each of the functions that do not fail."""
    sympy = require("sympy")
    for way in ways:
        try:
            yield way(expression)
        except (sympy.PolynomialError, *FAILURES):
            continue
