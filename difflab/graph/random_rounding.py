"""Monte Carlo arithmetic: the rounding of a computation, measured by random roundings.

A graph is computed a few times with every constant and result perturbed by a random rounding; the
spread of its results estimates their rounding errors (D. S. Parker, *Monte Carlo Arithmetic*, UCLA
CSD-970002, 1997). Comparisons of a graph with its source use it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.core.wording import exact, significant
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.ir import Number

DRAWS = 6
"""Evaluations with random roundings that measure the rounding of a computation."""


class RandomRounding(ArrayInterpreter):
    """Moves every value by one rounding or two, up or down at random.

    Comparisons and primitives that only move elements are exact, and so are integers computed from
    integers.

    Parameters
    ----------
    eps : float
        The relative rounding of the dtype.
    seed : int
        Of the random numbers.

    Examples
    --------
    >>> from difflab.language import parse
    >>> f = parse("(1 + x) - 1")
    >>> moved = [f.values([1e-12], RandomRounding(2.0**-52, seed))[0] for seed in range(DRAWS)]
    >>> bool(max(abs(value - 1e-12) for value in moved) > 1e-16)
    True
    """

    def __init__(self, eps: float, seed: int, xp: ModuleType = np) -> None:
        super().__init__(xp)
        self._eps = eps
        self._draw = np.random.default_rng(seed)

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel, whose result is moved; integers of integers are exact."""
        compute = super().operation(primitive)
        # Steps such as `floor` are integers, whatever the rounding of their argument.
        is_step = primitive.is_piecewise_constant and primitive.ulps == 0
        if primitive.boolean or primitive.structural or is_step:
            return compute

        def rounded(*args: Any, **params: Any) -> Any:
            whole = all(np.array_equal(arg, np.rint(arg)) for arg in args)
            return self.moved(compute(*args, **params), keep_integers=whole)

        return rounded

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the constant, moved."""
        return self.moved(super().constant(value, name))

    def moved(self, value: Any, *, keep_integers: bool = True) -> Any:
        """Perturb values randomly; integers are unchanged if they are exact in the dtype."""
        value = np.asarray(value)
        if value.dtype not in (np.float64, np.float32):
            return value
        steps = self._draw.choice([-2.0, -1.0, 1.0, 2.0], value.shape)
        perturbed = (value * (1.0 + self._eps * steps)).astype(value.dtype)
        if keep_integers:
            whole = (value == np.rint(value)) & (np.abs(value) * self._eps <= 1.0)
            perturbed = np.where(whole, value, perturbed)
        return perturbed[()]


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Return the texts of two floats with enough digits to show that they differ.

    Examples
    --------
    >>> told_apart(1.0, 2.0), told_apart(1.0, 1.0 + 1e-8)
    (('1', '2'), ('1', '1.00000001'))
    """
    for digits in (4, 6, 9, 12):
        texts = significant(one, digits), significant(other, digits)
        if texts[0] != texts[1]:
            return texts
    return exact(one), exact(other)
