"""The choice of a target by the number of points, and its reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.optional import installed, require
from difflab.errors import UnsupportedError
from difflab.execute.lower.ops import FLOAT
from difflab.execute.lower.schedule import ScalarProgram, Schedule, unrolled
from difflab.execute.targets.llvm.first_calls import FirstCalls
from difflab.execute.targets.llvm.libraries import available, fault, llvm, works
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.graph.control import Checkpoint
from difflab.graph.counts import node_arithmetic
from difflab.graph.function import Function
from difflab.graph.repetition import rolled
from difflab.primitives import (
    broadcast,
    concatenate,
    constant_array,
    cumulative,
    fft,
    index,
    irfft,
    matmul,
    pack,
    put,
    reshape,
    rfft,
    scatter,
    solve,
    sum_,
    sum_in_order,
    take,
    transpose,
)

# Functions of scalars need neither arrays in machine code nor ball arithmetic.
if TYPE_CHECKING:
    from difflab.execute.targets.exact import ExactTarget
    from difflab.execute.targets.llvm.arrays import NativeArrays
    from difflab.execute.targets.llvm.arrays.batch import NativeBatch


FEW_POINTS = 32
"""Points up to which Python floats beat NumPy's call overhead."""
MANY_OPERATIONS = 2_000
"""Operations from which LLVM compiles as fast as Python does, and a call is ten times faster."""
FEWEST_ROLLED = 300
"""Operations on vectors of repeated scalars from which loops of machine code compute one point."""
WORTH_COMPILING = 360
"""Scalar operations per call above which LLVM compilation pays off after about 100 calls.

LLVM needs 5 ms plus about 60 µs per operation; Python floats need 40 ns per operation and point,
NumPy 1 µs or more of overhead per operation. Calls are not counted, because the same call must
give the same bits.
"""
FEWEST_COMPILED = 8
"""Points below which many operations are not compiled: compiling takes LLVM 1,000 times longer."""
LONG_RECURRENCES = 20_000
"""Elements of running sums, running products and linear recurrences that are worth compiling.

NumPy and BLAS need 3 to 7 ns for each, machine code 1 ns.
"""
LONG_TRANSFORMS = 4_000
"""Elements of Fourier transforms from which machine code without passes between them is faster."""
LARGE_CHECKPOINTS = 10_000_000
"""Elements of elementwise operations beside checkpoints that are worth compiling.

NumPy computes a checkpointed function one operation after the other, each through memory.
"""
MOST_PRODUCTS = 64
"""Operations of matrix products for each elementwise one up to which BLAS is not missed."""
WORTH_COMPILING_ARRAYS = 400_000
"""The same for array operations, where NumPy makes few calls."""

LOOKED_UP = frozenset((index, put, scatter, sum_in_order, take))
"""The rows that read or write parts of arrays, and the sum of them in a given order."""
COPIED = frozenset((broadcast, concatenate, constant_array, pack, reshape, sum_, transpose))
"""The other rows that change no number, and their transposes."""
RUNNING = frozenset(getattr(cumulative, name) for name in cumulative.__all__)
"""The rows that accumulate along an axis."""

UNROLLED_NATIVE = 20_000
"""Scalar operations that array operations are unrolled to at most, for target "native"."""
UNROLLED_AUTO = 1_000
"""The same for target "auto", where unrolling must take only milliseconds."""


