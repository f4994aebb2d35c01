"""`while_loop`, which continues in machine code after many steps of arithmetic, with the same bits.

Python runs the steps until the loop proves to be long. Code that consists of arithmetic, each
operation of which IEEE 754 rounds in one way, and of functions whose inner loops in NumPy machine
code can call, is then recorded, and compiled in a thread while the steps go on. Whatever Python or
NumPy would raise or warn of (a division by zero, an overflow) results in a value that is not
finite; such a run is discarded, and Python continues with the step at which it began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from difflab.autodiff.control.while_loops import (
    PlainLoop,
    append_while_loop,
    recorded_loop,
    repeated,
)
from difflab.autodiff.recording import Contents
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute import workers
from difflab.execute.arithmetic_code import Arithmetic, arithmetic
from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.libraries import NUMPY, available, host, inner_loop
from difflab.graph.control import WhileLoop
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph
from difflab.graph.node import Node
from difflab.graph.pytree import unflatten
from difflab.graph.rewritten import composed, inlined, selected
from difflab.primitives import TABLE
from difflab.primitives.c99 import C99

_FUNCTIONS = {row: C99[row.ufunc] for row in TABLE.values() if C99.get(row.ufunc) in NUMPY}
"""Rows that are universal functions of NumPy's, and their names in C, whose bits are NumPy's."""
_EXACT = frozenset({"negative", "absolute", "where", "index", "broadcast"})
_COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
_LARGEST = 2.0**52
"""Integers up to which float64 computes as Python's integers do."""


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Return the final value of ``while cond_fun(value): value = body_fun(value)``.

    In a trace this is one node. It can be differentiated in both modes, to any order: reverse
    mode keeps the values of all steps, whose number is known when the loop has run.

    Parameters
    ----------
    cond_fun : callable
        ``cond_fun(value)`` returns a truth value.
    body_fun : callable
        ``body_fun(value)`` returns the next value, of the same structure and shapes.
    init_val : tree
        The first value.

    Raises
    ------
    ShapeError
        The condition is not a scalar, or the value changes its structure or a shape.

    Notes
    -----
    On scalars and arrays Python runs the steps, so that side effects of the code, such as
    printing, are those of the loop above. Where the code does nothing but arithmetic (``+ - * /``,
    comparisons, `abs`, ``np.sqrt``, ``np.where`` of scalars and arrays of float64), the loop
    continues in machine code after some thousand steps; results, warnings and errors are the same.
    So does code that calls ``np.exp`` and its kin (``sin``, ``log``, ``tanh``, …): NumPy rounds
    them differently from the C library (`exp` at 5 % of 200,000 random arguments), so machine code
    calls NumPy's own inner loops. If the code has other operations, as ``**``, Python runs all.
    Under `jit` it is machine code from the first step, whatever it computes.

    Examples
    --------
    Newton's iteration for the square root, and its derivative 1/(2·√2):

    >>> import difflab as dl
    >>> def root(a):
    ...     go = lambda x: abs(x * x - a) > 1e-12
    ...     return dl.while_loop(go, lambda x: 0.5 * (x + a / x), a)
    >>> round(float(root(2.0)), 12), round(float(dl.grad(root)(2.0)), 12)
    (1.414213562373, 0.353553390593)
    """
    return repeated(cond_fun, body_fun, init_val, _ahead)


def _ahead(loop: PlainLoop) -> _Rest | None:
    """Return an object that computes the rest of a loop; None if only Python can."""
    if np.geterr()["under"] != "ignore":
        return None
    reads = arithmetic((loop.cond_fun, loop.body_fun))
    return None if reads is None else _Rest(loop, reads)


def _contents(array: Any) -> Any:
    """Return a key that is equal for arrays of the same shape, type and bits."""
    return array.shape, array.dtype, blake2b(np.ascontiguousarray(array).data).digest()


def _is_finite(value: Any) -> bool:
    """Return whether a value is finite float64, or an integer of at most 2**52 in magnitude."""
    kind = type(value)
    if kind is int:
        return bool(-_LARGEST <= value <= _LARGEST)
    real = kind in (float, np.float64) or (kind is np.ndarray and value.dtype == np.float64)
    return real and bool(np.isfinite(value).all())


class _Rest:
    """The remaining iterations of a loop, in machine code as soon as that is compiled.

    The code is prepared once for each set of its reads and the types of the value.
    """

    def __init__(self, loop: PlainLoop, reads: Arithmetic) -> None:
        self._loop, self._reads, self._asked = loop, reads, 0
        self._dropped = False

    def __call__(self, tree: Any) -> Any:
        """Return the last value; None if Python is to run the steps."""
        loop, self._asked = self._loop, self._asked + 1
        leaves = loop.leaves_of(tree)
        kinds = tuple(map(type, leaves))
        if self._dropped or not all(map(_is_finite, leaves)):
            return None
        key = self._reads.key, loop.structure, tuple(loop.shapes), kinds
        contents = [*map(_contents, self._reads.arrays)]
        prepared = _PREPARED.get(key)
        if (prepared is None or prepared.contents != contents) and (
            self._asked > 1 or (prepared is not None and prepared.code is not None)
        ):
            if len(_PREPARED) >= _MOST:
                _PREPARED.clear()
            prepared = _PREPARED[key] = _prepare(loop, contents, tree)
        if prepared is None or prepared.contents != contents:
            return None
        if prepared.code is None or prepared.code.run is None:
            return None
        captured = [self._reads.arrays[index] for index in prepared.places]
        if not all(map(_is_finite, captured)):
            return None
        results = prepared.code.run(*leaves, *prepared.code.zeros, *captured)
        count = len(kinds)
        values = [_as(kind, value) for kind, value in zip(kinds, results, strict=False)]
        # Python raises, or NumPy warns, before a value that is not finite.
        self._dropped = not all(np.isfinite(check).all() for check in results[count:])
        self._dropped |= not all(map(_is_finite, values))
        return None if self._dropped else unflatten(loop.structure, values)


class _Prepared(NamedTuple):
    """The machine code of a loop, and the arrays among its reads that are its inputs.

    A recording contains copies of arrays, and scalars computed from their elements: it is valid for
    the contents that they had. For others the loop is recorded again, which results in the same
    machine code if they are only its inputs.
    """

    contents: list[Any]
    code: _MachineLoop | None = None
    places: Sequence[int] = ()


_PREPARED: dict[Any, _Prepared] = {}
"""What was prepared last, without code where only Python takes steps, by what determines it."""
_MOST = 256


def _prepare(loop: PlainLoop, contents: list[Any], tree: Any) -> _Prepared:
    """Record a loop, and begin to compile it."""
    nothing = _Prepared(contents)
    leaves = loop.leaves_of(tree)
    kinds = [*map(type, leaves)]
    try:
        with np.errstate(all="ignore"):
            after = loop.leaves_of(loop.body_fun(tree))
        whole, captured = recorded_loop(loop)
    except Exception:  # the next step of Python raises it, or the code cannot be recorded
        return nothing
    captured_contents = [*map(_contents, captured)]
    if kinds != [*map(type, after)] or not all(one in contents for one in captured_contents):
        return nothing
    integers = tuple([index for index, kind in enumerate(kinds) if kind is int])
    code = _code(Contents(whole.test), Contents(whole.body), integers)
    return _Prepared(contents, code, [contents.index(one) for one in captured_contents])


def _as(kind: type, value: Any) -> Any:
    """Return a result as a value of Python's loop."""
    return np.asarray(value) if kind is np.ndarray else kind(value)


