"""`rewrite`: the one loop that copies a graph node by node, with a rule for replacements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph, Params

Args = tuple[int, ...]
RewriteRule = Callable[[Builder, int, Primitive, Args, Params], int | None]
"""``rule(builder, node, row, args, params)`` appends what replaces operation `node` of the graph.

`args` are the copies of its arguments. It returns a node of `builder`, or None to copy the
operation as it is.
"""


def rewrite(
    graph: Graph,
    builder: Builder,
    rule: RewriteRule | None = None,
    *,
    known: Mapping[int, int] | None = None,
    nodes: Sequence[int] | None = None,
    operands: Mapping[int, Sequence[int]] | None = None,
) -> list[int]:
    """Append the nodes of `graph` to `builder`, each operation as `rule` writes it.

    Names of variables and source locations are kept. A replacement that an identity reduced to
    a number is broadcast to the shape of the operation again, for others may sum its elements.

    Parameters
    ----------
    graph : Graph
        The graph to copy.
    builder : Builder
        The builder to append to.
    rule : callable, optional
        See `RewriteRule`; None copies every operation.
    known : mapping of int to int, optional
        The nodes of `builder` for inputs, or for other nodes that are not in `nodes`. None
        copies the inputs; otherwise one that is not known must not be needed.
    nodes : sequence of int, optional
        The nodes to copy, in order; all of them where None.
    operands : mapping of int to sequence of int, optional
        Nodes of which the rule is given the copies of these nodes, not of their arguments.

    Returns
    -------
    list of int
        For each node of the graph its copy; -1 for nodes that are not copied.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.primitives import cos, sin
    >>> def cosines(builder, node, row, args, params):
    ...     return builder.emit(cos, args) if row is sin else None
    >>> builder = Builder()
    >>> copied = rewrite(dl.parse("sin(x) + y").graph, builder, cosines)
    >>> builder.primitive(builder.arguments(copied[-1])[0])
    <primitive cos>
    """
    copied = [-1] * len(graph)
    for node, given in (known or {}).items():
        copied[node] = given
    all_args = graph.args if nodes is not None else graph.args.tolist()
    before, columns = builder.span, _columns(graph, builder, nodes)
    for node, opcode, start, stop, param, shape, builder.span in columns:
        if opcode >= FIRST_ROW:
            row, entry = graph.primitives[opcode - FIRST_ROW], graph.param_table[param]
            old = operands[node] if operands and node in operands else all_args[start:stop]
            args = tuple([copied[arg] for arg in old])
            made = None if rule is None else rule(builder, node, row, args, entry)
            if made is None:
                made = builder.emit(row, args, entry)
            if shape and made not in builder.shape_ids and not row.boolean:
                made = builder.spread(made, graph.shape_table[shape])
            copied[node] = made
        elif opcode == CONSTANT:
            copied[node] = builder.constant(*graph.constants[node])
        elif opcode == INPUT and known is None:
            copied[node] = builder.input(graph.names[node], graph.shape_table[shape])
    builder.span = before
    for node, name in graph.labels.items():
        if copied[node] >= 0:
            label(builder, copied[node], name)
    return copied


def _columns(
    graph: Graph, builder: Builder, nodes: Sequence[int] | None
) -> Iterator[tuple[int, ...]]:
    """Iterate over node, opcode, first and last argument, parameters, shape and span."""
    chosen = slice(None) if nodes is None else np.asarray(nodes, dtype=np.int64)
    columns = (graph.opcode, graph.starts[:-1], graph.starts[1:], graph.param_ids, graph.shape_ids)
    lists = [column[chosen].tolist() for column in columns]
    spans = builder.copied_spans(graph, graph.spans[chosen].tolist())
    return zip(range(len(graph)) if nodes is None else nodes, *lists, spans, strict=True)


def label(builder: Builder, node: int, name: str) -> None:
    """Label a node with its variable's name; inputs and constants have names already."""
    if builder.opcode[node] >= FIRST_ROW:
        builder.labels.setdefault(node, name)
