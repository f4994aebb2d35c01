#!/usr/bin/env bash
# TensorFlow 2.21.0: tf.recompute_grad of a function that differentiates by a tape computes a wrong
# value and the right gradient of it: that of the slope of x**3 at 2 is 0 (or None, without
# unconnected_gradients) instead of 12, and its gradient is 12, as it is of the slope itself. Within
# tf.function it is the same.
#
# Output seen:
#   tensorflow 2.21.0
#   slope: 12, gradient 12
#   recompute_grad(slope): 0, gradient 12
#   function(recompute_grad(slope)): 0, gradient 12
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
x = tf.constant(2.0, tf.float64)


def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**3
    return tape.gradient(y, x, unconnected_gradients="zero")


found = []
for name, function in {
    "slope": slope,
    "recompute_grad(slope)": tf.recompute_grad(slope),
    "function(recompute_grad(slope))": tf.function(tf.recompute_grad(slope)),
}.items():
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    value, gradient = float(y), float(tape.gradient(y, x))
    print(f"{name}: {value:g}, gradient {gradient:g}")
    found.append((value, gradient))
assert found == [(12, 12), (0, 12), (0, 12)]
PYTHON
