"""What the page lights up at a step is the arrows of that step, whole, and nothing else."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import difflab as dl
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
# Follows each lit head back along lit wires to a box: the nodes of the boxes at both ends, and how
# many lit wires lie on none of these ways.
LIT = """() => {
    const boxes = [...document.querySelectorAll("svg g.box")].map((box) => {
        const frame = box.querySelector("rect.body");
        const sides = ["x", "y", "width", "height"];
        const [x, y, width, height] = sides.map((side) => +frame.getAttribute(side));
        const nodes = box.dataset.n.split(" ").map(Number), now = box.classList.contains("now");
        return { nodes, now, x, y, width, height };
    });
    const near = ([x, y]) => boxes.find((box) =>
        x > box.x - 2 && x < box.x + box.width + 2 && y > box.y - 2 && y < box.y + box.height + 2);
    const same = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) < 0.1;
    const wires = [...document.querySelectorAll("svg .wire.now")].map((wire) => {
        const at = (length) => { const p = wire.getPointAtLength(length); return [p.x, p.y]; };
        return { start: at(0), end: at(wire.getTotalLength()), used: false };
    });
    const arrows = [...document.querySelectorAll("svg polygon.tip.now")].map((head) => {
        const tip = head.getAttribute("points").split(" ")[0].split(",").map(Number);
        let at = wires.filter((wire) => same(wire.end, tip)).find((wire) => !wire.used);
        let start = tip;
        while (at) {
            at.used = true;
            start = at.start;
            at = near(start) ? null : wires.find((wire) => same(wire.end, start));
        }
        return [near(start)?.nodes ?? null, near(tip)?.nodes ?? null];
    });
    const now = boxes.find((box) => box.now)?.nodes[0] ?? null;
    return { now, arrows, loose: wires.filter((wire) => !wire.used).length, hash: location.hash };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def steps(browser: Any, address: str) -> Iterator[dict[str, Any]]:
    """Yield what is lit at each step of a page."""
    page = new_page(browser)
    page.goto(address)
    found = page.evaluate(LIT)
    while True:
        yield found
        page.keyboard.press("ArrowRight")
        last, found = found, page.evaluate(LIT)
        if found["hash"] == last["hash"]:
            break
    page.close()


def operands_of(page: str) -> tuple[list[list[int]], set[int]]:
    """Return the operands of each node of a page, from its data, and which nodes are constants."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    first = len(data["inputs"])
    constants = set(range(first, first + len(data["constants"])))
    operands: list[list[int]] = [[] for _ in range(first + len(constants))]
    rest = iter(data["steps"])
    for operation in rest:
        arity, node = len(data["operations"][operation]["labels"]), len(operands)
        operands.append([node - next(rest) for _ in range(arity)])
    return operands, constants


@pytest.mark.parametrize("mode", ["value", "forward", "reverse"])
@pytest.mark.parametrize("text", GRAPHS)
def test_lit_are_the_arrows_of_the_step(browser: Any, tmp_path: Path, text: str, mode: str) -> None:
    file = tmp_path / "page.html"
    dl.parse(text).explore({"x": 0.7, "y": 0.4}).save(file)
    operands, constants = operands_of(file.read_text(encoding="utf-8"))
    seen: list[tuple[int, int]] = []
    for lit in steps(browser, f"{file.as_uri()}#mode={mode}&step=1"):
        assert lit["loose"] == 0
        assert all(source is not None and target is not None for source, target in lit["arrows"])
        pairs = sorted((source[0], target[0]) for source, target in lit["arrows"])
        seen += pairs
        now = lit["now"]
        if mode == "value":
            assert pairs == sorted((operand, now) for operand in operands[now])
        elif mode == "forward":
            assert all(target == now and source in operands[now] for source, target in pairs)
        else:
            assert len(pairs) <= 1
            assert all(source == now and now in operands[target] for source, target in pairs)
    every = sorted((arg, node) for node, args in enumerate(operands) for arg in args)
    if mode == "value":
        assert sorted(seen) == every
    elif mode == "reverse":  # each arrow once, but those from constants
        assert sorted(seen) == [pair for pair in every if pair[0] not in constants]
    else:
        assert set(seen) <= set(every)
        assert seen
