"""The values of nodes while code is traced for one point, for Python's own branches and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from difflab.core.apply import array_module
from difflab.graph.builder import Builder


class PointValues:
    """Computes the values of nodes on demand, each once.

    Parameters
    ----------
    inputs : mapping of int to value
        The value of each input: a number, an array, a tensor, or a traced value of a trace around
        this one, whose value is computed there. It may grow.
    """

    def __init__(self, inputs: Mapping[int, Any]) -> None:
        self.inputs = inputs
        self.values: dict[int, Any] = {}

    def of(self, builder: Builder, node: int) -> Any:
        """Return the value of a node; None if that of an input is unknown.

        The builder, to which nodes may be appended between calls, is not kept: it holds this.
        """
        values, pending = self.values, [node]
        with np.errstate(all="ignore"):
            while pending:
                current = pending[-1]
                args = builder.arguments(current)
                waiting = [arg for arg in args if arg not in values]
                pending += waiting
                if not waiting:
                    pending.pop()
                    if current not in values:
                        value = self._computed(builder, current, [values[arg] for arg in args])
                        if value is None:
                            return None
                        values[current] = value
        return values[node]

    def _computed(self, builder: Builder, node: int, operands: list[Any]) -> Any:
        """Return the value of a node from those of its arguments."""
        row = builder.primitive(node)
        if row is not None:
            params = builder.param_table[builder.param_ids.get(node, 0)]
            return row.unbatched_computer(array_module(operands, row.name), params)(*operands)
        if node in builder.constants:
            return np.float64(builder.constants[node][0])
        value = self.inputs[node]
        method = getattr(value, "__difflab_value__", None)
        return value if method is None else method()
