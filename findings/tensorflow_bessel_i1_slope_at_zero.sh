#!/usr/bin/env bash
# TensorFlow 2.21.0: the gradient of tf.math.bessel_i1 at 0 is 1; it is 1/2, as it is at 1e-6. The
# second derivative there is nan.
#
# Output seen:
#   tensorflow 2.21.0
#   0: 1, second nan
#   1e-06: 0.5, second TFSECOND
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


def slopes(at):
    x = tf.constant(at, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.bessel_i1(x)
        first = tape.gradient(y, x)
    found = float(first), float(outer.gradient(first, x))
    print(f"{at:g}: {found[0]:g}, second {found[1]:.1g}")
    return found


first, second = slopes(0.0)
assert first == 1.0 and second != second
assert abs(slopes(1e-6)[0] - 0.5) < 1e-6
PYTHON
