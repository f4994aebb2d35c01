"""Rows of special functions that share a limitation: which tests treat them apart, and why."""

from __future__ import annotations

from difflab.primitives import (
    airy,
    bessel,
    beta_functions,
    dawson,
    densities,
    entropies,
    integrals,
    inverses,
    normal,
    remainders,
    scaled_erfc,
    zeta_function,
)

__all__ = ["FARTHER", "NOT_IN_CUPY", "NO_CUDA_CODE", "NO_MACHINE_CODE", "OF_ORDERS", "SPECIAL"]

_SCIPYS = (airy, bessel, beta_functions, dawson, densities, integrals, inverses, normal)
_SCIPYS += (scaled_erfc, zeta_function)

SPECIAL = {
    "polygamma",
    *(name for each in (*_SCIPYS, entropies, remainders) for name in each.__all__),
}
"""Rows that another library may have no function for."""

NO_MACHINE_CODE = {"ci", "polygamma", "si", "zeta", *airy.__all__}
"""Rows that LLVM code does not compute."""

NO_CUDA_CODE = {
    *("digamma", "polygamma"),
    *(name for each in (*_SCIPYS, entropies) for name in each.__all__),
} - {
    *("dawsn_derivative", "de1", "dei", "derfi", "dlogit", "dndtr", "dlambertw", "lambertw"),
    *("erfcx_derivative", "log_ndtr_derivative", "gammainc_derivative", "betainc_derivative"),
    "polygamma_difference",
}
"""Rows that CUDA code does not compute."""

FARTHER = {
    "polygamma",
    *(name for each in (*_SCIPYS, remainders) for name in each.__all__),
} - {"de1", "dei", "derfinv", "e1", "ei", "erfinv", "lambertw"}
"""Rows whose printed code is as accurate as SciPy's in the samples, and less so farther out."""

OF_ORDERS = {"erfcx_derivative", "log_ndtr_derivative", *remainders.__all__}
"""Rows that printed code has for constant orders only."""

NOT_IN_CUPY = frozenset({"ci", "dawsn", "erfi", "si", *airy.__all__, *bessel.__all__})
"""Rows whose kernel calls a function that CuPy has not."""
