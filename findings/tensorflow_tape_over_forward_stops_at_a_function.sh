#!/usr/bin/env bash
# TensorFlow 2.21.0: a tape around a ForwardAccumulator does not see through a tf.function that is
# called inside: its gradient of the tangent is None, and zeros where unconnected gradients are
# asked for as zeros. Called as plain Python the same function has its second derivatives, and so
# has the tangent of a tape's gradient of the tf.function.
#
# Output seen:
#   tensorflow 2.21.0
#   tape of tangent of Python: -0.479426
#   tape of tangent of tf.function: None
#   tangent of tape of tf.function: -0.479426
#
# Needs Python 3.11 or 3.12 and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import tensorflow as tf

print("tensorflow", tf.__version__)
x, one = (tf.constant(number, tf.float64) for number in (0.5, 1.0))


def tape(f):
    def slope(x):
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = f(x)
        return recorded.gradient(y, x)

    return slope


def tangent(f):
    def pushed(x):
        with tf.autodiff.ForwardAccumulator(x, one) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    return pushed


traced = tf.function(tf.sin)
found = {
    "tape of tangent of Python": tape(tangent(tf.sin))(x),
    "tape of tangent of tf.function": tape(tangent(traced))(x),
    "tangent of tape of tf.function": tangent(tape(traced))(x),
}
texts = [value if value is None else f"{float(value):g}" for value in found.values()]
for name, text in zip(found, texts):
    print(f"{name}: {text}")
assert texts == ["-0.479426", None, "-0.479426"]
PYTHON
