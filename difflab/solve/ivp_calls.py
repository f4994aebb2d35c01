"""`ivp`: initial value problems of ordinary differential equations, and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from difflab.arrays.complex_array import is_complex
from difflab.autodiff.control.loops import scan
from difflab.autodiff.recording import record
from difflab.core.conversions import as_float64
from difflab.errors import ConvergenceError, InputError, ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.pytree import flatten, unflatten
from difflab.graph.rewritten import composed, inlined
from difflab.graph.source import NOWHERE, SourceMap
from difflab.graph.values import DOUBLE, SINGLE, Precision, in_precision, precision_of
from difflab.solve.calls import as_array, require_choice, require_count, require_tolerances, stacked
from difflab.solve.ivp_rows import integrated
from difflab.solve.ivp_runs import ENDED, NOT_FINITE, STALLED, STATISTICS, TOO_MANY
from difflab.solve.ivp_steps import METHODS, System

Method = Literal["rk45", "dopri8", "taylor"]
Derivative = Literal["unrolled", "forward", "adjoint"]

_REASONS = {
    ENDED: "the solver reached the end of the interval",
    STALLED: "the step became shorter than the spacing of numbers: the solution has a singularity,"
    " or a jump of f, before the end",
    TOO_MANY: "max_steps steps do not reach the end: the problem is stiff, or the tolerance small",
    NOT_FINITE: "f is not finite at the start",
}


@dataclass
class OdeResult:
    """The solution of an initial value problem, with SciPy's names.

    Attributes
    ----------
    t : array of shape (m,)
        The times: `t_eval`, or the two ends of the interval.
    y : tree
        The solution there, with the structure of `y0` and time along a new last axis.
    nfev : int
        Evaluations of f; with Taylor's method, of its series.
    steps, rejected : int
        Accepted and rejected steps.
    status : int
        0 if the end was reached; else `message` says why not, and y is nan from there on.
    """

    __difflab_tree__: ClassVar[bool] = True

    t: Any
    y: Any
    nfev: Any
    steps: Any
    rejected: Any
    status: Any

    @property
    def success(self) -> Any:
        """Whether the end was reached."""
        return self.status == ENDED

    @property
    def message(self) -> str:
        """The status in words."""
        if isinstance(self.status, Node):
            return "the status is known when the traced code has run; y is nan where it is not 0"
        return _REASONS[int(self.status)]


def ivp(
    f: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    *params: Any,
    method: Method = "rk45",
    derivative: Derivative = "unrolled",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    t_eval: Any = None,
    max_steps: int = 1_000_000,
) -> OdeResult:
    r"""Solve y′ = f(t, y, \*params), y(t0) = y0, from t0 to t1.

    Derivatives by `y0`, the parameters, both ends and `t_eval` are those of the solution,

    .. math:: \dot S' = f_y S + f_p, \qquad \lambda' = -f_y^T \lambda,

    of any order, in both modes, and approximate in a way that `derivative` chooses.

    Parameters
    ----------
    f : callable
        ``f(t, y, *params)`` returns the derivative, with the structure and shapes of y. It is
        written with NumPy's functions, and traced once.
    t_span : pair of float
        t0 and t1; t1 may be less than t0.
    y0 : number, array or tree
        The first state. A list of numbers is an array, as in SciPy.
    *params : tree
        The parameters.
    method : {"rk45", "dopri8", "taylor"}
        Dormand & Prince's pair of order 5, that of order 8 (DOP853), or a Taylor series whose
        order follows from `rtol` (Jorba & Zou), which is the fastest one for small tolerances.
        All are explicit: a stiff problem takes many steps.
    derivative : {"unrolled", "forward", "adjoint"}
        ``"unrolled"`` differentiates the accepted steps, whose lengths are constants: if they were
        differentiated too, the result would not tend to the derivative as the tolerance decreases
        (Eberhard & Bischof, 1999). Its error is not controlled. ``"forward"`` integrates the
        variational equations with the error of the sensitivities controlled; in reverse mode it
        takes all n + p directions at once. ``"adjoint"`` integrates the adjoint equations back
        with their own error control (Chen et al., 2018), about the states of the solution itself,
        which are computed again from O(√steps) checkpoints (Griewank & Walther, 2000); in forward
        mode it is ``"forward"``.
    rtol, atol : float
        The local error of an element y is at most atol + rtol·|y|; in Taylor's method `rtol` alone
        determines the order and the steps, with elements below atol / rtol replaced by that bound.
    t_eval : array of shape (m,), optional
        Times of the interval, in its direction. Steps end there, so that values are as accurate as
        the steps.
    max_steps : int
        The number of steps between two of the times at which the solver gives up.

    Returns
    -------
    OdeResult
        ``t``, ``y``, ``nfev``, ``status``, ``message``, ``success`` as `scipy.integrate.solve_ivp`
        names them.

    Raises
    ------
    ConvergenceError
        The end is not reached; in traced code y is nan instead.
    InputError
        An option is unknown, y0 is complex, a tolerance is negative or both are 0, or a time lies
        outside the interval or is out of order.
    ShapeError
        f does not return what y looks like.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> decay = lambda t, y, rate: -rate * y
    >>> solution = dl.solve.ivp(decay, (0.0, 1.0), 2.0, 0.5, rtol=1e-10, atol=1e-12)
    >>> np.allclose(solution.y[-1], 2 * np.exp(-0.5), rtol=1e-9), solution.success
    (True, True)

    The derivative of y(1) by the rate, −2·exp(−½), by the adjoint equations:

    >>> end = lambda rate: dl.solve.ivp(decay, (0.0, 1.0), 2.0, rate, derivative="adjoint").y[-1]
    >>> round(float(dl.grad(end)(0.5)), 5)
    -1.21306
    """
    _check_options(method, derivative, rtol, atol, max_steps)
    problem = _InitialValueProblem(f, t_span, y0, params)
    times = _times(problem.span, t_eval)
    n = problem.rate.output_shapes[0][0]
    settings = (method, float(rtol), float(atol), n, int(max_steps), derivative)
    system = System(problem.rate, *settings)
    starts = np.concatenate([np.reshape(problem.span[0], (1,)), times[:-1]])

    def interval(carry: tuple[Any, Any], ends: Any) -> tuple[tuple[Any, Any], Any]:
        y, step = carry
        width = ends[1] - ends[0]
        theta = np.concatenate([np.stack([ends[0], ends[1]]), problem.theta])
        size = np.where(width == 0.0, 1.0, np.abs(width))
        value = integrated(system, y, theta, np.minimum(step / size, 1.0))
        state, statistics = value[:n], value[n:]
        following = np.where(width == 0.0, step, statistics[0] * size)
        return (state, following), (state, statistics)

    if t_eval is None:  # a loop of one step costs more than the step
        _, end = interval((problem.first, 0.0), problem.span)
        states, statistics = (np.reshape(part, (1, -1)) for part in end)
    else:
        pairs = np.stack([starts, times], axis=1)
        _, (states, statistics) = scan(interval, (problem.first, 0.0), pairs)
    whole, at = (states, times)
    if t_eval is None:
        whole = np.concatenate([np.reshape(problem.first, (1, n)), states])
        at = np.concatenate([starts, times])
    return _result(problem, at, whole, statistics)


class _InitialValueProblem:
    """The user's function over the unit interval, and its values as vectors.

    With t = a + s·(b − a) the derivative by s is (b − a)·f, so that the ends a and b are parameters
    like others, and every interval has the same code.

    Attributes
    ----------
    span : tuple
        t0 and t1.
    first : array of shape (n,)
        The elements of y0.
    theta : array of shape (p,)
        Those of the parameters, and of values that f reads from its surroundings.
    rate : Function
        Of s, y and (a, b, θ).
    structure, shapes, precisions
        Of the leaves of y0.
    """

    def __init__(
        self, f: Callable[..., Any], t_span: Any, y0: Any, params: tuple[Any, ...]
    ) -> None:
        require_callable(f, "ivp")
        self.span = _ends(t_span)
        leaves, self.structure = flatten(as_array(y0))
        rest, tree = flatten(params)
        if not leaves:
            raise InputError("y0 of ivp has no numbers")
        self.precisions = list(map(_precision, leaves))
        states = [as_float64(leaf, "y0 of ivp") for leaf in leaves]
        values = [as_float64(leaf, "a parameter of ivp") for leaf in rest]
        self.shapes: list[Shape] = [leaf.shape for leaf in states]
        count = len(states)

        def call(nodes: list[Node]) -> Any:
            y = unflatten(self.structure, nodes[1 : count + 1])
            return self._leaves(f(nodes[0], y, *unflatten(tree, nodes[count + 1 :])))

        shapes = [(), *self.shapes, *(value.shape for value in values)]
        run = record(call, shapes, has_aux=False)
        constants = [*values, *(as_float64(each, "a value of f") for each in run.captured)]
        self.first = _vector(states)
        self.theta = _vector(constants)
        sizes = [value.shape for value in constants]
        self.rate = _over_unit_interval(run.function, self.shapes, sizes)

    def _leaves(self, result: Any) -> list[Any]:
        """Return the leaves of a result of f; of a vector, a list of its elements is one, too."""
        if any(map(is_complex, result if isinstance(result, list | tuple) else [result])):
            raise InputError(
                "f of ivp is complex",
                hint="solve for the real and the imaginary part, as elements of y",
            )
        leaves, structure = flatten(stacked(result, self.structure, self.shapes))
        shapes = [np.shape(leaf) for leaf in leaves]
        if structure != self.structure or shapes != self.shapes:
            raise ShapeError(
                f"f of ivp returns {structure} of shapes {shapes}, and y0 is {self.structure} of"
                f" shapes {self.shapes}",
                hint="f(t, y, *params) returns the derivative of y, which looks like y",
            )
        return leaves

    def tree(self, whole: Any) -> Any:
        """Return states (m, n) as the tree of y0 with time along a new last axis."""
        parts, start = [], 0
        for shape, precision in zip(self.shapes, self.precisions, strict=True):
            size = math.prod(shape)
            part = np.swapaxes(whole[:, start : start + size], 0, 1)
            parts.append(in_precision(np.reshape(part, (*shape, -1)), precision))
            start += size
        return unflatten(self.structure, parts)


def _over_unit_interval(
    function: Function, states: list[Shape], constants: list[Shape]
) -> Function:
    """Return (b − a)·f of s in [0, 1], the state as a vector, and the vector (a, b, θ)."""
    n, p = (sum(map(math.prod, shapes)) for shapes in (states, constants))

    def rate(nodes: list[Node]) -> list[Node]:
        s, y, theta = nodes
        width = theta[1] - theta[0]
        values = [theta[0] + s * width, *_parts(y, states), *_parts(theta[2:], constants)]
        return [width * _vector(inlined(function, values))]

    whole = composed(rate, [(), (n,), (2 + p,)])
    # Without lines of code, so that a call from another line has the same machine code.
    nowhere = np.full_like(whole.graph.spans, NOWHERE)
    return replace(whole, graph=replace(whole.graph, spans=nowhere, source=SourceMap()))


def _vector(values: Sequence[Any]) -> Any:
    """Return the elements of arrays as one vector."""
    if not values:
        return np.zeros(0)
    return np.concatenate([np.reshape(value, (-1,)) for value in values])


def _is_row(times: Any) -> bool:
    """Whether an argument is a nonempty list of scalars."""
    row = isinstance(times, list | tuple | range) and len(times) > 0
    return row and all(np.shape(time) == () for time in times)


def _parts(vector: Any, shapes: Sequence[Shape]) -> list[Any]:
    """Divide a vector into arrays."""
    parts, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        parts.append(np.reshape(vector[start : start + size], shape) if shape else vector[start])
        start += size
    return parts


def _precision(leaf: Any) -> Precision:
    """Return the dtype, float32 or float64; Python's scalars are float64."""
    return SINGLE if precision_of(leaf) is SINGLE else DOUBLE


