"""The tape: a step for every recorded operation, linked to the steps of its arguments.

The mode of the thread says whether operations are recorded (`no_grad`, `inference_mode`, …) and
watched (`detect_anomaly`). A step holds only the data of the reverse sweep: the plan, the edges,
and the values that its rule reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from itertools import count
from typing import Any

import numpy as np

from difflab.core.ownership import Storage
from difflab.core.place import at_users_line
from difflab.eager.recording.plan import BackwardPlan, Numbers
from difflab.errors import TapeError
from difflab.graph.checks import require_flag

# --- modes: whether operations are recorded, and watched -----------------------------------------


class _Mode(threading.local):
    """The mode of one thread; recording is switched on initially."""

    enabled = True
    inference = False
    """Whether tensors are made that can never be recorded."""
    saw_grad = False
    """Whether something that requires grad was used while nothing was recorded."""
    trial = False
    """Whether a checkpoint runs its function unrecorded, to be run again."""
    recorded_again: bool = False
    """Whether the second run of a checkpoint stays on the tape, for derivatives of the gradient."""
    watch: Any = None
    """The `Watch` of the innermost `detect_anomaly`, which notes the recorded operations."""

    @property
    def whole(self) -> bool:
        """Whether checkpoints record every operation: to be examined, or differentiated again."""
        return self.watch is not None or self.recorded_again


MODE = _Mode()
WATCHED: list[None] = []
"""One entry per active watch of any thread; while empty, operations skip `MODE.watch`."""


class _Switch(ContextDecorator):
    """Set recording inside a block or function, and restore it, also after an error."""

    enabled: bool

    def __init__(self) -> None:
        self.before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self.before.append((MODE.enabled, MODE.inference))
        MODE.enabled = self.enabled and not MODE.inference

    def __exit__(self, *exception: object) -> None:
        MODE.enabled, MODE.inference = self.before.pop()


class no_grad(_Switch):  # noqa: N801  # PyTorch's spelling: used like a statement
    """Record nothing inside: ``with dl.no_grad():``, or as a decorator.

    Results of operations inside do not require grad, and leaves may be changed in place, as in a
    training step. It holds for the current thread.

    Examples
    --------
    >>> import difflab as dl
    >>> w = dl.tensor(2.0, requires_grad=True)
    >>> with dl.no_grad():
    ...     (w * w).requires_grad
    False
    """

    enabled = False


class enable_grad(_Switch):  # noqa: N801
    """Record inside, also within `no_grad`.

    Examples
    --------
    >>> import difflab as dl
    >>> w = dl.tensor(2.0, requires_grad=True)
    >>> with dl.no_grad(), dl.enable_grad():
    ...     (w * w).requires_grad
    True
    """

    enabled = True


class inference_mode(_Switch):  # noqa: N801
    """Record nothing inside, ever: ``with dl.inference_mode():``, or as a decorator.

    As `no_grad`, and `enable_grad` inside has no effect. Tensors computed or created inside cannot
    be recorded later: an operation outside whose derivative needs its values, and setting
    `requires_grad` on it, raise a `TapeError`; its ``copy()`` is an ordinary tensor.

    Parameters
    ----------
    mode : bool
        False switches the mode off, inside another one.

    Examples
    --------
    >>> import difflab as dl
    >>> w = dl.tensor(2.0, requires_grad=True)
    >>> with dl.inference_mode():
    ...     y = w * w
    >>> y.requires_grad, (w + y).requires_grad
    (False, True)
    >>> w * y
    Traceback (most recent call last):
        ...
    difflab.errors.TapeError: the derivative of 'multiply' needs a tensor of inference_mode ...
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        require_flag(mode, "mode", "inference_mode")
        self.enabled = not mode

    def __enter__(self) -> None:
        self.before.append((MODE.enabled, MODE.inference))
        if not self.enabled:
            MODE.enabled, MODE.inference = False, True
        elif MODE.inference:
            MODE.enabled, MODE.inference = True, False


# --- steps ---------------------------------------------------------------------------------------

_next_number = count(1).__next__
"""Steps are numbered in creation order: a step's number exceeds those of its arguments."""


def storage_of(tensor: Any) -> Storage:
    """Return the storage of a tensor, created on first use."""
    storage: Storage | None = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage()
    return storage


def is_inference(tensor: Any) -> bool:
    """Whether a tensor was made under `inference_mode`."""
    storage = tensor._storage
    return storage is not None and storage.inference


def require_recordable(tensor: Any, name: str) -> None:
    """Raise `TapeError` if a tensor that the derivative of `name` needs is of `inference_mode`."""
    if is_inference(tensor):
        raise at_users_line(
            TapeError,
            f"the derivative of '{name}' needs a tensor of inference_mode",
            "pass its copy(), or compute it under no_grad()",
        )


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
        The slots that hold Python scalars, with their values: their recipes are simpler. The text
        of a zero tells 0.0 from -0.0.
    hooks : dict or None
        The registered hooks, which are called with the cotangent.
    retained : weak reference or None
        The tensor that retains the gradient.
    """

    __slots__ = (
        "edges",
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
    hooks: dict[int, Callable[..., Any]] | None
    retained: Any

    def __init__(
        self, plan: BackwardPlan, edges: tuple[TapeStep | Accumulation | None, ...]
    ) -> None:
        self.number = _next_number()
        self.plan = plan
        self.edges = edges
        self.slots = plan.blank
        self.numbers = ()
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
        self.slots = ()

    def check(self) -> None:
        """Raise `TapeError` if the step is freed."""
        if self.edges is None:
            raise TapeError(
                f"backward() reached '{self.name}', which an earlier backward() has freed",
                hint="pass retain_graph=True to the earlier backward(), or recompute the result",
            )

    def __repr__(self) -> str:
        return f"<step {self.name}>"


def history(last: TapeStep) -> list[TapeStep]:
    """Return the steps that a step depends on, itself included, in creation order."""
    steps = {last.number: last}
    pending = [last]
    while pending:
        for edge in pending.pop().edges or ():
            if isinstance(edge, TapeStep) and edge.number not in steps:
                steps[edge.number] = edge
                pending.append(edge)
    return [steps[number] for number in sorted(steps)]


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
