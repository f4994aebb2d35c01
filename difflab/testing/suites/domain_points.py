"""Hypothesis strategies for points of a function: inside its domain, and around its kinks.

A failure shrinks to a simple point: equal small numbers for all inputs where the function is
defined there, otherwise a point of short decimals; around a kink, to the kink itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from difflab.diagnose.points import choose_point
from difflab.errors import DomainError
from difflab.graph.function import Function, evaluate_all
from difflab.graph.ir import FIRST_ROW

Packed = NDArray[np.float64]
Point = dict[str, Any]

_SIMPLE = (1.0, 2.0, 0.5, 0.0, -1.0, -0.5, -2.0, 3.0, 10.0, -10.0)
_CHOSEN = 4  # points of `choose_point` between which others are drawn
_STEPS = 64  # samples of a segment on which changes of sign are searched
_FOUND = 40  # kinks after which the search ends
_BESIDE = (0.0, 1e-12, -1e-12, 1e-8, -1e-8, 1e-4, -1e-4, 1e-2, -1e-2)


def inside(function: Function) -> st.SearchStrategy[Point]:
    """Return a strategy for points at which a function is defined.

    Parameters
    ----------
    function : Function
        The function; its inputs may be arrays.

    Returns
    -------
    SearchStrategy
        Of dictionaries with a float or an array for every input.

    Raises
    ------
    difflab.errors.DomainError
        No such point was found.

    Examples
    --------
    >>> import difflab as dl
    >>> from hypothesis import find
    >>> find(inside(dl.parse("log(x)*sqrt(y)")), lambda point: point["y"] > 1.5)
    {'x': 2.0, 'y': 2.0}
    """
    bases = _bases(function)
    simple = st.sampled_from(bases)
    # A point between two others, each component on its own; in a convex domain all are defined.
    share = st.floats(0.0, 1.0, allow_subnormal=False)
    shares = (
        st.lists(share, min_size=function.n, max_size=function.n) if function.n else st.just([])
    )
    between = st.builds(_between, simple, simple, shares)
    defined = between.filter(lambda packed: _defined(function, packed))
    return (simple | defined).map(lambda packed: _named(function, packed))


def around_kinks(function: Function) -> st.SearchStrategy[Point]:
    """Return a strategy for points on the kinks of a function, and closely beside them.

    Kinks are searched between points of the domain, where the ``kinks`` of an operation change
    sign or vanish.

    Parameters
    ----------
    function : Function
        The function.

    Raises
    ------
    difflab.errors.DomainError
        No kink was found.

    Examples
    --------
    >>> import difflab as dl
    >>> from hypothesis import find
    >>> find(around_kinks(dl.parse("abs(x - 3)")), lambda point: True)
    {'x': 3.0}
    """
    kinks = _kinks(function, _bases(function))
    if not kinks:
        raise DomainError(
            "no kink was found where the function is defined",
            hint="draw points with `inside`, or give the point of the kink",
        )
    # The offset is relative to the size of the point.
    moved = st.builds(
        lambda kink, offset, along: kink + offset * (1.0 + np.abs(kink)) * along,
        st.sampled_from(kinks),
        st.sampled_from(_BESIDE),
        st.sampled_from([np.ones(function.n), *np.eye(min(function.n, 8), function.n)]),
    )
    defined = moved.filter(lambda packed: _defined(function, packed))
    return defined.map(lambda packed: _named(function, packed))


def _bases(function: Function) -> list[Packed]:
    """Return points of the domain, the simplest first."""
    simple = [np.full(function.n, value) for value in _SIMPLE]
    points = [packed for packed in simple if _defined(function, packed)]
    for seed in range(_CHOSEN):
        values = [np.ravel(value) for value in choose_point(function, seed).values()]
        points.append(np.concatenate(values).astype(np.float64))
    return points


def _defined(function: Function, packed: Packed) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.isfinite(function.values(packed)).all())


def _named(function: Function, packed: Packed) -> Point:
    parts = zip(function.inputs, function.split(packed), strict=True)
    return {name: part if np.ndim(part) else float(part) for name, part in parts}


def _between(first: Packed, second: Packed, shares: list[float]) -> Packed:
    return first + np.array(shares) * (second - first)


def _kinks(function: Function, bases: list[Packed]) -> list[Packed]:
    """Return points on kinks: points of the domain, or changes of sign between two of them."""
    kinks = [packed for packed in bases if np.any(_switches(function, packed) == 0)]
    for first, second in permutations(bases, 2):
        for kink in _changes(function, first, second):
            if not any(np.array_equal(kink, other) for other in kinks):
                kinks.append(kink)
        if len(kinks) >= _FOUND:
            break
    return sorted(kinks, key=lambda packed: (len(repr(packed.tolist())), packed.tolist()))


def _switches(function: Function, packed: Packed) -> Packed:
    """Return values that vanish at the kinks of every operation, nan where there is none."""
    graph, values = function.graph, evaluate_all(function, function.split(packed))
    switches = [np.empty(0)]
    with np.errstate(all="ignore"):
        for opcode, args in graph.rows():
            row = graph.primitives[opcode - FIRST_ROW] if opcode >= FIRST_ROW else None
            if row is not None and row.kinks is not None:
                operands = (values[arg] for arg in args)
                switches.append(np.ravel(np.asarray(row.kinks(*operands), dtype=np.float64)))
    return np.concatenate(switches)


def _changes(function: Function, first: Packed, second: Packed) -> Iterator[Packed]:
    """Yield the points of a segment next to a change of sign of a switch."""

    def at(share: float) -> Packed:
        return first + share * (second - first)

    shares = np.linspace(0.0, 1.0, _STEPS + 1)
    signs = [np.sign(_switches(function, at(float(share)))) for share in shares]
    for (left, before), (right, after) in pairwise(zip(shares.tolist(), signs, strict=True)):
        for which in np.flatnonzero(before * after < 0)[:4]:
            low, high, sign = left, right, before[which]
            while low < (middle := (low + high) / 2) < high:
                if np.sign(_switches(function, at(middle))[which]) == sign:
                    low = middle
                else:
                    high = middle
            if _defined(function, at(high)):
                yield at(high)
