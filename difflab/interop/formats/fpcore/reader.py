"""FPCore to functions, with an explicit stack of pending expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.names import FreshNames, output_names
from difflab.graph.node import Node
from difflab.interop.formats.fpcore.lists import Atom, Expression, Listed, fail, read
from difflab.interop.formats.fpcore.rounding import CONTEXTS, NEUTRAL, fused
from difflab.interop.formats.readers import EXACT, cleaned_name
from difflab.primitives import TABLE
from difflab.primitives.c99 import C99, c_name

_DECIMAL = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_FRACTION = re.compile(r"([-+]?\d+)/(\d+)")
_HEXADECIMAL = re.compile(r"[-+]?0x[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:p[-+]?\d+)?")
_CONSTANTS: Mapping[str, float] = {
    "LOG2E": 1 / math.log(2),
    "LOG10E": 1 / math.log(10),
    "LN2": math.log(2),
    "LN10": math.log(10),
    "PI_2": math.pi / 2,
    "PI_4": math.pi / 4,
    "M_1_PI": 1 / math.pi,
    "M_2_PI": 2 / math.pi,
    "M_2_SQRTPI": 2 / math.sqrt(math.pi),
    "SQRT2": math.sqrt(2),
    "SQRT1_2": math.sqrt(0.5),
    "INFINITY": math.inf,
    "NAN": math.nan,
}
_RELATIONS: Mapping[str, Callable[..., Any]] = {
    "<": rows.less,
    "<=": rows.less_equal,
    ">": rows.greater,
    ">=": rows.greater_equal,
    "==": rows.equal,
}


def from_fpcore(text: str) -> Function:
    """Return the function that a benchmark in FPCore computes.

    Operators, ``if``, ``let`` and ``let*`` are read; loops and tensors are not. Results are rounded
    to the precision of their context, binary32 or binary64, whose derivative is 1, and those of
    ``fma`` once. Real numbers are computed in float64. The preconditions and other properties that
    do not change the value are left out.

    Parameters
    ----------
    text : str
        One ``(FPCore (arguments…) properties… body)``.

    Returns
    -------
    Function
        Its inputs are the arguments, in their order, with ``_`` for what a name cannot contain.

    Raises
    ------
    ParseError
        It is no FPCore, or holds something that is not read; the error has the location.
    InputError
        `text` is not a string.

    Examples
    --------
    >>> f = from_fpcore("(FPCore (x) :name 'shift' (let ([y (+ x 1)]) (- (sqrt y) (sqrt x))))")
    >>> print(f)
    y = x + 1
    sqrt(y) - sqrt(x)
    """
    if not isinstance(text, str):
        raise InputError(f"from_fpcore takes a text, not {type(text).__name__}")
    cores = read(text)
    if not cores:
        raise InputError("the text holds no FPCore", hint="(FPCore (x) (sqrt x))")
    if len(cores) > 1:
        fail(text, cores[1], "more than one FPCore", "read them one by one")
    return _CoreReader(text).function(cores[0])


Work = tuple[Callable[..., None], tuple[Any, ...]]


class _CoreReader:
    """Computes expressions: a stack of work, and one of the values that it leaves."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.builder = Builder()
        self.scope: dict[str, Node] = {}
        self.work: list[Work] = []
        self.values: list[Node] = []
        self.precision = "binary64"

    def function(self, core: Expression) -> Function:
        """Return the function of a whole FPCore."""
        items = core.items if isinstance(core, Listed) else []
        if not items or not isinstance(items[0], Atom) or items[0].text != "FPCore":
            fail(self.text, core, "expected (FPCore (arguments…) … body)")
        position = 2 if len(items) > 2 and isinstance(items[1], Atom) else 1
        arguments = items[position] if len(items) > position else None
        if not isinstance(arguments, Listed):
            fail(self.text, core, "the arguments in brackets are missing")
        properties, body = self._properties(core, items[position + 1 :])
        self.precision = self._context(properties)
        inputs = self._arguments(arguments)
        self._push(self._expression, body)
        while self.work:
            step, args = self.work.pop()
            step(*args)
        reserved = [*self.builder.names.values(), *self.builder.labels.values()]
        names = output_names([None], reserved)
        return Function.build(self.builder, inputs, [self.values[0].id], names)

    def _arguments(self, arguments: Listed) -> list[int]:
        names = FreshNames()
        inputs = []
        for argument in arguments.items:
            symbol, precision = argument, self.precision
            if isinstance(argument, Listed):  # (! :precision binary64 x)
                head = argument.items[0] if argument.items else None
                if not isinstance(head, Atom) or head.text != "!":
                    fail(self.text, argument, "difflab reads arguments that are numbers")
                properties, symbol = self._properties(argument, argument.items[1:])
                precision = self._context(properties)
            if not isinstance(symbol, Atom):
                fail(self.text, argument, "difflab reads arguments that are numbers")
            if symbol.text in self.scope:
                fail(self.text, symbol, f"two arguments are called {symbol.text}")
            node = self.builder.input(names.fresh(cleaned_name(symbol.text)))
            inputs.append(node)
            self.scope[symbol.text] = CONTEXTS[precision](Node(self.builder, node))
        return inputs

    def _properties(
        self, at: Expression, items: Sequence[Expression]
    ) -> tuple[Mapping[str, Expression], Expression]:
        """Return the properties with their values, and the expressions after them."""
        rest, properties = list(items), {}
        while len(rest) > 1 and isinstance(rest[0], Atom) and rest[0].text.startswith(":"):
            properties[rest[0].text] = rest[1]
            del rest[:2]
        if len(rest) != 1:
            fail(self.text, at, "expected one expression behind the properties")
        return properties, rest[0]

    def _context(self, properties: Mapping[str, Expression]) -> str:
        """Return the precision of a context, which is that around it if none is stated."""
        for name, supported in NEUTRAL.items():
            value = properties.get(name)
            if value is not None and not (isinstance(value, Atom) and value.text == supported):
                fail(self.text, value, f"difflab computes with {name} {supported}")
        precision = properties.get(":precision", properties.get(":type"))
        if precision is None:
            return self.precision
        if not (isinstance(precision, Atom) and precision.text in CONTEXTS):
            hint = f"it computes with {', '.join(CONTEXTS)}"
            fail(self.text, precision, "difflab does not compute in this precision", hint)
        return precision.text

    # --- steps ----------------------------------------------------------------------------

    def _push(self, step: Callable[..., None], *args: Any) -> None:
        self.work.append((step, args))

    def _expression(self, expression: Expression) -> None:
        if isinstance(expression, Atom):
            self.values.append(self._atom(expression))
            return
        head = expression.items[0] if expression.items else None
        if not isinstance(head, Atom):
            fail(self.text, expression, "an operator is expected behind the bracket")
        operands = expression.items[1:]
        if head.text == "let":
            self._let(expression, operands)
        elif head.text == "let*":
            self._let_in_turn(expression, operands)
        elif head.text == "!":
            properties, body = self._properties(expression, operands)
            self._push(self._enter, self.precision)
            self._push(self._expression, body)
            self._enter(self._context(properties))
        elif head.text not in _known():
            fail(self.text, head, f"difflab does not read FPCore's '{head.text}'")
        else:
            self._push(self._apply, expression, head.text, len(operands))
            for operand in reversed(operands):
                self._push(self._expression, operand)

    def _enter(self, precision: str) -> None:
        """Begin or end a context."""
        self.precision = precision

    def _bindings(self, expression: Listed, operands: Sequence[Expression]) -> Any:
        """Return the names and values of a let, and its body."""
        if len(operands) != 2 or not isinstance(operands[0], Listed):
            fail(self.text, expression, "expected (let ([name value] …) body)")
        pairs = []
        for each in operands[0].items:
            if not isinstance(each, Listed) or len(each.items) != 2:
                fail(self.text, each, "expected [name value]")
            name, value = each.items
            if not isinstance(name, Atom):
                fail(self.text, name, "expected a name")
            pairs.append((name.text, value))
        return pairs, operands[1]

    def _let(self, expression: Listed, operands: Sequence[Expression]) -> None:
        """Compute all values in the scope around, then the body in the scope of the names."""
        pairs, body = self._bindings(expression, operands)
        self._push(self._body, [name for name, _ in pairs], body)
        for _, value in reversed(pairs):
            self._push(self._expression, value)

    def _let_in_turn(self, expression: Listed, operands: Sequence[Expression]) -> None:
        """Compute each value in the scope of the names before it."""
        pairs, body = self._bindings(expression, operands)
        self._push(self._restore, {name: self.scope.get(name) for name, _ in pairs})
        self._push(self._expression, body)
        for name, value in reversed(pairs):
            self._push(self._bind, [name])
            self._push(self._expression, value)

    def _body(self, names: list[str], body: Expression) -> None:
        self._push(self._restore, {name: self.scope.get(name) for name in names})
        self._push(self._expression, body)
        self._bind(names)

    def _bind(self, names: list[str]) -> None:
        for name in reversed(names):
            node = self.scope[name] = self.values.pop()
            self.builder.labels.setdefault(node.id, cleaned_name(name))

    def _restore(self, before: Mapping[str, Node | None]) -> None:
        for name, node in before.items():
            if node is None:
                self.scope.pop(name, None)
            else:
                self.scope[name] = node

    # --- values ---------------------------------------------------------------------------

    def _atom(self, atom: Atom) -> Node:
        """Return a variable, or a number rounded to the precision of the context."""
        text = atom.text
        if text in self.scope:
            return self.scope[text]
        if text in ("TRUE", "FALSE"):
            return Node(self.builder, rows.not_equal(self._constant(int(text == "TRUE")), 0).id)
        rounded: Node = CONTEXTS[self.precision](self._number(atom))
        return rounded

    def _number(self, atom: Atom) -> Node:
        text = atom.text
        if text in ("PI", "E"):
            value = {"PI": math.pi, "E": math.e}[text]
            return Node(self.builder, self.builder.constant(value, text.lower()))
        if text in _CONSTANTS:
            return self._constant(_CONSTANTS[text])
        try:
            if match := _FRACTION.fullmatch(text):
                above, below = int(match[1]), int(match[2])
                if below == 0 or max(abs(above), below) > EXACT:
                    return self._constant(float(Fraction(above, below)))
                quotient = rows.divide(self._constant(above), self._constant(below))
                return Node(self.builder, quotient.id)
            if _HEXADECIMAL.fullmatch(text):
                return self._constant(float.fromhex(text))
            if _DECIMAL.fullmatch(text):
                whole = text.lstrip("+-").isdigit() and len(text) < 16
                return self._constant(int(text) if whole else float(text))
        except (OverflowError, ZeroDivisionError, ValueError):
            fail(self.text, atom, f"{text} is no number of float64")
        return fail(self.text, atom, f"{text!r} is neither an argument nor a number nor a constant")

    def _constant(self, value: float) -> Node:
        return Node(self.builder, self.builder.constant(value))

    def _apply(self, expression: Listed, name: str, count: int) -> None:
        """Replace the last values by an operator of them, rounded to the precision."""
        values = self.values[len(self.values) - count :]
        del self.values[len(self.values) - count :]
        value = _applied(name, values, self.precision)
        if value is None:
            fail(self.text, expression, f"'{name}' does not take {count} operands")
        exact = name in _EXACT or name in _RELATIONS
        self.values.append(value if exact else CONTEXTS[self.precision](value))


