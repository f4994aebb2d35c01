"""Automatic differentiation, graph to graph: sweeps and the transforms made of them.

May import `graph`, `primitives`, `core`, `errors`.
"""

from difflab.autodiff.transforms import (
    gradient,
    hessian,
    hvp,
    jacobian,
    jvp,
    value_and_gradient,
    vjp,
)

__all__ = ["gradient", "hessian", "hvp", "jacobian", "jvp", "value_and_gradient", "vjp"]
