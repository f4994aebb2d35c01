"""Machine code for other compiled code: by address, `ctypes`, SciPy, Numba and C."""

from __future__ import annotations

import ctypes
import gc
import math
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, ndimage

import difflab as dl
from difflab.errors import InputError, UnsupportedError
from difflab.interop.scipy import low_level

pytest.importorskip("llvmlite")

SEED = "ln(x1) + x1*x2 - sin(x2)"
# Baydin et al. 2018, Tables 2 and 3.
SEED_RESULTS = [11.652071455223084, 5.5, 2.0 - math.cos(5.0)]


def called(fast: Any, x: Any) -> np.ndarray[Any, Any]:
    point, out = np.array(x, float), np.full(fast.function.m + 1, np.nan)
    assert fast.ctypes(point.ctypes, out.ctypes) is None
    assert np.isnan(out[-1])  # nothing is written behind it
    return out[:-1]


@pytest.mark.parametrize("target", ["auto", "native"])
def test_flattened_inputs_and_outputs(target: str) -> None:
    fast = dl.compile(dl.value_and_gradient(dl.parse(SEED)), target)
    np.testing.assert_allclose(called(fast, [2.0, 5.0]), SEED_RESULTS, rtol=1e-15)
    by_address = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(fast.address)
    point, out = np.array([2.0, 5.0]), np.empty(3)
    by_address(point.ctypes, out.ctypes)
    np.testing.assert_array_equal(out, called(fast, point))


def test_the_bits_of_calls() -> None:
    f = dl.value_and_gradient(dl.parse("logaddexp(x, y)*sin(x*y) + sigmoid(y)^x"))
    for target in ("auto", "native"):
        fast = dl.compile(f, target)
        for point in np.random.default_rng(0).normal(size=(200, 2)).tolist():
            value, slope = fast(*point)
            assert called(fast, point).tobytes() == np.array([value, *slope]).tobytes()


def test_code_of_loops_is_compiled_once(monkeypatch: Any, tmp_path: Path) -> None:
    """Its constants are part of it: an address of memory would make it another text each time."""
    monkeypatch.setenv("DIFFLAB_CACHE", str(tmp_path))
    terms = " + ".join(f"sin({i + 1}*x)*exp(-y/{i + 1})" for i in range(400))
    counts = []
    kept = [dl.compile(dl.parse(terms)) for _ in range(3)]
    for fast in kept:
        assert fast.address
        counts.append(len(list(tmp_path.iterdir())))
    assert counts[0] == counts[1] == counts[2] > 0
    found, k = np.empty(1), np.arange(1, 401)
    kept[0].ctypes(np.array([0.7, 1.3]).ctypes, found.ctypes)
    assert found[0] == pytest.approx(np.sum(np.sin(k * 0.7) * np.exp(-1.3 / k)), rel=1e-11)


