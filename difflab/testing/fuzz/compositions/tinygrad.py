"""tinygrad's transforms: ``gradient``, and those that keep values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.testing.fuzz.compositions.framework import Fn, Framework, kept


def _rows(f: Fn, n: int, x: Any) -> Any:
    from tinygrad import Tensor

    y = f(x)
    flat = y.reshape(-1)
    rows = [flat[k].gradient(x)[0] for k in range(flat.shape[0])]
    return Tensor.stack(*rows).reshape(*y.shape, n)


def _seeded(f: Fn, n: int, x: Any) -> Any:
    """Pull unit cotangents back."""
    from tinygrad import Tensor, dtypes

    y = f(x)
    flat = y.reshape(-1)
    units = [Tensor(unit, dtype=dtypes.float64) for unit in np.eye(flat.shape[0])]
    rows = [flat.gradient(x, gradient=unit)[0] for unit in units]
    return Tensor.stack(*rows).reshape(*y.shape, n)


def _contiguous(f: Fn, n: int, x: Any) -> Any:
    return f(x.contiguous()).contiguous()


def _stacked(f: Fn, n: int, x: Any) -> Any:
    from tinygrad import Tensor

    return Tensor.stack(f(x), f(x) * 2.0)[0]


def _flipped(f: Fn, n: int, x: Any) -> Any:
    return f(x.flip(0).flip(0))


def _call(transformed: Fn, x: NDArray[Any], names: Sequence[str]) -> Any:
    from tinygrad import Tensor, TinyJit

    def realized(at: Any) -> Any:
        result = transformed(at)
        # A constant result would be computed by another device than that of the point.
        return (result + Tensor(np.zeros(result.shape)).realize()).realize()

    run = TinyJit(realized) if "TinyJit" in names else realized
    for _ in range(3 if "TinyJit" in names else 1):  # it replays from the third call on
        result = run(Tensor(x).clone().realize())
    return result.numpy()


FRAMEWORK = Framework(
    "tinygrad",
    {"gradient": _rows, "gradient_seeded": _seeded},
    {"contiguous": _contiguous, "stack": _stacked, "flip": _flipped, "TinyJit": kept},
    single=False,
    call=_call,
)
