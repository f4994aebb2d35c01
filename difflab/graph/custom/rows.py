"""A custom function as a row of a graph: a primitive for one call with arguments of given shapes.

Its kernel runs the user's code on arrays, point by point. Several outputs form one packed vector,
which the following nodes unpack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from difflab.arrays.given import shape_of
from difflab.core.primitive import Custom, DerivativeRule, Primitive, custom
from difflab.errors import TraceError, UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.custom.call import Context, CustomCall, ForwardResult, no_rule, read_only
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.expansion import expand
from difflab.graph.function import Function, evaluate, inline
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.ir import Params, Shape, packed_slices
from difflab.graph.node import Node
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.graph.trace import TraceBuilder
from difflab.graph.values import WEAK, precision_of
from difflab.primitives import broadcast, pack

KEPT = 512
"""Size of the cache of rows, by which a repeated call becomes the same node."""


def applied(call: CustomCall, args: Sequence[Node]) -> tuple[list[Node], bool]:
    """Append a call to the graph; return its outputs, and whether there is a single one."""
    shapes = tuple([arg.shape for arg in args])
    try:
        site = _kept(call.key(), call, shapes)
    except TypeError:  # a setting that is not hashable
        site = _Site(call, shapes)
    return unpacked(site.row(*args), site.outputs, site.single), site.single


class _Site:
    """A call on arguments of given shapes.

    Attributes
    ----------
    outputs : tuple of Shape
        The shapes of the outputs.
    single : bool
        Whether `forward` returns its output itself, not in a tuple.
    recorded : Function or None
        The primitive operations of `forward`, if it can be recorded.
    row : Primitive
        The primitive in the graph.
    """

    def __init__(self, call: CustomCall, shapes: tuple[Shape, ...]) -> None:
        self.call = call
        self.shapes = shapes
        self.recorded: Function | None = None
        self._example: tuple[ForwardResult, list[Any]] | None = None
        self._rules: dict[str, Primitive] = {}
        ran = self._recorded() or self._tried()
        self.single = ran.single
        self.outputs = tuple(map(shape_of, ran.outputs))
        self.row = host_row(
            call.name,
            lambda *values: packed(call.run(values).outputs, self.single),
            shapes,
            self.outputs[0] if self.single else (_size(self.outputs),),
            custom(
                no_rule(call.function, "jvp") or self._jvp,
                no_rule(call.function, "backward") or self._vjp,
            ),
            self.recorded,
        )

    def _recorded(self) -> ForwardResult | None:
        """Record `forward`, if that is possible."""
        with TraceBuilder() as trace:
            nodes = [trace.input(f"x{k + 1}", shape) for k, shape in enumerate(self.shapes)]
            try:
                ran = self.call.run([Node(trace, node) for node in nodes])
                values = [_on(trace, output) for output in ran.outputs]
            except Exception:  # the user's code may fail in any way on values that are not numbers
                return None
        whole = packed(values, ran.single)
        self.recorded = Function.build(trace, nodes, [whole.id], ["y"])
        return ran

    def _tried(self) -> ForwardResult:
        """Run `forward` on examples."""
        draw = np.random.default_rng(0)
        examples = [read_only(draw.uniform(1.0, 2.0, shape)) for shape in self.shapes]
        try:
            ran = self.call.run(examples)
        except Exception as error:
            raise TraceError(
                f"{self.call.name}.forward can neither be recorded nor run on numbers between 1"
                f" and 2, which determine its shapes: {type(error).__name__}: {error}",
                hint="write it with NumPy's functions",
            ) from error
        self._example = ran, examples
        return ran

    def _context(self, y: Node, args: Sequence[Node]) -> Context | None:
        """Return the context of `forward` on nodes; None if unavailable.

        A saved output is the output in the graph: its derivative is the user's.
        """
        parts = unpacked(y, self.outputs, self.single)
        if self.recorded is not None:
            ran = self.call.run(args)
            own = {arg.id for arg in args}
            made = {
                output.id: part
                for output, part in zip(ran.outputs, parts, strict=True)
                if isinstance(output, Node) and output.id not in own
            }
            nodes = [value for value in ran.context.kept if isinstance(value, Node)]
            by_id = {id(node): made[node.id] for node in nodes if node.id in made}
            return ran.context.replaced(by_id)
        assert self._example is not None
        ran, examples = self._example
        settings = ran.context.settings.values()
        fixed = all(any(value is arg for arg in self.call.template) for value in settings)
        by_id = {id(one): node for one, node in zip(ran.outputs, parts, strict=True)}
        by_id |= {id(one): node for one, node in zip(examples, args, strict=True)}
        if fixed and all(id(value) in by_id for value in ran.context.kept):
            return ran.context.replaced(by_id)
        return None

    def _vjp(self, y_bar: Node, y: Node, *args: Node) -> list[Any]:
        """Return the cotangents: recorded from `backward`, or by a node that calls it."""
        call = self.call
        bars = unpacked(y_bar, self.outputs, self.single)
        context = self._context(y, args)
        recorded: Any = None
        if context is not None:
            recorded = _attempt(call.function.backward, context, *bars)  # type: ignore[attr-defined]
        if recorded is not None:
            builder = y_bar.builder
            parts = call.cotangents(recorded, self.shapes)
            return [None if part is None else _on(builder, part) for part in parts]
        whole = self._called("backward", self._pulled, self.outputs, self.shapes)(*args, *bars)
        return unpacked(whole, self.shapes)

    def _jvp(self, dots: Sequence[Node], y: Node, *args: Node) -> Node:
        """Return the tangent: recorded from `jvp`, or by a node that calls it."""
        call = self.call
        context = self._context(y, args)
        recorded: Any = None
        if context is not None:
            tangents = call.filled(dots, None)
            recorded = _attempt(call.function.jvp, context, *tangents)  # type: ignore[attr-defined]
        if recorded is not None:
            values = call.tangents(recorded, self.outputs)
            y_dot: Node = packed([_on(y.builder, value) for value in values], self.single)
            return y_dot
        row = self._called("jvp", self._pushed, self.shapes, self.outputs)
        whole: Node = row(*args, *dots)
        return unpacked(whole, (y.shape,))[0]

    def _pulled(self, *values: Any) -> Any:
        args, bars = values[: len(self.shapes)], values[len(self.shapes) :]
        cotangents = self.call.pull(self.call.run(args).context, bars, self.shapes)
        zeros = [np.zeros(shape) for shape in self.shapes]
        return packed([z if bar is None else bar for z, bar in zip(zeros, cotangents, strict=True)])

    def _pushed(self, *values: Any) -> Any:
        args, dots = values[: len(self.shapes)], values[len(self.shapes) :]
        return packed(self.call.push(self.call.run(args).context, dots, self.outputs))

    def _called(
        self, what: str, compute: Callable[..., Any], more: Sequence[Shape], into: Sequence[Shape]
    ) -> Primitive:
        """Return a row that calls one of the user's rules on its arguments."""
        row = self._rules.get(what)
        if row is None:
            reason = (
                f"{self.call.name}.{what} cannot be recorded, so it cannot be differentiated"
                " again: write it with NumPy's functions"
            )
            # Targets that generate code require the name to be an identifier.
            name, shapes = f"{self.call.name}_{what}", (*self.shapes, *more)
            rule = custom(reason, reason)
            row = self._rules[what] = host_row(name, compute, shapes, (_size(into),), rule, None)
        return row


