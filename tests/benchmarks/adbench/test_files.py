"""ADBench's files: what is wrong with one is told with its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.adbench import files
from difflab.errors import InputError

MIXTURE = "2 1 1\n0.5\n1 2\n3 4 5\n6 7\n1 0\n"


def edited(path: Path, tmp_path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    copy = tmp_path / path.name
    copy.write_text(text.replace(old, new, 1))
    return copy


def test_a_mixture_of_a_plane(tmp_path: Path) -> None:
    """Its points and its last line both have two numbers."""
    (tmp_path / "m").write_text(MIXTURE)
    found = files.read_gmm(tmp_path / "m")
    assert (found.n, found.gamma, found.m) == (1, 1.0, 0)
    assert (found.x.tolist(), found.icf.tolist()) == ([[6.0, 7.0]], [[3.0, 4.0, 5.0]])
    (tmp_path / "m").write_text(MIXTURE.replace("2 1 1", "2 1 3").replace("6 7", "6 7\n8 9\n1 2"))
    assert files.read_gmm(tmp_path / "m").x.tolist() == [[6.0, 7.0], [8.0, 9.0], [1.0, 2.0]]


def test_a_point_that_stands_for_many(data: Path) -> None:
    found = files.read_gmm(data / "gmm_2.5M_replicated" / "gmm_d2_K5.txt")
    assert (found.n, found.x.shape) == (2_500_000, (1, 2))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 1 1", "2 1", "line 1: expected 3 numbers, found 2"),
        ("2 1 1", "2 1.5 1", "line 1: expected an integer"),
        ("2 1 1", "2 0 1", "line 1: expected an integer"),
        ("0.5", "half", "line 2: 'half' is not a finite number"),
        ("0.5", "nan", "line 2: 'nan' is not a finite number"),
        ("3 4 5", "3 4", "line 4: expected 3 numbers, found 2"),
        ("6 7\n", "6 7 8\n", "line 5: expected 2 numbers, found 3"),
        ("6 7\n", "6 7\n8 9\n", "line 7: expected gamma and m after 1 points, or one, found 2"),
        ("1 0", "-1 0", "line 6: gamma must be positive"),
        ("1 0", "1 0.5", "line 6: expected an integer"),
        ("1 0\n", "1 0\n9\n", "line 7: expected 2 numbers, found 1"),
        ("6 7\n1 0\n", "", "line 5: expected 2 numbers, found the end of the file"),
    ],
)
def test_faults_of_a_mixture(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "m"
    path.write_text(MIXTURE.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        files.read_gmm(path)
    assert f"{path}, {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("read", "name", "old", "new", "message"),
    [
        (files.read_ba, "ba/test.txt", "0.417022", "", "line 5: expected one number"),
        (files.read_ba, "ba/test.txt", "-525.672849", "x", "line 5: 'x' is not a finite number"),
        (files.read_lstm, "lstm/lstm_l2_c1024.txt", "2 1024 14", "2 1 14", "line 1: a sequence"),
        (
            files.read_lstm,
            "lstm/lstm_l2_c1024.txt",
            "2 1024",
            "2 1025",
            "found the end of the file",
        ),
        (
            files.read_lstm,
            "lstm/lstm_l2_c1024.txt",
            "2 1024",
            "2 1023",
            "expected the end of the file",
        ),
    ],
)
def test_faults_of_other_files(
    data: Path,
    tmp_path: Path,
    read: Callable[[Path], Any],
    name: str,
    old: str,
    new: str,
    message: str,
) -> None:
    with pytest.raises(InputError, match=message):
        read(edited(data / name, tmp_path, old, new))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "bones.txt",
            "thumb1:0",
            "thumb1:1",
            r"bones.txt, line 2: expected an integer from -1 to 0",
        ),
        (
            "bones.txt",
            "wrist:-1:",
            "wrist:-1:0:",
            "bones.txt, line 1: expected a name, a parent and 32",
        ),
        ("vertices.txt", ":4:2:", ":3:2:", "vertices.txt, line 1: expected eight"),
        (
            "triangles.txt",
            "290:412:289",
            "290:412",
            "triangles.txt, line 1: expected three vertices",
        ),
        ("triangles.txt", "290:412:289", "290:412:9999", "line 1: expected an integer from 0 to"),
    ],
)
def test_faults_of_a_hand(
    data: Path, tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    for other in ("bones.txt", "vertices.txt", "triangles.txt"):
        text = (data / "hand" / "model" / other).read_text()
        (tmp_path / other).write_text(text.replace(old, new, 1) if other == name else text)
    with pytest.raises(InputError, match=message):
        files.read_hand_model(tmp_path)


def test_a_match_must_be_a_vertex_or_a_triangle_that_there_is(data: Path, tmp_path: Path) -> None:
    model = files.read_hand_model(data / "hand" / "model")
    path = edited(data / "hand" / "test.txt", tmp_path, "309 ", f"{len(model.positions)} ")
    with pytest.raises(InputError, match="line 2: expected an integer from 0 to 543"):
        files.read_hand(path, model, complicated=False)
    np.testing.assert_allclose(model.weights.sum(axis=1), 1.0, atol=1e-6)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none: No such file"):
        files.read_ba(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it is not UTF-8 text"):
        files.read_ba(tmp_path / "bytes")
