"""Families of functions: from sizes n and m to a function and a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.diagnose.point_check import checked_point, packed
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.trace import trace
from difflab.lab.problems.sizes import names, with_sizes
from difflab.language import parse

SIZES = ("n", "m")

Member = tuple[Function, NDArray[float64]]


@dataclass(frozen=True)
class Family:
    """Functions of growing size.

    Attributes
    ----------
    text : str
        What identifies the family in the key of its rows.
    sizes : tuple of str
        Which of `SIZES` it has.
    member : callable
        Maps n and m to the function and a point ``(inputs,)``; a size that the family does not
        have is ignored.
    """

    text: str
    sizes: tuple[str, ...]
    member: Callable[[int, int], Member]


def formula_family(text: str, key: str | None = None) -> Family:
    """Return the family of a formula in which the names n and m stand for sizes.

    Parameters
    ----------
    text : str
        A program of the language, with sizes in declarations (``x: [n]``), in loops (``n times``)
        and wherever a number may be, and integer expressions of them (``x: [2*n]``).
    key : str, optional
        What identifies a long text in the rows.

    Raises
    ------
    InputError
        The formula has no size, or defines one.

    Examples
    --------
    >>> family = formula_family("x: [n]; W: [m, n]; tanh(W@x)")
    >>> function, point = family.member(3, 2)
    >>> function.n, function.m, point.size
    (9, 2, 9)
    """
    found = list(names(text))
    sizes = tuple(size for size in SIZES if any(name == size for name, _, _ in found))
    if not sizes:
        raise InputError(
            "the formula has no size: neither n nor m occurs in it",
            hint="write n, or n and m, where sizes are, as in 'x: [n]; W: [m, n]; W@x'",
        )
    for name, start, end in found:
        if name in sizes and _defined(text, end):
            raise InputError(
                f"{name} is a size of the family and cannot be defined",
                text=text,
                span=(start, end),
                hint="choose another name for this value",
            )

    def member(n: int, m: int) -> Member:
        function = parse(with_sizes(text, {"n": n, "m": m}))
        return function, packed(function, checked_point(function, None))

    return Family(key or text, sizes, member)


def _defined(text: str, end: int) -> bool:
    rest = text[end:].lstrip()
    return rest.startswith("=") and not rest.startswith("==")


def python_family(key: str, build: Callable[..., Any], parameters: Sequence[str]) -> Family:
    """Return the family of a Python function of sizes.

    Parameters
    ----------
    key : str
        What identifies the family.
    build : callable
        Takes n, m or both by name and returns a callable or `Function` and its example arguments:
        an array or number, or a tuple of them.
    parameters : sequence of str
        The names of its parameters.

    Raises
    ------
    InputError
        A parameter is not a size.

    Examples
    --------
    >>> family = python_family("f", lambda n: (np.sin, np.ones(n)), ["n"])
    >>> family.member(3, 1)[0].n
    3
    """
    other = [name for name in parameters if name not in SIZES]
    if other or not parameters:
        wrong = f"a parameter {other[0]!r}" if other else "no parameter"
        raise InputError(
            f"{key} has {wrong}: a family is a function of the sizes n, m or both",
            hint="def family(n, m): return function, (argument, argument)",
        )

    def member(n: int, m: int) -> Member:
        given = {"n": n, "m": m}
        return _recorded(key, build(**{name: given[name] for name in parameters}))

    return Family(key, tuple(size for size in SIZES if size in parameters), member)


def _recorded(key: str, built: Any) -> Member:
    """Return the function and the point that a family returned."""
    if not isinstance(built, tuple) or len(built) != 2 or not callable(built[0]):
        raise InputError(
            f"{key} must return a function and its example arguments",
            hint="return function, (argument, argument)",
        )
    function, given = built
    arguments = given if isinstance(given, tuple) else (given,)
    arrays = [np.asarray(argument, dtype=float64) for argument in arguments]
    if not isinstance(function, Function):
        function = trace(function, *arrays)
    if len(function.inputs) != len(arrays):
        raise InputError(
            f"{key} returned {len(arrays)} arguments for a function of {len(function.inputs)}"
        )
    point = dict(zip(function.inputs, arrays, strict=True))
    return function, packed(function, checked_point(function, point))
