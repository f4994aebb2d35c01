"""Fold a graph over values of any kind: floats, arrays, mpmath numbers, SymPy expressions.

An `Interpreter` defines the primitives and constants on those values; the interpreters of other
libraries are in `difflab.graph.interpreters`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from difflab.core.dtypes import FloatFormat
from difflab.core.primitive import Primitive
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph, Number, Params


class Interpreter(Protocol):
    """Interpretation of operations and constants on one kind of value."""

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the function of values that `primitive` is."""

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the value of a number in the graph."""


class ArrayInterpreter:
    """Interpreter whose values are arrays of the module `xp`, by default NumPy.

    Examples
    --------
    >>> from difflab.primitives import sin
    >>> float(ArrayInterpreter().operation(sin)(0.0))
    0.0
    """

    def __init__(self, xp: ModuleType = np) -> None:
        self.xp = xp

    @property
    def name(self) -> str:
        """The name of the arithmetic, by which prepared computations are kept."""
        return self.xp.__name__

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel."""
        return primitive.computer(self.xp)

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the nearest float64."""
        return np.float64(value)


class KernelInterpreter(ArrayInterpreter):
    """Interpreter whose values have no batch axes, and take part in the dtypes of the results."""

    def bound(self, primitive: Primitive, params: Params) -> Callable[..., Any]:
        """Return the kernel for static parameters."""
        return primitive.unbatched_computer(self.xp, params)

    def constant(self, value: Number, name: str | None) -> Any:
        """Return a number of Python, which has no dtype."""
        return float(value)


class RoundedInterpreter(ArrayInterpreter):
    """Interpreter in which the result of every operation is rounded to a format.

    An operation on arrays, such as a sum, is computed in float64 and rounded once.
    """

    def __init__(self, dtype: FloatFormat) -> None:
        super().__init__()
        self.dtype = dtype

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.dtype.name

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel, followed by rounding."""
        compute, rounded = super().operation(primitive), self.dtype.rounded
        if primitive.holds is not None:  # the steps of a loop are rounded, too
            compute = partial(compute, on=self)

        def computed(*args: Any, **params: Any) -> Any:
            result = compute(*args, **params)
            return tuple(map(rounded, result)) if isinstance(result, tuple) else rounded(result)

        return computed

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the nearest number of the format."""
        return np.float64(self.dtype.rounded(float(value)))


_Row = tuple[int, tuple[int, Sequence[int]]]
"""A node, its opcode and its arguments."""


class Fold:
    """The computation of some nodes of a graph on one kind of values, prepared for many calls.

    Parameters
    ----------
    graph : Graph
        The graph to evaluate.
    wanted : iterable of int
        The nodes whose values are returned, in this order.
    interpreter : Interpreter
        The meaning of operations and constants.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*sin(x)")
    >>> step = Fold(f.graph, f.outputs, ArrayInterpreter())
    >>> [step.again({f.input_nodes[0]: x})[0].item() for x in (0.0, 1.0)]
    [0.0, 0.8414709848078965]
    """

    def __init__(self, graph: Graph, wanted: Iterable[int], interpreter: Interpreter) -> None:
        self._graph = graph
        self._wanted = list(wanted)
        self._interpreter = interpreter
        release = graph.last_uses()
        release[np.array(self._wanted, dtype=np.int64)] = -1
        self._dying = release.tolist()
        self._operations = [interpreter.operation(row) for row in graph.primitives]
        self._params = [dict(entry) for entry in graph.param_table]
        self._param_ids = graph.param_ids.tolist()

    def __call__(self, environment: Mapping[int, Any]) -> list[Any]:
        """Return the wanted values; others are dropped after their last use.

        Parameters
        ----------
        environment : mapping of int to value
            The value of every input node that is needed.
        """
        return self._computed([None] * len(self._graph), enumerate(self._graph.rows()), environment)

    def again(self, environment: Mapping[int, Any]) -> list[Any]:
        """Return the wanted values as a call does, with the constants prepared: for many calls."""
        values, rows = self._prepared
        return self._computed(values.copy(), rows, environment)

    def straight(self, inputs: Sequence[int]) -> Callable[[Sequence[Any]], list[Any]]:
        """Return the computation as Python code of the same operations in a row, for loops.

        Parameters
        ----------
        inputs : sequence of int
            The input nodes, whose values the function takes in this order.

        Examples
        --------
        >>> import difflab as dl
        >>> f = dl.parse("x*sin(x) + 1")
        >>> step = Fold(f.graph, f.outputs, ArrayInterpreter()).straight(f.input_nodes)
        >>> step([0.0])[0].item()
        1.0
        """
        names: dict[str, Any] = {}
        source = "\n    ".join(
            [
                "def step(values):",
                f"[{', '.join(f'v{node}' for node in inputs)}] = values",
                *self.statements(names),
                f"return [{', '.join(f'v{node}' for node in self._wanted)}]",
            ]
        )
        exec(compile(source, "<difflab.graph>", "exec"), names)  # noqa: S102 - numbers of nodes only
        step: Callable[[Sequence[Any]], list[Any]] = names["step"]
        return step

    def statements(self, names: dict[str, Any], *, frees: bool = True) -> list[str]:
        """Return the statements that compute the variable ``v3`` of node 3 from those of inputs.

        Constants and operations become globals of the code, in `names`. Without `frees` arrays are
        kept until the end.
        """
        values, rows = self._prepared
        scalar = self._graph.scalars().tolist()
        names |= {f"v{node}": values[node] for node in self._graph.constants}
        lines = []
        for node, (opcode, args) in rows:
            if opcode == INPUT:
                continue
            name = f"o{opcode}_{self._param_ids[node]}"
            if name not in names:
                names[name] = self._bound(opcode - FIRST_ROW, self._param_ids[node])
            ended = {arg for arg in args if frees and self._dying[arg] == node and not scalar[arg]}
            freed = "".join(
                f"; v{arg} = None" for arg in sorted(ended - self._graph.constants.keys())
            )
            lines.append(f"v{node} = {name}({', '.join(f'v{arg}' for arg in args)}){freed}")
        return lines

    def _bound(self, row: int, params: int) -> Callable[..., Any]:
        """Return an operation with its parameters."""
        if isinstance(self._interpreter, KernelInterpreter):
            graph = self._graph
            return self._interpreter.bound(graph.primitives[row], graph.param_table[params])
        operation = self._operations[row]
        return partial(operation, **self._params[params]) if params else operation

    @cached_property
    def _prepared(self) -> tuple[list[Any], list[_Row]]:
        """The values of the constants, and the other nodes."""
        values: list[Any] = [None] * len(self._graph)
        for node, number in self._graph.constants.items():
            values[node] = self._interpreter.constant(*number)
        rows = enumerate(self._graph.rows())
        return values, [(node, row) for node, row in rows if row[0] != CONSTANT]

    def _computed(
        self, values: list[Any], rows: Iterable[_Row], environment: Mapping[int, Any]
    ) -> list[Any]:
        """Compute the nodes of `rows` into `values`."""
        operations, params, param_ids = self._operations, self._params, self._param_ids
        dying, constants = self._dying, self._graph.constants
        for node, (opcode, args) in rows:
            if opcode >= FIRST_ROW:
                operation = operations[opcode - FIRST_ROW]
                operands = [values[arg] for arg in args]
                param = param_ids[node]
                values[node] = (
                    operation(*operands, **params[param]) if param else operation(*operands)
                )
                for arg in args:
                    if dying[arg] == node:
                        values[arg] = None
            elif opcode == INPUT:
                values[node] = environment.get(node)
            elif opcode == CONSTANT:
                values[node] = self._interpreter.constant(*constants[node])
        return [values[node] for node in self._wanted]


def fold(
    graph: Graph,
    environment: Mapping[int, Any],
    wanted: Iterable[int],
    interpreter: Interpreter,
) -> list[Any]:
    """Return the values of the nodes `wanted`, each node computed once."""
    return Fold(graph, wanted, interpreter)(environment)


def fold_all(graph: Graph, environment: Mapping[int, Any], interpreter: Interpreter) -> list[Any]:
    """Return the value of every node."""
    return fold(graph, environment, range(len(graph)), interpreter)
