"""The special functions that a kernel calls, of any array module."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from difflab.core.special_functions import special_functions
from difflab.errors import UnsupportedError

__all__ = ["special_function"]


def special_function(xp: ModuleType, name: str) -> Callable[..., Any]:
    """Return the function of SciPy's name that belongs to the array module `xp`.

    Raises
    ------
    UnsupportedError
        There is none.
    """
    home = special_functions(xp)
    found: Callable[..., Any] | None = getattr(home, name, None)
    if found is None:
        title = getattr(home, "__name__", xp.__name__)
        raise UnsupportedError(f"{title} has no function '{name}'")
    return found
