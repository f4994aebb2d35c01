"""Calls go over to machine code that reads their arguments, when they have paid for it."""

from __future__ import annotations

import ctypes
import math
import random
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

from difflab.errors import UnsupportedError
from difflab.execute import workers
from difflab.execute.dispatch import TargetDispatch
from difflab.execute.lower.ops import FLOAT
from difflab.execute.lower.scalar import LIBRARY, evaluated, expression_form
from difflab.execute.lower.schedule import ScalarProgram
from difflab.execute.targets.llvm import writer
from difflab.execute.targets.llvm.first_calls import FirstCalls
from difflab.execute.targets.llvm.functions import SPELLINGS
from difflab.execute.targets.llvm.libraries import address, llvm
from difflab.execute.targets.llvm.machine_call import BatchCode, MachineCall, PointCode, loaded
from difflab.execute.targets.llvm.python_objects import layouts
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.graph.ir import Shape
from difflab.graph.pytree import Structure

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.exported import ExportedCode


FEWEST_CALLS = 200
"""Calls after which machine code is loaded that reads arguments, if no other function has it."""
FEW_CALLS = 60
"""Calls after which it is used, if another function has it: that takes 0.3 ms."""
_LOADING = 8e-3
"""Seconds that calls have to save besides if llvmlite is not imported yet, once per process.

It takes 30 ms, partly beside the calls; what has been called so often is mostly called far more.
"""
_COMPILING = 10e-3, 30e-6
"""Seconds to compile code for one point, and for each of its operations."""
_SAVED = 0.8e-6, 25e-9
"""Seconds that machine code saves in each call of Python code, and for each operation."""


def worth_compiling(operations: int, ready: bool) -> int:
    """Return the number of calls of Python code that machine code for one point pays off after.

    Calls are counted, not timed.

    Parameters
    ----------
    operations : int
        The operations of the function.
    ready : bool
        Whether llvmlite is imported.

    Examples
    --------
    >>> worth_compiling(10, True), worth_compiling(10, False), worth_compiling(1000, True)
    (9810, 17429, 1550)
    """
    seconds = _COMPILING[0] + _COMPILING[1] * operations + _LOADING * (not ready)
    return round(seconds / (_SAVED[0] + _SAVED[1] * operations))


# Machine code with the bits of the target `python`, from which it takes over.

TRIALS = 300
"""Arguments at which a function of `math` is compared with that of the C library."""


def same_bits(program: ScalarProgram, input_shapes: Sequence[Shape]) -> NativeTarget | None:
    """Return machine code whose results have the bits of `PythonTarget`'s; None if there is none.

    It consists of the operations of the Python expressions in their order, each rounded as IEEE
    754 requires, and of the C library's functions that `math` calls.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> f, g = dl.parse("x*sin(x)"), dl.parse("gamma(x)")
    >>> [same_bits(ScalarProgram.of(each), [()]) is None for each in (f, g)]
    [False, True]
    """
    try:
        native = NativeTarget(program, input_shapes, 1, forms=expression_form)
    except UnsupportedError:
        return None
    names = {SPELLINGS[op.name].function for op in native.code.ops} - {""}
    if native.operations >= writer.LEAST or not all(map(_is_shared, names)):
        return None
    return native


@cache
def _is_shared(name: str) -> bool:
    """Return whether a function of `math` is that of the C library, as far as some values show."""
    if name not in LIBRARY or not address(name):
        return False
    own, arity = getattr(math, name), LIBRARY[name].nin
    call = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)(address(name))
    return all(_value(own, point) == _value(call, point) for point in _points(arity))


@cache
def _points(arity: int) -> list[list[float]]:
    """Return arguments of many magnitudes, the same ones each time."""
    draw = random.Random(0).uniform
    return [
        [draw(-1.0, 1.0) * 2.0 ** draw(-12.0, 9.0) for _ in range(arity)] for _ in range(TRIALS)
    ]


def _value(call: Any, point: Sequence[float]) -> bytes:
    """Return the bits of a function's value; nothing where it is not finite."""
    try:
        value = call(*point)
    except (ArithmeticError, ValueError):  # math's, where the C library gives nan or inf
        return b""
    return struct.pack("d", value) if math.isfinite(value) else b""


