"""Lowering of array operations for machine code, which has no bit masks and no scalars apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from difflab.core.primitive import Primitive
from difflab.execute.lower.arrays.lowering import ArrayLowering
from difflab.execute.lower.ops import FLOAT, OpForm
from difflab.execute.lower.record import RecordedValue, spelled_form
from difflab.execute.targets.llvm.functions import SPELLINGS
from difflab.primitives import is_maximum


class MachineLowering(ArrayLowering):
    """Selects by `select`, without bit masks; scalars are computed as arrays of one element."""

    def _masked(self, condition: Any, value: Any) -> Any:
        zero = np.float64(0.0)
        return self.add(OpForm.SELECT, value.shape, [condition, value, zero], value.shape, FLOAT)

    def last_maximum(self, x: Any, *, axes: tuple[int, ...], rank: int) -> Any:
        """Mark the last maximum by comparisons; nan is larger than any number."""
        sizes = [size if a - rank in axes else 1 for a, size in enumerate(x.shape)]
        indices = np.reshape(np.arange(float(math.prod(sizes))), sizes)
        largest = np.logical_or(x == np.max(x, axis=axes, keepdims=True), x != x)
        candidates = np.where(largest, indices, np.float64(-1.0))
        return indices == np.max(candidates, axis=axes, keepdims=True)

    forms: ClassVar = {**ArrayLowering.forms, is_maximum: last_maximum}

    def scalar(self, row: Primitive, args: Sequence[Any], dtype: np.dtype[Any]) -> RecordedValue:
        """Apply an elementwise row to scalars."""
        reads = [self.number(arg) for arg in args]
        kinds = [self.kind_of(number) for number in reads]
        number = self.inline(spelled_form(row, kinds, SPELLINGS), reads)
        return RecordedValue(self, number, (), dtype)
