"""Pictures: what they show is the graph, and it can be read."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import difflab as dl
from difflab.diagnose import node_cotangents
from difflab.drawing import WRITERS, BoxKind, Diagram, diagram, dot, mermaid, png, svg
from difflab.drawing.model import DiagramBox
from difflab.drawing.scene import Scene, scene
from difflab.drawing.svg import DARK, LIGHT
from difflab.graph.function import evaluate_all

SEED = "ln(x1) + x1*x2 - sin(x2)"
BRANCHES = "where(x > 0, sqrt(x), 0)^y - clip(x/y, 0, 1)*2.5 + atan2(y, x)"
TALL = "log(sin(cos(exp(tanh(sin(x*2.5) + y)/3)*z) + x) + y*z)^2 + tanh(exp(x))"
WIDE = "+".join(f"sin({k}*x{k})" for k in range(1, 15))
HOSTILE = '<script>alert(1)</script> & "]]>" \x1b[31m \\" -- %% `x` $\\alpha$'
NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(text: str) -> Diagram:
    return diagram(dl.parse(text))


def named(picture: Diagram) -> set[tuple[str, str, str]]:
    """Return the edges as (source, mark, target)."""
    return {
        (picture.boxes[e.source].lines[0], e.label, picture.boxes[e.target].lines[0])
        for e in picture.edges
    }


def test_the_seed_graph() -> None:
    picture = drawn(SEED)
    assert named(picture) == {
        ("x1", "", "ln"),
        ("x1", "", "×"),
        ("x2", "", "×"),
        ("x2", "", "sin"),
        ("ln", "", "+"),
        ("×", "", "+"),
        ("+", "1", "−"),
        ("sin", "2", "−"),
        ("−", "", "y"),
    }
    assert picture.title == SEED
    assert picture.subtitle == "2 inputs · 5 operations · 1 output · depth 3"
    kinds = [box.kind for box in picture.boxes]
    assert kinds == [BoxKind.INPUT] * 2 + [BoxKind.OPERATION] * 5 + [BoxKind.OUTPUT]


def test_names_are_those_of_the_evaluation_trace() -> None:
    captions = {box.lines[0]: box.caption for box in drawn(SEED).boxes}
    assert captions["x1"] == "v₋₁"
    assert captions["x2"] == "v₀"
    assert captions["ln"] == "v₁"
    assert captions["sin"] == "v₃"
    assert captions["−"] == "v₅"


def test_argument_order_is_marked_where_it_matters() -> None:
    assert {("x", "if", "where"), ("y", "then", "where"), ("z", "else", "where")} <= {
        ("x" if source == "≠" else source, mark, target)
        for source, mark, target in named(drawn("where(x, y, z)"))
    }
    assert ("y", "1", "÷") in named(drawn("y/x"))
    assert ("x", "2", "÷") in named(drawn("y/x"))
    assert {mark for _, mark, _ in named(drawn("x*y + max(x, y)"))} == {"", "1", "2"}
    assert {mark for _, mark, _ in named(drawn("x*y + y"))} == {""}


def test_both_uses_of_a_square_are_arrows() -> None:
    assert len(drawn("x*x").edges) == 3


def test_a_constant_stands_beside_each_of_its_uses() -> None:
    picture = drawn("2*x + y^2 + x*y*2 + 2^2")
    twos = [box for box in picture.boxes if box.lines == ("2",)]
    assert [box.kind for box in twos] == [BoxKind.CONSTANT] * 4
    assert len([e for e in picture.edges if picture.boxes[e.source].lines == ("2",)]) == 5
    assert picture.subtitle.startswith("2 inputs · 8 operations")


def test_values_at_a_point() -> None:
    function = dl.parse(SEED)
    picture = diagram(function, evaluate_all(function, [np.float64(2), np.float64(5)]))
    captions = {box.lines[0]: box.caption for box in picture.boxes}
    assert captions["×"] == "v₂ = 10"
    assert captions["sin"] == "v₃ = −0.958924"
    assert captions["y"] == "= 11.6521"


def carrying(text: str, *at: object) -> Diagram:
    function = dl.parse(text)
    values = [np.asarray(value, dtype=float) for value in at]
    cotangents = node_cotangents(function, values)
    return diagram(function, evaluate_all(function, values), cotangents=cotangents)


def test_arrows_carry_values_and_cotangents() -> None:
    # dy/dx1 = 1/x1 + x2 = 5.5, dy/dx2 = x1 - cos(x2) = 1.7163.
    picture = carrying(SEED, 2.0, 5.0)
    numbers = {box.lines[0]: (box.caption, box.value, box.bar) for box in picture.boxes}
    assert numbers["x1"] == ("v₋₁", "2", "5.5")
    assert numbers["x2"] == ("v₀", "5", "1.716")
    assert numbers["sin"] == ("v₃", "−0.9589", "−1")
    assert numbers["y"] == ("= 11.6521", "", "")
    assert picture.legend.endswith("v̄ = ∂y/∂v")
    assert 'n4 -> n6 [label="2\\nv = −0.9589\\nv̄ = −1"' in dot(picture)
    assert 'n4 -->|"2<br/>v #61; −0#46;9589<br/>v̄ #61; −1"| n6' in mermaid(picture)


def test_arrows_of_arrays_carry_shape_and_range() -> None:
    # W x = (-10, 8, 26, 44): the rows of the living units add up to the cotangent of x.
    W = np.arange(12.0).reshape(4, 3) - 3
    picture = carrying("W: [4, 3]; x: [3]; sum(relu(W @ x))", W, [1.0, 2.0, 3.0])
    numbers = {box.lines[0]: (box.value, box.bar) for box in picture.boxes}
    assert numbers["W"] == ("4×3: −3 … 8", "4×3: 0 … 3")
    assert numbers["x"] == ("[1, 2, 3]", "[9, 12, 15]")
    assert numbers["relu"] == ("4: 0 … 44", "4: 1")


def test_what_is_not_finite_stands_out() -> None:
    picture = carrying("sqrt(x) + log(y)", 0.0, -1.0)
    roles = {(text.text, text.role) for text in scene(picture).texts}
    assert {("nan", "bad"), ("inf", "bad"), ("−1", "value"), ("1", "bar")} <= roles


def test_several_outputs_carry_the_derivative_of_their_sum() -> None:
    picture = carrying("[x*y, x]", 2.0, 3.0)
    assert {box.lines[0]: box.bar for box in picture.boxes}["x"] == "4"
    assert "sum of the outputs" in picture.legend


def test_an_output_is_not_called_as_an_input() -> None:
    boxes = drawn("x + y").boxes
    assert boxes[-1].lines == ("f",)


def test_moving_data_is_told_from_computing() -> None:
    kinds = {box.lines[0]: box.kind for box in drawn("x: [3]\nx[0]*x[1]").boxes}
    assert kinds["[0]"] is BoxKind.MOVE
    assert kinds["×"] is BoxKind.OPERATION


def test_the_derivative_is_drawn_like_any_function() -> None:
    picture = diagram(dl.gradient(dl.parse(SEED)), title="gradient")
    assert ("x1", "1", "−") in named(picture)
    assert ("cos", "2", "−") in named(picture)


@pytest.mark.parametrize("text", [SEED, BRANCHES, "x: [3]\n[x[0]*2, x[1:]^2]", "3", "x"])
def test_svg_is_xml_with_an_arrow_for_every_use(text: str) -> None:
    picture = drawn(text)
    root = ElementTree.fromstring(svg(picture))
    heads = root.findall(f"{NAMESPACE}polygon")
    assert len(heads) == len(picture.edges)
    texts = [element.text for element in root.iter(f"{NAMESPACE}text")]
    for box in picture.boxes:
        assert box.lines[0] in texts


def hostile() -> Diagram:
    boxes = (
        DiagramBox(BoxKind.INPUT, (HOSTILE,), HOSTILE, HOSTILE),
        DiagramBox(BoxKind.OUTPUT, ("y",)),
    )
    return Diagram(HOSTILE, HOSTILE, boxes, ())


def test_hostile_text_stays_text_in_svg() -> None:
    text = svg(hostile())
    assert "\x1b" not in text
    root = ElementTree.fromstring(text)
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "path", "polygon", "circle", "g", "text",
    }  # fmt: skip
    assert any("<script>alert(1)" in (e.text or "") for e in root.iter(f"{NAMESPACE}text"))


def test_hostile_text_stays_text_in_mermaid() -> None:
    lines = mermaid(hostile()).splitlines()
    assert "\x1b" not in "".join(lines)
    (node,) = [line for line in lines if line.startswith("    n0")]
    label = node.removeprefix('    n0(["').removesuffix('"]):::input')
    assert re.fullmatch(r"(?:[\w ]|#\d+;|<br/>)*", label)


def test_hostile_text_stays_text_in_dot() -> None:
    text = dot(hostile())
    assert "\x1b" not in text
    # Without its strings, what is left of DOT holds no trace of the text.
    left = re.sub(r'"(?:[^"\\]|\\.)*"', "S", text)
    assert "script" not in left
    assert '"' not in left
    assert left.count("n0 [label=S, ") == 1


def test_hostile_text_does_not_stop_png() -> None:
    assert png(hostile()).startswith(b"\x89PNG")


def test_png_is_the_same_picture() -> None:
    from matplotlib.image import imread

    picture = drawn(BRANCHES)
    pixels = (imread(io.BytesIO(png(picture)), format="png")[..., :3] * 255).round().astype(int)
    size = scene(picture)
    assert pixels.shape[:2] == pytest.approx((2 * size.height, 2 * size.width), abs=2)
    for kind in {box.kind for box in picture.boxes}:
        colour = LIGHT[f"{kind} line"]
        wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert (pixels == wanted).all(axis=-1).sum() > 50


def test_dot_and_mermaid_hold_every_box_and_arrow() -> None:
    picture = drawn(BRANCHES)
    assert len(re.findall(r"^  n\d+ \[", dot(picture), re.M)) == len(picture.boxes)
    assert len(re.findall(r"^  n\d+ -> n\d+ ", dot(picture), re.M)) == len(picture.edges)
    text = mermaid(picture)
    assert len(re.findall(r":::\w+$", text, re.M)) == len(picture.boxes)
    assert len(re.findall(r"^    n\d+ -->(\|.*\|)? n\d+$", text, re.M)) == len(picture.edges)


def extents(picture: Scene) -> list[tuple[str, float, float, float, float]]:
    """Measure every text with a real font: (text, left, top, right, bottom)."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    found = []
    for text in picture.texts:
        weight = "bold" if text.role in ("title", "mark") else "normal"
        font = FontProperties(family="DejaVu Sans", weight=weight)
        box = TextPath((0, 0), text.text.replace("$", ""), size=text.size, prop=font).get_extents()
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * box.width
        top = text.y - 0.5 * text.size
        found.append((text.text, text.x - shift, top, text.x - shift + box.width, top + text.size))
    return found


