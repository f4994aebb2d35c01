"""When two results of one computation differ by more than rounding.

Both compute the same operations, each right to a few units in the last place, in orders of their
own. Where results differ by more than `CLOSE` such units, the graph is evaluated with every
operation's result and operands moved by about each of `MOVES`, relatively, and sums and products
formed in another order: what that changes, scaled to a rounding error, is what rounding may change.
The sine of a large number changes no more by a large move than by a small one, so that the smallest
is about a rounding error. A value is moved by its own bits, so that equal values stay equal and
ties stay ties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function, evaluate
from difflab.primitives import max_, maximum, min_, minimum, prod, put, scatter, sum_, where

__all__ = ["FORMULAS", "agree", "noise"]

CLOSE = 32
"""Units in the last place that a few operations of 4 units each come to."""
MOVES = (0.0, 2.0**-36, 2.0**-50)
"""By 0 nothing is moved, and only the order changes: what cancels exactly in one order leaves
something in another, and nothing if each term is moved."""
ROUNDINGS = 64
"""Roundings of 2⁻⁵² that one operation may err by: a sum of 64 terms, a row of 4 units and more."""
SAMPLES, MANY_SAMPLES = 4, 64
"""Of each move; many where few do not explain a difference: the sine of a large number may return
to the same value four times by chance."""
FORMULAS = 1e-12
"""What NumPy's and JAX's own formulas lose, absolutely: JAX's slope of tanh is 1 - y², which rounds
to 2⁻⁵³ where the slope is small, and later factors enlarge that."""
_KEEPS = frozenset({max_, min_, maximum, minimum, where})
_REDUCING = {prod: np.multiply, sum_: np.add}
_ADDING = frozenset({put, scatter})
"""Rows that add what they move to one place."""


class _Moved(ArrayInterpreter):
    """Arithmetic whose results are moved by a fraction of themselves."""

    def __init__(self, move: float, sample: int) -> None:
        super().__init__()
        self.move = move
        self.sample = sample

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel, moved where it rounds."""
        kernel = primitive.computer(np)
        moves_data = primitive.structural and primitive not in _ADDING
        if primitive.boolean or moves_data or primitive in _KEEPS:
            return kernel
        if primitive.shape is None:
            return lambda *args, **params: self._moved(kernel(*args, **params))

        def mixing(*args: Any, **params: Any) -> Any:
            """Sums may cancel: every term is moved for itself."""
            moved = [self._moved(arg, apart=1 + place) for place, arg in enumerate(args)]
            if primitive in _REDUCING:  # what overflows or vanishes on the way depends on the order
                moved = [self._shuffled(moved[0], params["axes"], _REDUCING[primitive])]
            return self._moved(kernel(*moved, **params))

        return mixing

    def _shuffled(self, value: Any, axes: Sequence[int], operation: np.ufunc) -> Any:
        """Put the terms in another order, from any of the axes to any other; half of the time
        reduce two parts first, as vectors do: one may overflow where the other one vanishes.
        """
        last = tuple(range(-len(axes), 0))
        terms = np.moveaxis(value, axes, last)
        flat = terms.reshape(*terms.shape[: terms.ndim - len(axes)], -1)
        mixed = np.random.default_rng(self.sample).permutation(flat, axis=-1)
        if self.sample % 2 and mixed.shape[-1] > 1:
            starts = [0, mixed.shape[-1] // 2]
            mixed[..., :2] = operation.reduceat(mixed, starts, axis=-1)
            mixed[..., 2:] = operation.identity
        return np.moveaxis(mixed.reshape(terms.shape), last, axes)

    def _moved(self, value: Any, apart: int = 0) -> Any:
        array = np.asarray(value)
        if array.dtype.kind != "f":
            return value
        fraction = np.frexp(np.abs(array))[0] * (1e5 + 7919.0 * self.sample)
        if apart:
            fraction = fraction + np.arange(array.size).reshape(array.shape) * 0.618 + 0.3 * apart
        moved = array * (1.0 + self.move * (2.0 * (fraction - np.floor(fraction)) - 1.0))
        return np.where(np.isinf(array), array, moved)


def noise(
    function: Function, values: Sequence[Any], wanted: Sequence[Any], samples: int
) -> list[Any]:
    """Return for every output how far rounding may move it, at one point or a batch."""
    found = [np.full(np.shape(right), 1e-300) for right in wanted]
    with np.errstate(all="ignore"):
        for move, sample in product(MOVES, range(samples)):
            results = evaluate(function, [np.asarray(v) for v in values], _Moved(move, sample))
            for place, (result, right) in enumerate(zip(results, wanted, strict=True)):
                far = np.abs(np.subtract(result, right, dtype=np.float64))
                same = np.equal(result, right) | (np.isnan(result) & np.isnan(right))
                far = np.where(same, 0.0, np.where(np.isnan(far), np.inf, far))
                scale = ROUNDINGS * (2.0**-52 / move) if move else 1.0
                found[place] = np.maximum(found[place], scale * far)
    return found


def agree(
    found: Sequence[Any],
    wanted: Sequence[Any],
    moves: Callable[[int], Sequence[Any]],
    what: str,
    others: float = 0.0,
) -> None:
    """Raise AssertionError where outputs differ by more than rounding.

    ``moves(samples)`` is the `noise` of the outputs; `others` is what other formulas than
    difflab's lose, of the largest number of an output or 1.
    """
    assert len(found) == len(wanted), f"{what}: {len(found)} outputs, not {len(wanted)}"
    moved = cache(moves)
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert np.shape(one) == np.shape(other), f"{what}: {np.shape(one)}, not {np.shape(other)}"
        a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        if a.tobytes() == b.tobytes():
            continue
        with np.errstate(all="ignore"):
            far = np.abs(a - b)
            same = (far <= CLOSE * np.spacing(np.abs(b))) | (a == b) | (np.isnan(a) & np.isnan(b))
            if same.all():
                continue
            largest = max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0.0))
            for samples in (SAMPLES, MANY_SAMPLES):
                bound = moved(samples)[place]
                same |= (far <= bound + others * largest) | np.isinf(bound)
                if same.all():
                    break
        assert same.all(), (
            f"{what}: output {place}, element {np.argwhere(~same)[0].tolist()} of {same.shape}, is "
            f"{a[~same][0]}, not {b[~same][0]}: rounding explains {np.asarray(bound)[~same][0]}"
        )
