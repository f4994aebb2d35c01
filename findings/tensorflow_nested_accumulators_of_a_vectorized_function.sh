#!/usr/bin/env bash
# TensorFlow 2.21.0: the second derivative of x**2 by two nested ForwardAccumulators is right through
# a tf.function and through tf.vectorized_map; through a vectorized_map of a tf.function it is an
# IndexError, "list index out of range". One accumulator, two tapes, and an accumulator around a tape
# differentiate that, too.
#
# Output seen:
#   tensorflow 2.21.0
#   accumulator of accumulator: plain 2, function 2, vectorized 2, vectorized function IndexError
#   accumulator of tape: plain 2, function 2, vectorized 2, vectorized function 2
#   tape of tape: plain 2, function 2, vectorized 2, vectorized function 2
#   the first derivative by an accumulator: plain 6, function 6, vectorized 6, vectorized function 6
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
three = tf.constant(3.0, tf.float64)


def square(x):
    return x * x


def vectorized(f):
    return lambda x: tf.vectorized_map(f, tf.stack([x, x]))[0]


def forward(f):
    def slope(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    return slope


def reverse(f):
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return slope


functions = {
    "plain": square,
    "function": tf.function(square),
    "vectorized": vectorized(square),
    "vectorized function": vectorized(tf.function(square)),
}


def shown(f):
    try:
        return f"{float(f(three)):g}"
    except IndexError:
        return "IndexError"


found = []
for way, derivative in {
    "accumulator of accumulator": lambda f: forward(forward(f)),
    "accumulator of tape": lambda f: forward(reverse(f)),
    "tape of tape": lambda f: reverse(reverse(f)),
    "the first derivative by an accumulator": forward,
}.items():
    values = {name: shown(derivative(f)) for name, f in functions.items()}
    print(f"{way}: " + ", ".join(f"{name} {value}" for name, value in values.items()))
    found.append(list(values.values()))
assert found == [["2", "2", "2", "IndexError"], ["2"] * 4, ["2"] * 4, ["6"] * 4]
PYTHON
