"""The operations of the ladder, on arrays of float64 and on arrays of objects.

The ladder is stated once. `FLOATS` computes it with NumPy's functions; with an arithmetic of nodes
(`difflab.methods.numeric.compiled_stencil`) the same code records a graph, for compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


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
    candidates : callable
        ``candidates(weights, quotients)``: return the value, the spread and the guard of each
        candidate of `difflab.differences.extrapolation.Weights`, each ``(E, N)``.
    least : callable
        Return, from errors ``(E, N)``, which candidate has the smallest one in each column; the
        result may have any form.
    chosen : callable
        ``chosen(candidates, pick)``: return, from ``(E, N)``, the picked candidates ``(N,)``.
    picked : callable
        ``picked(weights, name, array, pick)``: return the products of an array ``(K, N)`` with the
        rows of the matrix `name` of the picked candidates, ``(N,)``.
    """

    where: Callable[..., Any]
    greater: Callable[..., Any]
    larger: Any
    smaller: Any
    larger_known: Any
    applied: Callable[..., Any]
    candidates: Callable[..., Any]
    least: Callable[..., Any]
    chosen: Callable[..., Any]
    picked: Callable[..., Any]


def _candidates(weights: Any, quotients: Any) -> Any:
    return (weights.stacked @ quotients).reshape(3, len(weights.value), -1)


def _picked(weights: Any, name: str, array: Any, pick: Any) -> Any:
    return (getattr(weights, name)[pick].T * array).sum(axis=0)


FLOATS = Arithmetic(
    where=np.where,
    greater=np.greater,
    larger=np.maximum,
    smaller=np.minimum,
    larger_known=np.fmax,
    applied=np.matmul,
    candidates=_candidates,
    least=lambda errors: errors.argmin(axis=0),
    chosen=lambda candidates, pick: candidates[pick, np.arange(pick.size)],
    picked=_picked,
)
"""The operations on arrays of float64."""
