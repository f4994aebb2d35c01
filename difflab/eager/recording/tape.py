"""The tape: a step for every recorded operation, linked to the steps of its arguments.

A step holds only what the reverse sweep needs: the plan, the edges, and the values that its rule
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from difflab.core.place import at_users_line
from difflab.eager.recording.plan import BackwardPlan, Numbers
from difflab.errors import TapeError

__all__ = [
    "Accumulation",
    "Hook",
    "Storage",
    "TapeStep",
    "guard_of",
    "history",
    "mark_inference",
    "storage_of",
]

next_number = count(1).__next__
"""Steps are numbered in creation order: a step's number exceeds those of its arguments."""


class Storage:
    """The number of changes in place of an array, the last one, and the tensors that hold it.

    Most arrays never change, so the attributes are class defaults.
    """

    changes = 0
    last = ""
    inference = False
    """Whether the array was made under `inference_mode`, so that no tape may keep it."""
    twins: WeakValueDictionary[int, Any] | None = None
    """Tensors that share one array, by id: a tensor and the results of its `detach`."""

    def join(self, *tensors: Any) -> None:
        """Register tensors that are changed together."""
        if self.twins is None:
            self.twins = WeakValueDictionary()
        self.twins.update({id(tensor): tensor for tensor in tensors})

    def holders(self, tensor: Any) -> list[Any]:
        """Return the tensors that hold the array of `tensor`, itself included."""
        data = tensor._data
        found = [twin for twin in (self.twins or {}).values() if twin._data is data]
        return found or [tensor]


def storage_of(tensor: Any) -> Storage:
    """Return the storage of a tensor, created on first use."""
    storage: Storage | None = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage()
    return storage


def guard_of(tensor: Any, name: str) -> tuple[Storage, int]:
    """Return the storage of a tensor that the derivative of `name` needs, and its changes.

    Raises
    ------
    TapeError
        The tensor was made under `inference_mode`.
    """
    storage = storage_of(tensor)
    if storage.inference:
        raise at_users_line(
            TapeError,
            f"the derivative of '{name}' needs a tensor of inference_mode",
            "pass its copy(), or compute it under no_grad()",
        )
    return storage, storage.changes


def mark_inference(tensor: Any) -> None:
    """Mark a tensor as made under `inference_mode`, unless it is a view of one that was not."""
    if tensor._storage is None:
        tensor._storage = Storage()
        tensor._storage.inference = True


class Accumulation:
    """The end of the tape at a leaf: cotangents are added to `grad`, in the leaf's `dtype`.

    `owner` is a weak reference to the leaf.
    """

    __slots__ = ("dtype", "grad", "hooks", "owner")

    name = "accumulate"
    next_functions = ()
    plan = None

    def __init__(self, dtype: np.dtype[Any], grad: Any = None) -> None:
        self.dtype = dtype
        self.grad = grad
        self.hooks: dict[int, Callable[..., Any]] | None = None
        self.owner: Any = None

    def __repr__(self) -> str:
        return "<accumulate>"


class TapeStep:
    """One recorded operation: the value of ``tensor.grad_fn``.

    Attributes
    ----------
    number : int
        The position in creation order.
    plan : BackwardPlan
        The row, parameters and shapes, and the pull-back.
    edges : tuple
        For each argument its step or accumulation, or None; None as a whole once the step is
        freed.
    slots : sequence
        The values that the rule's maps read: for t, the result and the arguments; None if unread.
    numbers : tuple
        The slots that hold plain numbers, with the numbers: their recipes are simpler. The text
        of a zero tells 0.0 from -0.0.
    guards : sequence
        The storages of the values in the slots, and their numbers of changes when recorded.
    hooks : dict or None
        The registered hooks, which are called with the cotangent.
    retained : weak reference or None
        The tensor that retains the gradient.
    """

    __slots__ = (
        "edges",
        "guards",
        "hooks",
        "number",
        "numbers",
        "plan",
        "retained",
        "slots",
    )

    number: int
    plan: BackwardPlan
    edges: tuple[TapeStep | Accumulation | None, ...] | None
    slots: Any
    numbers: Numbers
    guards: Sequence[tuple[Storage, int]]
    hooks: dict[int, Callable[..., Any]] | None
    retained: Any

    def __init__(
        self, plan: BackwardPlan, edges: tuple[TapeStep | Accumulation | None, ...]
    ) -> None:
        self.number = next_number()
        self.plan = plan
        self.edges = edges
        self.slots = plan.blank
        self.numbers = self.guards = ()
        self.hooks = self.retained = None

    @property
    def name(self) -> str:
        """The name of the row."""
        return self.plan.row.name

    @property
    def next_functions(self) -> tuple[tuple[TapeStep | Accumulation | None, int], ...]:
        """The edges of the arguments, as pairs with 0; empty once the step is freed."""
        return tuple((edge, 0) for edge in self.edges or ())

    @property
    def saved(self) -> tuple[Any, ...]:
        """The values that this step keeps for the reverse sweep."""
        return tuple(slot for slot in self.slots if slot is not None)

    def free(self) -> None:
        """Drop the kept values and the edges."""
        self.edges = None
        self.slots = self.guards = ()

    def check(self) -> None:
        """Raise `TapeError` if the step is freed, or a kept value was changed in place."""
        if self.edges is None:
            raise TapeError(
                f"backward() reached '{self.name}', which an earlier backward() has freed",
                hint="pass retain_graph=True to the earlier backward(), or recompute the result",
            )
        for storage, changes in self.guards:
            if storage.changes != changes:
                raise TapeError(
                    f"a value that the derivative of '{self.name}' needs was changed in place"
                    f" after it was used, by {storage.last}",
                    hint="write the change as a new value (t = t + 1), or after backward()",
                )

    def __repr__(self) -> str:
        return f"<step {self.name}>"


def history(last: TapeStep) -> list[TapeStep]:
    """Return the steps that a step depends on, itself included, in creation order."""
    found = {last.number: last}
    pending = [last]
    while pending:
        for edge in pending.pop().edges or ():
            if isinstance(edge, TapeStep) and edge.number not in found:
                found[edge.number] = edge
                pending.append(edge)
    return [found[number] for number in sorted(found)]


class Hook:
    """A registered hook; `remove` unregisters it."""

    __slots__ = ("hooks", "number")

    def __init__(self, hooks: dict[int, Any], hook: Callable[..., Any]) -> None:
        self.hooks = hooks
        self.number = max(hooks, default=0) + 1
        hooks[self.number] = hook

    def remove(self) -> None:
        """Unregister the hook; does nothing if it is not registered."""
        self.hooks.pop(self.number, None)
