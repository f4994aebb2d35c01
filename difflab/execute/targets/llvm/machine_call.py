"""Calls of compiled functions by machine code, and the records that it reads.

One function, a vectorcall, serves every compiled function: it reads arguments, runs compiled code
and makes results. It computes only if all arguments are exactly as the record of the called
function states: Python floats, and aligned contiguous float64 arrays of the shapes of the inputs;
the keyword ``out`` may give memory for the results. It also computes batches, whose results are new
arrays: such arrays of one axis and length where all inputs are scalars, or one array of rows of all
inputs if those are packed. Any other call is passed on to the Python method that calls without
machine code, before anything but the record's own memory has been written.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.execute.lower.ops import FLOAT
from difflab.execute.targets.llvm import engine
from difflab.execute.targets.llvm.addresses import start_of
from difflab.execute.targets.llvm.entry_code import (
    ARGUMENT,
    BATCH,
    CALL,
    RESULT,
    STORE,
    SYMBOLS,
    text,
)
from difflab.execute.targets.llvm.libraries import host
from difflab.execute.targets.llvm.python_objects import (
    Layouts,
    VectorcallBase,
    enable_vectorcall,
    layouts,
    set_vectorcall,
)
from difflab.graph.ir import Shape


@cache
def entry(layouts: Layouts) -> int:
    """Return the address of the function; machine code is loaded at the first call.

    It is 0 if there is none: LLVM or Python lacks something that the code needs.

    Examples
    --------
    >>> from difflab.execute.targets.llvm.python_objects import layouts
    >>> offsets = layouts()
    >>> offsets is None or entry(offsets) == entry(offsets) > 0
    True
    """
    try:
        module = engine.linked(text(layouts), SYMBOLS, host(), 0, inlined=True)
    except Exception:  # whatever it is, calls are Python code
        return 0
    _KEPT.append(module)
    return int(module.get_function_address("entry"))


def loaded() -> bool:
    """Return whether the function is there already."""
    return bool(_KEPT)


_KEPT: list[Any] = []
"""The machine code, which is never unloaded: objects that are called by it may outlive anything."""


_OUT = sys.intern("out")
LONG = 20_000
"""Operations from which other threads can run during a call: some ten microseconds."""


class PointInput(NamedTuple):
    """The location from which code for one point reads an input.

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
        The objects that own the code and the memory.
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


@dataclass(frozen=True)
class BatchCode:
    """Compiled code for batches, ``run(x, y, v, points)``, and memory for one call at a time.

    x and y are tables of the addresses of the contiguous elements of each element of the inputs,
    and of each element of each result.

    Attributes
    ----------
    run : int
        The address of the code.
    memory : array
        The memory v for intermediate values.
    inputs : int
        The number of elements of the inputs at one point.
    results : sequence of tuple
        The shape of each result at one point, with at most one axis.
    least, most : int
        The fewest and the most points that one run computes.
    operations : int
        The number of operations at a point.
    owner : object
        The object that owns the code.
    """

    run: int
    memory: NDArray[np.float64]
    inputs: int
    results: Sequence[Shape]
    least: int
    most: int
    operations: int
    owner: Any


class MachineCall:
    """The record of a compiled function and the objects that it references.

    Parameters
    ----------
    results : int
        The number of results.
    packed : bool
        Whether the only argument is an array of all inputs.
    group : callable or None
        Constructs the returned object from a tuple of results; None for the tuple, or the result.
    memory : bool
        Whether the keyword ``out`` gives memory for the results of one point.
    """

    def __init__(
        self,
        results: int,
        *,
        packed: bool,
        group: Callable[[tuple[Any, ...]], Any] | None,
        memory: bool,
    ) -> None:
        self.packed = packed
        self.memory = memory and group is None
        self.point: PointCode | None = None
        self.batch: BatchCode | None = None
        self._owners: list[Any] = [group]
        self._call = np.zeros(len(CALL), np.int64)
        self._set(
            result_count=results,
            group=0 if group is None else id(group),
            tuple=int(results != 1 or group is not None),
            float_type=id(float),
            tuple_type=id(tuple),
            array_type=id(np.ndarray),
            float64=id(FLOAT),
        )

    def install(self, instance: VectorcallBase, general: Callable[..., Any]) -> bool:
        """Let an instance be called by machine code, which passes other calls on to `general`.

        False if this interpreter cannot, or the instance has another record; then the instance is
        called as before.
        """
        offsets = layouts()
        function = 0 if offsets is None else entry(offsets)
        if offsets is None or not function or not enable_vectorcall(type(instance)):
            return False
        if vars(instance).setdefault("_machine_call", self) is not self:
            return False
        self._owners.append(general)
        self._set(general=id(general), new_array=offsets.new_array)
        set_vectorcall(instance, function, start_of(self._call))  # kept by the attribute
        return True

    def run_points(self, code: PointCode) -> None:
        """Let code compute one point, unless there is some, which may be running."""
        if self.point is not None:
            return
        self.point = code
        arguments = (
            [self._packed(code.inputs)] if self.packed else list(map(self._argument, code.inputs))
        )
        results = [self._result(shape, source) for shape, source in code.results]
        x, y, v = code.starts
        self._set(
            fault=code.fault,
            release=int(code.operations >= LONG),
            argument_count=len(arguments),
            arguments=self._words([word for record in arguments for word in record]),
            results=self._words([word for record in results for word in record]),
            out=id(_OUT) if self.memory else 0,
            x=x,
            y=y,
            v=v,
            run=code.run,  # last: calls in other threads read it first
        )

    def run_batches(self, code: BatchCode) -> None:
        """Let code compute batches, unless there is some, which may be running."""
        if self.batch is None:
            self.batch = code
            count = 1 if self.packed else code.inputs
            self._set(argument_count=count, batch=self._batch(code))

    def _set(self, **words: int) -> None:
        """Set words of the record, in this order."""
        for name, value in words.items():
            self._call[CALL.index(name)] = value

    def _batch(self, code: BatchCode) -> int:
        """Return the address of the record of the code for batches."""
        columns = [math.prod(shape) for shape in code.results]
        y = self._words([0] * sum(columns))
        stage = np.empty(code.inputs * code.most if self.packed else 0)
        self._owners.append(stage)
        stores = [
            self._record(
                STORE,
                rank=1 + len(shape),
                shape=self._words([0, *shape]),
                columns=count,
                addresses=y + FLOAT.itemsize * sum(columns[:k]),
            )
            for k, (shape, count) in enumerate(zip(code.results, columns, strict=True))
        ]
        words = self._record(
            BATCH,
            run=code.run,
            x=self._words([0] * code.inputs),
            y=y,
            v=start_of(code.memory),
            least=code.least,
            most=code.most,
            long=-(-LONG // max(code.operations, 1)),
            rank=2 if self.packed else 1,
            shape=self._words([0, code.inputs]),
            stage=start_of(stage) if self.packed else 0,
            inputs=code.inputs,
            stores=self._words([word for record in stores for word in record]),
        )
        return self._words(words)

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
