"""Derivatives of graphs by their flattened inputs, or by some that are chosen by name."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, product
from typing import Any

from difflab.autodiff.engine.argnums import curvature
from difflab.autodiff.engine.jacobian_entries import SweepMode, derived, entries, last_output_of
from difflab.autodiff.engine.reverse import by_reverse
from difflab.autodiff.engine.squares import squares_once
from difflab.autodiff.engine.sweep import Sweep, function_of, packed
from difflab.core.system import require_memory
from difflab.core.wording import unknown_name
from difflab.errors import InputError
from difflab.graph.checks import require_function
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.repetition import LEAST_NODES, rolled
from difflab.primitives import reshape

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
    return list(accumulate(map(math.prod, function.input_shapes), initial=0))


def _input_name(name: str, inputs: tuple[str, ...]) -> str:
    if name in inputs:
        return name
    raise unknown_name("variable", name, inputs)


Names = str | Sequence[str]


@dataclass(frozen=True)
class ChosenInputs:
    """The variables of differentiation.

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
        """Return the selected variables: whole inputs, as ``"w"``, and elements, as ``"w[0,2]"``.

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
    """Return the selected variables, if some of them are elements of arrays."""
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
        The function to differentiate.
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


def gradient(function: Function, mode: SweepMode = "reverse", wrt: Names | None = None) -> Function:
    """Return ∇f as a function of the same inputs.

    ``∇f(x) = (∂f/∂x₁, …, ∂f/∂xₙ)`` with the inputs flattened in order. In reverse mode it
    needs at most a small constant times the operations of f, independently of n (Baur & Strassen,
    1983). A large f with many terms of the same form is differentiated on vectors of those terms.

    All inputs are differentiated by, in one array. `grad`, as in JAX, differentiates by the first
    input or argument alone unless it is given `argnums`, and also takes Python code.

    Parameters
    ----------
    function : Function
        With one scalar output.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its output has the shape batch + (n,), where n counts the elements of the chosen inputs.

    Raises
    ------
    InputError
        The function has several outputs, `mode` is unknown, or `wrt` names no input.

    Examples
    --------
    >>> import difflab as dl
    >>> g = dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))
    >>> g(2.0, 5.0).round(12).tolist()
    [5.5, 1.716337814537]
    >>> dl.gradient(dl.parse("a*x^2 + b"), wrt="x")(2.0, 5.0, 3.0)
    array([12.])
    """
    require_scalar(function, "gradient", "jacobian", "dl.grad(f, argnums)(*arguments)")
    if wrt is not None:
        return derivative_by(partial(gradient, mode=mode), function, wrt, "gradient")
    sweep, slope = _swept(function, mode)
    if mode == "auto":
        return derived(sweep, slope, "gradient", fewest=True)
    return function_of(sweep, [slope], ["gradient"])


def value_and_gradient(
    function: Function, mode: SweepMode = "reverse", wrt: Names | None = None
) -> Function:
    """Return a function with the outputs f(x) and ∇f(x), which share their computation.

    Parameters
    ----------
    function : Function
        With one scalar output.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its outputs have the shapes batch and batch + (n,).

    Raises
    ------
    InputError
        The function has several outputs, or `wrt` names no input.

    Examples
    --------
    >>> import difflab as dl
    >>> value, slope = dl.value_and_gradient(dl.parse("x^2"))(3.0)
    >>> float(value), slope.tolist()
    (9.0, [6.0])
    """
    what = "value_and_gradient"
    require_scalar(function, what, "jacobian", "dl.value_and_grad(f, argnums)(*arguments)")
    if wrt is not None:
        return derivative_by(partial(value_and_gradient, mode=mode), function, wrt, what)
    sweep, slope = _swept(function, mode)
    value = sweep.node(sweep.function.outputs[0])
    value = value if value.shape == () else reshape(value, shape=(), rank=value.ndim)
    return function_of(sweep, [value, slope], [function.output_names[0], "gradient"])


def _swept(function: Function, mode: str) -> tuple[Sweep, Node]:
    """Return ∇f, on vectors of repeated terms where one reverse sweep differentiates them."""
    if not isinstance(mode, str) or mode != "reverse":
        return entries(function, mode)
    if len(function.graph) >= LEAST_NODES:
        function = rolled(function)
    return by_reverse(squares_once(function))


def jacobian(function: Function, mode: SweepMode) -> Function:
    """Return J, of shape (m, n)."""
    m, n = function.m, function.n
    require_memory(8 * m * n, f"the matrix of {m:,} × {n:,} derivatives")
    sweep, flat = entries(function, mode)
    builder = sweep.builder
    matrix = Node(builder, builder.emit(reshape, (flat.id,), (("rank", 1), ("shape", (m, n)))))
    return derived(sweep, matrix, "jacobian", fewest=mode == "auto")


def hessian(function: Function) -> Function:
    """Return the second derivatives, of shape (n, n)."""
    require_scalar(function, "hessian", "jacobian(jacobian(f))")
    # On scalars even where terms repeat: a column involves few terms, but whole vectors otherwise.
    slope = derived(*entries(function, "reverse"), "gradient", fewest=False)
    return replace(jacobian(slope, "auto"), output_names=("hessian",))


def hvp(function: Function) -> Function:
    """Return H ẋ, a vector; for each input ``x`` a direction ``x_dot`` is a further input."""
    require_scalar(function, "hvp", "jvp(jacobian(f))")
    return in_one_vector(curvature(function, tuple(range(len(function.inputs)))), "hvp")


def in_one_vector(function: Function, name: str) -> Function:
    """Return a function with the elements of all outputs in one vector."""
    sweep = Sweep(function)
    vector = packed(sweep, [sweep.node(output) for output in function.outputs])
    return Function.build(sweep.builder, function.input_nodes, [vector.id], [name])


def require_scalar(function: Any, what: str, instead: str, of_code: str = "") -> None:
    """Raise `InputError` unless `function` is a Function with exactly one output element.

    `instead` is the transform for several outputs, `of_code` that for Python code, if there is one.
    """
    if not isinstance(function, Function):
        require_function(function, what, of_code)
    if len(function.outputs) != 1 or math.prod(function.graph.shape(function.outputs[0])) != 1:
        raise InputError(
            f"{what} needs a function with one output number, this one has {function.m}",
            hint=f"use {instead}",
        )
