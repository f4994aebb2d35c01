"""Partial derivatives of any order, by one variable or several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

from difflab.autodiff.engine.jacobian_entries import elements
from difflab.autodiff.functions.flat import element_index, gradient, owner_of
from difflab.autodiff.functions.series import higher_derivative
from difflab.autodiff.transforms.jacobian import jacobian
from difflab.errors import InputError
from difflab.graph.checks import require_function
from difflab.graph.counts import operation_count
from difflab.graph.function import Function
from difflab.graph.names import output_names

_BY_SERIES = 3
"""The order from which Taylor coefficients may take fewer operations than repeated gradients."""
_TRIED = 10_000
"""Nodes up to which mixed derivatives are derived in every order of up to three variables."""


def partial(f: Function, *variables: str) -> Function:
    r"""Return a partial derivative of any order, as a function of the same inputs.

    ``partial(f, "x", "y", "y")`` is :math:`\partial^3 f / \partial x\,\partial y^2`. No other
    derivative of that order is computed.

    Parameters
    ----------
    f : Function
        With any outputs.
    *variables : str
        The variables, one for each order: inputs that are scalars, such as ``"x"``, and elements of
        arrays, such as ``"w[0,2]"``.

    Returns
    -------
    Function
        It has an output for each element of the outputs.

    Raises
    ------
    InputError
        `f` is not a Function, no variable is named, or one is not an element of the inputs.

    Notes
    -----
    Each variable's derivatives follow from repeated gradients or from Taylor coefficients, and
    different variables in the order that takes the fewest operations.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x^2*sin(y)")
    >>> print(dl.partial(f, "x", "y"))
    2*x*cos(y)
    >>> f = dl.parse("x: [3]; x[0]^2*x[2]^3")
    >>> float(dl.partial(f, "x[0]", "x[2]", "x[2]")([1.0, 2.0, 3.0]))
    36.0
    """
    require_function(f, "partial")
    if not variables:
        raise InputError("partial needs a variable", hint='such as dl.partial(f, "x", "y")')
    for variable in variables:
        if not isinstance(variable, str):
            raise InputError(f"partial takes the names of variables, not {variable!r}")
    return mixed_derivative(f, [element_index(f, variable) for variable in variables])


def mixed_derivative(function: Function, columns: Sequence[int]) -> Function:
    """Return the derivative by several input elements, each repeated as often as its order."""
    orders = Counter(columns)
    small = len(orders) <= 3 and len(function.graph) <= _TRIED
    trials = []
    for chosen in permutations(orders) if small else [tuple(orders)]:
        derivative = function
        for column in chosen:
            derivative = partial_derivative(derivative, column, orders[column])
        trials.append(derivative)
    return min(trials, key=operation_count)


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
    position, inside = owner_of(function, column)
    owner, size = function.inputs[position], math.prod(function.input_shapes[position])
    for _ in range(order):  # by one input: slopes by the others need not exist
        whole = gradient(function, wrt=owner) if m == 1 else jacobian(function, wrt=owner)
        function = elements(whole, range(inside, m * size, size), names)
        if series is not None and operation_count(function) > most:
            return series
    return function
