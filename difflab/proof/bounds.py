"""`enclose`: proved bounds of a function and its derivatives at a point or over a box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.balls.limit import TIMEOUT, in_time, shown_as
from difflab.core.system import require_memory
from difflab.diagnose.point_check import checked_point, packed
from difflab.errors import InputError, MethodTimeout, PointError
from difflab.graph.checks import require_timeout
from difflab.graph.function import Function
from difflab.language import given_names, parse

if TYPE_CHECKING:
    from difflab.balls.enclosure import Enclosure


Box = list[tuple[float, float]]


def enclose(
    f: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    order: int = 1,
    width: float | None = None,
    timeout: float = TIMEOUT,
) -> Enclosure:
    """Return proved bounds of a function's value and derivatives at a point or over a box.

    The function is evaluated in ball arithmetic over FLINT's power series: the derivatives follow
    from FLINT's expansions of the elementary functions, not from difflab's rules. At a point, the
    precision is raised until the bounds are adjacent floats. Over a box X with the centre c, the
    natural enclosure is intersected with the mean-value form, ``f(X) ⊂ f(c) + f′(X)(X - c)``.

    Parameters
    ----------
    f : str or Function
        A formula of n flattened inputs.
    at : mapping, optional
        For every input a number or an array of its shape, or a tuple of two, the lower and the
        upper end of an interval. If None, a point inside the domain is chosen.
    order : int
        The highest derivative: 0, 1 (the Jacobian) or 2 (the Hessian too).
    width : float, optional
        The box is divided until no bound exceeds the range by more than this, or until 4096
        pieces are reached, or only neighbourhoods of obstacles are left.
    timeout : float
        Seconds after which the bounds are returned that are proved until then.

    Returns
    -------
    Enclosure
        With ``value``, ``jacobian`` of shape ``(m, n)`` and ``hessian`` of shape ``(n, n)``, each
        with ``lower`` and ``upper``, rounded outward. Where a kink, a jump, a pole or the edge of
        the domain is on the box, or cannot be excluded, ``smooth`` is false, ``obstacles`` says
        which operation it is, and the bounds of the derivatives are nan. ``stopped`` says how far
        the computation came if the time limit ended it.

    Raises
    ------
    InputError
        The formula, the point, the order, the width or the time limit is invalid.
    UnsupportedError
        A custom function cannot be recorded, or python-flint is missing.

    See Also
    --------
    compare : judges methods at a point.

    Examples
    --------
    >>> import difflab as dl
    >>> e = dl.enclose("ln(x1) + x1*x2 - sin(x2)", at={"x1": 2, "x2": (4.9, 5.1)})
    >>> e.jacobian.lower.round(6), e.jacobian.upper.round(6)
    (array([[5.4     , 1.622022]]), array([[5.6     , 1.813488]]))
    >>> e.smooth
    True
    >>> print(dl.enclose("abs(x)", {"x": 0}).obstacles[0])
    kink in y: abs has a kink at 0; its argument is 0 (column 1)

    References
    ----------
    F. Johansson, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic, IEEE
    Trans. Computers 66, 2017. R. E. Moore, R. B. Kearfott and M. J. Cloud, Introduction to
    Interval Analysis, SIAM, 2009.
    """
    function = as_function(f, at)
    if not isinstance(order, int) or order not in (0, 1, 2):
        raise InputError(f"order must be 0, 1 or 2, not {order!r}")
    if width is not None and not (isinstance(width, int | float) and 0 < width < math.inf):
        raise InputError(f"width must be a positive number, not {width!r}")
    require_timeout(timeout)
    size = 16 * function.m * (1 + function.n if order < 2 else 1 + function.n + function.n**2)
    require_memory(size, "the bounds of the derivatives")
    box = box_of(function, at)
    from difflab.balls.enclosing import enclosed, unbounded

    try:
        with shown_as("enclose"):
            enclosure: Enclosure = in_time(enclosed, function, box, order, width, timeout=timeout)
    except MethodTimeout as error:  # a call of FLINT did not return
        partial: Enclosure | None = getattr(error.progress, "partial", None)
        if partial is not None:
            return replace(partial, stopped=str(error))
        return unbounded(function, order, str(error))
    return enclosure


def as_function(f: str | Function, at: object = None) -> Function:
    """Return a formula as a Function; names to which `at` gives values are variables.

    Raises
    ------
    InputError
        It is neither.
    """
    if isinstance(f, Function):
        return f
    if isinstance(f, str):
        return parse(f, given_names(at))
    raise InputError(
        f"expected a formula or a Function, not a {type(f).__name__}",
        hint="record Python code with difflab.trace(callable, *example_arguments)",
    )


def box_of(function: Function, at: Mapping[str, Any] | None) -> Box:
    """Return the interval of every flattened input.

    Raises
    ------
    PointError
        A value is missing, unknown, not finite or of the wrong shape, or an interval is not one.
    """
    if not isinstance(at, Mapping):
        ends = [checked_point(function, at)] * 2
    else:
        for name, value in at.items():
            if isinstance(value, tuple) and len(value) != 2:
                raise PointError(
                    f"the interval of '{name}' has {len(value)} ends",
                    hint="give a tuple (low, high); for an array's elements, a list",
                )
        corners = [{name: _end(value, side) for name, value in at.items()} for side in (0, 1)]
        ends = [checked_point(function, corner, inside=False) for corner in corners]
    low, high = (packed(function, end) for end in ends)
    for name in function.inputs:
        if np.any(np.asarray(ends[0][name]) > np.asarray(ends[1][name])):
            raise PointError(f"the lower end of the interval of '{name}' is above the upper end")
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _end(value: Any, side: int) -> Any:
    return value[side] if isinstance(value, tuple) else value
