"""The numeric derivative with respect to one component of a tree, with its error bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from difflab.differences.window import first_half, slope_along
from difflab.errors import PointError
from difflab.testing.trees.arguments import prepared
from difflab.testing.trees.probe import Probe


class NumericDerivative(NamedTuple):
    """A derivative, a bound on its error, and the name of the component."""

    value: float
    bar: float
    name: str


def numeric_derivative(f: Callable[[Any], Any], x: Any, index: int) -> NumericDerivative:
    """Return the derivative of a scalar function with respect to one component.

    Parameters
    ----------
    f : callable
        Function of `x` that returns a scalar, or a ``torch.nn.Module``.
    x : array or tree
        The point, as for `check_gradient`.
    index : int
        The component among all real numbers of `x`, in order; complex numbers are two.

    Raises
    ------
    difflab.errors.PointError
        There is no such component, or `f` does not return one number.

    Examples
    --------
    >>> found = numeric_derivative(lambda p: np.sum(p["w"] ** 3), {"w": np.array([1.0, 2.0])}, 1)
    >>> found.name, round(found.value, 6), found.bar < 1e-8
    ('p["w"][1]', 12.0, True)
    """
    f, point = prepared(f, x)
    if not 0 <= index < point.n:
        raise PointError(f"there is no component {index}: the arguments have {point.n}")
    probe = Probe(f, point)
    if probe.center.size != 1:
        raise PointError(f"f returns {probe.center.size} numbers, not one")
    along, length = np.zeros(point.n), point.magnitude(index)
    along[index] = length
    changes = probe.residual(along, np.zeros((1, point.n)), start=index, stop=index + 1)
    half = first_half(probe.eps, alone=True)
    found = slope_along(changes, probe.rounding, half, np.zeros(1)).per(length)
    return NumericDerivative(float(found.value[0]), float(found.bar[0]), point.name(index))
