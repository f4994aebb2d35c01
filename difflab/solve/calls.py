"""Calls of solvers: settings, traces of functions, and the form of the returned solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from difflab.autodiff.control.solutions import Rule, solution
from difflab.autodiff.recording import Recording, computed, record
from difflab.autodiff.solutions.implicit import MOST_CHANGE, no_derivatives
from difflab.autodiff.solutions.newton import CLOSE
from difflab.core.conversions import as_float64
from difflab.core.wording import counted
from difflab.errors import ConvergenceError, InputError, ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.pytree import LEAF, Structure, flatten, unflatten
from difflab.graph.rewritten import composed, inlined
from difflab.graph.values import DOUBLE, Precision, in_precision, precision_of
from difflab.primitives import where


def require_choice(value: Any, known: Collection[str], name: str, what: str) -> None:
    """Raise `InputError` unless a setting is one of the known words; `what` names the solver.

    Examples
    --------
    >>> require_choice("adjoint", ("implicit", "unrolled"), "derivative", "root")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: derivative of root is one of implicit, unrolled, not 'adjoint'
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} of {what} is one of {', '.join(known)}, not {value!r}")


def require_tolerances(what: str, **tolerances: Any) -> None:
    """Raise `InputError` unless all are finite numbers of at least 0."""
    for name, value in tolerances.items():
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise InputError(f"{name} of {what} is a number of at least 0, not {value!r}")


def require_count(value: Any, name: str, what: str, most: int = 2**53) -> None:
    """Raise `InputError` unless a setting is an integer from 1 to `most`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= most:
        raise InputError(f"{name} of {what} is an integer from 1 to {most:,}, not {value!r}")


Derivative = Literal["implicit", "unrolled"]
Solver = Callable[..., tuple[Function, Rule | None]]
"""Returns what solves a recorded function, and its rule: None has the derivative of the steps."""


@dataclass
class OptimizeResult:
    """The result of a solver, with SciPy's names.

    Attributes
    ----------
    x : tree
        The solution, with the structure of the first value. It is nan in traced code where the
        iteration does not converge.
    fun : tree or scalar
        The value of the function at the solution.
    success : bool
        Whether the iteration has converged.
    nit : int
        The number of steps.
    """

    __difflab_tree__: ClassVar[bool] = True

    x: Any
    fun: Any
    success: Any
    nit: Any

    @property
    def message(self) -> str:
        """The result in words."""
        if isinstance(self.success, Node):
            return "success is known when the traced code has run; x is nan where it is false"
        return "converged" if self.success else "not converged: x is nan"


class Equation:
    """A user's function of the unknowns and of parameters, recorded.

    Parameters
    ----------
    name : str
        The solver's name, for messages.
    function : callable
        ``function(x, *params)``.
    x : tree
        The first values of the unknowns.
    params : tuple of tree
        The parameters.

    Attributes
    ----------
    run : Recording
        Its inputs are the unknowns, the parameters, and values that the code captured.
    values : list
        A value for each of them, of float64.
    count : int
        The number of unknowns that are leaves of `x`.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        x: Any,
        params: tuple[Any, ...],
    ) -> None:
        require_callable(function, name)
        self.name = name
        first, self.structure = flatten(as_array(x))
        if not first:
            raise InputError(f"the first value of {name} has no numbers")
        rest, tree = flatten(params)
        self.count = len(first)
        leaves = [as_float64(leaf, f"a first value of {name}") for leaf in first]
        leaves += [as_float64(leaf, f"a parameter of {name}") for leaf in rest]
        self.precisions: list[Precision] = list(map(_precision, first))
        like = self.structure, [leaf.shape for leaf in leaves[: self.count]]

        def call(nodes: list[Node]) -> Any:
            unknowns = unflatten(self.structure, nodes[: self.count])
            return stacked(function(unknowns, *unflatten(tree, nodes[self.count :])), *like)

        self.run: Recording = record(call, [leaf.shape for leaf in leaves], has_aux=False)
        self.values = [*leaves, *self.run.captured]

    def require_like_unknowns(self) -> None:
        """Raise `ShapeError` unless the result has the structure and shapes of the unknowns."""
        shapes = self.run.function.input_shapes[: self.count]
        returned = self.run.function.output_shapes
        if self.run.structure != self.structure or tuple(returned) != tuple(shapes):
            raise ShapeError(
                f"the function of {self.name} returns {self.run.structure} of"
                f" shapes {list(returned)}, and the unknowns are {self.structure} of"
                f" shapes {list(shapes)}",
                hint="as many equations as unknowns: return what x0 looks like",
            )


def as_array(x: Any) -> Any:
    """Return a list of scalars as an array, as SciPy does; other trees as they are."""
    if isinstance(x, list) and x and all(shape == () for shape in map(np.shape, flatten(x)[0])):
        return _array(x)
    return x