@pytest.mark.parametrize("carries", [False, True])
@pytest.mark.parametrize("text", [SEED, BRANCHES, TALL, WIDE])
def test_no_text_is_clipped_or_overlaps_another(text: str, carries: bool) -> None:
    function = dl.parse(text)
    point = [np.float64(1.234567)] * function.n
    cotangents = node_cotangents(function, point) if carries else None
    drawing = scene(diagram(function, evaluate_all(function, point), cotangents=cotangents))
    measured = extents(drawing)
    for label, left, top, right, bottom in measured:
        assert left >= 0, label
        assert right <= drawing.width, label
        assert top >= 0, label
        assert bottom <= drawing.height, label
    for index, (a, left, top, right, bottom) in enumerate(measured):
        for b, left_b, top_b, right_b, bottom_b in measured[index + 1 :]:
            apart = right <= left_b or right_b <= left or bottom <= top_b or bottom_b <= top
            assert apart, (a, b)


@pytest.mark.parametrize(
    "constant",
    ["1.000000000000001", "0.3333333333333333", "12345678901234.5", "2.5e-17", "1e6", "0.5"],
)
def test_a_constant_has_the_digits_that_tell_it_from_others(constant: str) -> None:
    (box,) = (b for b in drawn(f"a*{constant}").boxes if b.kind is BoxKind.CONSTANT)
    assert float(box.lines[0].replace("−", "-")) == float(constant)
    assert len(box.lines[0]) <= len(constant)
    assert box.tip == f"constant {box.lines[0]}"


