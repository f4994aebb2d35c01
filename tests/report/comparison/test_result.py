"""A comparison shows itself: as its table, as a picture, as a page."""

from __future__ import annotations

import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.lab.compare import compare as plain


@pytest.fixture(scope="module")
def result():
    return dl.compare(
        "ln(x1)+x1*x2-sin(x2)", {"x1": 2, "x2": 5}, methods=["forward", "reverse"], timing=False
    )


def test_it_is_the_comparison_of_the_lab(result):
    twin = plain(
        "ln(x1)+x1*x2-sin(x2)", {"x1": 2, "x2": 5}, methods=["forward", "reverse"], timing=False
    )
    for mine, other in zip(result.methods, twin.methods, strict=True):
        assert (mine.jacobian == other.jacobian).all()
        assert (mine.verdict, mine.size, mine.operations) == (
            other.verdict,
            other.size,
            other.operations,
        )
    assert result.to_dict()["reference"] == twin.to_dict()["reference"]


def test_it_prints_as_its_table(result):
    assert repr(result) == result.table()
    assert "1.7163378145367738" in result.table()
    assert max(map(len, result.table(width=60).splitlines())) <= 60


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_it_draws_itself(result, tmp_path, suffix, start):
    path = tmp_path / f"out.{suffix}"
    result.plot(str(path))
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["out.gif", "out", "missing/out.svg"])
def test_pictures_that_cannot_be_written_are_refused(result, tmp_path, name):
    with pytest.raises(InputError):
        result.plot(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_it_is_a_page_in_a_notebook(result):
    page = result._repr_html_()
    assert "1.7163378145367738" in page
    assert "<svg" in page


def test_stabilised_results_show_themselves():
    both = dl.compare("1 - cos(x)", {"x": 1e-9}, methods=["reverse"], timing=False, stabilise=True)
    assert type(both.plain).__name__ == "Result"
    assert both.plain.value.tolist() == [0.0]
    assert both.stabilised.value.tolist() == [5e-19]
    assert "versine(x)" in repr(both)
    assert repr(both) == both.table()
    assert both._repr_html_().startswith('<div class="difflab">')
    assert both.agreed


def test_progress_at_a_point_is_that_of_the_caller_or_is_shown(monkeypatch, capsys):
    options = {"methods": ["forward", "reverse"], "timing": False}
    steps = []
    dl.compare("x^2", {"x": 1}, progress=lambda *step: steps.append(step), **options)
    assert steps == [(0, 2, "the referee"), (0, 2, "forward"), (1, 2, "reverse")]
    assert capsys.readouterr().err == ""
    ticks = iter(range(0, 10**9, 100))  # every look at the clock is a long time after the last
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: float(next(ticks)))
    dl.compare("x^2", {"x": 1}, **options)
    assert "1 of 2: reverse" in capsys.readouterr().err