class PointCalls(TargetDispatch):
    """The call of a compiled function at one point; a base of `Compiled`."""

    packed = False
    _calls = _batches = 0

    def specialised(self) -> Self:
        """Return this with the fastest call that is ready; machine code follows when it pays."""
        self._generate()
        if self.dtype != FLOAT or layouts() is None:
            return self
        if self._computes_by_machine_code:
            count = FEW_CALLS if loaded() else FEWEST_CALLS
            self._count(count, PointCalls._own_code)
        elif self._entry_source is None and (count := self._pays_off):
            self._count(count, PointCalls._same_code)
        return self

    def _count(self, count: int, code: Callable[[Any], PointCode | None]) -> None:
        """Let the instance use machine code after some calls; at once if that are none."""
        if count:
            self._calls_to_count = count
            kind: Any = type(self)  # whose hash is the interpreter's: mypy takes that of instances
            self.__class__ = _counting(kind, code)
        else:
            self._install(code(self))

    def go_over(self) -> int | None:
        """Let machine code take the calls at one point now, if it would after more calls.

        Returns
        -------
        int or None
            The number of calls after which it would; None if it never does.

        Examples
        --------
        >>> import difflab as dl
        >>> dl.compile(dl.parse("x*sin(y)"), target="python").go_over() is None
        True
        """
        if self.dtype != FLOAT or layouts() is None:
            return None
        own = self._computes_by_machine_code
        calls = FEWEST_CALLS if own else self._pays_off
        if calls and not self._has_point_code:
            self._install(self._own_code() if own else self._same_code())
        return calls if self._has_point_code else None

    @property
    def _pays_off(self) -> int:
        """The number of calls of Python code after which it is replaced; 0 if it is not."""
        if self._python is None or self.target != "auto" or self.dtype != FLOAT:
            return 0
        if self._native is None or layouts() is None:  # no llvmlite, or another interpreter
            return 0
        return worth_compiling(len(self._python.program.steps), "llvmlite.binding" in sys.modules)

    @cached_property
    def _computes_by_machine_code(self) -> bool:
        if self._choice.point is not None:
            return self._choice.point.callable_by_code
        return self._arrays is None and self._native is not None and self._chosen(1) == "native"

    def _own_code(self) -> PointCode | None:
        """Return the machine code that computes one point."""
        source = self._choice.point or self._native
        return None if source is None else source.point_code()

    def _same_code(self) -> PointCode | None:
        """Return machine code with the bits of the Python code that computes one point."""
        python = self._python
        native = None if python is None else same_bits(python.program, python.input_shapes)
        return None if native is None else native.point_code()

    @cached_property
    def exported(self) -> ExportedCode:
        """The code of one point for other compiled code; the source of `address` and `ctypes`.

        Raises
        ------
        UnsupportedError
            There is no such machine code for the function, the target or the dtype.
        MissingDependencyError
            llvmlite is missing or broken.
        """
        if self.target not in ("auto", "native") or self.dtype != FLOAT:
            raise UnsupportedError(
                f"the target '{self.target}' in {self.dtype} has no machine code with an address:"
                " use target 'native' or 'auto', in float64"
            )
        llvm()
        from difflab.execute.targets.llvm.exported import ExportedCode

        python = self._python
        same = None if python is None else same_bits(python.program, python.input_shapes)
        point = self._choice.point
        if point is not None and point.callable_by_code:
            return ExportedCode.of_arrays(point.native if isinstance(point, FirstCalls) else point)
        native = same or self._native
        if native is not None:
            return ExportedCode.of_scalars(native)
        raise UnsupportedError(
            f"the function has no machine code with an address: {self._choice.reason}"
        )

    @property
    def address(self) -> int:
        """The address of machine code, ``void point(const double *x, double *y)``.

        It reads the inputs, flattened in order, from `x`, and writes the outputs to `y`; any
        number of threads can call it at once. It is never unloaded. The bits are those of calls
        at one point, unless NumPy computes those.

        Raises
        ------
        UnsupportedError
            There is no such machine code for the function, the target or the dtype.
        MissingDependencyError
            llvmlite is missing or broken.

        Examples
        --------
        >>> import difflab as dl
        >>> import numpy as np
        >>> fast = dl.compile(dl.gradient(dl.parse("x*sin(y)")))
        >>> x, y = np.array([2.0, 0.0]), np.empty(2)
        >>> fast.address == fast.address > 0
        True
        >>> fast.ctypes(x.ctypes, y.ctypes)
        >>> y
        array([0., 2.])
        """
        return self.exported.address

    @cached_property
    def ctypes(self) -> Any:
        """The machine code at `address` as a function of `ctypes`, of two addresses.

        It releases Python's lock while it runs, and Numba can call it.
        """
        return self.exported.function("point", None, ctypes.c_void_p, ctypes.c_void_p)

    def header(self, name: str = "function") -> str:
        """Return a C header: the type of the function at `address`, the layout of its arrays.

        Parameters
        ----------
        name : str
            The prefix of the names that it defines.

        Raises
        ------
        InputError
            The name is no name of C.

        Examples
        --------
        >>> import difflab as dl
        >>> print(dl.compile(dl.value_and_gradient(dl.parse("x*sin(y)"))).header("wave"))
        /* One point: reads the inputs from x, writes the outputs to y.
        <BLANKLINE>
           x[0]: x
           x[1]: y
           y[0]: f
           y[1:3]: gradient[2]
        */
        #ifndef WAVE_H
        #define WAVE_H
        #define WAVE_INPUTS 2
        #define WAVE_OUTPUTS 3
        typedef void (*wave_function)(const double *x, double *y);
        #endif
        <BLANKLINE>
        """
        from difflab.execute.targets.llvm.exported import header

        f = self.function
        return header(name, f.inputs, f.input_shapes, f.output_names, f.output_shapes)

    def _install(self, point: PointCode | None, batch: BatchCode | None = None) -> None:
        """Let machine code call code of one point, or of batches, and pass other calls on."""
        if point is None and batch is None:
            return
        structure = self.function.structure
        plain = structure is None or _is_tuple(structure)
        call: MachineCall = vars(self).get("_machine_call") or MachineCall(
            len(self.function.outputs),
            packed=self.packed,
            group=None if plain else self.function.returned,
            memory=self.packed or "out" not in self.function.inputs,
        )
        if point is not None:
            call.run_points(point)
        if batch is not None:
            call.run_batches(batch)
        call.install(self, type(self).__call__)

    def _count_batch(self) -> None:
        """Let machine code read the arrays of batches after some of those that it computes."""
        self._batches = batches = self._batches + 1
        if batches == FEWEST_CALLS or (batches == FEW_CALLS and loaded()):
            workers.begin(lambda: self._install(None, self._batch_code()))

    def _batch_code(self) -> BatchCode | None:
        """Return the machine code of batches, if calls by machine code can run it."""
        if self._native is None or layouts() is None:
            return None
        return self._native.batch_code(self._choice.native_from, packed=self.packed)

    def _generate(self) -> None:
        """Generate a ``__call__`` if the inputs can be its parameters."""
        if self._arrays is not None and not self.packed:
            _, call = self._arrays.entry(self.function.structure)
            self.__class__ = type(type(self).__name__, (type(self),), {"__call__": call})
        if self._python is None:
            return
        calls = self._pays_off
        then = PointCalls._paid if calls else None
        plain = self.function.structure is None
        left = calls - self._calls
        entry = self._python.entry(packed=self.packed, calls=left, then=then) if plain else None
        if entry is not None:
            self._entry_source, call = entry
            self.__class__ = type(type(self).__name__, (type(self),), {"__call__": call})

    def _paid(self) -> None:
        """Go over to machine code, and count no more calls until it is there."""
        own = object()
        if self._python is None or vars(self).setdefault("_going_over", own) is not own:
            return  # another thread was first
        entry = self._python.entry(packed=self.packed)
        if entry is not None:
            type(self).__call__ = entry[1]  # type: ignore[method-assign]
        workers.begin(lambda: self._install(self._same_code()))


