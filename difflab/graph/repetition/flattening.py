"""`flattened`: a function of one vector in place of many inputs."""

from __future__ import annotations

import math

from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.primitives import index, reshape

__all__ = ["flattened"]


def flattened(function: Function) -> Function:
    """Return the function of the vector of all inputs, flattened in order.

    Examples
    --------
    >>> import difflab as dl
    >>> f = flattened(dl.parse("x1*x2 + x3"))
    >>> f.input_shapes, float(f([2.0, 3.0, 4.0]))
    (((3,),), 10.0)
    """
    builder = Builder(function.graph.source)
    point = builder.input("point", (function.n,))
    inputs, start = [], 0
    for shape in function.input_shapes:
        stop = start + math.prod(shape)
        key = (start,) if shape == () else ((start, stop, 1),)
        part = builder.emit(index, (point,), (("key", key), ("rank", 1)))
        if len(shape) > 1:
            part = builder.emit(reshape, (part,), (("rank", 1), ("shape", shape)))
        inputs.append(part)
        start = stop
    outputs = inline(function, builder, inputs)
    names, structure = function.output_names, function.structure
    return Function.build(builder, [point], outputs, names, structure)
