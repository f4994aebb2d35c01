#!/usr/bin/env bash
# JAX 0.10.2: where both arguments of jax.scipy.special.betaln are equal, all four second
# derivatives are their mean, so that the Hessian is singular: at (2, 2) it is 0.0386 four times
# instead of 0.361 and -0.284. The gradient is right, and so is the Hessian at (2, 2.0000001). The
# truth is by mpmath's polygamma functions.
#
# Output seen:
#   jax 0.10.2
#   (2.0, 2.0): gradient right, second derivatives 0.0386441 and 0.0386441, they are 0.361111 and -0.283823
#   (2.0, 2.0000001): gradient right, second derivatives 0.361111 and -0.283823, they are 0.361111 and -0.283823
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2 mpmath==1.3.0
"$folder/venv/bin/python" - <<'PYTHON'
import jax
import mpmath

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)
betaln = jax.scipy.special.betaln
found = []
for a, b in ((2.0, 2.0), (2.0, 2.0000001)):
    first = float(mpmath.psi(0, a) - mpmath.psi(0, a + b))
    own = float(mpmath.psi(1, a) - mpmath.psi(1, a + b))
    mixed = float(-mpmath.psi(1, a + b))
    right = abs(float(jax.grad(betaln)(a, b)) - first) < 1e-9
    (twice, cross), _ = jax.hessian(betaln, (0, 1))(a, b)
    print(
        f"({a}, {b}): gradient {'right' if right else 'wrong'}, second derivatives "
        f"{float(twice):g} and {float(cross):g}, they are {own:g} and {mixed:g}"
    )
    found.append((right, abs(float(twice) - own) < 1e-9, abs(float(cross) - mixed) < 1e-9))
assert found == [(True, False, False), (True, True, True)]
PYTHON
