"""`compile`: compile a function for fast calls at one point or on a batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from difflab.core.apply import array_module
from difflab.core.conversions import host_numbers
from difflab.errors import DeviceError, InputError, PointError, UnsupportedError
from difflab.execute.call_arguments import common_shape, plain_numbers, real, written
from difflab.execute.choice import MANY_OPERATIONS, repeated
from difflab.execute.lower.ops import FLOAT, SINGLE
from difflab.execute.lower.scalar import computes_numbers
from difflab.execute.lower.schedule import ScalarProgram, Schedule, unrolled
from difflab.execute.point_calls import PointCalls, unplanned
from difflab.execute.targets.llvm.python_objects import layouts
from difflab.graph.checks import require_flag
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Shape
from difflab.graph.node import Node
from difflab.graph.repetition import flattened, rolled
from difflab.graph.values import first_carrier
from difflab.primitives import sum_in_order

__all__ = ["TARGETS", "Compiled", "check_dtype", "check_target", "compile"]

MANY_INPUTS = 256
"""Inputs from which a packed point stays one array, if the function is vectorised over it."""
MOST_SCALAR_OPERATIONS = 1_000_000
"""Scalar operations that rolled loops are expanded to at most, for target "python"."""
TARGETS = ("auto", "python", "numpy", "native", "cupy", "exact")


def compile(
    f: Function,
    target: str = "auto",
    threads: int | None = None,
    packed: bool = False,
    dtype: DTypeLike = np.float64,
    timeout: float | None = None,
) -> Compiled:
    r"""Compile a function for fast calls.

    Parameters
    ----------
    f : Function
        A function returned by `parse`, `trace`, `gradient` or another transform.
    target : {"auto", "python", "numpy", "native", "cupy", "exact"}
        ``"python"``: straight-line code over `math`, for one point. ``"numpy"``: a planned
        sequence of universal functions for batches, and straight-line calls of NumPy and BLAS
        for one point of arrays. ``"native"``: machine code through llvmlite, for one point of
        scalars or arrays, or for batches of scalars and small arrays. ``"cupy"``: one CUDA
        kernel per group of fused operations, for CuPy arrays on a GPU. ``"exact"``: ball
        arithmetic, about 1,000 times slower, with every result correctly rounded. ``"auto"``
        selects one of the others at each call from the number of points alone, as ``reason``
        states: the same call gives the same bits each time.
    threads : int, optional
        The number of threads that share a large batch; all processors when None.
    packed : bool
        Whether the result accepts one array ``(n,)`` or ``(N, n)`` of all inputs, flattened
        in order, instead of one value per input.
    dtype : {float64, float32}
        The dtype in which inputs are taken, values computed and results returned. The targets
        ``"numpy"``, ``"native"`` and ``"auto"`` compute in float32; batches take half the memory.
    timeout : float, optional
        With the target ``"exact"``, the seconds for each point, 60 if None; a call that takes
        longer raises `MethodTimeout`, which says how far it came.

    Returns
    -------
    Compiled
        A callable with the signature of `f`. At one point scalars are Python floats. For a
        batch the arrays have the shapes that `f` returns, stored with the batch axis
        contiguous: ``gradient[:, 0]`` is contiguous. The keyword ``out`` takes arrays of the
        results' shapes and dtypes, C-contiguous or stored as results are, in the structure that
        the call returns, writes the results there and returns them, unless an input is called
        ``out``. Results of an earlier call are such arrays; machine code writes a batch to those
        without a copy.

    Raises
    ------
    InputError
        `f` is not a Function, the target is unknown, `threads` is not a positive integer,
        `dtype` is neither float64 nor float32, or `timeout` is no time limit of this target.
    UnsupportedError
        The target cannot compute this function.
    MissingDependencyError
        llvmlite, required by the target ``"native"``, CuPy, required by ``"cupy"``, or
        python-flint, required by ``"exact"``, is not installed.

    Notes
    -----
    Values equal those of the Function within 4 ULP for every primitive, nan and inf included.
    Matrix products and sums may add their n terms in a different order, which changes a sum by
    at most n·2⁻⁵² times the sum of its terms' magnitudes. The target ``"native"``
    calls glibc's vector functions, whose own error is up to 4 ULP: for batches, and at one point
    where 256 scalar operations or more repeat, or 20,000 hold independent calls of one function.
    If a function has no machine code, NumPy computes it and ``reason`` says so. Machine code is
    cached in ``~/.cache/difflab``, or in ``$DIFFLAB_CACHE`` if set; ``DIFFLAB_CACHE=off`` disables
    the cache.

    At one point ``"auto"`` begins with Python code, or with NumPy where terms repeat, and switches
    to machine code of the same bits, if there is such code, after the number of calls that pays for
    compiling it; it is compiled in a thread, and no call waits. The sign of a nan may differ. The
    first call of a function of scalars evaluates its graph; the code is generated for the second.

    The target ``"cupy"`` launches on CuPy's current stream and copies nothing between host and
    device: its inputs are CuPy arrays and scalars, its results CuPy arrays, at one point too.
    The error of CUDA's functions is up to 10 ULP for gamma, 5 for erfc and 2 for most others.
    ``"auto"`` selects this target for arrays on a GPU.

    The target ``"exact"`` raises the precision of FLINT's balls until both ends round to one
    float64; rational operations are exact. It evaluates the function as it is: a derivative
    has the conventions at kinks, and where a function is undefined the result is nan. A result
    that 5120 bits do not decide is an `UnsupportedError`.

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
            hint="compile a function made by dl.parse, dl.trace or dl.gradient",
        )
    check_target(target)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InputError(f"threads must be a positive integer, not {threads!r}")
    real = check_dtype("compile", dtype)
    require_flag(packed, "packed", "compile")
    vectors = repeated(f, target, real)
    kind = PackedCompiled if packed else Compiled

    def plan(instance: Compiled) -> None:
        kind.__init__(instance, f, target, threads, *_steps(f, vectors, target, packed), real)

    usual = target == "auto" and real == FLOAT and timeout is None
    if usual and vectors is f and 2 * len(f.graph) < MANY_OPERATIONS and computes_numbers(f.graph):
        compiled: Compiled = object.__new__(unplanned(kind))
        settings = {"function": f, "target": target, "threads": threads, "dtype": real}
        vars(compiled).update(settings, _plan=plan)
        return compiled
    compiled = object.__new__(kind)
    plan(compiled)
    if timeout is not None:
        compiled.limit(timeout)
    return compiled.specialised()


