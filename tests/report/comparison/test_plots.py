"""The picture: what stands where, labels apart from each other, and no markup in user text."""

from io import BytesIO
from itertools import combinations
from xml.etree import ElementTree

import pytest

from difflab.errors import InputError
from difflab.report.canvas import style
from difflab.report.comparison.plots import draw_on, figure, picture
from tests.bench.picture_checks import check_page

NAMES = {"symbolic", "finite-forward", "finite-central", "richardson", "complex-step"}


def drawn(record):
    with style():
        canvas = figure(record)
        check_page(canvas)
    return canvas


def labels(axes):
    return [text for text in axes.texts if text.get_text()]


def test_points_stand_at_call_time_and_error(seed):
    left = drawn(seed).axes[0]
    points = {tuple(line.get_xydata()[0]) for line in left.lines if len(line.get_xydata()) == 1}
    assert (4.12e-05, 23712345.0) in points
    assert (0.00014, 990.0) in points
    exact = [y for x, y in points if x == 8.6e-06]
    ticks = dict(
        zip(left.get_yticks(), [t.get_text() for t in left.get_yticklabels()], strict=True)
    )
    assert [ticks[y] for y in exact] == ["exact"]


def test_every_method_is_named_once_and_no_labels_overlap(seed):
    extra = [
        dict(seed["methods"][5], name=f"peer-{k}", call_seconds=9e-6 + k * 1e-7) for k in range(5)
    ]
    seed["methods"] += extra
    left = drawn(seed).axes[0]
    words = ", ".join(text.get_text().replace("\n", " ") for text in labels(left))
    for name in [method["name"] for method in seed["methods"]]:
        assert words.replace(",", " ").split().count(name) == 1
    boxes = [text.get_window_extent() for text in labels(left)]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    inside = left.get_window_extent()
    assert all(inside.contains(b.x0, b.y0) and inside.contains(b.x1, b.y1) for b in boxes)


def test_bars_are_as_long_as_the_times(seed):
    right = drawn(seed).axes[1]
    ends = sorted(bar.get_x() + bar.get_width() for bar in right.patches)
    times = [m[key] for m in seed["methods"] for key in ("prepare_seconds", "call_seconds")]
    assert ends == pytest.approx(sorted(times))


def test_without_timing_errors_and_operations_are_drawn(seed):
    for method in seed["methods"]:
        method["prepare_seconds"] = method["call_seconds"] = None
    left, right = drawn(seed).axes
    assert [t.get_text() for t in left.get_yticklabels()][:5] == [
        m["name"] for m in seed["methods"][:5]
    ]
    assert [bar.get_width() for bar in right.patches] == [4, 11, 9]


def test_a_wrong_method_is_crossed_out_and_an_infinite_error_has_a_place(seed):
    seed["methods"][1].update(verdict="disagree", max_ulp_error="inf")
    left = drawn(seed).axes[0]
    assert sum(line.get_marker() == "x" for line in left.lines) == 1
    assert "∞" in [t.get_text() for t in left.get_yticklabels()]


def test_hostile_text_is_drawn_as_text(hostile):
    texts = [text for text in drawn(hostile).texts if text.get_text()]
    assert not any(text.get_parse_math() for text in texts)
    tree = ElementTree.fromstring(picture(hostile, "svg"))
    assert not any(element.tag.endswith("script") for element in tree.iter())


@pytest.mark.parametrize(
    ("kind", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_each_kind_is_what_it_says_and_is_reproducible(seed, kind, magic):
    content = picture(seed, kind)
    assert content.startswith(magic)
    assert picture(seed, kind) == content


def test_another_kind_is_refused(seed):
    with pytest.raises(InputError, match="svg"):
        picture(seed, "bmp")


def test_a_comparison_without_any_answer_is_still_drawn(seed):
    for method in seed["methods"]:
        method.update(status="failed", verdict=None, operations=None, size=None)
        method.update(max_abs_error=None, max_ulp_error=None)
        method.update(prepare_seconds=None, call_seconds=None)
    assert picture(seed, "svg")


def test_a_comparison_is_drawn_on_the_users_axes(seed):
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(6, 4))
    axes = canvas.subplots()
    draw_on(axes, seed)
    assert axes.get_xlabel() == "time of a call"
    assert "symbolic" in {text.get_text() for text in axes.texts}
    assert axes.get_legend() is not None
    assert not canvas.legends
    canvas.savefig(BytesIO())
