"""The shape of results at points as rows of one array."""

from __future__ import annotations

from difflab.execute import Compiled


def result_shape(compiled: Compiled) -> tuple[int, ...]:
    """Return the shape of the result at a point: several outputs are flattened side by side.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*y")
    >>> result_shape(dl.compile(dl.hessian(f))), result_shape(dl.compile(dl.value_and_gradient(f)))
    ((2, 2), (3,))
    """
    shapes = compiled.function.output_shapes
    return shapes[0] if len(shapes) == 1 else (compiled.function.m,)
