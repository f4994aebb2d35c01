"""How much the rounding errors of operations move the outputs, by reverse sweeps.

An operation i whose result errs by at most δᵢ moves an output y by at most |āᵢ| δᵢ to first order,
where the adjoint āᵢ = ∂y/∂vᵢ is that of the reverse sweep (S. Linnainmaa, Taylor expansion of the
accumulated rounding error, BIT 16, 1976). The values are those of an evaluation in which each node
has a format of its own. The public calls of the package check their common arguments, and word
their errors, by the functions between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FORMATS, FloatFormat
from difflab.diagnose.anomalies import Event, failures, needed
from difflab.diagnose.findings import AnomalyKind, call_text
from difflab.diagnose.node_origins import CombinedGraph
from difflab.errors import DomainError, InputError
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph
from difflab.graph.names import element_names
from difflab.language import given_names, parse
from difflab.rounding.local import rounding_errors

Array = NDArray[np.float64]


def computing_format(
    own: FloatFormat | None, operands: Sequence[FloatFormat | None]
) -> FloatFormat:
    """Return the format in which an operation computes; None stands for constants.

    Examples
    --------
    >>> half, brain = FORMATS["float16"], FORMATS["bfloat16"]
    >>> print(computing_format(half, [half, None]), computing_format(half, [brain]))
    float16 float32
    """
    known = [each for each in operands if each is not None]
    if own is None or (operands and not known):
        return DOUBLE
    return FORMATS[np.result_type(*(each.dtype for each in (own, *known))).name]


def evaluated(
    graph: Graph, inputs: Mapping[int, Any], formats: Sequence[FloatFormat | None]
) -> list[Any]:
    """Return the value of every node, each computed and rounded in its format.

    Parameters
    ----------
    graph : Graph
    inputs : mapping of int to array
        The values of inputs, or of any other nodes, with leading batch axes.
    formats : sequence of FloatFormat or None
        One for each node; None for nodes that depend on constants alone, in float64.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x/3")
    >>> single = [FORMATS["float32"]] * len(f.graph)
    >>> evaluated(f.graph, {f.input_nodes[0]: 1.0}, single)[-1]
    np.float32(0.33333334)
    """
    values: list[Any] = [None] * len(graph)
    weak: list[FloatFormat | None] = list(formats)
    for node in graph.constants:
        weak[node] = None
    kernels = [row.computer(np) for row in graph.primitives]
    double = all(form in (None, DOUBLE) for form in formats)
    with np.errstate(all="ignore"):
        for node, (opcode, args) in enumerate(graph.rows()):
            own = formats[node]
            if node in inputs:
                values[node] = inputs[node] if own is None else own.cast(inputs[node])
            elif opcode == CONSTANT:
                values[node] = np.float64(graph.constants[node][0])
            elif opcode != INPUT:
                kernel, params = kernels[opcode - FIRST_ROW], graph.params(node)
                if double:  # all values are float64 already
                    values[node] = kernel(*[values[arg] for arg in args], **params)
                    continue
                computing = computing_format(own, [weak[arg] for arg in args])
                result = kernel(*[computing.cast(values[arg]) for arg in args], **params)
                values[node] = computing.cast(result) if own is None else own.cast(result)
    return values


# --- arguments and errors of public calls -----------------------------------------------------

MOST = 2**31
"""A bound of numbers of points and of seeds."""


def function_of(what: str, f: Any, at: Any, over: Any, points: Any, seed: Any) -> Function:
    """Return the function of a public call, whose common arguments are checked.

    Raises
    ------
    InputError
        One of them is of another type; `what` is the call.
    """
    for name, value in (("at", {} if at is None else at), ("over", over)):
        if not isinstance(value, Mapping):
            raise InputError(
                f"{name} of {what} is a mapping of names, not {type(value).__name__}",
                hint="at={'x': 1.5}, over={'x': (0.1, 10)}",
            )
    for name, value, least in (("points", points, 1), ("seed", seed, 0)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value < MOST:
            raise InputError(
                f"{name} of {what} is an integer from {least} to 2^31 - 1, not {value!r}"
            )
    if isinstance(f, str):
        return parse(f, [*given_names(at), *over])
    if not isinstance(f, Function):
        raise InputError(
            f"{what} takes the text of a formula or a Function, not {type(f).__name__}",
            hint="record code at an example of its arguments: dl.trace(f, x)",
        )
    return f


def failed(graph: Graph, values: Sequence[Any], outputs: Sequence[int], dtype: str) -> DomainError:
    """Return the error that names the operation that made results not finite."""
    for event in _failures(graph, values, outputs):
        state = "overflows" if event.kind is AnomalyKind.OVERFLOW else f"is {event.result:g}"
        call = call_text(graph.primitive(event.node), event.operands)
        return graph.place(event.node).error(DomainError, f"{call} {state} in {dtype}")
    return DomainError(f"a result is not finite in {dtype}")


def overflow(graph: Graph, values: Sequence[Any], outputs: Sequence[int], dtype: str) -> str:
    """Return which operation overflows on the way to finite outputs; empty if none does."""
    for event in _failures(graph, values, outputs):
        if event.kind is AnomalyKind.OVERFLOW:
            call = call_text(graph.primitive(event.node), event.operands)
            return f"{call} overflows in {dtype}, an error without a bound"
    return ""


def _failures(graph: Graph, values: Sequence[Any], outputs: Sequence[int]) -> Iterator[Event]:
    """Yield an event for each operation on which outputs depend that is not finite."""
    return failures(graph, values, range(len(graph)), needed(graph, values, outputs))


def shown_point(function: Function, point: Array) -> str:
    """Return the values of the inputs at a point as text."""
    parts = zip(function.inputs, function.split(point), strict=True)
    return ", ".join(f"{name} = {np.array2string(part, threshold=3)}" for name, part in parts)


def placed_at(error: DomainError, after: str, before: str = "") -> DomainError:
    """Return an error whose message has more text."""
    return type(error)(
        f"{before}{error.message}{after}", text=error.text, span=error.span, hint=error.hint
    )


# --- the sweeps -------------------------------------------------------------------------------


def effect(bar: Any, error: Any) -> float:
    """Return |ā| δ of an operation, summed over its elements: a bound of its effect on the output.

    It is infinite where the adjoint of an element with an error is undefined, which bounds nothing.

    Examples
    --------
    >>> effect(-3.0, 0.5), effect(np.array([1.0, np.inf]), np.array([0.5, 0.0]))
    (1.5, 0.5)
    """
    if np.ndim(error) == 0 and np.ndim(bar) == 0:
        size = abs(float(bar)) * float(error) if error else 0.0
    else:
        with np.errstate(invalid="ignore"):
            size = float(np.sum(np.where(error > 0, np.abs(bar) * error, 0.0)))
    return math.inf if math.isnan(size) else size


class Sweeps:
    """The reverse sweeps of a function over its rounding operations, built once."""

    def __init__(self, function: Function, form: FloatFormat) -> None:
        self.function = function.in_floats
        self.graph = self.function.graph
        nodes = range(len(self.graph))
        self.combined = CombinedGraph(self.function, nodes, squares=False)  # a norm has an error
        self.form = form
        self.formats = [form] * len(self.graph)
        self.double = [DOUBLE] * len(self.combined.graph)
        outputs = self.function.outputs, self.function.output_shapes
        self.names = element_names(self.function.output_names, self.function.output_shapes)
        self.cells = [
            (node, index)
            for node, shape in zip(*outputs, strict=True)
            for index in np.ndindex(*shape)
        ]

    def inputs(self, point: Array) -> dict[int, Any]:
        """Return the value of each input node at a packed point."""
        return dict(zip(self.function.input_nodes, self.function.split(point), strict=True))

    def forward(self, point: Array) -> tuple[list[Any], list[Any]]:
        """Return values and bounds of rounding errors of all nodes.

        Raises
        ------
        DomainError
            An output is not finite.
        """
        values = evaluated(self.graph, self.inputs(point), self.formats)
        if not all(np.all(np.isfinite(values[node])) for node in self.function.outputs):
            raise failed(self.graph, values, self.function.outputs, self.form.name)
        return values, rounding_errors(self.graph, values, self.formats)

    def seeds(self, output: int) -> dict[int, Array]:
        """Return the seed cotangents of one output number."""
        node, index = self.cells[output]
        seeds = {seed: np.zeros(self.graph.shape(of)) for of, seed in self.combined.seeds.items()}
        if seeds:
            seeds[self.combined.seeds[node]][index] = 1.0
        return seeds

    def adjoints(self, values: Sequence[Any], output: int) -> dict[int, Any]:
        """Return ā of every node for one output number."""
        known = {**dict(enumerate(values)), **self.seeds(output)}
        adjoints = evaluated(self.combined.graph, known, self.double)
        return {node: adjoints[bar] for node, bar in self.combined.bars.items()}

    def contributions(self, values: Sequence[Any], errors: Sequence[Any], output: int) -> Array:
        """Return |ā| δ of every node for one output number."""
        result = np.zeros(len(self.graph))
        for node, bar in self.adjoints(values, output).items():
            result[node] = effect(bar, errors[node])
        return result

    def value(self, values: Sequence[Any], output: int) -> float:
        """Return the computed number of an output."""
        node, index = self.cells[output]
        return float(np.broadcast_to(values[node], self.graph.shape(node))[index])
