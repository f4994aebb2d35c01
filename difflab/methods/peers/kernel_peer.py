"""Base classes of the packages with one adjoint per batch, and of those with kernels.

The adjoint of a function on a batch gives one row of the Jacobian per point, so that a Jacobian is
one call at as many copies of the point as there are outputs. A kernel is a function of Python's
syntax whose source the package compiles; its body, a line per operation, reads ``x[i, k]`` and
writes ``y[i, j]``.
"""

from __future__ import annotations

import linecache
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.function import Function
from difflab.methods.expressions import expressions
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.scalar_peer import (
    ScalarInterpreter,
    ScalarPeer,
    reductions,
    scalar_module,
)
from difflab.methods.peers.spelling import RenamedModule
from difflab.methods.peers.written_values import Lines, WrittenName, WrittenValue

Pullback = Callable[[Array, Array | None], tuple[Array, Array]]
"""Maps points ``(N, n)`` and cotangents ``(N, m)`` to values ``(N, m)`` and slopes ``(N, n)``.

Without cotangents the adjoint is not compiled, and the second result is empty.
"""
Outputs = Callable[[list[Any], ScalarInterpreter], Sequence[Any]]
"""Maps symbols and an interpreter of graphs to the outputs, as expressions."""
_numbers = count()
_COMPARED: Mapping[str, Callable[..., Any]] = {
    "equal": operator.eq,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "not_equal": operator.ne,
}


class _Calls:
    """A package whose functions write their calls."""

    def __init__(self, prefix: str, package: Any) -> None:
        self._prefix = prefix
        self._package = package

    def __getattr__(self, name: str) -> WrittenName:
        return WrittenName(f"{self._prefix}.{name}", "", getattr(self._package, name))


class _KernelInterpreter(ScalarInterpreter):
    """Interpreter that writes each operation on a line of its own."""

    def __init__(self, peer: KernelPeer, lines: Lines) -> None:
        whole = {**reductions(peer.module, self._named), **peer.reductions}
        super().__init__(peer.title, peer.module, peer.lifted, peer.rows, whole)
        self.lines = lines

    def _named(self, value: WrittenValue) -> WrittenValue:
        """Return a value that has a name; its text may then be used often."""
        return WrittenValue(self.lines.named(value.text), "", self.lines)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        compute = super()._scalar(primitive)

        def run(*args: Any) -> Any:
            value = compute(*args)
            if not isinstance(value, WrittenValue) or primitive.boolean:
                return value
            return self._named(value)

        return run


class BatchPeer(ScalarPeer):
    """A package whose adjoint gives a gradient per point of a batch, and no second derivatives.

    A subclass defines `batched`.
    """

    orders = (1,)

    def batched(self, outputs: Outputs, n: int, m: int, size: int) -> Pullback:
        """Return the function and its adjoint for batches of `size` points."""
        raise NotImplementedError

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian: the adjoint at a copy of the point for each output."""
        return self._jacobian(self._of(function), function.n, function.m)

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value or gradient of `code`."""
        outputs: Outputs = lambda symbols, _: [code(*symbols)]  # noqa: E731
        if order:
            return self._jacobian(outputs, n, 1)
        run = self.batched(outputs, n, 1, 1)
        return lambda x: run(x.reshape(1, n), None)[0][0]

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient by one call of the function and one of its adjoint."""
        size, batch = points or 1, () if points is None else (points,)
        run, ones = self.batched(self._of(function), function.n, 1, size), np.ones((size, 1))

        def result(arrays: tuple[Array, Array]) -> tuple[Array, Array]:
            return arrays[0].reshape(batch), arrays[1].reshape((*batch, function.n))

        return CallAdapter(
            lambda x: run(x, ones), lambda x: [np.array(x).reshape(size, function.n)], result
        )

    def _of(self, function: Function) -> Outputs:
        return lambda symbols, interpreter: expressions(function, symbols.__getitem__, interpreter)[
            1
        ]

    def _jacobian(self, outputs: Outputs, n: int, m: int) -> PeerCall:
        run, unit = self.batched(outputs, n, m, m), np.eye(m)
        run(np.ones((m, n)), unit)  # compiles
        return lambda x: run(np.repeat(x.reshape(1, n), m, axis=0), unit)[1]


class KernelPeer(BatchPeer):
    """A package of kernels.

    A subclass defines `module` and `launched`.
    """

    prefix: str
    """The package's name in the code."""
    constants = ""
    """The name there of the module that has ``inf`` and ``nan``, by default the same."""

    @cached_property
    def module(self) -> RenamedModule:
        """The package under NumPy's names."""
        raise NotImplementedError

    @cached_property
    def rows(self) -> Mapping[str, Callable[..., Any]]:
        """The package's own functions by primitive."""
        return {}

    @property
    def reductions(self) -> Mapping[str, Callable[[Sequence[Any]], Any]]:
        """The package's own functions of lists of elements by primitive."""
        return {}

    def lifted(self, value: float) -> WrittenValue:
        """Return a number of the code."""
        text = repr(abs(value))
        if not math.isfinite(value):
            text = f"{self.constants or self.prefix}.{text}"
        return WrittenValue(f"(-{text})" if value < 0 else text, "")

    def launched(self, source: str, n: int, m: int) -> Pullback:
        """Compile the lines of a kernel's body and return the kernel with its adjoint."""
        raise NotImplementedError

    def names(self) -> Mapping[str, Any]:
        """Return the package as names that write code."""
        return {self.prefix: _Calls(self.prefix, import_module(self.package))}

    def symbols(self, n: int) -> list[Any]:
        """Return the inputs, by the names that the body gives them."""
        return [WrittenValue(f"x{k}", "") for k in range(n)]

    def batched(self, outputs: Outputs, n: int, m: int, size: int) -> Pullback:
        """Return the kernel that computes all outputs at the point with its number."""
        names = (f"t{number}" for number in count())
        lines = Lines(lambda: next(names))
        results = outputs(self.symbols(n), _KernelInterpreter(self, lines))
        reads = [f"x{k} = x[i, {k}]" for k in range(n)]
        writes = [f"y[i, {j}] = {self._text(result)}" for j, result in enumerate(results)]
        return self.launched("\n".join([*reads, *lines.lines, *writes]), n, m)

    def _text(self, output: Any) -> str:
        value = output if isinstance(output, WrittenValue) else self.lifted(float(output))
        return value.text


def writing_module(peer: KernelPeer, package: Any, names: Mapping[str, Any]) -> RenamedModule:
    """Return a package under NumPy's names, whose functions write their calls.

    A text among `names` is the package's own name of a function.
    """
    calls = _Calls(peer.prefix, package)
    own = {k: getattr(calls, name) if isinstance(name, str) else name for k, name in names.items()}
    logic = {
        "logical_and": lambda a, b: WrittenValue(f"({a.text} and {b.text})", ""),
        "logical_not": lambda a: WrittenValue(f"(not {a.text})", ""),
        "logical_or": lambda a, b: WrittenValue(f"({a.text} or {b.text})", ""),
    }
    return scalar_module(peer.title, calls, {**_COMPARED, **logic, **own})


def source_function(source: str, scope: Mapping[str, Any]) -> Any:
    """Return the function `kernel` of a source, which `inspect` can read again.

    Packages of kernels parse the source of the Python function that they get.
    """
    file = f"<difflab kernel {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace = dict(scope)
    # The future of annotations, which this module has, would make texts of them.
    exec(compile(source, file, "exec", dont_inherit=True), namespace)  # noqa: S102 - generated names
    return namespace["kernel"]
