"""The table: every primitive, one row each, by family.

To add a primitive, write one row in its family's module and name it in that module's
``__all__``; the parser, the printers, the documentation and the tests read it from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

from difflab.core.primitive import Primitive
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

_FAMILIES = (
    "arithmetic",
    "exponential",
    "trigonometric",
    "logistic",
    "special",
    "remainders",
    "replacement",
    "inverses",
    "integrals",
    "densities",
    "bessel",
    "airy",
    "beta_functions",
    "scaled_erfc",
    "normal",
    "dawson",
    "entropies",
    "zeta_function",
    "piecewise",
    "casts",
    "structure",
    "movement",
    "reductions",
    "cumulative",
    "orders",
    "matrices",
    "fourier",
    "factors",
    "matrix_functions",
    "random",
)
"""The modules with rows, in the order of the table."""


def _rows() -> Iterator[Primitive]:
    for family in _FAMILIES:
        module = import_module(f"{__name__}.{family}")
        for name in module.__all__:
            yield getattr(module, name)


TABLE: Mapping[str, Primitive] = MappingProxyType({row.name: row for row in _rows()})
by_spelling: Mapping[str, Primitive] = MappingProxyType(
    {spelling: row for row in TABLE.values() for spelling in row.names}
)
