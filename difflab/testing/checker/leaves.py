"""Leaves of trees of arguments: arrays of NumPy and other libraries, and Python scalars.

JAX, PyTorch and CuPy are known by name, others by the Python array API standard.

A leaf is read as real float64 numbers: a complex array is the sequence of its real and imaginary
parts. It is moved in its own dtype, and the move that remains after rounding is measured.
A framework is imported only when one of its arrays was given.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.apply import module_of

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Callee = Callable[[Any], Any]
"""A function of one argument, as the checker calls it."""

CHUNK = 1 << 15
"""Elements that are converted to float64 at a time, so that large arrays are not copied."""

EPSILON = {
    "float64": 2.0**-52,
    "complex128": 2.0**-52,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
"""Spacing of the numbers at 1, for each dtype that can be checked."""


def library_of(value: Any) -> str:
    """Return the package of an array: "numpy", "jax", "torch", "cupy"; "" for anything else.

    Arrays of other packages are known by ``__array_namespace__`` of the array API standard.

    Examples
    --------
    >>> library_of(np.ones(2)), library_of([1.0])
    ('numpy', '')
    """
    if isinstance(value, np.ndarray | np.generic):
        return "numpy"
    for kind in type(value).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in ("jax", "jaxlib") and hasattr(value, "dtype"):
            return "jax"
        if package == "torch" and hasattr(value, "requires_grad"):
            return "torch"
        if package == "cupy" and hasattr(value, "dtype"):
            return "cupy"
    if hasattr(type(value), "__array_namespace__"):
        return type(value).__module__.partition(".")[0]
    return ""


class Leaf:
    """An array of NumPy, or a Python number.

    Attributes
    ----------
    shape : tuple of int
        The shape of the array.
    dtype : str
        The name of its dtype.
    size : int
        The number of real numbers: twice the number of elements of a complex array.
    """

    def __init__(self, original: Any, dtype: str, shape: tuple[int, ...]) -> None:
        self.original = original
        self.dtype = dtype
        self.shape = shape
        self.complex = dtype.startswith("complex")
        self.size = prod(shape) * (2 if self.complex else 1)

    @property
    def eps(self) -> float:
        """The spacing of the dtype at 1."""
        return EPSILON[self.dtype]

    def copy(self) -> Any:
        """Return a flat copy of the real elements, in the dtype."""
        return _real(np.array(self._on_host()).reshape(-1))

    def flat(self) -> Any:
        """Return the flat real elements, in the dtype, without a copy where possible."""
        return _real(self._on_host().reshape(-1))

    def read(self, flat: Any, start: int, stop: int) -> Array:
        """Return a slice of the flat elements as float64."""
        part: Array = np.asarray(flat[start:stop], dtype=np.float64)
        return part

    def write(self, flat: Any, start: int, stop: int, values: Array) -> None:
        """Store a slice of the flat elements, rounded to the dtype."""
        with np.errstate(over="ignore"):
            flat[start:stop] = values

    def value(self, flat: Any) -> Any:
        """Return the argument of these flat elements."""
        array = (flat.view(self.dtype) if self.complex else flat).reshape(self.shape)
        return self._like_original(array)

    def numbers(self) -> Array:
        """Return all real elements as float64; do not write to them."""
        return self.read(self.flat(), 0, self.size)

    def changed(self, argument: Any) -> bool:
        """Whether an argument that had the original's values has others now."""
        now = type(self)(argument, self.dtype, self.shape)
        return not np.array_equal(now.numbers(), self.numbers(), equal_nan=True)

    def displaced(
        self, along: Array, t: float, start: int, stop: int, weights: Array
    ) -> tuple[Any, Array]:
        r"""Return the argument displaced by `t` times `along`, and sums of displacements.

        The sums :math:`W d` are those of the displacement :math:`d` that rounding leaves.

        Parameters
        ----------
        along : ndarray (n,)
            The direction.
        t : float
            The length of the move.
        start, stop : int
            The part that moves.
        weights : ndarray (m, n)
            The rows are the weights of the sums.
        """
        flat = self.copy()
        total = np.zeros(len(weights))
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            before = self.read(flat, first, last).copy()
            self.write(flat, first, last, before + t * along[first:last])
            total += weights[:, first:last] @ (self.read(flat, first, last) - before)
        return self.value(flat), total

    def _on_host(self) -> Any:
        """Return the array as one of NumPy, without a copy where possible."""
        return np.asarray(self.original)

    def _like_original(self, array: Any) -> Any:
        """Return an array of NumPy as the kind of value that the original is."""
        if isinstance(self.original, np.ndarray):
            return array
        kind = type(self.original)
        return kind(array[()]) if kind in (float, complex) else array[()]


