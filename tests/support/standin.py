"""A strict array module: its arrays lie on a pretended device, and nothing converts by itself.

It offers what CuPy does, and refuses what CuPy refuses: arrays of NumPy among the operands, and
`numpy` reading one of its own. Values go in by `asarray` and come out by `get`.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

__all__ = ["ndarray"]

_NAMES = (
    "abs absolute add arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax",
    "astype cumprod take_along_axis",
    "broadcast_to cbrt ceil clip concatenate cos cosh cumsum diagonal divide equal exp exp2 expm1",
    "floor greater greater_equal heaviside hypot iscomplexobj isfinite less less_equal log log10",
    "log1p log2 logaddexp logical_and logical_not logical_or matmul max maximum min minimum mod",
    "moveaxis multiply negative not_equal ones power prod real remainder result_type round rint",
    "sign sin sinh sqrt stack subtract sum swapaxes take tan tanh transpose trunc where zeros full",
    "isinf isnan any all zeros_like ones_like ascontiguousarray",
    "left_shift right_shift bitwise_xor",
)
FUNCTIONS = frozenset(" ".join(_NAMES).split())
"""What is offered by the name that NumPy has for it."""


def _inside(value: Any) -> Any:
    """Return an operand as NumPy's; one of the host's that is no number is refused."""
    if isinstance(value, ndarray):
        return value._held
    if isinstance(value, np.ndarray):
        raise TypeError("implicit conversion of a NumPy array")
    if isinstance(value, list | tuple):
        return type(value)(_inside(part) for part in value)
    if isinstance(value, slice):
        return slice(*(_inside(part) for part in (value.start, value.stop, value.step)))
    return value


def _outside(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return ndarray(np.asarray(value))
    return tuple(map(_outside, value)) if isinstance(value, tuple) else value


def _wrapped(function: Any, plain: bool = False) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):  # CuPy warns of nothing
            result = function(*map(_inside, args), **{k: _inside(v) for k, v in kwargs.items()})
        return result if plain else _outside(result)

    return call


_KERNELS = {
    f"__{operator}__": f"cupy_{kernel}"
    for operator, kernel in (
        ("add", "add"),
        ("sub", "subtract"),
        ("mul", "multiply"),
        ("truediv", "true_divide"),
        ("pow", "power"),
        ("mod", "remainder"),
        ("lt", "less"),
        ("le", "less_equal"),
        ("gt", "greater"),
        ("ge", "greater_equal"),
        ("eq", "equal"),
        ("ne", "not_equal"),
        ("and", "bitwise_and"),
        ("or", "bitwise_or"),
        ("xor", "bitwise_xor"),
        ("lshift", "left_shift"),
        ("rshift", "right_shift"),
        ("matmul", "matmul"),
    )
}
"""What CuPy calls the elementwise functions that its operators run."""


def _operator(name: str) -> Any:
    def method(self: ndarray, *others: Any) -> Any:
        for other in others:  # CuPy asks its operands so, and gives the kernel
            take = getattr(other, "__cupy_override_elementwise_kernel__", None)
            if take is not None:
                return take(SimpleNamespace(name=_KERNELS[name]), self, other)
        with np.errstate(all="ignore"):
            return _outside(getattr(self._held, name)(*map(_inside, others)))

    return method


class Device:
    """The pretended device, which is current while its context is open."""

    current = 0

    def __str__(self) -> str:
        return "stand-in device 0"

    def __enter__(self) -> Device:
        Device.current += 1
        return self

    def __exit__(self, *_: object) -> None:
        Device.current -= 1


class Memory:
    """Where an array lies on the device."""

    copies = 0

    def __init__(self, held: Any) -> None:
        self.held = held

    def copy_from_device_async(self, source: Memory, size: int) -> None:
        """Copy so many bytes from elsewhere on the device."""
        Memory.copies += 1
        self.held.view(np.uint8)[:size] = source.held.view(np.uint8)[:size]


class ndarray:  # noqa: N801  # the name that array modules give it
    """An array on the device."""

    __array_priority__ = 100.0
    __array_ufunc__ = None
    device = Device()

    def __init__(self, held: Any) -> None:
        self._held = held

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array")

    def __array_function__(self, *args: Any) -> Any:
        raise TypeError("a function of NumPy's on an array of the device")

    def __array_namespace__(self) -> Any:
        return sys.modules[__name__]

    def get(self) -> Any:
        return self._held.copy()

    shape = property(lambda self: self._held.shape)
    ndim = property(lambda self: self._held.ndim)
    size = property(lambda self: self._held.size)
    dtype = property(lambda self: self._held.dtype)
    nbytes = property(lambda self: self._held.nbytes)
    data = property(lambda self: Memory(self._held))
    strides = property(lambda self: self._held.strides)
    T = property(lambda self: ndarray(self._held.T))
    real = property(lambda self: ndarray(self._held.real))
    imag = property(lambda self: ndarray(self._held.imag))
    base = property(lambda self: None if self._held.base is None else ndarray(self._held.base))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._held[_inside(key)] = _inside(value)

    def item(self) -> Any:
        return self._held.item()

    def __bool__(self) -> bool:
        return bool(self._held)

    def __float__(self) -> float:
        return float(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Any:
        return (ndarray(np.asarray(part)) for part in self._held)


_OPERATORS = (
    "add radd sub rsub mul rmul truediv rtruediv pow rpow mod rmod neg abs lt le gt ge eq ne",
    "and or xor lshift rshift invert matmul rmatmul getitem",
)
for _name in " ".join(_OPERATORS).split():
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("reshape", "transpose", "sum", "any", "all", "copy", "view", "astype", "ravel"):
    setattr(ndarray, _name, _operator(_name))


def _sum(self: ndarray, axis: Any = None, **kwargs: Any) -> Any:
    return _outside(self._held.sum(axis=axis, **kwargs))


ndarray.sum = _sum
for _name in FUNCTIONS:
    globals()[_name] = _wrapped(getattr(np, _name), plain=_name in ("iscomplexobj", "result_type"))


def argsort(x: ndarray, axis: int) -> Any:
    """Return the order of the elements along an axis; CuPy's keeps that of equal ones."""
    return _wrapped(np.argsort)(x, axis=axis, kind="stable")


