"""What every function shows of itself: parsed, traced, jitted and derived ones alike."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, PointError
from difflab.graph.function import Function

SEED = "ln(x1) + x1*x2 - sin(x2)"
AT = {"x1": 2, "x2": 5}


def layer(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(w @ x) * np.array([1.0, -3.5])), w[::-1, 1], np.max(x) > 0.0


def jitted() -> Function:
    loss = dl.jit(lambda params, x: np.sum((params["w"] * x + params["b"]) ** 2))
    assert loss({"w": 2.0, "b": 1.0}, np.ones(3)) == 27.0
    return loss.traces[0].function


FUNCTIONS = {
    "parsed": lambda: dl.parse(SEED),
    "gradient": lambda: dl.gradient(dl.parse(SEED)),
    "hessian": lambda: dl.hessian(dl.parse("x: [3]; sum(x^3)*x[0]")),
    "hvp": lambda: dl.hvp(dl.parse(SEED)),
    "jacobian": lambda: dl.jacobian(dl.parse("x: [4]; take(x*x[::-1], [0, 3, 3])")),
    "both": lambda: dl.value_and_gradient(dl.parse("W: [2, 3]; x: [3]; sum((W @ x)^2)")),
    "traced": lambda: dl.trace(layer, np.ones((2, 3)), np.ones(3)),
    "jitted": jitted,
    "loop": lambda: dl.trace(lambda x: dl.fori_loop(0, 3, lambda i, y: y * x + i, 1.0), 2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_is_read_back(name: str) -> None:
    function = FUNCTIONS[name]()
    again = dl.parse(str(function))
    point = np.random.default_rng(1).uniform(0.5, 1.5, function.n)
    given = dict(zip(function.inputs, function.split(point), strict=True))
    assert again.output_shapes == function.output_shapes
    found, wanted = again(**given), function(**given)
    for one, other in zip(
        *(r if isinstance(r, tuple) else (r,) for r in (found, wanted)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_notebook_shows_mathematics(name: str) -> None:
    shown = FUNCTIONS[name]()._repr_latex_()
    assert shown.startswith("$$")
    assert shown.endswith("$$")
    assert shown.count("\\left(") == shown.count("\\right)")


def test_a_notebook_shows_no_wall_of_mathematics() -> None:
    assert dl.parse("*".join(f"sin(x{i})" for i in range(200)))._repr_latex_() is None


def test_numbers_that_are_not_finite_are_read_back() -> None:
    infinite = dl.trace(lambda x: x * np.array([np.inf, -np.inf, np.nan, -0.0]) + np.inf, 1.0)
    np.testing.assert_array_equal(dl.parse(str(infinite))(-1.0), infinite(-1.0))


def test_what_cannot_be_spelled_is_said() -> None:
    class Host(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return float(x) ** 2

        @staticmethod
        def backward(ctx: Any, y_bar: Any) -> Any:
            return y_bar

    text = str(dl.trace(lambda x: np.sin(Host.apply(x)), 2.0))
    assert text == "# not in the language, for reading only: Host\nsin(Host(x))"
    newton = lambda a: dl.while_loop(lambda x: x * x > a, lambda x: (x + a / x) / 2, a)  # noqa: E731
    root = dl.trace(newton, 2.0)
    assert str(root) == "iterate(x1 = a; while x1*x1 > a; (x1 + a/x1)/2)"
    loop = "iterate(x1 = a; while x1*x1 > a; (x1 + a/x1)/2; back to x1, a from t1[0])"
    assert str(dl.gradient(root)) == f"t1 = [1]\nt2 = {loop}\ngradient = [t2[0] + t2[1]]"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_drawn(name: str, tmp_path: Path) -> None:
    function = FUNCTIONS[name]()
    drawing = function.draw()
    assert ET.fromstring(drawing._repr_svg_()).tag.endswith("svg")
    assert len(function.inputs) == sum(box.kind == "input" for box in drawing.diagram.boxes)
    drawing.save(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes()[:4] == b"\x89PNG"


def test_values_in_the_picture() -> None:
    boxes = dl.parse(SEED).draw(AT, values=True).diagram.boxes
    bars = {box.lines[0]: box.bar for box in boxes if box.kind == "input"}
    assert bars == {"x1": "5.5", "x2": "1.716"}  # Baydin et al. 2018, Table 3


def test_mistakes_in_a_picture(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need a point"):
        dl.parse(SEED).draw(values=True)
    with pytest.raises(InputError, match="depth is a number of levels, not -1"):
        dl.parse(SEED).draw(depth=-1)
    with pytest.raises(PointError, match="x2"):
        dl.parse(SEED).draw({"x1": 2})
    with pytest.raises(InputError, match="cannot tell the format"):
        dl.parse(SEED).draw().save(tmp_path / "graph.jpeg")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_traced(name: str) -> None:
    function = FUNCTIONS[name]()
    trace = function.trace()
    assert "Reverse mode" in repr(trace)
    assert "Reverse mode" in trace.markdown()
    assert "<html" in trace.html()
    assert "<html" not in trace._repr_html_()
    assert trace.gradient
    if len(function.outputs) == 1:
        point = np.concatenate([np.ravel(value) for _, value in trace.point])
        found = np.concatenate([np.ravel(bar) for _, bar in trace.gradient])
        row = dl.jacobian(function).values(point)[: function.n]
        np.testing.assert_allclose(found, row, rtol=1e-12, atol=1e-12)


def test_passes() -> None:
    report = dl.parse("x^1 + 2*3 + y*x + x*y").passes()
    shown = {step.done.name: tuple(s.operations for s in step.sizes) for step in report}
    assert shown["constant folding"] == (6, 5)
    assert shown["simplification"] == (5, 4)
    assert "<table>" in report._repr_html_()
    assert str(report[1].after) == "x + 6 + y*x + y*x"
    for name, make in FUNCTIONS.items():
        assert len(make().passes()) == len(report), name


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("x1/x2  # a quotient", "<Function (x1, x2) -> (y), 3 nodes: x1/x2>"),
        ("a = x*y\n[a, a + 1]", "<Function (x, y) -> (a, y2), 5 nodes: a = x*y; [a, a + 1]>"),
        ("x: [3]; sum(x*x)", "<Function (x) -> (y), 3 nodes: x: [3]; sum(x*x)>"),
        ("+".join(f"sin({'x' * k})" for k in range(1, 9)), ", 23 nodes>"),
    ],
)
def test_the_repr_of_a_short_function_has_its_formula(program: str, shown: str) -> None:
    assert repr(dl.parse(program)).endswith(shown)


def test_a_repr_prints_nothing_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(_: int, y: Any) -> Any:
        for _ in range(200):
            y = y * 1.5 + 1.0
        return y

    weights = np.random.default_rng(1).normal(size=(20, 20))
    functions = [
        dl.trace(lambda x: x @ weights, np.ones(20)),
        dl.trace(lambda x: dl.fori_loop(0, 3, step, x), 2.0),
        dl.parse(" + ".join(f"x^{k}" for k in range(3, 60))),
    ]
    monkeypatch.setattr("difflab.language.printers.text", None)
    for function in functions:
        assert repr(function).endswith(f"{len(function.graph)} nodes>")
