"""Repetition found by structure alone: the same bits, a few operations on vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.repetition import LEAST_NODES, rolled
from tests.support.rows import for_each

N = 800
RNG = np.random.default_rng(5)
SHUFFLED, AGAIN = RNG.permutation(N), RNG.permutation(N)
DATA = RNG.normal(size=N).round(6).tolist()
POINT = RNG.normal(size=N)
SIDE = 28


def added(term: Callable[[int], str], terms: int = N - 1) -> str:
    return f"x: [{N}]\n" + " + ".join(term(i) for i in range(terms))


def rosenbrock(n: int) -> str:
    terms = (f"100*(x[{i + 1}] - x[{i}]^2)^2 + (1 - x[{i}])^2" for i in range(n - 1))
    return f"x: [{n}]\n" + " + ".join(terms)


TEXTS: dict[str, tuple[str, int]] = {
    "rosenbrock": (rosenbrock(N), 15),
    "grouped": (added(lambda i: f"(x[{i}]*x[{i + 1}] + sin(x[{i}]))"), 15),
    "data": (added(lambda i: f"{DATA[i]}*exp(x[{i}]) - cos({DATA[i + 1]} - x[{i}])"), 12),
    "labels": (added(lambda i: f"log(1 + exp({i * i % 3 - 1}*x[{i}]))"), 40),
    "shapes in turn": (added(lambda i: f"{('sin', 'cos')[i % 2]}(x[{i}]*x[{i + 1}])"), 12),
    "a few others": (
        added(lambda i: f"tanh(x[{i}]^3)*x[7]" if i in (3, 400) else f"x[{i}]*x[{i + 1}]*x[{i}]"),
        30,
    ),
    "shuffled": (added(lambda i: f"sin(x[{SHUFFLED[i]}])*x[{AGAIN[i]}]"), 8),
    "backwards": (added(lambda i: f"x[{i}]*cos(x[{N - 1 - i}])*2"), 10),
    "shared": (added(lambda i: f"sin(x[{i + 1}])*exp(x[{i}])*sin(x[{i}])"), 12),
    "branches": (
        added(lambda i: f"where(x[{i}] > x[{i + 1}], sqrt(x[{i}]), max(x[{i + 1}], 0.5))"),
        16,
    ),
    "truths": (added(lambda i: f"(x[{i}] > 0 and not x[{i + 1}] > 1)*x[{i}]"), 16),
    "powers": (added(lambda i: f"(x[{i}]^2 + 1)^{i % 3 + 2}*x[{i}]^2 + {i + 0.5}^x[{i}]"), 32),
    "differences": ("x: [800]\n0 - " + " - ".join(f"x[{i}]^2*{i}" for i in range(N)), 8),
    "a partial sum used twice": (
        added(lambda i: f"x[{i}]^2*sin(x[{i + 1}])", 400).replace("\n", "\ns = ")
        + "\ns*s + "
        + " + ".join(f"exp(x[{i}]*x[{i + 1}])" for i in range(N - 1)),
        16,
    ),
    "outputs": (
        added(lambda i: f"x[{i}]^2*sin(x[{i + 1}])").replace("\n", "\ns = ")
        + "\n[s, sin(x[3]), s*2 + x[0]]",
        14,
    ),
    "a sum and what follows it": (
        added(lambda i: f"x[{i}]^2*sin(x[{i + 1}])").replace("\n", "\ns = ") + "\n[s, s + x[0]]",
        11,
    ),
    "less a sum": (
        added(lambda i: f"x[{i}]^2*sin(x[{i + 1}])").replace("\n", "\ns = ") + "\nx[2] - s",
        10,
    ),
    "an array beside them": (added(lambda i: f"x[{i}]*sin(x[{i + 1}])") + " + sum(exp(x)*x)", 11),
    "constants": (added(lambda i: f"pi*x[{i}]^2 - e*{i}"), 9),
}


def operations(function: Function) -> int:
    return int((function.graph.opcode >= FIRST_ROW).sum())


def assert_same(function: Function, most: int, points: NDArray[np.float64]) -> Function:
    """Fail unless `function` becomes at most so many operations that give the same bits."""
    found = rolled(function)
    assert operations(found) <= most
    assert (found.inputs, found.output_names) == (function.inputs, function.output_names)
    for point in (*points, points):
        np.testing.assert_array_equal(found.values(point), function.values(point))
    return found


def points_for(function: Function) -> NDArray[np.float64]:
    points = np.random.default_rng(6).normal(size=(3, function.n))
    points[2, ::7] = 0.0
    return points


@for_each("name", TEXTS)
def test_the_same_bits(name: str) -> None:
    text, most = TEXTS[name]
    function = dl.parse(text)
    assert_same(function, most, points_for(function))


@for_each("name", TEXTS)
def test_its_derivative_is_that_of_the_numbers(name: str) -> None:
    function = dl.parse(TEXTS[name][0])
    points = points_for(function)[:2]
    pull = dl.vjp(rolled(function))
    assert operations(pull) * 10 < operations(function)
    y_bar = np.linspace(0.5, 2.0, function.m)
    packed = np.concatenate([points, np.tile(y_bar, (2, 1))], axis=-1)
    found = pull.values(packed)[:, function.m :]
    expected = y_bar @ dl.jacobian(function, "reverse")(points)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


SMALL = LEAST_NODES // 9 - 2
"""Terms of a function that is not rolled before it is differentiated; its gradient is."""


@pytest.mark.parametrize("n", [SMALL, SMALL + 4], ids=["rolled when compiled", "before"])
def test_rosenbrock_is_what_algebra_says(n: int) -> None:
    x = np.random.default_rng(0).normal(size=n)
    both = dl.value_and_gradient(dl.parse(rosenbrock(n)))
    assert operations(both) == 18 if n > SMALL else operations(both) > 10 * n
    d = x[1:] - x[:-1] ** 2
    expected = np.zeros(n)
    expected[1:] += 200 * d
    expected[:-1] += -400 * x[:-1] * d - 2 * (1 - x[:-1])
    for call in (both, dl.compile(both), dl.compile(both, "numpy")):
        value, gradient = call(x)
        np.testing.assert_allclose(value, np.sum(100 * d**2 + (1 - x[:-1]) ** 2), rtol=1e-13)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12)


def test_second_derivatives_along_a_direction() -> None:
    n = 600
    product = dl.hvp(rolled(dl.parse(rosenbrock(n))))
    assert operations(product) < 100
    x, v = np.random.default_rng(1).normal(size=(2, n))
    diagonal = np.zeros(n)
    diagonal[:-1] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    diagonal[1:] += 200
    expected = diagonal * v
    expected[:-1] -= 400 * x[:-1] * v[1:]
    expected[1:] -= 400 * x[:-1] * v[:-1]
    np.testing.assert_allclose(product(x, v), expected, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("n", [500, 4000])
def test_the_work_does_not_grow_with_the_terms(n: int) -> None:
    assert operations(rolled(dl.parse(rosenbrock(n)))) == 9
    assert operations(dl.value_and_gradient(rolled(dl.parse(rosenbrock(n))))) == 18


def test_a_derivative_of_numbers_is_rolled_too() -> None:
    function = dl.parse(rosenbrock(N))
    row = dl.jacobian(function, "reverse")
    assert operations(row) > 9 * N
    assert_same(row, 40, points_for(function))


def any_program(seed: int) -> str:
    """Return terms of a few random shapes over random places, some of which share parts."""
    rng = np.random.default_rng(seed)
    n, terms = 40, int(rng.integers(60, 160))
    places = [rng.permutation(terms) % n, rng.integers(0, n, terms), np.arange(terms) // 2 % n]

    def shape(depth: int) -> str:
        leaf = rng.integers(0, 5)
        if depth == 0 or leaf == 4:
            return ("x[{p0}]", "x[{p1}]", "x[{p2}]", "{c}", "y")[leaf]
        a, b = shape(depth - 1), shape(depth - 1)
        forms = (f"({a} + {b})", f"({a} - {b})", f"{a}*{b}", f"sin({a})", f"({a})^2", f"({a})^3")
        more = (
            f"where({a} > {b}, {a}, {b}*2)",
            f"max({a}, {b})",
            f"exp(-({a})^2)",
            f"-{b}",
            f"abs({a})",
        )
        return str(rng.choice([*forms, *more]))

    shapes = [shape(3) for _ in range(rng.integers(1, 4))]
    written = [
        rng.choice(shapes).format(
            c=i % 7 + 0.5 * (i % 2), **{f"p{k}": p[i] for k, p in enumerate(places)}
        )
        for i in range(terms)
    ]
    signs = rng.choice([" + ", " - "] if rng.random() < 0.5 else [" + "], terms)
    total = "".join(f"{sign}({term})" for sign, term in zip(signs, written, strict=True))
    return f"x: [{n}]; y: []\nt = 0{total}\n[t, t*x[3], {written[5]}]"


@pytest.mark.parametrize("seed", range(12))
def test_any_program_keeps_its_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.graph.repetition.roll.LEAST_LANES", 1)
    monkeypatch.setattr("difflab.graph.repetition.classes.PATIENCE", 10_000)
    function = dl.parse(any_program(seed))
    for original in (function, dl.vjp(function)):
        found = rolled(original, least=0)
        points = points_for(original)
        assert found is not original
        for point in (*points, points):
            np.testing.assert_array_equal(found.values(point), original.values(point))


LOOPS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "sum": (lambda x: sum(100 * (x[i + 1] - x[i] ** 2) ** 2 for i in range(N - 1)), 9),
    "the other way round": (lambda x: _folded(x), 9),
    "rows of a matrix": (lambda x: _rows(x), 12),
    "short rows": (lambda x: sum((x[i] + x[i + 1] + x[i + 2]) ** 2 for i in range(N - 2)), 9),
}


def _folded(x: Any) -> Any:
    total = 0.0
    for i in range(N - 1):
        total = np.exp(x[i]) * x[i + 1] + total
    return total


def _rows(x: Any) -> Any:
    weights = np.random.default_rng(8).normal(size=(40, 50)).tolist()
    rows = [sum(w * x[j] for j, w in enumerate(row)) for row in weights]
    return sum(np.sin(row) * row for row in rows)


@pytest.mark.parametrize("name", LOOPS)
def test_traced_loops(name: str) -> None:
    loop, most = LOOPS[name]
    function = dl.trace(loop, np.zeros(N))
    found = assert_same(function, most, points_for(function))
    np.testing.assert_allclose(found(x=POINT), loop(POINT), rtol=1e-12)


def test_grids_are_read_row_by_row() -> None:
    n = SIDE
    cells = [(i, j) for i in range(1, n) for j in range(n)]
    terms = " + ".join(f"(u[{i}, {j}] - u[{i - 1}, {j}])^2" for i, j in cells)
    function = dl.parse(f"u: [{n}, {n}]\n{terms}")
    found = assert_same(function, 6, points_for(function))
    u = np.random.default_rng(2).normal(size=(n, n))
    np.testing.assert_allclose(found(u), np.sum(np.diff(u, axis=0) ** 2), rtol=1e-12)


def test_inputs_that_are_numbers() -> None:
    function = dl.parse(" + ".join(f"sin(x{i})*x{i + 1}^2*exp(x{i + 1})" for i in range(N)))
    found = assert_same(function, 9, points_for(function))
    assert found.inputs[:3] == ("x0", "x1", "x2")


def test_inputs_that_are_numbers_are_lanes_of_a_packed_point() -> None:
    function = dl.parse(" + ".join(f"(x{i + 1} - x{i}^2)^2" for i in range(N)))
    fast = dl.compile(dl.value_and_gradient(function), "numpy", packed=True)
    assert fast.source.count("\n") < 30
    assert "take" not in fast.source
    points = points_for(function)
    d = points[:, :-1] ** 2 - points[:, 1:]
    expected = np.zeros_like(points)
    expected[:, :-1] += 4 * points[:, :-1] * d
    expected[:, 1:] -= 2 * d
    for point, slope in ((points, expected), (points[1], expected[1])):
        value, gradient = fast(point)
        np.testing.assert_array_equal(value, function.values(point)[..., 0])
        np.testing.assert_allclose(gradient, slope, rtol=1e-12, atol=1e-12)
    with pytest.raises(dl.errors.PointError, match="801 elements"):
        fast(points[0, 1:])


@pytest.mark.parametrize(
    "text",
    [
        "a0 = x\n" + "\n".join(f"a{i + 1} = sin(a{i})*a{i}" for i in range(2000)) + "\na2000",
        "x: [2]\n" + " + ".join(f"x[1]^{i}" for i in range(LEAST_NODES // 2 - 4)),
        "[" + ", ".join(f"sin(x{i})*2" for i in range(N)) + "]",
    ],
    ids=["one after the other", "few", "every output alone"],
)
def test_what_gains_little_stays_as_it_is(text: str) -> None:
    function = dl.parse(text)
    assert rolled(function) is function


def test_untaken_branches_count_nothing() -> None:
    text = added(lambda i: f"where(x[{i}] > 0, sqrt(x[{i}]), 0)", N)
    x = np.zeros(N)
    x[3] = 4.0
    expected = np.zeros(N)
    expected[3] = 0.25
    gradient = dl.gradient(rolled(dl.parse(text)))
    assert operations(gradient) < 20
    np.testing.assert_array_equal(gradient(x), expected)


def test_compiling_says_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.execute.choice.available", lambda: False)
    function = dl.parse(rosenbrock(N))
    fast = dl.compile(function)
    assert fast.reason == "numpy: 7,191 scalar operations are 9 vector operations"
    assert fast(POINT) == function(POINT)
    np.testing.assert_array_equal(fast(np.stack([POINT, -POINT])), function([POINT, -POINT]))
    assert dl.compile(function, "python").reason == "python: as requested"


@for_each("target", ["auto", "native"])
def test_machine_code_of_what_repeats_does_not_grow(target: str) -> None:
    pytest.importorskip("llvmlite")
    sizes = []
    for n in (304, 3040):
        fast = dl.compile(dl.value_and_gradient(dl.parse(rosenbrock(n))), target)
        assert fast.reason.startswith("native: " + ("it reads" if target == "auto" else "as req"))
        sizes.append(fast.source.count("\n"))
    assert sizes[0] == sizes[1] < 1000


def test_a_vector_knows_its_place_in_the_text() -> None:
    function = rolled(dl.parse(rosenbrock(N)))
    spans = [function.graph.span(node) for node in range(len(function.graph))]
    assert function.text is None  # it is another program than the text
    text = function.graph.text
    assert text is not None
    assert "1 - x[0]" in [text[slice(*span)] for span in spans if span]


def test_truth_values_among_vectors_stay_truth_values() -> None:
    terms = " + ".join(f"where(x[{i}] > x[{i + 1}], x[{i}], sin(x[{i}]))" for i in range(N - 1))
    function = dl.parse(f"x: [{N}]\nt = {terms}\n[t, x[0] > x[1], x[1] > x[2]]")
    vectors = rolled(function)
    assert operations(vectors) < 20
    x = np.linspace(1.0, 0.0, N)
    x[2] = 3.0
    for call in (function, vectors, dl.compile(function, "numpy"), dl.compile(vectors, "numpy")):
        assert [bool(part) for part in call(x)[1:]] == [True, False]
        assert all(isinstance(part, bool | np.bool_) for part in call(x)[1:])
        assert [part.dtype for part in call(np.stack([x, -x]))[1:]] == [np.dtype(bool)] * 2


def test_arithmetic_is_the_same_on_vectors() -> None:
    """`operations` counts those of the graph, which are few on vectors; arithmetic stays."""
    functions = [dl.parse(rosenbrock(n)) for n in (SMALL, 4000)]
    assert len(functions[0].graph) < LEAST_NODES <= len(functions[1].graph)
    counts = [dl.count(function) for function in functions]
    assert [count.arithmetic for count in counts] == [count.operations for count in counts]
    numbers = dl.count(dl.jacobian(functions[1], "reverse"))
    vectors = dl.count(dl.gradient(functions[1]))
    assert numbers.operations == numbers.arithmetic > 1000 * vectors.operations
    # Of 9 operations a term; what is folded on numbers (signs, powers of two) may be two more.
    assert 1.0 <= vectors.arithmetic / numbers.arithmetic < 1.25
    assert dl.count(rolled(functions[0])).arithmetic == counts[0].arithmetic
