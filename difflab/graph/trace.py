"""Record Python code written with NumPy as a `Function`.

The code runs once on nodes; loops are unrolled.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from difflab.core.apply import module_of
from difflab.core.conversions import as_float64, as_reals
from difflab.core.ownership import unchanged
from difflab.errors import DifflabError, InputError, TraceError
from difflab.graph.arguments import Arguments
from difflab.graph.builder import OPEN_TRACES, Builder, Span
from difflab.graph.calls import Calls
from difflab.graph.draws import without_draws
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph, Shape
from difflab.graph.names import output_names
from difflab.graph.node import AssignedError, Node
from difflab.graph.point_values import PointValues
from difflab.graph.pytree import LEAF, Structure, flatten, is_container, unflatten
from difflab.graph.source import NOWHERE
from difflab.graph.values import DOUBLE, SINGLE, Precision, precision_of


def trace(function: Callable[..., Any], *examples: Any, verify: bool = False) -> Function:
    """Return the graph of `function` on arguments shaped like `examples`.

    Parameters
    ----------
    function : callable
        Python code over scalars and NumPy arrays, and trees of them: tuples, named tuples, lists,
        dicts and dataclasses.
    *examples : tree
        One per argument; only their shapes and their trees matter. A list or tuple of plain
        numbers is an array.
    verify : bool
        Whether to run the code once more, on the examples themselves, and to compare its value
        with that of the graph.

    Returns
    -------
    Function
        With an input for each leaf of the arguments, named as in the signature: the leaf
        ``params["w"]`` is the input ``params_w``. A call takes the trees, or the inputs by name.
        Nested results keep their trees.

    Raises
    ------
    InputError
        An example is neither a number nor a numeric array, nor a tree of these.
    TraceError
        The code branches on a value, leaves NumPy, draws from `numpy.random`, or returns
        something other than values.
    GraphMismatchError
        With `verify`, the values differ beyond rounding: the code computes something else on
        arrays than on traced values. The message has both, and the line at which they part.

    Examples
    --------
    >>> import numpy as np
    >>> f = trace(lambda a, b: np.sin(a) * b, 1.0, 2.0)
    >>> f.inputs, float(f(0.0, 3.0))
    (('a', 'b'), 0.0)
    >>> line = lambda params, x: params["w"] @ x + params["b"]
    >>> g = trace(line, {"w": np.ones(2), "b": 0.0}, [1, 2])
    >>> g.inputs, float(g({"w": np.array([2.0, 3.0]), "b": 1.0}, [1, 2]))
    (('params_b', 'params_w', 'x'), 9.0)
    """
    if not callable(function):
        raise InputError(
            f"trace takes Python code to run, not {type(function).__name__}",
            hint="text is a function by dl.parse(text)",
        )
    leaves: list[Any] = []
    trees = []
    for example in examples:
        example_leaves, tree = ([example], LEAF) if is_leaf(example) else flatten(example)
        leaves += example_leaves
        trees.append(tree)
    arguments = Arguments(tuple(parameter_names(function, len(examples))), tuple(trees))
    shapes, kinds = list(map(example_shape, leaves)), list(map(precision_of, leaves))

    def run() -> Function:
        return _traced(function, arguments, shapes, kinds)

    graph = without_draws(function, run)
    if verify:
        from difflab.graph.verify import require_traced

        require_traced(graph, function, arguments, leaves, run)
    return graph


def _traced(
    function: Callable[..., Any],
    arguments: Arguments,
    shapes: Sequence[Shape],
    kinds: Sequence[Precision],
) -> Function:
    """Run the code once on nodes of these shapes and precisions."""
    trees = arguments.trees
    with TraceBuilder(calls=True) as builder:
        names = arguments.inputs()
        inputs = [builder.input(name, shape) for name, shape in zip(names, shapes, strict=True)]
        values = [Node(builder, node, kind) for node, kind in zip(inputs, kinds, strict=True)]
        groups = zip(trees, arguments.groups(), strict=True)
        result = function(*(unflatten(tree, [values[k] for k in group]) for tree, group in groups))
        outputs, structure = _outputs(builder, result)
    labels = output_names([None] * len(outputs), names)
    grouped = None if set(trees) <= {LEAF} else arguments
    made = Function.build(builder, inputs, outputs, labels, structure, arguments=grouped)
    single = max(kinds, default=DOUBLE) is SINGLE
    return replace(made, traced_in="float32") if single else made


_BEGINNINGS = count(1)


class TraceBuilder(Builder):
    """The builder that records running code, open while the code runs.

    Traces nest: code that is being traced may differentiate, which traces again. Where an
    inner trace encounters a value of an enclosing trace, it can capture the value as one
    more input, so that derivatives with respect to inner inputs regard it as constant and
    nothing confuses the two (Siskind & Pearlmutter, 2005).

    Parameters
    ----------
    captures : bool
        Whether values of enclosing traces, arrays and tensors become inputs.
    calls : bool
        Whether each operation keeps which call of a function it belongs to.

    Attributes
    ----------
    captured : dict of int to Any
        The values that became inputs.
    values : PointValues or None
        The values of nodes, if the code is traced for one point: it can branch on them.
    """

    def __init__(self, *, captures: bool = False, calls: bool = False) -> None:
        super().__init__()
        self.calls = Calls(sys._getframe(1)) if calls else None
        self.depth = next(_BEGINNINGS)
        self.captures = captures
        self.captured: dict[int, Any] = {}
        self.values: PointValues | None = None
        self.is_open = True
        self.dropped: TraceError | None = None
        self._epochs: list[int] = []
        self._inputs: dict[tuple[int, int], tuple[int, Any]] = {}

    def copied_spans(self, graph: Graph, spans: list[int]) -> list[int]:
        """Return a graph's spans; those in a text become the position of the call."""
        return self.source.adopted(graph.source, spans, self.source.here(self.calls))

    def _append(self, opcode: int, args: tuple[int, ...], shape: int, span: Span | None) -> int:
        if opcode < FIRST_ROW or self.span != NOWHERE:
            return super()._append(opcode, args, shape, span)
        self.span = self.source.here(self.calls)
        node = super()._append(opcode, args, shape, span)
        self.span = NOWHERE
        return node

    def __enter__(self) -> TraceBuilder:
        around = OPEN_TRACES.builders
        self._epochs = [builder.epoch for builder in around]
        for builder in around:
            builder.epoch = self.depth
        around.append(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trail: object) -> None:
        around = OPEN_TRACES.builders
        around.pop()
        for builder, epoch in zip(around, self._epochs, strict=True):
            builder.epoch = epoch
        self.is_open, self.calls = False, None
        if self.dropped is not None and error is not None and not isinstance(error, DifflabError):
            raise self.dropped from error  # a solver of SciPy reported another one
        cause = error.__cause__ if isinstance(error, ValueError) else None
        if isinstance(cause, AssignedError):  # raised by NumPy's conversion to a number
            raise cause.of_an_array() from None

    def known_value(self, node: int) -> Any:
        """Return the value of a node, if the code is traced for one point."""
        return None if self.values is None else self.values.of(self, node)

    def lift(self, value: Any) -> int | None:
        """Return the input that stands for an array or a value of an enclosing trace."""
        if not self.captures:
            return None
        if isinstance(value, Node):
            around = value.builder
            # A derivative rule that traces a branch or a step has values of its sweep's builder.
            if isinstance(around, TraceBuilder) and not around.is_open:
                return None
            if around.depth >= self.depth:
                return None
            return self._captured((id(around), value.id), value.copy(), value)
        if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "fiub":
            return self._array(value)
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if hasattr(value, "__difflab_apply__"):  # a tensor
            data = getattr(value, "_data", value)
            captured = getattr(value, "__difflab_captured__", lambda: unchanged(value))
            return self._captured((0, id(data)), captured(), data)
        if module_of(value) is not np and kind in ("f", "i", "u", "b") and value.ndim:
            return self._captured((0, id(value)), module_of(value).array(value), value)
        return None

    def _array(self, value: np.ndarray[Any, Any]) -> int:
        """Capture an array as it is now: the code may overwrite it before it is evaluated."""
        key = (0, id(value))
        entry = self._inputs.get(key)
        if entry is not None and np.array_equal(self.captured[entry[0]], value, equal_nan=True):
            return entry[0]
        self._inputs.pop(key, None)
        exact = as_float64(value, "an array that the code reads", TraceError)
        node = self._captured(key, exact)
        self._inputs[key] = (node, value)
        return node

    def _captured(self, key: tuple[int, int], value: Any, owner: Any = None) -> int:
        """Make a value an input; its owner is kept alive, so that its id is not reused."""
        entry = self._inputs.get(key)
        if entry is not None:
            return entry[0]
        node = self.input(f"captured{len(self.captured) + 1}", value.shape)
        self._inputs[key] = (node, value if owner is None else owner)
        self.captured[node] = value
        return node


