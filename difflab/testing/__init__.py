"""Checks for hand-written gradients: `check_gradient`, and the pytest fixture of that name.

This package loads nothing until it is used, because pytest imports its plug-in at every start.
`difflab.testing.strategies` (which needs Hypothesis) is imported by name only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflab.testing.gradient import GradientMismatch, check_gradient

__all__ = ["GradientMismatch", "check_gradient"]


def __getattr__(name: str) -> object:
    """Load the checker when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from difflab.testing import gradient

    value: object = getattr(gradient, name)
    return value
