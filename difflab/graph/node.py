"""`Node`: a value of a graph under construction, to write derivative rules and traces with.

It overloads Python's operators and NumPy's functions (NEP 13 and NEP 18), so code written
for scalars and arrays records graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.complex_array import is_complex
from difflab.arrays.in_place import changed_at, with_out
from difflab.arrays.numpy_names import alternative_to, full_name, of_function, of_ufunc
from difflab.arrays.scipy_calls import not_through_scipy
from difflab.arrays.updates import Updates
from difflab.core.apply import OtherCarrierError
from difflab.core.conversions import as_numbers, as_reals
from difflab.core.ownership import Step, View, copies_on_reshape
from difflab.core.place import at_users_line
from difflab.core.primitive import Primitive
from difflab.errors import TraceError
from difflab.graph.builder import Builder
from difflab.graph.handle import AssignedError, Handle
from difflab.graph.ir import Shape
from difflab.graph.keys import known_key, picked, static_key
from difflab.graph.values import DOUBLE, SINGLE, WEAK, Precision, joint, precision_of
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
    index,
    less,
    less_equal,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    stop_gradient,
    subtract,
    transpose,
)
from difflab.primitives.movement import inverse

__all__ = ["AssignedError", "Node", "innermost_trace"]

BOOL = np.dtype(np.bool_)
_new: Any = object.__new__

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
        elif kind is ViewNode and other.builder is builder:
            made = _result(
                builder, builder.emit(primitive, (self.id, other.id)), primitive, (self, other)
            )
            # A view has put the result in order itself.
            return made if self.__class__ is ViewNode else _in_order(made, (self, other))
        else:
            return self.__difflab_apply__(primitive, (self, other), {})
        return _result(builder, builder.emit(primitive, ids), primitive, (self, other))

    def reflected(self: Node, other: Any) -> Node:
        builder, kind = self.builder, other.__class__
        if kind is float or kind is int:
            ids = builder.constant(other), self.id
            made = _result(builder, builder.emit(primitive, ids), primitive, (self, other))
            return made if self.__class__ is Node else _in_order(made, (self,))
        return self.__difflab_apply__(primitive, (other, self), {})

    return applied, reflected


class Node(Handle):
    """A node of `builder` with Python's operators.

    Examples
    --------
    >>> builder = Builder()
    >>> x = Node(builder, builder.input("x"))
    >>> y = np.sin(x) * x + 1
    >>> builder.primitive(y.id)
    <primitive add>
    """

    __slots__ = ("builder", "epoch", "id", "precision")
    __hash__ = None  # type: ignore[assignment]  # == builds a comparison node

    def __init__(self, builder: Builder, id: int, precision: Precision = DOUBLE) -> None:
        self.builder = builder
        self.id = id
        self.precision = precision
        self.epoch = builder.epoch

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

    def __difflab_constant__(self, number: float, name: str | None) -> Node:
        """Return a constant, on which operations are recorded."""
        return Node(self.builder, self.builder.constant(number, name), precision_of(number))

    def _take(self, new: Node) -> None:
        """Stand for the value of another handle from now on."""
        self.builder, self.id, self.epoch = new.builder, new.id, new.builder.epoch

    def copy(self) -> Node:
        """Return the same values; in-place changes of one do not affect the other."""
        return Node(self.builder, self.id, self.precision)

    __difflab_unchanged__ = __difflab_alone__ = copy

    def __difflab_in_rows__(self) -> bool:
        """Whether its elements would be in row-major order in memory in NumPy."""
        return True

    def __difflab_as_own__(self, value: Any) -> Any:
        """Convert new elements to a traced value, which no change in place alters."""
        return value.copy() if isinstance(value, Node) else as_nodes(self.builder, [value])[0]

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
        except OtherCarrierError as error:
            result: Node = error.carrier.__difflab_apply__(primitive, args, params)
            return result
        node = builder.emit(primitive, ids, tuple(sorted(params.items())))
        made = _result(builder, node, primitive, args)
        if primitive.view:
            return _viewed(made, args[0], primitive, params)
        if primitive.shape is None:
            for arg in args:
                if arg.__class__ is ViewNode:
                    return _in_order(made, args)
        return made

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
        if type(key) is slice:
            part: Node = picked(self, key)
            return part
        chosen: Node = picked(self, known_key(key))
        if chosen.shape:
            return chosen
        entries = key if isinstance(key, tuple) else (key,)
        if all(entry is Ellipsis or type(entry) is int for entry in entries) and ... in entries:
            params = {"key": static_key(key, self.shape), "rank": len(self.shape)}
            owner = self.copy() if self.is_number() else self
            return _view_of(chosen, owner, index, params)  # an array without axes
        return chosen.copy() if type(chosen) is ViewNode else chosen  # a number

    @property
    def at(self) -> Updates:
        """The parts that ``x.at[key].set(new)`` and its kin replace, in a new value."""
        return Updates(self, known_key)

    def __difflab_cast__(self, dtype: np.dtype[Any]) -> Any:
        """Return the value rounded to float32, or as it is; others are no dtypes of a graph."""
        if dtype == SINGLE.dtype:
            return float32(as_number(self) if self.dtype == BOOL else self)
        return self.of_precision(DOUBLE) if dtype == DOUBLE.dtype else NotImplemented

    # Series of pandas leave operators to this class, as the arrays of NumPy do.
    __pandas_priority__ = 10_000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NEP 13: NumPy's elementwise functions append nodes."""
        name = ufunc.__name__
        if method == "at" and not kwargs:
            return changed_at(name, *inputs)
        compute = of_ufunc(ufunc) if method == "__call__" else None
        if kwargs and compute is not None:
            compute = with_out(compute, kwargs, name)
        if compute is None or kwargs:
            raise _unknown(ufunc, "" if method == "__call__" else f".{method}")
        return compute(*map(_array_of, inputs))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        """NEP 18: NumPy's array functions, where difflab has a counterpart."""
        rest = {name: value for name, value in kwargs.items() if name != "out"}
        compute = of_function(function, args, rest)
        if compute is None:
            raise _unknown(function)
        if function is np.atleast_1d:
            # SciPy's solvers in C convert the value next, and print the error of that conversion.
            self._require_no_scipy()
        if len(rest) < len(kwargs):
            compute = with_out(compute, {"out": kwargs["out"]}, function.__name__)
        return compute(*args, **rest)

    def __repr__(self) -> str:
        return f"<node {self.id} {self.builder.primitive(self.id) or 'leaf'} {self.shape}>"