def is_leaf(example: Any) -> bool:
    """Whether an example is one input: an array, a scalar, or a list of Python scalars."""
    if not is_container(example) or example is None:
        return True
    return (
        isinstance(example, tuple | list)
        and not hasattr(example, "_fields")
        and all(isinstance(leaf, int | float) for leaf in flatten(example)[0])
    )


def example_shape(example: Any) -> Shape:
    """Return the shape of an example.

    Raises
    ------
    InputError
        It is neither a number nor a numeric array.
    """
    if isinstance(example, Node):
        return example.shape
    value = as_reals(example, "an example")
    return tuple(getattr(value, "shape", ()))


def parameter_names(function: Callable[..., Any], wanted: int) -> list[str]:
    """Return the names of the first `wanted` parameters, else x1, x2 and so on."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(plain) >= wanted:
        return plain[:wanted]
    return [f"x{position + 1}" for position in range(wanted)]


def _outputs(builder: Builder, result: Any) -> tuple[list[int], Structure | None]:
    """Return the nodes that the code returned, and their tree unless it is a flat sequence."""
    plain = isinstance(result, tuple | list) and not hasattr(result, "_fields")
    parts: Sequence[Any] = result if plain else [result]
    if not any(is_container(part) and part is not None for part in parts):
        return [node for part in parts for node in _flat(builder, part)], None
    leaves, structure = flatten(result)
    if not leaves:
        raise _not_a_value(result)
    return [_node(builder, leaf) for leaf in leaves], structure


def _flat(builder: Builder, part: Any) -> list[int]:
    """Return the node of a result, or those of an array of them."""
    if isinstance(part, np.ndarray) and part.dtype == object:
        return [_node(builder, element) for element in part.ravel().tolist()]
    return [_node(builder, part)]


def _node(builder: Builder, part: Any) -> int:
    """Return the node of one result; a number becomes a constant."""
    if isinstance(part, Node):
        if part.builder is not builder:
            raise TraceError("traced code returned a value of another trace")
        return part.id
    if isinstance(part, int | float | np.number):
        return builder.constant(float(as_reals(part, "a result of the code", TraceError)))
    raise _not_a_value(part)


def _not_a_value(part: Any) -> TraceError:
    return TraceError(f"traced code returned {type(part).__name__}, not a value of its arguments")
