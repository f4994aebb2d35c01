"""`Node`: a value of a graph under construction, to write derivative rules and traces with.

It overloads Python's operators and NumPy's functions (NEP 13 and NEP 18), so code written
for scalars and arrays records graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from difflab import arrays
from difflab.arrays.complex_array import is_complex
from difflab.arrays.idioms import Idioms
from difflab.arrays.numpy_names import alternative_to, of_function, of_ufunc
from difflab.core.apply import OtherCarrierError
from difflab.core.conversions import as_numbers, as_reals
from difflab.core.place import at_users_line, user_location
from difflab.core.primitive import Primitive
from difflab.errors import ShapeError, TraceError
from difflab.graph.builder import Builder
from difflab.graph.ir import Shape
from difflab.graph.keys import picked
from difflab.graph.precision import DOUBLE, SINGLE, WEAK, Precision, joint, precision_of
from difflab.primitives import (
    absolute,
    add,
    as_number,
    constant_array,
    divide,
    equal,
    float32,
    greater,
    greater_equal,
    less,
    less_equal,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    stop_gradient,
    subtract,
    where,
)

__all__ = ["AssignedError", "Node", "innermost_trace"]

BOOL = np.dtype(np.bool_)

INSTEAD = (
    "np.stack([a, b]) makes an array of traced values, as in"
    " np.stack([np.sin(x[i]) for i in range(3)]); np.concatenate joins them, and"
    " np.where(mask, new, z) replaces some, as z.at[key].set(new) does in a traced z"
)
"""Hint for code that assigns traced values to a NumPy array."""
BRANCH_INSTEAD = (
    "write dl.cond(condition, f, g, x) instead of `if`, or numpy.where(condition, a, b) for each"
    " element, and (a < x) & (x < b) instead of `and` and a < x < b; or run the code on"
    " difflab.tensor, or under grad or jvp alone, which can branch"
)
LOOP_INSTEAD = (
    "write dl.while_loop(condition, step, x) instead of `while`, or dl.scan and dl.fori_loop for a"
    " known number of turns; or run the code on difflab.tensor, or under grad or jvp alone, which"
    " can branch"
)
NO_NUMBER = "a traced value has no number yet"


class AssignedError(TraceError):
    """A traced value was converted to a number, as NumPy does on assignment."""

    def of_an_array(self) -> TraceError:
        """Return the error for ``z[i] = value`` with a NumPy array ``z``."""
        where = self.message.removeprefix(NO_NUMBER)
        message = f"a traced value cannot be assigned to a part of a NumPy array{where}"
        return TraceError(message, text=self.text, span=self.span, hint=INSTEAD)


Operator = Callable[["Node", Any], "Node"]


def _operators(primitive: Primitive) -> tuple[Operator, Operator]:
    """Return the methods of an operator of Python, and of its reflection."""

    # Fast paths: scalar code is a node for each operation.
    def applied(self: Node, other: Any) -> Node:
        builder, kind = self.builder, other.__class__
        if kind is Node and other.builder is builder:
            ids = self.id, other.id
        elif kind is float or kind is int:
            ids = self.id, builder.constant(other)
        else:
            return self.__difflab_apply__(primitive, (self, other), {})
        return _result(builder, builder.emit(primitive, ids), primitive, (self, other))

    def reflected(self: Node, other: Any) -> Node:
        builder, kind = self.builder, other.__class__
        if kind is float or kind is int:
            ids = builder.constant(other), self.id
            return _result(builder, builder.emit(primitive, ids), primitive, (self, other))
        return self.__difflab_apply__(primitive, (other, self), {})

    return applied, reflected


class Node(Idioms):
    """A node of `builder` with Python's operators.

    Examples
    --------
    >>> builder = Builder()
    >>> x = Node(builder, builder.input("x"))
    >>> y = np.sin(x) * x + 1
    >>> builder.primitive(y.id)
    <primitive add>
    """

    __slots__ = ("builder", "id", "precision")
    __hash__ = None  # type: ignore[assignment]  # == builds a comparison node

    def __init__(self, builder: Builder, id: int, precision: Precision = DOUBLE) -> None:
        self.builder = builder
        self.id = id
        self.precision = precision

    @property
    def shape(self) -> Shape:
        """The shape of the value at one point."""
        return self.builder.shape(self.id)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype: float64, float32 or bool."""
        builder = self.builder
        return BOOL if builder.boolean[builder.opcode[self.id]] else self.precision.dtype

    def of_precision(self, precision: Precision) -> Node:
        """Return the same value with another dtype."""
        return Node(self.builder, self.id, precision)

    def holds_truths(self) -> bool:
        """Whether all elements are known to be truth values; inputs are assumed to be."""
        return _holds_truths(self.builder, self.id)

    def filled(self, value: float) -> Node:
        """Return an array of this shape filled with `value`."""
        builder = self.builder
        return Node(builder, builder.spread(builder.constant(value), self.shape), self.precision)

    def copy(self) -> Node:
        """Return the same values; nothing changes a traced value."""
        return self

    def detach(self) -> Node:
        """Return the same values as a constant of every derivative."""
        stopped: Node = stop_gradient(self)
        return stopped

    def __difflab_apply__(
        self, primitive: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Node:
        builder = _innermost(args)
        try:
            ids = tuple([_leaf(builder, value) for value in args])
        except OtherCarrierError as found:
            result: Node = found.carrier.__difflab_apply__(primitive, args, params)
            return result
        node = builder.emit(primitive, ids, tuple(sorted(params.items())))
        return _result(builder, node, primitive, args)

    __add__, __radd__ = _operators(add)
    __sub__, __rsub__ = _operators(subtract)
    __mul__, __rmul__ = _operators(multiply)
    __truediv__, __rtruediv__ = _operators(divide)
    __pow__, __rpow__ = _operators(power)
    __mod__, __rmod__ = _operators(mod)
    __lt__, __le__ = _operators(less)[0], _operators(less_equal)[0]
    __gt__, __ge__ = _operators(greater)[0], _operators(greater_equal)[0]
    __eq__ = _operators(equal)[0]  # type: ignore[assignment]  # builds a node
    __ne__ = _operators(not_equal)[0]  # type: ignore[assignment]  # builds a node

    def __matmul__(self, other: Any) -> Node:
        product: Node = arrays.matmul(self, _array_of(other))
        return product

    def __rmatmul__(self, other: Any) -> Node:
        product: Node = arrays.matmul(_array_of(other), self)
        return product

    def __neg__(self) -> Node:
        return Node(self.builder, self.builder.emit(negative, (self.id,)), self.precision)

    def __abs__(self) -> Node:
        return Node(self.builder, self.builder.emit(absolute, (self.id,)), self.precision)

    def __getitem__(self, key: Any) -> Node:
        if type(key) is int:  # fast path: loops index vectors very often
            shape = self.shape
            if len(shape) == 1 and -shape[0] <= key < shape[0]:
                element = self.builder.element(self.id, key % shape[0])
                return Node(self.builder, element, self.precision)
        chosen: Node = picked(self, key)
        return chosen

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise at_users_line(
            TraceError,
            "a traced value cannot be changed in place",
            "build a new value: x = x.at[key].set(new), np.where(mask, new, x), np.stack or"
            " np.concatenate; or run the code on difflab.tensor, which can be changed in place",
        )

    def __difflab_cast__(self, dtype: np.dtype[Any]) -> Any:
        """Return the value rounded to float32, or as it is; others are no dtypes of a graph."""
        if dtype == SINGLE.dtype:
            return float32(as_number(self) if self.dtype == BOOL else self)
        return self.of_precision(DOUBLE) if dtype == DOUBLE.dtype else NotImplemented

    def __difflab_value__(self) -> Any:
        return self.builder.known_value(self.id)

    def __bool__(self) -> bool:
        value = self.builder.known_value(self.id)
        if value is None:
            raise _branch_error()
        if self.size != 1:
            raise at_users_line(
                ShapeError, f"the truth value of a traced value of shape {self.shape} is ambiguous"
            )
        return bool(value)

    def __float__(self) -> NoReturn:
        raise at_users_line(
            AssignedError,
            NO_NUMBER,
            "use NumPy's functions (np.sin) instead of those of `math`",
        )

    def __format__(self, spec: str) -> str:
        return repr(self) if not spec else self.__float__()

    item = __float__
    __int__ = __float__
    __complex__ = __float__

    def __index__(self) -> NoReturn:
        raise at_users_line(
            TraceError,
            f"{NO_NUMBER}, so it is neither an index nor a number of turns",
            "make it a constant of the trace: close over it, or name its position in"
            " static_argnums of dl.jit; dl.while_loop takes a number of turns that is computed,"
            " dl.scan the elements of an array",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise at_users_line(
            TraceError,
            "a traced value cannot be turned into a NumPy array",
            INSTEAD,
        )

    # Series of pandas leave operators to this class, as the arrays of NumPy do.
    __pandas_priority__ = 10_000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NEP 13: NumPy's elementwise functions append nodes."""
        if "out" in kwargs:
            raise at_users_line(
                TraceError,
                f"numpy.{ufunc.__name__} cannot write a traced value into a NumPy array",
                f"write z = z + x for z += x; {INSTEAD}",
            )
        compute = of_ufunc(ufunc) if method == "__call__" and not kwargs else None
        if compute is None:
            called = "" if method == "__call__" else f".{method}"
            raise _unknown(ufunc.__name__, called)
        return compute(*map(_array_of, inputs))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        """NEP 18: NumPy's array functions, where difflab has a counterpart."""
        compute = of_function(function, args, kwargs)
        if compute is None:
            raise _unknown(function.__name__)
        return compute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<node {self.id} {self.builder.primitive(self.id) or 'leaf'} {self.shape}>"


def _result(builder: Builder, node: int, row: Primitive, operands: Sequence[Any]) -> Node:
    """Return the node of an operation with its dtype; truth values have no part in others'."""
    first = operands[0]
    # Fast path: no precision is larger, and most operations are of float64.
    wide = first.__class__ is Node and first.precision is DOUBLE and row is not float32
    precision = DOUBLE if wide else joint(row, operands)
    if precision is DOUBLE:
        builder.in_double = True
    return Node(builder, node, WEAK if row.boolean else precision)


def _branch_error() -> TraceError:
    """Return the error for a branch in code that is traced without values."""
    place = user_location()
    loop = (place.text or "").startswith("while")
    hint = LOOP_INSTEAD if loop else BRANCH_INSTEAD
    return place.error(TraceError, "a branch on a traced value cannot be recorded in a graph", hint)


def _unknown(name: str, called: str = "") -> TraceError:
    return at_users_line(
        TraceError,
        f"difflab has no primitive for numpy.{name}{called} used this way",
        alternative_to(name),
    )


def _holds_truths(builder: Builder, node: int) -> bool:
    """Whether a node holds truth values, also after data movement or conversion to numbers."""
    todo, seen = [node], {node}
    while todo:
        node = todo.pop()
        row, number = builder.primitive(node), builder.number(node)
        if row is None:
            if number is not None and number not in (0, 1):
                return False
        elif row is constant_array:
            values = np.frombuffer(builder.params(node)["values"])
            if not np.all((values == 0) | (values == 1)):
                return False
        elif row is where or (row.structural and row is not as_number):
            sources = builder.arguments(node)[row is where :]
            todo += [source for source in sources if source not in seen]
            seen.update(sources)
        elif row is not as_number and not row.boolean:
            return False
    return True


READ = "a value that traced code reads"
"""Its name in messages."""


def innermost_trace(values: Sequence[Any]) -> tuple[Builder, list[int]] | None:
    """Return the innermost trace that `values` belong to, and their nodes there.

    None where no value is traced.
    """
    if not any(isinstance(value, Node) for value in values):
        return None
    builder = _innermost(values)
    return builder, [_leaf(builder, value) for value in values]


def _innermost(operands: Sequence[Any]) -> Builder:
    """Return the builder of the trace that began last among those of the operands."""
    builders = [value.builder for value in operands if isinstance(value, Node)]
    return builders[0] if len(builders) == 1 else max(builders, key=lambda item: item.depth)


def _leaf(builder: Builder, value: Any) -> int:
    """Return the node of an operand: its own, a constant, or the input it is lifted to."""
    if isinstance(value, Node):
        if value.builder is builder:
            return value.id
        lifted = builder.lift(value)
        if lifted is not None:
            return lifted
        raise at_users_line(
            TraceError,
            "a value of one trace is used in another",
            "return traced values from the function instead of storing them elsewhere",
        )
    if isinstance(value, bool | np.bool_):
        value = int(value)
    if type(value) is np.float64:  # a float that prints differently
        value = float(value)
    if isinstance(value, int | float):
        return builder.constant(value)
    if is_complex(value):
        own = isinstance(value, arrays.ComplexArray)
        raise OtherCarrierError(value if own else arrays.ComplexArray(value.real, value.imag))
    value = as_reals(value, READ, TraceError)
    lifted = builder.lift(value)
    if lifted is not None:
        return lifted
    if isinstance(value, np.number) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return builder.constant(value.item())
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        exact = np.ascontiguousarray(value, dtype=np.float64)
        params = (("shape", exact.shape), ("values", exact.tobytes()))
        return builder.emit(constant_array, (), params)
    raise TraceError(f"a graph takes numbers and traced values, not {type(value).__name__}")


def as_nodes(builder: Builder, values: Sequence[Any]) -> list[Node]:
    """Return values as nodes of their shapes; numbers and arrays become constants."""
    return [Node(builder, _leaf(builder, value), precision_of(value)) for value in values]


def _array_of(value: Any) -> Any:
    """Return a list of numbers as an array; other operands as they are."""
    if isinstance(value, list) and not any(isinstance(part, Node) for part in value):
        return as_numbers(value, "a list that traced code reads", TraceError)
    return value
