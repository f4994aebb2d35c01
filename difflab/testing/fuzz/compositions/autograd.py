"""HIPS autograd's transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.testing.fuzz.compositions.framework import Framework, named

Fn = Callable[[Any], Any]


def _units(y: Any) -> list[Any]:
    size = int(np.size(y)) if not hasattr(y, "_value") else int(y.size)
    shape = np.shape(y) if not hasattr(y, "_value") else y.shape
    return [unit.reshape(shape) for unit in np.eye(size)]


def _vjp(f: Fn, n: int) -> Fn:
    import autograd
    import autograd.numpy as anp

    def run(x: Any) -> Any:
        back, y = autograd.make_vjp(f)(x)
        rows = [back(unit) for unit in _units(y)]
        return anp.reshape(anp.stack(rows), (*anp.shape(y), n))

    return run


def _tangents(make: str) -> Callable[[Fn, int], Fn]:
    def transform(f: Fn, n: int) -> Fn:
        import autograd.differential_operators as operators
        import autograd.numpy as anp

        def column(x: Any, v: Any) -> Any:
            found = getattr(operators, make)(f)(x)(v)
            return found[1] if isinstance(found, tuple) else found

        return lambda x: anp.stack([column(x, v) for v in np.eye(n)], -1)

    return transform


def _stacked(f: Fn, n: int) -> Fn:
    """Compute one row of two."""
    import autograd.numpy as anp

    return lambda x: anp.stack([f(x), f(x) * 2.0])[0]


def _through_list(f: Fn, n: int) -> Fn:
    """Take the array apart and put it together."""
    import autograd.numpy as anp

    return lambda x: f(anp.array([x[k] for k in range(n)]))


FRAMEWORK = Framework(
    "autograd",
    {
        "jacobian": named("autograd:jacobian"),
        "make_vjp": _vjp,
        "make_jvp": _tangents("make_jvp"),
        "make_jvp_reversemode": _tangents("make_jvp_reversemode"),
    },
    {"checkpoint": named("autograd:checkpoint"), "stack": _stacked, "array": _through_list},
    single=False,
)