@dataclass(frozen=True)
class Choice:
    """Target by number of points: `python` for few, `native` for many, `numpy` in between.

    Attributes
    ----------
    reason : str
        The choice and its reason, as text.
    python_to : int
        The largest number of points computed by Python floats; -1 for none.
    native_from : float
        The smallest number of points computed by machine code; infinite for none.
    native : NativeTarget or None
        The machine code, compiled at its first call.
    device : bool
        Whether CuPy computes every call.
    point : NativeArrays, FirstCalls or None
        Machine code for one point of a function of arrays.
    batches : callable or None
        Returns machine code that is called for each point of a batch.
    exact : ExactTarget or None
        Ball arithmetic, which computes every call.
    """

    reason: str
    python_to: float = -1
    native_from: float = math.inf
    native: NativeTarget | None = None
    device: bool = False
    point: NativeArrays | FirstCalls | None = None
    batches: Callable[[], NativeBatch] | None = None
    exact: ExactTarget | None = None

    @cached_property
    def batch(self) -> NativeBatch | None:
        """Machine code that is called for each point of a batch."""
        return None if self.batches is None else self.batches()

    def of(self, points: int) -> str:
        """Return the target for n points.

        Examples
        --------
        >>> choice = Choice("", python_to=32, native_from=1000)
        >>> [choice.of(points) for points in (1, 33, 1000)]
        ['python', 'numpy', 'native']
        """
        if self.device or self.exact is not None:
            return "cupy" if self.device else "exact"
        if points >= self.native_from:
            return "native"
        return "python" if points <= self.python_to else "numpy"


def repeated(function: Function, target: str, dtype: np.dtype[Any]) -> Function:
    """Return a function with repeated scalar operations as vectors, where a target has them.

    Machine code of few loops is made sooner than that of many scalar operations, and computes
    several lanes at a time; loops compute in float64 only.
    """
    if target in ("python", "exact"):
        return function
    few = len(function.graph) < UNROLLED_NATIVE and target in ("auto", "native")
    return function if few and dtype != FLOAT and available() else rolled(function)


def choose(
    target: str,
    function: Function,
    steps: Schedule | ScalarProgram,
    arrays: str,
    threads: int,
    dtype: np.dtype[Any] = FLOAT,
) -> Choice:
    """Choose the target of a function.

    Parameters
    ----------
    target : str
        The requested target.
    function : Function
        The function.
    steps : ScalarProgram or Schedule
        Its operations on scalars, or on arrays.
    arrays : str
        Why they are on arrays.
    threads : int
        The number of threads that share a batch.
    dtype : dtype
        The dtype in which to compute.

    Raises
    ------
    UnsupportedError
        The target computes in float64 only.
    MissingDependencyError
        The package that the target requires is missing or broken: llvmlite for "native", CuPy
        for "cupy", python-flint for "exact".
    """
    single = dtype != FLOAT
    if single and target not in ("auto", "numpy", "native"):
        raise UnsupportedError(
            f"the target '{target}' computes in float64, not in {dtype}: use target 'auto',"
            " 'numpy' or 'native'"
        )
    if target in ("python", "numpy"):
        reason = f"{target}: as requested{f', in {dtype}' if single else ''}"
        return Choice(reason, math.inf if target == "python" else -1)
    if target == "cupy":
        require("cupy")
        return Choice("cupy: as requested", device=True)
    if target == "exact":
        from difflab.execute.targets.exact import ExactTarget

        return Choice("exact: as requested", exact=ExactTarget(function.in_floats))
    if target == "native":
        llvm()
    if isinstance(steps, Schedule) and not single and available() and _looks_up(steps) and works():
        point = _soon(steps) if target == "auto" else _point(steps, soon=True)[0]
        if point is not None:
            why = "as requested" if target == "native" else "it reads and writes parts of arrays"
            return _looping(f"native: {why}", function, point, None, threads)
    most = UNROLLED_NATIVE if target == "native" else UNROLLED_AUTO
    native, why_not = _native(function, steps, most, threads, dtype)
    if single:
        return _in_dtype(target, arrays, native, why_not, dtype)
    if target == "native":
        return _requested(function, steps, arrays, native, why_not, threads)
    if isinstance(steps, ScalarProgram):
        return _automatic(function, steps, native, why_not)
    return _of_arrays(steps, arrays, native, threads)


