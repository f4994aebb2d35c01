"""A failed check of a derivative: its errors, its message, and the likely mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from difflab.core.table import Column, Table
from difflab.errors import DifflabError
from difflab.referee.ulp import ulp_distance
from difflab.testing.checker.leaves import Array

if TYPE_CHECKING:
    from difflab.differences.window import Slope
    from difflab.testing.checker.truth import CheckSettings


COARSE = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23}
"""Spacing at 1 of the dtypes in which a gradient of float64 may have been computed."""
ROUNDINGS = 4.0
"""Most spacings by which a gradient that was computed in a coarser dtype errs."""


def coarse_dtype(yours: Array) -> str:
    """Return the coarsest dtype that represents a gradient; empty if only float64 does.

    Numbers of few bits, such as small integers, say nothing.

    Examples
    --------
    >>> coarse_dtype(np.array([0.1, 0.2])), coarse_dtype(np.array([0.5, 3.0]))
    ('', '')
    >>> coarse_dtype(np.array([0.1, 0.2], dtype=np.float32).astype(float))
    'float32'
    """
    with np.errstate(all="ignore"):
        for name, eps in COARSE.items():
            # Fewer than half of the bits, or than 16 in all, may be chance.
            bits = -np.log2(eps)
            scaled = np.frexp(yours)[0] * 2.0 ** (bits // 2)
            chance = yours.size * bits < 16 or bool((scaled == np.round(scaled)).all())
            if np.array_equal(_shortened(yours, name), yours):
                return "" if chance else name
    return ""


def _shortened(yours: Array, name: str) -> Array:
    """Return a gradient with the bits of a coarser dtype; NumPy itself has no bfloat16."""
    if name != "bfloat16":
        return yours.astype(name).astype(np.float64)
    upper: Array = (yours.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    return upper.astype(np.float64)


def precision_text(dtype: str, name: str = "yours") -> str:
    """Return in words that a gradient has the precision of a coarser dtype.

    Examples
    --------
    >>> precision_text("float32")
    'yours has the precision of float32: compute it in float64'
    """
    where = "" if name == "yours" else f"in {name}, "
    return f"{where}yours has the precision of {dtype}: compute it in float64"


def guesses(yours: Array, shape: tuple[int, ...], *, complex_: bool) -> Iterator[tuple[str, Array]]:
    """Yield each mistake's name and the correct gradient that it would change to this one.

    Parameters
    ----------
    yours : ndarray (size,)
        The gradient under test, flattened; with real and imaginary parts if complex.
    shape : tuple of int
        The shape of the array.
    complex_ : bool
        Whether the array is complex.

    Examples
    --------
    >>> [text for text, right in guesses(np.arange(4.0), (2, 2), complex_=False)][:2]
    ['a sign error: yours is minus the numeric value', 'transposed: axes 0 and 1 are exchanged']
    """
    yield "a sign error: yours is minus the numeric value", -yours
    if complex_:
        conjugate = yours.copy()
        conjugate[1::2] *= -1.0
        yield "the other convention of complex gradients: yours is the conjugate", conjugate
        return
    array = yours.reshape(shape)
    if len(shape) == 2 and min(shape) > 1:
        text = "transposed: axes 0 and 1 are exchanged"
        yield text, array.T.ravel()
        if shape[0] != shape[1]:  # transposed, and then reshaped
            yield text, array.reshape(shape[::-1]).T.ravel()
    for axis, size in enumerate(shape):
        if size > 2:
            where = f" along axis {axis}" if len(shape) > 1 else ""
            for shift in (1, -1):
                moved = np.roll(array, shift, axis).ravel()
                yield f"off by one index{where}: yours is shifted by {-shift:+d}", moved
            yield f"reversed{where}", np.flip(array, axis).ravel()


def factor_text(ratio: float, sizes: dict[str, int]) -> str:
    """Return a factor in words: a fraction, or the number of elements that a mean divides by.

    Examples
    --------
    >>> factor_text(0.5, {}), factor_text(32.0, {"the number of elements of x": 32})
    ('1/2', '32, the number of elements of x')
    """
    text = _simple_factor(ratio) or f"{ratio:.6g}"
    for name, size in sizes.items():
        if size > 2 and abs(ratio / size - 1) < 1e-6:
            return f"{size}, {name}"
        if size > 2 and abs(ratio * size - 1) < 1e-6:
            return f"1/{size}, 1 over {name}"
    return text


def _simple_factor(ratio: float) -> str:
    """Return a factor as a fraction of small integers; empty if it is none.

    Examples
    --------
    >>> _simple_factor(0.125), _simple_factor(-2.0000000001), _simple_factor(1.001)
    ('1/8', '-2', '')
    """
    near = Fraction(ratio).limit_denominator(16)
    return str(near) if near and abs(ratio / near - 1) < 1e-6 else ""


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
    yours: Array,
    numeric: Array,
    wrong: NDArray[np.bool_],
    fixed: NDArray[np.bool_],
    bars: Array,
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
    margin = np.broadcast_to(bars, yours.shape)
    rough = margin[wrong]
    off = np.abs(bad - good)
    if _alike(bad, -good, rough, off):
        return "likely a sign error: in these components yours is minus the numeric value"
    whole = np.abs(yours - numeric)
    if yours.shape[0] == yours.shape[1] > 1 and _alike(yours, numeric.T, margin, whole.max()):
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
        and (factor := _simple_factor(float(bad[0] / good[0])))
    ):
        return f"likely a wrong factor: yours is {factor} times the numeric value"
    if np.all(off <= _NEAR * np.abs(good)) and not np.any(fixed & wrong):
        return (
            "the errors are small: if f iterates to a tolerance or chooses its own steps, "
            "allow for its error with rtol or atol"
        )
    return ""


def _factor(ratio: float, margin: Array) -> str:
    """Return a factor with the digits that the error bars leave, and that tell it from 1."""
    least = max(float(np.min(margin)), 1e-9)
    for digits in range(2, 10):
        near = float(f"{ratio:.{digits}g}")
        if abs(near - ratio) <= least * abs(ratio) and near != 1.0:
            return f"{near:.{digits}g}"
    return f"{ratio:.10g}"


def _alike(
    yours: Array,
    explained: Array,
    margin: Array | float,
    off: Array | float,
) -> bool:
    """Whether a mistake, applied to the reference, reproduces the values under test.

    It may leave the error bars, which must not hide the values, and a small share of the errors.
    """
    size = np.abs(explained)
    left = np.abs(yours - explained)
    near = left <= np.maximum(
        np.minimum(_ALIKE * size, _OF_ERROR * off), np.minimum(margin, _ROUGH * size)
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
