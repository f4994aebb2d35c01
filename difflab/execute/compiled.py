"""`compile`: a function made ready to be called fast, at one point or at many."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from difflab.core.devices import array_module
from difflab.errors import DeviceError, InputError, UnsupportedError
from difflab.execute.call_arguments import common_shape, plain_number, real
from difflab.execute.choice import Choice, choose, repeated
from difflab.execute.lower.arrays.point import PointTarget
from difflab.execute.lower.schedule import Program, Schedule
from difflab.execute.lower.unrolled import unrolled
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.targets.cuda import CupyTarget
from difflab.execute.targets.llvm.libraries import works
from difflab.execute.targets.numpy.one_point import ArrayTarget
from difflab.execute.targets.numpy.target import NumpyTarget
from difflab.execute.targets.python.target import PythonTarget
from difflab.execute.workers import available
from difflab.graph.checks import require_flag
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Shape
from difflab.graph.repetition import flattened, rolled
from difflab.primitives import sum_in_order

__all__ = ["TARGETS", "Compiled", "check_target", "compile"]

MANY_INPUTS = 256
"""Inputs that a packed point is not taken apart into, where they are the lanes of vectors."""
MOST_NUMBERS = 1_000_000
"""Operations that repetition is taken apart into where Python's numbers are asked for."""
TARGETS = ("auto", "python", "numpy", "native", "cupy")


def compile(
    f: Function, target: str = "auto", threads: int | None = None, packed: bool = False
) -> Compiled:
    r"""Make a function ready to be called fast.

    Parameters
    ----------
    f : Function
        What `parse`, `trace`, `gradient` and the other transforms give.
    target : {"auto", "python", "numpy", "native", "cupy"}
        ``"python"`` is straight-line code over `math` for one point; ``"numpy"`` a planned
        sequence of universal functions for batches, and straight-line calls of NumPy and BLAS
        for one point of arrays; ``"native"`` machine code, for one point of numbers or arrays,
        or for many of numbers and small arrays, where llvmlite is installed; ``"cupy"`` a CUDA
        kernel for each group of operations that fuse, for arrays that CuPy keeps on a GPU;
        ``"auto"`` takes one of them call by call, by the number of points alone, as ``reason``
        tells: the same call gives the same bits each time.
    threads : int, optional
        How many threads share a large batch; all processors when None.
    packed : bool
        Whether the result takes one array ``(n,)`` or ``(N, n)`` of the inputs flattened in
        order, instead of one value per input.

    Returns
    -------
    Compiled
        Called as `f` is. At one point numbers come as Python's floats. A batch's arrays have
        the shapes that `f` gives them; the numbers of one entry lie side by side in memory,
        so ``gradient[:, 0]`` is contiguous.

    Raises
    ------
    InputError
        `f` is no Function, there is no such target, or `threads` is no positive number.
    UnsupportedError
        The target cannot compute this function.
    MissingDependencyError
        llvmlite, which the target ``"native"`` needs, or CuPy, which ``"cupy"`` needs, is not
        installed.

    Notes
    -----
    Values are those of the Function within 4 units in the last place for every primitive,
    nan and inf included. Products of matrices and sums may add their n terms in another order
    than the Function does, which changes a sum by at most n·2⁻⁵² of its terms' magnitudes.
    In batches the target ``"native"`` takes glibc's vector functions,
    which err by up to 4 units themselves; where there is no machine code, it is NumPy's and
    ``reason`` says so. Machine code is kept in ``~/.cache/difflab`` between runs, in
    ``$DIFFLAB_CACHE`` where that is set, and nowhere where that is ``off``.

    The target ``"cupy"`` launches on CuPy's current stream and copies nothing between host and
    device: its inputs are CuPy's arrays and numbers, its results CuPy's arrays, at one point too.
    Values are those of CUDA's functions, which err by up to 10 units in the last place (gamma;
    erfc 5, most others 2). ``"auto"`` takes it for arrays that are on a GPU.

    Examples
    --------
    >>> import difflab as dl
    >>> fast = dl.compile(dl.value_and_gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
    >>> fast(2.0, 5.0)
    (11.652071455223084, array([5.5       , 1.71633781]))
    >>> fast(np.array([2.0, 3.0]), 5.0)[1]
    array([[5.5       , 1.71633781],
           [5.33333333, 2.71633781]])
    >>> dl.compile(dl.gradient(dl.parse("x*y")), packed=True)([2.0, 3.0])
    array([3., 2.])
    """
    if not isinstance(f, Function):
        raise InputError(
            f"a {type(f).__name__} cannot be compiled",
            hint="compile what dl.parse, dl.trace or dl.gradient gives",
        )
    check_target(target)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InputError(f"threads is a whole number from 1, not {threads!r}")
    vectors = repeated(f, target)
    require_flag(packed, "packed", "compile")
    if packed and vectors is not f and len(f.inputs) >= MANY_INPUTS:
        vectors = rolled(flattened(vectors), least=0)
    schedule = Schedule.of(vectors)
    program: Program | None = None
    arrays = ""
    try:
        program = Program.of(schedule)
    except UnsupportedError as error:
        arrays = error.args[0] if vectors is f else _repetition(f, schedule)
        if target == "python" and sum_in_order in vectors.graph.primitives:
            program = unrolled(schedule, MOST_NUMBERS)  # what was numbers before it was rolled
    if target == "python" and program is None:
        raise UnsupportedError(
            f"the target 'python' computes with numbers, and {arrays}: use target 'numpy'"
        )
    kind = PackedCompiled if packed else Compiled
    return kind(f, target, threads, schedule, program, arrays).specialised()


