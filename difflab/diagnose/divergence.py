"""`first_divergence`: the first operation at which two methods of differentiation part.

A method is only asked for derivatives, so this works for every method and package. The value of
a node, as a method computes it, is the derivative of ``t * node`` with respect to t. The
cotangent of a node is the derivative of the rest of the function, in which the node is an input.
Both are searched by bisection over the operations, so about 2 log₂ N derivatives are computed by
either method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.core.place import SourceLocation
from difflab.diagnose.findings import call_text, number_text
from difflab.graph.builder import Builder
from difflab.graph.function import Function, evaluate_all
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.rewrite import rewrite
from difflab.primitives import multiply

Array = NDArray[np.float64]

_ROUNDING = 1e-11
"""Relative difference that the rounding of a sum of many terms explains."""
_CANCELLED = 1e-14
"""Difference, relative to the largest derivative of the output, that rounding explains."""


class Derivative(NamedTuple):
    """A Jacobian ``(m, n)`` and how far it may be off by the method's own estimate."""

    value: Array
    error: Array


Differentiate = Callable[[Function, Array], Derivative]
"""``differentiate(function, point)`` at a packed point ``(n,)``."""


@dataclass(frozen=True)
class Divergence:
    """The operation at which two methods first differ.

    Attributes
    ----------
    kind : {"value", "derivative"}
        Whether its value differs, or its derivative.
    node : int
        Its number in the graph.
    call : str
        The operation with its operands: ``abs(0)``.
    site : SourceLocation
        The part of the formula, or the Python line.
    values : tuple of (float, float)
        What the methods compute there: the value, or the derivative with respect to the
        operand `operand`.
    operand : int
        The position of that operand, from 1; 0 for a value.
    alone : bool
        Whether the operation alone differs too. Otherwise the difference comes from rounding
        that the operations above it amplify.
    """

    kind: str
    node: int
    call: str
    site: SourceLocation
    values: tuple[float, float]
    operand: int
    alone: bool

    def render(self, names: tuple[str, str]) -> str:
        """Return the report, in which the methods have names."""
        what = (
            "value"
            if self.kind == "value"
            else f"derivative with respect to operand {self.operand}"
        )
        if self.kind != "value" and not self.alone:
            what = f"cotangent of operand {self.operand}"
        both = " and ".join(
            f"{name} {number_text(value)}" for name, value in zip(names, self.values, strict=True)
        )
        lines = [self.site.marked(f"{names[0]} and {names[1]} differ at {self.call}{self._at}")]
        lines.append(f"its {what}: {both}")
        if not self.alone:
            lines.append("the operation alone gives the same: rounding accumulates up to it")
        return "\n".join(lines)

    @property
    def _at(self) -> str:
        return f" ({self.site.where})" if self.site.where else ""


def first_divergence(
    function: Function, point: Array, first: Differentiate, second: Differentiate
) -> Divergence | None:
    """Return the operation at which two methods first differ, or None where they agree.

    Values are compared before derivatives: the first node in the order of evaluation whose
    value differs; otherwise the first one in the order of the reverse sweep, from the output
    down, whose derivative makes the cotangents of its operands differ.

    Parameters
    ----------
    function : Function
        The function.
    point : ndarray (n,)
        The inputs, flattened in order.
    first, second : callable
        The methods.

    Returns
    -------
    Divergence or None
        None where value and derivative of the function agree within rounding and the methods'
        own error estimates.
    """
    search = _DivergenceSearch(function, point, first, second)
    return search.value() or search.derivative()


