"""Elements of a function's inputs by name, such as ``x`` or ``w[0,2]``."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from math import prod

from difflab.core.wording import unknown_name
from difflab.errors import InputError
from difflab.graph.function import Function

_PART = re.compile(r"(?P<name>[^\[\]]+)\[(?P<indices>[0-9, ]+)\]")


def element_index(function: Function, text: str, advice: str = "name one, such as ") -> int:
    """Return the index, among the flattened inputs, of the element that `text` names.

    The hint of an error is `advice` with an example.

    Raises
    ------
    InputError
        The function has no such input, or it is an array and `text` names no single element of it.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("W: [2, 3]; x: [3]; W @ x")
    >>> element_index(f, "W[1,0]"), element_index(f, "x[2]")
    (3, 8)
    """
    part = _PART.fullmatch(text)
    name = _input_name(part["name"].strip() if part else text, function.inputs)
    shapes = dict(zip(function.inputs, function.input_shapes, strict=True))
    shape = shapes[name]
    indices = tuple(int(index) for index in part["indices"].split(",")) if part else ()
    fits = len(indices) == len(shape) and all(
        index < size for index, size in zip(indices, shape, strict=True)
    )
    if not fits:
        example = f"{name}[{','.join('0' * len(shape))}]" if shape else name
        raise InputError(
            f"{text!r} is not a single element of {name!r}, whose shape is {list(shape)}",
            hint=f"{advice}{example}",
        )
    start = _starts(function)[function.inputs.index(name)]
    offset = 0
    for index, size in zip(indices, shape, strict=True):
        offset = offset * size + index
    return start + offset


def owner_of(function: Function, column: int) -> tuple[int, int]:
    """Return which input an element of the flattened inputs belongs to, and its index there.

    Examples
    --------
    >>> import difflab as dl
    >>> owner_of(dl.parse("W: [2, 3]; x: [3]; W @ x"), 8)
    (1, 2)
    """
    starts = _starts(function)
    position = bisect_right(starts, column) - 1
    return position, column - starts[position]


def _starts(function: Function) -> list[int]:
    """Return the index of the first element of each input, and the number of all elements."""
    return list(accumulate(map(prod, function.input_shapes), initial=0))


def _input_name(name: str, inputs: tuple[str, ...]) -> str:
    if name in inputs:
        return name
    raise unknown_name("variable", name, inputs)
