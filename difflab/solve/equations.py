"""`root`: the solution of as many equations as unknowns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.autodiff.control.solutions import Rule
from difflab.autodiff.recording import Contents, computed
from difflab.autodiff.solutions.implicit import Equations, Implicit
from difflab.autodiff.solutions.newton import Newton
from difflab.graph.function import Function
from difflab.graph.pytree import unflatten
from difflab.solve.calls import Derivative, Equation, OptimizeResult, solved

__all__ = ["root"]

TOL = 1.49012e-08
"""SciPy's `xtol`, the square root of the spacing of float64 at 1."""


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
        The first value: a number, an array, or a tree of them. The implicit derivative by it is
        zero.
    *params : tree
        The parameters.
    derivative : {"implicit", "unrolled"}
        What is differentiated: the equation or the steps.
    tol : float
        The iteration goes on until its steps no longer become shorter. It has converged if the
        last one is shorter than `tol` times the largest iterate; x is more accurate than that.
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
    >>> found = dl.solve.root(meet, first, (6.0, 5.0)).x
    >>> round(float(found["u"]), 12), round(float(found["v"]), 12)
    (2.0, 3.0)
    """
    equation = Equation("root", f, x0, params)
    equation.require_like_unknowns()
    found = solved(equation, _newton, derivative, equation.count, tol, maxiter)
    return result(equation, found, lambda values: computed(equation.run.function, values))


def _newton(function: Function, count: int, tol: float, maxiter: int) -> tuple[Function, Rule]:
    """Return Newton's iteration for a residual, and the rule of its solution."""
    equations = Equations(Contents(function))
    return Newton(equations, tol, maxiter).function(), Implicit("root", equations)


def result(
    equation: Equation, found: list[Any], value: Callable[[list[Any]], list[Any]]
) -> OptimizeResult:
    """Return the result of a solver, given its outputs and what computes `fun`."""
    count = equation.count
    x, steps = found[:count], found[count]
    fun = value([*x, *equation.values[count:]])
    traced = hasattr(steps, "__difflab_apply__")
    finite = sum(0.0 * np.sum(leaf) for leaf in x) == 0.0
    return OptimizeResult(
        unflatten(equation.structure, x),
        equation.run.result(fun),
        finite if traced else True,
        steps if traced else int(steps),
    )
