"""Where each array module keeps its special functions."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

SPECIAL = {
    "numpy": "scipy.special",
    "cupy": "cupyx.scipy.special",
    "jax.numpy": "jax.scipy.special",
}
"""The module of special functions for each array module; by default its own `special`."""


@cache
def special_functions(xp: ModuleType) -> ModuleType:
    """Return the special functions that belong to the array module `xp`."""
    owner = SPECIAL.get(xp.__name__)
    found: ModuleType = xp.special if owner is None else import_module(owner)
    return found
