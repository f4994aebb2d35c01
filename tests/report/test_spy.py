"""A sparsity pattern as text and as a picture: every entry, or how full each block is."""

from xml.etree import ElementTree

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.report import spy
from difflab.report.canvas import style


def bidiagonal(n):
    return dl.sparse_jacobian(dl.parse(f"x: [{n}]; x[1:] * x[:-1]"))


def body(text):
    return text.split("\n\n")[1].splitlines()


def pixels(derivative):
    with style():
        axes = spy.figure(derivative, "J").axes[0]
    return np.asarray(axes.images[0].get_array())


def test_a_small_pattern_is_written_entry_by_entry():
    shown = spy.text(bidiagonal(5), "J")
    assert body(shown) == ["# # . . .", ". # # . .", ". . # # .", ". . . # #"]
    assert "size      4 rows, 5 columns\nnonzeros  8 of 20 (40 %)\n" in shown
    assert "sweeps    2 forward instead of 5, by coloring columns" in shown


def test_a_large_pattern_is_written_in_blocks_of_bounded_size():
    derivative = dl.sparse_jacobian(
        dl.trace(lambda x, w: x * x + w[0], np.ones(100_000), np.ones(1))
    )
    lines = body(spy.text(derivative, "J"))
    assert len(lines) == 32
    assert {len(line) for line in lines} == {64}
    assert all(line[2 * row : 2 * row + 2] == "oo" for row, line in enumerate(lines))
    assert {line[-1] for line in lines} == {"o"}
    assert all(line.count(".") >= 64 - 4 for line in lines)


def test_blocks_that_are_full_are_told_from_others():
    derivative = dl.sparse_hessian(dl.parse("x: [64]; sum(x[:32])^2 + sum(x[32:]^2)"))
    lines = body(spy.text(derivative, "H"))
    assert lines[0] == "#" * 32 + "." * 32
    assert lines[-1] == "." * 62 + "oo"


@pytest.mark.parametrize("n", [41, 60, 500])
def test_a_square_is_square(n):
    """In characters twice as high as wide, and on the paper of the picture."""
    derivative = dl.sparse_hessian(dl.parse(f"x: [{n}]; sum(x[1:]^2 * x[:-1])"))
    lines = body(spy.text(derivative, "H"))
    assert len(lines[0]) == pytest.approx(2 * len(lines), abs=2)
    assert n == 500 or len(lines) in (n, (n + 1) // 2), "no entries are left out"
    with style():
        axes = spy.figure(derivative, "H").axes[0]
    box = axes.get_window_extent()
    assert box.width == pytest.approx(box.height)


@pytest.mark.parametrize(("m", "n"), [(400, 100), (60, 300), (100_000, 3)])
def test_rows_and_columns_have_one_scale(m, n):
    w = np.zeros((m, n))
    w[:, 0] = 1
    derivative = dl.sparse_jacobian(dl.trace(lambda x: w @ x, np.ones(n)))
    lines = body(spy.text(derivative, "J"))
    if m < 1000:
        assert len(lines[0]) / (2 * len(lines)) == pytest.approx(n / m, rel=0.1)
    with style():
        axes = spy.figure(derivative, "J").axes[0]
    box = axes.get_window_extent()
    if m < 1000:
        assert box.width / box.height == pytest.approx(n / m, rel=0.05)
    else:
        assert len(lines[0]) == 3
        assert box.width > 20, "a thin matrix can be seen"


def test_each_sweep_has_a_color():
    derivative = bidiagonal(6)
    drawn = pixels(derivative)
    assert drawn.shape == (5, 6, 3)
    assert (drawn[~derivative.pattern.toarray()] == 1).all()
    assert np.array_equal(drawn[0, 0], drawn[1, 2])
    assert not np.array_equal(drawn[0, 0], drawn[0, 1])


def test_a_large_picture_shades_its_blocks():
    drawn = pixels(bidiagonal(5000))
    assert drawn.shape[:2] == (240, 240)
    assert (drawn[10, 10] < 1).any()
    assert (drawn[10, 200] == 1).all()


def test_text_of_the_formula_is_neither_markup_nor_steering():
    title = "a < b $x$ \x1b[2J"
    root = ElementTree.fromstring(spy.picture(bidiagonal(4), title, "svg"))
    assert root.tag.endswith("svg")
    assert "\x1b" not in spy.text(bidiagonal(4), title)
    with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
        spy.picture(bidiagonal(4), "J", "gif")
