"""`apply`: the bits of one call in memory, in little memory, after any interruption."""

import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, PointError, UnsupportedError
from difflab.execute import Compiled
from difflab.execute.targets.numpy.target import NumpyTarget
from difflab.interop.large import chunks
from difflab.interop.large.formats.arrays import NpyResults
from difflab.interop.large.formats.tables import CsvPoints

ROOT = Path(__file__).parents[3]
FORMULA = "ln(x1)+x1*x2-sin(x2)"


def points_of(count, n=2, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 5.0, (count, n))


def in_memory(compiled, points):
    found = compiled(points)
    if isinstance(found, tuple):
        found = np.column_stack(found)
    return np.ascontiguousarray(found, dtype=float)


def files():
    return sorted(path.name for path in Path().iterdir())


def perceptron(x):
    rows = np.linspace(-1.0, 1.0, 7 * 3).reshape(7, 3)
    return np.sum(np.tanh(rows @ x) ** 2) + np.exp(x[0])


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_gradient_is_that_of_algebra(place):
    points = points_of(10_000)
    np.save("in.npy", points)
    gradient = dl.compile(dl.gradient(dl.parse(FORMULA)))
    assert dl.apply(gradient, "in.npy", "out.npy", chunk=999) is None
    x1, x2 = points.T
    expected = np.stack([1 / x1 + x2, x1 - np.cos(x2)], axis=1)
    np.testing.assert_allclose(np.load("out.npy"), expected, rtol=1e-14, atol=1e-14)
    assert files() == ["in.npy", "out.npy"]


@pytest.mark.parametrize("target", ["auto", "numpy", "native"])
@pytest.mark.parametrize("part", [chunks.PART_BYTES, 30_000])  # a chunk, and some of its points
@pytest.mark.parametrize(
    "derivative", [lambda f: f, dl.gradient, dl.value_and_gradient, dl.hessian]
)
def test_the_bits_are_those_of_one_call(place, monkeypatch, target, part, derivative):
    if target == "native":
        pytest.importorskip("llvmlite")
    monkeypatch.setattr(chunks, "PART_BYTES", part)
    fast = dl.compile(derivative(dl.parse(FORMULA)), target=target, packed=True)
    points = points_of(100_003)
    for layout in (points, np.asfortranarray(points)):
        np.save("in.npy", layout)
        for source in ("in.npy", layout):
            dl.apply(fast, source, "out.npy", chunk=7_001)
            assert np.load("out.npy").tobytes() == in_memory(fast, layout).tobytes()


@pytest.mark.parametrize("target", ["auto", "numpy"])
@pytest.mark.parametrize("chunk", [1, 700, None])
def test_products_of_matrices_add_in_the_same_order(place, target, chunk):
    f = dl.value_and_gradient(dl.trace(perceptron, np.ones(3)))
    fast = dl.compile(f, target=target, packed=True)
    points = points_of(5_000, 3)
    dl.apply(fast, points, "out.npy", chunk=chunk)
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()


@pytest.mark.parametrize("part", [chunks.PART_BYTES, 8])  # at least one point is a part
@pytest.mark.parametrize("count", [0, 1, 2, 31, 33, 257])
def test_few_points(place, monkeypatch, count, part):
    monkeypatch.setattr(chunks, "PART_BYTES", part)
    fast = dl.compile(dl.value_and_gradient(dl.parse(FORMULA)), packed=True)
    points = points_of(count)
    dl.apply(fast, points, "out.npy", chunk=10)
    assert np.load("out.npy").shape == (count, 3)
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()


def test_many_operations_are_computed_as_in_the_whole_batch(place):
    pytest.importorskip("llvmlite")
    text = " + ".join(f"sin({i + 1}*x)*exp(-y/{i + 1})" for i in range(400))
    fast = dl.compile(dl.parse(text), target="native", packed=True)
    points = points_of(600)
    dl.apply(fast, points, "out.npy", chunk=50)  # fewer than are computed by vector code alone
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()


