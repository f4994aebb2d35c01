"""Partial derivatives of any order by one variable."""

from __future__ import annotations

import math

from difflab.autodiff.engine.jacobian_entries import elements
from difflab.autodiff.functions.series import higher_derivative
from difflab.autodiff.functions.transforms import gradient, jacobian
from difflab.graph.counts import operation_count
from difflab.graph.function import Function
from difflab.graph.names import output_names

__all__ = ["partial_derivative"]

_BY_SERIES = 3
"""The order from which Taylor coefficients may take fewer operations than repeated gradients."""


def partial_derivative(function: Function, column: int, order: int = 1) -> Function:
    """Return ∂ᵏf/∂xᵏ by one element x of the inputs, as a function of the same inputs.

    By repeated gradients, or by Taylor coefficients where these take fewer operations.

    Parameters
    ----------
    function : Function
        With any outputs.
    column : int
        The index of x among the flattened inputs.
    order : int
        The order k.

    Returns
    -------
    Function
        It has an output for each element of the outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> float(partial_derivative(dl.parse("x^3*y"), 0, 2)(2.0, 5.0))
    60.0
    """
    m = function.m
    names = function.output_names if m == len(function.outputs) else output_names([None] * m)
    series = None if order < _BY_SERIES else higher_derivative(function, column, order, names)
    most = math.inf if series is None else operation_count(series)
    for _ in range(order):
        whole = gradient(function) if m == 1 else jacobian(function)
        function = elements(whole, range(column, m * function.n, function.n), names)
        if series is not None and operation_count(function) > most:
            return series
    return function
