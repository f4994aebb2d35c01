"""Straight-line programs of tensors: drawn as bytes, decoded while they run, written as Python.

A program is a row of actions on numbered values. Which actions are possible depends on the shapes
at hand, so the bytes are read during a first run on difflab; the actions found are then run again,
on difflab and on PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.differential import network
from tests.differential.factored import FACTORED

Action = tuple[Any, ...]
"""What is done, and with what: value numbers first, then what is known beforehand."""

SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (3,), (2, 3), (1,), (2,), (3, 1), (1, 3), (2, 2), (1, 1), (2, 1, 3), (1, 2, 2), (4,)),
)
NUMBERS: tuple[float, ...] = (2.0, -1.5, 0.0, 1.0, 0.5, 3, 0, -1, 2)
EXPONENTS: tuple[float, ...] = (2, 3, 1, 0, 0.5, -1, 2.0, 1.5, 0.0)
UNARY = (
    *("sin", "tanh", "exp", "cos", "square", "negative", "absolute", "sqrt", "log", "arctan"),
    *("sign", "relu", "sigmoid", "reciprocal", "expm1", "log1p", "softmax", "cumsum", "flip"),
    *("roll", "triangle", "spread", "cumprod", "sort"),
    *network.NAMES,
)
BINARY = ("multiply", "add", "subtract", "divide", "maximum", "minimum", "hypot", "power")
REDUCED = ("sum", "mean", "prod", "max", "min", "logsumexp", "norm")
CHANGES = ("multiply", "add", "subtract", "divide")
SELECTING = frozenset(
    {
        *("where", "maximum", "minimum", "max", "min", "relu", "absolute"),
        *("chosen", "dropped", "triangle"),
    }
    | {"assign", "assign_from"}
)
"""Actions whose untaken branches contribute exactly nothing here, and 0 times infinity there."""
EDGES = {"log": 0.0, "log1p": -1.0, "sign": -np.inf, "absolute": -np.inf, "relu": -np.inf}
"""Below them, or at nan, PyTorch's slopes or values are numbers, and here they are nan or 0."""
CHANGING = ("change", "change_by", "assign", "assign_from", "update")
"""Actions in place: a program with one may be refused, where a kept value was changed."""
LARGE = 1e4
"""Where values grow above it, `arctan` comes next: sines of large numbers have no digits."""


def weights(shape: tuple[int, ...]) -> Any:
    """Return numbers of both signs, none near 0, by which gradients are added up."""
    numbers = np.cos(2.3 * np.arange(int(np.prod(shape)), dtype=float)).reshape(shape)
    return np.where(numbers < 0, numbers - 0.3, numbers + 0.3)


