"""Storages and views: which values share elements, as NumPy's arrays share memory.

A traced value or a tensor that owns its elements is a handle on them: a change in place gives the
handle another value. The values themselves never change, so derivatives, tapes and graphs keep
what they were computed from. A `View` says how a second handle is read from an owner. Views are
not notified of changes: each compares the version of its owner with the one that it has read, and
is read again if they differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from difflab.core.place import NOWHERE, FramePosition

if TYPE_CHECKING:
    from difflab.core.primitive import Primitive


Step = tuple["Step | None", "Primitive", "Mapping[str, Any]"]
"""A row that moves elements with its parameters, and the step before it."""


class Storage:
    """The number of changes in place of an array, the last one, and the tensors that hold it.

    Most arrays never change, so the attributes are class defaults.
    """

    changes = 0
    last: tuple[str, FramePosition | None] = "", None
    """The last change and the user's line, whose text is read when it is asked for."""
    inference = False
    """Whether the array was made under `inference_mode`, so that no tape may keep it."""
    twins: WeakValueDictionary[int, Any] | None = None
    """Tensors that share one array, by id: a tensor and the results of its `detach`."""

    def join(self, *tensors: Any) -> None:
        """Register tensors that are changed together."""
        if self.twins is None:
            self.twins = WeakValueDictionary()
        self.twins.update({id(tensor): tensor for tensor in tensors})

    def last_change(self) -> str:
        """Return the last change with the user's line, for messages."""
        what, position = self.last
        place = NOWHERE if position is None else position.read()
        return f"{what} ({place.where}: {place.text})" if place.where else what

    def holders(self, tensor: Any) -> list[Any]:
        """Return the tensors that hold the array of `tensor`, itself included."""
        data = tensor._data
        found = [twin for twin in (self.twins or {}).values() if twin._data is data]
        return found or [tensor]


class View:
    """How a value is read from the one that owns its elements, and written back.

    Attributes
    ----------
    owner : carrier
        The handle that owns the elements.
    steps : Step
        The rows that lead from the owner to the view, the last one first.

    Examples
    --------
    >>> from difflab.primitives import index
    >>> x = np.arange(4.0)
    >>> view = View(x, (None, index, {"key": ((1, 3, 1),), "rank": 1}))
    >>> view.applied(x).tolist(), view.places((4,)).tolist()
    ([1.0, 2.0], [1, 2])
    """

    __slots__ = ("owner", "steps")

    def __init__(self, owner: Any, steps: Step) -> None:
        self.owner = owner
        self.steps = steps

    def applied(self, value: Any) -> Any:
        """Return the view of another value of the owner's shape."""
        steps = []
        step: Any = self.steps
        while step is not None:
            step, row, params = step
            steps.append((row, params))
        for row, params in reversed(steps):
            value = row(value, **params)
        return value

    def places(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return the indices of the view's elements in the flattened owner, of this shape."""
        return np.asarray(self.applied(np.arange(math.prod(shape)).reshape(shape)))


def copies_on_reshape(view: View, owner: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether NumPy copies to give a view, of an owner in row-major order, another shape.

    Parameters
    ----------
    view : View
        What is given another shape.
    owner : tuple of int
        The owner's shape.
    shape : tuple of int
        The new shape.

    Examples
    --------
    >>> from difflab.primitives import transpose
    >>> turned = View(None, (None, transpose, {"axes": (-1, -2)}))
    >>> copies_on_reshape(turned, (2, 3), (6,)), copies_on_reshape(turned, (1, 6), (6,))
    (True, False)
    """
    layout = view.applied(np.empty(owner, dtype=np.int8))  # no element is read or written
    try:
        np.reshape(layout, shape, copy=False)
    except ValueError:
        return True
    return False
