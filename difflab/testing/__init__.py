"""Checks of hand-written derivatives, for functions and for custom functions.

`check_gradient` is also a pytest fixture of that name.
The package loads its modules on first use, because pytest imports its plug-in at every start.
`difflab.testing.strategies` (which requires Hypothesis) must be imported explicitly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflab.testing.checker.directions import numeric_derivative
    from difflab.testing.custom import check_custom_function, checked
    from difflab.testing.gradient import (
        GradientMismatch,
        GradientUnjudged,
        ImpureFunction,
        check_gradient,
    )
    from difflab.testing.matrices import check_derivatives, check_hessian, check_hvp, check_jacobian
    from difflab.testing.products import check_jvp, check_vjp

__all__ = [
    "GradientMismatch",
    "GradientUnjudged",
    "ImpureFunction",
    "check_custom_function",
    "check_derivatives",
    "check_gradient",
    "check_hessian",
    "check_hvp",
    "check_jacobian",
    "check_jvp",
    "check_vjp",
    "checked",
    "numeric_derivative",
]

_MODULES = {
    "check_custom_function": "custom",
    "check_derivatives": "matrices",
    "check_hessian": "matrices",
    "check_hvp": "matrices",
    "check_jacobian": "matrices",
    "check_jvp": "products",
    "check_vjp": "products",
    "checked": "custom",
    "numeric_derivative": "checker.directions",
}


def __getattr__(name: str) -> object:
    """Load a checker on first access."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"difflab.testing.{_MODULES.get(name, 'gradient')}")
    value: object = getattr(module, name)
    return value
