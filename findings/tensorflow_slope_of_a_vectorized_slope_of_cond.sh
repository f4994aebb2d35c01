#!/usr/bin/env bash
# TensorFlow 2.21.0: tf.vectorized_map maps a tape's gradient of a function with tf.cond, but to
# differentiate that once more is an AttributeError inside of TensorFlow. Through tf.map_fn the second
# derivative is right, and so it is through vectorized_map where the function has no cond.
#
# Output seen:
#   tensorflow 2.21.0
#   vectorized_map of slope: [4. 6.]
#   slope of map_fn of slope: [2. 2.]
#   slope of vectorized_map of slope, without cond: [2. 2.]
#   slope of vectorized_map of slope: AttributeError
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow==2.21.0
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - 2> /dev/null <<'PYTHON'
import tensorflow as tf

print("tensorflow", tf.__version__)
x = tf.constant([2.0, 3.0], tf.float64)


def square(x):
    return x * x


def chosen(x):
    return tf.cond(x > 0.0, lambda: x * x, lambda: 0.0 * x)


def slope(f):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return run


def each(f):
    return lambda x: tf.vectorized_map(f, x)


found = []
for name, f in {
    "vectorized_map of slope": each(slope(chosen)),
    "slope of map_fn of slope": slope(lambda x: tf.map_fn(slope(chosen), x)),
    "slope of vectorized_map of slope, without cond": slope(each(slope(square))),
    "slope of vectorized_map of slope": slope(each(slope(chosen))),
}.items():
    try:
        result = str(tf.convert_to_tensor(f(x)).numpy())
    except AttributeError:
        result = "AttributeError"
    print(f"{name}: {result}")
    found.append(result)
assert found == ["[4. 6.]", "[2. 2.]", "[2. 2.]", "AttributeError"]
PYTHON