def _ends(t_span: Any) -> tuple[Any, Any]:
    pair = isinstance(t_span, tuple | list) or np.ndim(t_span) == 1
    if not pair or len(t_span) != 2:
        raise InputError("t_span of ivp is a pair (t0, t1)")
    first, last = (as_float64(end, "an end of t_span of ivp") for end in t_span)
    for end in (first, last):
        known = _known(end)
        if np.shape(end) != () or (known is not None and not np.isfinite(known)):
            raise InputError("the ends of t_span of ivp are finite numbers")
    return first, last


def _times(span: tuple[Any, Any], t_eval: Any) -> Any:
    """Return the times after t0 at which the solution is wanted, checked where they are known."""
    if t_eval is None:
        return np.reshape(span[1], (1,))
    at = np.stack(list(map(np.asarray, t_eval))) if _is_row(t_eval) else t_eval
    times = as_float64(at, "t_eval of ivp")
    if len(np.shape(times)) != 1 or not np.shape(times)[0]:
        raise InputError("t_eval of ivp is an array of shape (m,), with m at least 1")
    known = [_known(value) for value in (*span, times)]
    if all(value is not None for value in known):
        first, last, at = known
        order = np.diff(np.concatenate([[first], at, [last]])) * (1 if last >= first else -1)
        if not (order >= 0).all():
            raise InputError(
                "t_eval of ivp lies outside t_span, or is out of order",
                hint="its times go from t0 to t1, in this direction",
            )
    return times


