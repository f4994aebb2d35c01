"""Memory ownership: which results may share memory, and the functions that enforce it.

The rule, for every public call:

* Arguments stay the user's. They are copied, or read before the call returns, and never written
  to: changing them later changes no result, tensor, gradient or tape.
* Functions of the user's that difflab calls, such as the step of `scan`, may change their arguments
  in place: they run on copies.
* Results are the user's alone. They share memory neither with an argument, nor with another
  result, nor with what difflab keeps. Only read-only memory may be shared.
* The array of a tensor is never written to: a change in place gives the tensor a new one. Values
  kept for `backward`, checkpoints and values passed to hooks keep their elements. Tensors and
  traced values are changed together where NumPy's arrays would share memory, as a value and its
  views (`t[1:]`, `t.reshape(…)`; see `difflab.core.storage`) do; also a tensor and its `detach()`.
* An operation that changes nothing (`+t`, `t.sum()` of a scalar) is a new value: of a tensor with
  its own node on the tape. The nodes of a graph are immutable and stay what they are.

Values that are passed through are not copied: what the user's function returns through
`checkpoint`, the tensor that `t.grad = g` is given, auxiliary results (`has_aux`), and arrays of
other libraries, whose rules they follow. `t.numpy()` shows the array of a tensor and cannot be
written to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def is_constant(array: Any) -> bool:
    """Whether an array and the memory it is a view of are read-only.

    Examples
    --------
    >>> owned = np.ones(2)
    >>> is_constant(np.broadcast_to(owned, (3, 2)))
    False
    >>> owned.flags.writeable = False
    >>> is_constant(owned)
    True
    """
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        if array.base is None:
            return True
        array = array.base
    return isinstance(array, bytes)


def owned(results: Iterable[Any], given: Iterable[Any]) -> list[Any]:
    """Return results that share memory neither with `given` nor with each other.

    Those that do are copied; a carrier that is the same object is replaced by a new one.

    Examples
    --------
    >>> x = np.ones(3)
    >>> first, second = owned([x[1:], 2 * x], [x])
    >>> np.shares_memory(first, x)
    False
    """
    roots = {_root(value) for value in given}
    found = []
    for result in results:
        if _root(result) in roots:
            result = result.copy() if isinstance(result, np.ndarray) else unchanged(result)
        roots.add(_root(result))
        found.append(result)
    return found


def _root(value: Any) -> int:
    """Return the id of the object that owns the memory of an array; of another value its own id.

    The ids are unique as long as the values are alive.
    """
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    return id(value)


def private(arguments: Iterable[Any]) -> list[Any]:
    """Return arguments for a function that may change them in place: arrays are copied.

    Examples
    --------
    >>> x = np.ones(3)
    >>> (own,) = private([x])
    >>> own *= 2.0
    >>> x.tolist()
    [1.0, 1.0, 1.0]
    """
    found = []
    for value in arguments:
        alone = getattr(value, "__difflab_alone__", None)
        if alone is not None:
            found.append(alone())
        else:
            found.append(value.copy() if isinstance(value, np.ndarray) else value)
    return found


def unchanged(value: Any) -> Any:
    """Return the result of an operation that changes nothing of `value`.

    A carrier that can be changed in place makes a new one, which is recorded as an operation.

    Examples
    --------
    >>> import difflab as dl
    >>> x = dl.tensor(2.0, requires_grad=True)
    >>> unchanged(x) is x, unchanged(3.0)
    (False, 3.0)
    """
    renewed = getattr(value, "__difflab_unchanged__", None)
    return value if renewed is None else renewed()


def shared(value: Any) -> Any:
    """Return a view of all of `value`, such as NumPy's ``x.reshape(x.shape)``.

    A tensor makes a new one, which is recorded as an operation.

    Examples
    --------
    >>> import difflab as dl
    >>> x = dl.tensor([1.0, 2.0])
    >>> y = shared(x)
    >>> y[0] = 5.0
    >>> y is x, x
    (False, tensor([5., 2.]))
    """
    view = getattr(value, "__difflab_shared__", None)
    return value if view is None else view()
