"""The tape: a step for every recorded operation, linked to the steps it came from.

A step holds what going backward needs and nothing else: the plan, the edges, and the values that
its rule reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from difflab.eager.recording.plan import BackwardPlan
from difflab.errors import TapeError

__all__ = ["Accumulation", "Hook", "Storage", "TapeStep", "storage_of"]

next_number = count(1).__next__
"""Steps are numbered as they are made: a step's number is above those of what it takes."""


class Storage:
    """How often an array has been changed in place, how it was last, and which tensors hold it.

    Most never are, so that most storages hold nothing of their own.
    """

    changes = 0
    last = ""
    twins: WeakValueDictionary[int, Any] | None = None
    """Tensors of one array, by their identity: a tensor and what its `detach` returned."""

    def join(self, *tensors: Any) -> None:
        """Let tensors be changed together from now on."""
        if self.twins is None:
            self.twins = WeakValueDictionary()
        self.twins.update({id(tensor): tensor for tensor in tensors})

    def holders(self, tensor: Any) -> list[Any]:
        """Return the tensors that hold the array of `tensor`, itself included."""
        data = tensor._data
        found = [twin for twin in (self.twins or {}).values() if twin._data is data]
        return found or [tensor]


def storage_of(tensor: Any) -> Storage:
    """Return the storage of a tensor, which gets one when it first matters."""
    storage: Storage | None = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage()
    return storage


class Accumulation:
    """The end of the tape at a leaf: what arrives is added to `grad`, in the leaf's `dtype`."""

    __slots__ = ("dtype", "grad", "hooks")

    name = "accumulate"
    next_functions = ()
    plan = None

    def __init__(self, dtype: np.dtype[Any], grad: Any = None) -> None:
        self.dtype = dtype
        self.grad = grad
        self.hooks: dict[int, Callable[..., Any]] | None = None

    def __repr__(self) -> str:
        return "<accumulate>"


class TapeStep:
    """One recorded operation: what ``tensor.grad_fn`` is.

    Attributes
    ----------
    number : int
        Counts the steps as they are made.
    plan : BackwardPlan
        What was applied to which shapes, and how it goes backward.
    edges : tuple
        For each argument the step or accumulation it came from, or None; None as a whole once
        the step is freed.
    slots : sequence
        What the rule's maps read: place for t, the result, the arguments; None for the others.
    numbers : tuple
        The slots that hold plain numbers, with them: their recipes are simpler.
    guards : sequence
        The storages of what is in the slots, and how often they had been changed.
    hooks : dict or None
        What is shown the cotangent.
    retained : weak reference or None
        The tensor that keeps it.
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
    numbers: tuple[tuple[int, float], ...]
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
        """The row's name."""
        return self.plan.row.name

    @property
    def next_functions(self) -> tuple[tuple[TapeStep | Accumulation | None, int], ...]:
        """What the arguments came from, as pairs with 0; empty once the step is freed."""
        return tuple((edge, 0) for edge in self.edges or ())

    @property
    def saved(self) -> tuple[Any, ...]:
        """The values that this step keeps for going backward."""
        return tuple(slot for slot in self.slots if slot is not None)

    def free(self) -> None:
        """Let go of what it kept and of the steps before it."""
        self.edges = None
        self.slots = self.guards = ()

    def check(self) -> None:
        """Raise `TapeError` if the step is freed, or a value it kept has been changed."""
        if self.edges is None:
            raise TapeError(
                f"backward came to '{self.name}', which an earlier backward() has freed",
                hint="pass retain_graph=True to the earlier backward(), or compute it again",
            )
        for storage, changes in self.guards:
            if storage.changes != changes:
                raise TapeError(
                    f"a value that the derivative of '{self.name}' needs was changed in place"
                    f" after it was used, by {storage.last}",
                    hint="write the change as a new value (t = t + 1), or make it after backward()",
                )

    def __repr__(self) -> str:
        return f"<step {self.name}>"


class Hook:
    """A registered hook; `remove` takes it away."""

    __slots__ = ("hooks", "number")

    def __init__(self, hooks: dict[int, Any], hook: Callable[..., Any]) -> None:
        self.hooks = hooks
        self.number = max(hooks, default=0) + 1
        hooks[self.number] = hook

    def remove(self) -> None:
        """Take the hook away; once more does nothing."""
        self.hooks.pop(self.number, None)