def _steps(
    f: Function, vectors: Function, target: str, packed: bool
) -> tuple[Function, Schedule | ScalarProgram, str]:
    """Return the function that is computed, its operations, and why they are on arrays."""
    try:
        return vectors, ScalarProgram.of(vectors), ""
    except UnsupportedError as error:
        schedule = Schedule.of(vectors)
        arrays = error.args[0] if vectors is f else _repetition(f, schedule)
    if target == "python" and sum_in_order in vectors.graph.primitives:
        # Scalar before it was rolled.
        return vectors, unrolled(schedule, MOST_SCALAR_OPERATIONS), arrays
    if target == "python":
        raise UnsupportedError(
            f"the target 'python' computes with scalars, and {arrays}: use target 'numpy'"
        )
    if packed and len(f.inputs) >= MANY_INPUTS:
        vectors = rolled(flattened(vectors), least=0)
        schedule = Schedule.of(vectors)
    return vectors, schedule, arrays


def check_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return the dtype in which to compute.

    Raises
    ------
    InputError
        It is neither float64 nor float32.

    Examples
    --------
    >>> check_dtype("compile", "float16")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: compile cannot compute in float16
    hint: dtype is np.float64 or np.float32
    """
    try:
        checked: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError):
        checked = np.dtype(object)
    if dtype is None or checked not in (FLOAT, SINGLE):
        shown = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", repr(dtype))
        raise InputError(
            f"{name} cannot compute in {shown}", hint="dtype is np.float64 or np.float32"
        )
    return checked


def check_target(target: str) -> None:
    """Raise `InputError` if the target is unknown.

    Examples
    --------
    >>> check_target("numpi")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: there is no target 'numpi'
    hint: one of auto, python, numpy, native, cupy, exact
    """
    if not isinstance(target, str) or target not in TARGETS:
        raise InputError(f"there is no target {target!r}", hint=f"one of {', '.join(TARGETS)}")


class Compiled(PointCalls):
    """A compiled function; made by `compile`.

    Attributes
    ----------
    function : Function
        The function that was compiled.
    target : str
        The requested target.
    threads : int or None
        The number of threads that share a large batch; all processors when None.

    Examples
    --------
    >>> import difflab as dl
    >>> fast = dl.compile(dl.parse("x*sin(y)"), target="numpy")
    >>> fast.reason
    'numpy: as requested'
    >>> print(fast.source)
    v2 = sin(v1)  # buffer 0
    v3 = multiply(v0, v2)  # result 0
    """

    def unchecked(self) -> Callable[[Sequence[Any]], Any]:
        """Return a call for float64 arrays of the inputs' shapes, and Python floats: a sequence."""
        faster = self._computes_by_machine_code and layouts() is not None
        if self._arrays is None or faster or self.packed or self.dtype != FLOAT:
            return lambda values: self(*values)
        return MethodType(self._arrays.unchecked(self.function.structure), self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs at a point or a batch of points, as the Function does.

        They are written to the arrays of the keyword ``out``, if it is given and not None, unless
        an input has this name.
        """
        return self.general(args, kwargs)

    def general(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the outputs for any arguments, after checking and converting them."""
        if kwargs and "out" in kwargs and "out" not in self.function.inputs:
            named = dict(kwargs)
            out = named.pop("out")
            batch = None if named or out is None else common_shape(args, self.dtype)
            if batch is not None and len(args) == self._numbers and self._filled(args, batch, out):
                return out
            results = self(*args, **named)
            return results if out is None else written(results, out)
        numbers = self._point(args, kwargs)
        if numbers is not None:
            results = self._at(numbers)
            if results is not None:
                return self.function.returned(results)
        plain = len(args) == self._numbers and not kwargs
        batch = common_shape(args, self.dtype) if plain else None
        if batch is not None and not self._choice.device:
            return self._results(args, batch)
        while args and args[-1] is None:
            args = args[:-1]
        inputs = self.function.arranged(args, kwargs)
        carrier = first_carrier(inputs)
        if isinstance(carrier, Node):
            return self.function(*inputs)
        if carrier is not None:
            whole = carrier.__difflab_function__
            results = whole(self.function, inputs, self._evaluation, self._layers)
            return self.function.returned(results)
        if self._on_device(inputs, self.function.inputs):
            results = self._cupy(inputs, self.function.inputs, self.function.batch(inputs))
            return self.function.returned(results)
        values = [real(value, self.dtype) for value in inputs]
        return self._results(values, self.function.batch(values))

    def _point(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[float] | None:
        """Return the arguments of a call at one point as floats; None for other arguments."""
        plain = len(args) == self._numbers and not kwargs
        return plain_numbers(args) if plain else None

    @cached_property
    def _numbers(self) -> int:
        """The number of arguments of a call with scalars; -1 if an input is an array."""
        return len(self.function.inputs) if not any(self.function.input_shapes) else -1

    @cached_property
    def _layers(self) -> dict[str, Any]:
        """The function as an operation on tensors."""
        return {}

    def _evaluation(self, function: Function) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Return the evaluation of a function, such as the vjp of this one, on arrays."""
        alone = replace(function, structure=None)
        call = compile(alone, self.target, self.threads, dtype=self.dtype)
        if len(function.outputs) == 1:
            return lambda values: [call(*values)]
        return lambda values: call(*values)

    def _on_device(self, values: Sequence[Any], names: Sequence[str]) -> bool:
        """Return whether the call is computed on a GPU."""
        if self._choice.device:
            return True
        cupy = sys.modules.get("cupy")
        if cupy is None or not any(isinstance(value, cupy.ndarray) for value in values):
            return False
        array_module(values, "a compiled function", names)
        if self.target != "auto":
            raise DeviceError(
                f"the target '{self.target}' computes on the host, but its arrays are CuPy arrays",
                hint="use target 'auto' or 'cupy', or copy them to the host: array.get()",
            )
        return True

    def _results(self, values: Sequence[Any], batch: Shape) -> Any:
        return self.function.returned(self._computed(values, batch, 0))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        exact = self._choice.exact
        timeout = None if exact is None else exact.timeout
        arguments = (self.function, self.target, self.threads, self.packed, self.dtype, timeout)
        return compile, arguments

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}: {self.reason}>"


class PackedCompiled(Compiled):
    """A compiled function of one array of all inputs."""

    packed = True

    def __call__(self, points: Any, /, out: Any = None) -> Any:
        """Return the outputs at packed points ``(n,)`` or ``(N, n)``.

        They are written to the arrays of `out`, if that is not None.

        Raises
        ------
        PointError
            The length of the last axis is not n.
        """
        return self.general(points, out)

    def general(self, points: Any, out: Any = None) -> Any:
        """Return the outputs at packed points of any dtype or sequence type."""
        if out is not None:
            plain = type(points) is np.ndarray and points.ndim == 2 and points.dtype == FLOAT
            if plain and points.shape[1] == self.function.n:
                parts = self._lowered.split(points)
                if self._filled(parts, points.shape[:1], out):
                    return out
            return written(self(points), out)
        if self._on_device([points], ["points"]):
            return self._packed_on_device(points)
        packed = real(points, self.dtype)
        if packed.ndim == 1 and len(packed) == self.function.n:
            results = self._at(packed)
            if results is not None:
                return self.function.returned(results)
        return self._results(self._lowered.split(packed), packed.shape[:-1])

    def _point(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[float] | None:
        """Return the arguments of a call at one point as floats; None for other arguments."""
        points: Any = args[0] if len(args) == 1 and not kwargs else None
        plain = type(points) is np.ndarray and points.dtype == FLOAT
        return points.tolist() if plain and points.shape == (self.function.n,) else None

    def _packed_on_device(self, points: Any) -> Any:
        """Return the outputs at packed points on a GPU."""
        packed = points if hasattr(points, "dtype") else host_numbers(points, "points", PointError)
        parts = self._lowered.split(packed)
        names = ["points"] * len(parts)
        return self.function.returned(self._cupy(parts, names, packed.shape[:-1]))


def _repetition(function: Function, schedule: Schedule) -> str:
    count = int((function.graph.opcode >= FIRST_ROW).sum())
    return f"{count:,} scalar operations are {len(schedule.steps)} vector operations"
