"""Machine code kept on disk that is damaged, foreign, in the way, or deleted meanwhile."""

import os
import shutil
import threading

import numpy as np
import pytest

import difflab as dl
from difflab.execute.targets.llvm import engine

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

POINTS = np.linspace(0.5, 1.5, 9)
TEXTS = ("x^2*sin(x)", "x^3*cos(x)")
EXPECTED = (POINTS**2 * np.sin(POINTS), POINTS**3 * np.cos(POINTS))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of compiled code, with the code of both functions in it."""
    monkeypatch.setenv("DIFFLAB_CACHE", str(tmp_path / "kept"))
    check()
    assert len(list((tmp_path / "kept").glob("*.code"))) >= 2
    return tmp_path / "kept"


def check():
    """Compile both functions anew, as another process would, and hold them to NumPy."""
    for text, expected in zip(TEXTS, EXPECTED, strict=True):
        found = dl.compile(dl.parse(text), target="native")(POINTS)
        np.testing.assert_allclose(found, expected, rtol=1e-14)


DAMAGES = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "garbage": lambda data: b"\x00garbage\xff" * 1000,
    "a bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "longer": lambda data: data + data,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_compiled_again(kept, damage):
    for path in kept.glob("*.code"):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    check()


def test_the_code_of_another_function_is_not_run(kept):
    """Each entry is whole, but lies where another belongs: its code would give other values."""
    paths = sorted(kept.glob("*.code"))
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    check()


def test_what_is_no_file_is_in_nobodys_way(kept):
    paths = sorted(kept.glob("*.code"))
    for path in paths:
        path.unlink()
    paths[0].mkdir()
    for path in paths[1:]:
        os.mkfifo(path)  # reading it would wait for ever
    check()


def test_another_process_deletes_the_folder_meanwhile(kept):
    stop = threading.Event()

    def delete():
        while not stop.is_set():
            shutil.rmtree(kept, ignore_errors=True)

    thread = threading.Thread(target=delete)
    thread.start()
    try:
        for number in range(20):
            engine.write_entry(engine.entry_name(str(number)), b"code" * 100)
            assert engine.read_entry(engine.entry_name(str(number))) in (None, b"code" * 100)
        check()
    finally:
        stop.set()
        thread.join()
