"""Interpreters: operations and constants on the values of other libraries and on graphs.

The libraries are imported when their interpreter is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import array_module, home_of, library_name
from difflab.core.primitive import Primitive
from difflab.errors import DifflabError, UnsupportedError
from difflab.graph.evaluate import ArrayInterpreter, Interpreter
from difflab.graph.expansion import expansion_value
from difflab.graph.ir import Number
from difflab.primitives import (
    argmax,
    argsort,
    cholesky,
    cofactor,
    det,
    eigh,
    expm,
    expm_frechet,
    inv,
    is_maximum,
    logdet,
    pinv,
    qr,
    random_keys,
    random_normal,
    random_uniform,
    slogdet,
    solve,
    svd,
)

HUGE_EXPONENT = 100_000
"""Beyond 2^this, mpmath's functions would compute digits that are not needed."""

ELEMENT_LIMIT = 10_000
"""The most elements of an array that SymPy processes one by one."""

MATRIX_LIMIT = 36
"""The most elements of a symbolic matrix that SymPy inverts; each needs a determinant."""

MATRIX_ROWS = frozenset({cholesky, cofactor, det, inv, logdet, solve})
NUMBERS_ONLY = frozenset(
    {
        *(argmax, argsort, is_maximum, random_keys, random_normal, random_uniform),
        *(eigh, expm, expm_frechet, pinv, qr, slogdet, svd),
    }
)


class CarrierInterpreter:
    """Values are carriers, such as eager tensors, which record each operation.

    Parameters
    ----------
    home : module, optional
        The array module of the arrays that the carriers hold, if it is not NumPy: results
        of constants alone are computed there.
    """

    def __init__(self, home: ModuleType | None = None) -> None:
        self.home = home

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the operation that the carriers record."""
        if self.home is None:
            return primitive
        home = self.home

        def recorded(*args: Any, **params: Any) -> Any:
            if any(hasattr(arg, "__difflab_apply__") for arg in args):
                return primitive(*args, **params)
            return primitive.computer(home)(*args, **params)

        return recorded

    def constant(self, value: Number, name: str | None) -> float:
        """Return the number."""
        return float(value)


class LibraryInterpreter(ArrayInterpreter):
    """Values are arrays of another library, such as PyTorch and JAX.

    A failure in such a library becomes an error that names the operation.
    """

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel, whose failures are reported as difflab's."""
        name, title = primitive.name, library_name(self.xp)
        try:
            compute = super().operation(primitive)
        except AttributeError:
            raise UnsupportedError(f"{title} has no function for '{name}'") from None

        def computed(*args: Any, **params: Any) -> Any:
            try:
                return compute(*args, **params)
            except DifflabError:
                raise
            except Exception as error:
                cause = str(error).partition("\n")[0]
                raise UnsupportedError(
                    f"{title} cannot compute '{name}' for these values: {cause}"
                ) from error

        return computed

    def constant(self, value: Number, name: str | None) -> float:
        """Return a Python float, which does not change the dtype of arrays."""
        return float(value)


