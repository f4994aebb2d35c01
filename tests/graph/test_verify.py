"""A graph that is not the function of its code is found with the line; no other is."""

import contextlib
import random
import time

import numpy as np
import pytest

import difflab as dl
from difflab.errors import GraphMismatchError, MethodTimeout, TraceError
from difflab.graph.arguments import Arguments
from difflab.graph.code import Code, limited
from difflab.graph.pytree import LEAF
from difflab.graph.verify import agreeing

STATE = {"calls": 0}


def by_type(x):
    y = 2.0 * x
    factor = 3.0 if isinstance(x, np.ndarray | np.float64) else 1.0
    return np.sum(y * factor)


def caught(x):
    try:
        scale = float(np.sum(x))
    except Exception:
        scale = 1.0
    return np.sum(x) * scale


def counting(x):
    STATE["calls"] += 1
    return np.sum(x) * STATE["calls"]


def drawing(x):
    return np.sum(x) * random.random()


def seeded(x):
    random.seed(3)
    return np.sum(x) * random.random()


def helper(v):
    if isinstance(v, np.ndarray | np.float64):
        return v + 1.0
    return v


def calling(x):
    first = 2.0 * x
    second = helper(first)
    return np.sum(second)


def numbered(x):
    numbers = [0.0]
    for k in range(3):
        if isinstance(x, np.ndarray | np.float64):
            numbers += [float(k)]
    return np.sum(x) + sum(numbers)


DIFFERENT = [
    (by_type, "factor = 3.0 if isinstance", "`factor` is 3 in the code and 1 in the graph"),
    (caught, "scale = float(np.sum(x))", "the code goes on at another line"),
    (counting, "return np.sum(x) * STATE", "the result is"),
    (calling, "if isinstance(v, np.ndarray", "the code goes on at another line"),
    (numbered, "if isinstance(x, np.ndarray", "the code goes on at another line"),
]


@pytest.mark.parametrize("point", [2.0, np.array([1.0, 2.0])], ids=["scalar", "array"])
@pytest.mark.parametrize(
    ("code", "line", "text"), DIFFERENT, ids=lambda c: getattr(c, "__name__", "")
)
def test_another_function_is_an_error_with_its_line(code, line, text, point):
    graph = dl.trace(code, point)
    with pytest.raises(
        GraphMismatchError, match="the graph is not your function: at x = "
    ) as found:
        dl.trace(code, point, verify=True)
    if code is not counting:  # which changes in every run
        told = str(found.value)
        assert f"the code gives {code(np.asarray(point)[()]):.4g}," in told
        assert f"the graph {float(graph(point)):.4g}" in told
    assert found.value.text.startswith(line)
    assert text in found.value.message
    assert "test_verify.py, line" in found.value.message


@pytest.mark.parametrize(
    ("code", "line", "text"), DIFFERENT, ids=lambda c: getattr(c, "__name__", "")
)
@pytest.mark.parametrize("transform", [dl.grad, dl.value_and_grad, dl.jit])
def test_transforms_find_it_too(transform, code, line, text):
    transform(code)(np.array([1.0, 2.0]))
    with pytest.raises(GraphMismatchError) as found:
        transform(code, verify=True)(np.array([1.0, 2.0]))
    if code is not caught:  # under grad the number may be known, and the graph keep it
        assert found.value.text.startswith(line)


def frozen(x):
    """Keep a value as a number, which has the code's value at the point of a trace."""
    known = x.__difflab_value__() if hasattr(x, "__difflab_value__") else x
    return x * float(known)


def test_a_number_in_place_of_a_value_is_found_beside_the_point():
    assert dl.grad(frozen)(3.0) == 3.0  # the derivative is 6
    with pytest.raises(GraphMismatchError, match="keeps as a constant"):
        dl.grad(frozen, verify=True)(3.0)


