"""`flattened`: a function of one vector instead of many inputs."""

from __future__ import annotations

from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.ir import packed_slices
from difflab.primitives import index, reshape


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
    inputs = []
    for shape, place in zip(
        function.input_shapes, packed_slices(function.input_shapes), strict=True
    ):
        key = ((place.start, place.stop, 1),) if shape else (place.start,)
        part = builder.emit(index, (point,), (("key", key), ("rank", 1)))
        if len(shape) > 1:
            part = builder.emit(reshape, (part,), (("rank", 1), ("shape", shape)))
        inputs.append(part)
    outputs = inline(function, builder, inputs)
    names, structure = function.output_names, function.structure
    return Function.build(builder, [point], outputs, names, structure)
