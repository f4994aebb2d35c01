"""The evaluation of a graph with a format for every operation.

An operation is computed in a format that holds those of its result and its operands, which are cast
to it, and its result is rounded to its own. Numbers of the graph take the format of the operation,
as Python's numbers do in NumPy (NEP 50).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from difflab.core.dtypes import DOUBLE, FORMATS, FloatFormat
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph


def computing_format(
    own: FloatFormat | None, operands: Sequence[FloatFormat | None]
) -> FloatFormat:
    """Return the format in which an operation computes; None stands for constants.

    Examples
    --------
    >>> half, brain = FORMATS["float16"], FORMATS["bfloat16"]
    >>> print(computing_format(half, [half, None]), computing_format(half, [brain]))
    float16 float32
    """
    known = [each for each in operands if each is not None]
    if own is None or (operands and not known):
        return DOUBLE
    return FORMATS[np.result_type(*(each.dtype for each in (own, *known))).name]


def evaluated(
    graph: Graph, inputs: Mapping[int, Any], formats: Sequence[FloatFormat | None]
) -> list[Any]:
    """Return the value of every node, each computed and rounded in its format.

    Parameters
    ----------
    graph : Graph
    inputs : mapping of int to array
        The values of inputs, or of any other nodes, with leading batch axes.
    formats : sequence of FloatFormat or None
        One for each node; None for what is computed from constants alone, in float64.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x/3")
    >>> single = [FORMATS["float32"]] * len(f.graph)
    >>> evaluated(f.graph, {f.input_nodes[0]: 1.0}, single)[-1]
    np.float32(0.33333334)
    """
    values: list[Any] = [None] * len(graph)
    weak: list[FloatFormat | None] = list(formats)
    for node in graph.constants:
        weak[node] = None
    kernels = [row.computer(np) for row in graph.primitives]
    double = all(form in (None, DOUBLE) for form in formats)
    with np.errstate(all="ignore"):
        for node, (opcode, args) in enumerate(graph.rows()):
            own = formats[node]
            if node in inputs:
                values[node] = inputs[node] if own is None else own.cast(inputs[node])
            elif opcode == CONSTANT:
                values[node] = np.float64(graph.constants[node][0])
            elif opcode != INPUT:
                kernel, params = kernels[opcode - FIRST_ROW], graph.params(node)
                if double:  # all values are float64 already
                    values[node] = kernel(*[values[arg] for arg in args], **params)
                    continue
                computing = computing_format(own, [weak[arg] for arg in args])
                result = kernel(*[computing.cast(values[arg]) for arg in args], **params)
                values[node] = computing.cast(result) if own is None else own.cast(result)
    return values
