"""Automatic differentiation, graph to graph: the sweeps and the transforms that use them."""

from difflab.autodiff.functions.flat import gradient as gradient
from difflab.autodiff.functions.flat import value_and_gradient as value_and_gradient
from difflab.autodiff.transforms.grad import grad as grad
from difflab.autodiff.transforms.grad import value_and_grad as value_and_grad
from difflab.autodiff.transforms.jacobian import hessian as hessian
from difflab.autodiff.transforms.jacobian import jacfwd as jacfwd
from difflab.autodiff.transforms.jacobian import jacobian as jacobian
from difflab.autodiff.transforms.jacobian import jacrev as jacrev
from difflab.autodiff.transforms.operators import biharmonic as biharmonic
from difflab.autodiff.transforms.operators import curl as curl
from difflab.autodiff.transforms.operators import directional as directional
from difflab.autodiff.transforms.operators import divergence as divergence
from difflab.autodiff.transforms.operators import laplacian as laplacian
from difflab.autodiff.transforms.partial import partial as partial
from difflab.autodiff.transforms.products import hvp as hvp
from difflab.autodiff.transforms.products import jvp as jvp
from difflab.autodiff.transforms.products import linearize as linearize
from difflab.autodiff.transforms.products import vjp as vjp
from difflab.autodiff.transforms.stop_gradient import stop_gradient as stop_gradient
from difflab.autodiff.transforms.taylor import jet as jet
from difflab.autodiff.transforms.taylor import taylor as taylor
from difflab.autodiff.transforms.vmap import vmap as vmap