def _array(numbers: Any) -> Any:
    """Return nested lists of scalars as an array."""
    if not isinstance(numbers, list):
        return numbers
    rows = [_array(one) for one in numbers]
    if len({np.shape(row) for row in rows}) != 1:
        raise ShapeError("the rows of a list of first values differ in length, or are empty")
    return np.stack(rows)


def stacked(elements: Any, structure: Structure, shapes: Sequence[Shape]) -> Any:
    """Return a list of the elements of a vector, which are the only unknowns, as that vector."""
    vector = structure == LEAF and len(shapes[0]) == 1
    if not vector or not isinstance(elements, list | tuple):
        return elements
    leaves, _ = flatten(elements)
    return np.stack(leaves) if {np.shape(leaf) for leaf in leaves} == {()} else elements


def _precision(leaf: Any) -> Precision:
    return precision_of(leaf) if hasattr(leaf, "dtype") else DOUBLE


def solved(
    equation: Equation,
    values: Sequence[Any],
    make: Solver,
    derivative: str,
    *details: Any,
) -> list[Any]:
    """Return the outputs of a solver at values of its arguments.

    ``make(function, *details)`` returns the solver of a recorded function and its rule.
    """
    require_choice(derivative, get_args(Derivative), "derivative", equation.name)
    whole = equation.run.derived(_whole, make, derivative == "implicit", *details)
    return computed(whole, values)


def _whole(function: Function, make: Solver, implicit: bool, *details: Any) -> Function:
    """Return the solver as a function: one node, or its steps."""
    solver, rule = make(function, *details)
    if not implicit:
        return composed(lambda nodes: _steps(solver, nodes), solver.input_shapes)
    if rule is None:
        return solver
    return composed(lambda nodes: solution(solver, rule, nodes), solver.input_shapes)


def _steps(solver: Function, nodes: list[Node]) -> list[Node]:
    """Return the outputs of the steps, whose derivatives by every argument are nan where they are.

    Those of the steps themselves may be 0 there: of the bound, say, that a step to nan passes.
    """
    never = no_derivatives(nodes)
    return [one + where(np.isnan(one), never, 0.0) for one in inlined(solver, nodes)]


def unknowns(
    equation: Equation,
    make: Solver,
    derivative: str,
    *details: Any,
    more: Sequence[Any] = (),
) -> list[Any]:
    """Return the unknowns, in their dtypes, and the statistics; `more` are further arguments.

    Raises
    ------
    ConvergenceError
        There is no solution, or it has no derivative; where the values are known.
    """
    values = [*equation.values, *more]
    outputs = solved(equation, values, make, derivative, *details)
    leaves = known_values(outputs)
    if leaves is not None:
        *x, steps, correction, change = leaves
        if not all(np.isfinite(leaf).all() for leaf in x):
            raise _not_found(equation.name, int(steps), float(correction))
        differentiated = any(hasattr(value, "__difflab_apply__") for value in values)
        if derivative == "implicit" and differentiated and not change <= MOST_CHANGE:
            raise ConvergenceError(
                f"the Jacobian at the solution of {equation.name} is singular, so the solution has"
                " no derivative by the parameters",
                hint="solutions coincide there; derivative='unrolled' gives the value",
            )
    pairs = zip(outputs, equation.precisions, strict=False)
    return [*(in_precision(*pair) for pair in pairs), *outputs[equation.count :]]


def known_values(values: Sequence[Any]) -> list[Any] | None:
    """Return the arrays of values; None if one is traced and unknown."""
    leaves = []
    for value in values:
        known = getattr(value, "__difflab_value__", None)
        leaves.append(value if known is None else known())
    return None if any(leaf is None for leaf in leaves) else leaves


def _not_found(name: str, steps: int, correction: float) -> ConvergenceError:
    """Return the error of a solver whose result is nan."""
    reason = f"its last step is {correction:.2g} of the size of x"
    hint = "begin nearer to a solution, or allow more steps (maxiter) or a larger tolerance"
    if not np.isfinite(correction):
        reason = "a step is not finite: the Jacobian is singular, or the function is nan"
        if name == "fixed_point":
            reason, hint = "it is no contraction there", "root finds fixed points by Newton's steps"
    elif name == "fixed_point":
        hint = "allow more steps (maxiter), or find the fixed point by root"
    elif name == "minimize" and correction < CLOSE:
        reason = "the gradient vanishes where the Hessian is not positive definite"
        hint = "begin elsewhere: it is a saddle, a maximum or a valley of equal values"
    taken = counted(steps, "step")
    return ConvergenceError(f"{name} does not converge in {taken}: {reason}", hint=hint)
