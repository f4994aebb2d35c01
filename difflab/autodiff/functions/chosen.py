"""Derivatives by some of the inputs, chosen by name, and elements by name, such as ``w[0,2]``."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from math import prod

from difflab.autodiff.engine.jacobian_entries import last_output_of
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


Names = str | Sequence[str]


@dataclass(frozen=True)
class ChosenInputs:
    """What to differentiate by.

    Attributes
    ----------
    inputs : tuple of str
        The inputs that are named, or of which an element is, in the order of the names.
    columns : tuple of int, optional
        The named elements, counted among the elements of `inputs`; None for all of them.
    """

    inputs: tuple[str, ...]
    columns: tuple[int, ...] | None

    @classmethod
    def of(cls, function: Function, wrt: Names, what: str) -> ChosenInputs:
        """Return what names choose: whole inputs, such as ``"w"``, and elements, as ``"w[0,2]"``.

        Raises
        ------
        InputError
            A name is unknown or repeated, or there is none.

        Examples
        --------
        >>> import difflab as dl
        >>> f = dl.parse("W: [2, 2]; x: [2]; W @ x")
        >>> ChosenInputs.of(f, ["x", "W[0,1]"], "gradient")
        ChosenInputs(inputs=('x', 'W'), columns=(0, 1, 3))
        """
        names = [wrt] if isinstance(wrt, str) else wrt
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise InputError(
                f"wrt of {what} takes the names of inputs, not {wrt!r}",
                hint='such as wrt="x" or wrt=["x", "w[0,2]"]',
            )
        sizes = dict(zip(function.inputs, map(math.prod, function.input_shapes), strict=True))
        if names and all(name in sizes for name in names):
            chosen = cls(tuple(names), None)
        else:
            chosen = _with_elements(function, names, sizes)
        columns = chosen.inputs if chosen.columns is None else chosen.columns
        if not columns or len(set(columns)) < len(columns):
            raise InputError(f"wrt of {what} names {'an input twice' if columns else 'nothing'}")
        return chosen


def _with_elements(function: Function, names: Sequence[str], sizes: dict[str, int]) -> ChosenInputs:
    """Return what names choose, if some of them are elements of arrays."""
    owners: dict[str, None] = {}
    wanted: list[tuple[str, int]] = []
    for name in names:
        if name in sizes:
            owner, inside = name, range(sizes[name])
        else:
            position, element = owner_of(function, element_index(function, name))
            owner, inside = function.inputs[position], range(element, element + 1)
        owners[owner] = None
        wanted += [(owner, k) for k in inside]
    starts = dict(zip(owners, accumulate((sizes[o] for o in owners), initial=0), strict=False))
    return ChosenInputs(tuple(owners), tuple(starts[owner] + k for owner, k in wanted))


def of_inputs(function: Function, names: Sequence[str]) -> Function:
    """Return `function` as one of some inputs only, so that transforms differentiate by these.

    It cannot be evaluated: the graph still has the other inputs. `with_inputs` names them again.
    """
    nodes = dict(zip(function.inputs, function.input_nodes, strict=True))
    return replace(function, input_nodes=tuple(nodes[name] for name in names), arguments=None)


def with_inputs(derived: Function, function: Function) -> Function:
    """Return a derivative of ``of_inputs(function, …)`` as a function of all inputs."""
    nodes = {name: node for node, name in derived.graph.names.items()}
    inputs = tuple(nodes[name] for name in function.inputs)
    return replace(derived, input_nodes=inputs, arguments=function.arguments)


def derivative_by(
    transform: Callable[[Function], Function],
    function: Function,
    wrt: Names | None,
    what: str,
    axes: int = 1,
) -> Function:
    """Return a transform's derivative by the chosen inputs, as a function of all inputs.

    Parameters
    ----------
    transform : callable
        Whose last output has the elements of all inputs along its last axis, or its last two.
    function : Function
        What is differentiated.
    wrt : str or sequence of str, optional
        The names; all inputs when None.
    what : str
        The transform's name, for messages.
    axes : {1, 2}
        Along how many axes these are.
    """
    if wrt is None:
        return transform(function)
    chosen = ChosenInputs.of(function, wrt, what)
    derived = with_inputs(transform(of_inputs(function, chosen.inputs)), function)
    if chosen.columns is None:
        return derived
    return _columns_only(derived, chosen.columns, axes)


def _columns_only(derived: Function, columns: Sequence[int], axes: int) -> Function:
    """Return the function with only some indices along the last axes of its last output."""
    *rows, width = derived.output_shapes[-1]
    lines = columns if axes == 2 else range(math.prod(rows))
    positions = [line * width + column for line, column in product(lines, columns)]
    shape = (len(columns),) * 2 if axes == 2 else (*rows, len(columns))
    return last_output_of(derived, positions, shape)