_SEVERAL: Mapping[str, Callable[..., Any]] = {
    "+": rows.add,
    "*": rows.multiply,
    "-": rows.subtract,
    "/": rows.divide,
    "and": rows.logical_and,
    "or": rows.logical_or,
}
_TRUTHS = frozenset({"and", "or", "not", "!=", "isnan", "isinf", "isfinite", "signbit"})
_EXACT = _TRUTHS | {"if", "fma"}
"""The operators whose result needs no rounding, besides relations."""


def _applied(name: str, values: Sequence[Node], precision: str) -> Any:
    """Return an operator of values; None if there is none of that number.

    What takes several operands takes them from the left, and rounds each result.
    """
    count = len(values)
    if name in _RELATIONS and count > 1:
        compared = [_RELATIONS[name](a, b) for a, b in pairwise(values)]
        return reduce(rows.logical_and, compared)
    if name == "!=" and count > 1:
        return reduce(rows.logical_and, (rows.not_equal(*pair) for pair in combinations(values, 2)))
    if name in _SEVERAL and count > 1:
        rounded = CONTEXTS["binary64" if name in _TRUTHS else precision]
        return reduce(lambda a, b: rounded(_SEVERAL[name](a, b)), values)
    if name == "fma" and count == 3:
        x, y, z = values
        return fused(x, y, z, precision)
    compute = _operators().get((name, count))
    return None if compute is None else compute(*values)


