"""Classes as operations on vectors: each class is written once, its arguments are gathered.

Equidistant lanes are a slice, which copies nothing; others are gathered by indices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.repetition.chains import Chains
from difflab.graph.repetition.classes import LaneClass, LaneClasses, LaneKind, flat
from difflab.primitives import (
    concatenate,
    constant_array,
    index,
    negative,
    not_equal,
    pack,
    put,
    reshape,
    scatter,
    sum_in_order,
    take,
)

MANY = 16
"""Nodes with fewer scalar arguments are copied unchanged; others are assembled class by class."""

Nodes = NDArray[np.int64]


def write(function: Function, classes: LaneClasses, chains: Chains) -> Function:
    """Return `function` with one operation for every class."""
    return _VectorWriter(function, classes, chains).written()


class _VectorWriter:
    """The graph on vectors, and the location of each old node in it."""

    def __init__(self, function: Function, classes: LaneClasses, chains: Chains) -> None:
        self.function = function
        self.graph = function.graph
        self.classes = classes
        self.chains = chains
        self.builder = Builder(self.graph.source)
        self.vectors: dict[int, int] = {}
        """The vector of each class, or its only number, by the class."""

    def written(self) -> Function:
        """Write every class and return the function."""
        function, builder = self.function, self.builder
        inputs = [
            builder.input(name, shape, self.graph.span(node))
            for name, shape, node in zip(
                function.inputs, function.input_shapes, function.input_nodes, strict=True
            )
        ]
        self.inputs = dict(zip(function.input_nodes, inputs, strict=True))
        for number, lane_class in enumerate(self.classes.members):
            builder.span = int(self.graph.spans[lane_class.nodes[0]])
            if lane_class.kind is LaneKind.OPERATION:
                self.vectors[number] = self._operation(lane_class)
            elif lane_class.kind is LaneKind.SUM:
                self.vectors[number] = self._sum(lane_class)
            elif lane_class.kind is LaneKind.WHOLE:
                self.vectors[number] = self._whole(int(lane_class.nodes[0]))
        outputs = [self._output(node) for node in function.outputs]
        names, structure, arguments = (
            function.output_names,
            function.structure,
            function.arguments,
        )
        return Function.build(builder, inputs, outputs, names, structure, arguments=arguments)

    def _output(self, node: int) -> int:
        """Return an output, which as a lane of a vector of truth values is a number."""
        output, row = self.number(node), self.graph.primitive(node)
        if row is None or not row.boolean:
            return output
        now = self.builder.primitive(output)
        if now is not None and now.boolean:
            return output
        return self.builder.emit(not_equal, (output, self.builder.constant(0)))

    def number(self, node: int) -> int:
        """Return one node of the old graph in the new one."""
        number = int(self.classes.of[node])
        lane_class = self.classes.members[number]
        if lane_class.kind is LaneKind.CONSTANT:
            return self.builder.constant(*self.graph.constants[node])
        if lane_class.kind is LaneKind.INPUT:
            return self.inputs[node]
        if len(lane_class.nodes) == 1 and lane_class.kind is not LaneKind.ELEMENTS:
            return self.vectors[number]
        return self._emit(
            index, [self._vector(number)], key=(int(self.classes.lane[node]),), rank=1
        )

    def vector(self, nodes: NDArray[Any]) -> int:
        """Return some lanes of one class as a vector.

        A single number is repeated as often as needed.
        """
        number = int(self.classes.of[nodes[0]])
        if (nodes == nodes[0]).all():
            return self.number(int(nodes[0]))
        if self.classes.members[number].kind is LaneKind.CONSTANT:
            values = [float(self.graph.constants[node][0]) for node in nodes.tolist()]
            data = np.array(values).tobytes()
            return self._emit(constant_array, [], shape=(len(nodes),), values=data)
        vector = self._vector(number)
        lanes = self.classes.lane[nodes]
        key = _equidistant(lanes)
        if key is None:
            return self._emit(take, [vector], axis=-1, places=lanes.tobytes(), rank=1)
        if key == (0, self.builder.shape(vector)[0], 1):
            return vector
        return self._emit(index, [vector], key=(key,), rank=1)

    def _emit(self, row: Any, args: list[int], **params: Any) -> int:
        return self.builder.emit(row, args, tuple(sorted(params.items())))

    def _vector(self, number: int) -> int:
        """Return all lanes of a class as a vector; inputs are packed on first use."""
        if number not in self.vectors:
            lane_class = self.classes.members[number]
            if lane_class.kind is LaneKind.INPUT:
                args = [self.inputs[node] for node in lane_class.nodes.tolist()]
                self.vectors[number] = self._emit(pack, args, ranks=(0,) * len(args))
            else:
                source = self.number(self.graph.arguments(int(lane_class.nodes[0]))[0])
                self.vectors[number] = self._shaped(source, (math.prod(self._shape(source)),))
        return self.vectors[number]

    def _shape(self, node: int) -> tuple[int, ...]:
        return self.builder.shape(node)

    def _shaped(self, node: int, shape: tuple[int, ...]) -> int:
        """Return a node in that shape."""
        if self._shape(node) == shape:
            return node
        return self._emit(reshape, [node], shape=shape, rank=len(self._shape(node)))

    def _operation(self, lane_class: LaneClass) -> int:
        """Apply a row to the vectors of its arguments."""
        graph = self.graph
        first = int(lane_class.nodes[0])
        row = graph.primitives[graph.opcode[first] - FIRST_ROW]
        starts = graph.starts[lane_class.nodes]
        args = [self.vector(graph.args[starts + k]) for k in range(len(graph.arguments(first)))]
        if len(lane_class.nodes) > 1 and all(self._shape(arg) == () for arg in args):
            args[0] = self.builder.spread(args[0], (len(lane_class.nodes),))
        return self.builder.emit(row, args)

    def _sum(self, lane_class: LaneClass) -> int:
        """Add up long sums of the same classes of terms, each in its order."""
        terms = np.stack([self.chains.terms[node] for node in lane_class.nodes.tolist()])
        lead = terms.shape[:1] if len(terms) > 1 else ()
        negated = self.chains.negated[int(lane_class.nodes[0])]
        columns = self._columns(self.classes.of[terms[0]] * 2 + negated)
        parts = []
        for indices in columns:
            part = self.vector(terms[:, indices].ravel())
            part = self._emit(negative, [part]) if negated[indices[0]] else part
            parts.append(self._filled(part, (*lead, len(indices))))
        length = terms.shape[1]
        keys = [_equidistant(indices) for indices in columns]
        if None in keys:
            rank = len(lead) + 1
            joined = self._emit(concatenate, parts, axis=-1, rank=rank)
            order = np.argsort(np.concatenate(columns)).tobytes()
            parts = [self._emit(take, [joined], axis=-1, places=order, rank=rank)]
            keys = [(0, length, 1)]
        return self._emit(sum_in_order, parts, places=tuple(keys), length=length)

    def _columns(self, keys: Nodes) -> list[Nodes]:
        """Return the positions of each key that occurs."""
        order = np.argsort(keys, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)

    def _filled(self, node: int, shape: tuple[int, ...]) -> int:
        """Return a vector in that shape, or a number that fills it."""
        return self._shaped(node, shape) if self._shape(node) else self.builder.spread(node, shape)

    def _whole(self, node: int) -> int:
        """Copy a node; one that joins many scalars is built class by class."""
        graph = self.graph
        row = graph.primitive(node)
        if row is None:
            return self.inputs[node]
        args, params = graph.arguments(node), graph.params(node)
        many = len(args) >= MANY and not any(map(graph.shape, args))
        if many and row is pack:
            return self._listed(np.array(args))
        if many and row is scatter:
            scattered = self._scattered(np.array(args), params["keys"], params["shape"])
            if scattered is not None:
                return scattered
        return self._emit(row, [self.number(arg) for arg in args], **params)

    def _listed(self, nodes: Nodes) -> int:
        """Return lanes of any classes as a vector."""
        columns = self._columns(self.classes.of[nodes])
        parts = [self._filled(self.vector(nodes[indices]), indices.shape) for indices in columns]
        keys = [_equidistant(indices) for indices in columns]
        if len(parts) == 1:
            return parts[0]
        if None not in keys:
            return self._emit(scatter, parts, keys=tuple((key,) for key in keys), shape=nodes.shape)
        joined = self._emit(concatenate, parts, axis=-1, rank=1)
        order = np.argsort(np.concatenate(columns)).tobytes()
        return self._emit(take, [joined], axis=-1, places=order, rank=1)

    def _scattered(self, nodes: Nodes, keys: Any, shape: tuple[int, ...]) -> int | None:
        """Return zeros with scalars at some indices; None where two share an index."""
        indices = np.array([flat(key, shape) for key in keys])
        order = np.argsort(indices)
        indices = indices[order]
        if not np.diff(indices).all():
            return None
        size = math.prod(shape)
        vector = self._listed(nodes[order])
        key = _equidistant(indices)
        if key is None:
            there = indices.tobytes()
            vector = self._emit(put, [vector], axis=-1, places=there, rank=1, size=size)
        elif key != (0, size, 1):
            vector = self._emit(scatter, [vector], keys=((key,),), shape=(size,))
        return self._shaped(vector, shape)


def _equidistant(indices: Nodes) -> tuple[int, int | None, int] | None:
    """Return start, stop and step of equidistant indices, None for others."""
    first, last = int(indices[0]), int(indices[-1])
    if len(indices) == 1:
        return (first, first + 1, 1)
    steps = indices[1:] - indices[:-1]
    step = int(steps[0])
    if step == 0 or (steps != step).any():
        return None
    stop = last + 1 if step > 0 else last - 1
    return (first, stop if stop >= 0 else None, step)
