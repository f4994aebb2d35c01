"""The computation of the page, run in Node.js, against difflab's derivatives in Python."""

import json
import math
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.explore.content import content
from difflab.graph.function import Function
from difflab.language import parse
from tests.language.printers.test_code import point_of
from tests.language.printers.test_javascript import formulas
from tests.support.node import NODE, needs_node

PAGE = files("difflab.explore") / "assets"
PROGRAMS = [
    "ln(x1) + x1*x2 - sin(x2)",
    "a = x*x + y; a*a + sin(a)/a",
    "W: [4, 3]; x: [3]; sum(relu(W @ x)^2)",
    "x: [5]; sum(x[1:]*x[:-1]) + prod(x)",
    "iterate(y = x; 6 times; 3.9*y*(1 - y))",
    "where(x > y, sqrt(x), y^3) + max(x, y) - min(x, 2) + clip(x, 0, 1) + abs(x - y)",
    "x: [3]; layer_norm(x)[0]",
    "x: [5]; [max(x), min(x), norm(x), logsumexp(9*x)]",
    "W: [3, 4]; x: [4]; cross_entropy(W @ x, [1])",
    "x: [4]; softmax(x)*log_softmax(x)",
    "x: [6]; sum(rfft(x)^2)",
    "A: [3, 3]; [det(A), logdet(A @ transpose(A)), sum(cofactor(A)^2)]",
    "A: [2, 2]; b: [2]; sum(inv(A)) + sum(solve(A, b)^2)",
    "gamma(x)*loggamma(x + 1)",
    "digamma(x)*erfinv(x) + lambertw(x)*zeta(3, x) + beta(x, y) + polygamma(2, x)",
    "besselj(1, x)*bessely(0, y) + besseli(2, x)*besselk(0.5, y) + airyai(x)*airybi(y)",
    "[gammainc(2.5, x), betainc(2, 3, x), ndtri(x), erfcinv(x), log_ndtr(x), dawsn(x), erfi(x)]",
    "x: [5]; [sort(x), argsort(x)*x, argmax(x)*x[1]]",
    "A: [3, 3]; [sum(cholesky(A @ transpose(A))^3), qr(A)[2, 1], slogdet(A)[1]]",
    "iterate(y = 9*x; while y > 0.3; y*sin(y)/2)",
]
CALL = """
const program = makeProgram(data), values = evaluate(program, point);
const forward = data.inputs.map((_, seed) => tangents(program, values, seed).dots);
const of = (node) => data.inputs.map((_, k) => cotangents(program, values, node).bars.get(k) ?? 0);
const outputs = data.outputs.map(([, node]) => node);
const paths = pathsBetween(program, values, 0, outputs[0], 1000);
result = {
    values: outputs.map((node) => values[node]), reverse: outputs.map(of),
    forward: outputs.map((node) => forward.map((dots) => dots[node])),
    paths: [paths.total, paths.paths.map(({ product }) => product), paths.nonzero],
    warnings: values.map((_, node) => warnings(program, node, values).map(([short]) => short)),
    events: cotangents(program, values, outputs[0]).events
        .map(({ part, before, total }) => [part, before, total]),
};
"""