def test_labels_fit_their_boxes() -> None:
    drawing = scene(
        drawn(
            "MMMMWWWWMMMMWWWW + W_long_name_m*W + exp2(x)*expm1(x)*loggamma(x)*12345.678*mod(x, 3)"
        )
    )
    measured = {text: right - left for text, left, _, right, _ in extents(drawing)}
    widths = {}
    for shape in drawing.shapes:
        for text in drawing.texts:
            if (
                text.role == "label"
                and abs(text.x - (shape.x + 0.5 * shape.width)) < 0.1
                and shape.y < text.y < shape.y + shape.height
            ):
                widths[text.text] = shape.width
    assert {"MMMMWWWWMMMMWWWW", "W_long_name_m", "exp2", "12345.678"} <= widths.keys()
    for text, width in widths.items():
        assert measured[text] + 4 <= width, text


def luminance(colour: str) -> float:
    """Return relative luminance (WCAG 2.2)."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_contrast_suffices_in_light_and_dark(colours: dict[str, str]) -> None:
    for surface in ("paper", *BoxKind):
        assert contrast(colours["ink"], colours[surface]) >= 7, surface
        assert contrast(colours["quiet"], colours[surface]) >= 4.5, surface
    for number in ("value", "bar", "bad"):
        assert contrast(colours[number], colours["paper"]) >= 4.5, number
    for kind in BoxKind:
        assert contrast(colours[f"{kind} line"], colours["paper"]) >= 3, kind


def test_kinds_differ_in_shape_and_not_only_in_colour() -> None:
    outlines = set()
    for kind in set(BoxKind) - {BoxKind.MOVE}:
        text = svg(Diagram("", "", (DiagramBox(kind, ("x",)),), ()))
        group = re.findall(r"<g>(.*?)</g>", text)[0]
        outlines.add(re.sub(r'class="\w+" | [xy]="[^"]*"| (width|height)="[^"]*"', "", group))
    assert len(outlines) == 6


def test_the_same_picture_every_time() -> None:
    for write in WRITERS.values():
        assert write(drawn(BRANCHES)) == write(drawn(BRANCHES))


def test_heat_marks_a_box_in_every_format() -> None:
    """The hotter a box, the thicker its line; without heat nothing changes."""
    boxes = [DiagramBox(BoxKind.OPERATION, (name,), heat=heat) for name, heat in
             (("cold", 0.0), ("warm", 0.25), ("hot", 1.0))]  # fmt: skip
    picture = Diagram("", "", tuple(boxes), ())
    found = re.findall(
        r'class="bad heat".*?fill-opacity="([\d.]+)" stroke-width="([\d.]+)"', svg(picture)
    )
    assert [(float(fill), float(line)) for fill, line in found] == [(0.12, 1.2), (0.5, 5.0)]
    widths = re.findall(rf'color="{LIGHT["bad"]}", penwidth=([\d.]+)', dot(picture))
    assert list(map(float, widths)) == [2.6, 6.4]
    assert mermaid(picture).count(f"stroke:{LIGHT['bad']}") == 2
    cold = Diagram("", "", tuple(DiagramBox(BoxKind.OPERATION, box.lines) for box in boxes), ())
    assert "heat" not in svg(cold).partition("</style>")[2]
    assert png(picture) != png(cold)
