"""Recording of one run of a user's Python function, and evaluation of functions on its values.

A callable is traced at every call of its derivative: it may close over values that change, so
an earlier graph may be out of date. Objects derived from a graph depend on the graph alone and
are cached by the graph's contents.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from difflab.core.apply import array_module
from difflab.core.conversions import as_float64, as_numbers, as_reals
from difflab.core.ownership import owned
from difflab.core.place import at_users_line
from difflab.errors import InputError, TraceError
from difflab.graph.control import prepared
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function, inline
from difflab.graph.ir import Params, Shape
from difflab.graph.node import Node, innermost_trace
from difflab.graph.point_values import PointValues
from difflab.graph.pytree import LEAF, Structure, flatten, unflatten
from difflab.graph.trace import TraceBuilder
from difflab.graph.values import DOUBLE, Precision, first_carrier, in_precision, precision_of

__all__ = [
    "Contents",
    "Recording",
    "as_real",
    "computed",
    "contents_of",
    "record",
    "stack_size",
]

NOTHING = flatten(None)[1]
"""The structure of no auxiliary data."""
STACKED_ELEMENTS = 1 << 17
"""Elements of the largest value of a call with many seeds or examples: it fits into the cache."""
FEWEST_STACKED, MOST_ELEMENTS = 32, 1 << 19
"""Seeds or examples of a call with larger values, for which smaller ones would be inefficient;
and the elements beyond which there are fewer all the same."""
LARGEST_KEPT = 20_000
"""Number of nodes above which functions derived from a graph are not cached."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Recording:
    """A traced run of a function.

    Attributes
    ----------
    function : Function
        Its inputs are the leaves of the arguments, then the captured values; its outputs are
        the leaves of the result, then the traced ones of the auxiliary data.
    results : int
        How many outputs are leaves of the result.
    structure : Structure
        Of the result.
    captured : list
        Arrays, and values of traces around this one, that the function used.
    auxiliary : tuple
        The leaves of the auxiliary data, with the position of an output in place of each
        traced one, and their structure.
    precisions : list of Precision
        Of the outputs: transforms return them in its dtype.
    in_double : bool
        Whether the code computed anything in float64.
    """

    function: Function
    results: int
    structure: Structure
    captured: list[Any]
    auxiliary: tuple[list[Any], Structure]
    precisions: list[Precision]
    in_double: bool

    @classmethod
    def of(cls, function: Function, has_aux: bool) -> Recording:
        """Return a Function as a recording; with `has_aux` its first output alone is the result."""
        count = len(function.outputs)
        others = [AuxOutput(k) for k in range(1, count)]
        auxiliary = flatten(others[0] if len(others) == 1 else tuple(others))
        structure = function.structure or flatten(tuple(range(count)))[1]
        if has_aux or (function.structure is None and count == 1):
            structure = LEAF
        results = 1 if has_aux else count
        return cls(function, results, structure, [], auxiliary, [DOUBLE] * count, True)

    def result(self, outputs: Sequence[Any]) -> Any:
        """Return the result, given the values of all outputs."""
        return unflatten(self.structure, outputs[: self.results])

    def typed(self, outputs: Sequence[Any]) -> list[Any]:
        """Return outputs, or values for them such as tangents, in the dtypes of the code."""
        return list(map(in_precision, outputs, self.precisions))

    def derived(self, transform: Callable[..., T], *details: Any, **more: Any) -> T:
        """Return ``transform(function, *details)``, cached by the graph's contents."""
        if len(self.function.graph) > LARGEST_KEPT:
            return transform(self.function, *details, **more)
        result: T = _derived(transform, contents_of(self.function), details, tuple(more.items()))
        return result

    def aux(self, outputs: Sequence[Any]) -> Any:
        """Return the auxiliary data, given the values of all outputs."""
        leaves, structure = self.auxiliary
        return unflatten(
            structure,
            [outputs[leaf.position] if isinstance(leaf, AuxOutput) else leaf for leaf in leaves],
        )


@dataclass(frozen=True, slots=True)
class AuxOutput:
    """The position of an output, in place of an auxiliary leaf."""

    position: int


