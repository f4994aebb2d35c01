"""Checks for derivatives written by hand, of functions and of custom functions.

`check_gradient` is also a pytest fixture of that name.
This package loads nothing until it is used, because pytest imports its plug-in at every start.
`difflab.testing.strategies` (which needs Hypothesis) is imported by name only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflab.testing.custom import check_custom_function, checked
    from difflab.testing.gradient import GradientMismatch, GradientUnjudged, check_gradient

__all__ = [
    "GradientMismatch",
    "GradientUnjudged",
    "check_custom_function",
    "check_gradient",
    "checked",
]

_HOMES = {"check_custom_function": "custom", "checked": "custom"}


def __getattr__(name: str) -> object:
    """Load the checker when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = import_module(f"difflab.testing.{_HOMES.get(name, 'gradient')}")
    value: object = getattr(home, name)
    return value
