"""Binary floating-point formats: rounding to them, their spacing and range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from difflab.errors import InputError

# The protocol of methods names formats before NumPy is loaded in a new process.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        The largest binary exponent: values are below ``2**(top + 1)``.

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
        return format_of, (self.name,)

    @property
    def eps(self) -> float:
        """The spacing of floats above 1."""
        return 2.0 ** (1 - self.digits)

    @property
    def roundoff(self) -> float:
        """The unit roundoff: the largest relative error of rounding to nearest."""
        return self.eps / 2

    @property
    def largest(self) -> float:
        """The largest number."""
        return (2.0 - self.eps) * 2.0**self.top

    @property
    def normal(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.top)

    @property
    def bits(self) -> int:
        """The bits of one number in memory; the leading one of the significand is not stored."""
        return self.digits + (self.top + 1).bit_length()

    @property
    def width(self) -> tuple[int, int]:
        """Sorts formats, the narrowest first."""
        return self.bits, self.digits

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype in which values of the format are computed: float32 for bfloat16."""
        import numpy as np

        return np.dtype("float32" if self.name == "bfloat16" else self.name)

    def cast(self, values: Any) -> Any:
        """Return values rounded to nearest, ties to even, in `dtype`; truth values as they are."""
        import numpy as np

        array = np.asarray(values)
        exists = self.dtype.name == self.name
        if array.dtype == bool or (exists and array.dtype == self.dtype):
            return array[()]
        with np.errstate(all="ignore"):
            return (array if exists else self._emulated(array)).astype(self.dtype)[()]

    def _emulated(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values rounded to a format that NumPy lacks, as float64."""
        import numpy as np

        rounded: NDArray[Any] = values.astype(np.float64)
        unit = np.maximum(np.frexp(rounded)[1], 2 - self.top) - self.digits
        rounded = np.asarray(np.ldexp(np.rint(np.ldexp(rounded, -unit)), unit))
        rounded[np.abs(rounded) > self.largest] *= inf
        return rounded

    def rounded(self, values: Any) -> NDArray[Any]:
        """Return values rounded to nearest, ties to even, as float64; truth values as they are."""
        import numpy as np

        rounded = np.asarray(self.cast(values))
        return rounded if rounded.dtype == bool else rounded.astype(np.float64)

    def nearest(self, number: Fraction) -> float:
        """Return the number of the format nearest to a fraction, rounded once."""
        most = Fraction(self.largest)
        size = Fraction(float(self.spacing(float(min(max(number, -most), most)))))
        rounded = round(number / size) * size
        return float(rounded) if abs(rounded) <= most else inf if rounded > 0 else -inf

    def spacing(self, values: Any) -> Any:
        """Return the units in the last place (ulp) of values; infinity at infinities and nan.

        Examples
        --------
        >>> import numpy as np
        >>> format_of("float64").spacing(1.0) == 2.0**-52
        np.True_
        >>> format_of("float16").spacing([0.0, 3.0]) == np.spacing(np.float16([0, 3]))
        array([ True,  True])
        """
        import numpy as np

        size = np.abs(np.asarray(values, np.float64))
        exponent = np.where(size > 0, np.frexp(size)[1], 2 - self.top)
        units = np.ldexp(1.0, np.maximum(exponent, 2 - self.top) - self.digits)
        return np.where(np.isfinite(size), units, inf)[()]


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
"""The formats by their names, the widest first."""


def format_of(name: str) -> FloatFormat:
    """Return a format by its name.

    Raises
    ------
    InputError
        There is no such format.
    """
    if not isinstance(name, str) or name not in FORMATS:
        raise InputError(f"unknown dtype {name!r}", hint=f"one of: {', '.join(FORMATS)}")
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
    return list(dict.fromkeys(format_of(str(each).strip()) for each in listed)) or [DOUBLE]
