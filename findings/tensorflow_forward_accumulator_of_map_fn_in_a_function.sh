#!/usr/bin/env bash
# TensorFlow 2.21.0: a ForwardAccumulator around tf.map_fn, or tf.scan, is right in eager mode; the
# same code as a tf.function is a TypeError about 1 and the dtype variant, that of the loop's list.
# A GradientTape in its place works in both, and so does the accumulator around tf.while_loop.
#
# Output seen:
#   tensorflow 2.21.0
#   accumulator, map_fn: eager 4, function TypeError
#   accumulator, scan: eager 4, function TypeError
#   accumulator, while_loop: eager 4, function 4
#   tape, map_fn: eager 4, function 4
#   tape, scan: eager 4, function 4
#   tape, while_loop: eager 4, function 4
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
two = tf.constant(2.0, tf.float64)
loops = {
    "map_fn": lambda x: tf.map_fn(lambda row: row * row, tf.stack([x]))[0],
    "scan": lambda x: tf.scan(lambda last, row: last * row, tf.stack([x, x]))[1],
    "while_loop": lambda x: tf.while_loop(lambda k, y: k < 1, lambda k, y: (k + 1, y * x), (0, x))[1],
}


def forward(f, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


def reverse(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def shown(slope):
    try:
        return f"{float(slope(two)):g}"
    except TypeError:
        return "TypeError"


found = []
for way, derivative in (("accumulator", forward), ("tape", reverse)):
    for name, f in loops.items():
        slope = lambda x: derivative(f, x)
        eager, staged = shown(slope), shown(tf.function(slope, autograph=False))
        print(f"{way}, {name}: eager {eager}, function {staged}")
        found.append((eager, staged))
assert found == [("4", "TypeError")] * 2 + [("4", "4")] * 4
PYTHON