class _MachineLoop:
    """A loop as machine code, which is compiled in a thread.

    Attributes
    ----------
    checks, zeros : list
        Shapes of further values that it carries, and zeros of these shapes, which become nan where
        the result of an operation is not finite.
    run : callable or None
        Takes the value, `zeros`, and the constants; returns the last value and checks. None until
        it is compiled, or if it cannot be.
    """

    def __init__(self, loop: WhileLoop) -> None:
        count, graph = len(loop.output_shapes), loop.body.graph
        rounded = [
            node
            for node in range(FIRST_ROW, len(graph))
            if (row := graph.primitive(node)) is not None and _is_rounded(row)
        ]
        self.checks = sorted({graph.shape(node) for node in rounded})
        outputs = [*loop.body.outputs, *rounded]
        wide = selected(loop.body, outputs, [f"y{k}" for k in range(len(outputs))])
        extra = len(self.checks)
        inputs = loop.input_shapes
        shapes = [*inputs[:count], *self.checks, *inputs[count:]]

        def own(nodes: list[Node]) -> list[Node]:
            return [*nodes[:count], *nodes[count + extra :]]

        def step(nodes: list[Node]) -> list[Node]:
            outputs = inlined(wide, own(nodes))
            checks = dict(zip(self.checks, nodes[count:], strict=False))
            for node in outputs[count:]:
                checks[node.shape] = checks[node.shape] + 0.0 * node
            return [*outputs[:count], *checks.values()]

        test = composed(lambda nodes: inlined(loop.test, own(nodes)), shapes)
        whole = WhileLoop(test, composed(step, shapes))
        self._function = composed(lambda nodes: append_while_loop(whole, nodes), shapes)
        self.zeros = [np.zeros(shape)[()] for shape in self.checks]
        self.run: Callable[..., Any] | None = None
        workers.begin(self._compile)

    def _compile(self) -> None:
        machine = replace(host(), of_numpy=True)
        with suppress(UnsupportedError):
            target = NativeArrays(Schedule.of(self._function), machine=machine)
            self.run = lambda *values: target(values)


