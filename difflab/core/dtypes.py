"""Binary floating-point formats: rounding to them, their spacing and range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, inf, isfinite
from typing import TYPE_CHECKING, Any

from difflab.errors import InputError

# The protocol of methods names formats before NumPy is loaded: what compares begins in a process.
if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DOUBLE", "FORMATS", "FloatFormat", "formats"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format of IEEE 754's kind.

    Attributes
    ----------
    name : str
        Its name as a dtype.
    digits : int
        The bits of a significand, the leading one included.
    top : int
        The largest binary exponent: numbers are below ``2**(top + 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> half = FORMATS["float16"]
    >>> half.largest, half.eps, half.rounded(np.array([0.1, 1e5, 1e-9])).tolist()
    (65504.0, 0.0009765625, [0.0999755859375, inf, 0.0])
    """

    name: str
    digits: int
    top: int

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the format of this name in another process, too."""
        return _named, (self.name,)

    @property
    def eps(self) -> float:
        """The spacing of the numbers above 1."""
        return 2.0 ** (1 - self.digits)

    @property
    def largest(self) -> float:
        """The largest number."""
        return (2.0 - self.eps) * 2.0**self.top

    def rounded(self, values: Any) -> NDArray[Any]:
        """Return values rounded to nearest, ties to even, as float64; truth values as they are."""
        import numpy as np

        found = np.asarray(values)
        if self is DOUBLE or found.dtype == bool:
            return found
        flat: NDArray[Any] = np.ravel(found).astype(np.float64)
        with np.errstate(all="ignore"):
            unit = np.maximum(np.frexp(flat)[1], 2 - self.top) - self.digits
            flat = np.ldexp(np.rint(np.ldexp(flat, -unit)), unit)
            flat[np.abs(flat) > self.largest] *= inf
        return flat.reshape(found.shape)

    def nearest(self, number: Fraction) -> float:
        """Return the number of the format nearest to a fraction, rounded once."""
        if not number:
            return 0.0
        size = Fraction(self.spacing(float(number)))
        found = round(number / size) * size
        return float(found) if abs(found) <= self.largest else inf if found > 0 else -inf

    def spacing(self, number: float) -> float:
        """Return the unit in the last place of a number."""
        if not isfinite(number):
            return inf
        least = 2 - self.top
        return 2.0 ** (max(frexp(number)[1] if number else least, least) - self.digits)


DOUBLE = FloatFormat("float64", 53, 1023)
FORMATS: Mapping[str, FloatFormat] = {
    each.name: each
    for each in (
        DOUBLE,
        FloatFormat("float32", 24, 127),
        FloatFormat("float16", 11, 15),
        FloatFormat("bfloat16", 8, 127),
    )
}


def _named(name: str) -> FloatFormat:
    return FORMATS[name]


def formats(names: str | Sequence[str] | None) -> list[FloatFormat]:
    """Return the formats of these names, by default float64.

    Raises
    ------
    InputError
        One is unknown.

    Examples
    --------
    >>> [each.digits for each in formats("float32,bfloat16")]
    [24, 8]
    """
    listed = names.split(",") if isinstance(names, str) else [*(names or ("float64",))]
    found = []
    for name in (str(each).strip() for each in listed):
        if name not in FORMATS:
            raise InputError(f"there is no dtype {name!r}", hint=f"one of {', '.join(FORMATS)}")
        found.append(FORMATS[name])
    return list(dict.fromkeys(found)) or [DOUBLE]
