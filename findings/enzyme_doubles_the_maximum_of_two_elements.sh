#!/usr/bin/env bash
# Enzyme 0.0.16 on JAX 0.10.2: where two elements of an array are equal, jnp.maximum of them passes
# the whole derivative to both, and so does jnp.minimum: the gradient of max + min, which is the sum,
# is (2, 2) instead of (1, 1). Of two arguments, rather than two elements, it goes to the first alone.
#
# Output seen:
#   enzyme-ad 0.0.16, jax 0.10.2
#   max + min of the elements at (1, 1): Enzyme [2.0, 2.0], JAX [1.0, 1.0]
#   max + min of the elements at (1, 2): Enzyme [1.0, 1.0], JAX [1.0, 1.0]
#   max of two arguments at (1, 1): Enzyme [1.0, 0.0]
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check \
    enzyme-ad==0.0.16 jax==0.10.2 jaxlib==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import jax
import jax.numpy as jnp
from enzyme_ad.jax import enzyme_jax_ir

jax.config.update("jax_enable_x64", True)
print(f"enzyme-ad {version('enzyme-ad')}, jax {jax.__version__}")


def slopes(function, *at):
    pull = jax.jit(lambda *xs: jax.vjp(function, *xs)[1](jnp.float64(1.0)))
    return [part.tolist() for part in pull(*map(jnp.asarray, at))]


def both(x):
    return jnp.maximum(x[0], x[1]) + jnp.minimum(x[0], x[1])


found = []
for at in ([1.0, 1.0], [1.0, 2.0]):
    enzyme, own = slopes(enzyme_jax_ir()(both), at)[0], slopes(both, at)[0]
    print(f"max + min of the elements at ({at[0]:g}, {at[1]:g}): Enzyme {enzyme}, JAX {own}")
    found.append((enzyme, own))
alone = slopes(enzyme_jax_ir()(lambda x, y: jnp.maximum(x, y)), 1.0, 1.0)
print("max of two arguments at (1, 1): Enzyme", alone)
assert found == [([2, 2], [1, 1]), ([1, 1], [1, 1])]
assert alone == [1, 0]
PYTHON