class ViewNode(Node):
    """A traced value that shares elements with another, of which it is a view.

    `_id` is its node in the builder `_of`, read from the owner when that was the node `_seen`.
    """

    __slots__ = ("_id", "_of", "_owner", "_seen", "_steps")

    _id: int
    _of: Builder
    _owner: Node
    _seen: int
    _steps: Step

    @property
    def _view(self) -> View:  # type: ignore[override]  # is never set
        """How it is read from its owner: most views are never written to."""
        return View(self._owner, self._steps)

    @property
    def builder(self) -> Builder:  # type: ignore[override]
        """The builder of the owner."""
        return self._owner.builder

    @property
    def id(self) -> int:  # type: ignore[override]
        """The node of the value; of the new one if the owner was changed in place."""
        owner = self._owner
        if owner.id != self._seen or owner.builder is not self._of:
            view = self._view.applied(owner.copy())
            self._id, self._of, self._seen = view.id, owner.builder, owner.id
        return self._id

    def __difflab_seen__(self, new: Node) -> None:
        """Take new elements that were written to the owner."""
        owner = self._owner
        if new.builder is owner.builder:  # else it is read again
            self._id, self._of, self._seen = new.id, owner.builder, owner.id

    def filled(self, value: float) -> Node:
        """Return an array of this shape and order in memory, filled with `value`."""
        return _in_order(super().filled(value), (self,))

    def __difflab_in_rows__(self) -> bool:
        return bool(_layout(self).flags.c_contiguous)

    def __difflab_unchanged__(self) -> Node:
        return _in_order(self.copy(), (self,))


