"""What a result may share memory with: the one rule, and the functions that keep it.

The rule, for every public call:

* **What the user hands over stays the user's.** It is copied, or read before the call returns;
  it is never written to. Whoever changes it later changes nothing of difflab's.
* **What the user is handed is the user's alone.** It shares memory neither with an argument, nor
  with another result, nor with what difflab keeps. An array that cannot be written to is the
  exception: nobody can change it, so it may be shared.
* **The array of a tensor is never written to.** A change in place gives the tensor a new array.
  Whatever else holds the old one keeps its numbers: views (`t[0]`, `t.reshape(…)`), values kept
  for `backward`, checkpoints, hooks. So tensors may share arrays, and no one can tell, except for
  what was asked to be changed together: `tensor` and `tensor.detach()`.
* **An operation that changes nothing still makes a tensor** (`t.sum()` of a number, `+t`), with
  its own place on the tape; the nodes of a graph are immutable and are returned as they are.

`tensor.numpy()` shows the array of a tensor without a copy, and cannot be written to.
Imports nothing of the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_constant", "unchanged"]


def is_constant(array: Any) -> bool:
    """Whether nobody can write to an array, nor to the memory that it is a view of.

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
