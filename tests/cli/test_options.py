"""Arguments to values: what is read, and where a fault is marked."""

import io
import math

import numpy as np
import pytest

from difflab.cli.options import _separated, one_of, parse_names, parse_point
from difflab.cli.program_text import read_expression
from difflab.errors import InputError, PointError


def caret(error):
    """The text over the carets of a rendered error."""
    _, line, marks = str(error).splitlines()[:3]
    start = marks.index("^")
    return line[start : start + len(marks.strip())]


def test_numbers_lists_and_repeated_options():
    point = parse_point(["x1=2, x2=-5e-1", "w=[1,2,3]", "M=[[1,2],[3,4]]"])
    assert point["x1"] == 2.0
    assert point["x2"] == -0.5
    assert point["w"].tolist() == [1, 2, 3]
    assert point["M"].tolist() == [[1, 2], [3, 4]]
    assert parse_point([]) is None


def test_constant_expressions_are_values():
    point = parse_point(["x=pi/2,y=sqrt(2),z=1/3,v=[pi,-1/4]"])
    assert point["x"] == math.pi / 2
    assert point["y"] == math.sqrt(2)
    assert point["z"] == 1 / 3
    assert point["v"].tolist() == [math.pi, -0.25]


def test_npy_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(6.0).reshape(2, 3))
    np.save("i.npy", np.arange(3))
    point = parse_point(["x=@x.npy,i=@i.npy"])
    assert point["x"].shape == (2, 3)
    assert point["i"].dtype == np.float64


def test_objects_in_npy_files_are_never_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("o.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(PointError, match="not a NumPy array file"):
        parse_point(["x=@o.npy"])


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("x1=2,x2", "x2", "name=value"),
        ("x1", "x1", "name=value"),
        ("=2", "=2", "name=value"),
        ("x=", "x=", "name=value"),
        ("x=1,x=2", "x=2", "twice"),
        ("x=abc", "abc", "not a number"),
        ("x=1,y=2+", "2+", "not a number"),
        ("x=nan", "nan", "finite"),
        ("x=1e999", "1e999", "finite"),
        ("x=-inf", "-inf", "finite"),
        ("x=[1,2", "[1,2", "close"),
        ("x=[1,[2]]", "[1,[2]]", "differ in length"),
        ("x=[1,2]]", "]", "unmatched"),
        ("x=[1,two]", "two", "not a number"),
        ("x=@missing.npy", "@missing.npy", "no such file"),
        ("x=__import__('os')", "__import__('os')", "not a number"),
    ],
)
def test_faults_are_marked(text, place, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PointError, match=says) as caught:
        parse_point([text])
    assert caret(caught.value) == place


def test_brackets_by_the_thousand_are_only_a_fault():
    with pytest.raises(PointError, match="too many nested brackets"):
        parse_point(["x=" + "[" * 100_000])


def test_an_expression_may_begin_with_a_minus():
    options = {"--at": False, "-o": False, "--no-timing": True}
    assert _separated(["-x^2", "--at", "x=1"], options) == (["--at", "x=1"], ["-x^2"])
    assert _separated(["--no-timing", "-x^2"], options) == (["--no-timing"], ["-x^2"])
    assert _separated(["--at", "-x", "y"], options) == (["--at", "-x", "y"], [])
    assert _separated(["-o", "-file", "-"], options) == (["-o", "-file", "-"], [])
    assert _separated(["--at", "x=1", "--", "-x"], options) == (["--at", "x=1"], ["-x"])


def test_expressions_from_files_and_standard_input(tmp_path, monkeypatch):
    (tmp_path / "f.txt").write_bytes("\ufeffx₁·x₂\n".encode())
    assert read_expression(f"@{tmp_path}/f.txt") == "x₁·x₂\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"sin(x)")))
    assert read_expression("-") == "sin(x)"
    assert read_expression("sin(x)") == "sin(x)"


def test_files_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "f.txt").write_bytes(b"x + \xff")
    with pytest.raises(InputError, match="byte 4 is 0xff"):
        read_expression(f"@{tmp_path}/f.txt")
    with pytest.raises(InputError, match="no such file"):
        read_expression(f"@{tmp_path}/missing")
    with pytest.raises(InputError, match="is a directory"):
        read_expression(f"@{tmp_path}")


def test_lists_of_names():
    assert parse_names("reverse, symbolic,reverse") == ["reverse", "symbolic"]
    assert parse_names(None) is None
    with pytest.raises(InputError, match="empty name"):
        parse_names("reverse,,symbolic")


def test_the_nearest_name_is_offered():
    assert one_of("b", ["a", "b"], "thing") == "b"
    with pytest.raises(InputError, match="did you mean 'reverse'"):
        one_of("revrse", ["forward", "reverse"], "method")
