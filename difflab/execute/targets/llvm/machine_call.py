"""Calls of compiled functions by machine code: the records that `entry` reads."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.execute.lower.ops import FLOAT
from difflab.execute.targets.llvm.entry import entry
from difflab.execute.targets.llvm.entry_code import ARGUMENT, CALL, RESULT
from difflab.execute.targets.llvm.python_objects import (
    VectorcallBase,
    enable_vectorcall,
    layouts,
    set_vectorcall,
)
from difflab.graph.ir import Shape

_OUT = sys.intern("out")
LONG = 20_000
"""Operations from which other threads can run during a call: some ten microseconds."""


class PointInput(NamedTuple):
    """Where code for one point reads an input.

    Attributes
    ----------
    shape : tuple
        The shape of the input.
    memory : int
        The address of memory for its elements.
    link : int
        The address of a word that holds the address of the elements; 0 if they are in `memory`.
        The word of a scalar is that of `memory` already.
    """

    shape: Shape
    memory: int
    link: int = 0


@dataclass(frozen=True)
class PointCode:
    """Compiled code for one point, ``run(x, y, v, 1)``, and memory for one call at a time.

    Attributes
    ----------
    run : int
        The address of the code.
    starts : tuple of int
        The addresses x, y and v.
    inputs : sequence of PointInput
        The inputs, in order.
    results : sequence of (tuple, int)
        The shape of each result and the address of its contiguous elements after a run.
    operations : int
        The number of operations.
    owners : tuple
        What owns the code and the memory.
    fault : int
        The address of a word that is not 0 after a run that failed; 0 if no run fails, or raises.
    """

    run: int
    starts: tuple[int, int, int]
    inputs: Sequence[PointInput]
    results: Sequence[tuple[Shape, int]]
    operations: int
    owners: tuple[Any, ...]
    fault: int = 0


class MachineCall:
    """The record of a compiled function, and what it refers to.

    Parameters
    ----------
    code : PointCode
        What is run.
    packed : bool
        Whether the only argument is an array of all inputs.
    group : callable or None
        What makes the returned object of a tuple of results; None for the tuple, or the result.
    memory : bool
        Whether the keyword ``out`` gives memory for the results.
    """

    def __init__(
        self,
        code: PointCode,
        *,
        packed: bool,
        group: Callable[[tuple[Any, ...]], Any] | None,
        memory: bool,
    ) -> None:
        self._owners: list[Any] = [code, group]
        arguments = (
            [self._packed(code.inputs)] if packed else list(map(self._argument, code.inputs))
        )
        results = [self._result(shape, source) for shape, source in code.results]
        several = len(results) != 1 or group is not None
        self._values = dict.fromkeys(CALL, 0)
        self._values.update(zip(("x", "y", "v"), code.starts, strict=True))
        self._values.update(
            run=code.run,
            fault=code.fault,
            release=int(code.operations >= LONG),
            argument_count=len(arguments),
            arguments=self._words([word for record in arguments for word in record]),
            result_count=len(results),
            results=self._words([word for record in results for word in record]),
            group=0 if group is None else id(group),
            tuple=int(several),
            out=id(_OUT) if memory and group is None else 0,
            float_type=id(float),
            tuple_type=id(tuple),
            array_type=id(np.ndarray),
            float64=id(FLOAT),
        )

    def install(self, instance: VectorcallBase, general: Callable[..., Any]) -> bool:
        """Let an instance be called by machine code, which passes other calls on to `general`.

        False if this interpreter cannot, or the instance has one already, which may be running;
        then the instance is called as before.
        """
        found = layouts()
        function = 0 if found is None else entry(found)
        if found is None or not function or not enable_vectorcall(type(instance)):
            return False
        if vars(instance).setdefault("_machine_call", self) is not self:
            return False
        self._owners.append(general)
        self._values.update(general=id(general), new_array=found.new_array)
        record = self._words(list(self._values.values()))
        set_vectorcall(instance, function, record)  # the instance's attribute keeps the record
        return True

    def _words(self, values: Sequence[int]) -> int:
        """Return the address of words with these values, which live as long as this object."""
        words: NDArray[np.int64] = np.array(values, np.int64)
        self._owners.append(words)
        return int(words.ctypes.data)

    def _argument(self, given: PointInput) -> list[int]:
        if given.shape == ():
            return self._record(ARGUMENT, rank=-1, memory=given.memory)
        return self._array(given.shape, given.memory, [(given.link, 0)] if given.link else [])

    def _packed(self, inputs: Sequence[PointInput]) -> list[int]:
        """Return the record of an array of all inputs, flattened in order."""
        sizes = [math.prod(given.shape) for given in inputs]
        starts = [FLOAT.itemsize * sum(sizes[:k]) for k in range(len(sizes))]
        links = [
            (given.link, start) for given, start in zip(inputs, starts, strict=True) if given.link
        ]
        return self._array((sum(sizes),), inputs[0].memory if inputs else 0, links)

    def _array(self, shape: Shape, memory: int, links: Sequence[tuple[int, int]]) -> list[int]:
        return self._record(
            ARGUMENT,
            rank=len(shape),
            shape=self._words(shape),
            memory=memory,
            bytes=FLOAT.itemsize * math.prod(shape),
            links=self._words([word for link in links for word in link]),
            link_count=len(links),
        )

    def _result(self, shape: Shape, source: int) -> list[int]:
        return self._record(
            RESULT,
            rank=len(shape),
            shape=self._words(shape),
            source=source,
            bytes=FLOAT.itemsize * math.prod(shape),
        )

    @staticmethod
    def _record(names: Sequence[str], **values: int) -> list[int]:
        return [values.get(name, 0) for name in names]
