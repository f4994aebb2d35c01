"""Base class of the peers whose values are scalar expressions; arrays are arrays of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import Number
from difflab.methods.expressions import boxed, expressions
from difflab.methods.peers.peer import Peer, PeerCall
from difflab.methods.peers.spelling import REAL, RenamedModule

PLAIN: Mapping[str, Any] = {
    "add": operator.add,
    "divide": operator.truediv,
    "multiply": operator.mul,
    "negative": operator.neg,
    "power": operator.pow,
    "subtract": operator.sub,
}
"""Python operators that work for expressions."""


class ScalarInterpreter(ElementInterpreter):
    """Interpreter whose values are NumPy object arrays of a library's scalar expressions.

    Parameters
    ----------
    title : str
        The name of the library, for error messages.
    xp : module
        The library under NumPy's names, and under SymPy's for whole arrays.
    lifted : callable
        Converts a number to an expression.
    rows : mapping
        The library's own functions of scalars, by primitive.
    reductions : mapping
        The library's functions of a list of elements, by primitive.
    """

    def __init__(
        self,
        title: str,
        xp: RenamedModule,
        lifted: Callable[[float], Any],
        rows: Mapping[str, Callable[..., Any]] | None = None,
        reductions: Mapping[str, Callable[[Sequence[Any]], Any]] | None = None,
    ) -> None:
        super().__init__()
        self.title = title
        self.xp = xp
        self.lifted = lifted
        self.rows = rows or {}
        self.reductions = reductions or {}

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the function on arrays of expressions."""
        compute = super().operation(primitive)
        return lambda *args, **params: boxed(compute(*map(boxed, args), **params))

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the nearest float64 as an expression."""
        return self.lifted(float(value))

    def _whole(self, primitive: Primitive) -> Callable[..., Any]:
        form = primitive.sympy
        if primitive.name in self.reductions:
            function = self.reductions[primitive.name]
            return lambda x, *, axes, rank: _reduced(function, x, axes)
        if primitive.name == "constant_array":
            lift = np.frompyfunc(lambda value: self.lifted(float(value)), 1, 1)
            return lambda **params: lift(primitive.computer(np)(**params))
        if not callable(form):
            if primitive.name in ("argmax", "argsort", "is_maximum"):
                raise UnsupportedError(f"{self.title} has no function '{primitive.name}'")
            return super()._whole(primitive)
        library = self.xp
        return lambda *args, **params: form(library, *args, **params)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.name == "power":  # the kernel corrects errors of NumPy's power only
            return self.xp.power  # type: ignore[no-any-return]
        compute = self.rows.get(primitive.name) or primitive.computer(self.xp)

        def run(*args: Any) -> Any:
            try:
                return compute(*args)
            except TypeError as error:  # a kernel that computes with arrays of truth values
                raise UnsupportedError(
                    f"{self.title} has no function '{primitive.name}'"
                ) from error

        return run


def reductions(
    xp: RenamedModule, named: Callable[[Any], Any] = lambda value: value
) -> dict[str, Callable[[Sequence[Any]], Any]]:
    """Return log Σeˣ and √Σx² of lists of expressions, in a library's scalar functions.

    Parameters
    ----------
    xp : module
        The library under NumPy's names.
    named : callable
        Gives a value a name, where values are texts and some are used more than once.
    """

    def added(terms: Iterable[Any]) -> Any:
        return reduce(lambda a, b: named(a + b), terms)

    def logsumexp(row: Sequence[Any]) -> Any:
        top = reduce(lambda a, b: named(xp.maximum(a, b)), row)
        return named(xp.log(added(named(xp.exp(value - top)) for value in row)) + top)

    def norm(row: Sequence[Any]) -> Any:
        return named(xp.sqrt(added(named(value * value) for value in row)))

    return {"logsumexp": logsumexp, "norm": norm}


def _reduced(function: Callable[[Sequence[Any]], Any], x: Any, axes: tuple[int, ...]) -> Any:
    """Return a function of the elements along axes."""
    kept = [axis for axis in range(-x.ndim, 0) if axis not in axes]
    shape = tuple(x.shape[axis] for axis in kept)
    rows = np.transpose(x, (*kept, *sorted(axes))).reshape((math.prod(shape), -1))
    return np.fromiter(map(function, rows), dtype=object).reshape(shape)


class ScalarPeer(Peer):
    """A package of scalar expressions: how its code is written, and how it is compiled.

    A subclass defines the `interpreter`, the `symbols` and `compiled`.
    """

    @cached_property
    def interpreter(self) -> ScalarInterpreter:
        """The package's operations and constants."""
        raise NotImplementedError

    def symbols(self, n: int) -> list[Any]:
        """Return a symbol for each input."""
        raise NotImplementedError

    def compiled(self, symbols: list[Any], outputs: list[Any], order: int) -> PeerCall:
        """Return values, Jacobian or Hessian of expressions as a function of ``(n,)``."""
        raise NotImplementedError

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian or the Hessian of the function's expressions."""
        return self.compiled(*self.expressions(function), order)

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value, gradient or Hessian of `code` on symbols."""
        symbols = self.symbols(n)
        return self.compiled(symbols, [code(*symbols)], order)

    def expressions(self, function: Function) -> tuple[list[Any], list[Any]]:
        """Return a symbol per flattened input and an expression per flattened output."""
        symbols = self.symbols(function.n)
        return expressions(function, symbols.__getitem__, self.interpreter)


def scalar_module(title: str, library: Any, names: Mapping[str, Any]) -> RenamedModule:
    """Return a library of scalar expressions under NumPy's names.

    Definitions of whole arrays ask for ``Symbol`` to know that the elements are expressions.
    """
    return RenamedModule(title, library, {**REAL, **PLAIN, "Symbol": None, **names})