def computed(cases: list[tuple[Function, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return what the page computes for functions at points."""
    common = "\n".join(
        (PAGE / name).read_text(encoding="utf-8") for name in ("text.js", "engine.js")
    )
    parts = ["const results = [];"]
    for function, point in cases:
        found = content(function, point)
        values = [value for _, value in found.data["inputs"]]
        body = f"const data = {json.dumps(found.data)}, point = {json.dumps(values)}; let result;"
        parts.append(
            f"(() => {{ {found.script}\n{common}\n{body}\n{CALL}\nresults.push(result); }})();"
        )
    spelled = "(_, x) => typeof x === 'number' && !Number.isFinite(x) ? String(x) : x"
    parts.append(f"console.log(JSON.stringify(results, {spelled}));")
    done = subprocess.run(
        [str(NODE), "-"], input="\n".join(parts), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found_results: list[dict[str, Any]] = json.loads(done.stdout)
    return found_results


def placed(function: Function, packed: Any) -> dict[str, Any]:
    return dict(zip(function.inputs, function.split(np.asarray(packed)), strict=True))


def assert_derivatives(function: Function, packed: Any, found: dict[str, Any]) -> None:
    what = str(function.text)
    values, jacobian = function.values(packed), dl.jacobian(function)
    expected = jacobian.values(packed).reshape(function.m, function.n)
    np.testing.assert_allclose(floats(found["values"]), values, rtol=1e-13, err_msg=what)
    scale = 1e-14 * np.abs(expected).max(initial=1.0)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(
            floats(found[mode]), expected, rtol=1e-12, atol=scale, err_msg=f"{mode} {what}"
        )


def floats(values: Any) -> Any:
    return np.array(values, dtype=object).astype(float)


@needs_node
def test_values_and_both_modes_are_those_of_the_graph_engine() -> None:
    texts = [*PROGRAMS, *[text for text in formulas()[::3] if "gamma" not in text]]
    programs = [parse(text) for text in texts]
    points = [point_of(function) for function in programs]
    cases = [(f, placed(f, point)) for f, point in zip(programs, points, strict=True)]
    for function, point, found in zip(programs, points, computed(cases), strict=True):
        assert_derivatives(function, point, found)


@needs_node
def test_the_sum_over_paths_is_the_derivative() -> None:
    """Of x·x·x·x by squares there are four paths, each with the slope x³."""
    functions = [parse("a = x*x; a*a"), parse("ln(x1) + x1*x2 - sin(x2)")]
    fourth, baydin = computed([(functions[0], {"x": 3.0}), (functions[1], {"x1": 2.0, "x2": 5.0})])
    assert fourth["paths"] == [4, [27.0] * 4, 4]
    assert sorted(baydin["paths"][1]) == [0.5, 5.0]


@needs_node
def test_paths_with_a_slope_of_zero_are_counted_only() -> None:
    """Of the paths of y·y + y·x with y = where(x > 0, x², √x), those by √x are not taken."""
    texts = ["y = where(x > 0, x^2, sqrt(x)); y*y + y*x", "relu(x)*x + sqrt(x)"]
    two = computed([(parse(texts[0]), {"x": 3.0}), (parse(texts[1]), {"x": -1.0})])
    assert two[0]["paths"] == [7, [54.0, 54.0, 18.0, 9.0], 4]
    assert two[1]["paths"][::2] == [3, 1]
    assert math.isnan(float(two[1]["paths"][1][0]))  # undefined is not zero


@needs_node
def test_contributions_add_up_at_fan_out() -> None:
    """Table 3 of Baydin et al. (2018): v̄₋₁ = 5, then 5 + 1/2; v̄₀ = -cos 5, then 2 more."""
    (found,) = computed([(parse("ln(x1) + x1*x2 - sin(x2)"), {"x1": 2.0, "x2": 5.0})])
    added = [event for event in found["events"] if event[1] is not None]
    assert sorted(event[2] for event in added) == pytest.approx([2 - math.cos(5.0), 5.5])
    assert all(before + part == total for part, before, total in added)


@needs_node
def test_branches_that_are_not_taken_add_exactly_zero() -> None:
    (found,) = computed([(parse("where(x > 0, sqrt(x), 0)"), {"x": 0.0})])
    assert found["reverse"] == [[0]]
    assert found["forward"] == [[0]]


@needs_node
def test_kinks_cancellations_and_poles_are_noticed() -> None:
    programs = [("abs(x)", 0.0), ("(x + 1e9) - 1e9", 1.5), ("(x + 1) - 1", 1e-20), ("1/x", 0.0)]
    found = computed([(parse(text), {"x": x}) for text, x in programs])
    said = [[short for each in one["warnings"] for short in each] for one in found]
    assert said == [["kink"], ["−8 digits"], ["all digits"], ["∞"]]
