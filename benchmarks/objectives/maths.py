"""The array modules of the objectives, and the functions whose names differ between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.arrays import logsumexp

__all__ = ["Maths", "difflab_maths"]


def _looped(step: Callable[..., Any], carry: Any, *sequences: Any) -> Any:
    for k in range(len(sequences[0])):
        carry = step(carry, *[sequence[k] for sequence in sequences])
    return carry


@dataclass(frozen=True)
class Maths:
    """An array module, and the functions whose names differ between packages.

    Attributes
    ----------
    xp : module
        With NumPy's names: ``exp``, ``stack``, ``where`` and so on.
    array : callable
        NumPy's array to one of the module.
    sigmoid : callable
        1/(1 + exp(-x)).
    logsumexp : callable
        ``logsumexp(x, axis)``, computed without overflow.
    loop : callable
        ``loop(step, carry, *sequences)``: ``carry = step(carry, *elements)``, element by element.
    """

    xp: Any
    array: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    logsumexp: Callable[[Any, int], Any]
    loop: Callable[..., Any] = _looped


def difflab_maths() -> Maths:
    """Return NumPy's functions, which difflab traces."""
    return Maths(np, np.asarray, lambda x: 1.0 / (1.0 + np.exp(-x)), logsumexp)
