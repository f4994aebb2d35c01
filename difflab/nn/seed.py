"""The keys from which layers draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from difflab.arrays import random
from difflab.core.place import at_users_line
from difflab.errors import TraceError
from difflab.graph.node import Node

__all__ = ["drawing_from", "manual_seed", "next_key", "require_call"]

_eager: list[Any] = [random.key(0)]
"""The key of what is drawn next, outside of `functional_call`."""
_inside: ContextVar[list[Any] | None] = ContextVar("keys of a functional_call", default=None)


def manual_seed(seed: int) -> None:
    """Set the key from which parameters and masks are drawn; it is that of 0 at first.

    Examples
    --------
    >>> from difflab import nn
    >>> nn.manual_seed(1)
    >>> first = nn.Linear(2, 2).weight
    >>> nn.manual_seed(1)
    >>> bool((first == nn.Linear(2, 2).weight).all())
    True
    """
    _eager[0] = random.key(seed)


@contextmanager
def drawing_from(key: Any) -> Iterator[None]:
    """Draw from a key, which may be a traced value, inside the block; None for no key."""
    token = _inside.set([key])
    try:
        yield
    finally:
        _inside.reset(token)


def next_key(x: Any = None) -> Any:
    """Return a key that is used once, for a layer that computes on `x`."""
    held = _inside.get()
    if held is None or held[0] is None:
        if isinstance(x, Node):
            raise at_users_line(
                TraceError,
                "a layer that draws random numbers is traced, and later calls would repeat them",
                "call model.eval(), or nn.functional_call(model, parameters, x, key=key)",
            )
        held = _eager
    held[0], key = random.split(held[0])
    return key


def require_call(x: Any) -> None:
    """Raise if a layer that changes its statistics is traced outside of `functional_call`."""
    if isinstance(x, Node) and _inside.get() is None:
        raise at_users_line(
            TraceError,
            "batch normalisation in training mode changes its statistics, which a trace cannot",
            "call model.eval(), or nn.functional_call(model, parameters, x), which keeps them",
        )
