"""The result of an enclosure: intervals of value, Jacobian and Hessian, and obstacles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from difflab.balls.jets import ObstacleKind
from difflab.core.place import SourceLocation

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Proved bounds of values: each lies between its `lower` and its `upper`.

    Attributes
    ----------
    lower, upper : array
        float64, rounded outward; nan where there is no bound.
    """

    lower: Array
    upper: Array

    @property
    def width(self) -> Array:
        """The upper bound minus the lower bound, rounded up."""
        with np.errstate(invalid="ignore"):
            gap = self.upper - self.lower
            return np.where(gap > 0, np.nextafter(gap, np.inf), gap)

    def __contains__(self, numbers: object) -> bool:
        """Whether all of the given values lie within the bounds."""
        values = np.asarray(numbers, dtype=np.float64)
        return bool(np.all((self.lower <= values) & (values <= self.upper)))

    def __repr__(self) -> str:
        return f"Interval({self.lower.tolist()}, {self.upper.tolist()})"


@dataclass(frozen=True)
class Obstacle:
    """Why a derivative is not bounded.

    Attributes
    ----------
    output : str
        The output that has none.
    kind : str
        ``"kink"``: the function may be continuous with a derivative that jumps; ``"jump"``: it may
        jump; ``"edge"``: its domain may end; ``"pole"``: it may be unbounded; ``"undecided"``:
        neither could be excluded.
    reason : str
        The operation and where its argument lies.
    node : int
        The node of the graph.
    site : SourceLocation
        Where it was written.
    certain : bool
        Whether it is so at this point; else it could not be excluded.
    """

    output: str
    kind: ObstacleKind
    reason: str
    node: int
    site: SourceLocation
    certain: bool

    def __str__(self) -> str:
        site = f" ({self.site})" if str(self.site) else ""
        return f"{self.kind} in {self.output}: {self.reason}{site}"


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Proved bounds of a function and its derivatives, at a point or on a box.

    Attributes
    ----------
    value : Interval
        Of the output's shape; of shape ``(m,)`` where there are several outputs.
    jacobian : Interval or None
        Of shape ``(m, n)``; None for order 0. Rows of outputs with an obstacle are nan.
    hessian : Interval or None
        Of shape ``(n, n)``, or ``(m, n, n)`` for m output elements other than one; None for orders
        0 and 1.
    obstacles : tuple of Obstacle
        Why derivatives are missing, at most one for each output number.
    bits : int
        The precision that was needed.
    pieces : int
        The boxes into which the box was divided.
    sharp : bool
        Whether the bounds are as close as requested: at a point, the floats adjacent to the exact
        value; on a box, within `width` of the range.
    stopped : str
        How far the computation came if the time limit ended it; else empty.
    """

    value: Interval
    jacobian: Interval | None
    hessian: Interval | None
    obstacles: tuple[Obstacle, ...]
    bits: int
    pieces: int
    sharp: bool
    stopped: str = ""

    @property
    def smooth(self) -> bool:
        """Whether every output is proved to be differentiable everywhere on the box."""
        return not self.obstacles

    def __str__(self) -> str:
        named = (("value", self.value), ("jacobian", self.jacobian), ("hessian", self.hessian))
        lines = [f"{name} {_text(part)}" for name, part in named if part is not None]
        stopped = [self.stopped] if self.stopped and not self.obstacles else []
        return "\n".join([*lines, *map(str, self.obstacles), *stopped])


def _text(part: Interval) -> str:
    pairs = zip(part.lower.ravel().tolist(), part.upper.ravel().tolist(), strict=True)
    shown = [f"[{low!r}, {high!r}]" for low, high in pairs]
    return ", ".join(shown[:6]) + (" …" if len(shown) > 6 else "")
