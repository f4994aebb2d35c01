"""`tensor`: create a leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from difflab.core.conversions import as_reals
from difflab.core.devices import JAX, module_of
from difflab.eager.recording.mode import MODE
from difflab.eager.recording.record import FLOAT64, is_floating, require_floating
from difflab.eager.recording.tape import Accumulation, mark_inference
from difflab.eager.tensors.tensor import Tensor
from difflab.errors import InputError
from difflab.graph.checks import require_flag


def tensor(data: ArrayLike, requires_grad: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor that holds a copy of `data`.

    Parameters
    ----------
    data : array_like or Tensor
        Real elements; a CuPy array stays on its device. Integers become float64, so that they
        can have derivatives.
    requires_grad : bool
        Whether operations on it are recorded, for `Tensor.backward`.
    dtype : dtype, optional
        The dtype of the elements.

    Returns
    -------
    Tensor
        A leaf.

    Raises
    ------
    InputError
        `data` are not real numbers, or `requires_grad` is set for a dtype without derivatives.

    Examples
    --------
    The derivative of z = (x + y)·y at (2, 3) is (y, x + 2y):

    >>> import difflab as dl
    >>> x, y = dl.tensor(2.0, requires_grad=True), dl.tensor(3.0, requires_grad=True)
    >>> z = (x + y) * y
    >>> z.backward()
    >>> x.grad.item(), y.grad.item()
    (3.0, 8.0)
    """
    source: Any = data._data if isinstance(data, Tensor) else data
    kind: type = type(source)
    home, make = np, np.array  # type: Any, Any
    if kind is list:
        source, make = as_reals(source, "the data of a tensor"), np.asarray  # a new array
    elif not (kind is float or (kind is np.ndarray and source.dtype is FLOAT64)):
        if not (is_floating(source) or isinstance(data, Tensor)):
            source = as_reals(source, "the data of a tensor")
        home = module_of(source)
        make = home.array
    if home is not np and home.__name__ == JAX:
        raise InputError(
            "a tensor holds an array of NumPy or CuPy, not of JAX", hint="pass np.asarray(array)"
        )
    try:
        array: Any = make(source, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InputError(f"the elements of a tensor must be numbers: {error}") from None
    if dtype is None and array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InputError(f"the elements of a tensor must be real numbers, not {array.dtype}")
    require_flag(requires_grad, "requires_grad", "tensor")
    if requires_grad:
        require_floating(array)
    made = Tensor(array, Accumulation(array.dtype) if requires_grad else None)
    if MODE.inference:
        mark_inference(made)
    return made
