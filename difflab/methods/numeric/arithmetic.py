"""The operations of the first pass, on float64 and on nodes of a graph.

The first pass is stated once, on arrays: `FLOATS` computes it with NumPy's functions, and
`difflab.methods.numeric.compiled_stencil` records it from arrays of nodes, for compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.methods.numeric.extrapolation import solve, tail

__all__ = ["FLOATS", "Arithmetic"]


@dataclass(frozen=True)
class Arithmetic:
    """The operations that arrays of objects lack, or compute differently.

    Attributes
    ----------
    where, greater : callable
        As NumPy's.
    larger, smaller, larger_known : ufunc
        NumPy's `maximum`, `minimum` and `fmax`.
    applied : callable
        The product of a constant matrix with an array.
    solved, tail : callable
        `difflab.methods.numeric.extrapolation.solve` and `tail`; the candidates that are picked
        may be described in any way.
    jumps : callable
        ``jumps(weights, curvature)``: return the jump of the one-sided derivatives by each
        candidate, ``(E, N)``.
    chosen : callable
        ``chosen(candidates, pick)``: return, from ``(E, N)``, the picked candidates ``(N,)``.
    """

    where: Callable[..., Any]
    greater: Callable[..., Any]
    larger: Any
    smaller: Any
    larger_known: Any
    applied: Callable[..., Any]
    solved: Callable[..., Any]
    tail: Callable[..., Any]
    jumps: Callable[..., Any]
    chosen: Callable[..., Any]


FLOATS = Arithmetic(
    where=np.where,
    greater=np.greater,
    larger=np.maximum,
    smaller=np.minimum,
    larger_known=np.fmax,
    applied=np.matmul,
    solved=solve,
    tail=tail,
    jumps=lambda weights, curvature: weights.jump @ curvature,
    chosen=lambda candidates, pick: candidates[pick, np.arange(pick.size)],
)
"""The operations on arrays of float64."""
