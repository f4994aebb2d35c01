"""Random numbers of a key on expansions: of a key that is known exactly, with derivative 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.jets import Jet, jet
from difflab.balls.library import arb, whole
from difflab.errors import UnsupportedError
from difflab.primitives import random

Array = NDArray[Any]


def _words(key: Array) -> NDArray[np.float64]:
    """Return the words of keys."""
    found = [whole(jet(entry).value) for entry in np.asarray(key, dtype=object).ravel().tolist()]
    if None in found:
        raise UnsupportedError("random numbers need a key that is a point, not an interval")
    return np.array(found, dtype=np.float64).reshape(np.shape(key))


def _drawn(name: str, finish: Any = lambda number: number) -> Any:
    kernel = getattr(random, name).computer(np)

    def row(key: Array, **params: Any) -> Any:
        return np.frompyfunc(lambda number: Jet(finish(arb(number))), 1, 1)(
            kernel(_words(key), **params)
        )

    return row


def _quantile(u: Any) -> Any:
    """Return the standard normal number that belongs to a uniform one, as its kernel does."""
    return arb(2).sqrt() * (2 * u - (1 - arb(2) ** -53)).erfinv()


random_keys = _drawn("random_keys")
random_uniform = _drawn("random_uniform")
random_normal = _drawn("random_uniform", _quantile)