@cache
def _known() -> frozenset[str]:
    return frozenset({"fma", *_RELATIONS, *_SEVERAL, *(name for name, _ in _operators())})


def _half_away(x: Any) -> Any:
    """Round to an integer, halves away from zero; each step is exact."""
    whole = np.trunc(x)
    return whole + np.trunc(2.0 * (x - whole))


def _remainder(x: Any, y: Any) -> Any:
    """Return the IEEE remainder of x by y, with exact steps."""
    size = rows.absolute(y)
    rest = np.fmod(rows.absolute(x), 2 * size)
    once = rest - size
    near = rows.where(2 * once >= size, once - size, once)
    return np.copysign(1.0, x) * rows.where(2 * rest > size, near, rest)


@cache
def _operators() -> Mapping[tuple[str, int], Callable[..., Any]]:
    """Return the operators, by name and number of operands: most are functions of C99."""
    operators: dict[tuple[str, int], Callable[..., Any]] = {
        (c_name(row), row.arity or 0): row for row in TABLE.values() if c_name(row) in C99.values()
    }
    return operators | {
        ("-", 1): rows.negative,
        ("not", 1): rows.logical_not,
        ("!=", 2): rows.not_equal,
        ("if", 3): rows.where,
        ("fmax", 2): np.fmax,
        ("fmin", 2): np.fmin,
        ("fmod", 2): np.fmod,
        ("copysign", 2): np.copysign,
        ("remainder", 2): _remainder,
        ("fdim", 2): lambda x, y: rows.where(x > y, x - y, rows.where(x <= y, 0.0, x + y)),
        ("trunc", 1): np.trunc,
        ("round", 1): _half_away,
        ("nearbyint", 1): TABLE["round"],
        ("isnan", 1): np.isnan,
        ("isinf", 1): np.isinf,
        ("isfinite", 1): np.isfinite,
        ("signbit", 1): np.signbit,
        ("cast", 1): lambda x: x,
    }
