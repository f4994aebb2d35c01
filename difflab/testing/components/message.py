"""A failed gradient check: its message, with wrong components and the likely mistake; errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.table import Column, Table
from difflab.errors import DifflabError
from difflab.referee.ulp import ulp_distance
from difflab.testing.components.mistakes import (
    COARSE,
    ROUNDINGS,
    coarse_dtype,
    precision_text,
    simple_factor,
)

if TYPE_CHECKING:
    from difflab.differences.window import Slope
    from difflab.testing.components.verdict import CheckSettings


_SHOWN = 10
_ALIKE = 1e-6
_ROUGH = 0.01  # the most that an error bar adds to that
_OF_ERROR = 0.05
_NEAR = 0.05


@dataclass(frozen=True)
class Component:
    """One wrong component of a gradient.

    Attributes
    ----------
    name : str
        Such as ``x[1]``, or ``dy[0]/dx[1]`` in a Jacobian.
    yours, numeric, bar : float
        The value under test, the numeric value, and the error bar of the numeric value.
    left, right : float
        The one-sided derivatives; they differ at a kink.
    noise : float
        The error of the function's values, if it is larger than rounding; otherwise 0.
    eps : float
        The spacing at 1 of the dtype, whose ULPs are counted.
    """

    name: str
    yours: float
    numeric: float
    bar: float
    left: float
    right: float
    noise: float = 0.0
    eps: float = 2.0**-52

    @classmethod
    def along(
        cls, name: str, yours: float, error: Slope, output: int = 0, eps: float = 2.0**-52
    ) -> Component:
        """Return the component from the slope of its error, numeric minus `yours`."""
        numeric, jump = yours + float(error.value[output]), float(error.half_jump[output])
        bar = float(error.bar[output])
        return cls(name, yours, numeric, bar, numeric - jump, numeric + jump, eps=eps)

    @property
    def kink(self) -> bool:
        """Whether the one-sided derivatives differ."""
        return self.left != self.right

    def line(self) -> tuple[str, str, str, str, str, str]:
        """Return the cells of the component's row in the message's table."""
        error = abs(self.yours - self.numeric)
        relative = error / abs(self.numeric) if self.numeric else np.inf
        numeric = f"{self.left!r} … {self.right!r}" if self.kink else repr(self.numeric)
        return (
            self.name,
            repr(self.yours),
            numeric,
            f"{self.bar:.1e}",
            f"{relative:.1e}",
            f"{self.ulps:.1e}",
        )

    @property
    def ulps(self) -> float:
        """The error in ULPs of the dtype."""
        if self.eps <= 2.0**-52:
            return float(ulp_distance(self.yours, self.numeric))
        size = np.ldexp(1.0, int(np.frexp(self.numeric)[1]) - 1) if self.numeric else np.inf
        return float(abs(self.yours - self.numeric) / (self.eps * size))


def describe(
    wrong: Sequence[Component],
    unjudged: Sequence[Component],
    total: int,
    *,
    source: str,
    allowed: CheckSettings,
    hint: str,
) -> str:
    """Return the message of a failed check.

    Parameters
    ----------
    wrong, unjudged : sequence of Component
        The components that failed, and those that could not be judged.
    total : int
        The number of components.
    source : str
        How the numeric values were computed.
    allowed : CheckSettings
        The tolerances, which are added to the error bar.
    hint : str
        The likely mistake; empty if unknown.
    """
    lines = []
    if wrong:
        noun = "component" if total == 1 else "components"
        lines += [f"the gradient is wrong in {len(wrong)} of {total} {noun}", *table_of(wrong)]
        if any(component.kink for component in wrong):
            lines.append("at a kink, any value between the one-sided derivatives passes")
        if hint:
            lines.append(hint)
    if unjudged:
        lines += _unjudged(unjudged, total)
    noise = max((component.noise for component in (*wrong, *unjudged)), default=0.0)
    if noise:
        lines.append(f"the values of f are noisy: off by about {noise:.0e}")
    tolerance = f"rtol={allowed.rtol:g}" + (f" and atol={allowed.atol:g}" if allowed.atol else "")
    lines.append(f"numeric values: {source}; tolerance: {tolerance} beyond the error bar")
    return "\n".join(lines)


def _unjudged(components: Sequence[Component], total: int) -> list[str]:
    """Return the lines of the message about components that could not be judged."""
    if len(components) == 1:
        head = f"could not judge component {components[0].name}"
    else:
        head = f"could not judge {len(components)} of {total} components"
    return [
        head,
        *table_of(components, columns=4),
        "the error bar is too wide to tell a right value from a wrong one: check that term",
        "separately, or pass the acceptable absolute error as atol",
    ]


def table_of(components: Sequence[Component], columns: int = 6) -> list[str]:
    """Return a table of the components, with headings and aligned columns."""
    head = ("component", "yours", "numeric", "error bar", "relative", "ULPs")
    rows = [component.line()[:columns] for component in components[:_SHOWN]]
    lines = [Table([*map(Column, head[:columns])], rows).text(indent="  ")]
    if len(components) > _SHOWN:
        lines.append(f"  … and {len(components) - _SHOWN} more")
    return lines


def diagnose(
    yours: NDArray[float64],
    numeric: NDArray[float64],
    wrong: NDArray[np.bool_],
    fixed: NDArray[np.bool_],
    bars: NDArray[float64],
) -> str:
    """Return the likely mistake; empty if the errors match no common mistake.

    Parameters
    ----------
    yours, numeric : ndarray, shape (m, n)
        The Jacobian under test and the numeric one.
    wrong : ndarray of bool, shape (m, n)
        Which components failed.
    fixed : ndarray of bool, shape (m, n)
        Which components have an exact reference, because the function could be traced.
    bars : ndarray, shape (m, n)
        The error bars of the numeric values.
    """
    bad, good = yours[wrong], numeric[wrong]
    if not np.all(np.isfinite(bad)) or not np.all(np.isfinite(good)):
        return ""
    room = np.broadcast_to(bars, yours.shape)
    rough = room[wrong]
    off = np.abs(bad - good)
    if _alike(bad, -good, rough, off):
        return "likely a sign error: in these components yours is minus the numeric value"
    whole = np.abs(yours - numeric)
    if yours.shape[0] == yours.shape[1] > 1 and _alike(yours, numeric.T, room, whole.max()):
        return "likely transposed: rows must be outputs, columns must be inputs"
    dtype = coarse_dtype(bad)
    if dtype and bool(np.all(off <= ROUNDINGS * COARSE[dtype] * np.abs(good) + rough)):
        return precision_text(dtype)
    if bad.size > 1 and _alike(np.sort(bad), np.sort(good), rough.max(), off.min()):
        return "likely permuted: the wrong components have each other's values"
    if bad.size > 1 and np.all(good != 0) and bad.any():
        ratio = float(np.median(bad / good))
        if _alike(bad, ratio * good, (1 + abs(ratio)) * rough, off):
            return (
                f"likely a wrong factor: yours is {_factor(ratio, rough / np.abs(good))} times "
                "the numeric value"
            )
    if (
        bad.size == 1 < yours.size
        and good[0]
        and (factor := simple_factor(float(bad[0] / good[0])))
    ):
        return f"likely a wrong factor: yours is {factor} times the numeric value"
    if np.all(off <= _NEAR * np.abs(good)) and not np.any(fixed & wrong):
        return (
            "the errors are small: if f iterates to a tolerance or chooses its own steps, "
            "allow for its error with rtol or atol"
        )
    return ""


def _factor(ratio: float, room: NDArray[float64]) -> str:
    """Return a factor with the digits that the error bars leave, and that tell it from 1."""
    least = max(float(np.min(room)), 1e-9)
    for digits in range(2, 10):
        near = float(f"{ratio:.{digits}g}")
        if abs(near - ratio) <= least * abs(ratio) and near != 1.0:
            return f"{near:.{digits}g}"
    return f"{ratio:.10g}"


def _alike(
    yours: NDArray[float64],
    explained: NDArray[float64],
    room: NDArray[float64] | float,
    off: NDArray[float64] | float,
) -> bool:
    """Whether a mistake, applied to the reference, reproduces the values under test.

    It may leave the error bars, which must not hide the values, and a small share of the errors.
    """
    size = np.abs(explained)
    left = np.abs(yours - explained)
    near = left <= np.maximum(
        np.minimum(_ALIKE * size, _OF_ERROR * off), np.minimum(room, _ROUGH * size)
    )
    # An error bar as large as the error explains nothing.
    near &= left <= 0.5 * off
    return bool(np.all(near)) and bool(np.any(yours != 0))


class GradientMismatch(DifflabError, AssertionError):
    """The gradient disagrees with numeric differentiation; the message lists the components.

    Attributes
    ----------
    components : tuple of Component
        The wrong components: both values and the error bar of the numeric value.
    unjudged : tuple of Component
        The components that could not be judged.
    """

    __module__ = "difflab.testing.gradient"  # the name in tracebacks, beside `check_gradient`

    def __init__(
        self,
        message: str,
        components: tuple[Component, ...] = (),
        unjudged: tuple[Component, ...] = (),
    ) -> None:
        super().__init__(message)
        self.components = components
        self.unjudged = unjudged


class GradientUnjudged(GradientMismatch):
    """No component is wrong, but some could not be judged; the message lists them."""

    __module__ = "difflab.testing.gradient"


class ImpureFunction(GradientMismatch):
    """The function changes its argument, or two calls at one point differ; the message says why.

    Its derivative cannot be judged.
    """

    __module__ = "difflab.testing.gradient"
