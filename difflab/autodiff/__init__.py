"""Automatic differentiation, graph to graph: the sweeps and the transforms that use them."""

from difflab.autodiff.functions.flat import gradient, value_and_gradient
from difflab.autodiff.transforms.grad import grad, value_and_grad
from difflab.autodiff.transforms.jacobian import hessian, jacfwd, jacobian, jacrev
from difflab.autodiff.transforms.operators import (
    biharmonic,
    curl,
    directional,
    divergence,
    laplacian,
)
from difflab.autodiff.transforms.partial import partial
from difflab.autodiff.transforms.products import hvp, jvp, linearize, vjp
from difflab.autodiff.transforms.stop_gradient import stop_gradient
from difflab.autodiff.transforms.taylor import jet, taylor
from difflab.autodiff.transforms.vmap import vmap

__all__ = [
    "biharmonic",
    "curl",
    "directional",
    "divergence",
    "grad",
    "gradient",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jvp",
    "laplacian",
    "linearize",
    "partial",
    "stop_gradient",
    "taylor",
    "value_and_grad",
    "value_and_gradient",
    "vjp",
    "vmap",
]
