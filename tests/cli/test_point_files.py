"""``--at @file``: many values at once, and what is wrong in a file."""

from __future__ import annotations

import math

import numpy as np
import pytest

from difflab.cli.options import parse_point
from difflab.errors import PointError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lines_of_assignments(folder):
    content = "\ufeff# SI units\ne = 1.6e-19, k=1.38e-23  # J/K\n\nphi = pi/2\nw = [1, 2,3]\r\n"
    (folder / "values.txt").write_text(content, encoding="utf-8")
    point = parse_point(["@values.txt"])
    assert point.pop("w").tolist() == [1, 2, 3]
    assert point == {"e": 1.6e-19, "k": 1.38e-23, "phi": math.pi / 2}


def test_arrays_of_npz_and_npy(folder):
    np.savez(folder / "v.npz", w=np.arange(6.0).reshape(2, 3), x=np.float32(0.5), n=np.arange(2))
    np.savez_compressed(folder / "c.npz", z=np.zeros(1000))
    np.save(folder / "a.npy", np.ones(2))
    (folder / "more.txt").write_text("a = @a.npy", encoding="utf-8")
    point = parse_point(["@v.npz,@c.npz", "@more.txt"])
    assert {name: value.shape for name, value in point.items()} == {
        "w": (2, 3),
        "x": (),
        "n": (2,),
        "z": (1000,),
        "a": (2,),
    }
    assert point["n"].dtype == np.float64
    assert point["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_json_objects(folder):
    (folder / "v.json").write_text('{"x": 2, "M": [[1, 2], [3, 4.5]]}', encoding="utf-8")
    point = parse_point(["@v.json"])
    assert point["x"] == 2.0
    assert point["M"].tolist() == [[1, 2], [3, 4.5]]


def test_what_stands_later_wins_over_a_file(folder):
    (folder / "a.txt").write_text("x = 1\ny = 2", encoding="utf-8")
    (folder / "b.json").write_text('{"y": 3}', encoding="utf-8")
    assert parse_point(["@a.txt,x=5"]) == {"x": 5.0, "y": 2.0}
    assert parse_point(["x=5", "@a.txt"]) == {"x": 1.0, "y": 2.0}
    assert parse_point(["@a.txt", "@b.json"]) == {"x": 1.0, "y": 3.0}
    assert parse_point(["x=5,@a.txt,x=6"]) == {"x": 6.0, "y": 2.0}
    with pytest.raises(PointError, match="'x' is given twice"):
        parse_point(["x=1,@b.json,x=2"])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"x = 1\ny = 3O0\n", r"'3O0' is not a number.*\(a.txt, line 2\)"),
        ("a.txt", b"x = 1\n\nx = 2", r"'x' is given twice \(a.txt, line 3\)"),
        ("a.txt", b"x = 1\ny", r"name=value \(a.txt, line 2\)"),
        ("a.txt", b"x = [1, 2\n", r"not closed \(a.txt, line 1\)"),
        ("a.txt", b"x = inf", r"not a finite number \(a.txt, line 1\)"),
        ("a.txt", b"x = \xff", "not UTF-8 text"),
        ("a.txt", b"# only a comment\n", "'a.txt' has no value"),
        ("a.json", b'{"x": 1,\n "y": "2"}', r"'y' is not a finite number.*\(a.json, line 2\)"),
        ("a.json", b'{"x": 1,\n\n "x": 2}', r"'x' is given twice \(a.json, line 3\)"),
        ("a.json", b'{"x": [[1, 2],\n [3]]}', r"rows of 'x' differ in length \(a.json, line 1\)"),
        ("a.json", b'{"x": NaN}', "'x' is not a finite number"),
        ("a.json", b'{"x": 1' + b"0" * 400 + b"}", "'x' is not a finite number"),
        ("a.json", b'{"x": true}', "'x' is not a finite number"),
        ("a.json", b'{"x": 1,\n]', r"is not JSON.*\(a.json, line 2\)"),
        ("a.json", b"[" * 100_000, "too many nested brackets"),
        ("a.json", b"[1]", "no JSON object"),
        ("a.npz", b"PK", "not a file of NumPy arrays"),
        ("a.npy", b"", "an array needs a name"),
        ("a.csv", b"x,y\n1,2", r"name=value \(a.csv, line 1\)"),
    ],
)
def test_faults_name_the_file_and_the_line(folder, name, content, says):
    (folder / name).write_bytes(content)
    with pytest.raises(PointError, match=says):
        parse_point([f"@{name}"])


def test_missing_damaged_and_dangerous_files(folder):
    with pytest.raises(PointError, match=r"cannot read 'no.json': no such file"):
        parse_point(["x=1,@no.json"])
    with pytest.raises(PointError, match=r"cannot read 'no.npz': no such file"):
        parse_point(["@no.npz"])
    np.savez(folder / "o.npz", o=np.array([print], dtype=object))
    with pytest.raises(PointError, match="not a file of NumPy arrays"):
        parse_point(["@o.npz"])
    np.savez(folder / "t.npz", t=np.array(["a"]))
    with pytest.raises(PointError, match=r"'t' in 't\.npz' holds"):
        parse_point(["@t.npz"])
    np.savez_compressed(folder / "v.npz", x=np.arange(1000.0))
    damaged = bytearray((folder / "v.npz").read_bytes())
    damaged[200:220] = bytes(20)
    (folder / "v.npz").write_bytes(damaged)
    with pytest.raises(PointError, match="not a file of NumPy arrays"):
        parse_point(["@v.npz"])


def test_the_command_takes_a_file(difflab, folder):
    (folder / "si.txt").write_text("e = 1.6e-19\nk = 1.38e-23\nT = 300\n", encoding="utf-8")
    done = difflab("compare", "e*phi/(k*T)", "--at", "@si.txt,phi=1", "--no-timing")
    assert done.code == 0, done.err
    assert "38.64734299516907" in done.out
    (folder / "bad.txt").write_text("e = 1\nk =\n", encoding="utf-8")
    done = difflab("trace", "e*k", "--at", "@bad.txt")
    assert done.code == 2
    assert "bad.txt, line 2" in done.err
