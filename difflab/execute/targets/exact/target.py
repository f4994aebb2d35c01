"""A function at points, each result rounded correctly, point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.limit import TIMEOUT
from difflab.balls.rounded import rounded_values
from difflab.graph.function import Function
from difflab.graph.ir import Shape


class ExactTarget:
    """A function in ball arithmetic.

    Examples
    --------
    >>> import difflab as dl
    >>> ExactTarget(dl.parse("x + 1 - x"))([1e16], ())
    [1.0]
    """

    def __init__(self, function: Function, timeout: float | None = None) -> None:
        self.function = function
        self.timeout = TIMEOUT if timeout is None else timeout

    def __call__(self, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Return every output for one value per input, of shape batch + output shape."""
        function = self.function
        count = math.prod(batch)
        columns = [
            np.broadcast_to(np.asarray(value, dtype=np.float64), batch + shape).reshape(count, -1)
            for value, shape in zip(values, function.input_shapes, strict=True)
        ]
        points = np.concatenate(columns, axis=1) if columns else np.zeros((count, 0))
        return self._outputs(rounded_values(function, points.tolist(), self.timeout), batch)

    def point(self, numbers: Sequence[float]) -> list[Any]:
        """Return every output at one point of all inputs, flattened."""
        return self._outputs(rounded_values(self.function, [numbers], self.timeout), ())

    def _outputs(self, rows: NDArray[np.float64], batch: Shape) -> list[Any]:
        """Divide flattened outputs; those of comparisons are truth values."""
        function, parts = self.function, []
        start = 0
        for node, shape in zip(function.outputs, function.output_shapes, strict=True):
            stop = start + math.prod(shape)
            part: Any = rows[:, start:stop].reshape(batch + shape)
            row = function.graph.primitive(node)
            if row is not None and row.boolean:
                part = part.astype(np.bool_)
            parts.append(part if part.ndim else part.item())
            start = stop
        return parts
