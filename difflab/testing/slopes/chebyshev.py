"""Interpolation at Chebyshev points of the first kind, around a point whose value is known."""

from __future__ import annotations

import numpy as np
from numpy import float64
from numpy.typing import NDArray

__all__ = ["Chebyshev"]

Array = NDArray[float64]


class Chebyshev:
    r"""The odd and even part of :math:`f(t) = \sum_j c_j T_j(t/H)` from an odd number of nodes.

    Attributes
    ----------
    positive : ndarray (k,)
        The positive nodes relative to H, from the largest; the middle node is 0.
    orders : ndarray (k,)
        The odd orders j.
    to_odd, to_even : ndarray (k, k)
        From values of the odd or even part at the positive nodes, zero at 0, to its coefficients
        of the orders j, or j + 1.
    slopes : ndarray (k,)
        :math:`T_j'(0)` for odd j.
    growth : ndarray (k,)
        The norms of the first slopes: the noise of a slope relative to that of a coefficient.

    Examples
    --------
    >>> nodes = Chebyshev(9)
    >>> odd = nodes.to_odd @ np.sin(nodes.positive)
    >>> bool(abs(nodes.slopes @ odd - 1.0) < 1e-6)
    True
    """

    def __init__(self, nodes: int) -> None:
        angles = np.pi * (np.arange(nodes // 2) + 0.5) / nodes
        self.positive: Array = np.cos(angles)
        self.orders = np.arange(1, nodes, 2)
        self.to_odd: Array = (4.0 / nodes) * np.cos(np.outer(self.orders, angles))
        self.to_even: Array = (4.0 / nodes) * np.cos(np.outer(self.orders + 1, angles))
        self.slopes: Array = self.orders * (-1.0) ** (self.orders // 2)
        self.growth: Array = np.sqrt(np.cumsum(self.orders.astype(float64) ** 2))
