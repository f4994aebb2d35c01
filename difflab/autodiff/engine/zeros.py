"""Structural zeros: where the derivative along a direction vanishes at every point.

A seed that is nonzero in a few elements of an array is zero in the others, and zero times the
infinite slope of ``sqrt`` at 0 would be nan. Such seeds are therefore masked like branches
that are not taken. Their masks depend on no input: they are evaluated during the sweep, and
the graph has a mask only where it holds for some elements and not for others, and a slope may
be infinite. Slopes that overflow are considered under the mask of a branch only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.masked import Masked
from difflab.autodiff.engine.recipe import Recipe
from difflab.core.primitive import ByArgument, Custom, LinearMap, Primitive
from difflab.graph.builder import Builder
from difflab.graph.ir import CONSTANT, INPUT, Number
from difflab.primitives import constant_array, not_equal, scatter

FEW = 16
"""Number of true elements up to which a mask is written as their indices."""

SHORT = 4096
"""Number of elements up to which a mask is stored as a constant, not computed in every call."""


class Zeros:
    """The masks of a sweep whose values are known without calling the function.

    Parameters
    ----------
    builder : Builder
        The builder of the derivative.
    """

    def __init__(self, builder: Builder, function: int) -> None:
        self.builder = builder
        self.function = function
        """The number of nodes of the function itself, which are not evaluated."""
        self.units: set[int] = set()
        """Inputs that hold unit seeds; one element of each is not zero."""
        self.branches: set[int] = set()
        """Masks of what is replaced: as under those of branches, slopes may overflow."""
        self._values: dict[int, NDArray[Any] | None] = {}

    def seeded(self, seed: int) -> Masked | None:
        """Return a seed with the mask of its nonzero elements; None if all are zero."""
        builder = self.builder
        self._values.clear()
        fixed = builder.shape(seed) != () and self._value(seed) is not None
        if not fixed and seed not in self.units:
            return Masked(seed)
        mask = builder.emit(not_equal, (seed, builder.constant(0)))
        return self.simplified(Masked(seed, mask, clean=True))

    def simplified(self, part: Masked) -> Masked | None:
        """Drop a mask that holds everywhere; return None if it holds nowhere."""
        if part.mask is None:
            return part
        truths = self._value(part.mask)
        if truths is None:
            return part
        if truths.all():
            return Masked(part.value)
        if not truths.any():
            return None
        return Masked(part.value, self._shortened(part.mask, truths), part.clean)

    def stamped(self, recipe: Recipe, value: int, part: Masked, slots: Sequence[int]) -> Masked:
        """Return the derivative `value` that a recipe gives of `part` with its mask.

        A derivative that is zero where its mask is false stays so if the slope is finite. Under
        the mask of a branch the slope must be a known number, as others may overflow there.
        """
        numbers = [*map(self.builder.number, slots), *(value for value, _ in recipe.constants)]
        assert part.mask is not None
        if self._value(part.mask) is None:
            reads = [numbers[slot] for slot in recipe.reads]
            finite = all(number is not None and math.isfinite(number) for number in reads)
        else:
            finite = all(self._finite[slots[slot]] for slot in recipe.reads)
        for row, operands, _ in recipe.steps:
            finite = finite and _is_finite(row, [numbers[operand] for operand in operands])
            numbers.append(None)
        return Masked(value, part.mask, part.clean and (finite or value == part.value))

    @cached_property
    def _finite(self) -> bytearray:
        """Mark the nodes of the function that are finite wherever its inputs are."""
        marks = bytearray(self.function)
        builder = self.builder
        for node in range(self.function):
            row, args = builder.primitive(node), builder.arguments(node)
            if row is None:
                marks[node] = node not in builder.constants or math.isfinite(
                    builder.constants[node][0]
                )
            elif all(marks[arg] for arg in args):
                marks[node] = _is_finite(row, [builder.number(arg) for arg in args])
        return marks

    def _shortened(self, mask: int, truths: NDArray[np.bool_]) -> int:
        """Return a known mask as a constant if it is small."""
        builder = self.builder
        if np.count_nonzero(truths) <= FEW:
            keys = tuple(map(tuple, np.argwhere(truths).tolist()))
            ones = [builder.constant(1)] * len(keys)
            marks = builder.emit(scatter, ones, (("keys", keys), ("shape", truths.shape)))
        elif truths.size <= SHORT:
            values = truths.astype(np.float64).tobytes()
            params = (("shape", truths.shape), ("values", values))
            marks = builder.emit(constant_array, (), params)
        else:
            return mask
        short = builder.emit(not_equal, (marks, builder.constant(0)))
        self._values[short] = truths
        return short

    def _value(self, node: int) -> NDArray[Any] | None:
        """Return the value of a node that depends on no input, else None."""
        values = self._values
        size = len(values)
        stack = [node]
        while stack:
            current = stack[-1]
            args = [] if current in values else self._arguments(current)
            waiting = [arg for arg in args if arg not in values]
            stack += waiting
            if not waiting:
                stack.pop()
                if current not in values:
                    values[current] = self._computed(current, args)
        value = values[node]
        for passed in list(values)[size:]:  # intermediate values, not needed again
            del values[passed]
        values[node] = value
        return value

    def _arguments(self, node: int) -> Sequence[int]:
        return self.builder.arguments(node) if node >= self.function else ()

    def _computed(self, node: int, args: Sequence[int]) -> NDArray[Any] | None:
        """Return the value of a node whose arguments' values are known, or known to vary."""
        builder = self.builder
        opcode = builder.opcode[node]
        if opcode == CONSTANT:
            return np.asarray(float(builder.constants[node][0]))
        if node < self.function or opcode == INPUT or node in self.branches:
            return None
        operands = [value for arg in args if (value := self._values[arg]) is not None]
        row = builder.primitive(node)
        if row is None or len(operands) < len(args):
            return None
        return np.asarray(row.computer(np)(*operands, **builder.params(node)))


def _is_finite(row: Primitive, numbers: Sequence[Number | None]) -> bool:
    """Whether the result is finite for all finite arguments, of which some are known constants."""
    if row.degrees:
        pairs = zip(row.degrees, numbers, strict=True)
        return all(bool(number) for degree, number in pairs if degree < 0)
    if row.polynomial:
        exponent = numbers[1]
        return exponent is not None and exponent >= 0 and float(exponent).is_integer()
    if row.structural:
        return True
    linear = isinstance(row.rule, LinearMap) or (
        isinstance(row.rule, ByArgument) and row.rule.is_product
    )
    entire = not row.defined and row.expansion is None and not isinstance(row.rule, Custom)
    return entire and (row.shape is None or linear)
