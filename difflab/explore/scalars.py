"""A function of scalars: arrays become their elements, and loops their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import zeros
from difflab.core.primitive import Params, Primitive, Shape
from difflab.errors import DifflabError, InputError, UnsupportedError
from difflab.explore.elements import FORMS, boxed, sorted_along
from difflab.graph.builder import Builder
from difflab.graph.control import WhileLoop, WhileLoopVjp
from difflab.graph.custom.rows import packed
from difflab.graph.evaluate import ArrayInterpreter, Fold
from difflab.graph.function import Function
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph
from difflab.graph.node import Node
from difflab.graph.passes.expansion import expanded
from difflab.graph.rewrite import Args, label
from difflab.graph.rewritten import inlined, rewritten
from difflab.primitives import argsort, take_along, where

LARGEST = 20_000
"""Most operations on numbers that a page follows."""


def scalar_function(function: Function) -> Function:
    """Return a function of scalars that computes every element on its own.

    Names and source locations are kept; the inputs are ``x[0]``, ``x[1]``, … of an array ``x``.

    Raises
    ------
    InputError
        An operation on arrays or a loop cannot be written as operations on numbers, or there are
        more than `LARGEST` of them.

    Examples
    --------
    >>> import difflab as dl
    >>> f = scalar_function(dl.parse("x: [2]; sum(x*x)"))
    >>> f.inputs, [row.name for row in f.graph.primitives]
    (('x[0]', 'x[1]'), ['multiply', 'add'])
    """
    opened = expanded(function)
    if opened.graph.element_count() > LARGEST:
        raise _too_large(opened.graph.element_count())
    return _Elements(opened).function()


def element_names(name: str, shape: Shape) -> list[str]:
    """Return the names of the elements of an array, in row-major order."""
    if not shape:
        return [name]
    return [f"{name}[{', '.join(map(str, key))}]" for key in product(*map(range, shape))]


class _Nodes(ElementInterpreter):
    """Interpreter whose values are NumPy object arrays of nodes and floats."""

    def _make(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive in FORMS:
            return FORMS[primitive]
        if primitive.shape is not None:
            return self._whole(primitive)
        elementwise: Callable[..., Any] = np.frompyfunc(primitive, primitive.arity or 1, 1)
        return elementwise


class _Elements:
    """A copy of a graph, element by element."""

    def __init__(self, source: Function) -> None:
        self.source, self.graph = source, source.graph
        self.builder = Builder(source.graph.source)
        self.interpreter = _Nodes()
        self.values: list[Any] = [None] * len(source.graph)

    def function(self) -> Function:
        """Return the function of scalars."""
        graph, builder, values = self.graph, self.builder, self.values
        inputs = [
            each
            for node in self.source.input_nodes
            for each in self._input(node, graph.input_name(node), graph.shape(node))
        ]
        spans = builder.copied_spans(graph, graph.spans.tolist())
        for node, (opcode, arguments) in enumerate(graph.rows()):
            builder.span = spans[node]
            if opcode == CONSTANT:
                constant = builder.constant(*graph.constants[node])
                values[node] = boxed([Node(builder, constant)], ())
            elif opcode >= FIRST_ROW:
                values[node] = self._computed(node, [values[each] for each in arguments])
            if len(builder) > LARGEST:
                raise _too_large(len(builder))
            self._labelled(node)
        outputs, names = self._outputs()
        return Function.build(builder, inputs, outputs, names, text=self.source.text)

    def _input(self, node: int, name: str, shape: Shape) -> list[int]:
        nodes = [self.builder.input(each) for each in element_names(name, shape)]
        self.values[node] = boxed([Node(self.builder, each) for each in nodes], shape)
        return nodes

    def _computed(self, node: int, arguments: list[Any]) -> Any:
        """Return the elements of an operation."""
        row = self.graph.primitive(node)
        assert row is not None
        reason = f"'{row.name}' cannot be written as such"
        if row.holds is None:
            try:
                elements = self._operation(node, row)(*arguments)
                return elements if isinstance(elements, np.ndarray) else boxed([elements], ())
            except UnsupportedError as error:
                reason = str(error)
            except (DifflabError, AttributeError, TypeError, ValueError):
                pass
        raise InputError(
            f"the page follows operations on numbers, and {reason}",
            text=self.graph.text,
            span=self.graph.span(node),
            hint="difflab trace shows operations on arrays and loops",
        )

    def _operation(self, node: int, row: Primitive) -> Callable[..., Any]:
        """Return an operation on elements; those that depend on their order sort them."""
        params = self.graph.params(node)
        if row is take_along:
            x, indices = self.graph.arguments(node)
            order = self.graph.primitive(indices)
            if order is argsort and self.graph.arguments(indices) == (x,):
                (axis,) = self.graph.params(indices)["axes"]
                if axis == params["axis"]:
                    return lambda x, indices: sorted_along(x, axis)
        return partial(self.interpreter.operation(row), **params)

    def _labelled(self, node: int) -> None:
        """Give elements the name that the program gave the array."""
        name = self.graph.labels.get(node)
        if name is None:
            return
        elements = self.values[node]
        names = element_names(name, elements.shape)
        for each, element in zip(names, elements.ravel().tolist(), strict=True):
            if isinstance(element, Node):
                label(self.builder, element.id, each)

    def _outputs(self) -> tuple[list[int], list[str]]:
        nodes, names = [], []
        for node, name in zip(self.source.outputs, self.source.output_names, strict=True):
            for element in self.values[node].ravel().tolist():
                is_node = isinstance(element, Node)
                nodes.append(element.id if is_node else self.builder.constant(float(element)))
            names += element_names(name, self.graph.shape(node))
        return nodes, names


def _too_large(count: int) -> InputError:
    return InputError(
        f"the page follows up to {LARGEST:,} operations on numbers, and this function has {count:,}"
        " or more",
        hint="difflab graph and difflab trace summarise larger functions",
    )


LARGEST_TURNS = 200
"""Most turns of a loop at the point."""
SPARE_TURNS = 2
"""Turns that are written out beyond those at the point, for points nearby."""


@dataclass(frozen=True)
class Unrolled:
    """A function without loops that have a condition.

    Attributes
    ----------
    function : Function
        Equal to the original where no loop takes more turns than were written out; nan elsewhere.
    turns : list of int
        How many turns of each loop were written out.
    """

    function: Function
    turns: list[int]


def unrolled(function: Function, point: Mapping[str, Any]) -> Unrolled:
    """Unroll loops with a condition; each iteration is a branch on the condition.

    Raises
    ------
    InputError
        A loop takes more than `LARGEST_TURNS` at the point.

    Examples
    --------
    >>> import difflab as dl
    >>> scalars = unrolled(dl.parse("iterate(y = x; while y > 1; y/2)"), {"x": 8.0})
    >>> scalars.turns, [float(scalars.function(x)) for x in (8.0, 3.0, 33.0)]
    ([5], [1.0, 0.75, nan])
    """
    counts: list[int] = []
    opened = expanded(function)
    while any(_loop_of(row) is not None for row in opened.graph.primitives):
        counted = _Counted(opened.graph)
        named = zip(opened.input_nodes, opened.inputs, strict=True)
        with np.errstate(all="ignore"):  # a branch that is not chosen may divide by zero
            Fold(opened.graph, opened.outputs, counted)({k: point[name] for k, name in named})
        counts += counted.turns
        opened = expanded(rewritten(opened, partial(_written_out, iter(counted.turns))))
    return Unrolled(opened, counts)


class _Counted(ArrayInterpreter):
    """Values at a point, and how many iterations of each loop to unroll, in the loops' order."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.turns: list[int] = []

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel, which counts if it is a loop."""
        loop = _loop_of(primitive)
        if loop is None:
            return super().operation(primitive)
        return lambda *values: self._results(loop, primitive.holds, values)

    def _results(self, loop: WhileLoop, holds: Any, values: Sequence[Any]) -> Any:
        """Return the results of a loop or a sweep, as the vector that its node holds."""
        inputs = values[: len(loop.input_shapes)]
        visited = islice(loop.visited(ArrayInterpreter(), inputs, ()), LARGEST_TURNS + 2)
        iterations = sum(1 for _ in visited) - 1
        if iterations > LARGEST_TURNS:
            raise InputError(
                f"the page follows up to {LARGEST_TURNS} turns of a loop, and at this point it"
                " takes more",
                text=self.graph.text,
                span=self.graph.span(self._loop(len(self.turns))),
                hint="difflab trace shows operations on arrays and loops",
            )
        self.turns.append(iterations + SPARE_TURNS)
        results = holds.run(ArrayInterpreter(), values, ())
        return np.concatenate([np.ravel(part) for part in results])

    def _loop(self, number: int) -> int:
        """Return the node of a loop."""
        loops = self.graph.matching(lambda row: _loop_of(row) is not None)
        return int(np.flatnonzero(loops)[number])


def _loop_of(row: Primitive) -> WhileLoop | None:
    """Return the loop of a row that is one, or the reverse sweep of one."""
    loop = row.holds.loop if isinstance(row.holds, WhileLoopVjp) else row.holds
    return loop if isinstance(loop, WhileLoop) else None


def _written_out(
    counts: Iterator[int],
    builder: Builder,
    node: int,
    row: Primitive,
    args: Args,
    params: Params,
) -> int | None:
    """Append the iterations of a loop; after the last one its condition must not hold."""
    loop = _loop_of(row)
    if loop is None:
        return None
    count, nodes = len(loop.output_shapes), [Node(builder, arg) for arg in args]
    constants, bars = nodes[count : len(loop.input_shapes)], nodes[len(loop.input_shapes) :]
    values, conditions = [nodes[:count]], inlined(loop.test, nodes[: len(loop.input_shapes)])
    for _ in range(next(counts)):
        after = inlined(loop.body, [*values[-1], *constants])
        values.append(_chosen(conditions[-1], after, values[-1]))
        conditions += inlined(loop.test, [*values[-1], *constants])
    results = values[-1]
    if isinstance(row.holds, WhileLoopVjp):
        results = [*bars, *zeros(builder, loop.constants)]
        for value, going in list(zip(values, conditions, strict=True))[-2::-1]:
            earlier = inlined(row.holds.back, [*results, *value, *constants])
            results = _chosen(going, earlier, results)
    last: Node = packed([where(conditions[-1], np.nan, part) for part in results])
    return last.id


def _chosen(going: Node, after: Sequence[Any], before: Sequence[Any]) -> list[Any]:
    """Return the values after an iteration, or those before it if its condition fails."""
    return [where(going, new, old) for new, old in zip(after, before, strict=True)]
