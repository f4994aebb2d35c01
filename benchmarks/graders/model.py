"""A published function with its gradient in parts, in any array namespace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

__all__ = ["Array", "Model", "Term", "constant", "padded"]

Array = NDArray[float64]
Term = Callable[[Any, Any], Any]
"""``term(xp, x)``: `xp` is ``numpy``, ``jax.numpy``, ``torch`` or ``autograd.numpy``."""


@dataclass(frozen=True)
class Model:
    """A function at a point, with its gradient as the sum of parts, and ways to get it wrong.

    Attributes
    ----------
    x : ndarray
        The point.
    value : callable
        ``(xp, x) -> scalar``.
    parts : tuple of callable
        Summands of the gradient, ``(xp, x) -> array`` of the shape of `x`.
    inner : callable, optional
        The gradient with an inner derivative of the chain rule left out.
    detached : int, optional
        The part through a subexpression; without it, that subexpression is taken as constant.
    transposed : callable, optional
        The gradient with a matrix in place of its transpose.
    branch : callable, optional
        The gradient with the derivative from the wrong side of a kink, in a component of `x`.
    kind : {"smooth", "kink", "ill-conditioned", "noisy"}
        What makes a check of it difficult.
    """

    x: Array
    value: Term
    parts: tuple[Term, ...]
    inner: Term | None = None
    detached: int | None = None
    transposed: Term | None = None
    branch: Term | None = None
    kind: str = "smooth"

    def gradient(self, xp: Any, x: Any) -> Any:
        """Return the right gradient."""
        return self.without(None)(xp, x)

    def without(self, left_out: int | None) -> Term:
        """Return the gradient with one of its parts left out."""
        kept = [part for number, part in enumerate(self.parts) if number != left_out]

        def gradient(xp: Any, x: Any) -> Any:
            total = kept[0](xp, x)
            for part in kept[1:]:
                total = total + part(xp, x)
            return total

        return gradient


def constant(xp: Any, values: Any, x: Any) -> Any:
    """Return constant numbers as an array of the namespace, of the precision of `x`."""
    return xp.asarray(np.asarray(values), dtype=getattr(x, "dtype", None))


def padded(xp: Any, v: Any, before: int, after: int) -> Any:
    """Return a vector with up to one zero added at either end."""
    zero = 0 * v[:1]
    return xp.concatenate((zero,) * before + (v,) + (zero,) * after)
