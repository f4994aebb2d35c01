"""Automatic differentiation by difflab's own graph engine, forward and reverse.

The derivative is a graph, which is compiled and evaluated at the point.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.apply import on_host
from difflab.core.dtypes import DOUBLE
from difflab.errors import InputError, MethodTimeout, UnsupportedError, described
from difflab.methods.in_dtype import COARSE, RoundedDerivative
from difflab.methods.protocol import AlwaysAvailable, Estimate, Family, Prepared, Problem, Size
from difflab.methods.timer import PATIENCE, LoopCall

if TYPE_CHECKING:
    from difflab.execute import Compiled
    from difflab.graph.function import Function


Mode = Literal["forward", "reverse"]

# Seconds per node that a sweep visits and per node that it differentiates, measured on one core.
SECONDS_PASSED = 4e-7
SECONDS_APPENDED = 1e-5


class Automatic(AlwaysAvailable):
    """One mode of automatic differentiation.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    >>> prepared = REVERSE.prepare(Problem(f.values, f.n, f.m, f))
    >>> prepared(np.array([2.0, 5.0])).value
    array([[5.5       , 1.71633781]])
    """

    family = Family.AUTOMATIC
    orders = (1, 2)
    dtypes = COARSE

    def __init__(self, mode: Mode, summary: str) -> None:
        self.name = str(mode)
        self.summary = summary
        self._mode: Mode = mode

    def prepare(self, problem: Problem) -> Prepared:
        """Build the graph of the derivative and compile it for the problem's target.

        Raises
        ------
        UnsupportedError
            The function is Python code that cannot be traced, or the target cannot compute
            its derivative.
        """
        from difflab.autodiff import jacobian
        from difflab.autodiff.engine.custom import goes_forward

        function = problem.function or _traced(problem)
        _refuse_endless(function, self._mode, problem.timeout)
        derivative = jacobian(function, mode=self._mode)
        if problem.order == 2:
            # The Hessian is the Jacobian of the gradient, whose rows cost a sweep each in either
            # mode: `hessian` uses forward over reverse, so `reverse` does too where it can. As the
            # only row of a Jacobian the gradient consists of scalar operations, however large the
            # function is, and not of vector operations: sizes and counts are comparable everywhere.
            _refuse_endless(derivative, "forward", problem.timeout)
            mode: Mode = "forward" if goes_forward(derivative) else "reverse"
            derivative = jacobian(derivative, mode=mode)
        if problem.dtype is not DOUBLE:
            return RoundedDerivative(derivative, problem.dtype, problem.target)
        return AutomaticDerivative(derivative, problem.target)


class AutomaticDerivative:
    """The compiled graph of a derivative."""

    def __init__(self, derivative: Function, target: str = "auto") -> None:
        from difflab.execute import compile
        from difflab.graph.counts import count

        counts = count(derivative)
        self.operations = counts.operations
        self.size = Size(tree=counts.tree, dag=counts.dag)
        self.function = derivative
        self.fast = compile(derivative, target, packed=True)
        self.on_gpu = target == "cupy"

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`; for a GPU, `x` and the result are copied."""
        if self.on_gpu:
            cupy = import_module("cupy")
            return Estimate(on_host(self.fast(cupy.asarray(x))), None, 0)
        return Estimate(self.fast(x), None, 0)

    def in_loop(self, x: NDArray[float64]) -> LoopCall:
        """Return the fastest call at `x`: into given memory, where machine code takes it."""
        in_memory = None if self.on_gpu else into_memory(self.fast, x)
        return in_memory or LoopCall("", lambda: self(x))

    def batch(self, points: NDArray[float64]) -> Estimate:
        """Return the derivatives at the points ``(N, n)``."""
        return self(points)


def into_memory(fast: Compiled, x: NDArray[float64]) -> LoopCall | None:
    """Return the call of a packed compiled function at `x` that writes to given memory.

    None if Python code computes it, which is slower so. Machine code takes the calls at once here,
    and otherwise after as many as the form of the call states.
    """
    calls = fast.go_over()
    if calls is None:
        return None
    values = fast(x)
    result = tuple(map(np.array, values)) if isinstance(values, tuple) else np.array(values)
    form = "fast(x, out=result)" + f", machine code after {calls:,} calls" * (calls > 0)
    return LoopCall(form, lambda: fast(x, out=result))


def _refuse_endless(function: Function, mode: Mode, timeout: float) -> None:
    """Raise if building the derivative would take far longer than `timeout`.

    A sweep cannot be interrupted, so its cost is estimated in advance: each sweep visits every node
    of the graph and appends operations for those between its input and the outputs. Only estimates
    that exceed the limit several times over are refused.
    """
    sweeps = function.n if mode == "forward" else function.m
    passed = sweeps * len(function.graph)
    seconds = passed * SECONDS_PASSED
    # At most all nodes are differentiated; that is enough to know of most functions.
    if seconds <= timeout * PATIENCE < seconds + passed * SECONDS_APPENDED:
        seconds += _active(function, mode) * SECONDS_APPENDED
    if seconds > timeout * PATIENCE:
        raise MethodTimeout(
            f"not started: {sweeps:,} {mode} sweeps over {len(function.graph):,} nodes take about "
            f"{seconds:.0f} s, and the limit is {timeout:g} s"
        )


def _active(function: Function, mode: Mode) -> int:
    """Count the nodes that each sweep differentiates, over all sweeps.

    Every sweep is a bit; the mask of a node is the union of the masks of its arguments (forward)
    or of its users (reverse).
    """
    forward = mode == "forward"
    graph = function.graph
    masks = [0] * len(graph)
    seeds = zip(function.input_nodes, function.input_shapes, strict=True)
    if not forward:
        seeds = zip(function.outputs, function.output_shapes, strict=True)
    used = 0
    for node, shape in seeds:
        size = math.prod(shape)
        masks[node] |= ((1 << size) - 1) << used
        used += size
    rows = list(graph.rows())
    total = 0
    for node in range(len(rows)) if forward else reversed(range(len(rows))):
        for arg in rows[node][1]:
            if forward:
                masks[node] |= masks[arg]
            else:
                masks[arg] |= masks[node]
        total += masks[node].bit_count()
    return total


def _traced(problem: Problem) -> Function:
    """Record Python code as a graph.

    Values that wrap Python code have it as the attribute ``f``, and the shape of its argument as
    ``into``; others are called with a batch of one point.
    """
    from difflab.graph.trace import trace

    if problem.untraceable:
        raise UnsupportedError(problem.untraceable)
    values: Any = problem.values
    code = getattr(values, "f", None) or (lambda x: values(x.reshape(1, -1))[0])
    try:
        return trace(code, np.zeros(getattr(values, "into", (problem.n,))))
    except InputError as error:
        hint = f" ({error.hint})" if error.hint else ""
        text = f"the Python code cannot be traced: {error.message}{hint}"
        raise UnsupportedError(text) from error
    except Exception as error:  # the user's code may raise anything on traced values
        text = described(error)
        raise UnsupportedError(f"the Python code cannot be traced: {text}") from error


FORWARD = Automatic("forward", "forward mode: tangents swept through the graph, one per input")
REVERSE = Automatic(
    "reverse", "reverse mode: cotangents swept back through the graph, one per output"
)
