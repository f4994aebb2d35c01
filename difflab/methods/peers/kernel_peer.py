"""Base class of the packages that compile Python's syntax to kernels: the source is written.

A kernel computes all outputs of a function at each point of a batch, a line per operation, from
``x[i, k]`` into ``y[i, j]``. Its adjoint gives one row of the Jacobian per point, so that a
Jacobian is one launch at as many copies of the point as there are outputs.
"""

from __future__ import annotations

import linecache
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.methods.expressions import expressions
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.scalar_peer import ScalarInterpreter, ScalarPeer, scalar_module
from difflab.methods.peers.spelling import RenamedModule
from difflab.methods.peers.written_values import Lines, WrittenName, WrittenValue

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["KernelPeer", "Pullback", "source_function", "writing_module"]

Pullback = Callable[[Array, Array | None], tuple[Array, Array]]
"""Maps points ``(N, n)`` and cotangents ``(N, m)`` to values ``(N, m)`` and slopes ``(N, n)``.

Without cotangents the adjoint is not compiled, and the second result is empty.
"""
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
        reductions = {"logsumexp": self._logsumexp, "norm": self._norm}
        super().__init__(peer.title, peer.module, peer.lifted, peer.rows, reductions)
        self.lines = lines

    def _named(self, value: WrittenValue) -> WrittenValue:
        """Return a value that has a name; its text may then be used often."""
        return WrittenValue(self.lines.named(value.text), "", self.lines)

    def _logsumexp(self, row: Sequence[WrittenValue]) -> WrittenValue:
        xp = self.xp
        top = reduce(lambda a, b: self._named(xp.maximum(a, b)), row)
        terms = [self._named(xp.exp(value - top)) for value in row]
        return self._named(xp.log(reduce(self._added, terms)) + top)

    def _norm(self, row: Sequence[WrittenValue]) -> WrittenValue:
        squares = [self._named(value * value) for value in row]
        return self._named(self.xp.sqrt(reduce(self._added, squares)))

    def _added(self, a: Any, b: Any) -> WrittenValue:
        return self._named(a + b)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        compute = super()._scalar(primitive)

        def run(*args: Any) -> Any:
            found = compute(*args)
            if not isinstance(found, WrittenValue) or primitive.boolean:
                return found
            return self._named(found)

        return run


class KernelPeer(ScalarPeer):
    """A package of kernels.

    A subclass defines `module` and `launched`. Second derivatives would need the
    adjoint of an adjoint, which such packages lack.
    """

    orders = (1,)
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

    def pullback(self, body: list[str], outputs: list[Any], n: int) -> Pullback:
        """Return the kernel of a body and its outputs."""
        reads = [f"x{k} = x[i, {k}]" for k in range(n)]
        texts = [self._text(output) for output in outputs]
        writes = [f"y[i, {j}] = {text}" for j, text in enumerate(texts)]
        return self.launched("\n".join([*reads, *body, *writes]), n, len(outputs))

    def _text(self, output: Any) -> str:
        value = output if isinstance(output, WrittenValue) else self.lifted(float(output))
        return value.text

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian: the adjoint at a copy of the point for each output."""
        return self._jacobian(self._written(function), function.n, function.m)

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value or gradient of `code`."""
        run = self.pullback([], [code(*self.symbols(n))], n)
        if order == 0:
            return lambda x: run(x.reshape(1, n), None)[0][0]
        return self._jacobian(run, n, 1)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient by one launch of the kernel and one of its adjoint."""
        run = self._written(function)
        run(np.ones((1, function.n)), np.ones((1, 1)))  # compiles, or refuses
        size, batch = points or 1, () if points is None else (points,)
        ones = np.ones((size, 1))

        def result(found: tuple[Array, Array]) -> tuple[Array, Array]:
            return found[0].reshape(batch), found[1].reshape((*batch, function.n))

        return CallAdapter(
            lambda x: run(x, ones), lambda x: [np.array(x).reshape(size, function.n)], result
        )

    def _written(self, function: Function) -> Pullback:
        names = (f"t{number}" for number in count())
        lines = Lines(lambda: next(names))
        symbols, interpreter = self.symbols(function.n), _KernelInterpreter(self, lines)
        _, outputs = expressions(function, symbols.__getitem__, interpreter)
        return self.pullback(lines.lines, outputs, function.n)

    def _jacobian(self, run: Pullback, n: int, m: int) -> PeerCall:
        unit = np.eye(m)
        run(np.ones((m, n)), unit)  # compiles
        return lambda x: run(np.repeat(x.reshape(1, n), m, axis=0), unit)[1]


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
    found = dict(scope)
    # The future of annotations, which this module has, would make texts of them.
    exec(compile(source, file, "exec", dont_inherit=True), found)  # noqa: S102 - generated names
    return found["kernel"]