class _DivergenceSearch:
    """The values of all nodes, and the functions that are cut out of the graph."""

    def __init__(
        self, function: Function, point: Array, first: Differentiate, second: Differentiate
    ) -> None:
        self.function = function
        self.graph: Graph = function.graph
        self.methods = (first, second)
        self.values = evaluate_all(function, function.split(point))
        needed = self.graph.needed_for(function.outputs)
        rows = enumerate(self.graph.rows())
        self.rows = {node: row for node, row in rows if needed[node]}
        self.operations = [node for node in self.rows if self._computes(node)]

    def value(self) -> Divergence | None:
        """Return the first operation whose value differs."""
        outputs = [node for node in self.function.outputs if self._computes(node)]
        if not any(self._value_differs(node) for node in outputs):
            return None
        low, high = -1, len(self.operations) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._value_differs(self.operations[middle]):
                high = middle
            else:
                low = middle
        node = self.operations[high]
        values, different = self._values(self._part([node], [node], scaled=True))
        alone = bool(different.any())
        if not alone:
            values, different = self._values(self._part(self._below(node), [node], scaled=True))
        return self._divergence("value", node, values, different, 0, alone)

    def derivative(self) -> Divergence | None:
        """Return the first operation, from the output down, at which cotangents differ."""
        low, high = 0, len(self.operations)
        if not high or not self._cotangents_differ(0):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._cotangents_differ(middle):
                low = middle
            else:
                high = middle
        node = self.operations[low]
        part = self._part([node], [node])
        values, different = self._values(part)
        alone = bool(different.any())
        if not alone:
            part = self._part(self._above(low), self.function.outputs)
            values, different = self._values(part)
        column = int(np.flatnonzero(different.any(axis=0))[0])
        source = part.owners[column]
        args = self.graph.arguments(node)
        operand = args.index(source) + 1 if source in args else 0
        return self._divergence("derivative", node, values, different, operand, alone)

    def _computes(self, node: int) -> bool:
        """Return whether a node is an operation with a real value."""
        row = self.graph.primitive(node)
        return row is not None and not row.boolean

    def _value_differs(self, node: int) -> bool:
        return bool(self._values(self._part(self._below(node), [node], scaled=True))[1].any())

    def _cotangents_differ(self, index: int) -> bool:
        part = self._part(self._above(index), self.function.outputs)
        return bool(self._values(part)[1].any())

    def _below(self, node: int) -> list[int]:
        return [other for other in self.rows if other <= node]

    def _above(self, index: int) -> list[int]:
        return [other for other in self.rows if other >= self.operations[index]]

    def _part(
        self, nodes: Iterable[int], outputs: Sequence[int], *, scaled: bool = False
    ) -> _Subfunction:
        """Cut nodes out of the graph: the operands that are not among them become inputs.

        With `scaled` the outputs are multiplied by an input of value 1, the only one with
        respect to which the part is compared.
        """
        inside = self._closed(nodes)
        edge = {arg for node in inside for arg in self.rows[node][1] if arg not in inside} | {
            node for node in outputs if node not in inside
        }
        builder = Builder(self.graph.source)
        boundary: dict[int, int] = {}
        for node in sorted(edge):
            boundary[node] = builder.input(f"node{node}", self.graph.shape(node))
        copied = rewrite(self.graph, builder, None, known=boundary, nodes=sorted(inside))
        made = [copied[node] for node in outputs]
        inputs, owners = list(boundary.values()), _owners(self.graph, boundary)
        values = [np.ravel(np.asarray(self.values[node], dtype=np.float64)) for node in boundary]
        if scaled:
            scale = builder.input("t")
            made = [builder.emit(multiply, (scale, node)) for node in made]
            inputs, owners, values = [*inputs, scale], [*owners, -1], [*values, np.ones(1)]
        names = [f"y{number}" for number in range(len(made))]
        function = Function.build(builder, inputs, made, names)
        return _Subfunction(function, np.concatenate(values), owners, scaled)

    def _closed(self, nodes: Iterable[int]) -> set[int]:
        """Return nodes with the constants and truth values that they need, but no inputs."""
        inside = {node for node in nodes if self.rows[node][0] >= FIRST_ROW}
        pending = list(inside)
        while pending:
            for arg in self.rows[pending.pop()][1]:
                row = self.graph.primitive(arg)
                if arg not in inside and (
                    arg in self.graph.constants or (row is not None and row.boolean)
                ):
                    inside.add(arg)
                    pending.append(arg)
        return inside

    def _values(self, part: _Subfunction) -> tuple[tuple[Array, Array], NDArray[np.bool_]]:
        """Return the results of both methods, and where they differ beyond rounding."""
        derivatives = [method(part.function, part.point) for method in self.methods]
        if part.scaled:
            derivatives = [
                Derivative(each.value[:, -1:], each.error[:, -1:]) for each in derivatives
            ]
        (a, a_error), (b, b_error) = derivatives
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(a), np.abs(b))
            largest = np.max(size, initial=0.0, where=np.isfinite(size))
            tolerance = _ROUNDING * size + _CANCELLED * largest + a_error + b_error
            same = (np.abs(a - b) <= tolerance) | (a == b) | (np.isnan(a) & np.isnan(b))
        return (a, b), ~same

    def _divergence(
        self,
        kind: str,
        node: int,
        values: tuple[Array, Array],
        different: NDArray[np.bool_],
        operand: int,
        alone: bool,
    ) -> Divergence:
        index = tuple(np.argwhere(different)[0])
        columns = np.flatnonzero(different.any(axis=0))
        if kind == "derivative" and columns.size:
            index = (int(np.flatnonzero(different[:, columns[0]])[0]), int(columns[0]))
        operands = [self.values[arg] for arg in self.graph.arguments(node)]
        call = call_text(self.graph.primitive(node), operands)
        first, second = (float(array[index]) for array in values)
        site = self.graph.place(node)
        return Divergence(kind, node, call, site, (first, second), operand, alone)


class _Subfunction(NamedTuple):
    """A function cut out of a graph, its point, and the node of every element of that."""

    function: Function
    point: Array
    owners: list[int]
    scaled: bool


def _owners(graph: Graph, nodes: Mapping[int, Any]) -> list[int]:
    """Return the node of every element of the packed inputs."""
    return [node for node in nodes for _ in range(int(np.prod(graph.shape(node), dtype=np.int64)))]
