"""Structural operations as text: lists, indexing, and calls for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from difflab.core.primitive import Primitive
from difflab.language.placing import IndexKey
from difflab.language.printers.expressions import ANYTHING, ATOM, Part
from difflab.language.printers.view import PrintedGraph
from difflab.primitives import constant_array, diag, index, pack, reshape, scatter
from difflab.primitives.structure import counted

__all__ = ["ArrayForms", "written_key", "written_number"]


class ArrayForms:
    """Printer of structural nodes and sums, as parts of text.

    Parameters
    ----------
    view : PrintedGraph
        The graph that is printed.
    call : callable
        Formats the name of a called function.
    """

    def __init__(self, view: PrintedGraph, call: Callable[[str], str] = str) -> None:
        self.view = view
        self.graph = view.graph
        self.call = call
        self._cells: dict[int, list[Part] | None] = {}

    def describe(self, node: int) -> list[Part]:
        """Return the parts of `node`, which together are an atom."""
        row = self.view.rows[node]
        children = self.view.children[node]
        params = self.graph.params(node)
        below = self.graph.shape(children[0]) if children else ()
        scalar = self.graph.shape(node) == () and len(children) == 1
        if row is index or (scalar and row is not None and (row.in_order or row is scatter)):
            key = params.get("key", (0,) * len(below))
            return [(children[0], ATOM), written_key(key, below) if key else ""]
        if row is diag and len(below) > 1:
            return self._diagonals(node, below)
        cells = self.cells(node)
        if row is constant_array:
            cells = [written_number(value) for value in np.frombuffer(params["values"]).tolist()]
        if cells == []:  # brackets have one element at least
            return [self.call("broadcast"), f"(0.0, {list(self.graph.shape(node))})"]
        if cells is not None:
            return _nested(cells, self.graph.shape(node))
        if row is pack:
            return self._packed(node)
        assert row is not None
        parts: list[Part] = [self.call(row.name), "("]
        for position, child in enumerate(children):
            key = None if row.located is None else row.located(position, **params)
            at = "" if key is None else f" at {written_key(*key)}"
            parts += [(child, ANYTHING), f"{at}, "]
        parts.append(self._brackets(node, row))
        if not parts[-1]:
            parts[-2] = str(parts[-2]).removesuffix(", ")
        return [*parts, ")"]

    def _diagonals(self, node: int, below: Sequence[int]) -> list[Part]:
        """Return a stack of diagonal matrices; of a matrix, `diag` is its diagonal."""
        # A selection keeps the signs of zeros; parts that are added lose them.
        (child,), size = self.view.children[node], below[-1]
        positions = list(range(size))
        return [
            *(
                self.call("where"),
                "(",
                self.call("reshape"),
                f"({positions}, [{size}, 1]) == {positions}, ",
            ),
            *(self.call("reshape"), "(", (child, ANYTHING), f", {[*below, 1]}), 0)"),
        ]

    def _packed(self, node: int) -> list[Part]:
        """Return flattened and concatenated arrays, in calls that `parse` reads."""
        parts: list[Part] = []
        for child, argument in zip(
            self.view.children[node], self.graph.arguments(node), strict=True
        ):
            shape = self.graph.shape(argument)
            operand: list[Part] = [(child, ANYTHING)]
            if self.graph.shape(child) != shape:  # a broadcast that this notation implies
                operand = [self.call("broadcast"), "(", *operand, f", {list(shape)})"]
            if len(shape) != 1:
                operand = [self.call("reshape"), "(", *operand, f", [{math.prod(shape)}])"]
            parts += [", ", *operand] if parts else operand
        if len(self.view.children[node]) == 1:
            return parts
        return [self.call("concatenate"), "(", *parts, ")"]

    def _brackets(self, node: int, row: Primitive) -> str:
        """Return the static parameters in brackets behind the arguments; empty if implied."""
        params = self.graph.params(node)
        if row.brackets is not None:
            return row.brackets(self.graph.shape(node), **params)
        axes, rank = params.get("axes"), params.get("rank", 0)
        return "" if axes in (None, tuple(range(-rank, 0))) else counted(axes, rank)

    def is_list(self, node: int) -> bool:
        """Whether a node is printed as a list of its elements."""
        return self.view.rows[node] is constant_array or self.cells(node) is not None

    def cells(self, node: int) -> list[Part] | None:
        """Return the elements of a node that lists scalars, in order; None for other nodes."""
        if node not in self._cells:
            self._cells[node] = self._listed_cells(node)
        return self._cells[node]

    def _listed_cells(self, node: int) -> list[Part] | None:
        row = self.view.rows[node]
        children = self.view.children[node]
        params = self.graph.params(node)
        if row is reshape and self.view.rows[children[0]] is pack:
            return self.cells(children[0])
        if row is pack and not any(params["ranks"]):
            return [(child, ANYTHING) for child in children]
        if row is scatter and len(params["shape"]) == 1:
            return self._scattered(children, params["keys"], params["shape"][0])
        return None

    def _scattered(
        self, children: Sequence[int], keys: Sequence[IndexKey], size: int
    ) -> list[Part] | None:
        """Return the elements of a mostly filled vector; None for sparse or repeated indices."""
        child_at = {key[0]: child for key, child in zip(keys, children, strict=True)}
        single = all(isinstance(entry, int) for entry in child_at)
        if not single or len(child_at) < len(children) or size > 4 * len(child_at):
            return None
        return [(child_at[entry], ANYTHING) if entry in child_at else "0" for entry in range(size)]


def _nested(parts: Sequence[Part], shape: Sequence[int]) -> list[Part]:
    """Return nested lists of the given shape, in row-major order."""
    groups = [[part] for part in parts]
    for size in reversed(shape):
        groups = [_listed(groups[start : start + size]) for start in range(0, len(groups), size)]
    return groups[0]


def _listed(groups: Sequence[Sequence[Part]]) -> list[Part]:
    joined: list[Part] = ["["]
    for group in groups:
        joined += [*group, ", "]
    joined[-1] = "]"
    return joined


def written_number(value: float) -> str:
    """Return a number as text; ``repr`` is the shortest text that round-trips a float64.

    Examples
    --------
    >>> written_number(0.1), written_number(-np.inf), written_number(np.nan)
    ('0.1', '(-1/0)', '(0/0)')
    """
    if isinstance(value, bool):
        return repr(int(value))
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    return "(0/0)" if math.isnan(value) else "(1/0)" if value > 0 else "(-1/0)"


def written_key(key: IndexKey, shape: Sequence[int]) -> str:
    """Return an indexing key as text, with its brackets.

    Examples
    --------
    >>> written_key((0, (1, 3, 1)), (4, 3))
    '[0, 1:]'
    """
    entries = []
    for entry, size in zip(key, shape, strict=True):
        if isinstance(entry, int):
            entries.append(str(entry))
            continue
        start, stop, step = entry
        first = "" if start == (0 if step > 0 else size - 1) else str(start)
        last = "" if stop is None or (step > 0 and stop >= size) else str(stop)
        entries.append(f"{first}:{last}" + (f":{step}" if step != 1 else ""))
    while len(entries) > 1 and entries[-1] == ":":
        entries.pop()
    return f"[{', '.join(entries)}]"