class Contents:
    """A function, or a trace that is not yet one, that compares by contents and source locations.

    Most calls of a derivative record the same graph as an earlier call. They reuse its function, so
    that neither the graph nor the objects derived from it are made again.
    """

    __slots__ = ("function", "hashed", "key")

    def __init__(self, function: Any) -> None:
        graph = function.graph
        columns = (
            graph.opcode,
            graph.starts,
            graph.args,
            graph.spans,
        )
        self.function = function
        self.key = (
            tuple([column.tobytes() for column in columns]),
            _ids(graph.param_ids),
            _ids(graph.shape_ids),
            tuple(graph.primitives),
            tuple(graph.param_table),
            tuple(graph.shape_table),
            graph.source.keys,
            # repr distinguishes 0.0 from -0.0 and 1 from 1.0.
            repr(graph.constants),
            tuple(graph.labels.items()),
            function.input_nodes,
            function.outputs,
        )
        self.hashed = hash(self.key)

    def __hash__(self) -> int:
        return self.hashed

    def __reduce__(self) -> tuple[Any, ...]:
        return contents_of, (self.function,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contents) and self.key == other.key


def _ids(column: Any) -> Any:
    """Return a column of ids, or of a builder its entries that are not 0, as a part of a key."""
    return tuple(column.items()) if isinstance(column, dict) else column.tobytes()


def contents_of(function: Function) -> Contents:
    """Return the contents of a function, read once."""
    cache = function.derived_cache
    contents: Contents | None = cache.get("contents")
    if contents is None:
        contents = cache["contents"] = Contents(function)
    return contents


class _Trace(NamedTuple):
    """A finished trace: the columns of a function before the graph is made."""

    graph: TraceBuilder
    input_nodes: tuple[int, ...]
    outputs: tuple[int, ...]

    def function(self) -> Function:
        """Return the function."""
        names = [f"y{k + 1}" for k in range(len(self.outputs))]
        return Function.build(self.graph, self.input_nodes, self.outputs, names)


@lru_cache(maxsize=256)
def _known_function(contents: Contents) -> Function:
    """Return the function of a trace, with the values that the code captured."""
    function: Function = contents.function.function()
    contents.function = function
    return function


@lru_cache(maxsize=256)
def _derived(
    transform: Callable[..., Any],
    contents: Contents,
    details: tuple[Any, ...],
    more: Params,
) -> Any:
    return transform(contents.function, *details, **dict(more))


def record(
    call: Callable[[list[Node]], Any],
    shapes: Sequence[Shape],
    has_aux: bool,
    values: Sequence[Any] | None = None,
    precisions: Sequence[Precision] = (),
) -> Recording:
    """Run `call` on traced values of the given shapes.

    Parameters
    ----------
    call : callable
        Takes the traced leaves, returns a tree, or with `has_aux` a pair of trees.
    shapes : sequence of tuple
        One for each leaf.
    has_aux : bool
        Whether the second of two results is auxiliary data.
    values : sequence, optional
        The value of each leaf, if the recording is for this point alone: the code may then branch
        on traced values.
    precisions : sequence of Precision, optional
        Of each leaf, float64 by default.

    Raises
    ------
    TraceError
        The code cannot be recorded, or does not return values.
    """
    aux: Any = None
    with TraceBuilder(captures=True) as trace:
        inputs = [trace.input(f"x{k + 1}", shape) for k, shape in enumerate(shapes)]
        if values is not None:
            point = dict(zip(inputs, values, strict=True))
            trace.values = PointValues(ChainMap(point, trace.captured))
        kinds = precisions or [DOUBLE] * len(inputs)
        result = call([Node(trace, node, kind) for node, kind in zip(inputs, kinds, strict=True)])
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise TraceError("with has_aux=True the function returns a pair (result, aux)")
            result, aux = result
        leaves, structure = flatten(result)
        outputs = [_output(trace, leaf) for leaf in leaves]
        out_kinds = list(map(precision_of, leaves))
        aux_leaves, aux_structure = flatten(aux) if has_aux else ([], NOTHING)
        for index, leaf in enumerate(aux_leaves):
            if isinstance(leaf, Node) and leaf.builder is trace:
                aux_leaves[index] = AuxOutput(len(outputs))
                outputs.append(leaf.id)
                out_kinds.append(leaf.precision)
    whole = _Trace(trace, tuple(trace.names), tuple(outputs))
    kept = len(trace) <= LARGEST_KEPT
    function = _known_function(Contents(whole)) if kept else whole.function()
    captured = list(trace.captured.values())
    in_double = trace.in_double or DOUBLE in (*out_kinds, *kinds, *map(precision_of, captured))
    for value in (*(values or ()), *captured):
        if in_double and isinstance(value, Node):
            value.builder.in_double = True
    auxiliary = aux_leaves, aux_structure
    return Recording(function, len(leaves), structure, captured, auxiliary, out_kinds, in_double)