@lru_cache(maxsize=64)
def _code(test: Contents, body: Contents, integers: tuple[int, ...]) -> _MachineLoop | None:
    """Return a loop as machine code; None if that would differ from Python's steps."""
    loop = WhileLoop(test.function, body.function)
    if not available() or not all(_is_exact(each, integers) for each in loop.functions):
        return None
    outputs, inputs = body.function.outputs, body.function.input_nodes
    graph = body.function.graph
    for index in integers:
        node = outputs[index]
        if node != inputs[index] and not _is_count(graph, node, inputs[index]):
            return None
    return _MachineLoop(loop)


def _is_rounded(row: Primitive) -> bool:
    """Whether a primitive's results need a check; others keep finite values finite."""
    return row.ulps == 0.5 or row in _FUNCTIONS


def _is_exact(function: Function, integers: Sequence[int]) -> bool:
    """Return whether each operation has the results of Python's and NumPy's, for any real type.

    Results of integers alone, which Python does not round, are counters and comparisons.
    """
    graph = function.graph
    whole = {function.input_nodes[index] for index in integers}
    for node in range(len(graph)):
        row = graph.primitive(node)
        if row is None:
            if graph.opcode[node] == CONSTANT:
                number = graph.constant(node)
                if not _is_finite(number):
                    return False
                if type(number) is int:
                    whole.add(node)
            continue
        if row in _FUNCTIONS and not inner_loop(_FUNCTIONS[row]):
            return False
        if not _is_rounded(row) and row.name not in _EXACT | _COMPARISONS:
            return False
        args = graph.arguments(node)
        counts = row.name in ("add", "subtract") and any(
            _is_count(graph, node, function.input_nodes[index]) for index in integers
        )
        if whole.issuperset(args) and row.name not in _COMPARISONS:
            if not counts:
                return False
            whole.add(node)
    return True


def _is_count(graph: Graph, node: int, counter: int) -> bool:
    """Return whether a node is a counter plus or minus an integer."""
    row = graph.primitive(node)
    if row is None or row.name not in ("add", "subtract"):
        return False
    first, second = graph.arguments(node)
    if row.name == "add" and second == counter:
        first, second = second, first
    return first == counter and _is_integer(graph, second)


def _is_integer(graph: Graph, node: int) -> bool:
    return graph.opcode[node] == CONSTANT and type(graph.constant(node)) is int
