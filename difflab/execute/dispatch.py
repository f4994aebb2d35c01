"""The targets of one function: planned when they are needed, chosen by the number of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import InputError, UnsupportedError
from difflab.execute.call_arguments import plain_number, real
from difflab.execute.choice import Choice, choose
from difflab.execute.lower.arrays.source import PointTarget
from difflab.execute.lower.ops import FLOAT
from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.targets.llvm.libraries import works
from difflab.execute.targets.llvm.machine_call import MachineCall
from difflab.execute.targets.llvm.python_objects import VectorcallBase
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.execute.targets.numpy.target import ArrayTarget, NumpyTarget
from difflab.execute.targets.python.target import PythonTarget
from difflab.execute.workers import available
from difflab.graph.checks import require_timeout
from difflab.graph.function import Function
from difflab.graph.ir import Shape, packed_slices

if TYPE_CHECKING:
    from difflab.execute.targets.cuda import CupyTarget


class TargetDispatch(VectorcallBase):
    """Selection of the target that computes a function; a base of `Compiled`.

    Attributes
    ----------
    function : Function
        The function that was compiled.
    target : str
        The requested target.
    threads : int or None
        The number of threads that share a large batch; all processors when None.
    dtype : dtype
        The dtype in which it computes, float64 or float32.
    """

    def __init__(
        self,
        function: Function,
        target: str,
        threads: int | None,
        lowered: Function,
        steps: Schedule | ScalarProgram,
        arrays: str,
        dtype: np.dtype[Any] = FLOAT,
    ) -> None:
        self.dtype = dtype
        self.function = function
        self.target = target
        self.threads = threads
        self._lowered = lowered  # of the same values, perhaps with vectors, or one packed input
        self._steps = steps
        self._python = None
        self._entry_source: str | None = None
        self._why_arrays = arrays
        self._choose()
        first = self._chosen(1)
        self._arrays: PointTarget | None = self._choice.point
        if self._arrays is None and first == "numpy" and dtype == FLOAT:
            self._arrays = ArrayTarget(steps) if isinstance(steps, Schedule) else None
        if first == "cupy":
            self._cupy  # noqa: B018 - plans now
        elif first == "python" and isinstance(steps, ScalarProgram):
            self._python = PythonTarget(steps, lowered.input_shapes)
        elif first == "native" and self._native is not None and self._arrays is None:
            self._native.prepare()
        elif first == "numpy" and isinstance(steps, ScalarProgram) and self._arrays is None:
            self._numpy  # noqa: B018 - plans now instead of at the first call

    def _choose(self) -> None:
        workers = self.threads or available()
        self._choice: Choice = choose(
            self.target, self._lowered, self._steps, self._why_arrays, workers, self.dtype
        )
        self._native = self._choice.native

    def limit(self, timeout: float) -> None:
        """Limit the seconds for each point.

        Raises
        ------
        InputError
            It is no time limit, or the target is not ``"exact"``.
        """
        if self._choice.exact is None:
            raise InputError(
                f"timeout is of the target 'exact'; a call of '{self.target}' cannot be stopped"
            )
        require_timeout(timeout)
        self._choice.exact.timeout = float(timeout)

    def _chosen(self, points: int) -> str:
        """Return the target for n points; a different one if llvmlite proves to be broken.

        llvmlite is imported when machine code is first needed, and not tested before.
        """
        chosen = self._choice.of(points)
        if chosen == "native" and not works():
            self._choose()
            chosen = self._choice.of(points)
        return chosen

    @property
    def reason(self) -> str:
        """The target of each number of points, and why it was chosen."""
        device = "_cupy" in vars(self) and not self._choice.device
        over = self._python is not None and self._has_point_code
        reasons = [self._choice.reason]
        reasons += ["machine code of the same bits took over one point"] * over
        reasons += ["cupy for arrays on a GPU"] * device
        return "; ".join(reasons)

    @property
    def _has_point_code(self) -> bool:
        """Whether machine code reads the arguments of one point and runs its code."""
        call: MachineCall | None = vars(self).get("_machine_call")
        return call is not None and call.point is not None

    @cached_property
    def _cupy(self) -> CupyTarget:
        from difflab.execute.targets.cuda import CupyTarget

        return CupyTarget(self._lowered, self._steps)

    @cached_property
    def _numpy(self) -> NumpyTarget:
        threads = self.threads or available()
        return NumpyTarget(self._lowered, self._steps, threads, self.dtype)

    @property
    def source(self) -> str:
        """The code of a call: Python source or NumPy's plan at a point, LLVM IR or CUDA source."""
        if self._choice.device:
            return self._cupy.source
        if self._choice.exact is not None:
            return str(self.function)
        if self._arrays is not None:
            return self._arrays.source
        if self._python is not None:
            return self._entry_source or self._python.source
        if self._native is not None:
            return self._native.source
        return self._numpy.source

    def memory_plan(self, points: int | None = None) -> MemoryPlan:
        """Return the memory that a call needs, at one point or for a batch of `points`.

        Parameters
        ----------
        points : int, optional
            The size of the batch; one point without a batch axis when None.

        Returns
        -------
        MemoryPlan
            Its ``peak_bytes`` are the most that a call holds, inputs excluded. Temporary memory
            inside NumPy's and LAPACK's functions is not included.

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
        native = self._native or self._choice.batch
        if native is not None and chosen == "native" and points is not None:
            return native.memory_plan(points)
        return MemoryPlan(
            len(self.function.outputs), (), 1, self.dtype.itemsize * count * self.function.m
        )

    def _count_batch(self) -> None:
        """Count a batch that machine code computes."""

    def _at(self, point: Any) -> list[Any] | None:
        """Return the outputs at a point of scalars; None if the target computes with arrays."""
        if self._python is not None:
            numbers = point if isinstance(point, list) else point.tolist()
            return self._python.shaped(self._python.point(numbers))
        if self._choice.exact is not None:
            return self._choice.exact.point([float(number) for number in point])
        if self._arrays is None and self._native is not None and self._choice.of(1) == "native":
            return self._native.point(point)
        return None

    def _computed(self, values: Sequence[Any], batch: Shape, whole: int) -> Sequence[Any]:
        """Return the outputs, computed as in a batch of `whole` points if that is more."""
        if self.dtype != FLOAT:
            values = [real(value, self.dtype) for value in values]
        chosen = self._chosen(max(math.prod(batch), whole))
        if self._choice.exact is not None:
            return self._choice.exact(values, batch)
        if chosen == "python" and self._python is not None:
            return self._python(values, batch)
        if self._arrays is not None and batch == ():
            return self._arrays(values)
        if chosen == "native" and self._native is not None:
            self._count_batch()
            return self._native(values, batch, whole)
        if chosen == "native" and self._choice.batch is not None:
            return self._choice.batch(values, batch)
        results = self._numpy(values, batch, whole)
        return [plain_number(result) for result in results] if batch == () else results

    def _filled(self, values: Sequence[Any], batch: Shape, out: Any) -> bool:
        """Compute a batch in given arrays, if machine code can write to them; whether it has."""
        if self.dtype != FLOAT or len(batch) != 1 or self.function.structure is not None:
            return False
        arrays = out if type(out) is tuple else (out,)
        outputs = len(self.function.outputs)
        if len(arrays) != outputs or (type(out) is tuple) is (outputs == 1):
            return False
        if self._choice.device or self._choice.exact is not None:
            return False
        if self._chosen(batch[0]) != "native" or self._native is None:
            return False
        return self._native.filled(values, batch, arrays)

    def rows(self, points: NDArray[np.float64], whole: int, out: NDArray[np.float64]) -> None:
        """Write the outputs at some of the points of a batch of `whole` points to rows.

        Parameters
        ----------
        points : (k, n) array
            Packed points. All parts but the last consist of whole blocks (`block`); then the
            results have the bits of one call on the batch.
        whole : int
            The number of points of the batch.
        out : (k, m) array
            Memory for the flattened outputs, one row for each point; True is 1.0.

        Raises
        ------
        UnsupportedError
            The target computes on a GPU.

        Examples
        --------
        >>> import difflab as dl
        >>> fast, out = dl.compile(dl.parse("x*sin(y)")), np.empty((1, 1))
        >>> fast.rows(np.array([[2.0, 0.0]]), 1000, out)
        >>> out
        array([[0.]])
        """
        if self._choice.device:
            raise UnsupportedError("the target 'cupy' computes arrays on a GPU, and not in parts")
        count = len(points)
        if (native := self._native_rows(max(count, whole))) is not None:
            native.rows(points, out)
            return
        results = self._computed(self._lowered.split(points), (count,), whole)
        parts = packed_slices(self.function.output_shapes)
        for result, part in zip(results, parts, strict=True):
            out[:, part] = np.asarray(result).reshape(count, part.stop - part.start)

    def _native_rows(self, points: int) -> NativeTarget | None:
        """Return the machine code that computes packed rows of a batch of n points."""
        if self._chosen(points) != "native" or self.dtype != FLOAT:
            return None
        native = self._native
        return None if native is None or native.few(points) else native

    def block(self, points: int) -> int:
        """Return how many consecutive points of a batch of n points are computed together."""
        return self._numpy.block_size(points) if self._chosen(points) == "numpy" else 1