_kept = lru_cache(KEPT)(lambda key, call, shapes: _Site(call, shapes))


def _attempt(rule: Callable[..., Any], context: Context, *values: Any) -> Any:
    """Return the nodes that a rule records; None if it needs arrays."""
    try:
        return rule(context, *values)
    except Exception:  # the user's code may fail in any way on values that are not numbers
        return None


def host_row(
    name: str,
    compute: Callable[..., Any],
    shapes: Sequence[Shape],
    shape: Shape,
    rule: DerivativeRule,
    recorded: Function | None,
) -> Primitive:
    """Return a row whose kernel is Python code for one point."""
    own_shapes = list(shapes)

    def kernel(xp: ModuleType, *args: Any) -> Any:
        if xp is not np:
            return evaluate(_required(recorded, name), args, ArrayInterpreter(xp))[0]
        given = list(map(np.shape, args))
        if given == own_shapes:
            return np.asarray(compute(*args))
        batches = [shape[: len(shape) - len(own)] for shape, own in zip(given, shapes, strict=True)]
        batch = np.broadcast_shapes(*batches)
        if recorded is not None:
            return evaluate(recorded, args, ArrayInterpreter(np))[0]
        wide = [np.broadcast_to(arg, batch + own) for arg, own in zip(args, shapes, strict=True)]
        points = [compute(*[arg[index] for arg in wide]) for index in np.ndindex(batch)]
        return np.array(points).reshape(batch + shape)

    def exact(mp: Any, *args: Any) -> Any:
        return evaluate(_required(recorded, name), args, MpmathInterpreter(mp))[0]

    analytic = recorded is not None and all(row.analytic for row in recorded.graph.primitives)
    return Primitive(
        name=name,
        arity=len(shapes),
        kernel=kernel,
        rule=rule,
        mpmath=exact,
        expansion=None if recorded is None else lambda *args: _opened_row(recorded, args),
        analytic=analytic,
        shape=lambda _: shape,
    )


