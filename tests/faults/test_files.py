"""What is given as a file and is not one, or is not what it should be."""

import json
import os
import socket

import numpy as np
import pytest

from difflab.bench.accuracy import LAYOUT
from difflab.cli import main

QUICK = ("--no-timing", "--methods", "forward")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder; return its exit code and what it said."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        assert "fault in difflab" not in captured.err, captured.err
        return ended.value.code, captured.out, captured.err

    return call


@pytest.fixture(params=["pipe", "device", "socket", "folder"])
def strange(request, tmp_path, monkeypatch):
    """The path of something that is not a file, and what it is called."""
    monkeypatch.chdir(tmp_path)
    if request.param == "device":
        yield "/dev/zero", "a device"
        return
    if request.param == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            end.bind("strange")
            yield "strange", "a socket"
        return
    if request.param == "pipe":
        os.mkfifo("strange")  # reading it would wait for ever
    else:
        (tmp_path / "strange").mkdir()
    yield "strange", f"a {'directory' if request.param == 'folder' else 'pipe'}"


def test_what_is_no_file_is_not_read(strange, run):
    path, kind = strange
    for arguments in (
        ("compare", f"@{path}"),
        ("compare", "x: [3]; sum(x)", "--at", f"x=@{path}"),
        ("bench", "accuracy", "x^2", "--at", f"x=@{path}"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert f"it is {kind}, not a file" in err


TEXTS = {
    "nothing": b"",
    "zeros": bytes(100),
    "not UTF-8": b"x\xff^2",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "JSON": b'{"a": 1}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("text", TEXTS)
def test_programs_of_every_kind(text, run, tmp_path):
    (tmp_path / "f.txt").write_bytes(TEXTS[text])
    code, _, err = run("compare", "@f.txt", *QUICK)
    assert code == 2
    assert err.startswith("difflab: ")
    assert len(err) < 2000


HEADER = b"\x93NUMPY\x01\x00"
ARRAYS = {
    "nothing": b"",
    "cut": HEADER,
    "no header": HEADER + b"\x10\x00" + b" " * 16,
    "code": HEADER + b"\x30\x00" + b"__import__('os').system('echo no')".ljust(0x30),
    "deep": HEADER + b"\xff\xff" + b"(" * 0xFFFF,
    "a later version": b"\x93NUMPY\x09\x00" + bytes(40),
    "a pickle": b"\x80\x04cos\nsystem\n(S'echo no'\ntR.",
    "text": b"1, 2, 3\n",
}


@pytest.mark.parametrize("content", ARRAYS)
def test_array_files_of_every_kind(content, run, tmp_path):
    (tmp_path / "x.npy").write_bytes(ARRAYS[content])
    code, out, err = run("compare", "x: [3]; sum(x)", "--at", "x=@x.npy", *QUICK)
    assert (code, out) == (2, "")
    assert "'x.npy'" in err


def test_arrays_of_every_kind(run, tmp_path):
    for values in (
        np.array(["a", "b", "c"]),
        np.array([1j, 2, 3]),
        np.array([1, None, 3], dtype=object),
        np.array([np.nan, 1, 2]),
        np.zeros((3, 1)),
        np.zeros(3, dtype=[("a", float)]),
        np.array([np.datetime64("2020-01-01")] * 3),
    ):
        np.save(tmp_path / "x.npy", values)
        code, _, _ = run("compare", "x: [3]; sum(x)", "--at", "x=@x.npy", *QUICK)
        assert code == 2
    for values in (np.ones(3, dtype=">f4"), np.asfortranarray(np.ones(3)), np.array([1, 2, 3])):
        np.save(tmp_path / "x.npy", values)
        code, _, _ = run("compare", "x: [3]; sum(x^2)", "--at", "x=@x.npy", *QUICK)
        assert code == 0


COLUMNS = ",".join(LAYOUT.columns)
TABLES = {
    "not UTF-8": b"\xff\xfe" * 100 + b"\n",
    "another table": b"a,b,c\n1,2,3\n",
    "a cell too many": COLUMNS.encode() + b"\n" + b"1," * 40 + b"\n",
    "words for numbers": (
        COLUMNS + "\n" + ",".join(["word"] * len(LAYOUT.columns)) + "\n"
    ).encode(),
    "an open quotation": COLUMNS.encode() + b'\n"' + b"a" * 200 + b"\n",
    "a zero byte": COLUMNS.encode() + b"\na\x00b\n",
    "JSON": b'{"a": 1}\n',
}


@pytest.mark.parametrize("content", TABLES)
def test_a_bench_leaves_tables_alone_that_are_not_its_own(content, run, tmp_path):
    (tmp_path / "accuracy.csv").write_bytes(TABLES[content])
    code, _, err = run("bench", "accuracy", "x^2", "--at", "x=1", "--quick", "--reports", ".")
    assert code in (0, 2)
    assert "accuracy.csv" in err
    assert TABLES[content] in [path.read_bytes() for path in tmp_path.glob("*.csv")]


RECORDS = {
    "nothing": "",
    "not JSON": "{",
    "deep": "[" * 100_000,
    "a list": "[1, 2]",
    "a number": "1" * 10_000,
    "null": "null",
    "another schema": '{"schema": "other/1"}',
    "no content": '{"schema": "difflab.comparison/1"}',
    "wrong content": json.dumps(
        {"schema": "difflab.comparison/1", "expression": 1, "point": [], "methods": "x"}
    ),
}


def test_a_report_leaves_out_what_is_no_comparison(run, tmp_path):
    for number, text in enumerate(RECORDS.values()):
        (tmp_path / f"{number}.json").write_text(text)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "gone.json").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    assert run("compare", "x^2", *QUICK, "-o", "good.json")[0] == 0
    code, _, err = run("report", ".")
    assert code == 0
    assert err.count("skipped") == len(RECORDS) + 4
    assert "1 comparison" in err
    assert "x^2" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_modules_to_check_of_every_kind(run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in {
        "broken_syntax": "def f(:",
        "broken_import": "raise RuntimeError('no')",
        "broken_exit": "import sys; sys.exit(3)",
        "broken_bytes": "\x00",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
        code, out, err = run("check", f"{name}:f")
        assert (code, out) == (2, ""), (name, err)
        assert name in err
