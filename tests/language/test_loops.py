"""Loops in the language: values as Python's own loops, text that is read back, errors in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, MethodTimeout, ParseError, ShapeError
from difflab.graph.control import Loop, WhileLoop
from difflab.referee.referee import Referee
from tests.support.documents import ROOT, python_failures
from tests.support.languages import C
from tests.support.rows import for_each

V = np.array([0.5, -1.25, 2.0])
M = np.array([[0.25, -0.5], [1.5, 0.75]])


def logistic(x: float, rate: float, turns: int) -> float:
    for _ in range(turns):
        x = rate * x * (1 - x)
    return x


def fibonacci(turns: int) -> int:
    a, b = 0, 1
    for _ in range(turns):
        a, b = b, a + b
    return a


def weighted(v: np.ndarray, x: float) -> list[float]:
    total, sums = 0.0, []
    for element in v[::-1]:
        total = total * x + element
        sums.append(total)
    return [total, *sums[::-1]]


def newton(a: float) -> float:
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def powers(turns: int) -> np.ndarray:
    found = np.eye(2)
    for _ in range(turns):
        found = M @ found
    return found


def squares(v: np.ndarray) -> float:
    total = 1.0
    for element in v:
        total = (total * element) ** 2 + 1
    return total


def unfolded(x: float) -> float:
    y = 1.0
    for _ in range(3):
        y = (y + x) ** 2
    return 1 + 2 * y**2


WEIGHTED = "v: [3]\niterate(s = 0, u in v; backwards; s*x + u, s*x + u)"
LINES = "1 + 2*iterate(\n  y = 1;\n  3 times;\n\n  z = y + x;  # shared\n  z*z\n)^2"
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("iterate(y = x; 50 times; 3.2*y*(1 - y))", {"x": 0.3}, logistic(0.3, 3.2, 50)),
    ("iterate(y = y; 0 times; 2*y)", {"y": 3.0}, 3.0),
    ("iterate(a = 0, b = 1; 30 times; b, a + b)[0]", {}, fibonacci(30)),
    (WEIGHTED, {"x": 0.7, "v": V}, weighted(V, 0.7)),
    ("v: [3]; iterate(s = 1, u in v; 3 times; q = s*u; q^2 + 1)", {"v": V}, squares(V)),
    ("iterate(x = a; while abs(x*x - a) > 1e-12; 0.5*(x + a/x))", {"a": 2.0}, newton(2.0)),
    ("M: [2, 2]; iterate(P = [[1, 0], [0, 1]]; 5 times; M @ P)", {"M": M}, powers(5)),
    ("iterate(u in [x, 2*x, 3*x]; u^2)", {"x": 1.5}, [2.25, 9.0, 20.25]),
    ("iterate(s = 0; 3 times; s + iterate(t = 1; 2 times; t*x))", {"x": 3.0}, 27.0),
    ("k = 2*x; iterate(n = 0; 4 times; n + (n < k))", {"x": 1.0}, 2.0),
    ("iterate(n = 5; while n; n - 1)", {}, 0.0),
    (LINES, {"x": 0.5}, unfolded(0.5)),
]  # fmt: skip


@for_each(("text", "point", "expected"), CASES, ids=[text for text, _, _ in CASES])
def test_values_are_those_of_pythons_loops(text: str, point: Any, expected: Any) -> None:
    f = dl.parse(text)
    for target in ("numpy", "auto"):
        np.testing.assert_allclose(dl.compile(f, target=target)(**point), expected, rtol=1e-14)
    found = np.asarray(f(**point))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    again = dl.parse(str(f))
    assert np.array_equal(np.asarray(again(**point)), found)
    assert str(again) == str(f)


def test_a_loop_is_one_node_whatever_its_turns() -> None:
    f = dl.parse("iterate(y = x; 1000000 times; 4*y*(1 - y))")
    assert len(f.graph) < 5
    (loop,) = [row.holds for row in f.graph.primitives if row.holds is not None]
    assert isinstance(loop, Loop)
    assert (loop.steps, len(loop.body.graph)) == (1_000_000, 6)
    assert len(dl.gradient(f).graph) < 20
    assert str(f) == "iterate(y = x; 1000000 times; 4*y*(1 - y))"


def test_derivatives_are_those_of_the_unrolled_formula() -> None:
    turns = 6
    rolled = dl.parse(f"iterate(y = x; {turns} times; r*y*(1 - y))")
    formula = "x"
    for _ in range(turns):
        formula = f"r*({formula})*(1 - ({formula}))"
    plain = dl.parse(formula)
    point = {"x": 0.3, "r": 3.1}
    for derived in (dl.gradient, dl.hessian, lambda f: dl.gradient(f, "forward")):
        np.testing.assert_allclose(derived(rolled)(**point), derived(plain)(**point), rtol=1e-12)
    root = dl.gradient(dl.parse("iterate(x = a; while abs(x*x - a) > 1e-12; 0.5*(x + a/x))"))
    assert root(2.0)[0] == pytest.approx(0.5 / math.sqrt(2), rel=1e-11)


def scanned(a: Any, b: Any, xs: Any, ys: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        s, m = carry
        return (s * x[0] + np.sum(x[1]), m + b * s), (m * x[0], np.sin(x[1]))

    (s, m), (first, second) = dl.scan(step, (a, np.outer(b, b)), (xs, ys), reverse=True)
    return s, m, first, second


def halving(x: Any, y: Any) -> Any:
    return dl.while_loop(lambda v: v[0] > y, lambda v: (v[0] / 2, np.sin(v[1] + y)), (x, x))[1]


DRAW = np.random.default_rng(3)
TRACED: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (scanned, (0.5, DRAW.normal(size=2), DRAW.normal(size=5), DRAW.normal(size=(5, 3)))),
    (lambda x, w: dl.fori_loop(0, 7, lambda i, v: np.tanh(w @ v + i), x), (V, np.eye(3) / 2)),
    (halving, (40.0, 0.25)),
    (lambda x: dl.fori_loop(0, 3, lambda i, v: dl.cond(v > 1, np.sqrt, np.exp, v), x), (0.5,)),
]


@pytest.mark.parametrize(("code", "point"), TRACED)
@pytest.mark.parametrize("derived", [None, dl.jacobian, dl.jvp])
def test_traced_loops_and_their_derivatives_are_read_back(code, point, derived) -> None:
    f = dl.trace(code, *point)
    if derived is dl.jvp:
        f, point = dl.jvp(f), (*point, *[np.cos(np.asarray(value)) for value in point])
    elif derived is not None:
        if code is halving:  # its reverse mode is no program of the language
            f = dl.jacobian(f, "forward")
        else:
            f = derived(f)
    again = dl.parse(str(f))
    assert "not in the language" not in str(f)
    held = [row.holds for row in again.graph.primitives]
    assert any(isinstance(inside, Loop | WhileLoop) for inside in held)
    given = dict(zip(f.inputs, point, strict=True))
    mine, theirs = again(**given), f(**given)
    pairs = zip(mine, theirs, strict=True) if isinstance(theirs, tuple) else [(mine, theirs)]
    for one, other in pairs:
        assert np.array_equal(one, other)
    assert str(dl.parse(str(again))) == str(again)


ERRORS: list[tuple[str, str, str]] = [
    ("iterate()", "iterate begins with the first values", ")"),
    ("iterate(4*y; 3 times; y)", "iterate begins with the first values", "4"),
    ("iterate(y = x)", "needs how often, and the next values", "iterate(y = x)"),
    ("iterate(y = x; 4*y)", "does not say how often", "iterate(y = x; 4*y)"),
    ("iterate(y = x; while y; z = y)", "needs the next values", "iterate(y = x; while y; z = y)"),
    ("iterate(y = x; 3 times)", "separated by ';'", ")"),
    ("iterate(y = x; 3 times 4; y)", "separated by ';'", "4"),
    ("iterate(y = x; 1.5 times; y)", "the number of steps is an integer", "1.5"),
    ("iterate(y = x; while y > 1, y; y)", "the condition of iterate is one expression", ","),
    ("iterate(y = x; 2 times; a = y, y; a)", "a definition of iterate is one expression", ","),
    ("iterate(y = x; while y; y, y)", "carried values only", "iterate(y = x; while y; y, y)"),
    ("iterate(y=x;9 times;y; back to y from 1)", "with a condition", "iterate(y=x;9 times;y;"),
    ("iterate(y = x; while y; z = y; z; back to z from 1)", "neither carried nor", "z"),
    ("iterate(y = x; while y; y; back to 3 from 1)", "a name is expected", "3"),
    ("iterate(y = x; while y; y; back to y: 1)", "end with 'from'", "back to y:"),
    ("iterate(y=3;while y;y;back to y from 1,2)", "", "iterate(y=3;while y;y;back to y from 1,2)"),
    ("iterate(y = x, u in y; u)", "takes the elements of an array", "u"),
    ("iterate(y = 1, z = x; 2 times; y)", "2 values, and 1", "iterate(y = 1, z = x; 2 times; y)"),
    ("iterate(y = x; 3 times; y*2; y + 1)", "the next values are the last part", "y*2;"),
    ("iterate(y = x; 3 times; y = 2; y)", "'y' is defined twice", "y"),
    ("iterate(y = x; 3 times; t = t + 1; t)", "'t' is defined in terms of itself", "t"),
    ("a = iterate(y = a; 3 times; y)", "'a' is defined in terms of itself", "a"),
    ("iterate(e = x; 3 times; e)", "'e' is the constant", "e"),
    ("iterate(y = x; 3 times; y", "this '(' is never closed", "("),
    ("iterate(y = x; 3 times; [y; 2])", "this '[' is never closed", "["),
    ("iterate(y = x; 3 times; 4*; y)", "expected an expression before ';'", ";"),
    ("iterate(y = x; 3 times; y y)", "an operator is missing", "y y"),
    ("iterate(y = ", "this '(' is never closed", "("),
    ("iterate(y = x; 3 times; log(y, y))", "log takes 1 argument, not 2", "log(y, y)"),
    ("iterate(y = 1; " * 101, "more than 100 loops are inside one another", "iterate"),
]  # fmt: skip


@for_each(("text", "message", "marked"), ERRORS, ids=[t[:40] for t, _, _ in ERRORS])
def test_errors_name_their_place(text: str, message: str, marked: str) -> None:
    with pytest.raises(ParseError) as caught:
        dl.parse(text)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert text[slice(*caught.value.span)] == marked


def test_shapes_of_a_loop_are_checked() -> None:
    with pytest.raises(ShapeError, match=r"'y' has the shape \(\), and its next value \(3,\)"):
        dl.parse("v: [3]\niterate(y = 0; 3 times; y + v)")
    with pytest.raises(ParseError, match="the steps of iterate differ: 3 and 4"):
        dl.parse("v: [3]\niterate(s = 0, u in v; 4 times; s + u)")
    with pytest.raises(ParseError, match=r"the condition has the shape \(3,\)"):
        dl.parse("v: [3]\niterate(s = 0; while v > 0; s + 1)")
    with pytest.raises(ShapeError, match="matmul cannot multiply"):
        dl.parse("W: [4, 3]; iterate(s = [1, 2]; 2 times; W @ s)")


def test_the_words_of_a_loop_are_names_elsewhere() -> None:
    f = dl.parse("iterate = 2*times; while = iterate + in; while*backwards")
    assert f(backwards=2.0, **{"in": 1.0, "times": 3.0}) == 14.0
    assert dl.parse("iterate(while = x; 2 times; while*2)")(3.0) == 12.0


def test_parsing_is_linear_in_the_text() -> None:
    definitions = "; ".join(f"t{k} = {f't{k - 1}' if k else 'y'} + x" for k in range(20_000))
    f = dl.parse(f"iterate(y = 0; 2 times; {definitions}; t19999)")
    assert f(1.0) == 40_000.0
    with pytest.raises(DifflabError, match="never closed"):
        dl.parse(f"iterate(y = 0; 2 times; {definitions}; {'(' * 100_000}")


def test_sympy_refuses_a_long_loop_with_its_reason() -> None:
    methods = ["symbolic", "reverse", "richardson"]
    text = "iterate(y = x; 2000 times; 0.999*y + 0.001*x)"
    result = dl.compare(text, at={"x": 0.5}, methods=methods, timing=False)
    rows = {row.name: row for row in result.methods}
    assert rows["symbolic"].status == "unsupported"
    assert "scan" in rows["symbolic"].message or "nodes" in rows["symbolic"].message
    assert rows["reverse"].verdict == rows["richardson"].verdict == "agree"


def test_the_referee_begins_no_loop_that_ends_after_its_time() -> None:
    f = dl.parse("iterate(y = x; 1000000000 times; 4*y*(1 - y))")  # hours in mpmath
    with pytest.raises(MethodTimeout, match="one evaluation takes longer than the time limit"):
        Referee.of(f, [0.3], timeout=1.0).reference()


def test_a_sweep_gives_the_cotangents_of_what_it_names() -> None:
    """y ← a·y, n turns: ∂y_n/∂y_0 = aⁿ and ∂y_n/∂a = n·aⁿ⁻¹·y_0."""
    loop = "iterate(y = x; while y > 0.5; y*a"
    turns, a, x = 7, 0.9, 1.0
    slopes = {"y": a**turns, "a": turns * a ** (turns - 1) * x, "b": 0.0}
    for names in ("y", "a", "b", "a, y", "y, a", "b, a, y"):
        f = dl.parse(f"c = b; 3*{loop}; back to {names} from 2) + 0*b")
        expected = [6 * slopes[name] for name in names.split(", ")]
        found = np.ravel(f(a=a, x=x, b=1.0))
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    arrays = "v: [2]; iterate(y = v; while sum(y) > 1; y*a; back to y from [1, 3])"
    np.testing.assert_allclose(dl.parse(arrays)(v=[1.0, 1.0], a=0.5), [0.5, 1.5])


def test_the_gradient_of_a_while_loop_reads_back_and_differentiates_again() -> None:
    f = dl.parse("iterate(y = x; while y > 0.5; y*a)")
    gradient = dl.parse(str(dl.gradient(f)))
    np.testing.assert_allclose(gradient(a=0.9, x=1.0), [7 * 0.9**6, 0.9**7], rtol=1e-13)
    second = dl.jacobian(gradient)(a=0.9, x=1.0)
    expected = [[42 * 0.9**5, 7 * 0.9**6], [7 * 0.9**6, 0.0]]
    np.testing.assert_allclose(second, expected, rtol=1e-12)


def test_the_page_about_loops_says_the_truth() -> None:
    page = ROOT / "docs" / "reference" / "loops.md"
    failures = python_failures(page.read_text(encoding="utf-8"), page.name)
    assert not failures, failures


NO_STEPS = {
    "counted": lambda x: dl.fori_loop(0, 0, lambda i, y: y * x, x * x),
    "over an array": lambda x: dl.scan(lambda y, a: (y * x + a, y), x * x, np.zeros(0))[0],
    "results": lambda x: x * x + np.sum(dl.scan(lambda y, a: (y * x, y), x, np.zeros(0))[1]),
    "nested": lambda x: dl.fori_loop(
        0, 2, lambda i, y: x * dl.fori_loop(0, 0, lambda j, z: z * y, y), 1.0
    ),
}


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@for_each("name", NO_STEPS)
def test_loops_without_steps_are_what_they_begin_with(
    name: str, order: int, tmp_path: Path
) -> None:
    """Each is x²; their derivatives print text that is read back, and C that compiles."""
    function = dl.trace(NO_STEPS[name], 1.5)
    for _ in range(order):
        function = dl.gradient(function)
    wanted = (2.25, 3.0, 2.0, 0.0)[order]
    assert float(np.ravel(function(1.5))[0]) == wanted
    assert float(np.ravel(dl.parse(str(function))(1.5))[0]) == wanted
    if C.there:
        assert C.values([function], [np.array([[1.5]])], tmp_path)[0].ravel().tolist() == [wanted]
