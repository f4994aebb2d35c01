"""Memory ownership: which results may share memory, and which values share elements as views.

The rule, for every public call:

* Arguments stay the user's. They are copied, or read before the call returns, and never written
  to: changing them later changes no result, tensor, gradient or tape.
* Functions of the user's that difflab calls, such as the step of `scan`, may change their arguments
  in place: they run on copies.
* Results are the user's alone. They share memory neither with an argument, nor with another
  result, nor with values that difflab keeps. Only read-only memory may be shared.
* The array of a tensor is never written to: a change in place gives the tensor a new one. Values
  kept for `backward`, checkpoints and values passed to hooks keep their elements. Tensors and
  traced values are changed together where NumPy's arrays would share memory, as a value and its
  views (`t[1:]`, `t.reshape(…)`; see `View`) do; also a tensor and its `detach()`.
* An operation that changes nothing (`+t`, `t.sum()` of a scalar) is a new value: of a tensor with
  its own node on the tape. The nodes of a graph are immutable.

Values that are passed through are not copied: what the user's function returns through
`checkpoint`, the tensor that `t.grad = g` is given, auxiliary results (`has_aux`), and arrays of
other libraries, whose rules they follow. `t.numpy()` shows the array of a tensor and cannot be
written to.

A traced value or a tensor that owns its elements is a handle on them: a change in place gives the
handle another value. The values themselves never change, so derivatives, tapes and graphs keep
their inputs. A `View` says how a second handle is read from an owner. Views are
not notified of changes: each compares the version of its owner with the one that it has read, and
is read again if they differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from difflab.core.place import NOWHERE, FramePosition

if TYPE_CHECKING:
    from difflab.core.primitive import Primitive


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
    copies = []
    for result in results:
        if _root(result) in roots:
            result = result.copy() if isinstance(result, np.ndarray) else unchanged(result)
        roots.add(_root(result))
        copies.append(result)
    return copies


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
    copies = []
    for value in arguments:
        alone = getattr(value, "__difflab_alone__", None)
        if alone is not None:
            copies.append(alone())
        else:
            copies.append(value.copy() if isinstance(value, np.ndarray) else value)
    return copies


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


Step = tuple["Step | None", "Primitive", "Mapping[str, Any]"]
"""A row that moves elements with its parameters, and the step before it."""


class Storage:
    """The number of in-place changes of an array, the last one, and the tensors that hold it.

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
        holding = [twin for twin in (self.twins or {}).values() if twin._data is data]
        return holding or [tensor]


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
        The view to reshape.
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
