"""The formats of points and results: read and written by other libraries, errors by place."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import difflab as dl
from difflab.errors import (
    DifflabError,
    InputError,
    MissingDependencyError,
    PointError,
    ResourceError,
)

COUNT = 10_007
# The result in NumPy alone: x1*x2, and its gradient.
POINTS = np.random.default_rng(3).uniform(-5.0, 5.0, (COUNT, 2))
X, Y = POINTS.T
EXPECTED = np.stack([X * X * Y, 2 * X * Y, X * X], axis=1)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def fast():
    return dl.compile(dl.value_and_gradient(dl.parse("x*x*y")))


def written_npy(name):
    np.save(name, POINTS)


def written_zarr(name):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(name, shape=POINTS.shape, chunks=(1_000, 2), dtype="f8")[:] = POINTS


def written_parquet(name):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"label": ["a"] * COUNT, "y": Y, "x": X})
    parquet.write_table(table, name, row_group_size=3_333)


def written_csv(name):
    lines = [f"{y!r},note,{x!r}" for x, y in POINTS.tolist()]
    Path(name).write_text("\n".join(["y,label,x", *lines, "", ""]))


def read_npy(name):
    return np.load(name)


def read_zarr(name):
    return pytest.importorskip("zarr").open_array(name, mode="r")[:]


def read_parquet(name):
    table = pytest.importorskip("pyarrow.parquet").read_table(name)
    assert table.column_names == ["f", "gradient[0]", "gradient[1]"]
    return np.stack([column.to_numpy() for column in table.columns], axis=1)


def read_csv(name):
    assert Path(name).read_text().startswith("f,gradient[0],gradient[1]\n")
    return np.loadtxt(name, delimiter=",", skiprows=1, ndmin=2)


WRITTEN = {"npy": written_npy, "zarr": written_zarr, "parquet": written_parquet, "csv": written_csv}
READ = {"npy": read_npy, "zarr": read_zarr, "parquet": read_parquet, "csv": read_csv}


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("chunk", [700, None])
def test_points_of_every_format(fast, form, chunk):
    WRITTEN[form](f"in.{form}")
    dl.apply(fast, f"in.{form}", "out.npy", chunk=chunk)
    np.testing.assert_allclose(np.load("out.npy"), EXPECTED, rtol=1e-15)


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("chunk", [700, None])
def test_results_of_every_format(fast, form, chunk):
    # pyarrow and zarr are asked for before the result, so that their absence is a skip.
    if form in ("zarr", "parquet"):
        pytest.importorskip({"zarr": "zarr", "parquet": "pyarrow"}[form])
    dl.apply(fast, POINTS, f"out.{form}", chunk=chunk)
    dl.apply(fast, POINTS, "out-too.npy")
    assert READ[form](f"out.{form}").tobytes() == np.load("out-too.npy").tobytes()
    np.testing.assert_allclose(READ[form](f"out.{form}"), EXPECTED, rtol=1e-15)
    assert sorted(path.name for path in Path().iterdir()) == sorted([f"out.{form}", "out-too.npy"])


def test_nan_and_infinities_pass_through_tables():
    points = np.array([[-1.0], [0.0], [np.inf]])
    dl.apply(dl.compile(dl.parse("log(x)")), points, "out.csv")
    assert Path("out.csv").read_text() == "y\nnan\n-inf\ninf\n"


def test_elements_of_arrays_are_columns_by_name():
    Path("in.csv").write_text('w[1],"W[0, 1]",w[0],"W[0, 0]"\n2,30,1,20\n')
    f = dl.parse("w: [2]; W: [1, 2]; sum(w) + W[0,0]*W[0,1]")
    dl.apply(dl.compile(f), "in.csv", "out.npy")
    assert np.load("out.npy").tolist() == [603.0]


def test_a_table_without_names_has_the_inputs_in_order():
    Path("in.csv").write_text("2,3\n4,5\n")
    dl.apply(dl.compile(dl.parse("x*x*y")), "in.csv", "out.npy")
    assert np.load("out.npy").tolist() == [12.0, 80.0]


@pytest.mark.parametrize("dtype", ["i4", "u1", "f4", ">f8", "?"])
def test_real_numbers_of_any_dtype(dtype):
    points = (POINTS[:100] > 0).astype(dtype)
    np.save("in.npy", points)
    dl.apply(dl.compile(dl.parse("x + 2*y")), "in.npy", "out.npy", chunk=30)
    assert np.array_equal(np.load("out.npy"), points[:, 0] * 1.0 + points[:, 1] * 2.0)


def test_a_memory_map_is_read_in_chunks(fast):
    np.save("in.npy", POINTS)
    dl.apply(fast, np.load("in.npy", mmap_mode="r"), "out.npy", chunk=100)
    np.testing.assert_allclose(np.load("out.npy"), EXPECTED, rtol=1e-15)


@pytest.mark.parametrize("chunk", [None, 900])
@pytest.mark.parametrize("target", ["auto", "numpy"])
@pytest.mark.parametrize("derivative", [dl.value_and_gradient, dl.hessian, lambda f: f])
def test_dask_arrays_stay_lazy(derivative, target, chunk):
    dask_array = pytest.importorskip("dask.array")
    fast = dl.compile(derivative(dl.parse("x*x*y")), target=target, packed=True)
    points = dask_array.from_array(POINTS, chunks=(999, 1))
    found = dl.apply(fast, points, chunk=chunk)
    dl.apply(fast, POINTS, "out.npy")
    expected = np.load("out.npy")
    assert isinstance(found, dask_array.Array)
    assert (found.shape, found.dtype) == (expected.shape, np.float64)
    assert found.compute(scheduler="threads").tobytes() == expected.tobytes()


def test_dask_arrays_are_written_to_files(fast):
    dask_array = pytest.importorskip("dask.array")
    dl.apply(fast, dask_array.from_array(POINTS, chunks=(999, 1)), "out.npy")
    np.testing.assert_allclose(np.load("out.npy"), EXPECTED, rtol=1e-15)


def test_a_dask_array_of_unknown_shape_is_refused(fast):
    dask_array = pytest.importorskip("dask.array")
    points = dask_array.from_array(POINTS)
    with pytest.raises(PointError, match="compute_chunk_sizes"):
        dl.apply(fast, points[points[:, 0] > 0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1 of in.csv is empty"),
        ("x,z\n1,2\n", "in.csv has no column 'y'"),
        ("x,y,x\n1,2,3\n", "several columns 'x'"),
        ("1,2,3\n", "in.csv has 3 columns, but the function has 2 flattened inputs"),
        ("x,y\n1,2\n3,four\n", "line 3, column 2 of in.csv is not a number: 'four'"),
        ("x,y\n1,2\n3\n", "line 3 of in.csv has no column 2"),
        ("x,y\n1,2\n\n3,4\n", "line 3 of in.csv is empty"),
        ("x,y\n1,2\n3,\n", "line 3, column 2 of in.csv is not a number: ''"),
        ("x,y\n1,2\n\xff,3\n", "line 3 of in.csv is not CSV text"),
    ],
)
def test_faults_of_a_csv_table_are_located(fast, content, message):
    Path("in.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(PointError, match=message):
        dl.apply(fast, "in.csv", "out.npy")
    assert [path.name for path in Path().iterdir()] == ["in.csv"]


def test_faults_of_a_parquet_file_are_located(fast):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    Path("in.parquet").write_text("not a table")
    with pytest.raises(InputError, match=r"cannot read 'in.parquet': ArrowInvalid"):
        dl.apply(fast, "in.parquet", "out.npy")
    for column, message in (
        ({"z": [1.0]}, "in.parquet has no column 'y'"),
        ({"y": ["text"]}, "column 'y' of in.parquet holds string, not real numbers"),
        ({"y": [None]}, "column 'y' of in.parquet holds null"),
    ):
        parquet.write_table(arrow.table({"x": [2.0], **column}), "in.parquet")
        with pytest.raises(PointError, match=message):
            dl.apply(fast, "in.parquet", "out.npy")
    values = arrow.table({"x": [1.0, 2.0, 3.0], "y": [1.0, None, 3.0]})
    parquet.write_table(values, "in.parquet")
    with pytest.raises(PointError, match=r"column 'y' of in.parquet has no value in row 1"):
        dl.apply(fast, "in.parquet", "out.npy")
    assert [path.name for path in Path().iterdir()] == ["in.parquet"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "'in.npy' is not a NumPy array file"),
        (b"", "'in.npy' is not a NumPy array file"),
    ],
)
def test_a_file_that_is_no_array(fast, content, message):
    Path("in.npy").write_bytes(content)
    with pytest.raises(PointError, match=message):
        dl.apply(fast, "in.npy", "out.npy")


def test_a_file_that_was_cut(fast):
    np.save("in.npy", POINTS)
    Path("in.npy").write_bytes(Path("in.npy").read_bytes()[:-8])
    with pytest.raises(PointError, match="its header announces"):
        dl.apply(fast, "in.npy", "out.npy")


def header(**changed):
    """Return a file of NumPy's format with this header."""
    stated = {"descr": "<f8", "fortran_order": False, "shape": (200, 2)} | changed
    text = "".join(f"'{key}': {value!r}, " for key, value in stated.items())
    line = f"{{{text}}}".encode()
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + bytes(3200)