@lru_cache(maxsize=8)
def unplanned(cls: Any) -> type[Any]:
    """Return a subclass whose instances are planned when more than one call needs it.

    The first call evaluates the graph, since the plan costs as much as two such calls. What
    initialises an instance is its attribute ``_plan``.
    """

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        numbers = None if self._calls else self._point(args, kwargs)
        results = None if numbers is None else evaluated(self.function, numbers)
        if results is not None:
            self._calls = 1
            return self.function.returned(results)
        planned(self)
        return self(*args, **kwargs)

    def planned(self: Any) -> None:
        with workers.PLANNING:
            if self.__class__ is subclass:  # no other thread was first
                self._plan(self)
                self.__class__ = cls
                try:
                    self.specialised()
                except BaseException:  # Ctrl-C: the next call plans again
                    self.__class__ = subclass
                    raise

    def attribute(self: Any, name: str) -> Any:
        planned(self)
        return object.__getattribute__(self, name)

    members = {"__call__": call, "__getattr__": attribute, "__module__": cls.__module__}
    subclass: type[Any] = type(cls.__name__, (cls,), members)
    return subclass


@lru_cache(maxsize=8)
def _counting(cls: Any, code: Callable[[Any], PointCode | None]) -> type[Any]:
    """Return a subclass whose instances go over to machine code after some calls.

    The code is made in the background. The call's own is compiled once per machine, in a tenth of
    a second, and loaded once per process, in milliseconds, which few calls need not wait for.
    """

    def call(self: PointCalls, *args: Any, **kwargs: Any) -> Any:
        self._calls += 1
        if self._calls >= self._calls_to_count and type(self) is subclass:
            self.__class__ = cls
            workers.begin(lambda: self._install(code(self)))
        return cls.__call__(self, *args, **kwargs)

    subclass = type(cls.__name__, (cls,), {"__call__": call, "__module__": cls.__module__})
    return subclass


def _is_tuple(structure: Structure) -> bool:
    """Return whether a structure is a tuple of two or more outputs, as if there were none."""
    first, *others = structure.tokens
    return first[0] is tuple and len(others) > 1 and structure.leaves == len(others)
