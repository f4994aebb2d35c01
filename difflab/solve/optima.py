"""`minimize`: a local minimum, in bounds if there are any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab import arrays
from difflab.autodiff.control.solutions import Rule
from difflab.autodiff.recording import Contents
from difflab.autodiff.solutions.descent import Descent, stationary
from difflab.autodiff.solutions.implicit import Equations, Implicit
from difflab.core.conversions import as_float64
from difflab.errors import InputError, ShapeError
from difflab.graph.function import Function
from difflab.graph.pytree import LEAF, flatten
from difflab.solve.calls import (
    Derivative,
    Equation,
    OptimizeResult,
    as_array,
    known_values,
    require_count,
    require_tolerances,
    unknowns,
)
from difflab.solve.equations import TOL, result


@dataclass(frozen=True)
class Bounds:
    """Bounds of unknowns, by which a minimum is differentiated as by any parameter.

    Attributes
    ----------
    lb, ub : tree
        The smallest and the largest values: for each leaf of the unknowns a number, or an array of
        its shape. None is no bound.
    """

    lb: Any = None
    ub: Any = None


def minimize(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    derivative: Derivative = "implicit",
    bounds: Any = None,
    tol: float = TOL,
    maxiter: int = 200,
) -> OptimizeResult:
    r"""Return a local minimum of f(x, \*params), by Newton's method with a line search.

    .. math:: f_x(x(p), p) = 0, \qquad \dot x = -f_{xx}^{-1} f_{xp} \, \dot p

    An unknown at an active bound has the derivative of the bound.

    Parameters
    ----------
    f : callable
        ``f(x, *params)`` returns a number.
    x0 : tree
        The first value; it is projected onto the bounds.
    *params : tree
        The parameters.
    derivative : {"implicit", "unrolled"}
        What is differentiated: the equations of the minimum, or the steps.
    bounds : Bounds, or sequence of pairs, optional
        `difflab.solve.Bounds` or `scipy.optimize.Bounds`; or a pair ``(lower, upper)`` for each
        element of `x0`, with None for no bound.
    tol : float
        As in `root`.
    maxiter : int
        The largest number of steps.

    Returns
    -------
    OptimizeResult
        ``x``, ``fun`` (the smallest value), ``success`` and ``nit``.

    Raises
    ------
    ConvergenceError
        It does not converge, or to a point at which the Hessian is not positive definite; or, in
        a derivative, the Hessian is singular. In compiled code, and in a batch, x or the derivative
        is nan instead.
    InputError
        A lower bound is above the upper one, or nan; or an option is no number.
    ShapeError
        `f` does not return a number, or a bound has another shape than its unknown.

    Notes
    -----
    Each step solves a linear system with the Hessian. Where a bound is just about to become
    active, the minimum has a kink in the parameters, and the derivative is that of one side.

    References
    ----------
    Nocedal and Wright, *Numerical Optimization* (2006), chapter 3. Bertsekas, "Projected Newton
    methods for optimization problems with simple constraints", SIAM J. Control 20 (1982).
    Griewank and Walther, *Evaluating Derivatives* (2008), chapter 15.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> rosenbrock = lambda x, a: (1 - x[0]) ** 2 + a * (x[1] - x[0] ** 2) ** 2
    >>> start = np.array([-1.2, 1.0])
    >>> dl.solve.minimize(rosenbrock, start, 100.0).x.round(12)
    array([1., 1.])
    >>> held = lambda top: dl.solve.minimize(
    ...     rosenbrock, start, 100.0, bounds=dl.solve.Bounds(None, top)
    ... ).x[1]
    >>> round(float(held(0.5)), 12), round(float(dl.grad(held)(0.5)), 12)
    (0.25, 1.0)
    """
    require_tolerances("minimize", tol=tol)
    require_count(maxiter, "maxiter", "minimize")
    equation = Equation("minimize", f, x0, params)
    if equation.run.function.output_shapes != ((),):
        raise ShapeError("the function of minimize returns a number")
    more = [] if bounds is None else _leaves(equation, bounds)
    details = equation.count, bool(more), float(tol), int(maxiter)
    solution = unknowns(equation, _descent, derivative, *details, more=more)
    return result(equation, solution)


def _descent(
    function: Function, count: int, bounded: bool, tol: float, maxiter: int
) -> tuple[Function, Rule]:
    """Return Newton's method for an objective, and the rule of its minimum."""
    equations = Equations(Contents(stationary(function, count, bounded=bounded)))
    solver = Descent(equations, tol, maxiter, Contents(function), bounded)
    return solver.function(), Implicit("minimize", equations)


def _leaves(equation: Equation, bounds: Any) -> list[Any]:
    """Return the lower bounds of all unknowns, then the upper ones, each of the unknown's shape."""
    shapes = equation.run.function.input_shapes[: equation.count]
    if hasattr(bounds, "lb"):
        sides = [bounds.lb, bounds.ub]
    else:
        sides = _pairs(bounds, shapes)
    flat: list[Any] = []
    for given, missing in zip(sides, (-np.inf, np.inf), strict=True):
        side = given
        if isinstance(side, list) and equation.structure == LEAF:
            side = as_array([missing if end is None else end for end in side])
        leaves = [missing] if side is None else _bound_leaves(side, missing)
        if len(leaves) == 1 and len(shapes) > 1:
            leaves = leaves * len(shapes)
        if len(leaves) != len(shapes):
            raise ShapeError(
                f"there are {len(leaves)} bounds for {len(shapes)} arrays of unknowns",
                hint="bounds have the structure of x0, or are one number for all",
            )
        for leaf, shape in zip(leaves, shapes, strict=True):
            value = as_float64(leaf, "a bound of minimize")
            flat.append(arrays.broadcast_to(value, shape) if value.shape != shape else value)
    lower, upper = (known_values(flat[k * len(shapes) :][: len(shapes)]) for k in (0, 1))
    for low, high in zip(lower or [], upper or [], strict=lower is not None and upper is not None):
        if not np.all(low <= high):
            raise InputError(
                f"bounds of minimize contradict each other: the lower one is {low}, and the upper"
                f" one {high}",
                hint="write the lower bound first; None is no bound",
            )
    return flat


def _bound_leaves(side: Any, missing: float) -> list[Any]:
    """Return the leaves of the bounds on one side; None is a leaf, for no bound."""
    leaves, structure = flatten(side)
    rest = iter(leaves)
    return [missing if one == ("none",) else next(rest) for one in structure.tokens if len(one) < 2]


def _pairs(bounds: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """Return pairs ``(lower, upper)``, one per element of the only unknown, as two arrays."""
    pairs = [bounds] if shapes == ((),) or not np.iterable(bounds) else list(bounds)
    if len(shapes) != 1 or not all(
        (isinstance(pair, tuple | list) or np.ndim(pair) == 1) and len(pair) == 2 for pair in pairs
    ):
        raise InputError(
            "bounds of minimize are pairs (lower, upper), one per element of an array x0",
            hint="for other unknowns: bounds=dl.solve.Bounds(lower, upper)",
        )
    if len(pairs) != int(np.prod(shapes[0])):
        raise ShapeError(f"there are {len(pairs)} bounds for unknowns of the shape {shapes[0]}")
    sides = []
    for place, missing in enumerate((-np.inf, np.inf)):
        ends = [missing if pair[place] is None else pair[place] for pair in pairs]
        sides.append(arrays.stack(ends).reshape(shapes[0]) if shapes[0] else ends[0])
    return sides
