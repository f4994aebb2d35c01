"""HIPS autograd's transforms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from difflab.testing.fuzz.compositions.framework import Fn, Framework, named


def _units(y: Any) -> list[Any]:
    size = int(np.size(y)) if not hasattr(y, "_value") else int(y.size)
    shape = np.shape(y) if not hasattr(y, "_value") else y.shape
    return [unit.reshape(shape) for unit in np.eye(size)]


def _vjp(f: Fn, n: int, x: Any) -> Any:
    import autograd
    import autograd.numpy as anp

    back, y = autograd.make_vjp(f)(x)
    rows = [back(unit) for unit in _units(y)]
    return anp.reshape(anp.stack(rows), (*anp.shape(y), n))


def _tangents(f: Fn, n: int, x: Any, *, make: str) -> Any:
    import autograd.differential_operators as operators
    import autograd.numpy as anp

    def column(x: Any, v: Any) -> Any:
        out = getattr(operators, make)(f)(x)(v)
        return out[1] if isinstance(out, tuple) else out

    return anp.stack([column(x, v) for v in np.eye(n)], -1)


def _stacked(f: Fn, n: int, x: Any) -> Any:
    """Compute one row of two."""
    import autograd.numpy as anp

    return anp.stack([f(x), f(x) * 2.0])[0]


def _through_list(f: Fn, n: int, x: Any) -> Any:
    """Take the array apart and put it together."""
    import autograd.numpy as anp

    return f(anp.array([x[k] for k in range(n)]))


FRAMEWORK = Framework(
    "autograd",
    {
        "jacobian": named("autograd:jacobian"),
        "make_vjp": _vjp,
        "make_jvp": partial(_tangents, make="make_jvp"),
        "make_jvp_reversemode": partial(_tangents, make="make_jvp_reversemode"),
    },
    {"checkpoint": named("autograd:checkpoint"), "stack": _stacked, "array": _through_list},
    single=False,
)
