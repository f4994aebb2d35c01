"""What a failed gradient check says: the wrong components, and what the mistake looks like.

May import NumPy and `difflab.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

__all__ = ["Component", "describe", "diagnose", "ulps"]

_SHOWN = 10
_ALIKE = 1e-6


@dataclass(frozen=True)
class Component:
    """One wrong component of a gradient.

    Attributes
    ----------
    name : str
        Such as ``x[1]``, or ``dy[0]/dx[1]`` in a Jacobian.
    yours, numeric, bar : float
        The value under test, the numeric value, and the numeric method's own error bar.
    left, right : float
        The one-sided derivatives; they differ at a kink.
    """

    name: str
    yours: float
    numeric: float
    bar: float
    left: float
    right: float

    @property
    def kink(self) -> bool:
        """Whether the one-sided derivatives differ."""
        return self.left != self.right

    def line(self) -> tuple[str, str, str, str, str, str]:
        """Return the cells of the component's line in the message."""
        error = abs(self.yours - self.numeric)
        relative = error / abs(self.numeric) if self.numeric else np.inf
        numeric = f"{self.left!r} … {self.right!r}" if self.kink else repr(self.numeric)
        return (
            self.name,
            repr(self.yours),
            numeric,
            f"{self.bar:.1e}",
            f"{relative:.1e}",
            f"{ulps(self.yours, self.numeric):.1e}",
        )


def ulps(value: float, truth: float) -> float:
    """Return the distance in units in the last place of `truth`.

    Examples
    --------
    >>> ulps(1.0000000000000002, 1.0)
    1.0
    """
    with np.errstate(all="ignore"):
        return float(abs(value - truth) / np.spacing(abs(float64(truth))))


def describe(wrong: list[Component], total: int, source: str, rtol: float, hint: str) -> str:
    """Return the whole message.

    Parameters
    ----------
    wrong : list of Component
        The components that failed, in order.
    total : int
        How many components there are.
    source : str
        Where the numeric values come from.
    rtol : float
        The relative tolerance that was allowed beside the error bar.
    hint : str
        What the mistake looks like, or nothing.
    """
    noun = "component" if total == 1 else "components"
    lines = [f"the gradient is wrong in {len(wrong)} of {total} {noun}"]
    head = ("component", "yours", "numeric", "error bar", "relative", "ULPs")
    cells = [head, *(component.line() for component in wrong[:_SHOWN])]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines += [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    if len(wrong) > _SHOWN:
        lines.append(f"  … and {len(wrong) - _SHOWN} more")
    if any(component.kink for component in wrong):
        lines.append("at a kink any value between the one-sided derivatives would pass")
    if hint:
        lines.append(hint)
    lines.append(f"numeric values: {source}; allowed: rtol={rtol:g} beside the error bar")
    return "\n".join(lines)


def diagnose(yours: NDArray[float64], numeric: NDArray[float64], wrong: NDArray[np.bool_]) -> str:
    """Return what the mistake looks like, when it looks like a usual one.

    Parameters
    ----------
    yours, numeric : ndarray, shape (m, n)
        The Jacobian under test and the numeric one.
    wrong : ndarray of bool, shape (m, n)
        Which components failed.
    """
    bad, good = yours[wrong], numeric[wrong]
    if not np.all(np.isfinite(bad)) or not np.all(np.isfinite(good)):
        return ""
    if _alike(bad, -good):
        return "it looks like a sign: yours is minus the numeric value there"
    if yours.shape[0] == yours.shape[1] > 1 and _alike(yours, numeric.T):
        return "it looks transposed: rows should be outputs, columns inputs"
    if bad.size > 1 and _alike(np.sort(bad), np.sort(good)):
        return "it looks like an order: the wrong components hold each other's values"
    if bad.size > 1 and np.all(good != 0) and bad[0] != 0 and _alike(bad / good, bad[0] / good[0]):
        return f"it looks like a factor: yours is {bad[0] / good[0]:.6g} times the numeric value"
    return ""


def _alike(a: NDArray[float64], b: NDArray[float64] | float) -> bool:
    return bool(np.all(np.abs(a - b) <= _ALIKE * np.abs(a))) and bool(np.any(a != 0))
