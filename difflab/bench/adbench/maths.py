"""The array modules of the objectives, and the functions whose names differ between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Maths", "autograd_maths", "difflab_maths", "jax_maths", "torch_maths"]


def _looped(step: Callable[..., Any], carry: Any, *sequences: Any) -> Any:
    for k in range(len(sequences[0])):
        carry = step(carry, *[sequence[k] for sequence in sequences])
    return carry


@dataclass(frozen=True)
class Maths:
    """An array module, and the functions whose names differ between packages.

    Attributes
    ----------
    xp : module
        With NumPy's names: ``exp``, ``stack``, ``where`` and so on.
    array : callable
        NumPy's array to one of the module.
    sigmoid : callable
        1/(1 + exp(-x)).
    logsumexp : callable
        ``logsumexp(x, axis)``, computed without overflow.
    loop : callable
        ``loop(step, carry, *sequences)``: ``carry = step(carry, *elements)``, element by element.
    """

    xp: Any
    array: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    logsumexp: Callable[[Any, int], Any]
    loop: Callable[..., Any] = _looped


def difflab_maths() -> Maths:
    """Return NumPy's functions, which difflab traces."""
    import numpy as np

    from difflab.arrays import logsumexp

    return Maths(np, np.asarray, lambda x: 1.0 / (1.0 + np.exp(-x)), logsumexp)


def jax_maths() -> Maths:
    """Return JAX's functions; its loop is the one that it compiles as a loop."""
    import jax

    def loop(step: Callable[..., Any], carry: Any, *sequences: Any) -> Any:
        return jax.lax.scan(lambda kept, now: (step(kept, *now), None), carry, sequences)[0]

    return Maths(jax.numpy, jax.numpy.asarray, jax.nn.sigmoid, jax.scipy.special.logsumexp, loop)


def torch_maths() -> Maths:
    """Return PyTorch's functions."""
    import torch

    return Maths(torch, torch.as_tensor, torch.sigmoid, torch.logsumexp)


def autograd_maths() -> Maths:
    """Return autograd's functions."""
    import autograd.numpy as xp
    from autograd.scipy.special import expit, logsumexp

    return Maths(xp, xp.asarray, expit, logsumexp)
