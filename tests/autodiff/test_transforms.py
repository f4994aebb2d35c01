"""Gradients, Jacobians, Hessians and products against algebra; counts; scale."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import difflab as dl
from difflab.autodiff.engine import forward, reverse
from difflab.errors import InputError
from difflab.graph import ir
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Graph
from difflab.primitives import add, multiply, sin
from tests.support.lines import lines_run
from tests.support.rows import for_each

MODES = ("forward", "reverse")


@pytest.mark.parametrize("mode", MODES)
def test_the_seed_expression(mode: str) -> None:
    gradient = dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"), mode)(2.0, 5.0)
    # Baydin et al. (2018), Tables 2 and 3: 1/x1 + x2 and x1 - cos(x2)
    assert gradient[0] == 5.5
    assert gradient[1] == pytest.approx(1.7163378145367738, rel=2.5e-16)


@pytest.mark.parametrize("mode", [*MODES, "auto"])
def test_jacobian_of_several_outputs(mode: str) -> None:
    f = dl.parse("x: [2]; a: []\n[a*x, x[0]*x[1], 3]")
    a, x = 2.0, np.array([5.0, 7.0])
    expected = [[5, 2, 0], [7, 0, 2], [0, 7, 5], [0, 0, 0]]
    assert dl.jacobian(f, mode)(a, x).tolist() == expected
    batch = dl.jacobian(f, mode)(np.full(3, a), np.tile(x, (3, 1)))
    assert batch.tolist() == [expected] * 3


def test_second_derivatives() -> None:
    f = dl.parse("x^3*y + exp(x*y)")
    x, y = 0.7, -1.2
    e = np.exp(x * y)
    expected = [[6 * x * y + y * y * e, 3 * x * x + e + x * y * e]]
    expected += [[expected[0][1], x * x * e]]
    assert np.allclose(dl.hessian(f)(x, y), expected, rtol=1e-14)
    direction = np.array([0.3, -2.0])
    assert np.allclose(dl.hvp(f)(x, y, *direction), expected @ direction, rtol=1e-13)
    both = dl.jacobian(dl.gradient(f), "reverse")
    assert np.allclose(both(x, y), expected, rtol=1e-14)


def test_products_are_dual() -> None:
    f = dl.parse("x: [3]; s: []\n[s*sin(x), x[0]*x[2]/s]")
    rng = np.random.default_rng(1)
    s, x, s_dot, x_dot, bar = 1.7, *(rng.normal(size=k) for k in (3, 1, 3, 4))
    pushed = dl.jvp(f)(s, x, s_dot[0], x_dot)
    pulled = dl.vjp(f)(s, x, bar[:3], bar[3])
    forward = bar[:3] @ pushed[2] + bar[3] * pushed[3]
    reverse = pulled[2] * s_dot[0] + pulled[3] @ x_dot
    assert forward == pytest.approx(reverse, rel=1e-13)


def test_value_and_gradient_share_their_computation() -> None:
    f = dl.parse("*".join(f"x{i}" for i in range(1, 41)))
    alone, both = dl.count(dl.gradient(f)), dl.count(dl.value_and_gradient(f))
    assert alone.operations == 114  # 3n - 6
    assert both.operations == 115


@pytest.mark.parametrize("mode", MODES)
@for_each(
    ("text", "x", "expected"),
    [
        ("where(x > 0, sqrt(x), 0)", 0.0, 0.0),
        ("where(x > 0, log(x), 0)", -1.0, 0.0),
        ("where(x != 0, sin(x)/x, 1)", 0.0, 0.0),
        ("max(sqrt(x), 1) + relu(log(x))", 0.0, 0.0),
        ("asin(max(acos(x), 1))", 0.9, 0.0),
        ("sqrt(relu(x))*where(x > 0, x, 2) + x", -1.0, 1.0),
        ("x: [2]\nsum(sqrt(relu(x)))", [-1.0, 4.0], [0.0, 0.25]),
        ("clip(sqrt(x) - 2, -1, 1)", 0.0, 0.0),
        ("where(x > 0, where(x > 1, log(x - 1), sqrt(x)), 2*x)", 0.0, 2.0),
        ("where(x > 0, where(x > 1, log(x - 1), x^2), 2*x)", 1.0, 2.0),
        ("s = sqrt(x); where(x > 0, s, 0) + where(x > 1, s, 0)", 0.0, 0.0),
        ("s = sqrt(x); where(x > 0, s, 0) + where(x > 1, s, 3*x)", 0.0, 3.0),
        ("x: [2]\nwhere(x[0] > 0, sum(sqrt(x)), x[1])", [0.0, 1.0], [0.0, 1.0]),
        ("x: [2]\nsum(where(x > 0, sqrt(x), x))", [0.0, 4.0], [1.0, 0.25]),
    ],
)
def test_untaken_branches_contribute_exactly_zero(
    mode: str, text: str, x: object, expected: object
) -> None:
    found = dl.gradient(dl.parse(text), mode)(x)
    assert found.tolist() == np.atleast_1d(expected).tolist()
    second = dl.jacobian(dl.gradient(dl.parse(text), mode))(x)
    assert np.isfinite(second).all()


@pytest.mark.parametrize("mode", MODES)
def test_masks_end_where_numbers_are_mixed(mode: str) -> None:
    f = dl.parse("x: []; y: [4]\nsum(where(y > 0, x*y, 3))")
    y = np.array([2.0, -1.0, 5.0, -7.0])
    assert dl.gradient(f, mode)(x=1.5, y=y).tolist() == [7.0, 1.5, 0.0, 1.5, 0.0]
    g = dl.parse("x: []; y: [2]\nsum(where(y > 0, sqrt(x + y*0), y))")
    assert dl.gradient(g, mode)(x=0.0, y=[-1.0, -2.0]).tolist() == [0.0, 1.0, 1.0]


def test_zero_times_infinity_in_a_taken_branch_is_not_hidden() -> None:
    # d/dx sqrt(x)^2 = 1, but the rules give 0·∞: nan is honest, 0 would be wrong.
    assert np.isnan(dl.gradient(dl.parse("sqrt(x)^2"))(0.0)).all()


def test_auto_takes_the_mode_with_fewer_operations() -> None:
    wide = dl.parse("x: [8]\nsin(x[0]*x[1]*x[2]*x[3]*x[4]*x[5]*x[6]*x[7])")
    tall = dl.parse(
        "t = sin(exp(x)*cos(x) + x)\n[t*2, t*t, t*t*t, exp(t), cos(t), t/3, t + x, sqrt(t)]"
    )
    for f, better in ((wide, "reverse"), (tall, "forward")):
        counts = {mode: dl.count(dl.jacobian(f, mode)).operations for mode in MODES}
        assert dl.count(dl.jacobian(f)).operations == min(counts.values()) == counts[better]
        assert counts["forward"] != counts["reverse"]


def test_errors_say_what_to_use() -> None:
    f = dl.parse("[x, x*x]")
    for transform in (dl.gradient, dl.hessian, dl.value_and_gradient, dl.hvp):
        with pytest.raises(InputError, match="one output number, this one has 2"):
            transform(f)
    with pytest.raises(InputError, match="unknown mode 'sideways'"):
        dl.gradient(dl.parse("x"), "sideways")


def test_names_of_tangents_do_not_collide() -> None:
    assert dl.jvp(dl.parse("x + x_dot")).inputs == ("x", "x_dot", "x_dot_", "x_dot_dot_")


def test_an_input_that_does_not_matter_has_derivative_zero() -> None:
    builder = Builder()
    x, y = builder.input("x"), builder.input("y")
    f = Function.build(builder, [x, y], [builder.emit(sin, (x,))], ["f"])
    assert dl.gradient(f)(0.0, 3.0).tolist() == [1.0, 0.0]
    assert dl.gradient(f, "forward")(np.zeros(2), 3.0).tolist() == [[1.0, 0.0]] * 2


def test_a_deep_chain_is_linear_in_operations() -> None:
    def chain(depth: int) -> int:
        builder = Builder()
        x = node = builder.input("x")
        for _ in range(depth):
            node = builder.emit(multiply, (builder.emit(sin, (node,)), x))
        f = Function.build(builder, [x], [builder.emit(add, (node, x))], ["f"])
        return dl.count(dl.gradient(f)).operations

    short, long = chain(10_000), chain(20_000)
    assert long < 2.001 * short
    assert long <= 4 * 40_001


@pytest.mark.parametrize(
    ("step", "per_step"), [("relu({0})", 3), ("max({0}, y)", 5), ("clip({0}, -1, 2)", 4)]
)
def test_selections_of_selections_need_no_masks_of_masks(step: str, per_step: int) -> None:
    depth = 40
    lines = ["a0 = x + y", *(f"a{i + 1} = {step.format(f'a{i}')}" for i in range(depth))]
    f = dl.parse("\n".join([*lines, f"a{depth}"]))
    assert dl.count(dl.gradient(f)).operations <= per_step * depth + 4
    assert dl.gradient(f)(1.0, 0.5).tolist() == dl.gradient(f, "forward")(1.0, 0.5).tolist()


def test_going_back_through_many_parts_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector of n numbers sends each its part without looking at the others again."""
    looked = 0

    plain = Graph.shape

    def shape(self: Graph, node: int) -> tuple[int, ...]:
        nonlocal looked
        looked += 1
        return plain(self, node)

    monkeypatch.setattr(Graph, "shape", shape)
    counts = []
    for n in (200, 400):
        gradient = dl.gradient(dl.parse(" + ".join(f"x{i}^3" for i in range(n))))
        looked = 0
        pull = dl.vjp(gradient)
        counts.append(looked)
    assert 200 <= counts[1] - counts[0] < 20 * 200
    x, y_bar = np.random.default_rng(0).normal(size=(2, 400))
    np.testing.assert_allclose(pull.values(np.append(x, y_bar))[400:], 6 * x * y_bar, rtol=1e-14)


@pytest.mark.parametrize(("mode", "sweep"), [("forward", forward), ("reverse", reverse)])
def test_a_sweep_visits_only_what_depends_on_its_seed(mode: str, sweep: ModuleType) -> None:
    """Lines are counted, not seconds: a few for each number of the Jacobian, and for each node."""
    n = 80
    f = dl.parse("[" + ", ".join(f"sin(x{i})*exp(cos(x{i}))" for i in range(n)) + "]")
    lines = lines_run(lambda: dl.jacobian(f, mode=mode), [sweep, ir])
    assert lines < 4 * n * n + 50 * len(f.graph)  # all nodes in each sweep: 46 * n * n