class _JaxLeaf(Leaf):
    """An array of JAX."""

    def _like_original(self, array: Any) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(array)


class _StandardLeaf(Leaf):
    """An array of a library of the array API standard, displaced on the host."""

    def _on_host(self) -> Any:
        return np.from_dlpack(self.original, device="cpu")

    def _like_original(self, array: Any) -> Any:
        xp = self.original.__array_namespace__()
        return xp.asarray(array, device=self.original.device)


class _CupyLeaf(_StandardLeaf):
    """An array of CuPy, whose `asarray` has no `device` and whose DLPack stays on its device."""

    def _on_host(self) -> Any:
        return self.original.get()

    def _like_original(self, array: Any) -> Any:
        with self.original.device:
            return module_of(self.original).asarray(array)


class _TorchLeaf(Leaf):
    """A tensor of PyTorch; a parameter is displaced as a tensor."""

    def copy(self) -> Any:
        return self._real(self.original.detach().clone())

    def flat(self) -> Any:
        return self._real(self.original.detach())

    def read(self, flat: Any, start: int, stop: int) -> Array:
        import torch

        part: Array = flat[start:stop].to(device="cpu", dtype=torch.float64).numpy()
        return part

    def write(self, flat: Any, start: int, stop: int, values: Array) -> None:
        import torch

        flat[start:stop] = torch.from_numpy(np.ascontiguousarray(values)).to(flat.device)

    def value(self, flat: Any) -> Any:
        import torch

        if self.complex:
            flat = torch.view_as_complex(flat.reshape(-1, 2))
        moved = flat.reshape(self.shape).detach()
        return moved.requires_grad_(bool(self.original.requires_grad))

    def _real(self, tensor: Any) -> Any:
        import torch

        flat = tensor.reshape(-1).resolve_conj().resolve_neg()
        return torch.view_as_real(flat).reshape(-1) if self.complex else flat


_KINDS = {"numpy": Leaf, "jax": _JaxLeaf, "torch": _TorchLeaf, "cupy": _CupyLeaf}


def dtype_name(value: Any) -> str:
    """Return the name of the dtype of an array, whatever its order of bytes.

    Examples
    --------
    >>> dtype_name(np.ones(2, ">f4"))
    'float32'
    """
    return getattr(value.dtype, "name", None) or str(value.dtype).rpartition(".")[2]


def of_leaf(value: Any) -> Leaf | None:
    """Return the leaf of an array or a number that can be differentiated; otherwise None.

    Examples
    --------
    >>> of_leaf(np.ones(3, dtype=np.complex64)).size
    6
    >>> of_leaf(np.arange(3)) is None
    True
    """
    if isinstance(value, float | complex) and not isinstance(value, np.generic):
        return Leaf(value, "float64" if isinstance(value, float) else "complex128", ())
    library = library_of(value)
    if not library:
        return None
    dtype = dtype_name(value)
    if dtype not in EPSILON:
        return None
    if library == "numpy" and not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    return _KINDS.get(library, _StandardLeaf)(value, dtype, tuple(value.shape))


def _real(flat: Any) -> Any:
    """Return the real view of a flat NumPy array."""
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
