"""Compiled code on disk: what is found again, and what is not trusted."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from difflab.execute.targets.llvm import engine

CODE = bytes(range(256)) * 40
NAME = engine.entry_name("a")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIFFLAB_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_what_is_written_is_read(place: Path) -> None:
    assert engine.read_entry(NAME) is None
    engine.write_entry(NAME, CODE)
    assert engine.read_entry(NAME) == CODE
    assert engine.read_entry(engine.entry_name("b")) is None
    assert [path.suffix for path in place.iterdir()] == [".code"]
    assert place.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("length", [0, 10, 32, 33, 1000])
def test_what_is_cut_short_is_not_read(place: Path, length: int) -> None:
    engine.write_entry(NAME, CODE)
    (path,) = place.iterdir()
    path.write_bytes(path.read_bytes()[:length])
    assert engine.read_entry(NAME) is None
    engine.write_entry(NAME, CODE)
    assert engine.read_entry(NAME) == CODE


def test_what_is_changed_is_not_read(place: Path) -> None:
    engine.write_entry(NAME, CODE)
    (path,) = place.iterdir()
    data = bytearray(path.read_bytes())
    data[-7] ^= 1
    path.write_bytes(data)
    assert engine.read_entry(NAME) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owner here")
def test_a_folder_that_others_write_to_is_not_used(place: Path) -> None:
    engine.write_entry(NAME, CODE)
    place.chmod(0o777)
    assert engine.read_entry(NAME) is None
    engine.write_entry(engine.entry_name("b"), CODE)
    assert len(list(place.iterdir())) == 1
    place.chmod(0o700)
    assert engine.read_entry(NAME) == CODE


def test_a_place_where_no_folder_can_be_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DIFFLAB_CACHE", str(tmp_path / "file" / "folder"))
    engine.write_entry(NAME, CODE)
    assert engine.read_entry(NAME) is None


def test_a_disk_that_is_full_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    engine.write_entry(NAME, CODE)
    assert list(place.iterdir()) == []


def test_where_code_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    for chosen, home, expected in [
        ("/a/b", "/c", Path("/a/b")),
        ("", "/c", Path("/c/difflab")),
        ("", "", Path("/home/someone/.cache/difflab")),
        ("", "relative", Path("/home/someone/.cache/difflab")),
        ("off", "/c", None),
    ]:
        monkeypatch.setenv("DIFFLAB_CACHE", chosen)
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert engine.folder() == expected
    engine.write_entry(NAME, CODE)
    assert engine.read_entry(NAME) is None


def test_what_was_not_used_for_longest_goes_first(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LARGEST", 4 * len(CODE))
    names = [engine.entry_name(str(number)) for number in range(3)]
    for age, name in enumerate(names):
        engine.write_entry(name, CODE)
        os.utime(place / f"{name}.code", (1000 + age, 1000 + age))
    assert engine.read_entry(names[0]) == CODE  # used: now the youngest
    engine.write_entry(NAME, CODE)
    assert engine.read_entry(names[1]) is None
    assert (
        engine.read_entry(names[0])
        == engine.read_entry(names[2])
        == engine.read_entry(NAME)
        == CODE
    )
    monkeypatch.setattr(engine, "ENTRIES", 1)
    engine.write_entry(NAME, CODE)
    assert len(list(place.iterdir())) == 1


def test_readers_see_all_or_nothing_while_others_write() -> None:
    wrong: list[bytes] = []

    def write() -> None:
        for _ in range(30):
            engine.write_entry(NAME, CODE)

    def read() -> None:
        for _ in range(100):
            found = engine.read_entry(NAME)
            if found is not None and found != CODE:
                wrong.append(found)

    engine.write_entry(NAME, CODE)
    threads = [threading.Thread(target=work) for work in (write, write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert engine.read_entry(NAME) == CODE
