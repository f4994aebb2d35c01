"""Which target computes which calls, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

from difflab.core.optional import installed, require
from difflab.errors import UnsupportedError
from difflab.execute.lower.schedule import Program, Schedule
from difflab.execute.lower.unrolled import unrolled
from difflab.execute.targets.llvm import NativeArrays, NativeTarget
from difflab.execute.targets.llvm.libraries import available, fault, llvm
from difflab.graph.function import Function
from difflab.graph.repetition import LARGE, rolled

__all__ = [
    "FEWEST_COMPILED",
    "FEW_POINTS",
    "MANY_OPERATIONS",
    "WORTH_COMPILING",
    "WORTH_COMPILING_ARRAYS",
    "Choice",
    "choose",
    "repeated",
]

FEW_POINTS = 32
"""Points up to which Python's floats are faster than setting NumPy's functions off."""
MANY_OPERATIONS = 2_000
"""Operations from which LLVM compiles as fast as Python, and a point is ten times faster."""
LONG_VECTORS = 1_000
"""Numbers that vectors hold on average from which NumPy is as fast as machine code."""
WORTH_COMPILING = 360
"""Operations on numbers, in one call, from which some hundred calls pay for LLVM's compiling.

LLVM takes 5 milliseconds and some 60 µs an operation; Python's floats take 40 ns for each at
each point, NumPy a microsecond or more to set each off. Calls are not counted, since the same
call shall give the same bits.
"""
FEWEST_COMPILED = 8
"""Points below which many operations are not compiled: LLVM takes a thousand times longer for each.
"""
WORTH_COMPILING_ARRAYS = 400_000
"""The same for operations on arrays, of which NumPy sets few off."""

UNROLLED_NATIVE = 20_000
"""Operations on numbers that arrays are taken apart into, where machine code is asked for."""
UNROLLED_AUTO = 1_000
"""The same where it is not asked for: what takes milliseconds."""


@dataclass(frozen=True)
class Choice:
    """What computes so many points: `python` up to some, `native` from some, `numpy` between.

    Attributes
    ----------
    reason : str
        The choice in words.
    python_to : int
        The most points that are computed by Python's floats; -1 for none.
    native_from : float
        The fewest that are computed by machine code; infinite where there is none.
    native : NativeTarget or None
        The machine code, compiled when it is first called.
    device : bool
        Whether all is computed by CuPy's kernels.
    point : NativeArrays or None
        Machine code for one point of a function of arrays.
    """

    reason: str
    python_to: float = -1
    native_from: float = math.inf
    native: NativeTarget | None = None
    device: bool = False
    point: NativeArrays | None = None

    def of(self, points: int) -> str:
        """Return the target for so many points.

        Examples
        --------
        >>> choice = Choice("", python_to=32, native_from=1000)
        >>> [choice.of(points) for points in (1, 33, 1000)]
        ['python', 'numpy', 'native']
        """
        if self.device:
            return "cupy"
        if points >= self.native_from:
            return "native"
        return "python" if points <= self.python_to else "numpy"


def repeated(function: Function, target: str) -> Function:
    """Return a function with its repetition as vectors, where that is faster.

    Machine code for every number alone computes short vectors faster than NumPy does, but it
    takes seconds to make where there are many.
    """
    if target not in ("auto", "numpy", "cupy"):
        return function
    found = rolled(function)
    compiled = target == "auto" and len(function.graph) < LARGE and available()
    short = len(function.graph) < LONG_VECTORS * len(found.graph)
    return function if compiled and short else found


def choose(
    target: str, schedule: Schedule, program: Program | None, arrays: str, threads: int
) -> Choice:
    """Choose what computes a function.

    Parameters
    ----------
    target : str
        What was asked for.
    schedule : Schedule
        The function.
    program : Program or None
        The function on single numbers.
    arrays : str
        Why there is none.
    threads : int
        How many threads share a batch.

    Raises
    ------
    MissingDependencyError
        Machine code was asked for, and llvmlite is missing or broken; or CuPy is.
    """
    if target in ("python", "numpy"):
        return Choice(f"{target}: as asked for", math.inf if target == "python" else -1)
    if target == "cupy":
        require("cupy", "gpu")
        return Choice("cupy: as asked for", device=True)
    if target == "native":
        llvm()
    most = UNROLLED_NATIVE if target == "native" else UNROLLED_AUTO
    native, why_not = _native(schedule, program, most, threads)
    if target == "native":
        return _requested(schedule, program, arrays, native, why_not)
    if program is not None:
        return _automatic(len(program.steps), native, why_not)
    if native is None:
        return Choice(f"numpy: {arrays}")
    least, count = _least(native, WORTH_COMPILING_ARRAYS, FEW_POINTS + 1), native.operations
    reason = f"numpy: {arrays}; native from {least} points, on {count} operations on numbers"
    return Choice(reason, native_from=least, native=native)


def _native(
    schedule: Schedule, program: Program | None, most: int, threads: int
) -> tuple[NativeTarget | None, str]:
    """Return the function as machine code, or why there is none."""
    if not available():
        missing = "machine code needs llvmlite: pip install 'difflab[native]'"
        return None, f"no machine code: {fault()}" if installed("llvmlite") else missing
    try:
        numbers = unrolled(schedule, most) if program is None else program
        return NativeTarget(numbers, schedule.function.input_shapes, threads), ""
    except UnsupportedError as error:
        return None, str(error)


def _requested(
    schedule: Schedule,
    program: Program | None,
    arrays: str,
    native: NativeTarget | None,
    why_not: str,
) -> Choice:
    """Choose where machine code was asked for."""
    point, reason = None, ""
    if program is None:
        try:
            point = NativeArrays(schedule)
        except UnsupportedError as error:
            reason = f", and {error}"
    if native is not None:
        return Choice("native: as asked for", native_from=0, native=native, point=point)
    if point is not None:
        return Choice(f"native for one point, as asked for; numpy for more: {why_not}", point=point)
    why = f"{arrays}, and {why_not}{reason}" if arrays else why_not
    return Choice(f"numpy: {why}")


def _least(native: NativeTarget, worth: int, fewest: int) -> int:
    """Return the number of points from which so many operations are done."""
    return max(-(-worth // max(native.operations, 1)), fewest)


def _automatic(operations: int, native: NativeTarget | None, why_not: str) -> Choice:
    count = f"since its {operations} operations are all on numbers"
    if native is None:
        reason = f"python up to {FEW_POINTS} points, {count}; numpy for more; {why_not}"
        return Choice(reason, FEW_POINTS)
    if operations >= MANY_OPERATIONS:
        reason = f"native: its {operations} operations are all on numbers, and many"
        return Choice(reason, native_from=0, native=native)
    least = _least(native, WORTH_COMPILING, FEWEST_COMPILED)
    few = min(least - 1, FEW_POINTS)
    more = "native for more" if few == least - 1 else f"numpy for more; native from {least}"
    return Choice(f"python up to {few} points, {count}; {more}", few, least, native)
