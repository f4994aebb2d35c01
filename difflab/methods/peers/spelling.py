"""Graphs in the functions of another library: its array module, and straight-line code over it.

Primitives compute with NumPy's function names on an array module. `RenamedModule` provides these
names for a library that names some functions differently; `written` converts a graph to the
Python code that one would write by hand for that library, so that timings measure the library
and not the traversal of the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.ir import CONSTANT, FIRST_ROW, Number
from difflab.primitives.movement import indices

if TYPE_CHECKING:
    from difflab.graph.function import Function


OPERATORS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "power": "{} ** {}",
    "negative": "-{}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "greater": "{} > {}",
    "greater_equal": "{} >= {}",
    "equal": "{} == {}",
    "not_equal": "{} != {}",
}
"""The primitives that are Python operators in almost every library."""
_CONSTANT = re.compile(r"(?:torch\.tensor\()?([-+]?\d[\d.e+-]*)(?:, .*\))?")
"""A number in printed code, which may be lifted to a tensor."""
LARGEST = 2**31
"""Integers up to this remain integers, so that ``x**2`` is a product and not a power."""


REAL: Mapping[str, Any] = {
    "inf": float("inf"),
    "iscomplexobj": lambda _: False,
    "nan": float("nan"),
    "real": lambda x: x,
    "result_type": lambda *kinds: kinds[0],
}
"""NumPy's names of constants and types, for a library whose values here are real."""


class RenamedModule(ModuleType):
    """A library under NumPy's names: `names` are replaced, all others are the library's own.

    Of inverse functions these are the ones of NumPy or of C: ``arctan`` or ``atan``.

    Parameters
    ----------
    title : str
        The name of the library, for error messages.
    library : module
        The module with the other names.
    names : mapping
        NumPy names and the library's objects for them.

    Examples
    --------
    >>> import math
    >>> xp = RenamedModule("math", math, {"abs": math.fabs})
    >>> xp.abs(-1.0), xp.sqrt(4.0), xp.arctan2 is math.atan2
    (1.0, 2.0, True)
    >>> xp.rint(2.5)
    Traceback (most recent call last):
        ...
    difflab.errors.UnsupportedError: math has no function 'rint'
    """

    def __init__(self, title: str, library: Any, names: Mapping[str, Any]) -> None:
        super().__init__(title)
        self.__dict__.update(names)
        self._library = library

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        for known in (name, name.replace("arc", "a", 1)):
            if hasattr(self._library, known):
                return getattr(self._library, known)
        raise UnsupportedError(f"{self.__name__} has no function '{name}'")


class LibrarySpelling:
    """Operations and constants of an array library: an interpreter of graphs.

    Parameters
    ----------
    xp : module
        The library under NumPy's names.
    rows : mapping, optional
        Replacements of primitives, by name: those that are one function of the library, or
        whose NumPy implementation does not work with it.
    lifted : callable, optional
        Converts a number to a value that the library's functions accept.
    operators : mapping, optional
        The primitives that are written as Python operators, and how.
    """

    def __init__(
        self,
        xp: ModuleType,
        rows: Mapping[str, Callable[..., Any]] | None = None,
        lifted: Callable[[float], Any] = np.float64,
        operators: Mapping[str, str] = OPERATORS,
    ) -> None:
        self.xp = xp
        self.rows = rows or {}
        self.lifted = lifted
        self.operators = operators

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the library's function for a primitive."""
        return self.rows.get(primitive.name) or primitive.computer(self.xp)

    def constant(self, value: Number, name: str | None) -> Any:
        """Return a number as in hand-written code: an int if it is an integer, else a float."""
        whole = isinstance(value, int) and abs(value) <= LARGEST
        return value if whole else float(value)


def written(function: Function, spelling: LibrarySpelling) -> Callable[..., tuple[Any, ...]]:
    """Return straight-line Python code that maps a value per input to a value per output.

    Examples
    --------
    >>> import difflab as dl
    >>> written(dl.parse("x*y + 2"), LibrarySpelling(np))(3.0, 4.0)
    (14.0,)
    """
    text = _StraightLineSource(function, spelling)
    results = "".join([f"{text.array(node)}, " for node in function.outputs])
    heading = f"def run({', '.join([text.plain[node] for node in function.input_nodes])}):"
    source = "\n    ".join([heading, *text.lines, f"return ({results})"])
    exec(source, text.scope)  # noqa: S102 - it contains only generated names and Python operators
    run: Callable[..., tuple[Any, ...]] = text.scope["run"]
    return run


