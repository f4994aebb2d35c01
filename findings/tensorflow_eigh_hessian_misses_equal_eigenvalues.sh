#!/usr/bin/env bash
# TensorFlow 2.21.0: the sum of the squared eigenvalues of [[x, y], [y, x]] is 2x^2 + 2y^2. Where
# they are equal, at (1, 0), the second derivative by y through tf.linalg.eigh is 0 instead of 4,
# without a warning; at (1, 0.5) it is 4.
#
# Output seen:
#   tensorflow 2.21.0
#   (1, 0): [4.0, 0.0, 0.0, 0.0]
#   (1, 0.5): [4.0, 0.0, 0.0, 4.0]
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0
"$folder/venv/bin/python" - <<'PYTHON'
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

print("tensorflow", tf.__version__)


def hessian(x, y):
    v = tf.constant([x, y], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(v)
        with tf.GradientTape() as tape:
            tape.watch(v)
            matrix = tf.reshape(tf.stack([v[0], v[1], v[1], v[0]]), (2, 2))
            total = tf.reduce_sum(tf.linalg.eigh(matrix)[0] ** 2)
        gradient = tape.gradient(total, v)
    found = [round(float(h), 9) + 0.0 for h in tf.reshape(outer.jacobian(gradient, v), [-1])]
    print(f"({x:g}, {y:g}): {found}")
    return found


assert hessian(1.0, 0.0) == [4, 0, 0, 0]
assert hessian(1.0, 0.5) == [4, 0, 0, 4]
PYTHON