def _output(trace: TraceBuilder, leaf: Any) -> int:
    """Return the node of one leaf of a result."""
    if isinstance(leaf, Node) and leaf.builder is trace:
        return leaf.id
    if not isinstance(leaf, Node):
        convert = as_reals if isinstance(leaf, np.ndarray | np.generic | complex) else as_numbers
        leaf = convert(leaf, "a result of the function", TraceError)
    captured = trace.lift(leaf)
    if captured is not None:
        return captured
    if isinstance(leaf, np.number | np.bool_ | int | float):
        return trace.constant(float(leaf))
    if isinstance(leaf, np.ndarray) and leaf.ndim == 0 and leaf.dtype.kind in "fiub":
        return trace.constant(float(leaf))
    raise TraceError(
        f"the function returned {type(leaf).__name__}, not a value computed from its arguments",
        hint="results must be scalars, arrays, and tuples, lists and dicts of them; "
        "anything else may be returned as auxiliary data with has_aux=True",
    )


def computed(function: Function, values: Sequence[Any], stack: int | None = None) -> list[Any]:
    """Return the outputs of `function`: evaluated, or appended to the trace of traced values.

    Parameters
    ----------
    function : Function
        The function to apply.
    values : sequence
        One value per input, of its shape.
    stack : int, optional
        The size of the extra leading axis of some values, and of every output.
    """
    traced = innermost_trace(values)
    if traced is not None:
        builder, nodes = traced
        return [Node(builder, node) for node in inline(function, builder, nodes)]
    carrier = first_carrier(values)
    if carrier is not None:
        return owned(function.on_carriers(values, carrier), values)
    xp = array_module(values, "a derivative", [f"value {k + 1}" for k in range(len(values))])
    with np.errstate(all="ignore"):
        results = prepared(function.in_floats, ArrayInterpreter(xp))(values)
    lead = () if stack is None else (stack,)
    if xp is not np:
        return [
            xp.array(xp.broadcast_to(xp.asarray(r), lead + s))
            for r, s in zip(results, function.output_shapes, strict=True)
        ]
    outputs = [
        _shaped(result, lead + shape)
        for result, shape in zip(results, function.output_shapes, strict=True)
    ]
    return owned(outputs, values)


def stack_size(function: Function, mapped: Sequence[int]) -> int:
    """Return how many values of some input nodes one call takes in stacks of limited size."""
    largest: dict[tuple[int, ...], int] = function.derived_cache.setdefault("largest stacked", {})
    key = tuple(mapped)
    if key not in largest:
        graph = function.graph
        sizes = np.array([math.prod(shape) for shape in graph.shape_table])[graph.shape_ids]
        depends = np.frombuffer(graph.reached_from(key), dtype=np.bool_)
        largest[key] = max(int(sizes[depends].max(initial=0)), 1)
    size = largest[key]
    return max(1, STACKED_ELEMENTS // size, min(FEWEST_STACKED, MOST_ELEMENTS // size))


def _shaped(result: Any, shape: Shape) -> Any:
    """Return a result as a scalar or as an array that owns its memory."""
    if shape == ():
        return np.asarray(result)[()]
    array = np.asarray(result)
    if array.shape != shape:
        array = np.broadcast_to(array, shape)
    return array if array.flags.owndata and array.flags.writeable else array.copy()


def as_real(leaf: Any, what: str) -> Any:
    """Return a leaf to differentiate with respect to; integers are rejected, as they are discrete.

    Raises
    ------
    InputError
        It holds integers, booleans or nothing real.
    """
    dtype = getattr(leaf, "dtype", None)
    if isinstance(leaf, int) or getattr(dtype, "kind", "f") in "iub":
        kind = type(leaf).__name__ if isinstance(leaf, int) else f"{dtype}"
        raise at_users_line(
            InputError,
            f"{what} is of type {kind}, and there is no derivative by integers",
            "write 3.0 for 3, or convert arrays with .astype(float)",
        )
    return as_float64(leaf, what)
