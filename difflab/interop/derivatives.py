"""A compiled function and its derivatives, as the operations that another library calls.

A library that differentiates needs of an operation its value, the products J ẋ and Jᵀ ȳ, and of
these the same again. All are Functions, so each is an operation of one kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.argnums import cotangents_of, tangents_of
from difflab.errors import InputError
from difflab.execute.compiled import Compiled, compile
from difflab.graph.checks import require_function
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.repetition import rolled
from difflab.graph.values import check_shape

Sources = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CompiledOperation:
    """The value of a function, or a product with its Jacobian.

    Arguments are arrays of shape batch + shape of the input, whose batches are broadcast.

    Attributes
    ----------
    base : Function
        The function.
    settings : Compiled
        Whose target, threads and dtype are used.
    sources : tuple of int
        The inputs of `base` that are differentiated; none for its value.
    transposed : bool
        Whether it is Jᵀ ȳ: it then takes the inputs of `base` and a cotangent of each output, and
        returns a cotangent of each source. J ẋ takes the inputs and a tangent of each source, and
        returns a tangent of each output.

    Examples
    --------
    >>> import difflab as dl
    >>> f = operation(dl.parse("x*sin(y)"), "wrap")
    >>> [float(value) for value in f.tangent((0,))([2.0, 1.0, 1.0])]
    [0.8414709848078965]
    """

    base: Function
    settings: Compiled
    sources: Sources = ()
    transposed: bool = False
    known: dict[Any, CompiledOperation] = field(default_factory=dict)

    @cached_property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the arguments at one point."""
        if self.transposed:
            return self.base.input_shapes + self.base.output_shapes
        return self.base.input_shapes + self._source_shapes

    @cached_property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the results at one point."""
        return self._source_shapes if self.transposed else self.base.output_shapes

    @property
    def _source_shapes(self) -> tuple[Shape, ...]:
        return tuple(self.base.input_shapes[source] for source in self.sources)

    @property
    def linear(self) -> range:
        """The positions of the arguments in which it is linear, all together."""
        return range(len(self.base.inputs), len(self.input_shapes))

    @cached_property
    def function(self) -> Function:
        """The computation, built when it is first needed: a custom row may have one product."""
        if not self.sources:
            return self.base
        derive = cotangents_of if self.transposed else tangents_of
        return derive(rolled(self.base), self.sources)

    @cached_property
    def _call(self) -> Compiled:
        settings = self.settings
        return compile(self.function, settings.target, settings.threads, dtype=settings.dtype)

    def __call__(self, values: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the results on NumPy's arrays; they share no memory with these."""
        dtype = self.settings.dtype
        arrays = [np.asarray(value).astype(dtype, copy=False) for value in values]
        results = self._call(*arrays)
        batch = self.batch([array.shape for array in arrays])
        parts = results if len(self.output_shapes) > 1 else (results,)
        return [
            np.broadcast_to(part, batch + shape)
            for part, shape in zip(parts, self.output_shapes, strict=True)
        ]

    def batch(self, shapes: Sequence[Shape]) -> Shape:
        """Return the common batch of arguments of the given shapes."""
        batches = (
            shape[: len(shape) - len(core)]
            for shape, core in zip(shapes, self.input_shapes, strict=True)
        )
        return np.broadcast_shapes(*batches)

    def tangent(self, sources: Sources) -> CompiledOperation:
        """Return J ẋ of this operation, for tangents of some of its arguments."""
        return self._derived(self.function, sources, transposed=False)

    def cotangent(self, sources: Sources) -> CompiledOperation:
        """Return Jᵀ ȳ of this operation, for some of its arguments."""
        return self._derived(self.function, sources, transposed=True)

    def transpose(self) -> CompiledOperation:
        """Return the transposed map of a product: Jᵀ ȳ of J ẋ, and J ẋ of Jᵀ ȳ."""
        if "transpose" not in self.known:
            turned = replace(self, transposed=not self.transposed, known={"transpose": self})
            self.known["transpose"] = turned
        return self.known["transpose"]

    def _derived(
        self, function: Function, sources: Sources, *, transposed: bool
    ) -> CompiledOperation:
        """Return one object per derivative, since libraries cache by the identity of a function."""
        key = (sources, transposed)
        if key not in self.known:
            self.known[key] = CompiledOperation(function, self.settings, sources, transposed)
        return self.known[key]


def operation(f: Function | Compiled, what: str) -> CompiledOperation:
    """Return the value of a function, compiled or to be compiled, as an operation.

    Raises
    ------
    InputError
        `f` is neither, or is compiled for packed points.
    """
    if isinstance(f, Compiled):
        if f.packed:
            raise InputError(
                f"{what} takes a function of its inputs, not of packed points",
                hint="omit packed=True of dl.compile",
            )
        settings = f
    else:
        require_function(f, what)
        settings = compile(f)
    plain = replace(settings.function, structure=None, arguments=None)
    return CompiledOperation(plain, settings)


def wrapped(
    f: Function | Compiled,
    what: str,
    converted: Callable[[Sequence[Any]], list[Any]],
    apply: Callable[[CompiledOperation, list[Any]], Any],
) -> Callable[..., Any]:
    """Return a function as an operation of another library.

    Parameters
    ----------
    f : Function or compiled Function
        What to compute.
    what : str
        The public function that was called, for messages.
    converted : callable
        Returns arguments as arrays of that library, of one dtype.
    apply : callable
        ``apply(operation, arrays)`` returns the results as arrays of that library.

    Raises
    ------
    InputError
        `f` is not a Function, or takes packed points.
    """
    value = operation(f, what)
    function = f.function if isinstance(f, Compiled) else f

    def difflab_function(*args: Any, **kwargs: Any) -> Any:
        values = converted(function.ordered(args, kwargs))
        for array, name, shape in zip(values, function.inputs, function.input_shapes, strict=True):
            check_shape(tuple(array.shape), name, shape)
        return function.returned(apply(value, values))

    difflab_function.__qualname__ = difflab_function.__name__
    difflab_function.__doc__ = f"{function!r}, computed by difflab."
    return difflab_function


def batch_first(
    args: Sequence[Any],
    axes: Sequence[int | None],
    shapes: Sequence[Shape],
    move: Callable[[Any, int, int], Any],
) -> list[Any]:
    """Return arguments with a batch axis in front of their further ones, of which all have as many.

    Parameters
    ----------
    args : sequence of arrays
        The arguments of a library's `vmap`.
    axes : sequence of int or None
        Where each has the batch axis, if it has it.
    shapes : sequence of tuple of int
        The shape of each argument of the operation.
    move : callable
        The library's ``moveaxis``.

    Examples
    --------
    >>> x, y = batch_first([np.ones((3, 8)), np.ones((5, 3))], [1, None], [(3,), (3,)], np.moveaxis)
    >>> x.shape, y.shape
    ((8, 1, 3), (5, 3))
    """
    triples = list(zip(args, axes, shapes, strict=True))
    most = max(arg.ndim - len(core) - (axis is not None) for arg, axis, core in triples)
    batched = []
    for arg, axis, core in triples:
        if axis is not None:
            arg = move(arg, axis, 0)
            missing = most - (arg.ndim - 1 - len(core))
            arg = arg.reshape((*arg.shape[:1], *(1,) * missing, *arg.shape[1:]))
        batched.append(arg)
    return batched