def test_large_functions() -> None:
    terms = " + ".join(f"sin(x[{i}]*x[{i + 1}])*exp(-x[{i}]^2)" for i in range(299))
    f = dl.value_and_gradient(dl.parse(f"x: [300]\n{terms}"))
    x = np.linspace(0.1, 1.0, 300)
    a, b = np.sin(x[:-1] * x[1:]), np.exp(-(x[:-1] ** 2))
    fast = dl.compile(f)
    found = called(fast, x)
    assert found[0] == pytest.approx(np.sum(a * b), rel=1e-13)
    slope = np.zeros(300)
    slope[:-1] += b * (np.cos(x[:-1] * x[1:]) * x[1:] - 2 * x[:-1] * a)
    slope[1:] += b * np.cos(x[:-1] * x[1:]) * x[:-1]
    np.testing.assert_allclose(found[1:], slope, rtol=1e-12, atol=1e-14)
    points = np.random.default_rng(1).uniform(0.1, 1.0, (8, 300))
    expected = [called(fast, point).tobytes() for point in points]
    wrong: list[int] = []

    def work(k: int) -> None:  # all threads at once, without Python's lock
        wrong.extend(k for _ in range(200) if called(fast, points[k]).tobytes() != expected[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_code_outlives_the_callable() -> None:
    fast = dl.compile(dl.parse("x*sin(y)"))
    function, address = fast.ctypes, fast.address
    del fast
    gc.collect()
    x, y = np.array([3.0, 2.0]), np.empty(1)
    function(x.ctypes, y.ctypes)
    assert y[0] == 3.0 * math.sin(2.0)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(x.ctypes, y.ctypes)


def test_what_has_no_address() -> None:
    f = dl.parse("x*sin(y)")
    with pytest.raises(UnsupportedError, match=r"the target .python. .*use target .native."):
        _ = dl.compile(f, "python").address
    with pytest.raises(UnsupportedError, match="float32"):
        _ = dl.compile(f, dtype=np.float32).ctypes
    with pytest.raises(UnsupportedError, match="float64 results only"):
        _ = dl.compile(dl.parse("x < y"), "native").address
    solve = dl.trace(np.linalg.solve, np.eye(30), np.ones(30))
    with pytest.raises(UnsupportedError, match="no machine code with an address"):
        _ = dl.compile(solve).address


def test_integrals() -> None:
    wave = dl.compile(dl.parse("exp(-x^2)*cos(3*x)"))
    value, _ = integrate.quad(low_level(wave), -np.inf, np.inf)
    assert value == pytest.approx(math.sqrt(math.pi) * math.exp(-9 / 4), rel=1e-12)
    plane = dl.compile(dl.parse("x*x*y"))
    value, _ = integrate.nquad(low_level(plane), [[0.0, 3.0], [0.0, 2.0]])
    assert value == pytest.approx(9.0 * 2.0, rel=1e-12)


def test_filters() -> None:
    f = dl.compile(dl.parse("w: [3]\nw[0]*w[0] + 2*w[1] - exp(w[2])"))
    data = np.linspace(-1.0, 2.0, 20)
    found = ndimage.generic_filter(data, low_level(f, "filter"), size=3, mode="nearest")
    padded = np.pad(data, 1, mode="edge")
    expected = padded[:-2] ** 2 + 2 * padded[1:-1] - np.exp(padded[2:])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    with pytest.raises(RuntimeError):  # another number of elements
        ndimage.generic_filter(data, low_level(f, "filter"), size=5)


def test_functions_that_scipy_cannot_call() -> None:
    fast = dl.compile(dl.parse("x*y"))
    with pytest.raises(InputError, match="no kind 'sum'"):
        low_level(fast, "sum")
    with pytest.raises(InputError, match="compile it first"):
        low_level(dl.parse("x*y"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one output, a number"):
        low_level(dl.compile(dl.gradient(dl.parse("x*y"))))


def test_numba_calls_it() -> None:
    numba = pytest.importorskip("numba")
    fast = dl.compile(dl.value_and_gradient(dl.parse(SEED)))
    point = fast.ctypes

    @numba.njit
    def descent(x: Any, steps: int) -> Any:
        out = np.empty(3)
        for _ in range(steps):
            point(x.ctypes, out.ctypes)
            x -= 0.01 * out[1:]
        return out

    x, y = np.array([2.0, 5.0]), np.array([2.0, 5.0])
    descent(x, 20)
    for _ in range(20):
        y -= 0.01 * np.array([1 / y[0] + y[1], y[0] - math.cos(y[1])])
    np.testing.assert_allclose(x, y, rtol=1e-12)


def test_a_header_for_c(tmp_path: Path) -> None:
    fast = dl.compile(dl.value_and_gradient(dl.parse("w: [2, 2]\nx*sin(w[0, 1])*w[1, 1]")))
    text = fast.header("wave")
    assert "x[0:4]: w[2, 2]" in text or "x[1:5]: w[2, 2]" in text
    assert "#define WAVE_INPUTS 5\n#define WAVE_OUTPUTS 6\n" in text
    with pytest.raises(InputError, match="'a b' is no name of C"):
        fast.header("a b")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "wave.h").write_text(text)
    (tmp_path / "wave.c").write_text(
        '#include "wave.h"\n#include "wave.h"\n'
        "double first(wave_function f) {\n"
        "  double x[WAVE_INPUTS] = {2, 0.5, 3, 0.5, 7}, y[WAVE_OUTPUTS];\n"
        "  f(x, y);\n  return y[0];\n}\n"
    )
    library = tmp_path / "wave.so"
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library)]
    subprocess.run([*command, str(tmp_path / "wave.c")], check=True, timeout=600)
    first = ctypes.CDLL(str(library)).first
    first.restype, first.argtypes = ctypes.c_double, [ctypes.c_void_p]
    x = np.array([2.0, 0.5, 3.0, 0.5, 7.0])
    assert first(fast.address) == called(fast, x)[0] != 0.0
