"""Calls of SciPy's universal functions that difflab composes of rows of its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

__all__ = ["SPECIAL"]

Code = Callable[..., Any]
POSITIVE = np.array([0.9, 1.3, 2.5, 3.5])
REAL = np.array([-2.5, -0.3, 0.4, 3.0])
UNIT = np.array([0.1, 0.45, 0.8, 0.95])
POWERS = np.array([0.0, 0.5, -1.0, 2.0])

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("j0", "j1", "y0", "y1", "i0", "i1", "k0", "k1"), (POSITIVE,)),
    "cosm1": (REAL,),
    "exp10": (np.array([-2.5, -0.3, 0.1, 0.5]),),
    "exprel": (np.array([-2.5, 0.0, 1e-9, 3.0]),),
    "log_expit": (np.array([-800.0, -0.3, 0.4, 30.0]),),
    "boxcox": (POSITIVE, POWERS),
    "inv_boxcox": (UNIT, POWERS),
    "rel_entr": (POSITIVE, POSITIVE[::-1].copy()),
    "kl_div": (POSITIVE, POSITIVE[::-1].copy()),
}
FIRST_FIXED: dict[str, tuple[tuple[float, ...], Any]] = {
    "betaincc": ((2.3, 1.2), UNIT),
    "chdtr": ((3.0,), POSITIVE),
    "chdtrc": ((3.0,), POSITIVE),
    "gdtr": ((2.0, 3.0), POSITIVE),
    "gdtrc": ((2.0, 3.0), POSITIVE),
    "huber": ((1.0,), REAL),
    "kn": ((2,), POSITIVE),
    "pdtr": ((2.5,), POSITIVE),
    "pseudo_huber": ((1.5,), REAL),
    "yn": ((2,), POSITIVE),
}


def _called(name: str, *first: float) -> Code:
    return lambda np, *args: getattr(scipy.special, name)(*first, *args)


SPECIAL: dict[str, tuple[Code, tuple[Any, ...]]] = {
    **{f"special {name}": (_called(name), args) for name, args in ARGUMENTS.items()},
    **{
        f"special {name}": (_called(name, *first), (x,)) for name, (first, x) in FIRST_FIXED.items()
    },
    "special sici": (lambda np, x: np.stack(scipy.special.sici(x)), (POSITIVE,)),
}
"""Calls whose values are SciPy's; their derivatives are compared with differences."""
