"""`scan` and `fori_loop`: a step that is repeated a known number of times.

The user's functions, then the row of the loop and its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.arrays import stack
from difflab.autodiff.control.backward import Backward
from difflab.autodiff.control.rows import (
    RULES,
    Rules,
    is_traced,
    require_equal_shapes,
    row_of,
    shapes_of,
    zeros,
)
from difflab.autodiff.engine.argnums import tangents_of
from difflab.autodiff.engine.batching import Arg, batched, with_axis_at
from difflab.autodiff.recording import record
from difflab.core.apply import home_of, in_library_of
from difflab.core.conversions import as_numbers
from difflab.core.ownership import owned, private
from difflab.errors import InputError, ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.control import Loop
from difflab.graph.counts import operation_count
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.node import Node
from difflab.graph.pytree import Structure, flatten, unflatten
from difflab.graph.rewritten import composed, inlined
from difflab.primitives.structure import stacks

MOST_UNROLLED = 10_000
"""Nodes up to which a loop is unrolled for what has no loops: SymPy, C, single formulas."""


def append_loop(loop: Loop, values: Sequence[Any]) -> list[Node]:
    """Append the loop to the graph of its arguments; return its outputs.

    A loop without steps returns its initial values, and results without elements.
    """
    if loop.steps == 0:
        return _unchanged(loop, values)
    return unpacked(loop_value(loop, values), loop.output_shapes)


def loop_value(loop: Loop, values: Sequence[Any]) -> Node:
    """Append the loop to the graph of its arguments; return its outputs as one vector."""
    value: Node = packed(_unchanged(loop, values)) if loop.steps == 0 else row_of(loop)(*values)
    return value


def _unchanged(loop: Loop, values: Sequence[Any]) -> list[Node]:
    builder = next(value.builder for value in values if isinstance(value, Node))
    rest = zeros(builder, loop.output_shapes)
    carried = zip(values[: loop.carries], rest, strict=False)
    carry = [value if isinstance(value, Node) else zero + value for value, zero in carried]
    return [*carry, *rest[loop.carries :]]


def _jvp(loop: Loop, dots: Sequence[Node], y: Node, *args: Node) -> list[Node]:
    """Return the tangents of the outputs: a loop that carries the tangents as well."""
    body, c, end = loop.body, loop.carries, loop.carries + loop.arrays
    push = tangents_of(body)

    def step(nodes: list[Node]) -> list[Node]:
        values, tangents = _halves(nodes, [c, end - c, len(body.inputs) - end])
        after, after_dot = inlined(body, values), inlined(push, [*values, *tangents])
        return [*after[:c], *after_dot[:c], *after_dot[c:]]

    groups = [slice(0, c), slice(c, end), slice(end, None)]
    arguments = [part for group in groups for part in (*args[group], *dots[group])]
    shapes = [s for group in groups for s in body.input_shapes[group] * 2]
    both = Loop(composed(step, shapes), 2 * c, 2 * (end - c), loop.steps, loop.reverse)
    return append_loop(both, arguments)[c:]


def _vjp(
    loop: Loop, y_bar: Node, y: Node, *args: Node, wanted: Sequence[bool]
) -> list[Node | None]:
    """Return the cotangents of arguments: a reverse loop over the steps that ran."""
    back, c = Backward(loop, wanted), loop.carries
    bars = unpacked(y_bar, loop.output_shapes)
    kept = append_loop(back.history, args)[c:]
    looped = [*kept, *(args[k] for k in back.read if k >= c), *bars[c:]]
    sums = [loop.body.input_shapes[k] for k in back.summed]
    first = [*bars[:c], *zeros(y_bar.builder, sums)]
    results = append_loop(back.sweep, [*first, *looped, *args[c + loop.arrays :]])
    return back.cotangents(results, looped)


def _batched(loop: Loop, size: int, args: list[Arg]) -> list[Node]:
    """Return the outputs of a stack of examples: one loop that carries stacks."""
    c, end = loop.carries, loop.carries + loop.arrays
    mapped = [index < c or is_mapped for index, (_, is_mapped) in enumerate(args)]
    body = batched(loop.body, mapped, size)
    values = [
        *stacks(size, args[:c]),
        *[with_axis_at(node, 0, 1) if is_mapped else node for node, is_mapped in args[c:end]],
        *[node for node, _ in args[end:]],
    ]
    outputs = append_loop(Loop(body, c, loop.arrays, loop.steps, loop.reverse), values)
    return [*outputs[:c], *[with_axis_at(stack, 1, 0) for stack in outputs[c:]]]


def _halves(nodes: Sequence[Node], sizes: Sequence[int]) -> tuple[list[Node], list[Node]]:
    """Divide groups of values, each with its tangents behind it, into values and tangents."""
    values: list[Node] = []
    tangents: list[Node] = []
    start = 0
    for size in sizes:
        values += nodes[start : start + size]
        tangents += nodes[start + size : start + 2 * size]
        start += 2 * size
    return values, tangents


def _unrolls(loop: Loop) -> bool:
    size = max(len(loop.body.graph), operation_count(loop.body))  # loops in the step unroll, too
    return loop.steps * size <= MOST_UNROLLED


RULES[Loop] = Rules(_jvp, _vjp, _batched, unrolls=_unrolls, selective=True)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    r"""Apply a step to the elements of arrays one after another, and carry a state along.

    The state and the results are those of::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    In a trace the loop is one node, whatever the number of its steps; so is its derivative.
    Reverse mode keeps of every step the state, and values that take eight operations or more for
    each of their elements to recompute, such as products with a matrix. Where the step is a
    `checkpoint`, it keeps the state alone.

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` returns the next carry, a tree of the same structure and shapes, and a
        tree of results.
    init : tree
        The first carry: scalars and arrays in tuples, lists, dicts and dataclasses.
    xs : tree of arrays, optional
        Their first axis is looped over. With None, `f` gets None.
    length : int, optional
        The number of steps; needed if `xs` has no arrays.
    reverse : bool
        Whether to begin with the last element. Results keep the order of `xs`.

    Returns
    -------
    carry, ys : tree, tree of arrays
        The last carry, and the results of all steps along a new first axis.

    Raises
    ------
    InputError
        The number of steps is unknown or differs between arrays, or `f` does not return a pair.
    ShapeError
        The carry changes its structure or a shape.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> total, sums = dl.scan(lambda s, x: (s + x, s + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(total), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])

    A recurrence and its derivative, each a loop of 100 steps:

    >>> decay = lambda x: dl.scan(lambda y, _: (0.9 * y, None), x, length=100)[0]
    >>> round(float(dl.grad(decay)(1.0)), 12) == round(0.9**100, 12)
    True
    """
    require_callable(f, "scan")
    leaves, structure = flatten(xs)
    leaves = [as_numbers(leaf, "a leaf of xs of scan") for leaf in leaves]
    steps = _length(leaves, length)
    call = _Step(f, flatten(init)[1])
    if not is_traced([*leaves, *flatten(init)[0]]):
        result = _in_python(call, init, leaves, structure, steps, reverse)
        if result is not None:
            return result
    return _as_a_node(call, init, leaves, structure, steps, reverse)


def fori_loop(lower: int, upper: int, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Return the final value of ``for i in range(lower, upper): value = body_fun(i, value)``.

    In a trace it is one node, a `scan`, and `i` is a traced scalar: it cannot index an array;
    let `scan` loop over the array instead.

    Parameters
    ----------
    lower, upper : int
        The first counter, and the one at which the loop ends.
    body_fun : callable
        ``body_fun(i, value)`` returns the next value, of the same structure and shapes.
    init_val : tree
        The first value.

    Raises
    ------
    InputError
        A bound is not an integer. With a bound that is computed, use `while_loop`.

    Examples
    --------
    >>> import difflab as dl
    >>> power = lambda x: dl.fori_loop(0, 5, lambda i, y: y * x, 1.0)
    >>> power(2.0), float(dl.grad(power)(2.0))
    (32.0, 80.0)
    """
    require_callable(body_fun, "fori_loop")
    for bound in (lower, upper):
        if not isinstance(bound, int | np.integer):
            raise InputError(
                f"the bounds of fori_loop are integers, not {type(bound).__name__}",
                hint="use while_loop, with the counter as a part of the value",
            )
    if not is_traced(flatten(init_val)[0]):
        leaves, tree = flatten(init_val)
        value = unflatten(tree, private(leaves))
        for i in range(lower, upper):
            value = body_fun(i, value)
            if is_traced(flatten(value)[0]):  # the body reads a traced value
                break
        else:
            return value

    def step(carry: tuple[Any, Any], _: None) -> tuple[Any, None]:
        i, value = carry
        return (i + 1.0, body_fun(i, value)), None

    (_, last), _ = scan(step, (float(lower), init_val), length=max(int(upper - lower), 0))
    return last


def _length(leaves: Sequence[Any], length: int | None) -> int:
    """Return the number of steps."""
    sizes = {shape[0] if shape else None for shape in shapes_of(leaves)}
    if length is not None:
        sizes.add(length)
    if None in sizes:
        raise InputError("scan loops over the first axis of arrays, and xs has a scalar")
    if len(sizes) != 1:
        shown = " and ".join(map(str, sorted(sizes))) or "nothing"  # type: ignore[type-var]
        raise InputError(
            f"scan cannot tell the number of steps: {shown} given",
            hint="the arrays of xs have first axes of one size, which is the length",
        )
    (steps,) = sizes
    if not isinstance(steps, int | np.integer) or steps < 0:
        raise InputError(f"the length of scan is a number of steps, not {steps!r}")
    return int(steps)


@dataclass(frozen=True)
class _Step:
    """The user's step, and the structure of its carry."""

    f: Callable[[Any, Any], Any]
    carry: Structure

    def __call__(self, carry: Any, x: Any) -> tuple[list[Any], Any]:
        """Return the leaves of the next carry, checked, and the results."""
        pair = self.f(carry, x)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError("the step of scan returns a pair (carry, y)")
        leaves, structure = flatten(pair[0])
        if structure != self.carry:
            raise ShapeError(
                f"the carry of scan changes its structure from {self.carry} to {structure}"
            )
        return leaves, pair[1]


def _in_python(
    call: _Step, init: Any, leaves: Sequence[Any], structure: Structure, steps: int, reverse: bool
) -> tuple[Any, Any] | None:
    """Run the loop on arrays and tensors; None if the step reads traced values."""
    carry = private(flatten(init)[0])
    shapes = shapes_of(carry)
    results: list[list[Any]] = []
    shape: Structure | None = None
    if steps == 0:
        return None  # only a trace knows the results' shapes
    for number in range(steps)[:: -1 if reverse else 1]:
        x = unflatten(structure, private([leaf[number] for leaf in leaves]))
        carry, y = call(unflatten(call.carry, carry), x)
        parts, shape = flatten(y)
        if is_traced([*carry, *parts]):
            return None
        require_equal_shapes(shapes, shapes_of(carry), "carry of scan")
        results.append(owned(parts, carry))  # the next step may change the carry in place
    ordered = results[::-1] if reverse else results
    assert shape is not None
    stacked = [_stacked(each) for each in zip(*ordered, strict=True)]
    return unflatten(call.carry, carry), unflatten(shape, stacked)


def _stacked(parts: Sequence[Any]) -> Any:
    """Stack one result of all steps; a number of the host, such as `init`, goes to the device."""
    there = next((part for part in parts if home_of(part) is not np), 0.0)
    return stack([in_library_of(there, np.asarray(p)) if np.isscalar(p) else p for p in parts])


def _as_a_node(
    call: _Step, init: Any, leaves: Sequence[Any], structure: Structure, steps: int, reverse: bool
) -> tuple[Any, Any]:
    """Append the loop to the graph."""
    first = flatten(init)[0]
    shapes = shapes_of(first)

    def run(nodes: list[Node]) -> Any:
        carry = unflatten(call.carry, nodes[: len(first)])
        after, y = call(carry, unflatten(structure, nodes[len(first) :]))
        return after, y

    elements = [shape[1:] for shape in shapes_of(leaves)]
    recording = record(run, [*shapes, *elements], has_aux=False)
    require_equal_shapes(shapes, recording.function.output_shapes[: len(first)], "carry of scan")
    loop = Loop(recording.function, len(first), len(leaves), steps, reverse)
    values = [*first, *leaves, *recording.captured]
    if is_traced(values):
        outputs: Sequence[Any] = append_loop(loop, values)
    else:  # there are no steps
        outputs = loop.run(ArrayInterpreter(), values, ())
    last, ys = unflatten(recording.structure, outputs)
    return unflatten(call.carry, last), ys
