"""Reverse sweep that maps each derivative node to the function's node it was written for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from difflab.autodiff.engine.masked import resolved
from difflab.autodiff.engine.reverse import pull_back
from difflab.autodiff.engine.sweep import Sweep, fresh_inputs, spread
from difflab.graph.evaluate import ArrayInterpreter, fold
from difflab.graph.function import Function
from difflab.graph.ir import Graph
from difflab.graph.node import Node


class _OriginSweep(Sweep):
    """Sweep that records the size of the graph whenever it starts on a node."""

    def __init__(self, function: Function, squares: bool) -> None:
        super().__init__(function, squares=squares)
        self.begun: list[int] = []
        self.at_node: list[int] = []

    def at(self, number: int) -> None:
        super().at(number)
        self.begun.append(len(self.builder))
        self.at_node.append(number)


class CombinedGraph:
    """A function and its reverse sweep in one graph, in which the function's nodes keep their ids.

    Parameters
    ----------
    function : Function
        The function to differentiate.
    sources : iterable of int, optional
        The nodes whose cotangents are computed; by default the inputs.
    squares : bool
        Whether a square of a norm is differentiated as a polynomial, past the norm's node.

    Attributes
    ----------
    graph : Graph
        The function's nodes, then those of the derivative.
    bars : dict of int to int
        The cotangent's node for each source with a path to an output.
    seeds : dict of int to int
        The cotangent's node, an input, for each output. A single scalar output has none:
        its cotangent is the constant 1, as in a gradient.
    """

    def __init__(
        self, function: Function, sources: Iterable[int] | None = None, *, squares: bool = True
    ) -> None:
        sweep = _OriginSweep(function, squares)
        outputs = dict.fromkeys(function.outputs)
        self.seeds: dict[int, int] = {}
        start: dict[int, Node] = {}
        if function.m == 1:
            (only,) = outputs
            start[only] = spread(sweep.constant(1), function.graph.shape(only))
        else:
            names = [f"y{k}" for k in range(len(outputs))]
            bars = fresh_inputs(sweep, names, [function.graph.shape(o) for o in outputs], "_bar")
            start = dict(zip(outputs, bars, strict=True))
            self.seeds = {number: bar.id for number, bar in start.items()}
        wanted = function.input_nodes if sources is None else sources
        self.bars: dict[int, int] = {}
        for number, bar in pull_back(sweep, start, wanted).items():
            sweep.at(number)
            self.bars[number] = resolved(sweep.builder, bar)
        self.size = len(function.graph)
        self._begun, self._at_node = sweep.begun, sweep.at_node
        self.graph: Graph
        self.graph, _ = sweep.builder.freeze(range(len(sweep.builder)))

    def origin(self, node: int) -> int | None:
        """Return the function's node whose derivative rule wrote `node`, or None."""
        if node < self.size:
            return None
        index = bisect_right(self._begun, node) - 1
        return self._at_node[index] if index >= 0 else None


def node_cotangents(function: Function, values: Sequence[Any]) -> dict[int, Any]:
    """Return v̄ = ∂y/∂v at one point for every node between inputs and outputs.

    Parameters
    ----------
    function : Function
        With several outputs, y is their sum.
    values : sequence
        One value per input.

    Returns
    -------
    dict of int to array
        Cotangents by node, each of the node's shape.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*sin(y)")
    >>> {f.graph.input_name(n): float(v) for n, v in node_cotangents(f, [3.0, 0.0]).items()
    ...  if n in f.input_nodes}
    {'y': 3.0, 'x': 0.0}
    """
    active = function.graph.reached_from(function.input_nodes)
    backward = CombinedGraph(function, [node for node, on in enumerate(active) if on])
    environment: dict[int, Any] = dict(zip(function.input_nodes, values, strict=True))
    environment |= {
        seed: np.full(function.graph.shape(node), float(function.outputs.count(node)))
        for node, seed in backward.seeds.items()
    }
    with np.errstate(all="ignore"):
        cotangents = fold(backward.graph, environment, backward.bars.values(), ArrayInterpreter())
    return {
        node: np.broadcast_to(bar, function.graph.shape(node))
        for node, bar in zip(backward.bars, cotangents, strict=True)
    }
