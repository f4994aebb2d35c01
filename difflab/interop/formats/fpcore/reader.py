"""FPCore to functions, with an explicit stack of what is to be computed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from itertools import pairwise
from typing import Any

from difflab import primitives as rows
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.names import FreshNames, output_names
from difflab.graph.node import Node
from difflab.interop.formats.fpcore.lists import Atom, Expression, Listed, fail, read
from difflab.interop.formats.inputs import cleaned_name
from difflab.primitives import TABLE

__all__ = ["from_fpcore"]

_CALL = re.compile(r"(\w+)\(\{0\}(?:, \{1\})?\)")
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

    Operators, ``if``, ``let`` and ``let*`` are read; loops and tensors are not. The
    preconditions and the other properties are left out, and everything is computed in float64.

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
        It is no FPCore, or holds something that is not read; the error has the place.
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
    found = read(text)
    if not found:
        raise InputError("the text holds no FPCore", hint="(FPCore (x) (sqrt x))")
    if len(found) > 1:
        fail(text, found[1], "more than one FPCore", "read them one by one")
    return _Reader(text).function(found[0])


Work = tuple[Callable[..., None], tuple[Any, ...]]


class _Reader:
    """Computes expressions: a stack of work, and one of the values that it leaves."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.builder = Builder()
        self.scope: dict[str, Node] = {}
        self.work: list[Work] = []
        self.values: list[Node] = []

    def function(self, core: Expression) -> Function:
        """Return the function of a whole FPCore."""
        items = core.items if isinstance(core, Listed) else []
        if not items or not isinstance(items[0], Atom) or items[0].text != "FPCore":
            fail(self.text, core, "expected (FPCore (arguments…) … body)")
        place = 2 if len(items) > 2 and isinstance(items[1], Atom) else 1
        arguments = items[place] if len(items) > place else None
        if not isinstance(arguments, Listed):
            fail(self.text, core, "the arguments in brackets are missing")
        inputs = self._arguments(arguments)
        body = self._without_properties(core, items[place + 1 :])
        self._push(self._expression, body)
        while self.work:
            step, given = self.work.pop()
            step(*given)
        taken = [*self.builder.names.values(), *self.builder.labels.values()]
        names = output_names([None], taken)
        return Function.build(self.builder, inputs, [self.values[0].id], names)

    def _arguments(self, arguments: Listed) -> list[int]:
        names = FreshNames()
        inputs = []
        for argument in arguments.items:
            # (! :precision binary64 x) is an argument with properties.
            symbol = argument.items[-1] if isinstance(argument, Listed) else argument
            if not isinstance(symbol, Atom) or (
                isinstance(argument, Listed)
                and (not isinstance(argument.items[0], Atom) or argument.items[0].text != "!")
            ):
                fail(self.text, argument, "difflab reads arguments that are numbers")
            node = self.builder.input(names.fresh(cleaned_name(symbol.text)))
            inputs.append(node)
            self.scope[symbol.text] = Node(self.builder, node)
        return inputs

    def _without_properties(self, at: Expression, items: Sequence[Expression]) -> Expression:
        """Return what follows pairs of a property and its value."""
        rest = list(items)
        while len(rest) > 1 and isinstance(rest[0], Atom) and rest[0].text.startswith(":"):
            del rest[:2]
        if len(rest) != 1:
            fail(self.text, at, "expected one expression behind the properties")
        return rest[0]

    # --- steps ----------------------------------------------------------------------------

    def _push(self, step: Callable[..., None], *given: Any) -> None:
        self.work.append((step, given))

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
            self._push(self._expression, self._without_properties(expression, operands))
        elif head.text not in _known():
            fail(self.text, head, f"difflab does not read FPCore's '{head.text}'")
        else:
            self._push(self._apply, expression, head.text, len(operands))
            for operand in reversed(operands):
                self._push(self._expression, operand)

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
        text = atom.text
        if text in self.scope:
            return self.scope[text]
        if text in ("PI", "E"):
            value = {"PI": math.pi, "E": math.e}[text]
            return Node(self.builder, self.builder.constant(value, text.lower()))
        if text in _CONSTANTS:
            return self._constant(_CONSTANTS[text])
        if text in ("TRUE", "FALSE"):
            return Node(self.builder, rows.not_equal(self._constant(int(text == "TRUE")), 0).id)
        if match := _FRACTION.fullmatch(text):
            quotient = rows.divide(self._constant(int(match[1])), self._constant(int(match[2])))
            return Node(self.builder, quotient.id)
        if _HEXADECIMAL.fullmatch(text):
            return self._constant(float.fromhex(text))
        if not _DECIMAL.fullmatch(text):
            fail(self.text, atom, f"{text!r} is neither an argument nor a number nor a constant")
        whole = text.lstrip("+-").isdigit() and len(text) < 16
        return self._constant(int(text) if whole else float(text))

    def _constant(self, value: float) -> Node:
        return Node(self.builder, self.builder.constant(value))

    def _apply(self, expression: Listed, name: str, count: int) -> None:
        """Replace the last values by an operator of them."""
        values = self.values[len(self.values) - count :]
        del self.values[len(self.values) - count :]
        found = _applied(name, values)
        if found is None:
            fail(self.text, expression, f"'{name}' does not take {count} operands")
        self.values.append(found)


_SEVERAL: Mapping[str, Callable[..., Any]] = {
    "+": rows.add,
    "*": rows.multiply,
    "and": rows.logical_and,
    "or": rows.logical_or,
}


def _applied(name: str, values: Sequence[Node]) -> Any:
    """Return an operator of values; None if there is none of that number."""
    count = len(values)
    if name in _RELATIONS and count > 1:
        compared = [_RELATIONS[name](a, b) for a, b in pairwise(values)]
        return reduce(rows.logical_and, compared)
    if name in _SEVERAL and count > 1:
        return reduce(_SEVERAL[name], values)
    compute = _operators().get((name, count))
    return None if compute is None else compute(*values)


@cache
def _known() -> frozenset[str]:
    return frozenset({*_RELATIONS, *_SEVERAL, *(name for name, _ in _operators())})


@cache
def _operators() -> Mapping[tuple[str, int], Callable[..., Any]]:
    """Return the operators, by name and number of operands: most are functions of C99."""
    found: dict[tuple[str, int], Callable[..., Any]] = {}
    for row in TABLE.values():
        match = _CALL.fullmatch(row.c)
        if match and row.arity:
            found[match[1], row.arity] = row
    return found | {
        ("-", 1): rows.negative,
        ("-", 2): rows.subtract,
        ("/", 2): rows.divide,
        ("not", 1): rows.logical_not,
        ("!=", 2): rows.not_equal,
        ("if", 3): rows.where,
        ("fmax", 2): rows.maximum,
        ("fmin", 2): rows.minimum,
        ("fdim", 2): lambda x, y: rows.where(x > y, x - y, 0.0),
        ("fma", 3): lambda x, y, z: x * y + z,
        ("trunc", 1): lambda x: rows.where(x < 0, rows.ceil(x), rows.floor(x)),
        ("nearbyint", 1): TABLE["round"],
        ("cast", 1): lambda x: x,
    }
