"""The table: every primitive, one row each, by family.

To add a primitive, write one row in its family's module and name it in that module's
``__all__``; the parser, the printers, the documentation and the tests read it from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType

from difflab.core.primitive import Primitive
from difflab.primitives import (
    airy,
    arithmetic,
    bessel,
    beta_functions,
    casts,
    cumulative,
    dawson,
    densities,
    entropies,
    exponential,
    factors,
    fourier,
    integrals,
    inverses,
    logistic,
    matrices,
    matrix_functions,
    movement,
    normal,
    orders,
    piecewise,
    random,
    reductions,
    remainders,
    replacement,
    scaled_erfc,
    special,
    structure,
    trigonometric,
    zeta_function,
)
from difflab.primitives.airy import *
from difflab.primitives.arithmetic import *
from difflab.primitives.bessel import *
from difflab.primitives.beta_functions import *
from difflab.primitives.casts import *
from difflab.primitives.cumulative import *
from difflab.primitives.dawson import *
from difflab.primitives.densities import *
from difflab.primitives.entropies import *
from difflab.primitives.exponential import *
from difflab.primitives.factors import *
from difflab.primitives.fourier import *
from difflab.primitives.integrals import *
from difflab.primitives.inverses import *
from difflab.primitives.logistic import *
from difflab.primitives.matrices import *
from difflab.primitives.matrix_functions import *
from difflab.primitives.movement import *
from difflab.primitives.normal import *
from difflab.primitives.orders import *
from difflab.primitives.piecewise import *
from difflab.primitives.random import *
from difflab.primitives.reductions import *
from difflab.primitives.remainders import *
from difflab.primitives.replacement import *
from difflab.primitives.scaled_erfc import *
from difflab.primitives.special import *
from difflab.primitives.structure import *
from difflab.primitives.trigonometric import *
from difflab.primitives.zeta_function import *

FAMILIES: tuple[ModuleType, ...] = (
    arithmetic,
    exponential,
    trigonometric,
    logistic,
    special,
    remainders,
    replacement,
    inverses,
    integrals,
    densities,
    bessel,
    airy,
    beta_functions,
    scaled_erfc,
    normal,
    dawson,
    entropies,
    zeta_function,
    piecewise,
    casts,
    structure,
    movement,
    reductions,
    cumulative,
    orders,
    matrices,
    fourier,
    factors,
    matrix_functions,
    random,
)


def _rows() -> Iterator[Primitive]:
    for family in FAMILIES:
        for name in family.__all__:
            yield getattr(family, name)


TABLE: Mapping[str, Primitive] = MappingProxyType({row.name: row for row in _rows()})
by_spelling: Mapping[str, Primitive] = MappingProxyType(
    {spelling: row for row in TABLE.values() for spelling in row.names}
)

__all__ = ["FAMILIES", "TABLE", "by_spelling"]
# Spelled out, because this is the form that type checkers can follow.
__all__ += airy.__all__
__all__ += arithmetic.__all__
__all__ += bessel.__all__
__all__ += casts.__all__
__all__ += cumulative.__all__
__all__ += beta_functions.__all__
__all__ += dawson.__all__
__all__ += densities.__all__
__all__ += entropies.__all__
__all__ += exponential.__all__
__all__ += factors.__all__
__all__ += fourier.__all__
__all__ += integrals.__all__
__all__ += inverses.__all__
__all__ += logistic.__all__
__all__ += matrices.__all__
__all__ += matrix_functions.__all__
__all__ += movement.__all__
__all__ += normal.__all__
__all__ += orders.__all__
__all__ += piecewise.__all__
__all__ += random.__all__
__all__ += reductions.__all__
__all__ += remainders.__all__
__all__ += scaled_erfc.__all__
__all__ += special.__all__
__all__ += structure.__all__
__all__ += trigonometric.__all__
__all__ += zeta_function.__all__
