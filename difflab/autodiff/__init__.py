"""Automatic differentiation, graph to graph: the sweeps and the transforms that use them."""

from difflab.autodiff.callables.grad import grad, value_and_grad
from difflab.autodiff.callables.jacobian import hessian, jacfwd, jacobian, jacrev
from difflab.autodiff.callables.products import hvp, jvp, linearize, vjp
from difflab.autodiff.callables.stop_gradient import stop_gradient
from difflab.autodiff.callables.taylor import jet, taylor
from difflab.autodiff.callables.vmap import vmap
from difflab.autodiff.functions.partial import partial
from difflab.autodiff.functions.transforms import gradient, value_and_gradient

__all__ = [
    "grad",
    "gradient",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jvp",
    "linearize",
    "partial",
    "stop_gradient",
    "taylor",
    "value_and_grad",
    "value_and_gradient",
    "vjp",
    "vmap",
]
