"""`Shaped`: the methods of NumPy's arrays that count, move and add elements of any kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from difflab.arrays import reductions, shapes
from difflab.arrays.given import mismatch
from difflab.core.place import at_users_line
from difflab.errors import UnsizedError


class Shaped:
    """What values with a shape have in common, real or complex."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...  # noqa: D102
        def __getitem__(self, key: Any) -> Any: ...

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Any:
        """The axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise mismatch(f"mT needs an array with at least two axes, not the shape {self.shape}")
        return shapes.transpose(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def __len__(self) -> int:
        if not self.shape:
            raise at_users_line(UnsizedError, "a number has no length and cannot be iterated over")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    mean, sum = reductions.mean, reductions.sum

    def ravel(self) -> Any:
        """Return all elements in one axis."""
        return shapes.ravel(self)

    def reshape(self, *shape: Any) -> Any:
        """Return the same values in another shape."""
        return shapes.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        """Permute the axes, or reverse their order."""
        order: Sequence[int] | None = axes[0] if len(axes) == 1 else axes or None
        return shapes.transpose(self, order)
