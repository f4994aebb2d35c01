#!/usr/bin/env bash
# JAX 0.10.2: grad of grad of a function that maps a jax.custom_jvp function by lax.scan, or by
# lax.map, ignores the rule in the second derivative and differentiates the function's own code
# instead. grad of jacfwd is right, and so is grad of grad under jit, vmap, cond, fori_loop or
# checkpoint. JAX's own functions have such rules: the second derivative of softplus at 0 is 1/4,
# under scan it is 1/2.
#
# Output seen:
#   jax 0.10.2
#   exp by a rule of its own: plain 2.71828, scan 0, map 0, fori_loop 2.71828, forward in scan 2.71828
#   softplus: plain 0.25, scan 0.5, map 0.5, fori_loop 0.25, forward in scan 0.25
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
import jax
from jax import lax

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)


@jax.custom_jvp
def exp(x):
    return jax.numpy.exp(lax.stop_gradient(x))


@exp.defjvp
def exp_rule(primals, tangents):
    y = exp(*primals)
    return y, y * tangents[0]


def scan(f):
    return lambda x: lax.scan(lambda carry, row: (carry, f(row)), 0, x[None])[1][0]


ways = {
    "plain": lambda f: f,
    "scan": scan,
    "map": lambda f: lambda x: lax.map(f, x[None])[0],
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 1, lambda k, y: f(x), 0 * x),
}
found = []
for name, f, at in (("exp by a rule of its own", exp, 1.0), ("softplus", jax.nn.softplus, 0.0)):
    twice = {way: float(jax.grad(jax.grad(wrap(f)))(at)) for way, wrap in ways.items()}
    twice["forward in scan"] = float(jax.grad(jax.jacfwd(scan(f)))(at))
    print(f"{name}: " + ", ".join(f"{way} {value:g}" for way, value in twice.items()))
    found.append([round(value, 4) for value in twice.values()])
assert found == [[2.7183, 0, 0, 2.7183, 2.7183], [0.25, 0.5, 0.5, 0.25, 0.25]]
PYTHON
