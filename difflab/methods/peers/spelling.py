"""A graph in another library's words: its array module, and straight-line code over it.

A row of the table computes by names of NumPy's on an array module. `RenamedModule` is such a module for
a library that spells some of them otherwise; `written` turns a graph into the Python that
someone would write by hand for that library, so that what is measured there is the library and
not the walk through the graph.
"""

from __future__ import annotations

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

__all__ = [
    "OPERATORS",
    "LibrarySpelling",
    "RenamedModule",
    "diagonal_matrix",
    "take_by_index",
    "written",
]

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
"""The rows that every library takes as Python's operators."""
LARGEST = 2**31
"""Whole numbers up to this stay whole, so that ``x**2`` is a product and not a power."""


class RenamedModule(ModuleType):
    """A library under NumPy's names: those that differ are given, the others are its own.

    Parameters
    ----------
    title : str
        The library, for the message about a name that it lacks.
    library : module
        Where the other names are.
    names : mapping
        What a name of NumPy's is there.

    Examples
    --------
    >>> import math
    >>> xp = RenamedModule("math", math, {"arcsin": math.asin})
    >>> xp.arcsin(1.0) == math.pi / 2, xp.sqrt(4.0)
    (True, 2.0)
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
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise UnsupportedError(f"{self.__name__} has no function '{name}'") from None


class LibrarySpelling:
    """What rows and numbers are in a library of arrays: an interpreter of graphs.

    Parameters
    ----------
    xp : module
        The library under NumPy's names.
    rows : mapping, optional
        Rows of the table, by name, that the library has as one function, or that NumPy's way
        to compute them would not serve.
    lifted : callable, optional
        Makes a number into what the library's functions take.
    """

    def __init__(
        self,
        xp: ModuleType,
        rows: Mapping[str, Callable[..., Any]] | None = None,
        lifted: Callable[[float], Any] = np.float64,
    ) -> None:
        self.xp = xp
        self.rows = rows or {}
        self.lifted = lifted

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the library's function for a row."""
        return self.rows.get(primitive.name) or primitive.computer(self.xp)

    def constant(self, value: Number, name: str | None) -> Any:
        """Return a number as one writes it: whole where it is whole."""
        whole = isinstance(value, int) and abs(value) <= LARGEST
        return value if whole else float(value)


def written(function: Function, spelling: LibrarySpelling) -> Callable[..., tuple[Any, ...]]:
    """Return straight-line Python for a function: a value per input to a value per output.

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
    exec(source, text.scope)  # noqa: S102 - it holds names made here and Python's operators
    run: Callable[..., tuple[Any, ...]] = text.scope["run"]
    return run


class _StraightLineSource:
    """The lines of a function, and what their names stand for."""

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
        """Return the name of a value that is no number of Python's."""
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
        # Only operators take numbers of Python's, and only beside an array.
        operator = OPERATORS.get(row.name)
        if operator is not None and not self.constants.issuperset(args):
            self.lines.append(f"v{node} = {operator.format(*[self.plain[arg] for arg in args])}")
            return
        name = f"f{node if params else row.name}"
        if name not in self.scope:
            operation = self.spelling.operation(row)
            self.scope[name] = partial(operation, **params) if params else operation
        self.lines.append(f"v{node} = {name}({', '.join([self.array(arg) for arg in args])})")


def take_by_index(x: Any, *, places: Any, axis: int, rank: int) -> Any:
    """Return the entries of an array along an axis, by indexing, which every library derives."""
    return x[(..., indices(places), *[slice(None)] * (-axis - 1))]


def diagonal_matrix(x: Any) -> Any:
    """Return the matrix with `x` on its diagonal, without writing into an array."""
    return x[..., None] * np.eye(x.shape[-1])
