"""Derivatives of some outputs of a function with respect to some of its inputs.

Building blocks of the transforms with `argnums`: pure, graph to graph, so that their results
can be cached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.batching import batched, with_axis_at
from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.engine.forward import tangents
from difflab.autodiff.engine.reverse import cotangents
from difflab.autodiff.engine.sweep import Sweep, fresh_inputs, spread
from difflab.graph.builder import Builder
from difflab.graph.function import Function, evaluate
from difflab.graph.ir import CONSTANT, Graph
from difflab.graph.node import Node
from difflab.graph.repetition import rolled
from difflab.graph.rewrite import rewrite
from difflab.graph.rewritten import selected
from difflab.primitives import scatter

Positions = tuple[int, ...]


def gradients(function: Function, sources: Positions) -> Function:
    """Return all outputs, then the cotangents of `sources` for output 0 with cotangent 1."""
    function = rolled(function)
    sweep = Sweep(function)
    output, starts, names = function.outputs[0], *_ends(function, sources)
    seed = spread(sweep.constant(1), function.output_shapes[0])
    return _with_parts(sweep, [], cotangents(sweep, {output: seed}, starts), names, "_bar")


def pushed(function: Function, sources: Positions, outputs: Positions) -> Function:
    """Return all outputs, then the tangents of `outputs`; tangents of `sources` are inputs."""
    sweep = Sweep(function)
    ends, names = _ends(function, outputs, out=True)
    seeds, dots = _seeds(sweep, *_ends(function, sources), "_dot")
    return _with_parts(sweep, seeds, tangents(sweep, dots, ends), names, "_dot")


def pulled(
    function: Function,
    sources: Positions,
    outputs: Positions,
    *,
    joins: bool = False,
    suffix: str = "_bar",
) -> Function:
    """Return all outputs, then the cotangents of `sources`; those of `outputs` are inputs.

    See `Sweep` for `joins`; the names of the inputs end with `suffix`.
    """
    sweep = Sweep(function, joins=joins)
    starts, names = _ends(function, sources)
    seeds, bars = _seeds(sweep, *_ends(function, outputs, out=True), suffix)
    return _with_parts(sweep, seeds, cotangents(sweep, bars, starts), names, "_bar")


def _ends(
    function: Function, chosen: Positions, *, out: bool = False
) -> tuple[list[int], list[str]]:
    """Return the nodes and the names of some inputs or outputs."""
    nodes = function.outputs if out else function.input_nodes
    names = function.output_names if out else function.inputs
    return [nodes[i] for i in chosen], [names[i] for i in chosen]


def tangents_of(function: Function, sources: Sequence[int] | None = None) -> Function:
    """Return the tangents of all outputs, from the inputs and then the tangents of `sources`.

    `sources` are positions of inputs, all of them where None.
    """
    return _alone(pushed, function, sources)


def cotangents_of(
    function: Function, sources: Sequence[int] | None = None, suffix: str = "_bar"
) -> Function:
    """Return the cotangents of `sources`, from the inputs and then the cotangents of all outputs.

    `sources` are positions of inputs, all of them where None.
    """
    return _alone(pulled, function, sources, suffix=suffix)


def _alone(
    transform: Callable[..., Function],
    function: Function,
    sources: Sequence[int] | None,
    **more: Any,
) -> Function:
    """Return a product by all outputs without these outputs."""
    chosen = range(len(function.inputs)) if sources is None else sources
    count = len(function.outputs)
    whole = transform(function, tuple(chosen), tuple(range(count)), **more)
    return selected(whole, whole.outputs[count:], whole.output_names[count:])


def curvature(function: Function, sources: Positions) -> Function:
    """Return H ẋ for output 0, by source; the directions ẋ of `sources` are further inputs."""
    whole, (_, names) = gradients(function, sources), _ends(function, sources)
    slopes = selected(whole, whole.outputs[len(function.outputs) :], names)
    if goes_forward(slopes):
        return tangents_of(slopes, sources)
    return cotangents_of(slopes, sources, suffix="_dot")


def swept(function: Function, sources: Positions, outputs: Positions, *, forward: bool) -> Function:
    """Return one sweep alone, from the only source or back from the only output.

    Its seed is the last input, or the constant 1 where that source or output is a number.
    """
    sweep = Sweep(function)
    (starts, ins), (ends, outs) = _ends(function, sources), _ends(function, outputs, out=True)
    (start,) = starts if forward else ends
    shape = sweep.graph.shape(start)
    seeds = fresh_inputs(sweep, ["seed"], [shape], "") if shape else []
    sweep.zeros.units.update(node.id for node in seeds)
    seed = {start: seeds[0] if seeds else sweep.constant(1)}
    parts = tangents(sweep, seed, ends) if forward else cotangents(sweep, seed, starts)
    names = [f"{name}_dot" for name in outs] if forward else [f"{name}_bar" for name in ins]
    inputs = [*function.input_nodes, *(node.id for node in seeds)]
    return Function.build(sweep.builder, inputs, [part.id for part in parts], names)


def jacobians(
    function: Function, sources: Positions, outputs: Positions, *, forward: bool
) -> Function:
    """Return the Jacobian of every output by every source, of the output's shape + its."""
    builder = Builder()
    inputs = [
        Node(builder, builder.input(name, shape))
        for name, shape in zip(function.inputs, function.input_shapes, strict=True)
    ]

    def stacks(ins: Positions, outs: Positions) -> list[Node]:
        return _on_unit_seeds(swept(function, ins, outs, forward=forward), inputs)

    blocks = jacobian_blocks(function, sources, outputs, stacks, forward=forward)
    names = [
        f"{function.output_names[o]}_by_{function.inputs[i]}" for o in outputs for i in sources
    ]
    parts = [block.id for block in blocks]
    ids = [node.id for node in inputs]
    return Function.build(builder, ids, parts, names, arguments=function.arguments)