def _of_arrays(
    schedule: Schedule, arrays: str, native: NativeTarget | None, threads: int
) -> Choice:
    """Choose for a function that is no short list of scalar operations, under "auto"."""
    controls, accumulates = _controls(schedule.function), _accumulates(schedule)
    checkpoints = _checkpoints(schedule)
    if (controls or accumulates or checkpoints or _transforms(schedule)) and available():
        point, fault = _point(schedule)
        if point is None:
            arrays = f"{arrays}, and {fault}"
        elif controls or accumulates:
            what = "loops or branches" if controls else "long recurrences"
            return _looping(f"native: it has {what}", schedule.function, point, native, threads)
        else:
            what = "checkpoints of large arrays" if checkpoints else "long transforms"
            reason = f"native for one point, with {what}; numpy for batches: {arrays}"
            return Choice(reason, point=point)
    if native is None:
        return Choice(f"numpy: {arrays}")
    least, count = _least(native, WORTH_COMPILING_ARRAYS, FEW_POINTS + 1), native.operations
    reason = f"numpy: {arrays}; native from {least} points, with {count} scalar operations"
    return Choice(reason, native_from=least, native=native)


def _in_dtype(
    target: str, arrays: str, native: NativeTarget | None, why_not: str, dtype: np.dtype[Any]
) -> Choice:
    """Choose between the targets that compute in another dtype than float64."""
    if native is None:
        why = ", and ".join(dict.fromkeys(filter(None, (arrays, why_not))))
        return Choice(f"numpy: in {dtype}, since {why}")
    if target == "native":
        return Choice(f"native: as requested, in {dtype}", native_from=0, native=native)
    least = _least(native, WORTH_COMPILING, FEWEST_COMPILED)
    reason = f"numpy: in {dtype}; native from {least} points"
    return Choice(reason, native_from=least, native=native)


def _looping(
    reason: str,
    function: Function,
    point: NativeArrays | FirstCalls,
    native: NativeTarget | None,
    threads: int,
) -> Choice:
    """Choose machine code; a batch of few operations computes vectors of points, others each."""

    def batches() -> NativeBatch:
        from difflab.execute.targets.llvm.arrays.batch import NativeBatch

        return NativeBatch(function, point.truths, threads)

    each = batches if native is None else None
    return Choice(reason, native_from=0, native=native, point=point, batches=each)


def _controls(function: Function) -> bool:
    """Whether NumPy would compute loops or choices step by step, perhaps inside checkpoints."""
    pending = [function]
    while pending:
        held = [row.holds for row in pending.pop().graph.primitives if row.holds is not None]
        checkpoints = [inside for inside in held if isinstance(inside, Checkpoint)]
        if len(checkpoints) < len(held):
            return True
        pending += [inside.function for inside in checkpoints]
    return False


def _accumulates(schedule: Schedule) -> bool:
    """Whether long recurrences take most of the time; machine code is slower than BLAS."""
    rows = {step.row for step in schedule.steps}
    sizes = [math.prod(schedule.shape(step.node)) for step in schedule.steps if step.row in RUNNING]
    return sum(sizes) >= LONG_RECURRENCES and rows.isdisjoint((matmul, solve))


def _looks_up(schedule: Schedule) -> bool:
    """Whether elementwise operations on parts of arrays are all, as where scalars repeat.

    NumPy copies the parts that machine code reads where they lie; it leaves no work to BLAS.
    """
    rows = {step.row for step in schedule.steps}
    elementwise = {row for row in rows if row.shape is None and row.holds is None}
    sizes = [math.prod(schedule.shape(s.node)) for s in schedule.steps if s.row in elementwise]
    moved = rows - elementwise
    if not moved & LOOKED_UP or not moved <= LOOKED_UP | COPIED:
        return False
    return sum(sizes) >= FEWEST_ROLLED


def _checkpoints(schedule: Schedule) -> bool:
    """Whether elementwise operations beside checkpoints take most of the time, and not BLAS."""
    graph, rows = schedule.function.graph, {step.row for step in schedule.steps}
    if not any(isinstance(row.holds, Checkpoint) for row in rows) or solve in rows:
        return False
    elementwise = {row for row in rows if row.shape is None and row.holds is None}
    elements = sum(
        math.prod(schedule.shape(s.node)) for s in schedule.steps if s.row in elementwise
    )
    products = sum(node_arithmetic(graph, s.node) for s in schedule.steps if s.row is matmul)
    return elements >= LARGE_CHECKPOINTS and products <= MOST_PRODUCTS * elements