def _required(recorded: Function | None, name: str) -> Function:
    if recorded is None:
        raise UnsupportedError(f"{name} cannot be recorded, so it can only be evaluated in float64")
    return recorded


def _opened_row(recorded: Function, args: Sequence[Node]) -> Node:
    """Append the primitive operations that a custom function consists of."""
    builder = args[0].builder
    (output,) = inline(recorded, builder, [arg.id for arg in args])
    return Node(builder, builder.spread(output, recorded.output_shapes[0]))


def opened(function: Function) -> Function:
    """Return the function with every custom function's value in primitive operations.

    Raises
    ------
    UnsupportedError
        A `forward` cannot be recorded, or a loop cannot be written out.

    Examples
    --------
    >>> import difflab as dl
    >>> class Double(dl.CustomFunction):
    ...     forward = staticmethod(lambda ctx, x: x + x)
    ...     backward = staticmethod(lambda ctx, y_bar: 2 * y_bar)
    >>> f = dl.trace(lambda x: Double.apply(x), 1.0)
    >>> f.graph.primitives, opened(f).graph.primitives
    ((<primitive Double>,), (<primitive add>,))
    """
    while rows := [row for row in function.graph.primitives if isinstance(row.rule, Custom)]:
        for row in rows:
            if row.expansion is None and row.holds is not None:
                raise UnsupportedError(
                    f"{row.name} takes too many steps, or an unknown number, to be written out"
                )
            if row.expansion is None:
                _required(None, row.name)
        function = rewritten(function, _open)
    return function


def _open(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
    """Rule of `rewrite`: expand custom functions only."""
    return expand(builder, node, row, args, params) if isinstance(row.rule, Custom) else None


def _size(shapes: Sequence[Shape]) -> int:
    return sum(map(math.prod, shapes))


def packed(values: Sequence[Any], single: bool = False) -> Any:
    """Return values as one vector; a single one as it is."""
    if single:
        return values[0]
    return pack(*values, ranks=tuple([len(shape_of(value)) for value in values]))


def unpacked(whole: Node, shapes: Sequence[Shape], single: bool = False) -> list[Node]:
    """Unpack a vector into parts of the given shapes."""
    if single:
        return [whole]
    return [
        whole[part].reshape(shape) if shape else whole[part.start]
        for shape, part in zip(shapes, packed_slices(shapes), strict=True)
    ]


def _on(builder: Builder, value: Any) -> Node:
    """Convert a value to a node; scalars and arrays become constants of their shape."""
    if isinstance(value, Node):
        return value
    shape = shape_of(value)
    if shape:
        zero = Node(builder, builder.constant(0), WEAK)
        node: Node = broadcast(zero, shape=shape, rank=0) + value
        return node
    return Node(builder, builder.constant(float(value)), precision_of(value))