def check_target(target: str) -> None:
    """Raise `InputError` where there is no such target.

    Examples
    --------
    >>> check_target("numpi")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: there is no target 'numpi'
    hint: one of auto, python, numpy, native, cupy
    """
    if not isinstance(target, str) or target not in TARGETS:
        raise InputError(f"there is no target {target!r}", hint=f"one of {', '.join(TARGETS)}")


class Compiled:
    """A function ready to be called; made by `compile`.

    Attributes
    ----------
    function : Function
        What is computed.
    target : str
        What was asked for.

    Examples
    --------
    >>> import difflab as dl
    >>> fast = dl.compile(dl.parse("x*sin(y)"), target="numpy")
    >>> fast.reason
    'numpy: as asked for'
    >>> print(fast.source)
    v2 = sin(v1)  # buffer 0
    v3 = multiply(v0, v2)  # result 0
    """

    packed = False

    def __init__(
        self,
        function: Function,
        target: str,
        threads: int | None,
        schedule: Schedule,
        program: Program | None,
        arrays: str,
    ) -> None:
        self.function = function
        self.target = target
        self.threads = threads
        self._schedule = schedule
        self._program = program
        self._python = None
        self._entry_source: str | None = None
        self._numbers = len(function.inputs) if not any(function.input_shapes) else -1
        self._why_arrays = arrays
        self._choose()
        first = self._chosen(1)
        plain = program is None and first == "numpy"
        self._arrays: PointTarget | None = self._choice.point
        if self._arrays is None and plain:
            self._arrays = ArrayTarget(schedule)
        if first == "cupy":
            self._cupy  # noqa: B018 - plans now
        elif first == "python" and program is not None:
            self._python = PythonTarget(program, schedule.function.input_shapes)
        elif first == "native" and self._native is not None and self._arrays is None:
            self._native.prepare()
        elif program is not None:
            self._numpy  # noqa: B018 - plans now what is planned when first needed otherwise

    def _choose(self) -> None:
        workers = self.threads or available()
        self._choice: Choice = choose(
            self.target, self._schedule, self._program, self._why_arrays, workers
        )
        self._native = self._choice.native

    def _chosen(self, points: int) -> str:
        """Return the target for so many points, which is another where llvmlite turns out broken.

        It is imported when machine code is first needed, and not known to work before.
        """
        chosen = self._choice.of(points)
        if chosen == "native" and not works():
            self._choose()
            chosen = self._choice.of(points)
        return chosen

    @property
    def reason(self) -> str:
        """What computes which calls, and why."""
        device = "_cupy" in vars(self) and not self._choice.device
        return f"{self._choice.reason}{'; cupy for arrays on a GPU' if device else ''}"

    @cached_property
    def _cupy(self) -> CupyTarget:
        return CupyTarget(self._schedule, self._program)

    @cached_property
    def _numpy(self) -> NumpyTarget:
        threads = self.threads or available()
        return NumpyTarget(self._schedule, self._program, threads)

    @property
    def source(self) -> str:
        """What is run at a point: Python's source or NumPy's plan; LLVM's or CUDA's for a batch."""
        if self._choice.device:
            return self._cupy.source
        if self._arrays is not None:
            return self._arrays.source
        if self._python is not None:
            return self._entry_source or self._python.source
        if self._native is not None:
            return self._native.source
        return self._numpy.source

    def memory_plan(self, points: int | None = None) -> MemoryPlan:
        """Return what a call needs of memory, at one point or for a batch of so many.

        Parameters
        ----------
        points : int, optional
            The size of the batch; one point without a batch's axis when None.

        Returns
        -------
        MemoryPlan
            Its ``peak_bytes`` are what a call holds at most beside its inputs. What NumPy's and
            LAPACK's functions take for themselves is not known to it.

        Examples
        --------
        >>> import difflab as dl
        >>> f = dl.trace(lambda x: np.exp(np.sin(np.tanh(x) * 2) + x), np.ones(1000))
        >>> plan = dl.compile(f).memory_plan()
        >>> plan.values, plan.buffers, plan.results
        (5, (8000,), 8000)
        """
        count = 1 if points is None else points
        chosen = self._chosen(count)
        if chosen == "cupy":
            return self._cupy.memory_plan(count)
        if self._arrays is not None and points is None:
            return self._arrays.memory_plan()
        if chosen == "numpy":
            return self._numpy.memory_plan(count)
        if self._native is not None and chosen == "native" and points is not None:
            return self._native.memory_plan(points)
        return MemoryPlan(len(self.function.outputs), (), 1, 8 * count * self.function.m)

    def specialised(self) -> Compiled:
        """Return this with a call of its own, where the inputs can be its parameters."""
        if self._arrays is not None and not self.packed:
            _, call = self._arrays.entry(self.function.structure)
            self.__class__ = type(type(self).__name__, (type(self),), {"__call__": call})
        if self._python is None:
            return self
        plain = self.function.structure is None
        entry = self._python.entry(packed=self.packed) if plain else None
        if entry is None:
            self._python.run  # noqa: B018 - compiled now, not by the first call
        else:
            self._entry_source, call = entry
            self.__class__ = type(type(self).__name__, (type(self),), {"__call__": call})
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs at a point or a batch of points, as the Function does."""
        return self.general(args, kwargs)

    def general(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the outputs for any arguments: checked, converted, named or in batches."""
        plain = len(args) == self._numbers and not kwargs
        if plain and all(isinstance(arg, float | int) for arg in args):
            results = self._at([float(arg) for arg in args])
            if results is not None:
                return self.function.returned(results)
        if plain and (batch := common_shape(args)) is not None and not self._choice.device:
            return self._results(args, batch)
        while args and args[-1] is None:
            args = args[:-1]
        given = self.function.arranged(args, kwargs)
        if self._on_device(given, self.function.inputs):
            results = self._cupy(given, self.function.inputs, self.function.batch(given))
            return self.function.returned(results)
        values = [real(value) for value in given]
        return self._results(values, self.function.batch(values))

    def _on_device(self, values: Sequence[Any], names: Sequence[str]) -> bool:
        """Whether the values are computed with on a GPU, and not by a target of the host."""
        if self._choice.device:
            return True
        cupy = sys.modules.get("cupy")
        if cupy is None or not any(isinstance(value, cupy.ndarray) for value in values):
            return False
        array_module(values, "a compiled function", names)
        if self.target != "auto":
            raise DeviceError(
                f"the target '{self.target}' computes on the host, but its arrays are CuPy's",
                hint="use target 'auto' or 'cupy', or copy them to the host: array.get()",
            )
        return True

    def _at(self, point: Any) -> list[Any] | None:
        """Return the outputs at a point of numbers, if numbers are what is computed with."""
        if self._python is not None:
            numbers = point if isinstance(point, list) else point.tolist()
            return self._python.shaped(self._python.point(numbers))
        if self._arrays is None and self._native is not None and self._choice.of(1) == "native":
            return self._native.point(point)
        return None

    def _results(self, values: Sequence[Any], batch: Shape) -> Any:
        chosen = self._chosen(math.prod(batch))
        if chosen == "python" and self._python is not None:
            results = self._python(values, batch)
        elif self._arrays is not None and batch == ():
            results = self._arrays(values)
        elif chosen == "native" and self._native is not None:
            results = self._native(values, batch)
        else:
            results = self._numpy(values, batch)
            if batch == ():
                results = [plain_number(result) for result in results]
        return self.function.returned(results)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return compile, (self.function, self.target, self.threads, self.packed)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}: {self.reason}>"


