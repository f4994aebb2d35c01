"""Which of NumPy's functions give views: traced values and tensors share what NumPy's arrays share.

A result is written to, and then its argument; the sums of squares of both, after each, are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError

VECTOR, ROWS, SQUARE = np.arange(1.0, 5), np.arange(1.0, 7).reshape(2, 3), np.arange(1.0, 10)
SQUARE = SQUARE.reshape(3, 3)
CUBE, THIN = np.arange(1.0, 9).reshape(2, 2, 2), np.arange(1.0, 7).reshape(1, 6, 1)

OF_VECTORS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda y: y[:],
    "dots": lambda y: y[...],
    "no axes": lambda y: y[1, ...],
    "backwards": lambda y: y[::-1],
    "every other": lambda y: y[1::2],
    "newaxis": lambda y: y[None],
    "list": lambda y: y[[0, 2]],
    "mask": lambda y: y[VECTOR > 2],
    "T": lambda y: y.T,
    "expand_dims": lambda y: np.expand_dims(y, 1),
    "split": lambda y: np.split(y, 2)[1],
    "array_split": lambda y: np.array_split(y, 3)[0],
    "diag": np.diag,
    "broadcast_to": lambda y: np.broadcast_to(y, (2, 4)),
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "flip": np.flip,
    "roll": lambda y: np.roll(y, 1),
    "roll by nothing": lambda y: np.roll(y, 0),
    "real": lambda y: y.real,
    "np.real": np.real,
    "conj": lambda y: y.conj(),
    "conjugate": np.conjugate,
    "positive": np.positive,
    "plus": lambda y: +y,
    "abs": abs,
    "astype": lambda y: y.astype(float),
    "clip": lambda y: y.clip(0, 100),
    "concatenate": lambda y: np.concatenate([y]),
    "hstack": lambda y: np.hstack([y]),
    "stack": lambda y: np.stack([y]),
    "column_stack": lambda y: np.column_stack([y]),
    "append": lambda y: np.append(y, []),
    "tile once": lambda y: np.tile(y, 1),
    "tile up": lambda y: np.tile(y, (1, 1)),
    "repeat": lambda y: np.repeat(y, 1),
    "resize": lambda y: np.resize(y, (4,)),
    "pad": lambda y: np.pad(y, 0),
    "pad edge": lambda y: np.pad(y, 0, mode="edge"),
    "meshgrid": lambda y: np.meshgrid(y, y)[0],
    "meshgrid sparse": lambda y: np.meshgrid(y, y, sparse=True)[0],
    "meshgrid views": lambda y: np.meshgrid(y, y, copy=False, sparse=True)[0],
    "take": lambda y: np.take(y, [0, 1, 2, 3]),
    "delete": lambda y: np.delete(y, []),
    "sort": np.sort,
    "where": lambda y: np.where(y > 0, y, 0),
    "nan_to_num": np.nan_to_num,
    "full_like": lambda y: np.full_like(y, 2.0),
    "zeros_like": np.zeros_like,
    "sum of nothing": lambda y: np.sum(y, axis=()),
    "diff": lambda y: np.diff(y, 0),
    "select": lambda y: np.select([y > 0], [y]),
    "times one": lambda y: y * 1,
    "power one": lambda y: y**1,
    "flat": lambda y: y.flat[:],
    "copy": lambda y: y.copy(),
    "np.copy": np.copy,
}
OF_ROWS: dict[str, Callable[[Any], Any]] = {
    "row": lambda y: y[1],
    "column": lambda y: y[:, 1],
    "inner newaxis": lambda y: y[:, None, 1:],
    "mixed": lambda y: y[0, [1, 2]],
    "newaxis and list": lambda y: y[None, [0, 1]],
    "reshape": lambda y: y.reshape(3, 2),
    "same reshape": lambda y: y.reshape(2, 3),
    "np.reshape": lambda y: np.reshape(y, (3, 2)),
    "T": lambda y: y.T,
    "transpose": np.transpose,
    "mT": lambda y: y.mT,
    "matrix_transpose": np.matrix_transpose,
    "ravel": lambda y: y.ravel(),
    "np.ravel": np.ravel,
    "ravel of T": lambda y: y.T.ravel(),
    "reshape of T": lambda y: y.T.reshape(-1),
    "reshape of columns": lambda y: y[:, :2].reshape(-1),
    "reshape of rows": lambda y: y[1:].reshape(-1),
    "T of T": lambda y: y.T.T.reshape(-1),
    "flatten": lambda y: y.flatten(),
    "hsplit": lambda y: np.hsplit(y, 3)[1],
    "vsplit": lambda y: np.vsplit(y, 2)[1],
    "unstack": lambda y: np.unstack(y)[1],
    "atleast_3d": np.atleast_3d,
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "rot90": np.rot90,
    "rot90 by nothing": lambda y: np.rot90(y, 0),
    "roll around": lambda y: np.roll(y, 3, axis=1),
    "vstack": lambda y: np.vstack([y]),
    "block": lambda y: np.block([[y]]),
    "block of one": lambda y: np.block(y),
    "einsum": lambda y: np.einsum("ij->ji", y),
    "iteration": lambda y: list(y)[1],
}
OTHERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "swapaxes": (CUBE, lambda y: y.swapaxes(0, 2)),
    "np.swapaxes": (CUBE, lambda y: np.swapaxes(y, 0, 1)),
    "permuted": (CUBE, lambda y: y.transpose(1, 0, 2)),
    "moveaxis": (CUBE, lambda y: np.moveaxis(y, 0, 2)),
    "rollaxis": (CUBE, lambda y: np.rollaxis(y, 2)),
    "dsplit": (CUBE, lambda y: np.dsplit(y, 2)[1]),
    "squeeze": (THIN, lambda y: y.squeeze()),
    "np.squeeze": (THIN, lambda y: np.squeeze(y, 0)),
    "diagonal": (SQUARE, lambda y: y.diagonal()),
    "np.diagonal": (SQUARE, np.diagonal),
    "diag": (SQUARE, np.diag),
    "tril": (SQUARE, np.tril),
    "matrix_power": (SQUARE, lambda y: np.linalg.matrix_power(y, 1)),
    "sum of one": (np.ones((1, 3)), lambda y: np.sum(y, axis=0)),
    "max of one": (np.ones((1, 3)), lambda y: np.max(y, axis=0)),
    "cumsum of one": (np.ones(1), np.cumsum),
    "sort of one": (np.ones(1), np.sort),
}
CASES = {
    **{f"vector: {name}": (VECTOR, f) for name, f in OF_VECTORS.items()},
    **{f"rows: {name}": (ROWS, f) for name, f in OF_ROWS.items()},
    **OTHERS,
}


def observed(f: Callable[[Any], Any], y: Any) -> tuple[bool, list[Any]]:
    """Write to a result of `f` and to its argument; return what both are after each."""
    y = y * 1.0
    v = f(y)
    try:
        v[...] = 7.0
        writeable = True
    except (ValueError, DifflabError):
        writeable = False
    first = [np.sum(y * y), np.sum(v * v)]
    y[...] = 3.0
    return writeable, [*first, np.sum(y * y), np.sum(v * v)]


@pytest.mark.parametrize("name", CASES)
def test_results_share_what_numpys_share(name: str) -> None:
    x, f = CASES[name]
    writeable, expected = observed(f, x)
    seen: list[bool] = []

    def traced(y: Any) -> Any:
        found, sums = observed(f, y)
        seen.append(found)
        return np.stack(sums)

    values = [dl.trace(traced, x)(x), dl.vjp(traced, x)[0]]
    taped, sums = observed(f, dl.tensor(x, requires_grad=True))
    values.append([part.item() for part in sums])
    assert [*seen, taped] == [writeable] * 3
    for found in values:
        assert np.allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.T * 2.0, lambda z: z.ravel()),
        lambda x: (2.0 * x.T, lambda z: z.reshape(-1)),
        lambda x: (-x.T, lambda z: z.ravel()),
        lambda x: (np.sin(x.T) + x.T, lambda z: z.ravel()),
        lambda x: (np.zeros_like(x.T) + 1.0, lambda z: z.ravel()),
        lambda x: (np.where(x.T > 2, x.T, 0.0), lambda z: z.ravel()),
        lambda x: (x.T + np.ones((3, 2)), lambda z: z.ravel()),
        lambda x: (x.T.copy(), lambda z: z.ravel()),
        lambda x: (np.copy(x.T), lambda z: z.ravel()),
        lambda x: (x[::-1] * 2.0, lambda z: z.ravel()),
    ],
)
def test_results_have_the_memory_order_of_their_operands(f: Callable[[Any], Any]) -> None:
    def run(x: Any) -> Any:
        z, flat = f(x)
        r = flat(z)
        r += 5.0
        return np.stack([np.sum(z), np.sum(r)])

    expected = run(ROWS)
    assert np.allclose(dl.trace(run, ROWS)(ROWS), expected, rtol=1e-14)
    assert np.allclose(run(dl.tensor(ROWS)).numpy(), expected, rtol=1e-14)
