"""A scene as an SVG document, in which every text is escaped.

The picture has its own background, light or dark as the viewer prefers, and its colours are
Okabe and Ito's, which colour-blind people can tell apart; every kind also has its own shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from difflab.drawing.layout import Curve
from difflab.drawing.model import BoxKind, Diagram
from difflab.drawing.scene import BoxShape, Outline, PanelFrame, Scene, SceneText, outlines, scene
from difflab.errors import printable

FONT = "'DejaVu Sans', Verdana, 'Segoe UI', Helvetica, Arial, sans-serif"
_COLOURS = {  # on light paper, on dark
    "input": ("#DCEBF7", "#0E3350"),
    "input line": ("#0072B2", "#56B4E9"),
    "constant": ("#EFEFEF", "#2B3036"),
    "constant line": ("#767676", "#9AA4AE"),
    "operation": ("#FFF4DC", "#3D2E0E"),
    "operation line": ("#B87400", "#E69F00"),
    "move": ("#FFFFFF", "#0D1117"),
    "move line": ("#767676", "#9AA4AE"),
    "coarse": ("#E9E7F8", "#262047"),
    "coarse line": ("#5B4FC4", "#A79EF5"),
    "output": ("#DBF2EA", "#0B3B2D"),
    "output line": ("#00805B", "#2BC79A"),
    "summary": ("#F8E6F1", "#43233A"),
    "summary line": ("#A8527F", "#E08CBB"),
    "paper": ("#FFFFFF", "#0D1117"),
    "ink": ("#1A1A1A", "#F0F3F6"),
    "quiet": ("#57606A", "#A9B4BF"),
    "line": ("#6B7680", "#8B96A1"),
    "value": ("#00527F", "#7CC6F2"),
    "bar": ("#8A4A00", "#F0B55A"),
    "bad": ("#C00000", "#FF7B72"),
}
HEAT_LINE = 5.0
"""Width of the line around the hottest box."""
LIGHT, DARK = ({name: pair[scheme] for name, pair in _COLOURS.items()} for scheme in (0, 1))


def svg(picture: Diagram) -> str:
    """Return a diagram as an SVG document.

    Parameters
    ----------
    picture : Diagram

    Returns
    -------
    str
        A document that stands alone, or inside a page.

    Examples
    --------
    >>> from difflab.drawing.model import DiagramBox
    >>> text = svg(Diagram("<b>", "", (DiagramBox(BoxKind.INPUT, ("x",)),), ()))
    >>> "&lt;b&gt;" in text, "<b>" in text
    (True, False)
    """
    drawn = scene(picture)
    size = f'width="{_n(drawn.width)}" height="{_n(drawn.height)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="difflab-graph" role="img" {size} '
        f'viewBox="0 0 {_n(drawn.width)} {_n(drawn.height)}" font-family="{FONT}">',
        f"<title>{_text(drawn.title)}</title>",
        f"<desc>{_text(drawn.description)}</desc>",
        f"<style>{_style(LIGHT)}@media (prefers-color-scheme:dark){{{_style(DARK)}}}</style>",
        f'<rect class="paper" {size}/>',
        *map(_panel, drawn.panels),
        *_lines(drawn),
        *(_shape(shape) for shape in drawn.shapes),
        *(_label(text) for text in drawn.texts),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style(colours: Mapping[str, str]) -> str:
    """Return the rules of one scheme; all are confined to difflab's pictures."""
    rules = {
        "paper": f"fill:{colours['paper']}",
        "line": f"fill:none;stroke:{colours['line']}",
        "head": f"fill:{colours['line']}",
        "title": f"fill:{colours['ink']};font-weight:600",
        "label": f"fill:{colours['ink']}",
        "caption": f"fill:{colours['quiet']}",
        "mark": f"fill:{colours['quiet']};font-weight:600;stroke:{colours['paper']};"
        "stroke-width:3px;paint-order:stroke",
    }
    rules["panel"] = f"fill:none;stroke:{colours['coarse line']}"
    for role in ("value", "bar"):
        rules[role] = f"fill:{colours[role]}"
    rules["bad"] = f"fill:{colours['bad']};font-weight:600"
    for kind in BoxKind:
        rules[kind] = f"fill:{colours[kind]};stroke:{colours[f'{kind} line']}"
    return "".join(f".difflab-graph .{name}{{{rule}}}" for name, rule in rules.items())


def _n(value: float) -> str:
    """Return a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(printable(text), quote=True)


def path(curve: Curve) -> str:
    """Return a curve in the language of SVG paths."""
    points = [f"{_n(x)},{_n(y)}" for x, y in curve]
    return "M{} L{} C{} {} {} L{}".format(*points)


def _panel(frame: PanelFrame) -> str:
    corner = f'x="{_n(frame.x)}" y="{_n(frame.y)}"'
    size = f'width="{_n(frame.width)}" height="{_n(frame.height)}"'
    return f'<rect class="panel" stroke-width="1.2" {corner} {size} rx="8" stroke-dasharray="2 3"/>'


def _lines(drawn: Scene) -> list[str]:
    lines = [
        f'<path class="line" stroke-width="{_n(line.width)}" d="{path(line.curve)}"/>'
        for line in drawn.lines
    ]
    for head in drawn.heads:
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in head)
        lines.append(f'<polygon class="head" points="{points}"/>')
    for x, y in drawn.dots:
        lines.append(f'<circle class="head" cx="{_n(x)}" cy="{_n(y)}" r="3.2"/>')
    return lines


def _rect(outline: Outline) -> str:
    x, y, width, height, radius = map(
        _n, (outline.x, outline.y, outline.width, outline.height, outline.radius)
    )
    dashes = ' stroke-dasharray="4 2.5"' if outline.dashed else ""
    return (
        f'<rect class="{outline.kind}" stroke-width="1.6" x="{x}" y="{y}" width="{width}" '
        f'height="{height}" rx="{radius}"{dashes}/>'
    )


def _shape(shape: BoxShape) -> str:
    tip = f"<title>{_text(shape.tip)}</title>" if shape.tip else ""
    shapes = outlines(shape)
    return f"<g>{tip}{''.join(map(_rect, shapes))}{_heat(shapes[0], shape.heat)}</g>"


def _heat(outline: Outline, heat: float) -> str:
    """Return the mark over a box: the more heat, the more colour and the thicker its line."""
    if not heat:
        return ""
    size = f'width="{_n(outline.width)}" height="{_n(outline.height)}" rx="{_n(outline.radius)}"'
    look = f'fill-opacity="{0.5 * heat:.2f}" stroke-width="{_n(HEAT_LINE * heat)}"'
    look += f' stroke="{LIGHT["bad"]}"'
    return f'<rect class="bad heat" x="{_n(outline.x)}" y="{_n(outline.y)}" {size} {look}/>'


def _label(text: SceneText) -> str:
    y = text.y + 0.36 * text.size
    return (
        f'<text class="{text.role}" x="{_n(text.x)}" y="{_n(y)}" font-size="{_n(text.size)}" '
        f'text-anchor="{text.anchor}">{_text(text.text)}</text>'
    )
