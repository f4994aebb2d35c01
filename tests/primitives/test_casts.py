"""The row `float32`: NumPy's and C's conversion is the rule, in every target and at every edge."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.optional import installed
from difflab.errors import UnsupportedError
from difflab.language.printers import c, python

LARGEST = float(np.finfo(np.float32).max)
HALF = 2.0**103
"""Half of the distance between the two largest numbers of float32."""
POSITIVE = [
    *(0.0, 0.1, 1.0, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 1 + 2.0**-24 + 2.0**-50, 1 / 3, 1e30),
    *(LARGEST, LARGEST + HALF * 0.999, LARGEST + HALF, 1e39, 1.7e308, np.inf),
    *(2.0**-126, 2.0**-127 * 1.1, 2.0**-149, 2.0**-150, 2.0**-150 * 1.001, 3 * 2.0**-150, 5e-324),
]
"""Ties to even, the largest numbers, and subnormal ones."""
EDGES = np.array([*POSITIVE, *(-x for x in POSITIVE), np.nan])
with np.errstate(all="ignore"):
    WANTED = EDGES.astype(np.float32).astype(np.float64)
ROW = dl.parse("float32(x)")
NATIVE = pytest.param(
    "native",
    marks=pytest.mark.skipif(
        not installed("llvmlite"), reason="needs llvmlite: pip install 'difflab[native]'"
    ),
)


def assert_same(found: Any) -> None:
    """Compare bits, so that -0.0 is kept; nan is equal to nan."""
    found = np.asarray(found, dtype=np.float64)
    np.testing.assert_array_equal(found, WANTED)
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(WANTED[:-1]))


@pytest.mark.parametrize("target", ["numpy", NATIVE])
def test_a_target_rounds_as_numpy_at_the_edges(target: str) -> None:
    fast = dl.compile(ROW, target)
    assert_same(fast(EDGES))
    assert_same([fast(x) for x in EDGES.tolist()])


def test_python_and_the_graph_round_as_numpy_at_the_edges() -> None:
    fast, names = dl.compile(ROW, "python"), dict[str, Any]()
    assert_same([fast(x) for x in EDGES.tolist()])
    exec(python(ROW, "f"), names)
    assert_same([names["f"](x) for x in EDGES.tolist()])
    assert_same(ROW(EDGES))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_printed_c_rounds_as_numpy_at_the_edges(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(c(ROW, "f"), encoding="utf-8")
    command = "gcc -O2 -fPIC -shared -o f.so f.c -lm"
    subprocess.run(command.split(), cwd=tmp_path, check=True)
    library, found = ctypes.CDLL(str(tmp_path / "f.so")), []
    for x in EDGES.tolist():
        y = ctypes.c_double()
        library.f(ctypes.byref(ctypes.c_double(x)), ctypes.byref(y))
        found.append(y.value)
    assert_same(found)


def test_its_derivative_is_that_of_its_argument() -> None:
    """JAX's rule for convert_element_type."""
    f = dl.parse("sin(float32(x))*x")
    rounded = float(np.float32(0.1))
    assert dl.gradient(f)(0.1)[0] == np.cos(rounded) * 0.1 + np.sin(rounded)
    assert dl.taylor(dl.parse("float32(x)^2"), order=2)(3.0).tolist() == [9.0, 6.0, 1.0]


def test_it_is_printed_and_parsed() -> None:
    f = dl.trace(lambda x: np.sum(x.astype(np.float32) * x), np.ones(3))
    assert str(f) == "x: [3]\nsum(float32(x)*x)"
    assert str(dl.parse(str(f))) == str(f)


def test_what_needs_a_true_derivative_refuses_it() -> None:
    with pytest.raises(UnsupportedError, match="staircase"):
        dl.enclose(ROW, at={"x": 0.5})
    compared = dl.compare(ROW, at={"x": 0.5}, timing=False)
    assert "staircase" in compared.table()
    assert {row.verdict for row in compared.methods if row.status == "ok"} == {"inconclusive"}


def test_it_is_nothing_in_code_of_float32() -> None:
    fast = dl.compile(dl.parse("float32(x)*x"), dtype=np.float32)
    x = np.linspace(0, 1, 100, dtype=np.float32)
    np.testing.assert_array_equal(fast(x), x * x)
