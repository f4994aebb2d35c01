"""``python -m benchmarks gpu``, on the strict stand-in: a copy takes it 1 ms, a launch 2."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.support import standin, standin_cuda


@pytest.fixture
def device(monkeypatch):
    if standin_cuda.COMPILER is None:
        pytest.skip("no C++ compiler to run kernels with")
    return standin_cuda.installed(monkeypatch)


def test_the_kernel_is_set_against_a_copy_of_the_same_bytes(benchmarks, device):
    result = benchmarks("gpu", "--points", "2000")
    assert result.code == 0
    first, _, copy, call, last = [line for line in result.out.splitlines() if line]
    assert first == "ln(x1) + x1*x2 - sin(x2), 2,000 points on a stand-in"
    assert copy.split() == ["copy", "on", "the", "device", "1.000", "0", "100", "%"]
    assert call.split() == ["value", "and", "gradient", "2.000", "0", "50", "%"]
    assert last == ("0.00 GB moved, best of 10 rounds; 80 % of the copy's bandwidth is not reached")
    points = {launch.args[-1].item() for launch in standin_cuda.LAUNCHES}
    assert points == {1000, 2000}


def test_both_move_the_same_bytes(device, monkeypatch):
    from benchmarks import gpu

    sizes = []
    monkeypatch.setattr(
        standin.Memory, "copy_from_device_async", lambda self, source, size: sizes.append(size)
    )
    monkeypatch.setattr(standin_cuda.Event, "record", lambda self: setattr(self, "at", len(sizes)))
    gpu.measure(3000)
    launch = standin_cuda.LAUNCHES[-1]
    arrays = [arg for arg in launch.args if isinstance(arg, standin.ndarray)]
    assert {2 * size for size in sizes} == {3000 * 8 * len(arrays)}


def test_too_many_points_name_a_number_that_fits(benchmarks, device):
    result = benchmarks("gpu")
    assert result.code == 2
    assert "100,000,000 points need 8.0 GB" in result.err
    assert "try --points 11250000" in result.err


def test_wrong_values_are_not_timed(benchmarks, device, monkeypatch):
    monkeypatch.setattr(standin, "empty", lambda shape, dtype: standin.full(shape, 1.0))
    monkeypatch.setattr(standin_cuda, "COMPILER", None)
    result = benchmarks("gpu", "--points", "2000")
    assert result.code == 2
    assert "differ from the host's" in result.err


def test_without_a_gpu_it_says_so(benchmarks, device, monkeypatch):
    def absent():
        raise OSError("cudaErrorNoDevice")

    monkeypatch.setattr(device.cuda.runtime, "getDevice", absent)
    result = benchmarks("gpu")
    assert result.code == 2
    assert "no GPU that CuPy can use: cudaErrorNoDevice" in result.err


def test_without_cupy_it_names_the_command(benchmarks, monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr("benchmarks.gpu.find_spec", lambda name: None)
    result = benchmarks("gpu")
    assert result.code == 2
    assert result.err.strip() == (
        "difflab: cupy is not installed; add it with: pip install 'difflab[gpu]'"
    )


@pytest.mark.gpu
def test_it_measures_on_a_gpu():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        cupy.zeros(1)
    except Exception as error:
        pytest.skip(f"no GPU that CuPy can use: {error}")
    from benchmarks.gpu import measure

    speed = measure(100_000)
    assert np.all(np.array([speed.copies, speed.calls]) > 0)
