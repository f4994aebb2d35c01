"""`check_gradient`: compare a hand-written gradient with numeric differentiation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Literal

import numpy as np

from difflab.errors import InputError
from difflab.graph.arguments import Arguments
from difflab.graph.pytree import LEAF, flatten
from difflab.testing.checker.arguments import Point
from difflab.testing.checker.check import check_tree
from difflab.testing.checker.given import (
    ArrayPoint,
    is_module,
    is_tree,
    named_arguments,
    numbers_of,
    of_chosen,
    of_several,
    parameter_name,
    point_of,
    prepared,
)
from difflab.testing.checker.message import GradientMismatch, GradientUnjudged, ImpureFunction
from difflab.testing.checker.probe import evaluations_shown
from difflab.testing.checker.truth import DEFAULT, CheckSettings
from difflab.testing.declared import DeclaredGradient, declared_gradient, traced_arguments

__tracebackhide__ = True  # pytest shows the message and the test, no frame of this module

__all__ = [
    "GradientMismatch",
    "GradientUnjudged",
    "ImpureFunction",
    "check_gradient",
    "judged_gradient",
]

Callee = Callable[..., Any]

_LARGEST = 250
"""Components of an array up to which each is judged on its own."""


def check_gradient(
    f: Callee,
    gradient: Callee | Any | None = None,
    x: Any = None,
    *others: Any,
    argnums: int | Sequence[int] | None = None,
    rtol: float = 1e-8,
    atol: float = 0.0,
    unjudged: Literal["fail", "warn"] = "fail",
    method: str = "richardson",
) -> None:
    r"""Raise `GradientMismatch` unless `gradient` is the derivative of `f` at `x`.

    Every component is judged on its own scale: it passes when

    .. math:: |g - d| \le \mathrm{rtol}\,|d| + \mathrm{atol} + \Delta,

    where :math:`d` is the numeric derivative and :math:`\Delta` its error bar. A wrong component
    that is tiny compared with the others therefore fails, and a correct gradient of an
    ill-conditioned function passes. If the error bar is too wide to decide and `f` can be traced,
    :math:`d` is computed from high-precision mpmath values, and :math:`\Delta` is the change of
    `gradient` between neighbouring floating-point inputs. At a kink every value between the
    one-sided derivatives passes.

    If `f` cannot be traced, the noise of its values is estimated from points further away before
    a component is reported as wrong: code that rounds its result, iterates to a tolerance or
    chooses its own steps has errors far larger than one rounding, and :math:`\Delta` then
    includes them. A component whose :math:`\Delta` exceeds a tenth of the derivative cannot be
    judged, because a wrong value would pass as well; the check then fails.

    Trees, and arrays of JAX, PyTorch or another dtype, are given to `f` as they are, in their
    dtype, whose rounding sets the error bars. Complex gradients are
    :math:`\partial f/\partial\,\mathrm{Re}\,z + i\,\partial f/\partial\,\mathrm{Im}\,z`
    in NumPy and PyTorch, and its conjugate in JAX, as these frameworks define them; those of
    complex results are :math:`dy/dz`.

    A gradient that `f` declares by `difflab.stop_gradient` or a `difflab.CustomFunction`, such as
    that of a straight-through estimator, passes too: it is that of the graph with these rules,
    and without them the graph has the derivative. A custom function is named in a warning, for
    its rule may be wrong: `difflab.testing.check_custom_function` checks that.

    With many components the derivative is compared along a few directions, from at most 20
    evaluations of a function that is smooth around the point, and 4 vectors of memory. A wrong
    component is found by bisection, in about :math:`2\log_2 n` further evaluations. A check that
    takes more than two seconds counts its evaluations on standard error, if that is a terminal.

    Parameters
    ----------
    f : callable
        Function of `x`, and of `others` if given, that returns a scalar or an array. A
        ``torch.nn.Module`` is a function of its parameters too.
    gradient : callable, tree or array_like, optional
        The derivative: a function of `x`, or its value. Without it, the derivative by the
        framework of the arrays is checked: PyTorch's, JAX's, or difflab's for NumPy. Its
        structure is that of `x`, and each shape is the shape of the result of `f` followed by
        that of the array. For one NumPy array, a flattened ``(m, n)`` Jacobian or ``(n,)``
        gradient is also accepted.
    x : array_like or tree
        The point: numbers, an array, or dicts, lists, tuples, dataclasses and named tuples of
        them, in one argument. `f` is called with a float for a scalar, with a float64 array for
        a list of numbers, and otherwise with what was given. Integers and strings are settings.
    *others : array_like or tree
        Further arguments of `f` and `gradient`. The gradient then is a tuple or list of one part
        for each argument, in order: zeros for an argument on which `f` does not depend.
    argnums : int or sequence of int, optional
        The arguments that the gradient is by, as for `difflab.grad`: with a number, `gradient`
        returns the derivative by that argument alone, and with a sequence one part for each. It
        is called with all arguments, and the others are not moved. By default it is by all.
    rtol : float
        Relative tolerance, added to the error bar.
    atol : float
        Absolute tolerance. A component whose error bar is at most `atol` can be judged.
    unjudged : {"fail", "warn"}
        Whether components that could not be judged fail the check or emit a warning.
    method : str
        Name of a numeric method of `difflab.methods`.

    Raises
    ------
    GradientMismatch
        A component is wrong or nan, or the shape does not match. It is an `AssertionError`,
        so tests fail with its message.
    GradientUnjudged
        No component is wrong, but some could not be judged. It is a `GradientMismatch`.
    ImpureFunction
        Two calls of `f` at the point differ, or `f` changes its argument: it runs on a copy, and
        the message says what was read, or where it was written to. It is a `GradientMismatch`.
    difflab.errors.DomainError
        `f` is not finite at `x`.
    difflab.errors.GraphMismatchError
        There is no gradient by hand, difflab's is wrong, and the graph that it differentiates has
        another value than `f`.

    Examples
    --------
    >>> import numpy as np
    >>> check_gradient(lambda x: np.sum(x**2), lambda x: 2 * x, [1.0, 2.0])
    >>> check_gradient(lambda x: np.sum(x**2), lambda x: -2 * x, [1.0, 2.0])
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientMismatch: the gradient is wrong in 2 of 2 components
    ...

    Several arguments:

    >>> def area(width, height):
    ...     return np.sum(width * height)
    >>> check_gradient(area, lambda width, height: (height, width), np.ones(3), np.arange(3.0))

    The gradient by one of them:

    >>> check_gradient(area, lambda w, h: h, np.ones(3), np.arange(3.0), argnums=0)

    A tree, and the component that is wrong in it:

    >>> def loss(params):
    ...     return np.sum(np.tanh(params["w"] @ np.ones(2)) + params["b"])
    >>> point = {"w": np.ones((3, 2)), "b": np.zeros(3)}
    >>> check_gradient(loss, x=point)

    The second term is lost in the rounding of the first, and ``float`` prevents tracing:

    >>> f = lambda x: float(1e12 * x[0] ** 2 + 1e-6 * x[1])
    >>> check_gradient(f, lambda x: [2e12 * x[0], 5e-6], [1.0, 2.0])
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientUnjudged: could not judge component x[1]
    ...
    """
    settings = CheckSettings(rtol, atol, unjudged, method)
    declared = judged_gradient(f, gradient, x, *others, argnums=argnums, settings=settings)
    if declared is not None and set(declared.rules) != {"stop_gradient"}:
        warnings.warn(f"{declared}; check_custom_function checks a rule", stacklevel=2)


def judged_gradient(
    f: Callee,
    gradient: Callee | Any | None = None,
    x: Any = None,
    *others: Any,
    argnums: int | Sequence[int] | None = None,
    settings: CheckSettings = DEFAULT,
) -> DeclaredGradient | None:
    """Check a gradient as `check_gradient` does; return how it is declared, if it is.

    Raises
    ------
    GradientMismatch
        As for `check_gradient`.
    difflab.errors.GraphMismatchError
        There is no gradient by hand, and the graph that difflab differentiates is not `f`.

    Examples
    --------
    >>> import difflab as dl
    >>> declared = judged_gradient(lambda x: x * dl.stop_gradient(x), None, 3.0)
    >>> declared.rules, declared.yours, declared.derivative
    (('stop_gradient',), 3.0, 6.0)
    """
    if x is None:
        raise InputError("the point is missing", hint="check_gradient(f, gradient, x)")
    arguments: tuple[Any, ...] = (x, *others)
    if argnums is not None:
        f, gradient, arguments = of_chosen(f, gradient, arguments, argnums)

    def check(slope: Any) -> None:
        _judged(f, slope, arguments, settings)

    try:
        check(gradient)
    except GradientMismatch as wrong:
        if isinstance(wrong, ImpureFunction) or is_module(f):
            raise
        values = tuple(map(numbers_of, arguments))
        if gradient is None and not isinstance(wrong, GradientUnjudged):
            _require_same_graph(f, values)
        declared = declared_gradient(f, gradient, values, lambda slope: _accepted(check, slope))
        if declared is None:
            raise
        return declared
    return None


def _accepted(check: Callable[[Any], None], slope: Any) -> bool:
    try:
        check(slope)
    except GradientMismatch:
        return False
    return True


def _require_same_graph(f: Callee, arguments: Sequence[Any]) -> None:
    """Raise `GraphMismatchError` if the graph of a function has another value than it."""
    from difflab.graph.trace import is_leaf
    from difflab.graph.verify import require_traced

    graph = traced_arguments(f, arguments)
    if graph is None:
        return
    pairs = [([each], LEAF) if is_leaf(each) else flatten(each) for each in arguments]
    names = tuple(f"x{k + 1}" for k in range(len(arguments))) if len(arguments) > 1 else ("x",)
    leaves = [leaf for flat, _ in pairs for leaf in flat]
    trees = Arguments(names, tuple(tree for _, tree in pairs))
    require_traced(graph, f, trees, leaves, partial(traced_arguments, f, arguments))


def _judged(f: Callee, gradient: Any, arguments: tuple[Any, ...], settings: CheckSettings) -> None:
    """Raise `GradientMismatch` unless `gradient` is right; see `check_gradient`."""
    x, *others = arguments
    if is_module(f) and not others:  # its parameters are found by its type
        f, point = prepared(f, x)
        return check_tree(f, gradient, point, settings)
    size = sum(prod(getattr(leaf, "shape", ())) for leaf in flatten(arguments)[0])
    with evaluations_shown(f, size) as shown:
        if others:
            return check_tree(*of_several(shown, gradient, arguments), settings)
        named_arguments(f, arguments)
        name = parameter_name(f)
        if is_tree(x) or np.size(x) > _LARGEST:
            own = is_tree(x) or (isinstance(x, np.ndarray) and x.dtype == np.float64)
            point = Point(x if own else point_of(x), name)
            return check_tree(shown, gradient, point, settings)
        if gradient is None:
            from difflab.autodiff import jacrev

            gradient = jacrev(shown)
        return check_tree(shown, gradient, ArrayPoint(x, name), settings)
