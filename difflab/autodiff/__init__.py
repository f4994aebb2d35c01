"""Automatic differentiation, graph to graph: sweeps, what is made of them, what they explain.

May import `graph`, `primitives`, `core`, `errors`.
"""

from difflab.autodiff.callables import grad, hessian, jacfwd, jacrev, value_and_grad
from difflab.autodiff.explanation import Explanation, explain
from difflab.autodiff.mapping import vmap
from difflab.autodiff.products import hvp, jvp, linearize, vjp
from difflab.autodiff.provenance import node_cotangents
from difflab.autodiff.transforms import gradient, jacobian, value_and_gradient

__all__ = [
    "Explanation",
    "explain",
    "grad",
    "gradient",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "node_cotangents",
    "value_and_grad",
    "value_and_gradient",
    "vjp",
    "vmap",
]
