#!/usr/bin/env bash
# TensorFlow Probability 0.25.0 on JAX 0.6.2: betaincinv(a, b, p), the inverse of the regularized
# incomplete beta function, is right to 15 digits at p = 0.499999 and p = 0.500001, and wrong by up
# to a third at p = 0.5, where a differs from b: the medians of beta distributions. For a = 1 the
# solution is known in closed form, 1 - (1 - p)^(1/b).
#
# Output seen:
#   tensorflow-probability 0.25.0, jax 0.6.2
#   betaincinv(1, 2, p): 0.292893 at 0.5 - 1e-9, 0.367025 at 0.5, 0.292893 at 0.5 + 1e-9
#   betaincinv(1, 3, p): 0.206299 at 0.5 - 1e-9, 0.270528 at 0.5, 0.206299 at 0.5 + 1e-9
#   median of Beta(1, 3) by its quantile function: 0.270528, in closed form 0.206299
#   betainc(1, 3, 0.270528) = 0.6118
#
# Needs Python 3.11 or 3.12 and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check \
    tensorflow-probability==0.25.0 jax==0.6.2 jaxlib==0.6.2
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import tensorflow_probability.substrates.jax as tfp

print(f"tensorflow-probability {tfp.__version__}, jax {jax.__version__}")
for b in (2.0, 3.0):
    left, middle, right = (
        float(tfp.math.betaincinv(jnp.float64(1.0), jnp.float64(b), jnp.float64(0.5 + step)))
        for step in (-1e-9, 0.0, 1e-9)
    )
    print(
        f"betaincinv(1, {b:.0f}, p): {left:.6f} at 0.5 - 1e-9, {middle:.6f} at 0.5,"
        f" {right:.6f} at 0.5 + 1e-9"
    )
    truth = 1 - 0.5 ** (1 / b)
    assert abs(left - truth) < 2e-9 and abs(right - truth) < 2e-9
    assert abs(middle - truth) > 0.2 * truth
median = float(tfp.distributions.Beta(jnp.float64(1.0), jnp.float64(3.0)).quantile(0.5))
truth = 1 - 0.5 ** (1 / 3)
print(f"median of Beta(1, 3) by its quantile function: {median:.6f}, in closed form {truth:.6f}")
back = float(tfp.math.betainc(jnp.float64(1.0), jnp.float64(3.0), jnp.float64(median)))
print(f"betainc(1, 3, {median:.6f}) = {back:.4f}")
assert abs(median - truth) > 0.06 and abs(back - 0.5) > 0.1
PYTHON