def _check_options(method: Any, derivative: Any, rtol: Any, atol: Any, max_steps: Any) -> None:
    require_choice(method, METHODS, "method", "ivp")
    require_choice(derivative, get_args(Derivative), "derivative", "ivp")
    require_tolerances("ivp", rtol=rtol, atol=atol)
    require_count(max_steps, "max_steps", "ivp")
    if not rtol and not atol:
        raise InputError("rtol and atol of ivp are both 0, so no step is short enough")


def _known(value: Any) -> Any:
    """Return the array of a value, None if it is traced and unknown."""
    known = getattr(value, "__difflab_value__", None)
    return value if known is None else known()


def _result(problem: _InitialValueProblem, at: Any, whole: Any, statistics: Any) -> OdeResult:
    """Return the solution; raise where it is known that the end is not reached."""
    known = _known(statistics)
    if known is None:
        totals = np.sum(statistics, 0)
        nfev, steps, rejected = (totals[k] for k in range(1, STATISTICS - 1))
        status = totals[-1] if len(statistics) == 1 else np.min(statistics[:, -1])
        return OdeResult(at, problem.tree(whole), nfev, steps, rejected, status)
    nfev, steps, rejected = (int(total) for total in np.sum(known, 0)[1 : STATISTICS - 1])
    failed = np.flatnonzero(known[:, -1])
    if failed.size:
        status = int(known[failed[0], -1])
        raise ConvergenceError(
            f"ivp does not reach t = {float(_known(at)[-1]):.6g}: {_REASONS[status]}"
            f" ({steps} steps were accepted, {rejected} rejected)",
            hint="end earlier, choose larger tolerances or a larger max_steps, or write f as a"
            " smooth function",
        )
    return OdeResult(at, problem.tree(whole), nfev, steps, rejected, ENDED)
