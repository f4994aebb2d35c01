"""Changes in place of tensors: how a tensor takes other values, and how it is read as a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab.core.apply import OtherCarrierError
from difflab.core.devices import module_of
from difflab.core.place import at_users_line, user_position
from difflab.core.storage import Step, Storage, View
from difflab.eager.recording.mode import MODE
from difflab.eager.recording.record import TapedArray
from difflab.eager.recording.tape import Accumulation, TapeStep, require_recordable, storage_of
from difflab.errors import TapeError


class Changes(TapedArray):
    """The protocol of `difflab.arrays.in_place` for a tensor.

    Its array is never written to: a change gives it another one, so that tapes keep old values.
    """

    __slots__ = ()

    def is_number(self) -> bool:
        """Whether it is a NumPy number, which Python rebinds where it changes an array."""
        own = self._view is None and type(self._step) is not Accumulation
        return own and isinstance(self._data, np.generic)

    def __difflab_in_rows__(self) -> bool:
        """Whether its elements are in row-major order in memory."""
        return bool(self._data.flags.c_contiguous)

    def __difflab_renamed__(self, new: Any) -> Any:
        """Return what a name stands for after an augmented assignment to a number."""
        step = self._step
        if isinstance(step, TapeStep) and step.retained is not None and step.retained() is self:
            new.retain_grad()
        return new

    def __difflab_as_own__(self, value: Any) -> Any:
        """Return new elements as a tensor."""
        if isinstance(value, TapedArray):
            return value
        if hasattr(value, "__difflab_apply__"):
            raise OtherCarrierError(value)
        return self._own(module_of(self._data).asarray(value))

    def __difflab_writable__(self, what: str) -> None:
        """Raise `TapeError` for a leaf that requires grad, while operations are recorded."""
        if MODE.enabled and type(self._step) is Accumulation:
            raise at_users_line(
                TapeError,
                f"{what} would change a leaf that requires grad while operations are recorded",
                "update it inside `with dl.no_grad():`, or compute a new value: t = t + 1",
            )

    def __difflab_store__(self, new: Any, what: str) -> None:
        """Take the values and the step of another tensor, and count the change."""
        step = new._step  # read before the change, of which a view of this tensor would take part
        if step is not None:
            require_recordable(self, what)
        storage, data = storage_of(self), self._data
        values = _laid_out_as(data, new._data)
        for holder in storage.holders(self):  # other references to the old array keep it
            holder._data, holder._storage = values, storage
        storage.changes += 1
        storage.last = what, user_position()
        if MODE.enabled:
            _set_step(self, step)


class ViewedArray(Changes):
    """A tensor that shares elements with another, of which it is a view.

    `_seen` is the number of changes of the owner, whose storage it has, that were made when the
    values were read, and `_recorded` whether derivatives flow from it to the owner: it was made
    while operations were recorded.
    """

    __slots__ = ("_edge", "_owner", "_recorded", "_seen", "_steps", "_values")

    _owner: TapedArray
    _steps: Step
    _storage: Storage
    _seen: int
    _recorded: bool
    _values: Any
    _edge: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, which no change in place alters."""
        return self._values.shape  # type: ignore[no-any-return]

    @property
    def _view(self) -> View:  # type: ignore[override]  # is never set
        """How it is read from its owner: most views are never written to."""
        return View(self._owner, self._steps)

    @property
    def _data(self) -> Any:
        if self._seen != self._storage.changes:
            self._read()
        return self._values

    @_data.setter
    def _data(self, value: Any) -> None:
        self._values = value

    @property
    def _step(self) -> Any:
        if self._seen != self._storage.changes:
            self._read()
        return self._edge

    @_step.setter
    def _step(self, step: Any) -> None:
        self._edge = step

    def _read(self) -> None:
        """Read the values and the step from the owner, which has changed."""
        before, owner = MODE.enabled, self._owner
        self._seen = self._storage.changes
        step = self._edge
        MODE.enabled = self._recorded and not MODE.inference
        try:
            found = self._view.applied(self._own(owner._data, owner._step, owner._storage))
        finally:
            MODE.enabled = before
        data = found._data
        self._values = np.asarray(data) if isinstance(data, np.generic) else data
        if type(step) is not Accumulation:
            _set_step(self, found._step)

    def __difflab_seen__(self, new: Any) -> None:
        """Do nothing: the values are read again, in the memory order of a view of the owner."""


def _laid_out_as(before: Any, new: Any) -> Any:
    """Return a new array in the memory order of the one that it replaces."""
    if not isinstance(before, np.ndarray):
        return new
    if isinstance(new, np.ndarray) and new.strides == before.strides:
        return new
    made = np.empty_like(before)
    made[...] = new
    return made


def _set_step(target: Any, made: Any) -> None:
    """Set the step of a tensor's new values, and move a retained gradient to that step."""
    before = target._step
    target._step = made
    retained = isinstance(before, TapeStep) and before.retained is not None
    if retained and made is not None and before.retained() is target:
        made.retained, before.retained = before.retained, None
