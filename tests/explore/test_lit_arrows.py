"""What the page lights up at a step is the arrows of that step, whole, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from difflab.language import parse
from tests.support.browser import chromium, new_page

GRAPHS = (
    "x*sin(x*y)",
    "x*exp(sin(x*y)+x)",
    "ln(x)+x*y-sin(y)",
    "x^2+y^2",
    "sqrt(x*y)/(x+sin(exp(x*y)))",
    "x*cos(sin(exp(x*y)))*x",
    "tanh(x*y+x)*y",
    "(x+y)*(x-y)*sin(x)",
    "x/(1+exp(-x*y))",
    "hypot(x,y)*sin(cos(x))+y",
)
# Every lit path begins at the end of another lit path, or where no path ends, which is a box;
# every lit trunk continues in a lit path; the lit heads are those of the lit last parts.
LIT = """() => {
    const lit = [...document.querySelectorAll("svg .wire.now")].map((wire) => {
        const at = (l) => {
            const p = wire.getPointAtLength(l);
            return `${p.x.toFixed(1)},${p.y.toFixed(1)}`;
        };
        return [at(0), at(wire.getTotalLength())];
    });
    const heads = [...document.querySelectorAll("svg polygon.tip.now")]
        .map((head) => head.getAttribute("points").split(" ")[0].split(","))
        .map((point) => point.map((v) => (+v).toFixed(1)).join(","));
    return [lit, heads];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize("text", GRAPHS)
def test_lit_is_whole_arrows(browser: Any, tmp_path: Path, text: str) -> None:
    file = tmp_path / "page.html"
    parse(text).explore({"x": 0.7, "y": 0.4}).save(file)
    page = new_page(browser)
    page.goto(file.as_uri())
    seen = 0
    for _ in range(60):
        wires, heads = page.evaluate(LIT)
        starts = {start for start, _ in wires}
        loose = [end for _, end in wires if end not in starts and end not in heads]
        assert loose == []
        seen += len(heads)
        page.keyboard.press("ArrowRight")
    page.close()
    assert seen
