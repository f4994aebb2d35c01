"""Derivatives of some outputs of a function with respect to some of its inputs.

Building blocks of the transforms with `argnums`: pure, graph to graph, so that their results
can be cached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from difflab.autodiff.engine.batching import batched, with_axis_at
from difflab.autodiff.engine.forward import push_forward
from difflab.autodiff.engine.reverse import pull_back
from difflab.autodiff.engine.sweep import Sweep, fresh_inputs, spread
from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.ir import CONSTANT, FIRST_ROW
from difflab.graph.node import Node
from difflab.graph.repetition import LARGE, rolled
from difflab.primitives import reshape, scatter

__all__ = ["gradients", "jacobians", "pulled", "pushed", "split", "swept"]

Positions = tuple[int, ...]


def gradients(function: Function, sources: Positions) -> Function:
    """Return all outputs, then the cotangents of `sources` for output 0 with cotangent 1."""
    function = rolled(function, LARGE)
    sweep = Sweep(function)
    seed = spread(sweep.constant(1), function.output_shapes[0])
    bars = _pull(sweep, {function.outputs[0]: seed}, sources)
    return _with_parts(sweep, [], bars, [f"{function.inputs[i]}_bar" for i in sources])


def pushed(function: Function, sources: Positions, outputs: Positions) -> Function:
    """Return all outputs, then the tangents of `outputs`; tangents of `sources` are inputs."""
    sweep = Sweep(function)
    seeds = fresh_inputs(
        sweep,
        [function.inputs[i] for i in sources],
        [function.input_shapes[i] for i in sources],
        "_dot",
    )
    directions = {function.input_nodes[i]: seed for i, seed in zip(sources, seeds, strict=True)}
    dots = _push(sweep, directions, outputs)
    return _with_parts(sweep, seeds, dots, [f"{function.output_names[i]}_dot" for i in outputs])


def pulled(function: Function, sources: Positions, outputs: Positions) -> Function:
    """Return all outputs, then the cotangents of `sources`; those of `outputs` are inputs."""
    sweep = Sweep(function)
    seeds = fresh_inputs(
        sweep,
        [function.output_names[i] for i in outputs],
        [function.output_shapes[i] for i in outputs],
        "_bar",
    )
    totals: dict[int, Node] = {}
    for i, seed in zip(outputs, seeds, strict=True):
        number = function.outputs[i]
        totals[number] = totals[number] + seed if number in totals else seed
    bars = _pull(sweep, totals, sources)
    return _with_parts(sweep, seeds, bars, [f"{function.inputs[i]}_bar" for i in sources])


def swept(function: Function, sources: Positions, outputs: Positions, *, forward: bool) -> Function:
    """Return one sweep alone, from the only source or back from the only output.

    Its seed is the last input, or the constant 1 where that source or output is a number.
    """
    sweep = Sweep(function)
    if forward:
        (source,), names = sources, [f"{function.output_names[i]}_dot" for i in outputs]
        start, shape = function.input_nodes[source], function.input_shapes[source]
    else:
        (output,), names = outputs, [f"{function.inputs[i]}_bar" for i in sources]
        start, shape = function.outputs[output], function.output_shapes[output]
    seeds = fresh_inputs(sweep, ["seed"], [shape], "") if shape else []
    sweep.zeros.units.update(node.id for node in seeds)
    seed = {start: seeds[0] if seeds else sweep.constant(1)}
    parts = _push(sweep, seed, outputs) if forward else _pull(sweep, seed, sources)
    inputs = [*function.input_nodes, *(node.id for node in seeds)]
    return Function.build(sweep.builder, inputs, [part.id for part in parts], names)


def jacobians(
    function: Function, sources: Positions, outputs: Positions, *, forward: bool
) -> Function:
    """Return the Jacobian of every output by every source, of the output's shape + its.

    A sweep is made once for each source (or output) and applied to a stack of unit seeds.
    """
    builder = Builder()
    inputs = [
        Node(builder, builder.input(name, shape))
        for name, shape in zip(function.inputs, function.input_shapes, strict=True)
    ]
    blocks: dict[tuple[int, int], Node] = {}
    sweeps = [((i,), outputs) for i in sources] if forward else [(sources, (o,)) for o in outputs]
    for ins, outs in sweeps:
        one = swept(function, ins, outs, forward=forward)
        stacks = _on_unit_seeds(one, inputs)
        pairs = [(o, i) for o in outs for i in ins]
        for (o, i), stack in zip(pairs, stacks, strict=True):
            out, shape = function.output_shapes[o], function.input_shapes[i]
            if forward and shape and out:
                stack = with_axis_at(stack, 0, len(out))
            blocks[o, i] = reshape(stack, shape=out + shape, rank=stack.ndim)
    order = [(o, i) for o in outputs for i in sources]
    names = [f"{function.output_names[o]}_by_{function.inputs[i]}" for o, i in order]
    parts = [blocks[pair].id for pair in order]
    return Function.build(builder, [node.id for node in inputs], parts, names)


def _on_unit_seeds(one: Function, inputs: list[Node]) -> list[Node]:
    """Apply a sweep to every unit seed; the results are stacked along a leading axis."""
    builder = inputs[0].builder
    if len(one.inputs) == len(inputs):
        return _inlined(one, inputs)
    shape = one.input_shapes[-1]
    size = math.prod(shape)
    keys = tuple((k, *key) for k, key in enumerate(np.ndindex(shape)))
    ones = [Node(builder, builder.constant(1))] * size
    seeds = scatter(*ones, keys=keys, shape=(size, *shape))
    stacks = batched(one, [False] * len(inputs) + [True], size)
    return _inlined(stacks, [*inputs, seeds])


def _inlined(function: Function, values: list[Node]) -> list[Node]:
    builder = values[0].builder
    return [Node(builder, node) for node in inline(function, builder, [v.id for v in values])]


def split(function: Function, known: int, early: int) -> tuple[Function, Function]:
    """Divide a function into what its first inputs determine, and the rest.

    Parameters
    ----------
    function : Function
        Whose first `early` outputs depend on its first `known` inputs only.
    known, early : int
        How many inputs and outputs those are.

    Returns
    -------
    Function, Function
        The first takes the known inputs and returns the early outputs, then the residuals.
        The second takes the residuals, then the other inputs, and returns the other outputs.
    """
    halves = _Halves(function, known)
    halves.copy()
    later = [halves.in_second(number) for number in function.outputs[early:]]
    kept = [*function.outputs[:early], *halves.residuals]
    prepare = Function.build(
        halves.first,
        [halves.there[number] for number in function.input_nodes[:known]],
        [halves.there[number] for number in kept],
        [f"y{i + 1}" for i in range(len(kept))],
    )
    apply = Function.build(
        halves.second,
        [halves.here[n] for n in (*halves.residuals, *function.input_nodes[known:])],
        later,
        function.output_names[early:],
    )
    return prepare, apply


class _Halves:
    """The two graphs that `split` makes, and where the nodes of the whole are in each."""

    def __init__(self, function: Function, known: int) -> None:
        self.graph = graph = function.graph
        self.first, self.second = Builder(), Builder()
        self.late = function.graph.reached_from(function.input_nodes[known:])
        self.there: dict[int, int] = {}
        self.here: dict[int, int] = {}
        self.residuals: list[int] = []
        for position, number in enumerate(function.input_nodes):
            name, shape = f"x{position + 1}", graph.shape(number)
            if position < known:
                self.there[number] = self.first.input(name, shape)
            else:
                self.here[number] = self.second.input(name, shape)

    def copy(self) -> None:
        """Append every node to the half that computes it."""
        graph = self.graph
        for number, (opcode, args) in enumerate(graph.rows()):
            if opcode == CONSTANT:
                self.there[number] = self.first.constant(*graph.constants[number])
            elif opcode >= FIRST_ROW:
                row = graph.primitives[opcode - FIRST_ROW]
                params = graph.param_table[graph.param_ids[number]]
                if self.late[number]:
                    operands = [self.in_second(arg) for arg in args]
                    self.here[number] = self.second.emit(row, operands, params)
                else:
                    operands = [self.there[arg] for arg in args]
                    self.there[number] = self.first.emit(row, operands, params)

    def in_second(self, number: int) -> int:
        """Return a node in the second graph; what the first computes becomes an input."""
        if number not in self.here:
            if number in self.graph.constants:
                self.here[number] = self.second.constant(*self.graph.constants[number])
            else:
                self.residuals.append(number)
                name = f"residual{len(self.residuals)}"
                self.here[number] = self.second.input(name, self.graph.shape(number))
        return self.here[number]


def _push(sweep: Sweep, seeds: dict[int, Node], outputs: Positions) -> list[Node]:
    """Return the tangents of `outputs`, of their shapes."""
    function = sweep.function
    dots = push_forward(sweep, seeds, function.outputs)
    zero = sweep.constant(0)
    return [spread(dots.get(function.outputs[i], zero), function.output_shapes[i]) for i in outputs]


def _pull(sweep: Sweep, seeds: dict[int, Node], sources: Positions) -> list[Node]:
    """Return the cotangents of `sources`, of their shapes."""
    function = sweep.function
    bars = pull_back(sweep, seeds, [function.input_nodes[i] for i in sources])
    zero = sweep.constant(0)
    return [
        spread(bars.get(function.input_nodes[i], zero), function.input_shapes[i]) for i in sources
    ]


def _with_parts(
    sweep: Sweep, seeds: list[Node], parts: list[Node], names: Sequence[str]
) -> Function:
    """Return the function with further inputs and outputs."""
    function = sweep.function
    return Function.build(
        sweep.builder,
        [*function.input_nodes, *(seed.id for seed in seeds)],
        [*function.outputs, *(part.id for part in parts)],
        [*function.output_names, *names],
    )
