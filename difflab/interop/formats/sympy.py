"""SymPy's expressions as functions.

The functions of SymPy are those that the table's rows name in their column `sympy`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import Any

from difflab import arrays
from difflab import primitives as rows
from difflab.errors import InputError
from difflab.graph.algebra import degrees, signs
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT
from difflab.graph.node import Node
from difflab.interop.formats.readers import EXACT, ReaderSource, built, checked_name, verified
from difflab.interop.formats.sympy_functions import Rule, function_rules
from difflab.interop.formats.sympy_values import MOST_EVALUATED, ExpressionFold, SympyValues
from difflab.language.placing import listed


def from_sympy(expression: Any, *, verify: bool = True) -> Function:
    """Return the function that a SymPy expression computes.

    Its inputs are the free symbols, in natural order. Quotients stay quotients: ``x/3`` is
    a division, and not a product with a rounded third. SymPy rewrites an expression when it is
    made: the function is that of the result, whose rounding errors may differ.

    Parameters
    ----------
    expression : sympy.Expr, sympy.Matrix, or a list or tuple of them
        A list gives several outputs; a matrix is an array. A ``MatrixSymbol`` whose shape is
        known is an array input.
    verify : bool
        Whether to compare values with SymPy's of 30 digits, at a few points.

    Returns
    -------
    Function

    Raises
    ------
    InputError
        It is no expression, or a symbol's name is no name in difflab's language; or it contains
        what has no counterpart, such as an integral, a complex number or an unknown function.
    GraphMismatchError
        What was read has another value than SymPy computes.

    Examples
    --------
    >>> import sympy, difflab as dl
    >>> x, y = sympy.symbols("x y")
    >>> f = from_sympy(sympy.sin(x)*y + x/3)
    >>> print(f)
    x/3 + y*sin(x)
    >>> dl.gradient(f)(0.0, 2.0).round(12).tolist()
    [2.333333333333, 0.0]
    """
    import sympy

    several = isinstance(expression, list | tuple)
    parts = expression if several else [expression]
    kinds = (sympy.Basic, sympy.MatrixBase)
    wrong = [part for part in parts if not isinstance(part, kinds)]
    if wrong or not len(parts):
        kind = type(wrong[0] if wrong else expression).__name__
        raise InputError(
            f"from_sympy takes an expression of SymPy, not {kind}",
            hint='text is a function by dl.parse(text), or sympy.sympify("x**2")',
        )
    reader = _ExpressionReader()
    read = built(reader.builder, [reader.node(part) for part in parts])
    if not verify:
        return read
    symbols = [reader.symbols[name] for name in read.inputs]
    values = SympyValues(parts, symbols)
    return verified(read, ReaderSource("SymPy", values, most=MOST_EVALUATED))


class _ExpressionReader:
    """The nodes of expressions; an expression that occurs twice is read once."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.rules = _rules()
        self.symbols: dict[str, Any] = {}
        self.node = ExpressionFold(self._operands, self._made)

    def constant(self, value: float) -> Node:
        """Return the node of a number."""
        return Node(self.builder, self.builder.constant(value))

    def _made(self, expression: Any, values: list[Node]) -> Any:
        """Return the node of an expression whose operands have nodes."""
        rule = self._rule(expression)
        assert rule is not None, "operands are read only where there is a rule"
        return rule(self, expression, *values)

    def _operands(self, expression: Any) -> Sequence[Any]:
        """Return the expressions that an expression computes with."""
        if self._rule(expression) is None:
            raise InputError(
                f"difflab has no counterpart of SymPy's {type(expression).__name__}",
                hint="evaluate it first: expression.doit(), .rewrite(…) or .subs(…)",
            )
        return _operands(expression)

    def _rule(self, expression: Any) -> Rule | None:
        rules = (self.rules.get(kind) for kind in type(expression).__mro__)
        return next((rule for rule in rules if rule is not None), None)

    def input(self, symbol: Any, shape: tuple[int, ...] = ()) -> Node:
        """Return the input of a symbol."""
        name = checked_name(symbol.name, "the symbol")
        if self.symbols.setdefault(name, symbol) != symbol:
            raise InputError(
                f"two symbols are called {name}, with different assumptions",
                hint="make one symbol, with one set of assumptions",
            )
        return Node(self.builder, self.builder.input(name, shape))