def _transforms(schedule: Schedule) -> bool:
    """Whether passes beside long Fourier transforms take most of the time, and not BLAS."""
    rows = {step.row for step in schedule.steps}
    steps = [step for step in schedule.steps if step.row in (fft, rfft, irfft)]
    sizes = [math.prod(schedule.shape(step.node)) for step in steps]
    return sum(sizes) >= LONG_TRANSFORMS and rows.isdisjoint((matmul, solve))


def _soon(schedule: Schedule) -> NativeArrays | FirstCalls | None:
    """Return the code of one point that is ready soonest, of a function of arrays; None without it.

    Its bits are those of machine code, which follows in the background.
    """
    try:
        return FirstCalls(schedule)
    except UnsupportedError:
        return _point(schedule, soon=True)[0]


def _point(schedule: Schedule, *, soon: bool = False) -> tuple[NativeArrays | None, str]:
    """Return one point of a function of arrays as machine code, or None and the reason."""
    from difflab.execute.targets.llvm.arrays import NativeArrays

    try:
        return NativeArrays(schedule, soon=soon), ""
    except UnsupportedError as error:
        return None, str(error)


def _rolled(function: Function, program: ScalarProgram) -> NativeArrays | None:
    """Return many scalar operations as loops of machine code, where they repeat."""
    if not available() or len(program.steps) < MANY_OPERATIONS:
        return None
    from difflab.execute.targets.llvm.arrays import NativeArrays

    return NativeArrays.rolled(function, program)


def _native(
    function: Function,
    steps: Schedule | ScalarProgram,
    most: int,
    threads: int,
    dtype: np.dtype[Any],
) -> tuple[NativeTarget | None, str]:
    """Return the function as machine code, or None and the reason."""
    if not available():
        missing = "machine code needs llvmlite: pip install 'difflab[native]'"
        return None, f"no machine code: {fault()}" if installed("llvmlite") else missing
    try:
        program = unrolled(steps, most) if isinstance(steps, Schedule) else steps
        return NativeTarget(program, function.input_shapes, threads, real=dtype), ""
    except UnsupportedError as error:
        return None, str(error)


def _requested(
    function: Function,
    steps: Schedule | ScalarProgram,
    arrays: str,
    native: NativeTarget | None,
    why_not: str,
    threads: int,
) -> Choice:
    """Choose where machine code was requested."""
    if isinstance(steps, Schedule):
        point, reason = _point(steps)
    else:
        point, reason = _rolled(function, steps), ""
    if point is not None and _controls(function):
        return _looping("native: as requested", function, point, native, threads)
    if native is not None:
        return Choice("native: as requested", native_from=0, native=native, point=point)
    if point is not None:
        return Choice(
            f"native for one point, as requested; numpy for batches: {why_not}", point=point
        )
    why = ", and ".join(filter(None, (arrays, why_not, reason)))
    return Choice(f"numpy: {why}")


def _least(native: NativeTarget, worth: int, fewest: int) -> int:
    """Return the fewest points, at least `fewest`, that need `worth` scalar operations."""
    return max(-(-worth // max(native.operations, 1)), fewest)


def _automatic(
    function: Function, program: ScalarProgram, native: NativeTarget | None, why_not: str
) -> Choice:
    operations = len(program.steps)
    count = f"since its {operations} operations are all scalar"
    if native is None:
        reason = f"python up to {FEW_POINTS} points, {count}; numpy for more; {why_not}"
        return Choice(reason, FEW_POINTS)
    if operations >= MANY_OPERATIONS:
        reason = f"native: its {operations} operations are all scalar, and many"
        point = _rolled(function, program)
        return Choice(reason, native_from=0, native=native, point=point)
    least = FEWEST_COMPILED
    if operations * least < WORTH_COMPILING:  # else there is no need to know the universal ones
        least = _least(native, WORTH_COMPILING, least)
    few = min(least - 1, FEW_POINTS)
    more = "native for more" if few == least - 1 else f"numpy for more; native from {least}"
    return Choice(f"python up to {few} points, {count}; {more}", few, least, native)
