#!/usr/bin/env bash
# JAX 0.10.2: jax.scipy.special.exp1 has a first derivative, but the second one is a TypeError about
# a tracer, with jit and without. expi has both.
#
# Output seen:
#   jax 0.10.2
#   first derivative of exp1: -0.367879
#   second derivative of exp1: TypeError: No constant handler for type
#   second derivative of expi: 0.000000
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
import jax
from jax.scipy.special import exp1, expi

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)
print(f"first derivative of exp1: {jax.grad(exp1)(1.0):.6f}")
try:
    jax.grad(jax.grad(exp1))(1.0)
except TypeError as error:
    message = str(error).partition(":")[0]
    print(f"second derivative of exp1: TypeError: {message}")
else:
    raise SystemExit("exp1 has a second derivative now")
print(f"second derivative of expi: {jax.grad(jax.grad(expi))(1.0):.6f}")
assert message == "No constant handler for type"
PYTHON
