"""How much the rounding errors of operations move the outputs, by reverse sweeps.

An operation i whose result errs by at most δᵢ moves an output y by at most |āᵢ| δᵢ to first order,
where the adjoint āᵢ = ∂y/∂vᵢ is that of the reverse sweep (S. Linnainmaa, Taylor expansion of the
accumulated rounding error, BIT 16, 1976).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.diagnose.node_origins import CombinedGraph
from difflab.graph.function import Function
from difflab.graph.names import element_names
from difflab.rounding.checks import failed
from difflab.rounding.evaluation import evaluated
from difflab.rounding.local import rounding_errors

Array = NDArray[float64]


def effect(bar: Any, error: Any) -> float:
    """Return |ā| δ of an operation, summed over its elements: what moves the output at most.

    It is infinite where the adjoint of an element with an error is undefined, which bounds nothing.

    Examples
    --------
    >>> effect(-3.0, 0.5), effect(np.array([1.0, np.inf]), np.array([0.5, 0.0]))
    (1.5, 0.5)
    """
    if np.ndim(error) == 0 and np.ndim(bar) == 0:
        found = abs(float(bar)) * float(error) if error else 0.0
    else:
        with np.errstate(invalid="ignore"):
            found = float(np.sum(np.where(error > 0, np.abs(bar) * error, 0.0)))
    return math.inf if math.isnan(found) else found


class Sweeps:
    """The reverse sweeps of a function over its rounding operations, built once."""

    def __init__(self, function: Function, form: FloatFormat) -> None:
        self.function = function.in_floats
        self.graph = self.function.graph
        nodes = range(len(self.graph))
        self.combined = CombinedGraph(self.function, nodes, squares=False)  # a norm has an error
        self.form = form
        self.formats = [form] * len(self.graph)
        self.double = [DOUBLE] * len(self.combined.graph)
        outputs = self.function.outputs, self.function.output_shapes
        self.names = element_names(self.function.output_names, self.function.output_shapes)
        self.cells = [
            (node, index)
            for node, shape in zip(*outputs, strict=True)
            for index in np.ndindex(*shape)
        ]

    def inputs(self, point: Array) -> dict[int, Any]:
        """Return the value of each input node at a packed point."""
        return dict(zip(self.function.input_nodes, self.function.split(point), strict=True))

    def forward(self, point: Array) -> tuple[list[Any], list[Any]]:
        """Return values and bounds of rounding errors of all nodes.

        Raises
        ------
        DomainError
            An output is not finite.
        """
        values = evaluated(self.graph, self.inputs(point), self.formats)
        if not all(np.all(np.isfinite(values[node])) for node in self.function.outputs):
            raise failed(self.graph, values, self.function.outputs, self.form.name)
        return values, rounding_errors(self.graph, values, self.formats)

    def seeds(self, output: int) -> dict[int, Array]:
        """Return the seed cotangents of one output number."""
        node, index = self.cells[output]
        found = {seed: np.zeros(self.graph.shape(of)) for of, seed in self.combined.seeds.items()}
        if found:
            found[self.combined.seeds[node]][index] = 1.0
        return found

    def adjoints(self, values: Sequence[Any], output: int) -> dict[int, Any]:
        """Return ā of every node for one output number."""
        known = {**dict(enumerate(values)), **self.seeds(output)}
        found = evaluated(self.combined.graph, known, self.double)
        return {node: found[bar] for node, bar in self.combined.bars.items()}

    def contributions(self, values: Sequence[Any], errors: Sequence[Any], output: int) -> Array:
        """Return |ā| δ of every node for one output number."""
        result = np.zeros(len(self.graph))
        for node, bar in self.adjoints(values, output).items():
            result[node] = effect(bar, errors[node])
        return result

    def value(self, values: Sequence[Any], output: int) -> float:
        """Return the computed number of an output."""
        node, index = self.cells[output]
        return float(np.broadcast_to(values[node], self.graph.shape(node))[index])
