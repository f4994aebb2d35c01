"""An assignment of dtypes: its record, its evaluation, and the truth that it is held to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff import gradient, jacobian
from difflab.core.dtypes import FORMATS, FloatFormat
from difflab.core.place import SourceLocation
from difflab.graph.builder import Builder
from difflab.graph.exactly import exact_elements
from difflab.graph.function import Function, inline
from difflab.rounding.evaluation import evaluated

Array = NDArray[np.float64]
DIGITS = (40, 80, 160, 320)
"""Decimal digits of the truth, until two agree."""


@dataclass(frozen=True)
class OperationDtype:
    """The dtype of one operation or input, and what it saves.

    Attributes
    ----------
    node : int
    operation : str
        The name of the primitive; "input" for an input.
    text : str
        Its source.
    site : SourceLocation
    dtype : str
    saved : int
        Bits that it saves at each point, against float64.
    error : float
        What its rounding adds to the error at most, to first order, as a part of the tolerance.
    refused : str
        Why the next narrower dtype does not do.
    """

    node: int
    operation: str
    text: str
    site: SourceLocation
    dtype: str
    saved: int
    error: float
    refused: str


@dataclass(frozen=True, eq=False)
class DtypeAssignment:
    """Result of `difflab.cheapest_dtypes`.

    Attributes
    ----------
    function : Function
        Value and gradient (Jacobian) in one graph.
    original : Function
    tolerance, floor : float
    over : dict of str to (float, float)
    operations : tuple of OperationDtype
        In evaluation order.
    code : str
        NumPy code; empty where an operation has none.
    verified : float
        The largest error at the verified points, as a part of the tolerance.
    points : int
        Points at which the graph was run, and
    compared : int
        of them those that were compared with mpmath, the worst ones among them.
    worst : dict of str to value
        The point with the largest error.
    formats : tuple of FloatFormat or None
    """

    function: Function
    original: Function
    tolerance: float
    over: dict[str, tuple[float, float]]
    operations: tuple[OperationDtype, ...]
    code: str
    verified: float
    points: int
    compared: int
    worst: dict[str, Any]
    formats: tuple[FloatFormat | None, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of operations and inputs of each dtype."""
        names = [each.dtype for each in self.operations]
        return {name: names.count(name) for name in FORMATS if name in names}

    @property
    def bits(self) -> int:
        """The bits of all results, at one point."""
        return self.bits_of_double - sum(each.saved for each in self.operations)

    @property
    def bits_of_double(self) -> int:
        """The bits of all results in float64."""
        graph = self.function.graph
        return sum(64 * math.prod(graph.shape(each.node)) for each in self.operations)

    def values(self, points: Array) -> Array:
        """Return value and gradient at packed points ``(N, n)``, in the assigned dtypes."""
        return run(self.function, np.asarray(points, np.float64), self.formats)[1]


def joint(function: Function) -> Function:
    """Return value and Jacobian as one function, equal operations once."""
    builder = Builder(function.graph.source)
    pairs = zip(function.inputs, function.input_shapes, strict=True)
    inputs = [builder.input(name, shape) for name, shape in pairs]
    value = inline(function, builder, inputs)
    derived = gradient(function) if function.m == 1 else jacobian(function)
    slopes = inline(derived, builder, inputs)
    names = [*function.output_names, *derived.output_names]
    return Function.build(builder, inputs, [*value, *slopes], names)


def run(
    function: Function, points: Array, formats: Sequence[FloatFormat | None]
) -> tuple[list[Any], Array]:
    """Return the values of all nodes, and the flattened outputs, at points ``(N, n)``."""
    known = dict(zip(function.input_nodes, function.split(points), strict=True))
    values = evaluated(function.graph, known, formats)
    batch = points.shape[:-1]
    flat = [
        np.broadcast_to(np.asarray(values[node], np.float64), (*batch, *shape)).reshape(*batch, -1)
        for node, shape in zip(function.outputs, function.output_shapes, strict=True)
    ]
    return values, np.concatenate(flat, axis=-1)


def truth(function: Function, point: Array) -> list[float]:
    """Return the flattened outputs in mpmath, with digits that agree."""
    import mpmath

    before: list[Any] | None = None
    for digits in DIGITS:
        with mpmath.workdps(digits):
            flat = exact_elements(function, point)
            if before is not None and all(
                mpmath.almosteq(a, b, rel_eps=1e-20, abs_eps=1e-300)
                for a, b in zip(flat, before, strict=True)
            ):
                break
            before = flat
    return [float(number) for number in flat]