@pytest.mark.parametrize("n", [1, 15, 16, 40])  # fewer than 16 elements are copied one by one
@pytest.mark.parametrize("count", [3, 70_001])
def test_elements_of_arrays_are_side_by_side(place, n, count):
    fast = dl.compile(
        dl.value_and_gradient(dl.trace(lambda x: np.sum(np.sin(x) * x[0]), np.ones(n))),
        target="native" if n < 40 else "auto",
        packed=True,
    )
    points = points_of(count, n)
    dl.apply(fast, points, "out.npy", chunk=30_011)
    found = np.load("out.npy")
    np.testing.assert_allclose(
        found[:, 0], np.sum(np.sin(points), axis=1) * points[:, 0], rtol=1e-12, atol=1e-13
    )
    assert found.tobytes() == in_memory(fast, points).tobytes()


def test_a_thread_uses_the_same_memory_for_all_chunks(place, monkeypatch):
    written, write = [], NpyResults.write

    def recorded(parts):
        for rows in parts:
            written.append(rows)  # kept, so that no other array can have its address
            yield rows

    def recording(self, start, parts):
        write(self, start, recorded(parts))

    monkeypatch.setattr(NpyResults, "write", recording)
    monkeypatch.setattr(chunks, "PART_BYTES", 500 * 8 * (2 + 2))
    np.save("in.npy", points_of(10_000))
    dl.apply(dl.compile(dl.gradient(dl.parse(FORMULA)), threads=1), "in.npy", "out.npy", chunk=999)
    (address,) = {rows.ctypes.data for rows in written}
    assert address % 64 == 0
    assert [len(rows) for rows in written] == [500, 499] * 10 + [10]


def test_a_truth_value_is_a_number(place):
    dl.apply(dl.compile(dl.parse("x < y")), points_of(100), "out.npy")
    assert set(np.load("out.npy")) == {0.0, 1.0}


def test_memory_is_that_of_two_chunks_a_thread(place):
    count, chunk, threads = 1_000_000, 20_000, 2
    np.save("in.npy", points_of(count))
    fast = dl.compile(dl.gradient(dl.parse(FORMULA)), threads=threads)
    dl.apply(fast, "in.npy", "warm.npy", chunk=chunk)
    # tracemalloc attributes freed memory to a second thread at times, so the least of three counts.
    peak = min(traced_peak(lambda: dl.apply(fast, "in.npy", "out.npy", chunk=chunk)) for _ in "123")
    chunk_bytes = 8 * chunk * (2 + 2)
    assert peak < threads * 2 * chunk_bytes
    assert peak < 0.1 * 8 * count * (2 + 2)


