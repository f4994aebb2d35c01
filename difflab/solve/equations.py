"""`root`, `fixed_point` and `linear`: the solution of as many equations as unknowns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from difflab import arrays
from difflab.autodiff.control.rows import zeros
from difflab.autodiff.control.solutions import Rule
from difflab.autodiff.recording import Contents, computed
from difflab.autodiff.solutions.implicit import Equations, Implicit, divided, nan_unless, norm
from difflab.autodiff.solutions.newton import Newton, Picard
from difflab.errors import ConvergenceError, InputError
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.pytree import unflatten
from difflab.graph.rewritten import composed, inlined
from difflab.graph.values import in_precision
from difflab.solve.calls import (
    Derivative,
    Equation,
    OptimizeResult,
    known_values,
    require_count,
    require_tolerances,
    solved,
    unknowns,
)

TOL = 1.49012e-08
"""SciPy's `xtol`, the square root of the spacing of float64 at 1."""
SAME = 1e-8
"""Relative difference up to which a function returns what its matrix does."""


def root(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    derivative: Derivative = "implicit",
    tol: float = TOL,
    maxiter: int = 100,
) -> OptimizeResult:
    r"""Return x with f(x, \*params) = 0, by Newton's iteration with a line search.

    .. math:: f(x(p), p) = 0, \qquad \dot x = -f_x^{-1} f_p \, \dot p

    The derivative of the result is that of the solution: one linear system for each tangent or
    cotangent (``"implicit"``), or that of the steps (``"unrolled"``).

    Parameters
    ----------
    f : callable
        ``f(x, *params)`` returns what looks like `x`: as many equations as unknowns. It is written
        with NumPy's functions, and traced.
    x0 : tree
        The first value: a number, an array, or a tree of them; a list of numbers is an array, as
        in SciPy. The implicit derivative by it is zero.
    *params : tree
        The parameters.
    derivative : {"implicit", "unrolled"}
        What is differentiated: the equation or the steps.
    tol : float
        The iteration goes on until its steps no longer become shorter. It has converged if the
        last one is shorter than `tol` times x, or, near zero, than `tol` times the largest iterate
        or 1, whichever is smaller; x is more accurate than that.
    maxiter : int
        The largest number of steps.

    Returns
    -------
    OptimizeResult
        ``x``, ``fun`` (the residual), ``success`` and ``nit``, as `scipy.optimize.root` names them.

    Raises
    ------
    ConvergenceError
        It does not converge; or, in a derivative, the Jacobian is singular at the solution. In
        compiled code, and in a batch, x or the derivative is nan instead.
    ShapeError
        `f` returns other shapes than those of `x`.

    Notes
    -----
    The solution has a relative error of about the rounding error of `f` times the condition number
    of its Jacobian, and the implicit derivative likewise. At a double root, where there is no
    derivative, the Jacobian changes by a half in Newton's last step. If it changes by more
    than a thousandth the derivative is nan.

    References
    ----------
    Griewank and Walther, *Evaluating Derivatives* (2008), chapter 15. Blondel et al., "Efficient
    and modular implicit differentiation", NeurIPS 2022. Christianson, "Reverse accumulation and
    attractive fixed points", Optimization Methods and Software 3 (1994).

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> f = lambda x, a: x**2 - a
    >>> result = dl.solve.root(f, 1.0, 2.0)
    >>> round(float(result.x), 12), result.success, result.nit
    (1.414213562373, True, 5)

    The derivative of √a, and the second one:

    >>> square_root = lambda a: dl.solve.root(f, 1.0, a).x
    >>> float(dl.grad(square_root)(4.0)), float(dl.grad(dl.grad(square_root))(4.0))
    (0.25, -0.03125)

    A system whose unknowns and parameters are trees:

    >>> def meet(x, p):
    ...     return {"u": x["u"] * x["v"] - p[0], "v": x["u"] + x["v"] - p[1]}
    >>> first = {"u": 1.0, "v": 5.0}
    >>> solution = dl.solve.root(meet, first, (6.0, 5.0)).x
    >>> round(float(solution["u"]), 12), round(float(solution["v"]), 12)
    (2.0, 3.0)
    """
    require_tolerances("root", tol=tol)
    require_count(maxiter, "maxiter", "root")
    equation = Equation("root", f, x0, params)
    equation.require_like_unknowns()
    solution = unknowns(equation, _newton, derivative, float(tol), int(maxiter))
    return result(equation, solution)


def _newton(function: Function, tol: float, maxiter: int) -> tuple[Function, Rule]:
    """Return Newton's iteration for a residual, and the rule of its solution."""
    equations = Equations(Contents(function))
    return Newton(equations, tol, maxiter).function(), Implicit("root", equations)


def result(equation: Equation, solution: list[Any]) -> OptimizeResult:
    """Return the result of a solver, given its outputs."""
    count = equation.count
    x, steps = solution[:count], solution[count]
    fun = computed(equation.run.function, [*x, *equation.values[count:]])
    traced = hasattr(steps, "__difflab_apply__")
    finite = sum(0.0 * np.sum(leaf) for leaf in x) == 0.0
    return OptimizeResult(
        unflatten(equation.structure, x),
        equation.run.result(fun),
        finite if traced else True,
        steps if traced else int(steps),
    )


