"""Operations of networks in random programs: convolution, batch normalisation, random numbers.

Each one as difflab computes it, and by its definition over an array module. Random numbers of the
definition are drawn before, from the same key: by JAX where it is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import difflab as dl
from difflab import arrays

__all__ = ["NAMES", "OURS", "SHARE", "definitions", "drawn"]

NAMES = ("convolved", "normalised", "dropped", "noisy")
KEY = dl.random.key(4)
SHARE = 0.4
FILTER = np.array([[[0.8, -1.3]], [[0.4, 0.5]]])
"""Of two groups of one channel, with two elements."""


def _key_of(x: Any) -> Any:
    """Return the key as a value that is traced where x is.

    Without a derivative: PyTorch's numbers have no key, and 0·nan would couple all elements.
    """
    total = dl.stop_gradient(np.tanh(np.sum(np.reshape(x, (-1,)))))
    return KEY + 0.0 * np.where(total == total, total, 0.0)


def _convolved(x: Any) -> Any:
    flat = np.reshape(x, (-1,))
    channels = np.stack([flat, flat * flat])
    return arrays.conv1d(channels, FILTER, None, stride=2, padding=2, dilation=2, groups=2)


def _normalised(x: Any) -> Any:
    column = np.reshape(x, (-1, 1))
    both = np.concatenate([column, 1.0 - 0.5 * column])
    mean, variance = arrays.running_statistics(both, np.zeros(1), np.ones(1), 0.3)
    used = arrays.batch_norm(column, 1.5, 0.2, 0.1, mean, variance)
    return used + arrays.batch_norm(both, epsilon=0.5)[: both.shape[0] // 2]


OURS: dict[str, Callable[[Any], Any]] = {
    "convolved": _convolved,
    "normalised": _normalised,
    "dropped": lambda x: dl.random.dropout(_key_of(x), x, SHARE),
    "noisy": lambda x: dl.random.normal(_key_of(x), x.shape, x, 0.5),
}


@cache
def drawn(shape: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return what is dropped of an array of a shape, and standard normal numbers."""
    try:
        import jax
    except ImportError:
        uniform, normal = dl.random.uniform(KEY, shape), dl.random.normal(KEY, shape)
        return np.asarray(uniform < SHARE), np.asarray(normal)
    with jax.ensure_compile_time_eval(), jax.enable_x64(True), jax.threefry_partitionable(True):
        key = jax.random.key(4)
        uniform = np.asarray(jax.random.uniform(key, shape, float))
        return np.array(uniform < SHARE), np.array(jax.random.normal(key, shape, float))


def definitions(xp: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the operations over an array module with NumPy's names."""

    def convolved(x: Any) -> Any:
        flat = xp.reshape(x, (-1,))
        size = (math.prod(x.shape) + 4 - 3) // 2 + 1
        parts = []
        for channel, taps in zip((flat, flat * flat), FILTER[:, 0], strict=True):
            padded = xp.pad(channel, 2)
            seen = [padded[start : start + 2 * size - 1 : 2] for start in (0, 2)]
            parts.append(seen[0] * taps[0] + seen[1] * taps[1])
        return xp.stack(parts)

    def normalised(x: Any) -> Any:
        column = xp.reshape(x, (-1, 1))
        both = xp.concatenate([column, 1.0 - 0.5 * column])
        count = both.shape[0]
        mean = xp.sum(both) / count
        squares = xp.sum((both - mean) ** 2)
        running = 0.7 + 0.3 * squares / (count - 1)
        used = (column - 0.3 * mean) / xp.sqrt(running + 0.1) * 1.5 + 0.2
        return used + (column - mean) / xp.sqrt(squares / count + 0.5)

    return {
        "convolved": convolved,
        "normalised": normalised,
        "dropped": lambda x: xp.where(drawn(tuple(x.shape))[0], 0.0, x / (1 - SHARE)),
        "noisy": lambda x: x + 0.5 * drawn(tuple(x.shape))[1],
    }
