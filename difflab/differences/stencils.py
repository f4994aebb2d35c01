r"""Stencils: differences of values at whole multiples of a step, with whole weights.

A difference along several directions is the product of one along each, as polynomials in the
shifts: forward differences along :math:`u` and :math:`v` give
:math:`f(x + u + v) - f(x + u) - f(x + v) + f(x)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Stencil = Mapping[int, int]
"""The weights of values, by the multiple of the step."""
Direction = Mapping[int, int]
"""The inputs that a direction moves, each by a multiple of its step."""
Moves = tuple[tuple[int, int], ...]
"""Inputs and the multiples of their steps by which they are moved."""
Terms = dict[Moves, int]
"""The weights of values, by how the inputs are moved."""

FORWARD: Stencil = {1: 1, 0: -1}
BACKWARD: Stencil = {0: 1, -1: -1}
AHEAD: Stencil = {2: 1, 1: -1}
BEHIND: Stencil = {-1: 1, -2: -1}
"""With `AHEAD`, differences that leave out the value at the point."""


def product(stencils: Sequence[Stencil], directions: Sequence[Direction]) -> Terms:
    """Return the terms of a stencil along each direction.

    Examples
    --------
    >>> product([FORWARD, FORWARD], [{0: 1}, {0: 1}])
    {((0, 2),): 1, ((0, 1),): -2, (): 1}
    """
    terms: Terms = {(): 1}
    for stencil, direction in zip(stencils, directions, strict=True):
        after: Terms = {}
        for moves, weight in terms.items():
            for multiple, factor in stencil.items():
                moved = dict(moves)
                for i, step in direction.items():
                    moved[i] = moved.get(i, 0) + multiple * step
                key = tuple((i, shift) for i, shift in moved.items() if shift)
                after[key] = after.get(key, 0) + weight * factor
        terms = after
    return terms


def symmetric(directions: Sequence[Direction]) -> tuple[Terms, int]:
    """Return the terms of the symmetric difference along directions, and their divisor.

    Along one direction twice it is the product of both sides, and otherwise their mean.

    Examples
    --------
    >>> symmetric([{0: 1}])
    ({((0, -1),): -1, ((0, 1),): 1}, 2)
    >>> symmetric([{0: 1}, {0: 1}])
    ({((0, 1),): 1, (): -2, ((0, -1),): 1}, 1)
    """
    if len(directions) == 2 and directions[0] == directions[1]:
        return product([FORWARD, BACKWARD], directions), 1
    left, right = (product([side] * len(directions), directions) for side in (BACKWARD, FORWARD))
    both = {moves: left.get(moves, 0) + right.get(moves, 0) for moves in {**left, **right}}
    return {moves: weight for moves, weight in both.items() if weight}, 2
