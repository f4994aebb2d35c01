"""Rows of special functions that share a limitation: which tests treat them apart, and why."""

from __future__ import annotations

from difflab.primitives import bessel, integrals, inverses, remainders

__all__ = ["NOT_IN_CUPY", "NO_MACHINE_CODE", "UNSPELLED"]

_FAMILIES = (bessel, integrals, inverses, remainders)

NO_MACHINE_CODE = {"polygamma", *(name for each in _FAMILIES for name in each.__all__)} - {"de1"}
"""Rows that neither LLVM code nor CUDA code computes."""

UNSPELLED = NO_MACHINE_CODE | {"digamma", "de1"}
"""Rows that C99 and Python's math have no function for."""

NOT_IN_CUPY = frozenset({"lambertw", *bessel.__all__})
"""Rows whose kernel calls a function that CuPy has not."""
