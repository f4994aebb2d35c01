"""Conversions of a tensor that leave the tape: to numbers, arrays and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from difflab.arrays.scipy_calls import not_by_comparisons, not_through_scipy, warn_of_scipy
from difflab.core.conversions import MASKED, refused
from difflab.core.devices import module_of, on_host
from difflab.core.place import at_users_line
from difflab.eager.recording.record import TapedArray
from difflab.eager.recording.tape import TapeStep
from difflab.errors import DeviceError, ShapeError, TapeError

INSTEAD = (
    "instead of assigning z[i] = tensor into a NumPy array z, make z a tensor with"
    " dl.tensor(np.zeros(n)), or join the parts with np.stack([…])"
)


class Conversions(TapedArray):
    """Shape and values of a tensor: as numbers, arrays and text, where no derivative is lost."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        shape: tuple[int, ...] = self._data.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of the elements."""
        dtype: np.dtype[Any] = self._data.dtype
        return dtype

    @property
    def _mask(self) -> NoReturn:
        """Asked for by `numpy.ma`, which takes the attribute ``_data`` without its derivative."""
        raise refused(MASKED, "an operand of a tensor operation")

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self._data.size != 1:
            raise ShapeError(f"item() needs a tensor of one element, but the shape is {self.shape}")
        return self._data.item()

    def numpy(self) -> NDArray[Any]:
        """Return the values as a NumPy array that cannot be written to.

        Raises
        ------
        TapeError
            The tensor requires grad: NumPy's operations on the array would not be recorded.
        """
        if self._step is not None:
            raise not_through_scipy(TapeError) or at_users_line(
                TapeError,
                "a tensor that requires grad is not converted to a NumPy array implicitly, because"
                " no derivative would flow back from the array",
                "write tensor.detach().numpy(), or apply NumPy's functions to the tensor;"
                f" {INSTEAD}",
            )
        if module_of(self._data) is not np:
            raise DeviceError(
                "a tensor on a device is not converted to a NumPy array implicitly",
                hint="tensor.detach().array() is its device array; get() copies that to the host",
            )
        view = np.asarray(self._data).view()
        view.flags.writeable = False
        return view

    def array(self) -> Any:
        """Return a copy of the values as an array on their device: NumPy's, or CuPy's."""
        if self._step is not None:
            raise TapeError(
                "no derivative flows back from the array of a tensor that requires grad",
                hint="write tensor.detach().array()",
            )
        return module_of(self._data).array(self._data)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    @property
    def device(self) -> NoReturn:
        """Asked for by SciPy's solvers, which take tensors for arrays of another library."""
        raise not_through_scipy(TapeError) or AttributeError("a tensor has no attribute 'device'")

    def _number(self, convert: Callable[[Any], Any]) -> Any:
        if self._step is not None:
            warn_of_scipy()
            raise not_through_scipy(TapeError) or at_users_line(
                TapeError,
                f"{convert.__name__}() of a tensor that requires grad would lose its derivative",
                "read the number with tensor.item(), or use NumPy's functions (np.sin) instead of"
                f" those of `math`; {INSTEAD}",
            )
        return convert(self.item())

    def __float__(self) -> float:
        number: float = self._number(float)
        return number

    def __int__(self) -> int:
        number: int = self._number(int)
        return number

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise ShapeError(f"the truth value of a tensor of shape {self.shape} is ambiguous")
        error = None if self._step is None else not_by_comparisons(TapeError)
        if error is not None:
            raise error
        return bool(self._data)

    def __repr__(self) -> str:
        numbers = np.array2string(on_host(self._data), separator=", ", prefix="tensor(")
        step = self._step
        note = f", grad_fn={step}" if isinstance(step, TapeStep) else ", requires_grad=True"
        return f"tensor({numbers}{note if step is not None else ''})"
