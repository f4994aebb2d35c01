"""The target `exact` and the method `exact`: shapes, batches, refusals, missing FLINT."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.autodiff import jacobian
from difflab.errors import UnsupportedError
from difflab.graph.interpreters import MpmathInterpreter
from tests.primitives.test_arrays import CASES, VALUES_ONLY, point_of
from tests.primitives.test_arrays import function_of as array_function
from tests.primitives.test_table import SAMPLED, function_of, points_of
from tests.support.rows import for_each

TEXT = "ln(x1) + x1*x2 - sin(x2)"


def test_batches_and_points_have_the_shapes_of_the_function() -> None:
    f = dl.value_and_gradient(dl.parse(TEXT))
    fast = dl.compile(f, target="exact")
    assert fast.reason == "exact: as requested"
    value, slope = fast(2.0, 5.0)
    assert type(value) is float
    assert slope.shape == (2,)
    values, slopes = fast(np.array([[2.0, 3.0, 4.0]]), 5.0)
    assert values.shape == (1, 3)
    assert slopes.shape == (1, 3, 2)
    assert (values[0, 0], slopes[0, 0].tolist()) == (value, slope.tolist())
    packed = dl.compile(dl.gradient(dl.parse(TEXT)), target="exact", packed=True)
    assert packed([2.0, 5.0]).tolist() == slope.tolist()
    assert packed(np.array([[2.0, 5.0], [3.0, 5.0]])).shape == (2, 2)
    again = pickle.loads(pickle.dumps(packed))
    assert again([2.0, 5.0]).tolist() == slope.tolist()


def test_every_result_of_a_batch_is_correctly_rounded() -> None:
    f = dl.gradient(dl.parse("x^3*tanh(x*y) - log1p(x)/(y - 0.3)"))
    points = np.random.default_rng(4).uniform(0.5, 3.0, (2, 200))
    found = dl.compile(f, target="exact")(*points)
    with mpmath.workdps(60):
        for x, y, row in zip(*points, found, strict=True):
            values = [mpmath.mpf(float(x)), mpmath.mpf(float(y))]
            truth = np.ravel(dl.evaluate(f, values, MpmathInterpreter())[0])
            for number, exact in zip(row, truth, strict=True):
                half = mpmath.mpf(float(np.spacing(abs(number)))) / 2
                assert abs(mpmath.mpf(np.ravel(exact)[0]) - number) <= half


def test_arrays_truth_values_and_conventions_at_kinks() -> None:
    f = dl.parse("x: [3]; [x/norm(x), prod(x)*x]")
    fast = dl.compile(f, target="exact")
    found = fast(np.array([[3.0, 4.0, 0.0], [1.0, 2.0, 2.0]]))
    np.testing.assert_array_equal(found, f(np.array([[3.0, 4.0, 0.0], [1.0, 2.0, 2.0]])))
    assert dl.compile(dl.parse("x < 2"), target="exact")(1.0) is True
    kink = dl.gradient(dl.parse("abs(x) + max(x, 2*x) + hypot(x, 0*x)"))
    assert dl.compile(kink, target="exact")(0.0).tolist() == kink(0.0).tolist()


DERIVED = [*SAMPLED, *(name for name in CASES if name not in VALUES_ONLY)]


@for_each("name", DERIVED)
def test_derivative_graphs_of_every_row_agree_with_float64(name: str) -> None:
    """A companion row that ball arithmetic computes wrongly would differ from its kernel."""
    if name in SAMPLED:
        function, points = function_of(SAMPLED[name]), list(points_of(SAMPLED[name], 2))
    else:
        function, points = array_function(name, 0), [point_of(name, 0)]
    for mode in ("forward", "reverse"):
        slope = jacobian(function, mode)
        graphs = [slope, jacobian(slope, mode)] if name in SAMPLED else [slope]
        for graph in graphs:
            fast = dl.compile(graph, target="exact", packed=True)
            for x in points:
                expected = graph.values(x)
                scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
                np.testing.assert_allclose(fast(x).ravel(), expected, rtol=0, atol=1e-12 * scale)


def test_loops_and_their_derivatives() -> None:
    f = dl.trace(lambda x: dl.scan(lambda c, v: (c * v + 0.1, c + v), 1.0, x)[0], np.ones(4))
    x = np.array([1.5, 0.2, -0.7, 2.0])
    slope = dl.gradient(f)
    np.testing.assert_allclose(dl.compile(slope, target="exact")(x), slope(x), rtol=1e-14)


def test_the_method_is_judged_like_the_others_and_refuses_a_kink() -> None:
    found = dl.compare(TEXT, {"x1": 2, "x2": 5}, methods=["exact", "reverse"], timing=False)
    row = found.comparison.methods[0] if hasattr(found, "comparison") else found.methods[0]
    assert (row.name, row.verdict) == ("exact", "agree")
    assert row.max_ulp_error <= 0.5
    assert row.jacobian.tolist() == [[5.5, 1.7163378145367738]]
    second = dl.compare("x^2*y", {"x": 3, "y": 5}, methods=["exact"], order=2, timing=False)
    assert second.methods[0].jacobian.tolist() == [[10.0, 6.0], [6.0, 0.0]]
    kink = dl.compare("2 + abs(x)", {"x": 0}, methods=["exact"], timing=False).methods[0]
    assert kink.status == "unsupported"
    assert "kink: abs has a kink at 0; its argument is 0 (column 5)" in kink.message
    assert "exact" not in [row.name for row in dl.compare("x", {"x": 1}, timing=False).methods]


def test_python_code_without_a_graph_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"dl\.trace"):
        dl.differentiate(lambda x: x * x, 1.0, method="exact")


def test_without_flint_the_target_and_the_method_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("difflab.balls")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "difflab.execute.targets.exact", raising=False)
    monkeypatch.delitem(sys.modules, "difflab.execute.targets.exact.target", raising=False)
    monkeypatch.setitem(sys.modules, "flint", None)
    command = "pip install python-flint"
    with pytest.raises(UnsupportedError, match=command):
        dl.compile(dl.parse("x^2"), target="exact")
    row = dl.compare("x^2", {"x": 1}, methods=["exact", "reverse"], timing=False).methods
    assert (row[0].status, row[1].status) == ("unsupported", "ok")
    assert command in row[0].message