@pytest.mark.parametrize(
    "content",
    [
        header(shape=(-200, 2)),
        header(shape=(200, -2)),
        header(shape=(-200, -2)),
        header(shape=(True, 2)),
        header(shape=(10**19, 2)),
        header(shape=200),
        header(shape=("a", 2)),
        header(descr="|O"),
        header(descr="<c16"),
        header(descr="<M8[s]"),
        header(descr="nonsense"),
        header(descr=[("x", "<f8"), ("y", "<f8")]),
        header(extra=1),
        header().replace(b"'shape'", b"\0shape'"),
        header().replace(b"}", b"("),
        header()[:40],
        header().replace(b"\x01\x00", b"\x09\x00", 1),
    ],
)
@pytest.mark.parametrize("door", ["--points", "--at"])
def test_a_damaged_header_is_an_error_of_the_input(fast, content, door, capsys):
    from difflab.cli.app import run

    Path("in.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"in\.npy"):
        dl.apply(fast, "in.npy", "out.npy")
    command = ["evaluate", "x*y", "--points", "in.npy", "-o", "out.npy"]
    if door == "--at":
        command = ["compare", "sum(x)", "--at", "x=@in.npy"]
    assert run(command) == 2
    assert "internal error" not in capsys.readouterr().err


def damaged(content, draw):
    """Return a file with a part missing, or with other bytes, most near its ends."""
    if draw.random() < 0.3:
        return content[: draw.integers(len(content))]
    found = bytearray(content)
    for _ in range(draw.integers(1, 6)):
        place = int(draw.integers(min(200, len(found))))
        found[place if draw.random() < 0.7 else -1 - place] = draw.choice([0, 45, 57, 255])
    return bytes(found)


@pytest.mark.parametrize("ending", [".npy", ".csv", ".parquet", ".zarr"])
def test_damaged_files_are_read_or_refused(fast, ending):
    """Nothing but an error of difflab, whatever the bytes are."""
    for package in {".parquet": ["pyarrow"], ".zarr": ["zarr"]}.get(ending, []):
        pytest.importorskip(package)
    whole = Path(f"whole{ending}")
    WRITTEN[ending[1:]](str(whole))
    draw = np.random.default_rng(7)
    refused = 0
    for _ in range(40):
        source = Path(f"in{ending}")
        if ending == ".zarr":
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(whole, source)
            parts = [part for part in source.rglob("*") if part.is_file()]
            part = sorted(parts)[draw.integers(len(parts))]
            part.write_bytes(damaged(part.read_bytes(), draw))
        else:
            source.write_bytes(damaged(whole.read_bytes(), draw))
        try:
            dl.apply(fast, str(source), "out.npy")
        except DifflabError:
            refused += 1
    assert refused > 5


def test_more_points_than_the_disk_holds_are_refused(fast):
    zarr = pytest.importorskip("zarr")
    zarr.create_array("in.zarr", shape=(10**17, 2), chunks=(10, 2), dtype="float64")
    with pytest.raises(ResourceError, match=r"the disk of .out\.npy. holds"):
        dl.apply(fast, "in.zarr", "out.npy")


def test_a_folder_that_is_no_store(fast):
    pytest.importorskip("zarr")
    Path("in.zarr").mkdir()
    with pytest.raises(InputError, match=r"cannot read 'in.zarr' as a Zarr array"):
        dl.apply(fast, "in.zarr", "out.npy")
    with pytest.raises(InputError, match="it exists"):
        dl.apply(fast, POINTS, "in.zarr")


@pytest.mark.parametrize(("name", "package"), [("zarr", "zarr"), ("parquet", "pyarrow")])
def test_a_missing_package_names_the_command(fast, monkeypatch, name, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'difflab\[large\]'"):
        dl.apply(fast, POINTS, f"out.{name}")
    assert not list(Path().glob("out*"))
