"""NumPy with the bits of machine code, which replaces it once compiled.

Machine code of vectors calls libmvec's functions, whose lanes do not depend on one another. A
double is passed and returned in the first lane of a vector register: so a vector function, called
as a function of one double, returns the value that machine code computes in each of its lanes.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.execute.lower.arrays.source import PointTarget, Workspace
from difflab.execute.lower.ops import Op, OpForm, as_index, viewed
from difflab.execute.lower.scalar import EXACT, LIBRARY
from difflab.execute.lower.schedule import Schedule
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.targets.llvm.addresses import checked
from difflab.execute.targets.llvm.array_lowering import MachineLowering
from difflab.execute.targets.llvm.functions import SPELLINGS
from difflab.execute.targets.llvm.libraries import NUMPY, address, host
from difflab.execute.targets.llvm.machine_call import PointCode
from difflab.graph.ir import Shape
from difflab.primitives import put, sum_in_order

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays import NativeArrays


Compute = Callable[..., Any]
MOST_VALUES = 2_000
"""Values of functions up to which a call is computed so, a quarter of a microsecond for each."""
MOST_CALLS = 200
"""Calls after which machine code computes, also where calls cannot go over to it before."""


class FirstCalls(PointTarget):
    """The operations of `NativeArrays`, run by NumPy until its machine code is needed.

    Parameters
    ----------
    schedule : Schedule
        The operations of the function.

    Raises
    ------
    UnsupportedError
        An operation has other bits in machine code, or takes long.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda x: np.sin(x[1:]) * x[:-1], np.ones(3))
    >>> FirstCalls(Schedule.of(f))([np.array([1.0, 0.0, 2.0])])[0].round(12).tolist()
    [0.0, 0.0]
    """

    callable_by_code = True

    def __init__(self, schedule: Schedule) -> None:
        function = schedule.function
        super().__init__(function.input_shapes, len(function.outputs))
        self.schedule = schedule
        self.program = MachineLowering(schedule).run()
        if checked():
            raise UnsupportedError("machine code shall check what it reads")
        if not self.program.truths.isdisjoint(self.program.outputs):
            raise UnsupportedError("an output is a truth value")
        self.steps = [(op.number, op.reads, _compute(op)) for op in self.program.ops]
        values = [op.size for op in self.program.ops if _library_function(op)]
        if sum(values) > MOST_VALUES:
            raise UnsupportedError("its functions take long")
        self._calls = 0

    @property
    def truths(self) -> list[bool]:
        """Which outputs are truth values."""
        return [False] * self.outputs

    @cached_property
    def native(self) -> NativeArrays:
        """The machine code."""
        from difflab.execute.targets.llvm.arrays import NativeArrays

        return NativeArrays(self.schedule)

    @property
    def source(self) -> str:
        """The LLVM IR."""
        return self.native.source

    def memory_plan(self) -> MemoryPlan:
        """Return the memory of a call."""
        return self.native.memory_plan()

    def point_code(self) -> PointCode | None:
        """Return the code for calls by machine code; None where it cannot be called."""
        return self.native.point_code()

    def workspace(self) -> Workspace:
        """Return a runner and the code, which has no memory of its own."""
        return _called, self._computed

    def _computed(self, *args: Any) -> Sequence[Any]:
        self._calls += 1
        if self._calls > MOST_CALLS or "native" in vars(self):
            return self.native(args)
        values = {**self.program.known, **dict(enumerate(map(np.asarray, args)))}
        with np.errstate(all="ignore"):
            for number, reads, compute in self.steps:
                values[number] = compute(*[values[read] for read in reads])
        results = [np.asarray(values[number]) for number in self.program.outputs]
        return [value.copy() if value.ndim else float(value) for value in results]


def _called(run: Compute, *args: Any) -> Any:
    return run(*args)


def _compute(op: Op) -> Compute:
    """Return a function that computes an operation with the same bits as machine code."""
    if op.form == OpForm.UFUNC and op.name in EXACT:
        compute: Compute = op.detail
        return compute
    if op.form == OpForm.UFUNC and _library_function(op):
        return _by_library(op)
    if op.form == OpForm.SELECT:
        return lambda *args: np.broadcast_to(np.where(*args), op.shape)
    if op.form == OpForm.VIEW and op.detail[0] != "view":
        return lambda value: viewed(value, op.detail)
    if op.form == OpForm.ITEM:
        return lambda value: value[op.detail]
    if op.form == OpForm.JOIN:
        return lambda *parts: np.concatenate(parts, axis=op.detail)
    if op.form == OpForm.TAKE:
        return lambda value, places: value.take(places.astype(np.intp), axis=op.detail)
    if op.form == OpForm.PLACE:
        keys, gaps = op.detail
        return lambda *parts: _placed(op.shape, keys, gaps, parts)
    if op.form == OpForm.KERNEL and op.detail[0] in (put, sum_in_order):
        return op.kernel
    raise UnsupportedError(f"'{op.form}' may have other bits in machine code")


def _placed(shape: Shape, keys: Sequence[Any], gaps: bool, parts: Sequence[Any]) -> Any:
    """Write each part at its key; where parts may overlap, add the later ones."""
    whole = np.zeros(shape)
    for index, (key, part) in enumerate(zip(keys, parts, strict=True)):
        if gaps and index:
            whole[as_index(key)] += part
        else:
            whole[as_index(key)] = part
    return whole


def _library_function(op: Op) -> str:
    """Return the function of the C library that an operation calls for each element, or ""."""
    if op.form != OpForm.UFUNC or op.name not in SPELLINGS:
        return ""
    name = SPELLINGS[op.name].function
    return name if name in LIBRARY else ""


def _by_library(op: Op) -> Compute:
    """Return a function of the C library, as machine code calls it for the elements of a result."""
    name = _library_function(op)
    if sum(size > 1 for size in op.shape) > 1:
        raise UnsupportedError("the axis whose elements lie in a vector is not known")
    if host().of_numpy and name in NUMPY:
        compute: Compute = op.detail
        return compute
    size, arity = math.prod(op.shape), len(op.reads)
    width = min(host().width, 1 << max(size.bit_length() - 1, 0))
    call = _function((width > 1 and host().vector(name, arity, width)) or name, arity)

    def computed(*args: Any) -> Any:
        columns = [np.broadcast_to(arg, op.shape).ravel().tolist() for arg in args]
        return np.array([*map(call, *columns)]).reshape(op.shape)

    return computed


@cache
def _function(symbol: str, arity: int) -> Callable[..., float]:
    doubles = [ctypes.c_double] * arity
    return ctypes.CFUNCTYPE(ctypes.c_double, *doubles)(address(symbol))