def where(condition: ndarray, a: Any, b: Any) -> Any:
    """Select; a truth value of the host is refused."""
    return _wrapped(np.where)(condition.astype("?"), a, b)


def _polygamma(order: Any, x: Any) -> Any:
    """Compute for an array of orders; a number is refused."""
    if not isinstance(order, np.ndarray):
        raise AttributeError("'bool' object has no attribute 'astype'")
    return scipy.special.polygamma(order, x)


def _expm(a: Any) -> Any:
    if a.ndim > 2:
        raise ValueError("Input must be 1- or 2-d.")
    return scipy.linalg.expm(a)


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """Return memory that nothing has been written to, which shows."""
    return ndarray(np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 1, dtype))


def asarray(value: Any, dtype: Any = None) -> ndarray:
    """Put values on the device, which the caller says in so many words."""
    return value if isinstance(value, ndarray) and dtype is None else array(value, dtype)


def array(value: Any, dtype: Any = None) -> ndarray:
    held = value._held if isinstance(value, ndarray) else value
    return ndarray(np.array(held, dtype=dtype))


nan, inf, pi = np.nan, np.inf, np.pi
float32, float64, uint32 = np.float32, np.float64, np.uint32
_SPECIAL = (
    "erf erfc erfinv erfcinv gamma digamma gammaln loggamma exp1 expi gammainc gammaincc "
    "rgamma xlogy xlog1py beta betaln betainc entr erfcx logit ndtri zeta"
)
linalg = SimpleNamespace(
    **{
        name: _wrapped(getattr(np.linalg, name))
        for name in (
            *("inv", "det", "cholesky", "solve", "slogdet"),
            *("eigh", "qr", "svd", "pinv"),
        )
    },
    expm=_wrapped(_expm),
)
fft = SimpleNamespace(
    **{name: _wrapped(getattr(np.fft, name)) for name in ("fft", "ifft", "rfft", "irfft")}
)
special = SimpleNamespace(
    **{name: _wrapped(getattr(scipy.special, name)) for name in _SPECIAL.split()},
    polygamma=_wrapped(_polygamma),
)
globals()["add"].at = lambda out, places, part: np.add.at(out._held, places._held, part._held)
