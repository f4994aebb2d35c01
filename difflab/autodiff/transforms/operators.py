"""Differential operators: `laplacian`, `biharmonic`, `divergence`, `curl`, `directional`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, overload

import numpy as np

from difflab.arrays import random
from difflab.autodiff.functions import operators
from difflab.autodiff.functions.operators import Positions, Way
from difflab.autodiff.functions.series import require_order
from difflab.autodiff.lifting import AnyCallable, Argnums, Call, F, call_at, lifted, vectors
from difflab.autodiff.transforms.partial import mixed_derivative
from difflab.errors import InputError, UnsupportedError
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.graph.pytree import flatten
from difflab.graph.rewritten import selected

__all__ = ["Ways", "biharmonic", "curl", "directional", "divergence", "laplacian"]

ESTIMATE = "hutchinson"
MOST_FORMULAS = 64
"""Terms above which an operator is not written as a formula for each."""
MOST_TRIED = 5_000
"""Nodes of a function above which operations are not counted: the first way is chosen."""


@dataclass(frozen=True)
class Ways:
    """The ways of computing an operator of one function, by their scalar operations at a point.

    Attributes
    ----------
    operator : str
        The operator's name.
    chosen : str
        The way that is used.
    operations : mapping of str to int
        The count of each way, `Counts.arithmetic`; empty where the function is too large to try.
    refused : mapping of str to str
        Why other ways cannot be used.
    """

    operator: str
    chosen: str
    operations: Mapping[str, int]
    refused: Mapping[str, str]

    def __call__(self, *args: Any) -> Ways:
        """Return the ways: those of a Function do not depend on its arguments."""
        return self

    def __str__(self) -> str:
        lines = [f"{self.operator}: {self.chosen}"]
        for way, operations in sorted(self.operations.items(), key=lambda pair: pair[1]):
            lines.append(f"  {way:<16}{operations:>16,} operations")
        return "\n".join(lines + [f"  {way:<16}{why}" for way, why in self.refused.items()])


def laplacian(
    fun: F,
    argnums: Argnums | None = None,
    method: str = "auto",
    *,
    key: Any = None,
    samples: int | None = None,
) -> F:
    r"""Return the function whose value is the Laplacian of `fun`.

    .. math:: \Delta f = \sum_i \partial^2 f / \partial x_i^2

    over all elements of the arguments that `argnums` chooses, for each element of the result. It
    can be differentiated again, by parameters of the function too.

    Parameters
    ----------
    fun : callable or Function
        Of real scalars, arrays or trees, with results of any shapes.
    argnums : int or sequence of int, optional
        Which arguments the coordinates are: the first of a callable and all of a Function by
        default.
    method : str
        ``"collapsed"``: all coordinates in one pass, which carries the sum of their second
        derivatives only (Dangel et al., 2025; Li et al., 2024). ``"jets"``: second-order Taylor
        mode along each. ``"forward-reverse"``: tangents of the gradient. ``"reverse"``: the
        gradient of the gradient. ``"symbolic"``: a formula for each ∂²f/∂xᵢ². ``"hutchinson"``: an
        estimate. ``"auto"`` uses the exact way of the fewest scalar operations.
    key : array, optional
        For the estimate, a key of `difflab.random`.
    samples : int, optional
        For the estimate, the number of random directions, at least 2.

    Returns
    -------
    callable or Function
        Returns a value of the structure and shapes of the result. By ``"hutchinson"`` the pair of
        an unbiased estimate, the mean of :math:`v^T H v` over random signs v (Hutchinson, 1989),
        and its standard error. Its ``explain(*args)``, of a Function without arguments, returns the
        `Ways`: the operations of each one and the choice.

    Raises
    ------
    InputError
        The method is unknown, an estimate has no key or fewer than two samples, or as `grad`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> float(dl.laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0])))
    18.0
    >>> dl.laplacian(dl.parse("x^2*y^3"))(2.0, 3.0)
    np.float64(126.0)
    >>> lap = dl.laplacian(lambda x, w: np.sum(np.tanh(w @ x)))
    >>> lap.explain(np.zeros(9), np.ones((8, 9))).chosen
    'collapsed'
    >>> estimate, error = dl.laplacian(
    ...     lambda x: np.sum(x) ** 2, method="hutchinson", key=dl.random.key(0), samples=400
    ... )(np.zeros(3))
    >>> bool(abs(estimate - 6.0) < 4 * error)
    True
    """
    return _operator(_LAPLACIAN, fun, argnums, method, key, samples)


def biharmonic(
    fun: F,
    argnums: Argnums | None = None,
    method: str = "auto",
    *,
    key: Any = None,
    samples: int | None = None,
) -> F:
    r"""Return the function whose value is the biharmonic operator of `fun`.

    .. math:: \Delta^2 f = \sum_{ij} \partial^4 f / \partial x_i^2 \partial x_j^2

    Parameters
    ----------
    fun : callable or Function
        As for `laplacian`.
    argnums : int or sequence of int, optional
        As for `laplacian`.
    method : str
        ``"nested"``: the Laplacian of the Laplacian, each collapsed. ``"collapsed"`` and
        ``"jets"``: fourth derivatives along n² directions, :math:`e_i` and :math:`e_i \pm e_j`
        (Griewank, Utke & Walther, 2000), whose weighted sum cancels more digits as n grows.
        ``"reverse"``: four nested reverse sweeps. ``"symbolic"``, ``"hutchinson"`` and ``"auto"``
        as for `laplacian`.
    key : array, optional
        For the estimate, a key of `difflab.random`.
    samples : int, optional
        For the estimate, the number of random directions, at least 2.

    Returns
    -------
    callable or Function
        As `laplacian`. The estimate is the mean of a third of the fourth derivatives along
        normally distributed directions.

    Raises
    ------
    InputError
        As `laplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> float(dl.biharmonic(lambda x: np.sum(x**2) ** 2)(np.array([1.0, 2.0, 3.0])))
    120.0
    >>> dl.biharmonic(dl.parse("x^4 + x^2*y^2"))(2.0, 3.0)
    np.float64(32.0)
    """
    return _operator(_BIHARMONIC, fun, argnums, method, key, samples)


def divergence(
    fun: F,
    argnums: Argnums | None = None,
    method: str = "auto",
    *,
    key: Any = None,
    samples: int | None = None,
) -> F:
    r"""Return the function whose value is the divergence of a vector field.

    .. math:: \nabla \cdot f = \sum_i \partial f_i / \partial x_i

    Parameters
    ----------
    fun : callable or Function
        Its results have as many elements as the arguments, which they are paired with in order.
    argnums : int or sequence of int, optional
        As for `laplacian`.
    method : str
        ``"forward"``: by a tangent for each coordinate. ``"reverse"``: by a cotangent for each.
        ``"hutchinson"``: an estimate by random signs v, of vᵀ J v. ``"auto"`` as for `laplacian`.
    key : array, optional
        For the estimate, a key of `difflab.random`.
    samples : int, optional
        For the estimate, the number of random directions, at least 2.

    Returns
    -------
    callable or Function
        Returns a number, or the estimate and its standard error.

    Raises
    ------
    InputError
        The result has another number of elements than the arguments; or as `laplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> float(dl.divergence(lambda x: x**2)(np.array([1.0, 2.0, 3.0])))
    12.0
    >>> dl.divergence(dl.parse("[x*y, x + y^2]"))(2.0, 3.0)
    np.float64(9.0)
    """
    return _operator(_DIVERGENCE, fun, argnums, method, key, samples)


def curl(fun: F, argnums: Argnums | None = None, method: str = "auto") -> F:
    r"""Return the function whose value is the curl of a vector field in two or three dimensions.

    :math:`(\partial_2 f_3 - \partial_3 f_2, \partial_3 f_1 - \partial_1 f_3, \partial_1 f_2 -
    \partial_2 f_1)`, and in two dimensions the number :math:`\partial_1 f_2 - \partial_2 f_1`.

    Parameters
    ----------
    fun : callable or Function
        Its arguments and its result have three elements each, or two.
    argnums : int or sequence of int, optional
        As for `laplacian`.
    method : {"auto", "forward", "reverse"}
        The sweeps of the Jacobian.

    Returns
    -------
    callable or Function
        Returns an array of shape (3,), or a number.

    Raises
    ------
    InputError
        The numbers of elements are not both three, or both two; or as `laplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> omega = np.array([1.0, 2.0, 3.0])
    >>> dl.curl(lambda x: np.cross(omega, x))(np.zeros(3)).tolist()
    [2.0, 4.0, 6.0]
    >>> dl.curl(dl.parse("[-y, x]"))(0.5, 0.5)
    np.float64(2.0)
    """
    return _operator(_CURL, fun, argnums, method)


@overload
def directional(fun: Function, *, order: int = 1) -> Function: ...
@overload
def directional(fun: AnyCallable, x: Any, directions: Any, order: int = 1) -> Any: ...
def directional(fun: AnyCallable, x: Any = None, directions: Any = None, order: int = 1) -> Any:
    r"""Return the derivative of one order along each of some directions, by Taylor mode.

    .. math:: \frac{d^k}{dt^k} f(x + t v) \Big|_{t=0}

    Parameters
    ----------
    fun : callable or Function
        Of one argument, a number, an array or a tree of them.
    x : number, array or tree
        The argument. Omitted for a Function given alone.
    directions : number, array or tree
        A direction v, of the structure and shapes of x, or a stack of r directions, in which every
        leaf has one more axis, the first, of size r.
    order : int
        The order k.

    Returns
    -------
    array or tree
        For a result of shape s an array of shape s, or (r,) + s for a stack.
    Function
        For a Function given alone. Inputs: its own, then a direction ``x_dot`` for each ``x``.

    Raises
    ------
    InputError
        The order is not an integer from 1 to 170, or the directions do not match x.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> f = lambda x: x[0] ** 2 * x[1]
    >>> dl.directional(f, np.array([1.0, 2.0]), np.eye(2), order=2).tolist()
    [4.0, 0.0]
    >>> dl.directional(dl.parse("x^2*y"), order=3)(1.0, 2.0, 1.0, 1.0)
    np.float64(6.0)
    """
    require_order(order, "directional")
    if x is None and directions is None and isinstance(fun, Function):
        every = tuple(range(len(fun.inputs))), tuple(range(len(fun.outputs)))
        return replace(operators.along(fun, *every, order), structure=fun.structure)
    if x is None or directions is None:
        raise InputError(
            "directional of code needs x and directions", hint="directional(fun, x, directions)"
        )
    call = call_at(fun, (x,), "directional")
    shapes, size = call.shapes(), _stack_of(directions, call)
    lead = () if size is None else (size,)
    given = vectors((directions,), call.arguments, [lead + s for s in shapes], "the directions")
    term = call.derived(operators.along, call.outputs, order)
    if size is not None:
        term = operators.per_direction(term, len(call.run.function.inputs), size)
    return call.returned(term, call.run.result, call.run.precisions, given)


def _stack_of(directions: Any, call: Call) -> int | None:
    """Return how many directions are given as a stack; None for a single one."""
    leaves, shapes = flatten(directions)[0], call.shapes()
    found: tuple[int, ...] = np.shape(leaves[0]) if leaves else ()
    return found[0] if shapes and len(found) == len(shapes[0]) + 1 else None


# --- the choice of a way ----------------------------------------------------------------------


def _by_element(
    function: Function, sources: Positions, outputs: Positions, *, order: int
) -> Function:
    """Return the sum of one formula for each coordinate, or for each pair of them."""
    ends = list(accumulate(map(math.prod, function.input_shapes), initial=0))
    squares = [(column, column) for i in sources for column in range(ends[i], ends[i + 1])]
    if not squares:
        raise UnsupportedError("there are no coordinates")
    if len(squares) ** (order // 2) > MOST_FORMULAS:
        raise UnsupportedError(f"more than {MOST_FORMULAS} formulas")
    terms = squares if order == 2 else [(*a, *b) for a in squares for b in squares]
    names = [function.output_names[i] for i in outputs]
    whole = selected(function, [function.outputs[i] for i in outputs], names)
    return operators.sum_of([mixed_derivative(whole, term) for term in terms], whole.output_shapes)


def _signs(key: Any, shape: tuple[int, int]) -> Any:
    """Return random signs."""
    return 2.0 * random.bernoulli(key, 0.5, shape) - 1.0


@dataclass(frozen=True, eq=False)
class _Operator:
    """An operator: its ways, and its estimate as `scale` times the mean of a term.

    The directions of the mean are drawn by ``draw(key, shape)``.
    """

    name: str
    ways: Mapping[str, Way]
    term: Way | None = None
    draw: Callable[[Any, tuple[int, int]], Any] = _signs
    scale: float = 1.0

    def built(
        self, function: Function, sources: Positions, outputs: Positions, method: str
    ) -> tuple[Function, Ways]:
        """Return the operator in one way, and the counts by which "auto" chooses it."""
        found: dict[str, Function] = {}
        refused: dict[str, str] = {}
        tried = self.ways if method == "auto" else [method]
        for way in tried:
            if found and len(function.graph) > MOST_TRIED:
                break
            try:
                found[way] = self.ways[way](function, sources, outputs)
            except UnsupportedError as error:
                if method != "auto":
                    raise
                refused[way] = str(error)
        if not found:
            raise UnsupportedError(f"no way of {self.name}: {next(iter(refused.values()))}")
        operations = {way: count(each).arithmetic for way, each in found.items()}
        chosen = min(operations, key=operations.__getitem__)
        return found[chosen], Ways(self.name, chosen, operations, refused)

    def estimated(
        self, function: Function, sources: Positions, outputs: Positions, samples: int
    ) -> Function:
        """Return the estimate and its error, of random directions, the last inputs."""
        assert self.term is not None
        term = self.term(function, sources, outputs)
        return operators.mean_along(term, len(function.inputs), samples, self.scale)

    def estimate(self, call: Call, key: Any, samples: int) -> Any:
        """Return the estimate of a call and its error."""
        shapes = call.shapes()
        ends = list(accumulate(map(math.prod, shapes), initial=0))
        drawn = self.draw(key, (samples, ends[-1]))
        parts = [
            drawn[:, start:stop].reshape(samples, *shape)
            for (start, stop), shape in zip(pairwise(ends), shapes, strict=True)
        ]
        derived = call.derived(self.estimated, call.outputs, samples)
        count = len(derived.outputs) // 2
        if call.values is None:
            derived, parts = operators.bound(derived, parts), []

        def form(found: Sequence[Any]) -> Any:
            return _result(call, found[:count]), _result(call, found[count:])

        return call.returned(derived, form, list(call.run.precisions[:count]) * 2, parts)


_LAPLACIAN = _Operator(
    "laplacian",
    {**operators.LAPLACIAN, "symbolic": partial(_by_element, order=2)},
    operators.SECOND,
)
_BIHARMONIC = _Operator(
    "biharmonic",
    {**operators.BIHARMONIC, "symbolic": partial(_by_element, order=4)},
    operators.FOURTH,
    random.normal,
    1 / 3,
)
_DIVERGENCE = _Operator("divergence", operators.DIVERGENCE, operators.TRACE)
_CURL = _Operator("curl", operators.CURL)


def _operator(
    operator: _Operator,
    fun: F,
    argnums: Argnums | None,
    method: str,
    key: Any = None,
    samples: int | None = None,
) -> F:
    """Return an operator of a function in the chosen way."""
    _require_method(operator, method, key, samples)
    positions: Argnums = 0
    if isinstance(fun, Function):
        groups = len(fun.arguments.names) if fun.arguments else len(fun.inputs)
        positions = tuple(range(groups)) if groups > 1 else 0

    def value(call: Call) -> Any:
        _require_numbers(call)
        if samples is not None:
            return operator.estimate(call, key, samples)
        derived, ways = call.derived(operator.built, call.outputs, method)
        found = call.returned(derived, partial(_result, call), call.run.precisions)
        if call.values is None:
            found.__dict__["explain"] = ways
        return found

    def ways(call: Call) -> Any:
        _require_numbers(call)
        if samples is None:
            return call.derived(operator.built, call.outputs, method)[1]
        work = count(call.derived(operator.estimated, call.outputs, samples)).arithmetic
        return Ways(operator.name, method, {method: work}, {})

    chosen = positions if argnums is None else argnums
    derivative = lifted(value, fun, chosen, False, operator.name)
    if not isinstance(fun, Function):
        derivative.__dict__["explain"] = lifted(ways, fun, chosen, False, operator.name)
    return derivative


def _result(call: Call, parts: Sequence[Any]) -> Any:
    """Return the operator of each result in their tree, or the only number of a vector field."""
    field = call.what in {"divergence", "curl"}
    return parts[0] if field else call.run.result(parts)


def _require_method(operator: _Operator, method: str, key: Any, samples: int | None) -> None:
    """Raise `InputError` unless the method exists and has what it needs."""
    known = ["auto", *operator.ways, *([ESTIMATE] if operator.term else [])]
    if not isinstance(method, str) or method not in known:
        raise InputError(
            f"{operator.name} has no method {method!r}", hint=f"one of: {', '.join(known)}"
        )
    estimates = method == ESTIMATE
    if estimates != (samples is not None) or estimates != (key is not None):
        raise InputError(
            f'key and samples of {operator.name} are those of method="{ESTIMATE}"',
            hint=f'write method="{ESTIMATE}", key=dl.random.key(0), samples=100',
        )
    if estimates and (not isinstance(samples, (int, np.integer)) or samples < 2):
        raise InputError(f"samples of {operator.name} is an integer of at least 2, not {samples!r}")


def _require_numbers(call: Call) -> None:
    """Raise `InputError` without arguments or results.

    A vector field must have as many elements as its argument.
    """
    if not call.shapes() or not call.run.results:
        lacks = "result" if call.shapes() else "argument"
        raise InputError(f"{call.what} needs a function whose {lacks} has a number or an array")
    if call.what not in {"divergence", "curl"}:
        return
    n = sum(map(math.prod, call.shapes()))
    m = sum(map(math.prod, call.run.function.output_shapes[: call.run.results]))
    if m != n or (call.what == "curl" and n not in {2, 3}):
        sizes = "2 or 3 elements" if call.what == "curl" else "as many elements as its result"
        raise InputError(
            f"{call.what} needs an argument of {sizes}; this function maps {n} to {m}",
            hint="argnums chooses the arguments that are the coordinates",
        )
