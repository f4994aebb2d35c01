"""The corpus: right gradients of published functions, and wrong ones with planted faults.

`case(number)` builds any of them again from its number alone. The class of a fault is the number
modulo the number of classes, so a slice of the corpus has every class if its stride is coprime
to that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.graders.faults import FAULTS
from benchmarks.graders.hard import DIFFICULT, ILL_CONDITIONED, KINKED, MATRICES
from benchmarks.graders.model import Model, Term
from benchmarks.graders.smooth import SMOOTH
from difflab.errors import InputError

__all__ = ["DTYPES", "PLANTED", "RIGHT", "GradientCase", "case", "smallest_error"]

RIGHT = range(1000)
"""Numbers of the cases whose gradient is right."""
PLANTED = range(1000, 2200)
"""Numbers of the cases whose gradient has a planted fault."""
DTYPES = ("float64", "float32", "float16")
"""The precisions, from most to fewest cases."""

_SIZES = {
    "float64": (2, 3, 5, 10, 30, 100, 300, 1000),
    "float32": (2, 3, 5, 10, 30, 100),
    "float16": (2, 3, 5, 10),
}
_SHARES = (0.6, 0.25, 0.15)
_SINGLE = {**SMOOTH, **MATRICES, **KINKED}
_DOUBLE = {**_SINGLE, **ILL_CONDITIONED}
_MARGIN = 3.0  # times the rounding of a forward difference, by which a fault must be visible
_LARGEST = 2000  # beyond which float16 has no odd integers


@dataclass(frozen=True)
class GradientCase:
    """A function, a gradient that claims to be its own, and a point.

    Attributes
    ----------
    number : int
        The number from which `case` builds it.
    function : str
        The name of the published function.
    kind : {"smooth", "kink", "at a kink", "ill-conditioned", "noisy"}
        What makes a check of it difficult.
    fault : str
        The class of the planted fault, a key of `FAULTS`; empty if the gradient is right.
    dtype : str
        The precision in which value and gradient are computed.
    x : ndarray of `dtype`
        The point: a vector, or a square matrix.
    value, gradient : callable
        ``(xp, x)``, where `xp` is ``numpy``, ``jax.numpy``, ``torch`` or ``autograd.numpy``.
    """

    number: int
    function: str
    kind: str
    fault: str
    dtype: str
    x: NDArray[Any]
    value: Term
    gradient: Term

    def f(self, x: Any) -> Any:
        """Return the value at a NumPy array, computed in the precision of the case."""
        return self.value(np, self._cast(x))

    def g(self, x: Any) -> Any:
        """Return the claimed gradient at a NumPy array, computed in that precision."""
        return self.gradient(np, self._cast(x))

    def _cast(self, x: Any) -> Any:
        return x if self.dtype == "float64" else np.asarray(x, dtype=self.dtype)


def smallest_error(dtype: str) -> float:
    r"""Return the smallest relative error that is planted: :math:`\max(10^{-3}, 10\sqrtε)`.

    Ten times the rounding error of a forward difference with the best step, in that precision.

    Examples
    --------
    >>> [f"{smallest_error(dtype):.1e}" for dtype in DTYPES]
    ['1.0e-03', '3.5e-03', '3.1e-01']
    """
    return max(1e-3, 10 * math.sqrt(np.finfo(dtype).eps))


def case(number: int) -> GradientCase:
    """Return the case of a number of `RIGHT` or `PLANTED`.

    Raises
    ------
    difflab.errors.InputError
        There is no case of this number.

    Examples
    --------
    >>> case(1000).fault, case(1003).fault, case(7).fault
    ('sign', 'transposed', '')
    """
    if number not in RIGHT and number not in PLANTED:
        raise InputError(
            f"there is no case {number}", hint=f"give a number from 0 to {PLANTED.stop - 1}"
        )
    fault = list(FAULTS)[(number - PLANTED.start) % len(FAULTS)] if number in PLANTED else ""
    rng = np.random.default_rng(number)
    with np.errstate(all="ignore"):
        return next(filter(None, (_attempt(number, fault, rng) for _ in count())))


def _attempt(number: int, fault: str, rng: Generator) -> GradientCase | None:
    """Return a random case; None if it has no such fault, or one too small to be seen."""
    dtype = str(rng.choice(DTYPES, p=_SHARES))
    table = {"float64": _DOUBLE, "float32": _SINGLE, "float16": {**SMOOTH, **MATRICES}}[dtype]
    if dtype == "float64" and not fault:
        table = {**table, **DIFFICULT}
    name = str(rng.choice(list(table)))
    model = table[name](rng, int(rng.choice(_SIZES[dtype])))
    gradient: Term | None = model.gradient
    if fault:
        gradient = FAULTS[fault](model, rng, smallest_error(dtype))
    if gradient is None:
        return None
    made = GradientCase(
        number, name, model.kind, fault, dtype, model.x.astype(dtype), model.value, gradient
    )
    accepted = _accurate(model, made) and (not fault or _visible(model, made))
    return made if accepted else None


def _accurate(model: Model, made: GradientCase) -> bool:
    """Return whether value and right gradient are finite and hardly affected by the precision."""
    if made.dtype == "float16" and not _small(model, made):
        return False
    here = made.x.astype(float)
    try:
        exact, found = model.gradient(np, here), model.gradient(np, made.x)
    except (TypeError, np.linalg.LinAlgError):  # linear algebra has no float16
        return False
    off = np.max(np.abs(exact - found)) / np.max(np.abs(exact))
    return bool(np.isfinite(made.f(made.x)) and off <= math.sqrt(np.finfo(made.dtype).eps))


def _small(model: Model, made: GradientCase) -> bool:
    return bool(abs(model.value(np, made.x.astype(float))) < _LARGEST)


def _visible(model: Model, made: GradientCase) -> bool:
    r"""Return whether a component is wrong by more than rounding can hide.

    Its relative error is at least `smallest_error`, and over a step as large as the component
    it changes the value by more than :math:`3\sqrtε` of itself, and of its rounding.
    """
    here, eps = made.x.astype(float), float(np.finfo(made.dtype).eps)
    right, wrong = (np.asarray(g(np, here)) for g in (model.gradient, made.gradient))
    value = abs(float(model.value(np, here)))
    value += abs(float(made.f(made.x)) - float(model.value(np, here))) / eps
    error = np.abs(wrong - right)
    relative = error >= 0.99 * smallest_error(made.dtype) * np.maximum(np.abs(right), np.abs(wrong))
    seen = error * np.abs(here) >= _MARGIN * math.sqrt(eps) * value
    return bool(np.any(relative & seen & (error > 0)))