class Bytes:
    """Reads choices one by one; when there are no more, every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self.rest: Iterator[int] = iter(data)

    def below(self, bound: int) -> int:
        """Return a number from 0 to ``bound - 1``."""
        return next(self.rest, 0) % bound

    def of(self, options: Any) -> Any:
        """Return one of several options."""
        return options[self.below(len(options))]


class Decoder:
    """Chooses the next action, given the values that there are."""

    def __init__(self, data: bytes) -> None:
        self.bytes = Bytes(data)
        self.twice = self.bytes.below(3) == 1
        self.leaves = [self.leaf() for _ in range(1 + self.bytes.below(3))]

    def leaf(self) -> np.ndarray[Any, Any]:
        """Return the numbers of a leaf, all different; one in eight holds a zero."""
        shape = self.bytes.of(SHAPES)
        start = self.bytes.below(256)
        size = int(np.prod(shape))
        numbers = np.sin(np.arange(1, size + 1) * 1.7 + start * 0.37) * 1.9 + 0.1
        if start % 8 == 7:
            numbers[0] = 0.0
        return numbers.reshape(shape)

    def actions(self, values: list[Any]) -> Iterator[Action]:
        """Yield actions, each of which is carried out on `values` before the next is asked for."""
        kinds = [getattr(self, name) for name in KINDS]
        for _ in range(MOST):
            kind = self.bytes.below(256)
            if kind == 0:
                continue
            action = kinds[WEIGHTS[kind % len(WEIGHTS)]](values)
            if action is None:
                continue
            yield action
            if np.any(np.abs(values[-1].numbers) > LARGE):
                yield "unary", len(values) - 1, "arctan"

    def value(self, values: list[Any]) -> int:
        """Return a value's number; the last one is drawn most often."""
        back = self.bytes.below(2 * len(values))
        return len(values) - 1 - (back if back < len(values) else 0)

    def unary(self, values: list[Any]) -> Action:
        a, name = self.value(values), self.bytes.of(UNARY)
        lowest = EDGES.get(name)
        if lowest is not None and not np.all(values[a].numbers >= lowest):
            name = "exp"
        if name == "softmax" and not np.all(np.isfinite(values[a].numbers)):
            name = "cumsum"
        if name in ("tanh", "sigmoid") and np.any(np.abs(values[a].numbers) > 4):
            name = "arctan"  # PyTorch's slopes there have lost their digits
        return "unary", a, name

    def binary(self, values: list[Any]) -> Action:
        name, a, b = self.bytes.of(BINARY), self.value(values), self.value(values)
        x, y = values[a].numbers, values[b].numbers
        if not _broadcast(x.shape, y.shape):
            return "reduce", a, "sum", None, False
        tied = not np.all(x != y) or bool(np.isnan(x + y).any())
        if name in ("maximum", "minimum") and tied:
            name = "add"  # which argument has the derivative of a tie is a convention
        if name in ("power", "hypot") and np.any(x == 0) | np.any(y == 0):
            name = "multiply"  # so are slopes of 0 ** p and at the tip of a cone
        return "binary", a, b, name

    def number(self, values: list[Any]) -> Action:
        name = self.bytes.of(("multiply", "add", "rsubtract", "divide", "rdivide", "subtract"))
        a, number = self.value(values), self.bytes.of(NUMBERS)
        return "number", a, name, number or (0.0 if "divide" not in name else 1.5)

    def array(self, values: list[Any]) -> Action:
        a, shape = self.value(values), self.bytes.of(SHAPES)
        if not _broadcast(values[a].numbers.shape, shape):
            shape = values[a].numbers.shape
        numbers = np.cos(np.arange(int(np.prod(shape))) * 2.3 + self.bytes.below(16))
        if self.bytes.below(4) == 0:
            numbers[-1] = 0.0
        return "array", a, self.bytes.of(("multiply", "add", "divide")), numbers.reshape(shape)

    def power(self, values: list[Any]) -> Action:
        return "power", self.value(values), self.bytes.of(EXPONENTS)

    def reduce(self, values: list[Any]) -> Action:
        name, a = self.bytes.of(REDUCED), self.value(values)
        numbers = values[a].numbers
        if name in ("max", "min") and np.unique(numbers).size < numbers.size:
            name = "sum"
        if name == "norm" and not np.all(np.abs(numbers) > 0):
            name = "mean"
        if name == "prod" and numbers.size > LARGEST_MULTIPLIED:
            name = "sum"
        axes = (None, *range(-numbers.ndim, numbers.ndim), tuple(range(numbers.ndim)))
        return "reduce", a, name, self.bytes.of(axes), bool(self.bytes.below(2))

    def move(self, values: list[Any]) -> Action:
        a = self.value(values)
        shape = values[a].numbers.shape
        wide = (self.bytes.below(2) + 1, *shape)
        moves = (
            ("transpose",),
            ("reshape", shape),
            ("reshape", (-1,)),
            ("reshape", shape[::-1]),
            ("squeeze",),
            ("broadcast_to", shape),
            ("broadcast_to", wide),
            ("positive",),
            ("reshape", (1, *shape)),
        )
        return "move", a, *self.bytes.of(moves)

    def index(self, values: list[Any]) -> Action | None:
        a = self.value(values)
        key = self.key(values[a].numbers.shape, basic=False)
        return None if key is None else ("index", a, key)

    def key(self, shape: tuple[int, ...], *, basic: bool) -> Any:
        """Return a key for a shape; a `basic` one names no place twice."""
        kind = self.bytes.below(8)
        if not shape:
            return (Ellipsis, None)[self.bytes.below(2)] if not basic else Ellipsis
        size = shape[0]
        if kind == 0:
            return self.bytes.below(size) - self.bytes.below(2) * size
        if kind == 1:
            return slice(self.bytes.below(size), None)
        if kind == 2:
            return (Ellipsis, slice(None, None, (1, 2, -1, -2)[self.bytes.below(4)]))
        if kind == 3:
            return tuple(self.bytes.below(n) for n in shape)
        if kind == 4 and not basic:
            return [self.bytes.below(size) for _ in range(1 + self.bytes.below(3))]
        if kind == 5:
            mask = self.mask(shape[: 1 + self.bytes.below(len(shape))])
            return mask if mask.any() else 0
        if kind == 6 and not basic:
            return (None, Ellipsis, self.bytes.below(shape[-1]))
        return (slice(None), *[self.bytes.below(n) for n in shape[1:]])

    def mask(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return truth values."""
        bits = self.bytes.below(256)
        flat = [bool(bits >> (place % 8) & 1) for place in range(int(np.prod(shape)))]
        return np.array(flat, dtype=bool).reshape(shape)

    def matmul(self, values: list[Any]) -> Action:
        a, b = self.value(values), self.value(values)
        x, y = values[a].numbers, values[b].numbers
        if x.ndim and y.ndim and x.shape[-1] == y.shape[max(y.ndim - 2, 0)] and x.ndim + y.ndim < 5:
            return "binary", a, b, "matmul"
        if x.size > LARGEST_SQUARED:
            return "reduce", a, "sum", None, False
        return "gram", a

    def factored(self, values: list[Any]) -> Action:
        """A function of the factors of a matrix made of a few numbers of a value."""
        a = self.value(values)
        size = (1, 2, 3)[self.bytes.below(3)]
        if not np.all(np.isfinite(values[a].numbers)):
            return "unary", a, "arctan"
        return "factored", a, self.bytes.of(tuple(FACTORED)), size

    def where(self, values: list[Any]) -> Action:
        a, b = self.value(values), self.value(values)
        common = _broadcast(values[a].numbers.shape, values[b].numbers.shape)
        if common is None:
            b = a
            common = values[a].numbers.shape
        cut = self.bytes.below(len(common) + 1)
        shape = [1 if self.bytes.below(4) == 0 else n for n in common[cut:]]
        mask = self.mask(tuple(shape))
        return "where", a, b, mask[None] if self.bytes.below(5) == 4 else mask

    def chosen(self, values: list[Any]) -> Action:
        return "chosen", self.value(values), self.bytes.of((0.25, -0.75, 1.3))

    def join(self, values: list[Any]) -> Action:
        a, b = self.value(values), self.value(values)
        x, y = values[a].numbers, values[b].numbers
        return "join", a, b if x.shape == y.shape else a, "stack" if not x.ndim else "concatenate"

    def change(self, values: list[Any]) -> Action | None:
        """Change a value in place by a number or another value."""
        a = self.value(values)
        if not values[a].changeable:
            return None
        name, b = self.bytes.of(CHANGES), self.value(values)
        shape = values[a].numbers.shape
        if self.bytes.below(2) or _broadcast(shape, values[b].numbers.shape) != shape:
            return "change", a, name, self.bytes.of(NUMBERS) or 2.0
        return "change_by", a, b, name

    def assign(self, values: list[Any]) -> Action | None:
        """Assign a number or a value to a part of a value."""
        a = self.value(values)
        if not values[a].changeable:
            return None
        key, b = self.key(values[a].numbers.shape, basic=True), self.value(values)
        part = values[a].numbers[key].shape
        if self.bytes.below(2) or _broadcast(part, values[b].numbers.shape) != part:
            return "assign", a, key, self.bytes.of(NUMBERS)
        return "assign_from", a, b, key

    def update(self, values: list[Any]) -> Action | None:
        """Change a leaf in place, outside of the tape; seldom, for what needs it is refused."""
        if self.bytes.below(3):
            return None
        leaf, factor = self.bytes.below(len(self.leaves)), self.bytes.of((0.5, 1.25, -1.0))
        return None if values[leaf].viewed else ("update", leaf, factor)

    def hook(self, values: list[Any]) -> Action:
        return "hook", self.value(values), self.bytes.of(("watch", "double"))

    def retain(self, values: list[Any]) -> Action:
        return "retain", self.value(values)

    def backward(self, values: list[Any]) -> Action:
        return "backward", self.value(values)

    def detach(self, values: list[Any]) -> Action:
        return "detach", self.value(values)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the common shape, if there is one."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


MOST = 9
"""Actions of a program at most."""
LARGEST_SQUARED = 100
"""Numbers of a value of which all products of two are asked for: four times would fill memory."""
LARGEST_MULTIPLIED = 64
"""Numbers of a value of which a product is asked for: one of 324 numbers overflows, where 0 times
infinity is nan or 0 by the order of the factors. So many times `LARGE` is a number."""
SHARES = {
    "unary": 5,
    "binary": 5,
    "number": 3,
    "array": 2,
    "power": 2,
    "reduce": 4,
    "move": 4,
    "index": 4,
    "matmul": 2,
    "factored": 1,
    "where": 3,
    "chosen": 1,
    "join": 1,
    "change": 2,
    "assign": 2,
    "update": 1,
    "hook": 2,
    "retain": 1,
    "backward": 1,
    "detach": 1,
}
"""How often each kind of action is drawn."""
KINDS = tuple(SHARES)
WEIGHTS = [place for place, kind in enumerate(KINDS) for _ in range(SHARES[kind])]


def written(action: Action, number: int) -> str:
    """Return an action as a line of Python; the value that it makes is ``v{number}``."""
    kind, a, *rest = action
    v = f"v{a}"
    text = {
        "unary": "v{n} = {0}({v})",
        "binary": "v{n} = {1}({v}, v{0})",
        "number": "v{n} = {0}({v}, {1!r})",
        "array": "v{n} = {0}({v}, np.array({1}))",
        "power": "v{n} = {v} ** {0!r}",
        "reduce": "v{n} = {0}({v}, axis={1}, keepdims={2})",
        "move": "v{n} = {v}: {0}",
        "index": "v{n} = {v}[{0!r}]",
        "gram": "v{n} = {v} @ {v}.T (flat)",
        "factored": "v{n} = {0} of a matrix of {1} rows of {v}",
        "where": "v{n} = where(np.array({1}), {v}, v{0})",
        "chosen": "v{n} = where({v} > {0}, {v}, 0.5 * {v} ** 2)",
        "join": "v{n} = {1}([{v}, v{0}])",
        "change": "{v} {0}= {1!r}",
        "change_by": "{v} {1}= v{0}",
        "assign": "{v}[{0!r}] = {1!r}",
        "assign_from": "{v}[{1!r}] = v{0}",
        "update": "with no_grad: {v} *= {0}",
        "hook": "{v}.register_hook({0})",
        "retain": "{v}.retain_grad()",
        "backward": "sum({v}).backward(retain_graph=True)",
        "detach": "v{n} = {v}.detach()",
    }[kind]
    plain = [entry.tolist() if isinstance(entry, np.ndarray) else entry for entry in rest]
    if kind == "move" and len(plain) > 1:
        plain[0] = f"{plain[0]}{plain[1]}"
    return text.format(*plain, v=v, n=number)
