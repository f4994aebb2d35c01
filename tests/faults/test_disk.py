"""Disks that are full, folders that take nothing, and homes that are not there."""

import os
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import difflab as dl
from difflab.errors import InputError

SMALL = 8192  # bytes that a file may have
LIMIT = [(resource.RLIMIT_FSIZE, SMALL)]
QUICK = ("--no-timing", "--methods", "forward")


@contextmanager
def mounted(place, *options):
    """Mount a small disk of memory, where that is allowed."""
    place.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(("size=64k", *options)), "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_standard_output_on_a_full_disk(command):
    with Path("/dev/full").open("wb") as full:
        result = command("compare", "x^2", *QUICK, stdout=full)
    assert result.code == 2
    assert not result.blamed
    assert "cannot write to standard output: no space left on device" in result.err


def test_errors_that_nobody_can_read_change_nothing(command):
    result = command.shell('$difflab compare "x^2" --no-timing --methods forward 2>/dev/full')
    assert result.code == 0
    assert "agree" in result.out


def test_progress_that_nobody_can_read_changes_nothing(command):
    shown = "import difflab.cli.output as o; o.say('1 of 2'); o.emit('done')"
    result = command.shell(f'{sys.executable} -c "{shown}" 2>/dev/full')
    assert (result.code, result.out) == (0, "done")


def test_a_picture_that_is_too_large_leaves_the_old_one(command, tmp_path):
    (tmp_path / "g.png").write_bytes(b"old")
    result = command("graph", "x^2*sin(y)", "-o", "g.png", limits=LIMIT)
    assert result.code == 2
    assert "cannot write 'g.png': file too large" in result.err
    assert not result.blamed
    assert (tmp_path / "g.png").read_bytes() == b"old"
    assert not list(tmp_path.glob(".g.png*"))


def test_a_comparison_is_written_whole_or_not_at_all(command, tmp_path):
    result = command("compare", "x^2", *QUICK, "-o", "a.html", "--plot", "a.png", limits=LIMIT)
    assert result.code == 2
    assert not result.blamed
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == []


def test_a_picture_from_python_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    result = dl.compare("x^2", {"x": 2.0}, methods=["forward"], timing=False)
    (tmp_path / "a.svg").write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("difflab.core.system.os.fdopen", full)
    with pytest.raises(InputError, match="no space left"):
        result.plot(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_a_bench_on_a_full_disk_goes_on_elsewhere(command, tmp_path):
    arguments = ("bench", "accuracy", "x^2", "--at", "x=1", "--quick", "--reports")
    result = command(*arguments, "b", limits=[(resource.RLIMIT_FSIZE, 1000)])
    assert result.code == 2
    assert not result.blamed
    assert "disk i/o error" in result.err.lower()  # what SQLite says of EFBIG
    assert not (tmp_path / "b" / "accuracy.csv").exists()
    again = command(*arguments, "b")
    assert again.code == 0, again.err
    lines = (tmp_path / "b" / "accuracy.csv").read_text().splitlines()
    assert len(set(lines)) == len(lines)
    assert (tmp_path / "b" / "accuracy.svg").stat().st_size > 0
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"accuracy.csv", "accuracy.svg"}


def test_a_folder_that_takes_no_files(command, tmp_path):
    with mounted(tmp_path / "ro", "ro"):
        for arguments in (
            ("compare", "x^2", *QUICK, "-o", "ro/a.json"),
            ("bench", "accuracy", "x^2", "--at", "x=1", "--quick", "--reports", "ro"),
        ):
            result = command(*arguments)
            assert result.code == 2, result.err
            assert not result.blamed
            assert "cannot write" in result.err


def test_a_folder_that_is_full(command, tmp_path):
    with mounted(tmp_path / "full") as place:
        (place / "ballast").write_bytes(bytes(60_000))
        result = command("compare", "x^2", *QUICK, "--plot", "full/a.png")
        assert result.code == 2
        assert "cannot write 'full/a.png': no space left on device" in result.err
        assert [path.name for path in place.iterdir()] == ["ballast"]


@pytest.mark.parametrize("home", [None, "/dev/null"])
def test_a_home_that_is_not_there(command, home):
    """Nothing that difflab or Matplotlib would keep there is needed."""
    result = command(
        "compare", "x^2*sin(x)", "--no-timing", "--methods", "forward,reverse", "--plot", "a.svg",
        "--target", "native",
        environment={
            "HOME": home, "DIFFLAB_CACHE": None, "XDG_CACHE_HOME": None, "MPLCONFIGDIR": None,
        },
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "agree" in result.out