def traced_peak(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Stop(BaseException):
    """What ends a run between two chunks."""


def interrupted(after):
    def progress(done, total, label):
        if done >= after:
            raise Stop

    return progress


def computed_points(monkeypatch):
    """Count the points at which anything is computed."""
    counted = []
    rows = Compiled.rows

    def counting(self, points, whole, out):
        counted.append(len(points))
        return rows(self, points, whole, out)

    monkeypatch.setattr(Compiled, "rows", counting)
    return counted


def test_an_interrupted_run_goes_on(place, monkeypatch):
    points = points_of(10_000)
    np.save("in.npy", points)
    fast = dl.compile(dl.gradient(dl.parse(FORMULA)), packed=True, threads=1)
    with pytest.raises(Stop):
        dl.apply(fast, "in.npy", "out.npy", chunk=1_000, progress=interrupted(4_000))
    assert not Path("out.npy").exists()
    counted = computed_points(monkeypatch)
    dl.apply(fast, "in.npy", "out.npy", chunk=1_000)
    assert sum(counted) == 6_000
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()
    assert files() == ["in.npy", "out.npy"]


@pytest.mark.parametrize("change", ["function", "points", "chunk", "target"])
def test_a_changed_run_does_not_continue_the_old_one(place, monkeypatch, change):
    points = points_of(10_000)
    np.save("in.npy", points)
    fast = dl.compile(dl.parse(FORMULA), packed=True, threads=1)
    with pytest.raises(Stop):
        dl.apply(fast, "in.npy", "out.npy", chunk=1_000, progress=interrupted(4_000))
    chunk = 1_000
    if change == "function":
        fast = dl.compile(dl.parse("ln(x1)+x1*x2-cos(x2)"), packed=True)
    elif change == "points":
        points[17, 0] = 2.0
        np.save("in.npy", points)
    elif change == "chunk":
        chunk = 900
    else:
        fast = dl.compile(dl.parse(FORMULA), packed=True, target="numpy")
    counted = computed_points(monkeypatch)
    dl.apply(fast, "in.npy", "out.npy", chunk=chunk)
    assert sum(counted) == 10_000
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()


ENDINGS = [".npy", ".csv", ".parquet", ".zarr", "array", "dask"]


def stored(points, ending):
    """Return a source of points in a format, with the names of the files that it consists of."""
    if ending == "array":
        return points.copy(), []
    if ending == "dask":
        return pytest.importorskip("dask.array").from_array(points, chunks=500), []
    path = Path(f"in{ending}")
    if ending == ".npy":
        np.save(path, points)
    elif ending == ".csv":
        path.write_text("x1,x2\n" + "".join(f"{a:.17e},{b:.17e}\n" for a, b in points))
    elif ending == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        columns = [np.ascontiguousarray(column) for column in points.T]
        parquet = pytest.importorskip("pyarrow.parquet")
        table = arrow.table(columns, names=["x1", "x2"])
        parquet.write_table(table, path, compression="none", use_dictionary=False)
    else:
        zarr = pytest.importorskip("zarr")
        zarr.create_array(str(path), data=points, compressors=None, overwrite=True)
    return str(path), [each for each in [path, *path.rglob("*")] if each.is_file()]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("changed", [False, True])
def test_points_are_known_by_their_contents(place, monkeypatch, ending, changed):
    """Also where the sizes and the times of the files are those of the others."""
    points = points_of(2_000)
    source, paths = stored(points, ending)
    times = {path: path.stat() for path in paths}
    fast = dl.compile(dl.parse(FORMULA), packed=True, threads=1)
    with pytest.raises(Stop):
        dl.apply(fast, source, "out.npy", chunk=500, progress=interrupted(1_000))
    if changed:
        points[17, 0] = 2.0 + points[17, 0] / 8.0
    source, paths = stored(points, ending)
    for path in paths:
        assert path.stat().st_size == times[path].st_size
        os.utime(path, ns=(times[path].st_atime_ns, times[path].st_mtime_ns))
    counted = computed_points(monkeypatch)
    dl.apply(fast, source, "out.npy", chunk=500)
    assert sum(counted) == (2_000 if changed else 1_000)
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()
    assert not [name for name in files() if name.endswith(".part")]


def test_a_file_that_was_only_touched_is_the_same(place, monkeypatch):
    np.save("in.npy", points_of(2_000))
    fast = dl.compile(dl.parse(FORMULA), packed=True, threads=1)
    with pytest.raises(Stop):
        dl.apply(fast, "in.npy", "out.npy", chunk=500, progress=interrupted(1_000))
    os.utime("in.npy", ns=(1, 1))
    counted = computed_points(monkeypatch)
    dl.apply(fast, "in.npy", "out.npy", chunk=500)
    assert sum(counted) == 1_000


def test_a_second_run_on_one_output_is_refused(place):
    points = points_of(2_000)
    np.save("in.npy", points)
    fast = dl.compile(dl.parse(FORMULA), packed=True, threads=1)
    refused = []

    def second(done, total, label):
        with pytest.raises(
            InputError, match=r"another run is writing 'out.npy'\nhint: wait"
        ) as why:
            dl.apply(fast, "in.npy", "out.npy", chunk=500)
        refused.append(why)
        if done == 1_000:  # another function has another folder
            dl.apply(dl.compile(dl.parse("x1+x2"), packed=True), "in.npy", "out.npy", chunk=500)
            assert np.array_equal(np.load("out.npy"), points.sum(1))

    dl.apply(fast, "in.npy", "out.npy", chunk=500, progress=second)
    assert len(refused) == 4
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()
    assert files() == ["in.npy", "out.npy"]
    dl.apply(fast, "in.npy", "out.npy", chunk=500)  # the lock is gone


AT_ONCE = """
import sys, difflab as dl
fast = dl.compile(dl.gradient(dl.parse("ln(x1)+x1*x2-sin(x2)")), threads=1)
try:
    dl.apply(fast, "in.npy", "out.npy", chunk=2_000)
except dl.errors.DifflabError as error:
    print(error)
"""


def test_runs_at_once_end_with_the_result_or_a_refusal(place):
    points = points_of(100_000)
    np.save("in.npy", points)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", AT_ONCE]
    runs = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for run in runs:
        said, wrong = run.communicate()
        assert wrong == b""
        assert said == b"" or said.startswith(b"another run is writing 'out.npy'")
    whole = in_memory(dl.compile(dl.gradient(dl.parse(FORMULA)), packed=True), points)
    assert np.load("out.npy").tobytes() == whole.tobytes()
    assert files() == ["in.npy", "out.npy"]


def test_a_function_that_cannot_be_written_out_starts_again(place):
    def scaled(factor):
        class Scaled(dl.CustomFunction):
            @staticmethod
            def forward(ctx, x):
                return np.vectorize(lambda number: factor * float(number))(x)

            @staticmethod
            def backward(ctx, y_bar):
                return y_bar * factor

        return dl.compile(dl.trace(Scaled.apply, 1.0), packed=True, threads=1)

    points = points_of(1_000, 1)
    assert str(scaled(2.0).function) == str(scaled(3.0).function)
    with pytest.raises(Stop):
        dl.apply(scaled(2.0), points, "out.npy", chunk=100, progress=interrupted(500))
    dl.apply(scaled(3.0), points, "out.npy", chunk=100)
    assert np.array_equal(np.load("out.npy"), points[:, 0] * 3.0)


KILLED = """
import os, signal, sys
import difflab as dl
fast = dl.compile(dl.gradient(dl.parse("ln(x1)+x1*x2-sin(x2)")), threads=2)
def progress(done, total, label):
    if done >= 40_000:
        os.kill(os.getpid(), signal.SIGKILL)
dl.apply(fast, "in.npy", sys.argv[1], chunk=5_000, progress=progress)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("sink", ["out.npy", "out.csv"])
def test_a_killed_run_goes_on(place, monkeypatch, sink):
    points = points_of(100_000)
    np.save("in.npy", points)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, sink], env=environment, capture_output=True, check=False
    )
    assert done.returncode == -9, done.stderr.decode()
    assert not Path(sink).exists()
    fast = dl.compile(dl.gradient(dl.parse(FORMULA)), threads=2)
    counted = computed_points(monkeypatch)
    dl.apply(fast, "in.npy", sink, chunk=5_000)
    assert 50_000 <= sum(counted) <= 60_000
    found = np.load(sink) if sink == "out.npy" else np.loadtxt(sink, delimiter=",", skiprows=1)
    whole = in_memory(dl.compile(dl.gradient(dl.parse(FORMULA)), packed=True), points)
    assert np.array_equal(found, whole)


def test_an_interruption_at_the_very_end_leaves_no_empty_result(place, monkeypatch):
    points = points_of(1_000)
    fast = dl.compile(dl.parse(FORMULA), packed=True)

    def stop(*args, **kwargs):
        raise Stop

    # The result has been moved to its place, and its folder is still there.
    monkeypatch.setattr("difflab.interop.large.unfinished.shutil.rmtree", stop)
    with pytest.raises(Stop):
        dl.apply(fast, points, "out.npy")
    monkeypatch.undo()
    os.chdir(place)
    dl.apply(fast, points, "out.npy")
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()


def test_an_error_of_a_thread_stops_the_others(place, monkeypatch):
    """The others compute nothing until one has met the line that is wrong."""
    counted = computed_points(monkeypatch)
    failed, read, rows = threading.Event(), CsvPoints.read, Compiled.rows

    def reading(*arguments):
        try:
            yield from read(*arguments)
        except PointError:
            failed.set()
            raise

    def waiting(*arguments):
        assert failed.wait(600)
        return rows(*arguments)

    monkeypatch.setattr(CsvPoints, "read", reading)
    monkeypatch.setattr(Compiled, "rows", waiting)
    lines = ["x1,x2", *["1,2"] * 50_000]
    lines[7] = "1,two"
    Path("in.csv").write_text("\n".join(lines))
    fast = dl.compile(dl.parse(FORMULA), threads=2)
    with pytest.raises(PointError, match=r"line 8, column 2 of in.csv is not a number: 'two'"):
        dl.apply(fast, "in.csv", "out.npy", chunk=100)
    assert sum(counted) < 25_000
    assert files() == ["in.csv"]


def test_a_full_disk_is_reported_and_the_run_goes_on(place, monkeypatch):
    points = points_of(1_000)
    fast = dl.compile(dl.parse(FORMULA), packed=True, threads=1)

    def full(self, start, parts):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("difflab.interop.large.formats.arrays.NpyResults.write", full)
        with pytest.raises(InputError, match=r"cannot write 'out.npy': no space left on device"):
            dl.apply(fast, points, "out.npy")
    dl.apply(fast, points, "out.npy")
    assert np.load("out.npy").tobytes() == in_memory(fast, points).tobytes()


def test_points_that_disappear_are_not_blamed_on_the_sink(place):
    np.save("in.npy", points_of(1_000))

    def removed(done, total, label):
        Path("in.npy").unlink()

    fast = dl.compile(dl.parse(FORMULA), threads=1)
    with pytest.raises(InputError, match="cannot read the points: no such file or directory"):
        dl.apply(fast, "in.npy", "out.npy", chunk=100, progress=removed)


@pytest.mark.parametrize(("n", "m"), [(0, 1), (3, 0)])
def test_a_function_without_inputs_or_outputs(place, n, m):
    np.save("in.npy", np.empty((5, n)))
    f = dl.trace(lambda x: x[:0], np.ones(3)) if n else dl.parse("3")
    dl.apply(dl.compile(f), "in.npy", "out.npy", chunk=2)
    assert np.array_equal(np.load("out.npy").reshape(5, m), np.full((5, m), 3.0))


def test_chunks_are_whole_blocks_of_the_target():
    fast = dl.compile(dl.parse(FORMULA), target="numpy")
    block = fast.block(100_000)
    assert 1 < block < 100_000
    source = chunks.opened_points(points_of(100_000), fast.function)
    assert chunks._layout(fast, source, 1).chunk == block
    assert chunks._layout(fast, source, block + 1).chunk == 2 * block


def test_the_blocks_are_those_of_one_call(place, monkeypatch):
    sizes = []
    block = NumpyTarget._block

    def recorded(self, workspace, inputs, stores, start, stop):
        sizes.append(stop - start)
        block(self, workspace, inputs, stores, start, stop)

    monkeypatch.setattr(NumpyTarget, "_block", recorded)
    fast = dl.compile(dl.parse(FORMULA), target="numpy", packed=True, threads=1)
    points = points_of(100_001)
    fast(points)
    of_one_call, sizes[:] = list(sizes), []
    # Two blocks at a time: the last two would differ if they were halves of what is left.
    dl.apply(fast, points, "out.npy", chunk=2 * fast.block(len(points)))
    assert sizes == of_one_call


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((dl.parse("x"), "in.npy", "out.npy"), "apply takes a compiled function, not a Function"),
        ((None, [[1.0]], "out.npy"), "not list"),
        ((None, np.ones((3, 2)), "out.npy", 0), "chunk must be a positive number of points"),
        ((None, np.ones((3, 2))), "only the results of a Dask array can do without a sink"),
        ((None, np.ones((3, 2)), "out.txt"), "cannot tell the format of the results"),
        ((None, np.ones((3, 2)), "none/out.npy"), "the directory 'none' does not exist"),
        ((None, np.ones((3, 3)), "out.npy"), "has the shape 3×3, but the function has 2 flattened"),
        ((None, np.ones((3, 2), complex), "out.npy"), "holds complex128 values"),
        ((None, "none.npy", "out.npy"), "cannot read 'none.npy': no such file"),
    ],
)
def test_bad_input_is_named_and_leaves_nothing(place, arguments, message):
    compiled, *rest = arguments
    with pytest.raises(InputError, match=message):
        dl.apply(compiled or dl.compile(dl.parse(FORMULA)), *rest)
    assert files() == []


def test_arrays_on_a_gpu_are_not_computed_in_parts():
    fast = dl.compile(dl.parse(FORMULA))
    fast._choice = fast._choice.__class__("", device=True)
    with pytest.raises(UnsupportedError, match="GPU"):
        fast.rows(points_of(3), 3, np.empty((3, 1)))
