"""`Function`: a graph with named inputs and outputs, callable on points and batches of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.apply import array_module, device_context
from difflab.core.conversions import as_numbers
from difflab.core.ownership import owned
from difflab.core.primitive import Custom
from difflab.core.system import require_memory
from difflab.core.wording import counted
from difflab.errors import InputError, PointError
from difflab.graph.arguments import Arguments, by_input
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter, Interpreter, fold
from difflab.graph.exponents import has_rounded_exponents, quotient
from difflab.graph.interpreters import interpreter_for
from difflab.graph.ir import Graph, Shape, packed_slices
from difflab.graph.names import missing_values, shortened
from difflab.graph.node import Node, innermost_trace
from difflab.graph.pytree import Structure, unflatten
from difflab.graph.rewrite import rewrite
from difflab.graph.values import are_numbers, checked_value, first_carrier, in_dtype_of
from difflab.graph.views import Views
from difflab.primitives import power


@dataclass(frozen=True, eq=False)
class Function(Views):
    """A function from named inputs to one or several outputs; its derivative is another.

    Attributes
    ----------
    graph : Graph
        The computation.
    input_nodes, outputs : tuple of int
        The nodes of the inputs and of the outputs.
    output_names : tuple of str
        A name for each output.
    structure : Structure, optional
        How a call groups the outputs into tuples, lists and dicts; None returns the only
        output, or the tuple of them.
    arguments : Arguments, optional
        How a call groups the inputs into trees, where an argument is one; None takes a value for
        each input. With trees, a call by position may still give a value for each input.
    traced_in : str
        The dtype of the examples with which code was traced, if that is not float64, in which the
        function is evaluated by default.
    text : str, optional
        The program that was parsed. A derivative or a rewritten function has none: it is not
        the function of that text, though its graph still has locations in that text.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    >>> f.inputs
    ('x1', 'x2')
    >>> round(float(f(2.0, 5.0)), 12)
    11.652071455223
    """

    graph: Graph
    input_nodes: tuple[int, ...]
    outputs: tuple[int, ...]
    output_names: tuple[str, ...]
    structure: Structure | None = None
    text: str | None = None
    arguments: Arguments | None = None
    traced_in: str = ""

    @classmethod
    def build(
        cls,
        builder: Builder,
        inputs: Sequence[int],
        outputs: Sequence[int],
        output_names: Sequence[str],
        structure: Structure | None = None,
        text: str | None = None,
        arguments: Arguments | None = None,
    ) -> Function:
        """Freeze the nodes of `builder` that `outputs` need into a function."""
        graph, kept = builder.graph().pruned(outputs)
        by_name = dict(zip(graph.names.values(), graph.names, strict=True))
        nodes = map(by_name.__getitem__, map(builder.names.__getitem__, inputs))
        return cls(graph, tuple(nodes), kept, tuple(output_names), structure, text, arguments)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(self.graph.input_name(node) for node in self.input_nodes)

    @cached_property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shape of each input at one point."""
        return tuple(self.graph.shape(node) for node in self.input_nodes)

    @cached_property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shape of each output at one point."""
        return tuple(self.graph.shape(node) for node in self.outputs)

    @cached_property
    def n(self) -> int:
        """The number of flattened inputs."""
        return sum(map(math.prod, self.input_shapes))

    @cached_property
    def m(self) -> int:
        """The number of flattened outputs."""
        return sum(map(math.prod, self.output_shapes))

    @cached_property
    def derived_cache(self) -> dict[str, Any]:
        """Cache of derived objects, keyed by the module that owns them."""
        return {}

    def __reduce__(self) -> tuple[type[Function], tuple[Any, ...]]:
        # Cached objects are neither copied nor pickled.
        return Function, tuple(getattr(self, field.name) for field in fields(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate at a point, or at a batch of points by leading axes.

        Parameters
        ----------
        *args, **kwargs
            A value for each input, by position or by name. Scalars and arrays, mpmath numbers,
            SymPy expressions, arrays of CuPy, JAX or PyTorch, or graph nodes.

        Returns
        -------
        array or tuple of arrays
            The output of shape batch + output shape; a tuple when there are several.

        Raises
        ------
        PointError
            A value is missing, unknown or of the wrong shape.
        """
        values = self.arranged(args, kwargs)
        interpreter = interpreter_for(values, self.inputs)
        if isinstance(interpreter, ArrayInterpreter):
            results = in_dtype_of((args, kwargs), self._computed(values, interpreter))
        else:
            carrier = first_carrier(values)
            whole = hasattr(carrier, "__difflab_function__")
            if whole and (self._holds_custom_rows or self.batch(values) != ()):
                results = self.on_carriers(values, carrier)
            else:
                results = evaluate(self, values)
        return self.returned(owned(results, values))

    @cached_property
    def _holds_custom_rows(self) -> bool:
        """Whether a row has rules for all arguments at once, such as a loop."""
        return any(isinstance(row.rule, Custom) for row in self.graph.primitives)

    @cached_property
    def in_floats(self) -> Function:
        """The function for float64: powers to exponents that would be rounded are quotients.

        Examples
        --------
        >>> import difflab as dl
        >>> print(dl.parse("x^(0.1 - 1)").in_floats.graph.primitives[-1])
        <primitive divide>
        """
        if power not in self.graph.primitives or not has_rounded_exponents(self.graph):
            return self
        builder = Builder(self.graph.source)
        copied = rewrite(self.graph, builder, quotient)
        inputs = [copied[node] for node in self.input_nodes]
        outputs = [copied[node] for node in self.outputs]
        names, structure = self.output_names, self.structure
        return Function.build(builder, inputs, outputs, names, structure, arguments=self.arguments)

    def on_arrays(self, values: Sequence[Any]) -> list[Any]:
        """Return every output for one array per input, of shape batch + output shape."""
        return self._computed(values, ArrayInterpreter(array_module(values, "a function")))

    def on_carriers(self, values: Sequence[Any], carrier: Any) -> list[Any]:
        """Return every output, computed by one operation that `carrier` records."""
        cache = self.derived_cache
        outputs: list[Any] = carrier.__difflab_function__(
            self, values, lambda f: f.on_arrays, cache
        )
        return outputs

    def returned(self, results: Sequence[Any]) -> Any:
        """Return the outputs, a sequence, in the structure that a call returns."""
        if self.structure is not None:
            return unflatten(self.structure, results)
        return results[0] if len(results) == 1 else tuple(results)

    def values(self, points: NDArray[Any], on: ArrayInterpreter | None = None) -> NDArray[Any]:
        """Return the flattened outputs at packed points.

        Parameters
        ----------
        points : (n,) or (N, n) array
            The flattened inputs, in order; real, complex or mpmath objects.
        on : ArrayInterpreter, optional
            Computes the operations; NumPy's kernels by default.

        Returns
        -------
        (m,) or (N, m) array
        """
        points = np.asarray(points)
        batch = points.shape[:-1]
        results = self._computed(self.split(points), on or ArrayInterpreter())
        flat = [
            np.broadcast_to(np.asarray(result), batch + shape).reshape((*batch, -1))
            for result, shape in zip(results, self.output_shapes, strict=True)
        ]
        packed = np.concatenate(flat, axis=-1) if len(flat) > 1 else flat[0]
        # Finite differences subtract truth values.
        if packed.dtype == np.bool_:
            return packed.astype(np.float64)
        own: NDArray[Any] = owned([packed], [points])[0]
        return own

    def split(self, points: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut packed points ``(…, n)`` into the inputs' values."""
        if points.shape[-1:] != (self.n,):
            raise PointError(
                f"a packed point has {self.n} elements, not {points.shape[-1:] or 'one'}"
            )
        batch = points.shape[:-1]
        return [
            points[..., part].reshape(batch + shape)
            for part, shape in zip(packed_slices(self.input_shapes), self.input_shapes, strict=True)
        ]

    def _computed(self, values: Sequence[Any], on: ArrayInterpreter) -> list[Any]:
        """Evaluate on arrays, the outputs broadcast to the whole batch."""
        interpreter: Interpreter = on
        if any(getattr(getattr(value, "dtype", None), "kind", "") == "O" for value in values):
            _require_numbers(self, values)
            interpreter = interpreter_for(np.asarray(values[0]).ravel()[:1].tolist())
        batch = self.batch(values)
        with np.errstate(all="ignore"), nullcontext() if on.xp is np else device_context(values):
            results = _folded(self, values, interpreter)
            if on.xp is not np:
                results = [on.xp.asarray(result) for result in results]
            elif not batch:
                return results
            return [
                result
                if getattr(result, "shape", ()) == batch + shape
                else on.xp.broadcast_to(result, batch + shape)
                for result, shape in zip(results, self.output_shapes, strict=True)
            ]

    def batch(self, values: Sequence[Any]) -> Shape:
        """Return the common batch shape of the inputs' values.

        Raises
        ------
        PointError
            The batches do not fit each other.
        """
        shapes = [getattr(value, "shape", ()) for value in values]
        batches = {
            whole[: len(whole) - len(shape)]
            for whole, shape in zip(shapes, self.input_shapes, strict=True)
        }
        try:
            return np.broadcast_shapes(*batches)
        except ValueError:
            shown = ", ".join(map(str, sorted(batches)))
            raise PointError(f"the batches of the inputs differ in shape: {shown}") from None

    def arranged(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return one value per input, converted and checked, as a call requires.

        Raises
        ------
        PointError
            A value is missing, unknown or of the wrong shape.
        """
        values = self.ordered(args, kwargs)
        return list(map(checked_value, values, self.inputs, self.input_shapes))

    def ordered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return one value per input, as the call gives it.

        Raises
        ------
        PointError
            A value is missing or unknown.
        """
        if self.arguments is not None:
            args, kwargs = self.arguments.flattened(args, kwargs, self.inputs)
        by_name = by_input(self.inputs, args, kwargs)
        missing = [name for name in self.inputs if name not in by_name]
        if missing:
            raise PointError(
                missing_values(missing),
                hint="pass the inputs one by one: f(*point)" if self._is_point(args) else None,
                text=self.graph.text,
                span=self.graph.span(self.input_nodes[self.inputs.index(missing[0])]),
            )
        return [by_name[name] for name in self.inputs]

    def _is_point(self, args: Sequence[Any]) -> bool:
        """Whether the only argument holds a number for each of several scalar inputs."""
        if len(args) != 1 or any(self.input_shapes):
            return False
        shape = getattr(args[0], "shape", None)
        return shape == (self.n,) or (isinstance(args[0], list | tuple) and len(args[0]) == self.n)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same computation of the same inputs."""
        if not isinstance(other, Function):
            return NotImplemented
        return self is other or (
            self.inputs == other.inputs
            and self.input_shapes == other.input_shapes
            and self.output_names == other.output_names
            and self.structure == other.structure
            and self.arguments == other.arguments
            and self._same_computation(other)
        )

    def _same_computation(self, other: Function) -> bool:
        """Append both to one builder: equal computations become equal nodes."""
        builder = Builder()
        mine, theirs = rewrite(self.graph, builder), rewrite(other.graph, builder)
        return all(mine[a] == theirs[b] for a, b in zip(self.outputs, other.outputs, strict=True))

    def __hash__(self) -> int:
        return hash((self.inputs, self.input_shapes, self.output_names, len(self.graph)))

    def __repr__(self) -> str:
        names = f"({shortened(self.inputs)}) -> ({shortened(self.output_names)})"
        line = self._line()
        return f"<Function {names}, {len(self.graph)} nodes{f': {line}' if line else ''}>"


def evaluate(
    function: Function,
    values: Mapping[str, Any] | Sequence[Any],
    interpreter: Interpreter | None = None,
) -> list[Any]:
    """Return the outputs of `function` on one value per input, of any kind.

    Parameters
    ----------
    function : Function
        The function to evaluate.
    values : mapping or sequence
        A value for each input, by name or in order: floats, arrays, mpmath numbers, SymPy
        expressions, nodes of another graph.
    interpreter : Interpreter, optional
        The meaning of operations on these values; chosen from the values when None.

    Returns
    -------
    list
        The value of every output.

    Raises
    ------
    PointError
        An input has no value.

    Examples
    --------
    >>> import sympy, difflab as dl
    >>> dl.evaluate(dl.parse("x*sin(x)"), {"x": sympy.Symbol("x")})
    [x*sin(x)]
    """
    if not isinstance(function, Function):
        raise InputError(
            f"evaluate takes a Function, not {type(function).__name__}",
            hint="make one of text by dl.parse(text), of Python code by dl.trace(f, *examples)",
        )
    if interpreter is not None and not hasattr(interpreter, "operation"):
        raise InputError(f"{type(interpreter).__name__} is not an interpreter of operations")
    if isinstance(values, Mapping):
        missing = [name for name in function.inputs if name not in values]
        if missing:
            raise PointError(missing_values(missing))
        values = [values[name] for name in function.inputs]
    inputs = _in_order(function, values, enter=interpreter is None)
    if interpreter is not None:
        return _folded(function, inputs, interpreter)
    traced = innermost_trace(inputs) if isinstance(first_carrier(inputs), Node) else None
    if traced is not None:
        builder, nodes = traced
        return in_dtype_of(inputs, [Node(builder, k) for k in inline(function, builder, nodes)])
    with device_context(inputs):
        return _folded(function, inputs, interpreter_for(inputs))


def _folded(function: Function, values: Sequence[Any], on: Interpreter) -> list[Any]:
    """Return the outputs on one value per input."""
    floats = function.in_floats
    if floats is not function and isinstance(on, ArrayInterpreter):
        function = function if any(map(_is_complex, values)) else floats
    environment = dict(zip(function.input_nodes, values, strict=True))
    return fold(function.graph, environment, function.outputs, on)


def _is_complex(value: Any) -> bool:
    """Whether a number, or an array of any package, is complex."""
    return isinstance(value, complex) or "complex" in str(getattr(value, "dtype", ""))


def _entered(function: Function, values: Sequence[Any]) -> list[Any]:
    """Return values with all that they are; integers of NumPy, which overflow, as floats."""
    entered = []
    for name, value in zip(function.inputs, values, strict=True):
        value = as_numbers(value, f"the value of '{name}'", PointError)
        whole = isinstance(value, np.ndarray | np.integer) and value.dtype.kind in "iu"
        entered.append(value.astype(np.float64) if whole else value)
    return entered


def _in_order(function: Function, values: Sequence[Any], *, enter: bool) -> Sequence[Any]:
    """Return values, one per input."""
    count = len(values) if isinstance(values, list | tuple) or np.ndim(values) else -1
    if count != len(function.inputs):
        values_text = "one value" if count < 0 else counted(count, "value")
        raise PointError(
            f"the function has {counted(len(function.inputs), 'input')}, and {values_text} given",
            hint="evaluate takes a list of values in order, or a dict by name",
        )
    if enter:
        values = _entered(function, values)
    _require_numbers(function, values)
    return values


def _require_numbers(function: Function, values: Sequence[Any]) -> None:
    """Raise `PointError` unless every value can be computed with."""
    for name, value in zip(function.inputs, values, strict=True):
        if not are_numbers(value):
            raise PointError(f"the value of '{name}' is not a number")


def evaluate_all(
    function: Function, values: Sequence[Any], interpreter: Interpreter | None = None
) -> list[Any]:
    """Return the value of every node of `function`'s graph."""
    require_memory(8 * function.graph.element_count(), "keeping the value of every operation")
    by_node = dict(zip(function.input_nodes, values, strict=True))
    with np.errstate(all="ignore"):
        nodes = range(len(function.graph))
        return fold(function.graph, by_node, nodes, interpreter or interpreter_for(values))


def inline(function: Function, builder: Builder, inputs: Sequence[int]) -> list[int]:
    """Append `function` applied to nodes of `builder`; return its outputs there."""
    known = dict(zip(function.input_nodes, inputs, strict=True))
    copied = rewrite(function.graph, builder, known=known)
    return [copied[node] for node in function.outputs]
