"""Universal functions by the names that targets spell them by."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from difflab.primitives.casts import ROUNDING

__all__ = ["universal_function"]


def universal_function(name: str) -> Any:
    """Return NumPy's or SciPy's function, or difflab's own where neither has one."""
    if name == ROUNDING.__name__:
        return ROUNDING
    return getattr(np, name, None) or getattr(special, name)
