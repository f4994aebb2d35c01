"""Every rule of stabilisation: the danger is real, and what is written is right there.

Truth is mpmath's values of the *plain* program, differentiated by the referee without a rule.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.language.printers import text
from difflab.primitives import add, divide, exp, log, power, subtract
from difflab.referee.referee import Referee
from difflab.referee.ulp import ulp_distance
from difflab.stabilisation.matching import Rule
from difflab.stabilisation.rewriting import stabilised
from difflab.stabilisation.rules import RULES
from tests.support.rows import for_each

ULPS = 4.0
WRONG = 1e4  # ULPs: more than half of the digits that a careful computation keeps, or nan
EVERY = for_each("rule", RULES, ids=lambda rule: rule.plain)


@cache
def plain_of(rule: Rule) -> Function:
    return dl.parse(rule.example)


@cache
def truth(rule: Rule, order: int) -> Any:
    packed = np.concatenate([np.ravel(value) for value in point_of(rule)]).tolist()
    return Referee.of(plain_of(rule), packed, order=order, timeout=60.0).reference()


def point_of(rule: Rule) -> list[Any]:
    return [np.asarray(rule.danger[name], dtype=float) for name in plain_of(rule).inputs]


def worst(found: Any, exact: Any) -> float:
    """Return the largest error in ULPs; infinity for nan."""
    pairs = zip(np.ravel(found), np.ravel(np.asarray(exact, dtype=object)), strict=True)
    errors = [float(ulp_distance(float(value), right)) for value, right in pairs]
    return max(np.inf if np.isnan(error) else error for error in errors)


def errors(function: Function, rule: Rule) -> list[float]:
    """Return the errors of value, forward and reverse gradient, and Hessian."""
    point = point_of(rule)
    first, second = truth(rule, 1), truth(rule, 2)
    return [
        worst(function(*point), first.value),
        worst(dl.jacobian(function, mode="forward")(*point), first.exact),
        worst(dl.jacobian(function, mode="reverse")(*point), first.exact),
        worst(dl.hessian(function)(*point), second.exact),
    ]


@EVERY
def test_plain_form_is_wrong_at_the_point_of_danger(rule: Rule) -> None:
    assert max(errors(plain_of(rule), rule)) > WRONG


@EVERY
def test_value_and_derivatives_survive(rule: Rule) -> None:
    stable, rewrites = stabilised(plain_of(rule))
    assert rewrites[-1].rule is rule
    assert max(errors(stable, rule)) <= ULPS


@for_each(
    ("program", "point"),
    [
        ("log(1 - exp(x))", [-40.0]),
        ("log(1 - exp(x))", [-745.0]),
        ("log(exp(x) - 1)", [1e-9]),
        ("log(exp(a) + exp(b))", [1000.0, 999.0]),
        ("log(exp(a) + exp(b))", [-1000.0, -1003.0]),
        ("log(1 + exp(x))", [-40.0]),
        ("log(1 + exp(x))", [800.0]),
        ("log(cosh(x))", [1e-5]),
        ("log(cosh(x))", [-0.9]),
        ("1/(1 + exp(-x))", [-740.0]),
        ("1/(1 + exp(-x))", [40.0]),
        ("exp(a)/(exp(a) + exp(b))", [900.0, 880.0]),
        ("sqrt(x^2 + y^2)", [1e-200, 1e-201]),
        ("sqrt(x^2 + y^2 + z^2)", [1e200, -1e199, 1e200]),
        ("x/sqrt(x^2 + y^2)", [1e200, 1e180]),
        ("x^2 - y^2", [1e-9, 1.0]),
        ("log(x + sqrt(x^2 + 1))", [1e-9]),
        ("(exp(x) - exp(-x))/(exp(x) + exp(-x))", [1e-9]),
        ("log(exp(a) - exp(b))", [1000.0, 999.9999]),
        ("log(1 - 1/(1 + exp(-x)))", [40.0]),
        ("-log(1/(1 + exp(-x)))", [-800.0]),
        ("sqrt(x^2 + 1) - x", [-1e8]),
        ("sqrt(x^2 + 1) - x", [0.0]),
        ("sqrt(x^2 + 1) - x", [1e200]),
        ("x - sqrt(x^2 - 1)", [-1e8]),
        ("-b + sqrt(b^2 - 4*a*c)", [1.0, 1e9, 1.0]),
        ("-b - sqrt(b^2 - 4*a*c)", [1.0, -1e9, 1.0]),
        ("-b - sqrt(b^2 - 4*a*c)", [1.0, 1e9, 1.0]),
        ("sqrt(q^2 + r) - q", [-3.0, 7.0]),
        ("1/(x + 1) - 1/x", [1e9]),
        ("cos(x + 1e-9) - cos(x)", [2.0]),
        ("tan(x + 1) - tan(x)", [-0.5]),
        ("atan(x + 1) - atan(x)", [1e9]),
        ("atan(x + h) - atan(x)", [-4.0, 3.0]),
        ("cbrt(x + 1) - cbrt(x)", [1e15]),
        ("cbrt(x + 1) - cbrt(x)", [-0.5]),
    ],
)
def test_other_points_of_danger(program: str, point: list[float]) -> None:
    stable, _ = stabilised(dl.parse(program))
    reference = Referee.of(dl.parse(program), point, timeout=60.0).reference()
    assert worst(stable(*point), reference.value) <= ULPS
    for mode in ("forward", "reverse"):
        assert worst(dl.jacobian(stable, mode=mode)(*point), reference.exact) <= ULPS


@EVERY
def test_rewriting_again_changes_nothing(rule: Rule) -> None:
    stable, _ = stabilised(plain_of(rule))
    assert stabilised(stable) == (stable, ())


@EVERY
def test_text_of_the_result_is_a_program(rule: Rule) -> None:
    stable, _ = stabilised(plain_of(rule))
    again = dl.parse(text(stable))
    point = [value / 2 for value in point_of(rule)]
    np.testing.assert_array_equal(again(*point), stable(*point))


@for_each(
    ("program", "expected"),
    [
        # operands in the other order, minus signs, and other spellings
        ("log(x + 1)", "log1p(x)"),
        ("-1 + exp(x)", "expm1(x)"),
        ("-exp(-x) + exp(x)", "2*sinh(x)"),
        ("-cos(x) + 1", "versine(x)"),
        ("exp(x - y) - exp(y - x)", "2*sinh(x - y)"),
        ("exp(-2*x) - exp(2*x)", "2*sinh(-2*x)"),
        ("sqrt(y*y + x^2)", "hypot(y, x)"),
        ("(x^2 + y^2)^0.5", "hypot(x, y)"),
        ("(1 + x)^0.5 - 1", "x/(sqrt(1 + x) + 1)"),
        ("(exp(x) + exp(-x))/(exp(x) - exp(-x))", "(exp(x) + exp(-x))/(2*sinh(x))"),
        ("1/(1 + exp(1 - x))", "sigmoid(x - 1)"),
        ("exp(x)/(exp(x) + 1)", "sigmoid(x)"),
        ("1/(exp(x) + 1)", "sigmoid(-x)"),
        ("K/(1 + exp(-r*(t - t0)))", "K*sigmoid(r*(t - t0))"),
        ("x/(1 + exp(-x))", "x*sigmoid(x)"),
        ("1 - x^2", "square_difference(1, x)"),
        ("x*x - 4", "square_difference(x, 2)"),
        ("sqrt(x^2)", "abs(x)"),
        # any number of terms
        ("sqrt(x^2 + y*y + 4 + z^2)", "t1 = [x, y, 2, z]\nnorm(t1)"),
        ("log(1 + exp(x) + exp(y))", "t1 = [0, x, y]\nlogsumexp(t1)"),
        ("log(y + 1 + x)", "log1p(y + x)"),
        ("log(1 + x - y/2)", "log1p(x - y/2)"),
        ("sqrt(x + 1 + y) - 1", "(x + y)/(sqrt(1 + (x + y)) + 1)"),
        ("exp(x) + y - 1", "y + expm1(x)"),
        ("-1 + y + exp(x)", "y + expm1(x)"),
        ("1 + y - cos(x) + z", "y + versine(x) + z"),
        ("x^2 + z - y^2", "z + square_difference(x, y)"),
        ("exp(y)/(exp(x) + exp(y) + 1)", "t1 = [x, y, 0]\nsoftmax(t1)[1]"),
        # logarithms of products, quotients and powers of exponentials
        ("log(1 + exp(x))", "softplus(x)"),
        ("log(exp(x) + exp(-x))", "logaddexp(x, -x)"),
        ("log(exp(x) - exp(y))", "x + log1mexp(y - x)"),
        ("log(y*exp(x))", "log(y) + x"),
        ("log((1 + y)/exp(x))", "log1p(y) - x"),
        ("log(exp(x)^3/exp(y))", "3*x - y"),
        ("log(2*exp(x) + 3)", "logaddexp(log(2) + x, log(3))"),
        ("-log(sigmoid(x))", "softplus(-x)"),
        ("log(1 - 1/(1 + exp(-x)))", "-softplus(x)"),
        ("log1p(-exp(x))", "log1mexp(x)"),
        # arrays
        ("s: [3]; log(sum(exp(s)))", "s: [3]\nlogsumexp(s)"),
        ("s: [3]; exp(s)/sum(exp(s))", "s: [3]\nsoftmax(s)"),
        ("s: [3]; -log((exp(s)/sum(exp(s)))[1])", "s: [3]\n-log_softmax(s)[1]"),
        ("s: [3]; log(mean(exp(s)))", "s: [3]\nlog(1/3) + logsumexp(s)"),
        ("s: [3]; log(prod(sigmoid(s)))", "s: [3]\nsum(-softplus(-s))"),
        ("v: [3]; sqrt(sum(v^2))", "v: [3]\nnorm(v)"),
        ("v: [3]; sqrt(v @ v)", "v: [3]\nnorm(v)"),
        ("v: [3]; sqrt(sum(v^2) + t^2)", "v: [3]\nhypot(norm(v), t)"),
        (
            "v: [3]; mean(v^2) - mean(v)^2",
            "v: [3]\nsum((v - sum(v)/3)*(v - sum(v)/3))/3",
        ),
        ("v: [3]; 1/(1 + exp(-v))", "v: [3]\nsigmoid(v)"),
    ],
)
def test_other_spellings_of_the_same_mathematics(program: str, expected: str) -> None:
    function = dl.parse(program)
    stable, rewrites = stabilised(function)
    assert text(stable) == expected
    assert rewrites
    point = [np.linspace(0.9, 0.4, 3) if shape else 0.7 for shape in function.input_shapes]
    if program == "log(exp(x) - exp(y))":
        point = [0.9, 0.4]
    np.testing.assert_allclose(stable(*point), function(*point), rtol=4e-15)


@for_each(
    "program",
    [
        "log(2 + x)",
        "log(1*x)",
        "exp(x) - 2",
        "exp(x) - y",
        "2 - cos(x)",
        "cos(x) - cos(y)",
        "sqrt(x^2 - y)",
        "sqrt(x^2 + y)",
        "sqrt(x^3 + y^2)",
        "sqrt(x^2 + 3)",
        "x^2 + y^2",
        "x^2 - 3",
        "x^3 - y^3",
        "exp(x) - exp(-y)",
        "sqrt(2 + x) - 1",
        "sqrt(x^2 + y) - z",
        "sqrt(x^3 + y) - x",
        "1/(x + 1) - 2/x",
        "cos(x + h) - sin(x)",
        "tan(x + h) - tan(y)",
        "exp(x) - -(1)",
        "exp(x*y) - exp(z*w)",
        "sqrt(x*y + z^2)",
        "x*y - z^2",
        "exp(x - y) - exp(x - z)",
        "log(-2 + exp(x))",
        "log((y*exp(x))^2)",
        "log(sqrt(y*exp(x)))",
        "v: [3]; sum(v^2)/2 - (sum(v)/2)^2",
        "v: [3]; w: [3]; mean(v^2) - mean(w)^2",
        "v: [3]; mean(v^2) - mean(v)",
        "1 - x + y - z",
        "log(2 + x + y)",
        "exp(x) + y - 2",
        "exp(x) + cos(y) + 1",
        "exp(x) - y + 1",
        "sqrt(1 + x) - 2",
        "sqrt(1 + x) + 1",
        "x/(2 - exp(x))",
        "exp(x)/(y + exp(x))",
        "log(exp(x) + y)",
        "log(x + y)",
        "log(sin(x))",
        "1 - sin(x)^3",
        "sinh(x)/cosh(y)",
        "x/sqrt(y^3 + z)",
        "log(1 + 2) + exp(1) - 1 + sqrt(4 + 9) + x",
    ],
)
def test_near_misses_stay_as_they_are(program: str) -> None:
    function = dl.parse(program)
    assert stabilised(function) == (function, ())


def test_a_root_of_a_difference_of_squares_is_no_hypotenuse() -> None:
    assert text(stabilised(dl.parse("sqrt(x^2 - y^2)"))[0]) == "sqrt(square_difference(x, y))"


def test_softmax_is_found_along_the_axes_of_the_sum_only() -> None:
    def rows(x: Any) -> Any:
        return np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)

    def columns(x: Any) -> Any:
        return np.exp(x) / np.sum(np.exp(x), axis=0)

    def crossed(x: Any) -> Any:
        return np.exp(x) / np.sum(np.exp(x), axis=1)

    square = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0], [0.0, 0.0, 1.0]])
    for code, name in ((rows, "softmax"), (columns, "softmax"), (crossed, "logsumexp")):
        stable, _ = stabilised(dl.trace(code, square))
        assert name in {row.name for row in stable.graph.primitives}
        np.testing.assert_allclose(stable(square), code(square), rtol=1e-14)
    assert "softmax" not in {
        row.name for row in stabilised(dl.trace(crossed, square))[0].graph.primitives
    }


def test_cross_entropy_by_hand_at_logits_of_a_thousand() -> None:
    """-log softmax(s)ₖ: finite, with the gradient softmax(s) - onehot."""

    def loss(s: Any) -> Any:
        e = np.exp(s)
        return -np.log((e / np.sum(e))[1])

    plain = dl.trace(loss, np.zeros(3))
    stable, _ = stabilised(plain)
    logits = np.array([1000.0, -1000.0, 1000.0])
    assert not np.isfinite(plain(logits))
    assert stable(logits) == 2000.0 + np.log(2.0)
    for mode in ("forward", "reverse"):
        np.testing.assert_array_equal(dl.gradient(stable, mode=mode)(logits), [0.5, -1.0, 0.5])
    np.testing.assert_array_equal(
        dl.hessian(stable)(logits), [[0.25, 0, -0.25], [0, 0, 0], [-0.25, 0, 0.25]]
    )


def test_shapes_outputs_and_inputs_are_kept() -> None:
    program = "s: [2, 3]; [1/(1 + exp(-t)) + 0*s, t, log(1 + s), broadcast(exp(t), [3]) - 1]"
    function = dl.parse(program)
    stable, _ = stabilised(function)
    assert (stable.inputs, stable.input_shapes) == (function.inputs, function.input_shapes)
    assert (stable.output_names, stable.output_shapes) == (
        function.output_names,
        function.output_shapes,
    )
    for found, expected in zip(stable(np.eye(2, 3), 0.5), function(np.eye(2, 3), 0.5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_places_are_those_of_the_plain_program() -> None:
    function = dl.parse("a = 1 - cos(x)\na + log(1 + a)")
    stable, rewrites = stabilised(function)
    found = [function.text[slice(*function.graph.span(item.before))] for item in rewrites]
    assert found == ["1 - cos(x)", "log(1 + a)"]
    assert [stable.graph.primitive(item.after).name for item in rewrites] == ["versine", "log1p"]


def test_what_is_refused_stays_and_the_rest_is_rewritten() -> None:
    function = dl.parse("log(1 + x) + (exp(x) - 1)")
    first = stabilised(function)[1][0]
    stable, rewrites = stabilised(function, refused={first.before})
    assert text(stable) == "log(1 + x) + expm1(x)"
    assert [item.rule.plain for item in rewrites] == ["eˣ - 1"]


def chain(terms: int, program: str) -> Function:
    """Return a program of many terms, built without its text."""
    builder = Builder()
    inputs = [builder.input(f"x{k}") for k in range(terms)]
    two, one = builder.constant(2), builder.constant(1)
    total, outputs = None, []
    for node in inputs:
        part = builder.emit(power, (node, two)) if program == "norm" else builder.emit(exp, (node,))
        total = part if total is None else builder.emit(add, (total, part))
        if program == "differences":
            total = builder.emit(subtract, (total, one))
            outputs = [total]
        if program == "prefixes":
            outputs.append(builder.emit(log, (total,)))
        if program == "ratios":
            outputs.append(builder.emit(divide, (one, builder.emit(add, (one, part)))))
    if program == "lse":
        outputs = [builder.emit(log, (total,))]
    if program == "norm":
        outputs = [builder.emit(power, (total, builder.constant(0.5)))]
    names = [f"y{k}" for k in range(len(outputs))]
    return Function.build(builder, inputs, outputs, names)


@pytest.mark.parametrize("program", ["lse", "norm", "prefixes", "ratios", "differences"])
def test_work_grows_with_the_graph_and_no_faster(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def emitted(terms: int) -> int:
        calls = 0
        original = Builder.arguments

        def counted(self: Builder, node: int) -> tuple[int, ...]:
            nonlocal calls
            calls += 1
            return original(self, node)

        function = chain(terms, program)
        with monkeypatch.context() as patch:
            patch.setattr(Builder, "arguments", counted)
            stabilised(function)
        return calls

    assert emitted(2000) <= 2.05 * emitted(1000)


def test_two_hundred_thousand_terms_are_one_logsumexp() -> None:
    stable, rewrites = stabilised(chain(200_000, "lse"))
    assert len(rewrites) == 1
    assert len(stable.graph) == 200_002