class ElementInterpreter:
    """Interpreter whose values are scalars of a library, or NumPy object arrays of them.

    A subclass defines elementwise rows on scalars by ``_scalar(primitive)``, and, where NumPy's
    data movement is not enough, rows on whole arrays by ``_whole``.
    """

    def __init__(self) -> None:
        self.operations: dict[Primitive, Callable[..., Any]] = {}

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the library's function, applied element by element to arrays."""
        if primitive not in self.operations:
            self.operations[primitive] = self._make(primitive)
        return self.operations[primitive]

    def _make(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.shape is not None:
            return self._whole(primitive)
        scalar = self._scalar(primitive)
        elementwise = np.frompyfunc(scalar, primitive.arity or 1, 1)

        def operation(*args: Any) -> Any:
            for arg in args:
                if isinstance(arg, np.ndarray):
                    return elementwise(*args)
            return scalar(*args)

        return operation

    def _whole(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the function of whole arrays: NumPy's kernel works on object arrays."""
        return primitive.computer(np)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        raise NotImplementedError


class MpmathInterpreter(ElementInterpreter):
    """Interpreter whose values are mpmath's reals at its working precision; undefined is nan.

    Parameters
    ----------
    context : MPContext, optional
        The context of the values; by default that of the module mpmath.

    Examples
    --------
    >>> from difflab.primitives import log
    >>> MpmathInterpreter().operation(log)(-1)
    mpf('nan')
    """

    def __init__(self, context: Any = None) -> None:
        super().__init__()
        import mpmath

        self.mp = mpmath.mp if context is None else context

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the number exactly: ``pi`` and ``e`` at the working precision."""
        return +getattr(self.mp, name) if name else self.mp.mpf(value)

    def _whole(self, primitive: Primitive) -> Callable[..., Any]:
        form, mp = primitive.mpmath, self.mp
        if not callable(form):
            return super()._whole(primitive)
        real = np.frompyfunc(lambda value: mp.nan if isinstance(value, mp.mpc) else value, 1, 1)
        return lambda *args, **params: real(form(mp, *args, **params))

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        mp = self.mp
        form = primitive.mpmath
        if form is None:
            raw = _expanded(primitive, self)
        elif isinstance(form, str):
            raw = getattr(mp, form)
        else:
            raw = partial(form, mp)

        def guarded(*args: Any) -> Any:
            for arg in args:
                finite = isinstance(arg, mp.mpf) and arg and mp.isfinite(arg)
                if finite and not mp.mag(arg) < HUGE_EXPONENT:
                    return _overflow(mp, primitive.name, args)
            try:
                value = raw(*args)
            except ZeroDivisionError:
                return _pole(mp, primitive.name, args)
            except (ValueError, OverflowError):
                return mp.nan
            return mp.nan if isinstance(value, mp.mpc) else value

        return guarded


class SympyInterpreter(ElementInterpreter):
    """Values are SymPy expressions.

    Examples
    --------
    >>> import sympy
    >>> from difflab.primitives import sin
    >>> SympyInterpreter().operation(sin)(sympy.Symbol("x"))
    sin(x)
    """

    title = "SymPy"

    def __init__(self) -> None:
        super().__init__()
        import sympy

        self.sympy = sympy

    def constant(self, value: Number, name: str | None) -> Any:
        """Return an exact integer, ``pi``, ``E``, or the float64."""
        if name:
            return {"pi": self.sympy.pi, "e": self.sympy.E}[name]
        return self.sympy.Integer(value) if isinstance(value, int) else self.sympy.Float(value)

    def _whole(self, primitive: Primitive) -> Callable[..., Any]:
        form = primitive.sympy
        if callable(form):
            return _limited(primitive, partial(form, self.sympy), self.title)
        if primitive in NUMBERS_ONLY:
            raise UnsupportedError(f"{self.title} has no function for '{primitive.name}'")
        return _limited(primitive, super()._whole(primitive), self.title)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        form = primitive.sympy
        if form is None and primitive.expansion is not None:
            return _expanded(primitive, self)
        if form is None:
            raise UnsupportedError(f"{self.title} has no function for '{primitive.name}'")
        if isinstance(form, str):
            function: Callable[..., Any] = getattr(self.sympy, form)
            return function
        return partial(form, self.sympy)


def _limited(primitive: Primitive, compute: Callable[..., Any], title: str) -> Callable[..., Any]:
    """Return `compute`, which rejects arrays too large for computation element by element."""
    limit = MATRIX_LIMIT if primitive in MATRIX_ROWS else ELEMENT_LIMIT

    def computed(*args: Any, **params: Any) -> Any:
        largest = max(map(np.size, args), default=0)
        if largest > limit:
            raise UnsupportedError(
                f"{title} computes '{primitive.name}' element by element, up to {limit:,} elements;"
                f" this array has {largest:,}"
            )
        return compute(*args, **params)

    return computed


def _expanded(primitive: Primitive, interpreter: Interpreter) -> Callable[..., Any]:
    """Return a primitive's expansion as a function on the interpreter's values."""
    return lambda *args: expansion_value(primitive, args, interpreter)


def _overflow(mp: Any, name: str, args: tuple[Any, ...]) -> Any:
    """Return the result of an operation on mpmath values with huge exponents."""
    if name in _CHEAP:
        return _CHEAP[name](mp, *args)
    if name == "exp":
        return mp.inf if args[0] > 0 else mp.zero
    if name == "power" and args[0] > 1:
        return mp.inf if args[1] > 0 else mp.zero
    return mp.nan


_CHEAP: dict[str, Callable[..., Any]] = {
    "add": lambda mp, a, b: a + b,
    "subtract": lambda mp, a, b: a - b,
    "multiply": lambda mp, a, b: a * b,
    "divide": lambda mp, a, b: a / b if b else _pole(mp, "divide", (a, b)),
    "negative": lambda mp, a: -a,
    "absolute": lambda mp, a: abs(a),
    "where": lambda mp, c, a, b: a if c else b,
}


def _pole(mp: Any, name: str, args: tuple[Any, ...]) -> Any:
    """Return the IEEE value of a division by zero."""
    if name == "divide" and args[0] and not mp.isnan(args[0]):
        return mp.inf if args[0] > 0 else -mp.inf
    if name == "power" and not args[0]:
        return mp.inf
    return mp.nan


def _home(carriers: Sequence[Any]) -> ModuleType | None:
    """Return the array module of the arrays that carriers hold; None if it is NumPy."""
    return next((home for home in map(home_of, carriers) if home is not np), None)


def interpreter_for(values: Sequence[Any], names: Sequence[str] = ()) -> Interpreter:
    """Choose the interpreter from the values: carriers, mpmath, SymPy, or an array module.

    Examples
    --------
    >>> type(interpreter_for([1.0, 2.0])).__name__
    'ArrayInterpreter'
    """
    for value in values:
        if hasattr(value, "__difflab_apply__"):
            return CarrierInterpreter(_home(values))
        module = type(value).__module__.partition(".")[0]
        if module == "mpmath":
            return MpmathInterpreter(value.context)
        if module == "sympy":
            return SympyInterpreter()
    xp = array_module(values, "the function", names)
    return (
        LibraryInterpreter(xp) if library_name(xp) in ("PyTorch", "JAX") else ArrayInterpreter(xp)
    )