def jacobian_blocks(
    function: Function,
    sources: Positions,
    outputs: Positions,
    stacks: Callable[[Positions, Positions], Sequence[Any]],
    *,
    forward: bool,
) -> list[Any]:
    """Return the Jacobian of every output by every source: nodes or arrays.

    A sweep is made once for each source (or output) and applied to a stack of unit seeds:
    `stacks` returns its results, given its sources and outputs.
    """
    blocks: dict[tuple[int, int], Any] = {}
    sweeps = [((i,), outputs) for i in sources] if forward else [(sources, (o,)) for o in outputs]
    for ins, outs in sweeps:
        pairs = [(o, i) for o in outs for i in ins]
        for (o, i), stack in zip(pairs, stacks(ins, outs), strict=True):
            out, shape = function.output_shapes[o], function.input_shapes[i]
            if forward and shape:
                stack = with_axis_at(stack, 0, len(out))
            blocks[o, i] = stack.reshape(out + shape)
    return [blocks[o, i] for o in outputs for i in sources]


def _on_unit_seeds(one: Function, inputs: list[Node]) -> list[Node]:
    """Apply a sweep to every unit seed; the results are stacked along a leading axis."""
    builder = inputs[0].builder
    if len(one.inputs) == len(inputs):
        return evaluate(one, inputs)
    shape = one.input_shapes[-1]
    size = math.prod(shape)
    keys = tuple((k, *key) for k, key in enumerate(np.ndindex(shape)))
    ones = [Node(builder, builder.constant(1))] * size
    seeds = scatter(*ones, keys=keys, shape=(size, *shape))
    stacks = batched(one, [False] * len(inputs) + [True], size)
    return evaluate(stacks, [*inputs, seeds])


def split(function: Function, known: int, early: int) -> tuple[Function, Function]:
    """Partition a function into the part that its first inputs determine, and the rest.

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
    graph, inputs, outputs = function.graph, function.input_nodes, function.outputs
    late = np.frombuffer(graph.reached_from(inputs[known:]), np.bool_)
    read = graph.args[np.repeat(late, np.diff(graph.starts))].tolist()
    residuals = [
        node
        for node in dict.fromkeys([*read, *outputs[early:]])
        if not late[node] and node not in graph.constants
    ]
    kept = [*outputs[:early], *residuals]
    names = {node: f"x{position + 1}" for position, node in enumerate(inputs)}
    first = {node: names[node] for node in inputs[:known]}
    second = {node: f"residual{k + 1}" for k, node in enumerate(residuals)}
    second |= {node: names[node] for node in inputs[known:]}
    constant = graph.opcode == CONSTANT
    prepare = part_of(function, first, ~late, kept, [f"y{i + 1}" for i in range(len(kept))])
    apply = part_of(
        function, second, late | constant, outputs[early:], function.output_names[early:]
    )
    return prepare, apply


def part_of(
    function: Function,
    inputs: dict[int, str],
    chosen: NDArray[np.bool_],
    outputs: Sequence[int],
    names: Sequence[str],
) -> Function:
    """Return the function that the chosen nodes compute from nodes that become its inputs."""
    graph, builder = function.graph, Builder(function.graph.source)
    known = {node: builder.input(name, graph.shape(node)) for node, name in inputs.items()}
    nodes = np.flatnonzero(chosen).tolist()
    copied = rewrite(graph, builder, known=known, nodes=nodes)
    return Function.build(builder, list(known.values()), [copied[n] for n in outputs], names)


def read_until(graph: Graph, outputs: Sequence[int], kept: Sequence[int]) -> NDArray[np.bool_]:
    """Mark the nodes that outputs are computed from, up to those that are kept."""
    marks = np.zeros(len(graph), np.bool_)
    stop = set(kept)
    waiting = [node for node in dict.fromkeys(outputs) if node not in stop]
    marks[waiting] = True
    while waiting:
        for arg in graph.arguments(waiting.pop()):
            if not marks[arg] and arg not in stop:
                marks[arg] = True
                waiting.append(arg)
    return marks


def _seeds(
    sweep: Sweep, nodes: Sequence[int], names: Sequence[str], suffix: str
) -> tuple[list[Node], dict[int, Node]]:
    """Return a new input for each of some nodes, and the seed of each: their sum for equal ones."""
    shapes = [sweep.graph.shape(number) for number in nodes]
    seeds = fresh_inputs(sweep, names, shapes, suffix)
    totals: dict[int, Node] = {}
    for number, seed in zip(nodes, seeds, strict=True):
        totals[number] = totals[number] + seed if number in totals else seed
    return seeds, totals


def _with_parts(
    sweep: Sweep, seeds: list[Node], parts: list[Node], names: Sequence[str], suffix: str
) -> Function:
    """Return the function with further inputs and outputs."""
    function = sweep.function
    return Function.build(
        sweep.builder,
        [*function.input_nodes, *(seed.id for seed in seeds)],
        [*function.outputs, *(part.id for part in parts)],
        [*function.output_names, *(name + suffix for name in names)],
    )
