"""The page of NumPy's functions: its examples run, and its table is what difflab has."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.arrays.counterparts.selection import UFUNCS
from difflab.arrays.numpy_names import ARRAY_FUNCTIONS
from tests.support.documents import ROOT, python_failures
from tests.support.rows import for_each

PAGE = (ROOT / "docs" / "reference" / "numpy.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    assert not python_failures(PAGE, "numpy.md")


def found(name: str) -> Any:
    return reduce(getattr, name.split("."), np)


def test_the_table_is_complete() -> None:
    table = PAGE[PAGE.index("| subject |") : PAGE.index("The rows of")]
    listed = [name for entry in re.findall(r"`([^`]+)`", table) for name in entry.split()]
    assert len(set(listed)) == len(listed)
    rows = {"where", "maximum", "minimum"}
    masks = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "logical_xor"}
    ours = set(ARRAY_FUNCTIONS) | {getattr(np, name) for name in set(UFUNCS) - masks}
    assert {found(name) for name in listed} == ours | {getattr(np, name) for name in rows}


@for_each(
    ("point", "code", "expected"),
    [
        ("std", lambda xp, x: xp.std(x), [0.0, 0.0, 0.0]),
        ("ptp", lambda xp, x: xp.max(x), [0.0, 0.0, 1.0]),
        ("fmax", lambda xp, x: xp.fmax(x, x[0]).sum(), [3.0, 0.0, 0.0]),
        ("fmin", lambda xp, x: xp.fmin(x[0], x).sum(), [1.0, 1.0, 1.0]),
        ("trunc", lambda xp, x: (xp.trunc(x) + xp.heaviside(x - 1.0, 0.5)).sum(), [0.0] * 3),
        ("sort", lambda xp, x: xp.sort(x) @ xp.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        ("median", lambda xp, x: xp.median(x), [0.0, 1.0, 0.0]),
        ("quantile", lambda xp, x: xp.quantile(x, 0.25), [0.5, 0.5, 0.0]),
        ("interp", lambda xp, x: xp.interp(x, [0.0, 1.0, 3.0], [0.0, 2.0, 3.0]).sum(), [0.5] * 3),
        ("cumprod", lambda xp, x: xp.cumprod(x * (x > 1.0))[:2].sum(), [0.0] * 3),
    ],
)
def test_derivatives_are_chosen_as_stated(point: str, code: Any, expected: list[float]) -> None:
    at = np.ones(3)
    assert dl.grad(lambda x: code(np, x))(at).tolist() == expected
    leaf = dl.tensor(at, requires_grad=True)
    (code(np, leaf) + 0.0 * leaf[0]).backward()
    assert leaf.grad.numpy().tolist() == expected


def test_peers_choose_as_stated() -> None:
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    one = jax.numpy.ones(2)
    assert np.isnan(jax.grad(jax.numpy.std)(one)).all()
    assert jax.grad(jax.numpy.max)(one).tolist() == [0.5, 0.5]
    assert jax.grad(jax.numpy.fmax)(1.0, 1.0) == 0.0
    three = jax.numpy.ones(3)
    assert jax.grad(lambda x: jax.numpy.sort(x) @ jax.numpy.arange(3.0))(three).tolist() == [
        0,
        1,
        2,
    ]
    assert jax.grad(jax.numpy.median)(three).tolist() == [0.0, 1.0, 0.0]
    at = jax.numpy.array([0.0, 1.0, 3.0])
    slope = jax.grad(lambda x: jax.numpy.interp(x, at, jax.numpy.array([0.0, 2.0, 3.0])))
    assert [slope(1.0), slope(3.0)] == [0.5, 0.5]
    leaf = torch.ones(2, requires_grad=True)
    torch.std(leaf).backward()
    assert leaf.grad.tolist() == [0.0, 0.0]
    leaf = torch.ones(2, requires_grad=True)
    leaf.amax().backward()
    assert leaf.grad.tolist() == [0.5, 0.5]
    leaf = torch.tensor(1.0, requires_grad=True)
    torch.fmax(leaf, torch.tensor(1.0)).backward()
    assert leaf.grad == 1.0
