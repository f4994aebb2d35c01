"""THE table: every primitive, one row each, by family.

To add a primitive, write one row in its family's module and name it in that module's
``__all__``; the parser, the printers, the documentation and the tests read it from here.
May import `core`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType

from difflab.core.primitive import Primitive
from difflab.primitives import (
    arithmetic,
    exponential,
    piecewise,
    special,
    structure,
    trigonometric,
)
from difflab.primitives.arithmetic import (
    add,
    cbrt,
    dhypot,
    divide,
    dpower,
    dpower_exponent,
    hypot,
    multiply,
    negative,
    power,
    sqrt,
    subtract,
)
from difflab.primitives.exponential import (
    dlog,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    sigmoid,
    softplus,
)
from difflab.primitives.piecewise import (
    absolute,
    as_number,
    ceil,
    clip,
    equal,
    floor,
    greater,
    greater_equal,
    heaviside,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mod,
    not_equal,
    relu,
    round_,
    sign,
    where,
)
from difflab.primitives.special import digamma, erf, erfc, gamma, loggamma, polygamma
from difflab.primitives.structure import broadcast, index, pack, reshape, scatter, sum_
from difflab.primitives.trigonometric import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    dacosh,
    dasin,
    datan2,
    sech,
    sin,
    sinh,
    tan,
    tanh,
)

FAMILIES: tuple[ModuleType, ...] = (
    arithmetic,
    exponential,
    trigonometric,
    special,
    piecewise,
    structure,
)


def _rows() -> Iterator[Primitive]:
    for family in FAMILIES:
        for name in family.__all__:
            yield getattr(family, name)


TABLE: Mapping[str, Primitive] = MappingProxyType({row.name: row for row in _rows()})
by_spelling: Mapping[str, Primitive] = MappingProxyType(
    {spelling: row for row in TABLE.values() for spelling in row.names}
)

__all__ = [
    "FAMILIES",
    "TABLE",
    *(name for family in FAMILIES for name in family.__all__),
    "by_spelling",
]