def newton(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = (x + a / x) / 2
    return x


@pytest.mark.parametrize(
    ("code", "point", "slope"),
    [
        (lambda x: x if x > 0 else -x, 0.0, -1.0),
        (lambda x: x * x if x > 1 else 2 * x, 1.0, 2.0),
        (newton, 4.0, 0.25),
        (lambda x: np.exp(x) - np.exp(x - 1e-9), 1.0, np.exp(1.0) * -np.expm1(-1e-9)),
        (lambda x: 1e16 + x - 1e16, 3.0, 1.0),
        (lambda x: (np.float32(3) * x + 1e-8) * 1.0, 2.0, 3.0),
        (lambda x: 0.0 * x, 2.0, 0.0),
    ],
)
def test_branches_and_rounding_are_no_difference(code, point, slope):
    assert dl.grad(code, verify=True)(point) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_in_another_order_are_no_difference(dtype):
    x = np.random.default_rng(0).standard_normal(2000).astype(dtype)

    def total(x):
        parts = x if isinstance(x, dl.graph.node.Node) else x[::-1]
        return np.sum(parts * parts) + np.sum(np.sin(parts))

    dl.trace(total, x, verify=True)
    assert dl.jit(total, verify=True)(x) == pytest.approx(float(total(x)), rel=1e-4)


def test_trees_aux_and_captured_arrays_are_verified():
    w = np.array([1.0, 2.0])
    model = {"a": np.ones(2), "b": 3.0}

    def loss(model, x):
        return np.sum(model["a"] * w * x) + model["b"], {"seen": x}

    slopes, aux = dl.grad(loss, has_aux=True, verify=True)(model, 2.0)
    assert (slopes["a"].tolist(), slopes["b"], aux) == ([2.0, 4.0], 1.0, {"seen": 2.0})
    wrong = lambda model: by_type(model["a"]) + model["b"]  # noqa: E731
    with pytest.raises(GraphMismatchError, match="the code gives 15, the graph 7"):
        dl.grad(wrong, verify=True)(model)


def test_nan_in_both_agrees_and_in_one_does_not():
    assert np.isnan(dl.trace(lambda x: np.log(x), -1.0, verify=True)(-1.0))
    lost = lambda x: x * np.nan if isinstance(x, np.float64) else x  # noqa: E731
    with pytest.raises(GraphMismatchError, match="the code gives nan, the graph 2"):
        dl.trace(lost, 2.0, verify=True)


def test_another_number_of_elements_is_a_difference():
    code = lambda x: [x, x] if isinstance(x, np.float64) else [x]  # noqa: E731
    with pytest.raises(GraphMismatchError, match="the code returns 2 elements, the graph 1"):
        dl.trace(code, 2.0, verify=True)


def test_random_numbers_are_set_back():
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - code of users does
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - code of users does
    draw = lambda x: x * random.random() * np.random.random()  # noqa: E731, NPY002
    code = Code.of(draw, Arguments(("x",), (LEAF,)), [1.0])
    assert code.run(np.ones(1)).drawn == ("Python's random", "numpy.random")
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


@pytest.mark.parametrize("transform", [dl.grad, dl.value_and_grad])
def test_code_that_draws_is_another_function_unless_it_sets_the_seed(transform):
    with pytest.raises(GraphMismatchError, match="draws random numbers from Python's random"):
        transform(drawing, verify=True)(np.ones(2))
    transform(seeded, verify=True)(np.ones(2))


@pytest.mark.parametrize("code", [drawing, seeded])
@pytest.mark.parametrize("transform", [dl.jit, lambda code, verify: dl.trace(code, np.ones(2))])
def test_draws_that_later_calls_would_repeat_are_refused_first(transform, code):
    random.seed(1)
    with pytest.raises(TraceError, match="traced code drew random numbers from Python's random"):
        transform(code, verify=True)(np.ones(2))


def test_output_appears_once(capsys):
    def printing(x):
        print("once")
        return x * x

    dl.trace(printing, 2.0, verify=True)
    assert capsys.readouterr().out == "once\n"


def test_arguments_of_the_caller_stay(monkeypatch):
    def writing(x):
        if isinstance(x, np.ndarray):
            x[0] = 9.0
        return np.sum(x)

    x = np.ones(2)
    with pytest.raises(GraphMismatchError):
        dl.trace(writing, x, verify=True)
    assert x.tolist() == [1.0, 1.0]


def test_a_run_is_stopped_at_the_time_limit():
    began = time.perf_counter()

    def stubborn():
        with limited(0.05):
            while True:
                with contextlib.suppress(Exception):
                    time.sleep(600)

    with pytest.raises(MethodTimeout, match=r"takes longer than 0\.05 s"):
        stubborn()
    assert time.perf_counter() - began < 300


def test_the_bound_follows_the_conditioning():
    f, x = dl.parse("(1e8 + x) - 1e8"), np.array([0.3])
    ours = f.values(x)
    spacing = np.spacing(1e8)
    assert agreeing(f, x, ours, ours + spacing).all()
    assert not agreeing(f, x, ours, ours + 1e4 * spacing).any()
    plain = dl.parse("x + 1")
    assert not agreeing(plain, x, plain.values(x), plain.values(x) + 1e-12).any()
