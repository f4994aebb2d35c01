"""The functions of C99, by which targets and printed languages name the rows that they have."""

from __future__ import annotations

from collections.abc import Mapping

from difflab.core.primitive import Primitive
from difflab.primitives import TABLE

__all__ = ["C99", "c_name"]

_OTHERS = {
    "absolute": "fabs",
    "gamma": "tgamma",
    "loggamma": "lgamma",
    "power": "pow",
    "round": "rint",
}
_NAMES = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor "
    "hypot lgamma log log10 log1p log2 pow rint sin sinh sqrt tan tanh tgamma"
)


def c_name(row: Primitive) -> str:
    """Return the name of a primitive in C99, or the one that it would have.

    Examples
    --------
    >>> from difflab.primitives import power, sin
    >>> c_name(sin), c_name(power)
    ('sin', 'pow')
    """
    return _OTHERS.get(row.name, row.name)


C99: Mapping[str, str] = {
    row.ufunc: c_name(row) for row in TABLE.values() if c_name(row) in _NAMES.split()
}
"""The function of C99 for each universal function that has one."""