def _operands(expression: Any) -> Sequence[Any]:
    """Return the expressions that an expression computes with."""
    import sympy
    from sympy.matrices.expressions.matexpr import MatrixElement

    if isinstance(expression, sympy.MatrixBase):
        return list(expression.flat())
    if isinstance(expression, MatrixElement):
        return (expression.args[0],)
    if isinstance(expression, sympy.MatrixSymbol):
        return ()
    if isinstance(expression, sympy.Inverse):
        return (expression.arg,)
    if isinstance(expression, sympy.Piecewise):
        return [part for pair in expression.args for part in pair.args]
    return tuple(expression.args)


def _number(reader: _ExpressionReader, number: Any) -> Any:
    """Return a constant; a fraction is a division, as one would write it."""
    if number.is_Integer:
        value = int(number)
        return reader.constant(value if abs(value) <= EXACT else _rounded(number))
    if number.is_Rational:
        above, below = int(number.p), int(number.q)
        if max(abs(above), below) <= EXACT:
            return rows.divide(reader.constant(above), reader.constant(below))
    return reader.constant(_rounded(number))


def _rounded(number: Any) -> float:
    value = float(number)
    if math.isinf(value) and number.is_finite:
        raise InputError("a number of the expression is too large for a float64")
    if not value and not number.is_zero:
        raise InputError(
            "a number of the expression is so small that float64 rounds it to 0",
            hint="scale the expression, or replace the number by 0 in SymPy",
        )
    return value


def _imaginary(reader: _ExpressionReader, unit: Any) -> Node:
    raise InputError(
        "the expression contains the imaginary unit, and difflab computes with real numbers",
        hint="split it by expression.as_real_imag()",
    )


def _sum(reader: _ExpressionReader, expression: Any, *terms: Node) -> Node:
    """Return a sum, in which a negated term is subtracted."""
    total = terms[0]
    for term in terms[1:]:
        positive = _negated(reader, term)
        total = rows.add(total, term) if positive is None else rows.subtract(total, positive)
    return total


def _negated(reader: _ExpressionReader, node: Node) -> Node | None:
    """Return the operand of a negation, or the absolute value of a negative constant; else None."""
    builder = reader.builder
    if signs(builder, node.id) == (-1,):
        return Node(builder, builder.arguments(node.id)[0])
    if builder.opcode[node.id] == CONSTANT:
        value, name = builder.constants[node.id]
        if name is None and value < 0:
            return reader.constant(-value)
    return None


def _product(reader: _ExpressionReader, expression: Any, *factors: Node) -> Node:
    """Return a product as a quotient of products, like SymPy prints it."""
    above: list[Node] = []
    below: list[Node] = []
    negative = False
    for factor, node in zip(expression.args, factors, strict=True):
        if factor.is_Rational and not factor.is_Integer:
            numerator, denominator = (Node(reader.builder, k) for k in _parts(reader, node))
            positive = _negated(reader, numerator)
            negative ^= positive is not None
            above += _unless_one(reader, numerator if positive is None else positive)
            below.append(denominator)
        elif factor.is_Number and (size := _negated(reader, node)) is not None:
            negative = not negative
            above += _unless_one(reader, size)
        elif factor.is_Pow and _is_reciprocal(reader, node):
            below.append(Node(reader.builder, _parts(reader, node)[1]))
        else:
            above.append(node)
    product = reduce(rows.multiply, above) if above else reader.constant(1)
    if below:
        product = rows.divide(product, reduce(rows.multiply, below))
    return rows.negative(product) if negative else product


def _parts(reader: _ExpressionReader, node: Node) -> tuple[int, ...]:
    return reader.builder.arguments(node.id)


def _unless_one(reader: _ExpressionReader, node: Node) -> list[Node]:
    return [] if reader.builder.constants.get(node.id) == (1, None) else [node]


def _is_reciprocal(reader: _ExpressionReader, node: Node) -> bool:
    """Whether a node is 1 divided by something."""
    if degrees(reader.builder, node.id) != (1, -1):
        return False
    return reader.builder.constants.get(_parts(reader, node)[0]) == (1, None)


def _power(reader: _ExpressionReader, expression: Any, base: Node, exponent: Node) -> Any:
    """Return a power; one with a negative constant exponent is a reciprocal."""
    import sympy

    power = expression.exp
    if not power.is_Rational:
        return rows.power(base, exponent)
    size = abs(power)
    if size == 1:
        positive = base
    elif size == sympy.S.Half:
        positive = rows.sqrt(base)
    elif size == sympy.Rational(1, 3) and expression.base.is_nonnegative:
        positive = rows.cbrt(base)
    else:
        positive = rows.power(base, _number(reader, size))
    return positive if power > 0 else rows.divide(reader.constant(1), positive)


