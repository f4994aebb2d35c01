"""Records of failed operations: the operation, its operands, its source location.

Graphs and eager tensors are both reported with these, so that the texts agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from difflab.core.place import NOWHERE, SourceLocation
from difflab.core.primitive import Primitive
from difflab.core.wording import exact, shape_text

NAMED = 6


class AnomalyKind(StrEnum):
    """Failure of an operation with finite operands."""

    NAN = "nan"
    INFINITE = "infinite"
    OVERFLOW = "overflow"
    CANCELLATION = "cancellation"


@dataclass(frozen=True)
class Finding:
    """An operation that returned nan, infinity or an element without a correct digit.

    Attributes
    ----------
    kind : AnomalyKind
        The failure: `INFINITE` at a pole, `OVERFLOW` where the exact value is finite.
    operation : str
        The primitive's name; empty for an input or a constant.
    call : str
        The operation with its operands: ``log(-1)``.
    operands : tuple
        Their values: scalars at the element, or whole arrays.
    result : float
        The value it returned.
    site : SourceLocation
        The source location of the operation; in a gradient, of the forward operation.
    exact : float or None
        The exact value of a cancelled sum, where it was computed.
    needs : str
        The operation's domain, as text.
    gradient : bool
        Whether it occurred in the reverse sweep.
    derivative_of : str
        In a gradient, the forward operation with its operands, ``sqrt(0)``; empty where
        contributions were added.
    inputs : tuple of str
        In a gradient, the inputs whose gradients depend on it.
    element : tuple of int
        The index into an array result.
    point : int or None
        The index of the point in a batch.
    """

    kind: AnomalyKind
    operation: str
    call: str
    operands: tuple[Any, ...]
    result: float
    site: SourceLocation = NOWHERE
    exact: float | None = None
    needs: str = ""
    gradient: bool = False
    derivative_of: str = ""
    inputs: tuple[str, ...] = ()
    element: tuple[int, ...] = ()
    point: int | None = None

    def __str__(self) -> str:
        parts = [f"{self._scope()}{self._event()}"]
        if self.element:
            parts.append(f"at element [{', '.join(map(str, self.element))}]")
        if self.point is not None:
            parts.append(f"at point {self.point} of the batch")
        return ", ".join(parts)

    def render(self) -> str:
        """Return the message, with the source location marked below it."""
        return self.site.marked(str(self))

    def _scope(self) -> str:
        """Return the location part of the message, up to the colon."""
        location = f" at {self.site}" if str(self.site) else ""
        if not self.gradient:
            return f"{self.operation or 'value'}{location}: "
        inputs = ", ".join(self.inputs[:NAMED]) + (", …" if len(self.inputs) > NAMED else "")
        of = f" of {inputs}" if inputs else ""
        if not self.derivative_of:
            return f"in the gradient{of}, where contributions are added{location}: "
        return f"in the gradient{of}, from the derivative of {self.derivative_of}{location}: "

    def _event(self) -> str:
        result = number_text(self.result)
        if self.kind is AnomalyKind.OVERFLOW:
            return f"overflow, {self.call} = {result}"
        if self.kind is AnomalyKind.CANCELLATION:
            exact = "" if self.exact is None else f", exact {number_text(self.exact)}"
            return f"total cancellation, {self.call} = {result}{exact}"
        needs = f" ({self.operation} needs {self.needs})" if self.needs else ""
        return f"{self.call} is {result}{needs}"


@dataclass(frozen=True)
class GradientBlock:
    """An operation whose derivative is zero, so that a gradient stops there.

    Attributes
    ----------
    operation, call : str
        The primitive's name, and the operation with its operands.
    reason : str
        Why its derivative is zero.
    site : SourceLocation
        Its source location.
    """

    operation: str
    call: str
    reason: str
    site: SourceLocation = NOWHERE

    def __str__(self) -> str:
        location = f" at {self.site}" if str(self.site) else ""
        return f"{self.call}{location}: {self.reason}"


@dataclass(frozen=True)
class ZeroGradient:
    """An input whose gradient is exactly zero, or from which no path leads to the output.

    Attributes
    ----------
    name : str
        The input's name.
    path : bool
        Whether a path leads from it to the output.
    count, size : int
        The number of its elements with a zero gradient, and of all its elements.
    element : tuple of int
        The index of the first of them.
    points : int
        The number of points of a batch with a zero gradient; 0 without a batch.
    point : int or None
        The index of the first of those points.
    blocks : tuple of GradientBlock
        The operations that make it zero; empty where they were not determined.
    """

    name: str
    path: bool
    count: int = 1
    size: int = 1
    element: tuple[int, ...] = ()
    points: int = 0
    point: int | None = None
    blocks: tuple[GradientBlock, ...] = ()

    def __str__(self) -> str:
        name = self.name
        if self.element and self.count == 1:
            name += f"[{', '.join(map(str, self.element))}]"
        some = ""
        if self.element and self.count > 1:
            first = ", ".join(map(str, self.element))
            some = f" in {self.count:,} of {self.size:,} elements, first [{first}]"
        if self.point is not None:
            some += f" at {self.points:,} points, first point {self.point}"
        if not self.path:
            return f"{name}: no path to the output{some}"
        blocks = "; ".join(map(str, self.blocks))
        return f"{name}: gradient exactly 0{some}" + (f", blocked by {blocks}" if blocks else "")


def number_text(value: Any) -> str:
    """Return a scalar in its shortest form, ``1e16``, ``0.1``; an array by its shape.

    Examples
    --------
    >>> number_text(1e16), number_text(-1.0), number_text(0.30000000000000004)
    ('1e16', '-1', '0.30000000000000004')
    """
    array = np.asarray(value)
    if array.ndim:
        return f"<{shape_text(array.shape)} array>"
    if array.dtype == bool:
        return str(bool(array)).lower()
    return exact(float(array))


def call_text(row: Primitive | None, operands: Sequence[Any]) -> str:
    """Return an operation with its operands as source text: ``log(-1)``, ``1e16 - 1e16``.

    Examples
    --------
    >>> from difflab.primitives import divide, log
    >>> call_text(log, [-1.0]), call_text(divide, [1.0, -2.0])
    ('log(-1)', '1 / (-2)')
    """
    shown = [number_text(operand) for operand in operands[:NAMED]]
    if row is None:
        return shown[0]
    if row.infix and len(shown) == 2:
        right = f"({shown[1]})" if shown[1].startswith("-") else shown[1]
        return f"{shown[0]} {row.infix} {right}"
    more = ", …" if len(operands) > NAMED else ""
    return f"{row.names[0] if row.names else row.name}({', '.join(shown)}{more})"


def operands_at(
    operands: Sequence[Any], element: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[Any, ...]:
    """Return the operands, as scalars, of one element of an elementwise result of `shape`."""
    return tuple(np.broadcast_to(operand, shape)[element].item() for operand in operands)