def _ordered(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator whose result has the order in memory of its operands."""

    def ordered(self: Node, *others: Any) -> Any:
        made = method(self, *others)
        if not isinstance(made, Node):  # a complex array, or NotImplemented
            return made
        if len(made.builder.shape(made.id)) < 2:  # fast path: there is one order only
            return made
        return _in_order(made, (self, *others))

    return ordered


ViewNode.__name__ = "Node"  # messages name the type
for _name in (
    *("add", "sub", "mul", "truediv", "pow", "mod", "lt", "le", "gt", "ge", "eq", "ne"),
    *("neg", "abs"),
):
    setattr(ViewNode, f"__{_name}__", _ordered(getattr(Node, f"__{_name}__")))


def _viewed(made: Node, source: Node, row: Primitive, params: Mapping[str, Any]) -> Node:
    """Return the result of a row that moves elements as a view, where NumPy's is one."""
    if row is index:
        if not made.builder.shape(made.id):
            return made
    elif source.is_number() or (
        row.in_order
        and isinstance(source, ViewNode)
        and copies_on_reshape(source._view, source._owner.shape, made.shape)
    ):
        return made
    return _view_of(made, source, row, params)


def _in_order(made: Node, operands: Sequence[Any]) -> Node:
    """Return a new array in the order in memory that NumPy gives it, which is its operands'.

    One that is not in row-major order is a view of one that is: then reshaping copies it.
    """
    rank = len(made.shape)
    if rank < 2:
        return made
    layouts = [_layout(operand) for operand in operands if np.ndim(operand)]
    if all(layout.flags.c_contiguous for layout in layouts):
        return made
    flags: Any = [["readonly"]] * len(layouts) + [["writeonly", "allocate"]]
    allocated = np.nditer([*layouts, None], ["zerosize_ok"], flags).operands[-1]
    if allocated.flags.c_contiguous:
        return made
    order = sorted(range(rank), key=lambda axis: -allocated.strides[axis])
    axes = tuple([axis - rank for axis in order])
    owner = transpose(made, axes=axes).copy()
    return _view_of(made, owner, transpose, {"axes": inverse(axes)})


def _layout(operand: Any) -> Any:
    """Return an array with the strides of an operand, whose elements are not read."""
    view = getattr(operand, "_view", None)
    if view is not None:
        return view.applied(np.empty(view.owner.shape, dtype=np.int8))
    return operand if isinstance(operand, np.ndarray) else np.empty(operand.shape, dtype=np.int8)


def _view_of(made: Node, source: Any, row: Primitive, params: Mapping[str, Any]) -> Node:
    """Return the result of a row as a view of its operand."""
    view: ViewNode = _new(ViewNode)
    view._id, view._of, view.precision = made.id, made.builder, made.precision
    if isinstance(source, ViewNode):
        owner, view._steps = source._owner, (source._steps, row, params)
    else:
        owner, view._steps = source, (None, row, params)
    view._owner, view._seen = owner, owner.id
    return view


def _result(builder: Builder, node: int, row: Primitive, operands: Sequence[Any]) -> Node:
    """Return the node of an operation with its dtype; truth values have no part in others'."""
    first = operands[0]
    # Fast path: no precision is larger, and most operations are of float64.
    kind = first.__class__
    plain = kind is Node or kind is ViewNode
    wide = plain and first.precision is DOUBLE and not row.dtype
    precision = DOUBLE if wide else joint(row, operands)
    if precision is DOUBLE:
        builder.in_double = True
    return Node(builder, node, WEAK if row.boolean else precision)


def _unknown(function: Callable[..., Any], called: str = "") -> TraceError:
    return not_through_scipy(TraceError) or at_users_line(
        TraceError,
        f"difflab has no primitive for {full_name(function)}{called} used this way",
        alternative_to(function.__name__),
    )


def _holds_truths(builder: Builder, node: int) -> bool:
    """Whether a node holds truth values, also after data movement or conversion to floats."""
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
        elif row.boolean or len(row.truths) == row.arity:
            continue
        elif row.truths or row.structural:
            sources = [arg for k, arg in enumerate(builder.arguments(node)) if k not in row.truths]
            todo += [source for source in sources if source not in seen]
            seen.update(sources)
        else:
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
    """Convert values to nodes; scalars and arrays become constants of their shape."""
    return [Node(builder, _leaf(builder, value), precision_of(value)) for value in values]


def _array_of(value: Any) -> Any:
    """Return a list without nodes as an array; other operands unchanged."""
    if isinstance(value, list) and not any(isinstance(part, Node) for part in value):
        return as_numbers(value, "a list that traced code reads", TraceError)
    return value