def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    derivative: Derivative = "implicit",
    xtol: float = 1e-8,
    maxiter: int = 10_000,
) -> Any:
    r"""Return x with f(x, \*params) = x, by the iteration x ← f(x).

    .. math:: \dot x = (1 - f_x)^{-1} f_p \, \dot p

    Parameters
    ----------
    f : callable
        ``f(x, *params)`` returns what looks like `x`.
    x0 : tree
        The first value.
    *params : tree
        The parameters.
    derivative : {"implicit", "unrolled"}
        What is differentiated: the equation or the steps.
    xtol : float
        The relative error at which it has converged, estimated from the last step and the rate
        ρ at which steps become shorter as ρ/(1 - ρ) times the step. The iteration goes on
        until the estimate reaches the rounding error.
    maxiter : int
        The largest number of steps.

    Returns
    -------
    tree
        The fixed point, with the structure of `x0`.

    Raises
    ------
    ConvergenceError
        It does not converge, as where f is no contraction; `root` may find the fixed point then.
    ShapeError
        `f` returns other shapes than those of `x`.

    References
    ----------
    Christianson, "Reverse accumulation and attractive fixed points", Optimization Methods and
    Software 3 (1994).

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> kepler = lambda E, M, e: M + e * np.sin(E)
    >>> anomaly = lambda M, e: dl.solve.fixed_point(kepler, M, M, e)
    >>> E = anomaly(1.0, 0.3)
    >>> slope = dl.grad(anomaly)(1.0, 0.3)
    >>> round(float(slope - 1 / (1 - 0.3 * np.cos(E))), 12) + 0.0
    0.0
    """
    require_tolerances("fixed_point", xtol=xtol)
    require_count(maxiter, "maxiter", "fixed_point")
    equation = Equation("fixed_point", f, x0, params)
    equation.require_like_unknowns()
    limits = float(xtol), int(maxiter)
    solution = unknowns(equation, _picard, derivative, equation.count, *limits)
    return unflatten(equation.structure, solution[: equation.count])


def _picard(function: Function, count: int, xtol: float, maxiter: int) -> tuple[Function, Rule]:
    """Return the iteration of a fixed point, and the rule of its solution."""

    def change(nodes: list[Node]) -> list[Node]:
        following = inlined(function, nodes)
        return [after - before for after, before in zip(following, nodes, strict=False)]

    equations = Equations(Contents(composed(change, function.input_shapes)))
    return Picard(equations, xtol, maxiter).function(), Implicit("fixed_point", equations)


def linear(a: Any, b: Any, *params: Any) -> Any:
    r"""Return x with a x = b, for a matrix or for a linear function ``a(x, *params)``.

    .. math:: a \dot x = \dot b - \dot a x, \qquad \bar b = a^{-T} \bar x

    Parameters
    ----------
    a : array of shape (n, n), or callable
        The matrix; or a function, linear in x, that returns what looks like `b`. The matrix of a
        function is computed, with n columns.
    b : tree
        The right side: an array of shape (n,) or (n, k); for a function any tree.
    *params : tree
        The parameters of a function.

    Returns
    -------
    array or tree
        What looks like `b`.

    Raises
    ------
    ConvergenceError
        The matrix is singular, or a function is not linear in x. In compiled code, and in a
        batch, x is nan instead.
    InputError
        Parameters are given with a matrix.

    Notes
    -----
    The error of x, and of its derivative, is about the rounding error times the condition number
    of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> dl.solve.linear(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    >>> smooth = lambda x, k: x + k * (2 * x - np.roll(x, 1) - np.roll(x, -1))
    >>> total = lambda k: np.sum(dl.solve.linear(smooth, np.array([1.0, 0.0, 0.0]), k) ** 2)
    >>> float(total(0.0)), float(dl.grad(total)(0.0))
    (1.0, -4.0)
    """
    if callable(a):
        equation = Equation("linear", a, b, params)
        equation.require_like_unknowns()
        solution = solved(equation, equation.values, _matrix, "implicit", equation.count)
        x = [in_precision(*pair) for pair in zip(solution, equation.precisions, strict=True)]
        answer = unflatten(equation.structure, x)
    else:
        if params:
            raise InputError("linear takes parameters for a function, and this is a matrix")
        answer = arrays.linalg.solve(a, b)
        x = [answer]
    known = known_values(x)
    if known is not None and not all(np.isfinite(leaf).all() for leaf in known):
        why = ", or the function is not linear in x" if callable(a) else ""
        raise ConvergenceError(
            f"linear finds no solution: the matrix is singular, or not finite{why}"
        )
    return answer


def _matrix(function: Function, count: int) -> tuple[Function, None]:
    """Return the solution of a linear system; the first inputs are the right side."""
    equations = Equations(Contents(function))

    def solution(nodes: list[Node]) -> list[Node]:
        right = equations.joined(nodes[:count])
        zero = 0.0 * equations.joined(zeros(right.builder, equations.shapes))
        (slope,) = inlined(equations.slope, [zero, *nodes[count:]])
        x = divided(slope, right)
        # Of a function that is affine, or not linear, the matrix at 0 says nothing about x.
        (value,) = inlined(equations.flat, [x, *nodes[count:]])
        product, size = (
            (slope @ x, np.abs(slope) @ np.abs(x)) if x.shape else (slope * x, np.abs(slope * x))
        )
        straight = norm(value - product) <= SAME * norm(size)
        return equations.parts(nan_unless(straight, x))

    return composed(solution, function.input_shapes), None
