"""Evaluation traces against the published tables, against the engine, and as text."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.primitive import elementwise
from difflab.errors import DomainError, InputError, PointError
from difflab.primitives import sin
from difflab.report.trace.steps import Adjoint, EvaluationTrace
from difflab.report.trace.text import table, view
from difflab.report.trace.trace import trace

SEED = "ln(x1) + x1*x2 - sin(x2)"
AT = {"x1": 2, "x2": 5}


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("reference")("baydin")["tables2_3"]


@pytest.fixture
def seed() -> EvaluationTrace:
    return trace(dl.parse(SEED), AT)


def close(value: float, published: str) -> bool:
    """Compare with a value of 40 digits: both are rounded to the same few doubles."""
    return math.isclose(value, float(published), rel_tol=4e-16, abs_tol=0.0)


def test_table_2_the_forward_trace(seed: EvaluationTrace, tables: Any) -> None:
    rows = tables["forward_trace_seed_x1"]
    assert seed.tangents is not None
    assert seed.seed == "x1"
    assert [row.name for row in seed.primal] == [row["v"].partition("=")[0] for row in rows]
    for step, tangent, row in zip(seed.primal, seed.tangents, rows, strict=True):
        assert close(step.value, row["value"]), row
        assert close(tangent.value, row["tangent"]), row
    assert [step.formula for step in seed.primal][2:] == [
        "ln v₋₁", "v₋₁ × v₀", "sin v₀", "v₁ + v₂", "v₄ − v₃",
    ]  # fmt: skip
    assert [step.formula for step in seed.tangents] == [
        "ẋ1", "ẋ2", "v̇₋₁ / v₋₁", "v̇₋₁ × v₀ + v̇₀ × v₋₁", "v̇₀ × cos v₀", "v̇₁ + v̇₂", "v̇₄ − v̇₃",
    ]  # fmt: skip
    assert [step.numbers for step in seed.tangents][2:5] == ["1 / 2", "1 × 5 + 0 × 2", "0 × cos 5"]


def test_table_3_the_reverse_trace(seed: EvaluationTrace, tables: Any) -> None:
    assert seed.adjoints is not None
    rows = list(seed.adjoints)
    # In the paper's own order, which the reference lists adjoint by adjoint.
    assert [(row.name, row.accumulates) for row in rows] == [
        ("v5_bar", False),
        ("v4_bar", False),
        ("v3_bar", False),
        ("v1_bar", False),
        ("v2_bar", False),
        ("v0_bar", False),
        ("v-1_bar", False),
        ("v0_bar", True),
        ("v-1_bar", True),
    ]
    assert [row.formula for row in rows] == [
        "ȳ", "v̄₅ × 1", "v̄₅ × (−1)", "v̄₄ × 1", "v̄₄ × 1", "v̄₃ × cos v₀", "v̄₂ × v₀", "v̄₂ × v₋₁",
        "v̄₁ / v₋₁",
    ]  # fmt: skip
    assert rows[5].partial == "v̄₃ ∂v₃/∂v₀"
    published = [
        (row["step"].partition("bar")[0] + "_bar", "+=" in row["step"], row["value"])
        for row in tables["reverse_trace"]
    ]
    found = {(row.name, row.accumulates): row.value for row in rows}
    assert len(found) == len(published)
    for name, accumulates, value in published:
        assert close(found[name, accumulates], value), name


def test_the_published_rounded_values(seed: EvaluationTrace, tables: Any) -> None:
    rounded = tables["published_rounded"]
    values = {step.name: step.value for step in seed.primal}
    for name in ("v1", "v3", "v4"):
        assert f"{values[name]:.3f}" == rounded[name]
    assert f"{dict(seed.outputs)['y']:.3f}" == rounded["y"]
    gradient = dict(seed.gradient)
    assert f"{gradient['x1']:.1f}" == rounded["dy_dx1"]
    assert f"{gradient['x2']:.3f}" == rounded["dy_dx2"]
    assert seed.adjoints is not None
    first = next(row for row in seed.adjoints if row.name == "v0_bar")
    assert f"{first.value:.3f}" == rounded["v0bar_first"]
    for name in ("x1", "x2"):
        assert close(gradient[name], tables["grad"][name])


CASES = {
    "seed": (SEED, AT),
    "square": ("x*x*x", {"x": 3}),
    "powers": ("x^3 + x^2.5 + y^x + 2^y", {"x": 1.5, "y": 0.7}),
    "special": ("gamma(x)*erf(y) + loggamma(x)/digamma(y) + softplus(x - y)", {"x": 2, "y": 3}),
    "roots": ("sqrt(x)/cbrt(y) + hypot(x, y) - atan2(x, y) + log1p(x)", {"x": 2, "y": 3}),
    "untaken": ("where(x > 0, sqrt(x), 0)*y + y", {"x": 0, "y": 3}),
    "nested": ("where(x > 0, where(y > 0, sqrt(x*y), ln(x)), x^2)", {"x": 0, "y": 0}),
    "ties": ("max(x, y)*min(x, y) + relu(x - y) + abs(x) + clip(x, 0, 1)", {"x": 1, "y": 1}),
    "logic": ("where((x > 1) + (y > 1) > 0.5, x*y, x/y)", {"x": 1, "y": 2}),
    "steps": ("floor(x)*y + mod(x, y) + sign(x)*x", {"x": 2.3, "y": 1.1}),
    "unused": ("x: []\ny: []\nx^2", {"x": 2, "y": 1}),
    "arrays": ("x: [4]\nx[0]*x[3] + x[1]^2/x[2]", {"x": [1, 2, 3, 4]}),
    "matrices": ("A: [2, 2]\ndet(A)", {"A": [[1, 2], [2, 4]]}),
    "repeated": ("x: [3]\nx[0]*x[0] + x[0]*sin(x[1])", {"x": [1, 2, 3]}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_trace_ends_in_the_engines_derivative(case: str) -> None:
    text, point = CASES[case]
    function = dl.parse(text)
    expected = dl.gradient(function)(**point)
    steps = trace(function, point)
    found = np.concatenate([np.ravel(value) for _, value in steps.gradient])
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)
    pushed = dl.gradient(function, mode="forward")(**point)
    index = 0
    for name, shape in zip(function.inputs, function.input_shapes, strict=True):
        for key in np.ndindex(shape):
            place = name + (f"[{','.join(map(str, key))}]" if key else "")
            ahead = trace(function, point, mode="forward", seed=place)
            np.testing.assert_allclose(ahead.directional[0][1], pushed[index], rtol=1e-15, atol=0)
            index += 1


@pytest.mark.parametrize("case", CASES)
def test_adjoints_are_running_sums(case: str) -> None:
    text, point = CASES[case]
    adjoints = trace(dl.parse(text), point, mode="reverse").adjoints
    assert adjoints is not None
    totals: dict[str, Any] = {}
    for row in adjoints:
        assert row.accumulates == (row.name in totals)
        totals[row.name] = totals.get(row.name, 0.0) + row.contribution
        np.testing.assert_array_equal(row.value, totals[row.name])


def test_each_output_has_its_own_reverse_trace() -> None:
    function = dl.parse("a = x*y; b = sin(x); [a, b]")
    jacobian = dl.jacobian(function)(2.0, 3.0)
    for row in range(2):
        name = function.output_names[0]
        seed = f"{name}[{row}]" if len(function.outputs) == 1 else function.output_names[row]
        steps = trace(function, {"x": 2, "y": 3}, mode="reverse", seed=seed)
        np.testing.assert_allclose([v for _, v in steps.gradient], jacobian[row], rtol=1e-15)


def test_a_branch_that_is_not_taken_says_so() -> None:
    steps = trace(dl.parse("where(x > 0, sqrt(x), x)"), {"x": 0}, mode="reverse")
    rows: list[Adjoint] = [row for row in steps.adjoints or () if row.mask is not None]
    assert [row.mask for row in rows] == [False, True, False]
    assert rows[0].contribution == 0
    assert "(not taken)" in table(steps)
    assert dict(steps.gradient) == {"x": 1.0}


def test_rule_and_number_come_from_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = elementwise(lambda t, y, x: t * (x * 7))
    original = sin.rule
    object.__setattr__(sin, "rule", wrong)
    try:
        steps = trace(dl.parse("sin(x)"), {"x": 2})
    finally:
        object.__setattr__(sin, "rule", original)
    assert dict(steps.gradient) == {"x": 14.0}
    assert steps.adjoints is not None
    assert steps.adjoints.head[1].formula in ("v̄₁ × (v₀ × 7)", "v̄₁ × v₀ × 7")
    assert dict(trace(dl.parse("sin(x)"), {"x": 2}).gradient) == {"x": math.cos(2.0)}


def test_two_arguments_that_are_the_same_node_give_two_contributions() -> None:
    rows = list(trace(dl.parse("x*x"), {"x": 3}, mode="reverse").adjoints or ())
    assert [row.partial for row in rows[1:]] == [
        "v̄₁ ∂v₁/∂v₀ (argument 1)",
        "v̄₁ ∂v₁/∂v₀ (argument 2)",
    ]
    assert [row.value for row in rows[1:]] == [3.0, 6.0]


def long_chain(length: int) -> dl.Function:
    return dl.parse("sin(" * length + "x" + ")" * length)


def test_a_long_trace_is_cut_and_says_how_much() -> None:
    steps = trace(long_chain(10_000), {"x": 1}, limit=30)
    assert len(steps.primal) == 30
    assert steps.primal.skipped == 10_001 - 30
    assert steps.adjoints is not None
    assert steps.adjoints.skipped == 10_001 - 30
    assert [step.name for step in steps.primal][-1] == "v10000"
    text = table(steps)
    assert text.count("… 9,971 more steps") == 2
    assert text.count("use --format json for all") == 2
    whole = trace(long_chain(200), {"x": 1}, limit=None)
    assert len(json.loads(whole.to_json())["reverse"]["adjoints"]) == 201


def test_json_is_strict_and_complete() -> None:
    steps = trace(dl.parse("where(x > 0, sqrt(x), 0)*y"), {"x": 0, "y": 2}, limit=None)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    record = json.loads(steps.to_json(), parse_constant=refuse)
    assert record["schema"] == "difflab.trace/1"
    assert record["point"] == {"x": 0.0, "y": 2.0}
    assert "inf" in [step["value"] for step in record["forward"]["tangents"]]
    assert record["reverse"]["gradient"] == {"x": 0.0, "y": 0.0}
    assert False in [row["mask"] for row in record["reverse"]["adjoints"]]


@pytest.mark.parametrize("case", CASES)
def test_tables_fit_eighty_columns(case: str) -> None:
    from rich.cells import cell_len

    text, point = CASES[case]
    shown = table(trace(dl.parse(text), point))
    assert max(cell_len(line) for line in shown.splitlines()) <= 80


def test_the_table_shows_the_answer_in_full(seed: EvaluationTrace) -> None:
    shown = table(seed)
    assert "∂y/∂x1 = 5.5\n" in shown
    assert "∂y/∂x2 = 1.7163378145367738\n" in shown
    assert "y      = 11.652071455223084\n" in shown
    assert "v̄₀ = v̄₀ + v̄₂ ∂v₂/∂v₀" in shown
    assert "ln 2" not in shown
    assert "v₁ = ln v₋₁ = ln 2" in table(seed, width=120)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)


def test_hostile_text_stays_text() -> None:
    text = "# <script>alert(1)</script> | `x` \x9b2J\nx^2"
    try:
        function = dl.parse(text)
    except InputError:
        function = dl.parse("# <script>alert(1)</script> | `x`\nx^2")
    steps = trace(function, {"x": 3})
    tags = _Tags()
    tags.feed(view(steps).page())
    assert "script" not in tags.tags
    for written in (table(steps), view(steps).markdown(), steps.to_json(), view(steps).page()):
        assert not any(0x7F <= ord(c) <= 0x9F or (ord(c) < 32 and c != "\n") for c in written)


def test_markdown_has_as_many_cells_in_every_row() -> None:
    steps = trace(dl.parse("abs(x) + where(x > 0 , x, 1)"), {"x": 3})
    for line in view(steps).markdown().splitlines():
        if line.startswith("|"):
            assert line.replace("\\|", "").count("|") == 5, line


def test_faults_of_the_input_are_named() -> None:
    function = dl.parse(SEED)
    with pytest.raises(InputError, match=r"no input or output 'x3'") as fault:
        trace(function, AT, seed="x3")
    assert "x1" in (fault.value.hint or "")
    with pytest.raises(InputError, match="no output 'x1'"):
        trace(function, AT, mode="reverse", seed="x1")
    with pytest.raises(InputError, match="unknown mode"):
        trace(function, AT, mode="sideways")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(DomainError, match="log"):
        trace(function, {"x1": -1, "x2": 5})
    with pytest.raises(PointError, match="no value is given for the input x2"):
        trace(function, {"x1": 1})
    with pytest.raises(PointError, match="shape"):
        trace(function, {"x1": [1, 2], "x2": 5})
    with pytest.raises(InputError, match="no input"):
        trace(dl.parse("x: [3]\nx[0]"), {"x": [1, 2, 3]}, mode="forward", seed="x[3]")


def test_derivatives_that_are_exactly_zero_are_explained() -> None:
    flat = trace(dl.parse("relu(x) + y^2"), {"x": -2.0, "y": 3.0})
    assert flat.notes == ("x: gradient exactly 0, blocked by relu(-2) at column 1: -2 ≤ 0",)
    assert flat.to_dict()["notes"] == list(flat.notes)
    for form in (table, lambda steps: view(steps).markdown(), lambda steps: view(steps).page()):
        assert "blocked by" in form(flat)
    unused = trace(dl.parse("x: []; y: []; y^2"), {"x": 1.0, "y": 3.0})
    assert unused.notes == ("x: no path to the output",)
    slopes = trace(dl.parse("x*y"), {"x": 1.0, "y": 3.0})
    assert slopes.notes == ()
    assert "notes" not in slopes.to_dict()
    assert trace(dl.parse("relu(x)"), {"x": -2.0}, mode="forward").notes == ()
    terms = [f"sin({k}*x)" for k in range(500)]
    long = trace(dl.parse("+".join(["relu(z)", *terms])), {"x": 0.0, "z": -1.0})
    assert dict(long.gradient)["z"] == 0
    assert long.notes == ()


@pytest.mark.parametrize("code", ["sqrt(x)*0", "0*sqrt(sqrt(x)*0)", "x: [2]; sum(sqrt(x)*0)"])
def test_a_derivative_known_to_be_zero_ends_the_sweep_as_in_the_engine(code: str) -> None:
    function = dl.parse(code)
    shape = function.input_shapes[0]
    shown = trace(function, {"x": np.zeros(shape)})
    exact = np.zeros(shape)
    assert np.array_equal(dl.gradient(function)(np.zeros(shape)).reshape(shape), exact)
    assert np.array_equal(dict(shown.gradient)["x"], exact)
    assert dict(shown.directional) == {"y": 0.0}


def turns_of_newton(a: float) -> int:
    x, turns = a, 0
    while x * x > a:
        x, turns = (x + a / x) / 2, turns + 1
    return turns


@pytest.mark.parametrize("a", [0.0, 2.0, 1e4])
def test_a_loop_is_one_step_with_its_turns(a: float) -> None:
    root = dl.trace(lambda a: dl.while_loop(lambda x: x * x > a, lambda x: (x + a / x) / 2, a), 2.0)
    (step,) = [step for step in trace(root, {"a": a}).primal if "while_loop" in step.formula]
    assert step.formula.endswith(f"  ({turns_of_newton(a)} turns)")
    gradient = dl.gradient(root)
    (back,) = [s for s in trace(gradient, {"a": a}).primal if "while_loop_vjp" in s.formula]
    assert back.formula.endswith(f"  ({turns_of_newton(a)} turns)")


def test_a_scan_and_a_branch_are_stepped() -> None:
    powers = dl.trace(lambda x: dl.fori_loop(0, 4, lambda i, y: y * x, 1.0), 2.0)
    steps = trace(powers, {"x": 3.0})
    assert any(step.formula == "scan(0, 1, v₀)  (4 turns)" for step in steps.primal)
    assert dict(steps.outputs)["y"] == 81.0
    assert dict(steps.gradient)["x"] == 4 * 27.0
    root = dl.trace(lambda x: dl.cond(x > 0, np.sqrt, lambda x: 0 * x, x), 1.0)
    for x, branch in ((4.0, "true"), (-4.0, "false")):
        formulas = [step.formula for step in trace(root, {"x": x}).primal]
        assert any(formula.endswith(f"  ({branch})") for formula in formulas)
