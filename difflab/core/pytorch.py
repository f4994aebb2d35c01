"""PyTorch under NumPy's names: the array module of tensors, for the kernels of the table.

PyTorch's functions reject Python scalars in place of tensors, and some have other names or
meanings (``torch.equal`` compares whole arrays). Imported only when a tensor is encountered.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial, reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

Array = Any
Axis = int | Sequence[int] | None


class _LoadedTorch:
    """The module `torch`, looked up on each use."""

    def __getattr__(self, name: str) -> Any:
        if "torch" not in sys.modules:  # inspection of modules, without a tensor
            raise AttributeError(name)
        return getattr(sys.modules["torch"], name)


torch: Any = _LoadedTorch()

NUMPYS_NAMES = {
    "concatenate": "cat",
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "iscomplexobj": "is_complex",
    "less": "lt",
    "less_equal": "le",
    "mod": "remainder",
    "not_equal": "ne",
    "power": "pow",
    "rint": "round",
}
"""NumPy's names of functions that PyTorch names differently."""

UNLIFTED = frozenset({"arange", "eye", "full", "moveaxis", "swapaxes"})
"""Functions whose integer arguments stay integers."""


def _lifted(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a PyTorch function with scalars converted to tensors."""
    flat = [part for arg in args for part in (arg if isinstance(arg, tuple | list) else (arg,))]
    like = next((part for part in flat if torch.is_tensor(part)), None)
    return function(*(_tensor(arg, like) for arg in args), **kwargs)


def _tensor(value: Any, like: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_tensor(part, like) for part in value)
    if torch.is_tensor(value) or not isinstance(value, bool | int | float | np.generic):
        return value
    truth = isinstance(value, bool | np.bool_)
    device = None if like is None else like.device
    known = like is not None and like.dtype.is_floating_point
    dtype = torch.bool if truth else like.dtype if known else torch.float64
    return torch.tensor(value, dtype=dtype, device=device)


@cache
def __getattr__(name: str) -> Any:
    """Return PyTorch's counterpart of a NumPy function."""
    if name == "special":
        return _special()
    member = getattr(torch, NUMPYS_NAMES.get(name, name))
    if name in UNLIFTED or not callable(member):
        return member
    return partial(_lifted, member)


def asarray(value: Any, dtype: Any = None) -> Array:
    """Return a tensor; NumPy's arrays, whose memory may be read-only, are copied."""
    if torch.is_tensor(value):
        return value if dtype is None else value.to(dtype)
    return torch.tensor(np.array(value), dtype=dtype)


def astype(x: Array, dtype: Any) -> Array:
    """Return a tensor of another dtype."""
    return x.to(dtype)


def result_type(*dtypes: Any) -> Any:
    """Return the dtype to which all others promote."""
    return reduce(torch.promote_types, dtypes)


def broadcast_to(x: Array, shape: Sequence[int]) -> Array:
    """Broadcast a scalar or a tensor."""
    return torch.broadcast_to(_tensor(x, None), tuple(shape))


def zeros(shape: Sequence[int], dtype: Any = None) -> Array:
    """Return a tensor of zeros, of float64 by default; PyTorch requires a tuple."""
    return torch.zeros(tuple(shape), dtype=torch.float64 if dtype is None else dtype)


def transpose(x: Array, axes: Sequence[int]) -> Array:
    """Permute the axes; PyTorch's function of this name swaps two axes."""
    return torch.permute(x, tuple(axes))


def diagonal(x: Array, axis1: int, axis2: int) -> Array:
    """Return diagonals."""
    return torch.diagonal(x, dim1=axis1, dim2=axis2)


def take(x: Array, indices: Array, axis: int) -> Array:
    """Return the entries at indices along an axis."""
    return torch.index_select(x, axis, indices)


def _reduced(name: str, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return getattr(torch, name)(x, dim=tuple(axes), keepdim=keepdims) if axes else x


max, min, sum = (partial(_reduced, name) for name in ("amax", "amin", "sum"))


def prod(x: Array, axis: Axis = None) -> Array:
    """Multiply along axes, one after the other."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for along in sorted((entry % x.ndim for entry in axes), reverse=True):
        x = torch.prod(x, dim=along)
    return x


def argmax(x: Array, axis: int) -> Array:
    """Return the index of the first maximum, in float64: PyTorch makes float32 of integers."""
    return torch.argmax(x, dim=axis).double()


def argsort(x: Array, axis: int) -> Array:
    """Return the stable order along an axis, in float64."""
    return torch.argsort(x, dim=axis, stable=True).double()


def cumprod(x: Array, axis: int) -> Array:
    """Return the running products along an axis."""
    return torch.cumprod(x, dim=axis)


def take_along_axis(x: Array, indices: Array, axis: int) -> Array:
    """Return the entries at indices along an axis, as `numpy.take_along_axis` does."""
    return torch.take_along_dim(x, indices, dim=axis)


def cbrt(x: Array) -> Array:
    """Return the real cube root."""
    x = _tensor(x, None)
    return torch.sign(x) * torch.abs(x) ** (1 / 3)


def sign(x: Array) -> Array:
    """Return the sign, and nan for nan, whose sign is 0 in PyTorch."""
    x = _tensor(x, None)
    return torch.where(torch.isnan(x), x, torch.sign(x))


def heaviside(x: Array, at: Any) -> Array:
    """Return the unit step, and nan for nan."""
    x = _tensor(x, None)
    return torch.where(torch.isnan(x), x, torch.heaviside(x, _tensor(at, x)))


def flip(x: Array, axis: int | Sequence[int]) -> Array:
    """Reverse the order along axes."""
    return torch.flip(x, (axis,) if isinstance(axis, int) else tuple(axis))


class _Add:
    """``add(a, b)``, and ``add.at(out, indices, part)``, which accumulates at repeated indices."""

    def __call__(self, a: Array, b: Array) -> Array:
        return _lifted(torch.add, a, b)

    def at(self, out: Array, indices: Array, part: Array) -> None:
        out.index_add_(0, indices, part)


add = _Add()


def _polygamma(order: int, x: Array) -> Array:
    """Return a derivative of digamma; PyTorch's of the first order has nine digits only."""
    if order != 1:
        return torch.special.polygamma(order, x)
    left = x < 0
    offset = torch.where(left, x - torch.round(x), 0.5)
    reflected = (math.pi / torch.sin(math.pi * offset)) ** 2
    right = _trigamma(torch.where(left, 1.0 - x, x))
    return torch.where(left, reflected - right, right)


def _trigamma(x: Array) -> Array:
    """Return the derivative of digamma from 0 on: ζ(2, x)."""
    return zeta(torch, torch.full_like(x, 2.0), x)


def zeta(torch: Any, s: Array, q: Array) -> Array:
    """Return ζ(s, q) by PyTorch's function, and by Euler and Maclaurin's sum for large q.

    PyTorch 2.13 gives 0 where q⁻ˢ underflows, though ζ(s, q) ≈ q¹⁻ˢ/(s - 1) does not, and nan at
    infinity.
    """
    far = torch.logical_and(q > 1e8, s > 1.0)
    large = torch.where(far, q, 1e8)
    near = torch.special.zeta(s, torch.where(far, 1.0, q))
    return torch.where(far, (1.0 / (s - 1.0) + 0.5 / large) * large ** (1.0 - s), near)


def _special() -> SimpleNamespace:
    """Return the special functions that PyTorch has; it has no gamma function."""
    names = (
        "digamma entr erf erfc erfcx erfinv gammainc gammaincc gammaln logit ndtri xlog1py xlogy"
    )
    lifted = {name: partial(_lifted, getattr(torch.special, name)) for name in names.split()}
    return SimpleNamespace(
        **lifted, polygamma=_polygamma, zeta=partial(_lifted, partial(zeta, torch))
    )
