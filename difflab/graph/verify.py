"""Compare a graph with the Python code that it was recorded from, by running that code.

This is the one comparison: `difflab.trace`, `grad` and `jit` with ``verify=True``, comparisons,
checks, studies and explanations of Python code call it.

A difference counts if it exceeds the rounding of the computation, which is measured by random
roundings (`difflab.graph.random_rounding`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.place import NOWHERE
from difflab.core.wording import exact, significant
from difflab.errors import GraphMismatchError
from difflab.graph.arguments import Arguments
from difflab.graph.code import Code, Run, quietly
from difflab.graph.function import Function
from difflab.graph.parting import first_parting
from difflab.graph.random_rounding import DRAWS, RandomRounding, told_apart

Array = NDArray[float64]

FACTOR = 32.0
"""How far a difference may exceed the largest change that the random roundings make."""
ULPS = 8.0
"""Roundings of the value itself that are allowed in any case."""
SHOWN = 6
"""Elements of an array that a message shows."""
STEP = 2.0**-20
"""Relative step to the neighbours of a point at which slopes are compared."""
SLOPE = 1e-3
"""Relative difference of two changes that is one of the slope, not of rounding or curvature."""


def require_traced(
    graph: Function,
    function: Callable[..., Any],
    arguments: Arguments,
    leaves: Sequence[Any],
    trace: Callable[[], Any],
) -> None:
    """Raise an error unless a graph has the value of its code at the arguments of the trace.

    Parameters
    ----------
    graph : Function
        The graph.
    function : callable
        The code.
    arguments : Arguments
        The trees of its arguments.
    leaves : sequence
        Their leaves.
    trace : callable
        Traces the code again.

    Raises
    ------
    difflab.errors.GraphMismatchError
        The values differ beyond rounding.
    """
    code = Code.of(function, arguments, leaves)
    x = packed(leaves)
    require_same(graph, code, x, code.run(x), trace)


def packed(leaves: Sequence[Any]) -> Array:
    """Concatenate scalars and arrays to one vector of float64."""
    parts = [np.ravel(np.asarray(leaf, dtype=float64)) for leaf in leaves]
    return np.concatenate(parts) if parts else np.zeros(0)


def require_same(
    graph: Function,
    code: Code,
    x: Array,
    run: Run | NDArray[Any],
    trace: Callable[[], Any] | None = None,
) -> None:
    """Raise an error unless a graph has the value that its code returned at a point.

    Parameters
    ----------
    graph : Function
        The graph.
    code : Code
        The code that it was recorded from.
    x : ndarray (n,)
        The packed point.
    run : Run or ndarray (m,)
        The result of the code there.
    trace : callable, optional
        Traces the code again, for the line at which both part.

    Raises
    ------
    difflab.errors.GraphMismatchError
        The values differ beyond rounding; the message has both, and the line.
    """
    theirs, drawn = (run.values, run.drawn) if isinstance(run, Run) else (run, ())
    ours = np.asarray(graph.values(x))
    if theirs.shape == ours.shape:
        wrong = np.flatnonzero(~agreeing(graph, x, ours, theirs))
        if not wrong.size:
            return
        output = "" if theirs.size == 1 else f"element {wrong[0] + 1} of the result is "
        both = told_apart(theirs[wrong[0]], ours[wrong[0]])
        said = (
            f"{output}{both[0]} by the code and {both[1]} by the graph"
            if output
            else (f"the code gives {both[0]}, the graph {both[1]}")
        )
    else:
        said = f"the code returns {theirs.size} elements, the graph {ours.size}"
    message = f"the graph is not your function: at {point_text(code, x)} {said}"
    parting = None
    if trace is not None:
        with quietly():
            parting = first_parting(trace, lambda: code.called(code.leaves(x)), code.leaves(x))
    site = NOWHERE if parting is None else parting.site
    why = "" if parting is None else parting.text
    if drawn:
        why = f"the code draws random numbers from {' and '.join(drawn)}; {why}".rstrip("; ")
    if why:
        message = f"{message}; {why}"
    raise site.error(GraphMismatchError, message, _HINT)


_HINT = (
    "write what the code does with NumPy's functions on its arguments; verify=False, or"
    " --no-verify, leaves this check out"
)


def agreeing(
    graph: Function, x: Array, ours: NDArray[Any], theirs: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return which values ``(m,)`` of a graph at a point and of its code agree within rounding.

    Examples
    --------
    >>> import difflab as dl
    >>> f, x = dl.parse("(1 + x) - 1"), np.array([1e-12])
    >>> bool(agreeing(f, x, f.values(x), np.array([1e-12]))[0])
    True
    >>> bool(agreeing(f, x, f.values(x), np.array([1.001e-12]))[0])
    True
    >>> bool(agreeing(f, x, f.values(x), np.array([1e-9]))[0])
    False
    """
    with np.errstate(all="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        if same.all():
            return np.asarray(same)
        eps = float(np.finfo(theirs.dtype).eps) if theirs.dtype.kind == "f" else 2.0**-52
        size = np.fmax(np.abs(ours), np.abs(theirs))
        same |= np.abs(ours - theirs) <= ULPS * eps * size
        if same.all():
            return np.asarray(same)
        moved = np.array([graph.values(x, RandomRounding(eps, seed)) for seed in range(DRAWS)])
        spread = np.max(np.abs(moved - ours), axis=0)
        same |= np.abs(ours - theirs) <= FACTOR * spread + ULPS * eps * size
        # Rounding decides whether the value is a number: at the edge of a domain, or of float64.
        unsure = np.isfinite(moved).any(axis=0) & ~np.isfinite(moved).all(axis=0)
        same |= unsure & ~(np.isfinite(ours) & np.isfinite(theirs))
    return np.asarray(same)


def require_same_slope(
    graph: Function, code: Code, x: Array, moving: int, value: NDArray[Any]
) -> None:
    """Raise an error unless a graph changes with its inputs as its code does.

    A graph that was recorded for one point has the branches of that point, and may have constants
    in place of values. Both are compared at a relative distance of 1e-6 on either side of the
    point, so that other branches beside a kink are no difference.

    Parameters
    ----------
    graph, code, x
        As for `require_same`.
    moving : int
        How many of the first elements of `x` move; the others are constants of the code.
    value : ndarray (m,)
        The value of the code at `x`.

    Raises
    ------
    difflab.errors.GraphMismatchError
        The changes differ on both sides.
    """
    ours = graph.values(x)
    scale = np.where(x == 0, 1.0, np.abs(x)) * STEP
    step = scale * np.random.default_rng(1).uniform(0.5, 1.0, x.shape)
    step[moving:] = 0.0
    differences = []
    for near in (x + step, x - step):
        try:
            with quietly():
                theirs = code.flat(near)
        except Exception:  # the point may be outside of the domain of the code
            return
        if theirs.shape != value.shape:
            return
        with np.errstate(all="ignore"):
            by_code, by_graph = theirs - value, graph.values(near) - ours
            tolerance = SLOPE * np.fmax(np.abs(by_code), np.abs(by_graph))
            tolerance = tolerance + 2.0**-36 * np.fmax(np.abs(value), 2.0**-1000)
            wrong = (np.abs(by_code - by_graph) > tolerance) & np.isfinite(by_code - by_graph)
        if not wrong.any():
            return
        differences.append((wrong, by_code, by_graph))
    wrong = differences[0][0] & differences[1][0]
    for index in np.flatnonzero(wrong)[:1]:
        by_code, by_graph = (float(part[index]) for part in differences[0][1:])
        raise GraphMismatchError(
            f"the graph is not your function: from {point_text(code, x)} to a point beside it the"
            f" code changes by {significant(by_code)}, the graph by {significant(by_graph)}; the"
            " code turns a value into a number that the graph keeps as a constant",
            hint=_HINT,
        )


def point_text(code: Code, x: Array) -> str:
    """Return a point in short."""
    values: Sequence[Any] = code.leaves(x)
    return ", ".join(
        f"{name} = {_shown(value)}"
        for name, value in list(zip(code.inputs, values, strict=True))[:SHOWN]
    ) + (", …" if len(values) > SHOWN else "")


def _shown(value: Any) -> str:
    if not np.ndim(value):
        return exact(value)
    flat = np.ravel(value)
    if flat.size > SHOWN:
        return f"an array of shape {np.shape(value)} that begins with {exact(flat[0])}"
    shown: str = "[" + ", ".join(map(exact, flat)) + "]"
    return shown if np.ndim(value) == 1 else f"{shown} of shape {np.shape(value)}"
