"""Fourier transforms in machine code are the rows' kernels, and their neighbours are fused."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.libraries import FOURIER, Transform
from difflab.primitives import fft, irfft, rfft
from tests.support.rows import for_each

pytest.importorskip("llvmlite", reason="needs llvmlite: pip install 'difflab[native]'")

RNG = np.random.default_rng(3)
CASES: dict[str, Callable[..., Any]] = {
    "rfft": lambda x, axis: np.abs(np.fft.rfft(x, axis=axis)) ** 2,
    "irfft": lambda x, axis: np.fft.irfft(np.fft.rfft(x, axis=axis) * (1 + 2j), 7, axis=axis) ** 3,
    "fft": lambda x, axis: np.real(np.fft.fft(x + 1j * x * x, axis=axis) * x),
    "ifft": lambda x, axis: np.imag(np.fft.ifft(x * 1j + x * x, axis=axis, norm="ortho") * x),
    "rfftn": lambda x, axis: np.real(np.fft.rfftn(x)) ** 2,
    "irfftn": lambda x, axis: np.fft.irfftn(x + 0.5j * x * x),
}


@for_each("name", CASES)
@pytest.mark.parametrize(
    ("shape", "axis"), [((2,), 0), ((7,), 0), ((3, 40), 1), ((6, 5), 0), ((2, 9, 3), 1)]
)
def test_machine_code_gives_what_numpy_gives(
    name: str, shape: tuple[int, ...], axis: int, rng: np.random.Generator
) -> None:
    x = rng.normal(size=shape)
    f = dl.trace(dl.value_and_grad(lambda x: np.sum(np.sin(CASES[name](x, axis)))), x)
    native = dl.compile(f, target="native")
    assert native.reason.startswith("native")
    for found, expected in zip(native(x), dl.compile(f, target="numpy")(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("size", [1, 2, 5, 6])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("row", [fft, rfft, irfft])
def test_a_call_is_the_rows_kernel(
    row: Any, transposed: bool, size: int, after: int, rng: np.random.Generator
) -> None:
    transform = Transform(FOURIER[row.name], int(transposed), 2, size, after)
    source, target = transform.shapes
    x, out = rng.normal(size=source), np.full(target, np.nan)
    given = x.copy()
    transform.apply(x, out)
    params = {"size": size} if row is irfft else {}
    axes = (1 - x.ndim,) if row is rfft else (1 - x.ndim, -1)
    expected = row(x, axes=axes, rank=x.ndim, transposed=transposed, **params)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(x, given)


def test_long_transforms_are_compiled_for_one_point() -> None:
    f = dl.trace(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2), np.ones((4, 4096)))
    assert dl.compile(f).reason.startswith("native for one point, with long transforms")
    short = dl.trace(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2), np.ones(16))
    assert dl.compile(short).reason.startswith("numpy")


def test_parts_share_a_nest_with_what_computes_them() -> None:
    """Real and imaginary parts are written side by side without a pass of their own."""
    f = dl.trace(lambda x: np.fft.irfft(np.fft.rfft(x) * (0.5 + 2j)), np.ones((4, 64)))
    layout = NativeArrays(Schedule.of(f)).layout
    groups = [group for groups in layout.groups for group in groups]
    assert len(groups) == 3  # a transform, everything between, a transform
    # What the second transform writes has the memory of what the first one wrote.
    assert layout.room == 2 * (4 * 33 * 2)


def test_loops_of_machine_code_hold_transforms(rng: np.random.Generator) -> None:
    def evolved(x: Any) -> Any:
        step = lambda u, _: (np.fft.irfft(np.fft.rfft(u) * (0.9 + 0.1j), 8) + 0.1 * x, None)  # noqa: E731
        return np.sum(dl.scan(step, x, None, length=5)[0] ** 2)

    x = rng.normal(size=8)
    f = dl.trace(dl.value_and_grad(evolved), x)
    native = dl.compile(f, target="native")
    assert native.reason == "native: as requested"
    expected = dl.compile(f, target="numpy")
    for found, value in zip(native(x), expected(x), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-13)
    points = rng.normal(size=(9, 8))
    for found, value in zip(native(points), expected(points), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_what_a_transform_raises_ends_the_run(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    f = dl.trace(lambda x: np.fft.irfft(np.fft.rfft(x) * 2.0), np.ones(8))
    native = dl.compile(f, target="native")
    x = rng.normal(size=8)
    right = native(x)

    def failing(*args: Any) -> None:
        raise kind("in a transform")

    with monkeypatch.context() as patched:
        patched.setattr(Transform, "apply", failing)
        with pytest.raises(kind, match="in a transform"):
            native(x)
        assert not ctypes.pythonapi.PyErr_Occurred()
    np.testing.assert_array_equal(native(x), right)