class _StraightLineSource:
    """The lines of a function, and the values of the names in them."""

    def __init__(self, function: Function, spelling: LibrarySpelling) -> None:
        self.spelling = spelling
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {}
        self.plain: dict[int, str] = {}
        self.constants: set[int] = set()
        graph = function.graph
        for node, (opcode, args) in enumerate(graph.rows()):
            if opcode == CONSTANT:
                self._constant(node, *graph.constants[node])
            elif opcode >= FIRST_ROW:
                self._row(node, graph.primitives[opcode - FIRST_ROW], args, graph.params(node))
            else:
                self.plain[node] = f"x{node}"

    def array(self, node: int) -> str:
        """Return the name of `node` as a value of the library, not a Python number."""
        return f"k{node}" if node in self.constants else self.plain[node]

    def _constant(self, node: int, number: Number, name: str | None) -> None:
        value = self.spelling.constant(number, name)
        self.constants.add(node)
        self.plain[node] = f"c{node}"
        self.scope |= {f"c{node}": value, f"k{node}": self.spelling.lifted(float(value))}

    def _row(
        self, node: int, row: Primitive, args: Sequence[int], params: Mapping[str, Any]
    ) -> None:
        self.plain[node] = f"v{node}"
        if not args:
            self.scope[f"v{node}"] = self.spelling.operation(row)(**params)
            return
        # Only operators accept Python scalars, and only with an array as the other operand.
        operator = self.spelling.operators.get(row.name)
        if operator is not None and not self.constants.issuperset(args):
            self.lines.append(f"v{node} = {operator.format(*[self.plain[arg] for arg in args])}")
            return
        name = f"f{node if params else row.name}"
        if name not in self.scope:
            operation = self.spelling.operation(row)
            self.scope[name] = partial(operation, **params) if params else operation
        self.lines.append(f"v{node} = {name}({', '.join([self.array(arg) for arg in args])})")


def of_whole_order(
    title: str, name: str, functions: Mapping[int, Callable[[Any], Any]]
) -> Callable[[Any, Any], Any]:
    """Return a function ``(order, x)`` of the library's functions of x, one for each order.

    Examples
    --------
    >>> import math
    >>> of_whole_order("math", "sinh, cosh", {0: math.sinh, 1: math.cosh})(1.0, 0.0)
    1.0
    >>> of_whole_order("math", "sinh, cosh", {0: math.sinh})(0.5, 0.0)
    Traceback (most recent call last):
        ...
    difflab.errors.UnsupportedError: math has sinh, cosh of the orders 0 only, not of 0.5
    """

    def run(order: Any, x: Any) -> Any:
        number = known_order(order)
        if number is None or number not in functions:
            orders = ", ".join(map(str, functions))
            given = "an input" if number is None else f"{number:g}"
            raise UnsupportedError(
                f"{title} has {name} of the orders {orders} only, not of {given}"
            )
        return functions[int(number)](x)

    return run


def known_order(order: Any) -> float | None:
    """Return the number that an operand is, as a value or as printed code; None for an input."""
    text = getattr(order, "text", None)
    if not isinstance(text, str):
        return None if getattr(order, "requires_grad", False) else float(order)
    match = _CONSTANT.fullmatch(text)
    return float(match[1]) if match else None


def take_by_index(x: Any, *, places: Any, axis: int, rank: int) -> Any:
    """Return elements along an axis, by indexing, which every library differentiates."""
    return x[(..., indices(places), *[slice(None)] * (-axis - 1))]


def diagonal_matrix(x: Any) -> Any:
    """Return the matrix with `x` on its diagonal, without writing into an array."""
    return x[..., None] * np.eye(x.shape[-1])


def norm_over(xp: Any) -> Callable[..., Any]:
    """Return the norm in functions of `xp`, whose own is that of vectors or matrices."""

    def norm(x: Any, *, axes: tuple[int, ...], rank: int) -> Any:
        if len(axes) == 1:
            return xp.linalg.norm(x, axis=axes[0])
        return xp.sqrt(xp.sum(x * x, axis=axes))

    return norm
