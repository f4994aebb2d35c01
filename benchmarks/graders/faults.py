"""The planted faults: each class turns the right gradient of a model into a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.graders.model import Array, Model, Term, constant

__all__ = ["FAULTS", "Fault"]

Fault = Callable[[Model, Generator, float], Term | None]
"""``fault(model, rng, size)``: the wrong gradient; None where the model has no such fault.

`size` is the smallest relative error that is planted.
"""


def _scaled(model: Model, factor: float | Array) -> Term:
    """Return the gradient times a number, or times one number for each component."""

    def wrong(xp: Any, x: Any) -> Any:
        return model.gradient(xp, x) * constant(xp, factor, x)

    return wrong


def _component(model: Model, rng: Generator, factor: float) -> Term:
    """Return the gradient with one component multiplied."""
    factors = np.ones(model.x.shape)
    factors.flat[rng.integers(factors.size)] = factor
    return _scaled(model, factors)


def _missing_term(model: Model, rng: Generator, size: float) -> Term | None:
    if len(model.parts) == 1:
        return None
    return model.without(int(rng.integers(len(model.parts))))


def _off_by_one(model: Model, rng: Generator, size: float) -> Term:
    def wrong(xp: Any, x: Any) -> Any:
        return xp.roll(model.gradient(xp, x), 1)

    return wrong


def _stale_value(model: Model, rng: Generator, size: float) -> Term:
    """Return the gradient at a point visited before."""
    moved = 0.03 * rng.choice((-1.0, 1.0), model.x.shape) * model.x

    def wrong(xp: Any, x: Any) -> Any:
        return model.gradient(xp, x + constant(xp, moved, x))

    return wrong


def _small_error(model: Model, rng: Generator, size: float) -> Term:
    return _scaled(model, float(1 + rng.choice((-1.0, 1.0)) * size * 10 ** rng.uniform(0.0, 1.0)))


def _one_component(model: Model, rng: Generator, size: float) -> Term:
    return _component(model, rng, float(1 + size * 10 ** rng.uniform(0.0, 2.0)))


def _unwritten(model: Model, rng: Generator, size: float) -> Term:
    """Return the gradient whose last component was never written: a loop that ends early."""
    factors = np.ones(model.x.shape)
    factors.flat[-1] = 0.0
    return _scaled(model, factors)


FAULTS: Mapping[str, Fault] = {
    "sign": lambda model, rng, size: _scaled(model, -1.0),
    "factor of two": lambda model, rng, size: _scaled(model, float(rng.choice((0.5, 2.0)))),
    "missing term": _missing_term,
    "transposed": lambda model, rng, size: model.transposed,
    "off by one index": _off_by_one,
    "inner derivative missing": lambda model, rng, size: model.inner,
    "detached part": lambda model, rng, size: (
        None if model.detached is None else model.without(model.detached)
    ),
    "stale value": _stale_value,
    "wrong branch": lambda model, rng, size: model.branch,
    "small relative error": _small_error,
    "one component": _one_component,
    "unwritten component": _unwritten,
}
