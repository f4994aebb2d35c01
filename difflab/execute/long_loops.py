"""Loops of many iterations as machine code; NumPy's kernels evaluate the rest of a graph.

An iteration of a loop costs microseconds in Python and nanoseconds in machine code, which takes a
tenth of a second to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.compiled import Compiled, compile
from difflab.execute.targets.llvm.libraries import available
from difflab.graph.control import Loop, WhileLoopVjp
from difflab.graph.counts import may_be_long
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function
from difflab.graph.rewritten import composed

TURNS = 10_000
"""Turns of a loop after which its unknown number of turns counts as large."""


class LongLoops(ArrayInterpreter):
    """Interpreter of NumPy values that compiles loops of many iterations on real ones.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("iterate(y = x; 1000000 times; y + (1 - y)/1000000)")
    >>> y = dl.evaluate(f, [0.0], LongLoops())[0]
    >>> abs(float(y) - 0.6321205588) < 1e-6
    True
    """

    def __init__(self) -> None:
        super().__init__(np)

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel, or for a loop an object that compiles it once it proves to be long."""
        kernel = super().operation(primitive)
        if not may_be_long(primitive) or not available():
            return kernel
        return _LongLoop(primitive, kernel)


class _LongLoop:
    """The row of a loop, evaluated by its kernel or by machine code."""

    def __init__(self, row: Primitive, kernel: Callable[..., Any]) -> None:
        self._row, self._kernel = row, kernel

    def __call__(self, *args: Any) -> Any:
        values = [np.asarray(arg) for arg in args]
        if any(value.dtype.kind not in "biuf" for value in values) or not self._turns(values):
            return self._kernel(*args)
        fast = _compiled(self._row)
        return self._kernel(*args) if fast is None else fast(*values)

    def _turns(self, values: list[NDArray[Any]]) -> bool:
        """Return whether the loop runs many iterations at these values."""
        loop = self._row.holds
        if isinstance(loop, Loop):
            return True
        shapes = loop.input_shapes
        values = values[: len(shapes)]
        batch = np.broadcast_shapes(
            *(v.shape[: v.ndim - len(shape)] for v, shape in zip(values, shapes, strict=True))
        )
        loop = loop.loop if isinstance(loop, WhileLoopVjp) else loop
        visited = loop.visited(ArrayInterpreter(), values[: len(loop.input_shapes)], batch)
        return next(islice(visited, TURNS, None), None) is not None


@lru_cache(maxsize=64)
def _compiled(row: Primitive) -> Compiled | None:
    """Return a loop as machine code, or None if it has none."""
    function = composed(lambda nodes: [row(*nodes)], row.holds.input_shapes)
    try:
        fast = compile(function, "native", threads=1)
    except UnsupportedError:
        return None
    return fast if fast.reason.startswith("native") else None


def interpreter_of(function: Function) -> ArrayInterpreter:
    """Return the interpreter of a function on arrays: NumPy, with machine code for long loops."""
    return LongLoops() if any(map(may_be_long, function.graph.primitives)) else ArrayInterpreter()


def values_of(function: Function) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return `Function.values`, with machine code for long loops on real points."""
    return partial(function.values, on=interpreter_of(function))
