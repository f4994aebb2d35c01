"""Reverse mode of a loop: a loop that keeps values of each step, and a loop back over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import compress

from difflab.autodiff.control.outer import product_of, products_in
from difflab.autodiff.control.residuals import divided
from difflab.autodiff.control.rows import zeros
from difflab.autodiff.engine.argnums import cotangents_of
from difflab.graph.control import Checkpoint, Loop
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined, selected


class Backward:
    """The two loops of reverse mode (Griewank and Walther, 2008, section 3.2).

    The first one, `history`, keeps what a step back reads and is not cheap to compute again. The
    second, `sweep`, goes from the last step to the first. Its carries are the cotangents of the
    carries, then the sums of those of the constants, except sums that are products at the end.

    Parameters
    ----------
    loop : Loop
        What is differentiated.
    wanted : sequence of bool
        Which arguments' cotangents are wanted.
    """

    def __init__(self, loop: Loop, wanted: Sequence[bool]) -> None:
        body, c, end = loop.body, loop.carries, loop.carries + loop.arrays
        sources = [k for k, flows in enumerate(wanted) if k < c or flows]
        checkpoints = any(isinstance(row.holds, Checkpoint) for row in body.graph.primitives)
        parts = divided(cotangents_of(body, sources), len(body.inputs), keeps=not checkpoints)
        self.loop = loop
        self.ahead, self.rest = parts.ahead, parts.rest
        self.read = list(compress(range(end), parts.reads))
        self.bars = dict(zip(sources, self.rest.outputs, strict=True))
        graph = self.rest.graph
        found = {k: products_in(graph, node) for k, node in self.bars.items() if k >= end}
        self.products = {k: pairs for k, pairs in found.items() if pairs}
        self.summed = [k for k in found if k not in self.products]
        factors = [factor.node for pairs in found.values() for pair in pairs for factor in pair]
        given = set(self._looped)
        arrays = [node for k, node in self.bars.items() if c <= k < end]
        self.results = list(dict.fromkeys([*arrays, *(n for n in factors if n not in given)]))

    @cached_property
    def _looped(self) -> list[int]:
        """The inputs of the step back that are elements of arrays, in their order in `sweep`."""
        loop, inputs = self.loop, self.rest.input_nodes
        kept = len(self.ahead.outputs)
        bars = kept + len(loop.body.inputs) + loop.carries
        return [*inputs[:kept], *(inputs[kept + k] for k in self.read), *inputs[bars:]]

    @property
    def history(self) -> Loop:
        """The loop forward. Its results are the values that are kept, then the carries read."""
        loop, c = self.loop, self.loop.carries

        def keep(nodes: list[Node]) -> list[Node]:
            before = [nodes[k] for k in self.read if k < c]
            return [*inlined(loop.body, nodes)[:c], *inlined(self.ahead, nodes), *before]

        body = composed(keep, loop.body.input_shapes)
        return Loop(body, c, loop.arrays, loop.steps, loop.reverse)

    @property
    def sweep(self) -> Loop:
        """The reverse loop, over the arrays of `history` and the results' cotangents."""
        loop, rest, c = self.loop, self.rest, self.loop.carries
        kept, count = len(self.ahead.outputs), len(loop.body.inputs)
        constants = rest.input_nodes[kept + c + loop.arrays : kept + count]
        bars = rest.input_nodes[kept + count :][:c]
        sums = [self.bars[k] for k in self.summed]
        results = [*(self.bars[k] for k in range(c)), *sums, *self.results]
        carried = c + len(sums)
        step = selected(rest, results, [f"y{k + 1}" for k in range(len(results))])

        def back(nodes: list[Node]) -> list[Node]:
            read = dict(zip(bars, nodes, strict=False))
            read |= dict(zip([*self._looped, *constants], nodes[carried:], strict=True))
            absent = zeros(nodes[0].builder, step.input_shapes)  # what the step does not read
            pairs = zip(rest.input_nodes, absent, strict=True)
            found = inlined(step, [read.get(node, zero) for node, zero in pairs])
            totals = [one + other for one, other in zip(nodes[c:carried], found[c:], strict=False)]
            return [*found[:c], *totals, *found[carried:]]

        inputs = [*bars, *sums, *self._looped, *constants]
        body = composed(back, [rest.graph.shape(node) for node in inputs])
        return Loop(body, carried, len(self._looped), loop.steps, not loop.reverse)

    def cotangents(self, found: Sequence[Node], looped: Sequence[Node]) -> list[Node | None]:
        """Return the arguments' cotangents from the results of `sweep` and its operands."""
        c, end = self.loop.carries, self.loop.carries + self.loop.arrays
        carried = c + len(self.summed)
        stacks = dict(zip(self._looped, looped, strict=True))
        stacks |= dict(zip(self.results, found[carried:], strict=True))
        bars: dict[int, Node] = dict(enumerate(found[:c]))
        bars |= {k: stacks[node] for k, node in self.bars.items() if c <= k < end}
        bars |= dict(zip(self.summed, found[c:carried], strict=True))
        for k, pairs in self.products.items():
            bars[k] = sum(product_of((a, b), stacks[a.node], stacks[b.node]) for a, b in pairs)
        return [bars.get(k) for k in range(len(self.loop.body.inputs))]