def _piecewise(reader: _ExpressionReader, expression: Any, *pieces: Node) -> Node:
    """Return nested choices; where no condition holds the value is nan."""
    from sympy import true

    choices = list(zip(pieces[::2], pieces[1::2], strict=True))
    if expression.args[-1].cond is true:
        nested, _ = choices.pop()
    else:
        nested = reader.constant(math.nan)
    for value, condition in reversed(choices):
        nested = rows.where(condition, value, nested)
    return nested


def _heaviside(reader: _ExpressionReader, expression: Any, x: Node, middle: Node) -> Any:
    if expression.args[1] * 2 != 1:
        raise InputError(
            "difflab's heaviside is 1/2 at 0, and SymPy's has another value there",
            hint="write Heaviside(x) or a Piecewise",
        )
    return rows.heaviside(x)


def _matrix(reader: _ExpressionReader, matrix: Any, *entries: Node) -> Any:
    if not entries:
        raise InputError("a matrix of the expression has no elements")
    return arrays.reshape(listed(entries), matrix.shape)


def _matrix_symbol(reader: _ExpressionReader, symbol: Any) -> Node:
    if not all(size.is_Integer for size in symbol.shape):
        raise InputError(
            f"the shape of the matrix {symbol.name} is not known",
            hint='make it of numbers: sympy.MatrixSymbol("A", 3, 3)',
        )
    return reader.input(symbol, tuple(map(int, symbol.shape)))


def _matrix_element(reader: _ExpressionReader, element: Any, matrix: Node) -> Node:
    row, column = element.args[1:]
    if not (row.is_Integer and column.is_Integer):
        raise InputError("an element of a matrix has an index that is no number")
    return matrix[int(row), int(column)]


def _matrix_product(reader: _ExpressionReader, expression: Any, *factors: Node) -> Node:
    def times(a: Node, b: Node) -> Any:
        return rows.multiply(a, b) if () in (a.shape, b.shape) else arrays.matmul(a, b)

    return reduce(times, factors)


def _truth(reader: _ExpressionReader, value: Any) -> Any:
    constants = (reader.constant(int(bool(value))), reader.constant(0))
    return rows.not_equal(*constants)


@cache
def _rules() -> Mapping[type, Rule]:
    """Return how each class of SymPy is read."""
    import sympy

    classes = sympy.matrices.expressions
    rules: dict[type, Rule] = dict(function_rules(sympy))
    rules |= {
        sympy.Symbol: lambda reader, symbol: reader.input(symbol),
        sympy.Number: _number,
        sympy.NumberSymbol: lambda reader, number: reader.constant(_rounded(number)),
        sympy.core.numbers.Pi: lambda reader, _: _named(reader, "pi"),
        sympy.core.numbers.Exp1: lambda reader, _: _named(reader, "e"),
        sympy.core.numbers.ImaginaryUnit: _imaginary,
        sympy.Add: _sum,
        sympy.Mul: _product,
        sympy.Pow: _power,
        sympy.Piecewise: _piecewise,
        sympy.Heaviside: _heaviside,
        sympy.ITE: lambda reader, _, condition, value, other: rows.where(condition, value, other),
        sympy.logic.boolalg.BooleanAtom: _truth,
        sympy.factorial: lambda reader, _, x: rows.gamma(rows.add(x, reader.constant(1))),
        sympy.MatrixBase: _matrix,
        sympy.MatrixSymbol: _matrix_symbol,
        classes.matexpr.MatrixElement: _matrix_element,
        sympy.MatMul: _matrix_product,
        sympy.MatAdd: _sum,
        sympy.HadamardProduct: lambda reader, _, *factors: reduce(rows.multiply, factors),
        sympy.Transpose: lambda reader, _, x: arrays.transpose(x),
        sympy.Inverse: lambda reader, _, x: arrays.inv(x),
        sympy.Determinant: lambda reader, _, x: arrays.det(x),
        sympy.Trace: lambda reader, _, x: arrays.trace(x),
    }
    return rules


def _named(reader: _ExpressionReader, name: str) -> Node:
    """Return the constant ``pi`` or ``e``."""
    value = {"pi": math.pi, "e": math.e}[name]
    return Node(reader.builder, reader.builder.constant(value, name))
