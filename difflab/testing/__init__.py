"""Checks of hand-written derivatives, for functions and for custom functions.

`check_gradient` is also a pytest fixture of that name.
The package loads its modules on first use, because pytest imports its plug-in at every start.
`difflab.testing.strategies` (which requires Hypothesis) must be imported explicitly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflab.testing.checker.directions import numeric_derivative as numeric_derivative
    from difflab.testing.custom import check_custom_function as check_custom_function
    from difflab.testing.custom import checked as checked
    from difflab.testing.gradient import GradientMismatch as GradientMismatch
    from difflab.testing.gradient import GradientUnjudged as GradientUnjudged
    from difflab.testing.gradient import ImpureFunction as ImpureFunction
    from difflab.testing.gradient import check_gradient as check_gradient
    from difflab.testing.matrices import check_derivatives as check_derivatives
    from difflab.testing.matrices import check_hessian as check_hessian
    from difflab.testing.matrices import check_hvp as check_hvp
    from difflab.testing.matrices import check_jacobian as check_jacobian
    from difflab.testing.products import check_jvp as check_jvp
    from difflab.testing.products import check_vjp as check_vjp

_HOMES = {
    "GradientMismatch": "gradient",
    "GradientUnjudged": "gradient",
    "ImpureFunction": "gradient",
    "check_custom_function": "custom",
    "check_derivatives": "matrices",
    "check_gradient": "gradient",
    "check_hessian": "matrices",
    "check_hvp": "matrices",
    "check_jacobian": "matrices",
    "check_jvp": "products",
    "check_vjp": "products",
    "checked": "custom",
    "numeric_derivative": "checker.directions",
}
if not TYPE_CHECKING:  # which reads the imports above
    __all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Load a checker on first access."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"difflab.testing.{_HOMES[name]}"), name)
    return value