class PackedCompiled(Compiled):
    """A compiled function of one array of all inputs."""

    packed = True

    def __call__(self, points: Any, /) -> Any:
        """Return the outputs at packed points ``(n,)`` or ``(N, n)``.

        Raises
        ------
        PointError
            The last axis does not hold n numbers.
        """
        return self.general(points)

    def general(self, points: Any, kwargs: Mapping[str, Any] | None = None) -> Any:
        """Return the outputs at packed points of any kind."""
        if self._on_device([points], ["points"]):
            return self._packed_on_device(points)
        packed = real(points)
        if packed.ndim == 1 and len(packed) == self.function.n:
            results = self._at(packed)
            if results is not None:
                return self.function.returned(results)
        return self._results(self._schedule.function.split(packed), packed.shape[:-1])

    def _packed_on_device(self, points: Any) -> Any:
        """Return the outputs at packed points on a GPU."""
        packed = points if hasattr(points, "dtype") else np.asarray(points)
        parts = self._schedule.function.split(packed)
        names = ["points"] * len(parts)
        return self.function.returned(self._cupy(parts, names, packed.shape[:-1]))


def _repetition(function: Function, schedule: Schedule) -> str:
    numbers = int((function.graph.opcode >= FIRST_ROW).sum())
    return f"{numbers:,} operations on numbers are {len(schedule.steps)} on vectors"
