"""Custom functions in graphs and under the transforms of Python functions."""

import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ShapeError, TraceError, UnsupportedError
from difflab.graph.custom.rows import opened
from difflab.testing import GradientMismatch, check_custom_function


class Swish(dl.CustomFunction):
    """x·σ(x), with the derivative by hand."""

    @staticmethod
    def forward(ctx, x):
        s = 1 / (1 + np.exp(-x))
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, y_bar):
        x, s = ctx.saved_tensors
        return y_bar * s * (1 + x * (1 - s))


class Both(Swish):
    """The same with a forward rule."""

    @staticmethod
    def jvp(ctx, x_dot):
        x, s = ctx.saved_tensors
        return x_dot * s * (1 + x * (1 - s))


class Polar(dl.CustomFunction):
    """Two arguments, two outputs of different shapes, a setting, both rules."""

    @staticmethod
    def forward(ctx, r, angle, turns):
        ctx.turns = turns
        x, y = r * np.cos(turns * angle), r * np.sin(turns * angle)
        ctx.save_for_backward(x, y, r)
        return x, np.sum(y)

    @staticmethod
    def backward(ctx, x_bar, s_bar):
        x, y, r = ctx.saved_tensors
        return (x_bar * x + s_bar * y) / r, ctx.turns * (s_bar * x - x_bar * y), None

    @staticmethod
    def jvp(ctx, r_dot, angle_dot, turns_dot):
        assert turns_dot is None
        x, y, r = ctx.saved_tensors
        spun = ctx.turns * angle_dot
        return r_dot * x / r - y * spun, np.sum(r_dot * y / r + x * spun)


class Opaque(dl.CustomFunction):
    """Python's own mathematics: nothing of it can be recorded."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return np.array(math.sin(float(x))) * y, y + 0.0

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return math.cos(float(x)) * y * a, math.sin(float(x)) * a + b

    @staticmethod
    def jvp(ctx, x_dot, y_dot):
        x, y = ctx.saved_tensors
        return math.cos(float(x)) * y * x_dot + math.sin(float(x)) * y_dot, y_dot


def swish_derivatives(x, order):
    """Taken by mpmath from values."""
    with mpmath.workdps(50):
        return float(mpmath.diff(lambda t: t / (1 + mpmath.exp(-t)), x, order))


X = np.array([-1.5, 0.0, 0.7, 3.0])


def test_arrays_and_numbers_are_computed():
    assert Swish.apply(2.0) == pytest.approx(2 / (1 + math.exp(-2)), rel=1e-15)
    assert isinstance(Swish.apply(X), np.ndarray)
    x, s = Polar.apply(X, X, 2)
    assert x.shape == (4,)
    assert s == pytest.approx(np.sum(X * np.sin(2 * X)))


def test_a_traced_call_is_one_node_whose_values_are_those_of_forward():
    f = dl.trace(lambda x: Swish.apply(x) + 1, X)
    assert [row.name for row in f.graph.primitives] == ["Swish", "add"]
    assert np.array_equal(f(X), Swish.apply(X) + 1)
    batch = np.stack([X, -X, 2 * X])
    assert np.array_equal(f(batch), Swish.apply(batch) + 1)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_reverse_derivatives_of_any_order(order):
    f = dl.trace(lambda x: Swish.apply(x), 0.0)
    for _ in range(order):
        f = dl.gradient(f)
    for x in X:
        assert float(np.ravel(f(x))[0]) == pytest.approx(swish_derivatives(x, order), rel=1e-13)


def test_every_transform_of_python_functions():
    expected = [swish_derivatives(x, 1) for x in X]
    second = [swish_derivatives(x, 2) for x in X]

    def total(x):
        return np.sum(Both.apply(x))

    assert dl.grad(total)(X) == pytest.approx(expected, rel=1e-14)
    assert np.diag(dl.jacrev(Both.apply)(X)) == pytest.approx(expected, rel=1e-14)
    assert np.diag(dl.jacfwd(Both.apply)(X)) == pytest.approx(expected, rel=1e-14)
    assert np.diag(dl.hessian(total)(X)) == pytest.approx(second, rel=1e-13)
    assert dl.vmap(dl.grad(Both.apply))(X) == pytest.approx(expected, rel=1e-14)
    _, dot = dl.jvp(Both.apply, (X,), (np.ones(4),))
    assert dot == pytest.approx(expected, rel=1e-14)
    _, pull = dl.vjp(Both.apply, X)
    assert pull(np.ones(4))[0] == pytest.approx(expected, rel=1e-14)
    assert dl.hvp(total, (X,), (np.ones(4),)) == pytest.approx(second, rel=1e-13)


def test_several_outputs_settings_and_shapes():
    def plain(r, angle):
        return r * np.cos(3 * angle), np.sum(r * np.sin(3 * angle))

    r, angle = np.array([1.0, 2.0]), np.array([0.3, -0.4])
    for transform in (dl.jacrev, dl.jacfwd):
        mine = transform(lambda r, a: Polar.apply(r, a, 3), (0, 1))(r, angle)
        theirs = transform(plain, (0, 1))(r, angle)
        for own, other in zip(sum(mine, ()), sum(theirs, ()), strict=True):
            assert own == pytest.approx(other, rel=1e-14, abs=1e-15)

    def product(r, a):
        x, s = Polar.apply(r, a, 3)
        return np.sum(x * s)

    def plain_product(r, a):
        x, s = plain(r, a)
        return np.sum(x * s)

    mine, theirs = dl.hessian(product)(r, angle), dl.hessian(plain_product)(r, angle)
    assert mine == pytest.approx(theirs, rel=1e-13)


def test_settings_tell_calls_apart():
    def f(x):
        return Polar.apply(x, 0.5 * x, 1)[1] - Polar.apply(x, 0.5 * x, True)[1]

    assert len(dl.trace(f, 1.0).graph.primitives) >= 4
    one = dl.trace(lambda x: Polar.apply(x, x, 2)[1], 1.0)
    two = dl.trace(lambda x: Polar.apply(x, x, 2)[1], 1.0)
    assert one == two
    assert one != dl.trace(lambda x: Polar.apply(x, x, 3)[1], 1.0)


def test_settings_of_other_types_are_other_settings():
    class Typed(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x, by):
            ctx.factor = 2.0 if type(by) is bool else 3.0
            return ctx.factor * x

        @staticmethod
        def backward(ctx, y_bar):
            return ctx.factor * y_bar, None

    f = dl.trace(lambda x: Typed.apply(x, 1) * 100 + Typed.apply(x, True), 1.0)
    assert f(1.0) == dl.gradient(f)(1.0) == 302.0


def test_settings_that_are_not_hashable():
    class Scaled(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x, options):
            ctx.options = options
            return x * options["by"]

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar * ctx.options["by"], None

    assert dl.grad(lambda x: Scaled.apply(x, {"by": 4.0}))(1.0) == 4.0


def test_a_saved_output_is_the_output_in_the_graph():
    class Exp(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            y = np.exp(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, y_bar):
            (y,) = ctx.saved_tensors
            return y_bar * y

    both = dl.value_and_gradient(dl.trace(lambda x: Exp.apply(x), 1.0))
    rows = [both.graph.primitive(node) for node in range(len(both.graph))]
    assert [row.name for row in rows if row and not row.structural] == ["Exp"]
    value, slope = both(1.0)
    assert float(value) == slope[0] == math.e


def test_a_straight_through_rule_is_taken_at_its_word():
    class Rounded(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            return np.floor(x + 0.5)

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar

    assert dl.grad(lambda x: Rounded.apply(x) ** 2)(2.4) == 4.0


def test_cotangents_are_summed_where_an_argument_was_broadcast():
    class Scale(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x, by):
            ctx.save_for_backward(x, by)
            return x * by

        @staticmethod
        def backward(ctx, y_bar):
            x, by = ctx.saved_tensors
            return y_bar * by, y_bar * x

    table = np.arange(6.0).reshape(2, 3)

    def f(x, by):
        return np.sum(Scale.apply(x, by) * table)

    x, by = np.ones((2, 1)), np.array([1.0, 2.0, 3.0])
    x_bar, by_bar = dl.grad(f, (0, 1))(x, by)
    assert x_bar.tolist() == [[8.0], [26.0]]
    assert by_bar.tolist() == [3.0, 5.0, 7.0]


def test_what_cannot_be_recorded_is_called_when_it_is_evaluated():
    def f(x, y):
        a, b = Opaque.apply(x, y)
        return a * b

    traced = dl.trace(f, 1.0, 1.0)
    assert traced(0.3, 0.5) == pytest.approx(0.25 * math.sin(0.3))
    expected = [0.25 * math.cos(0.3), math.sin(0.3)]
    assert dl.gradient(traced)(0.3, 0.5) == pytest.approx(expected)
    assert np.ravel(dl.jacobian(traced, "forward")(0.3, 0.5)) == pytest.approx(expected)
    many = dl.gradient(traced)(np.array([0.3, 0.3, 1.0]), 0.5)
    assert many.shape == (3, 2)
    assert many[1] == pytest.approx(expected)
    fast = dl.compile(dl.gradient(traced))
    assert fast(0.3, 0.5) == pytest.approx(expected)
    assert fast(np.array([0.3, 1.0]), np.array([0.5, 2.0]))[0] == pytest.approx(expected)
    with pytest.raises(UnsupportedError, match="cannot be recorded, so it cannot be diff"):
        dl.jacobian(dl.gradient(traced), "reverse")


def test_attributes_that_depend_on_the_numbers_are_those_of_each_point():
    class Branch(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.slope = 2.0 if float(x) > 5 else -3.0
            return np.asarray(ctx.slope * float(x))

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar * ctx.slope

    slope = dl.gradient(dl.trace(lambda x: Branch.apply(x), 0.0))
    assert slope(np.array([1.0, 9.0])).ravel().tolist() == [-3.0, 2.0]


def test_compiled_derivatives_have_the_same_values():
    f = dl.trace(lambda x: np.sum(Swish.apply(x) ** 2), X)
    slope = dl.gradient(f)
    for target in ("auto", "numpy"):
        assert dl.compile(slope, target=target)(X) == pytest.approx(slope(X), rel=1e-15)
    with pytest.raises(UnsupportedError, match="Swish"):
        dl.compile(slope, target="python")


def test_an_untaken_branch_contributes_zero():
    class Root(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            y = np.sqrt(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar / (2 * ctx.saved_tensors[0])

    slope = dl.gradient(dl.trace(lambda x: np.where(x > 0, Root.apply(x), 0.0), 1.0))
    assert slope(np.array([0.0, 4.0])).ravel().tolist() == [0.0, 0.25]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_what_an_untaken_branch_gives_stays_zero_after_a_custom_function(mode):
    class Square(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, y_bar):
            return 2 * ctx.saved_tensors[0] * y_bar

        @staticmethod
        def jvp(ctx, x_dot):
            return 2 * ctx.saved_tensors[0] * x_dot

    f = dl.trace(lambda x: np.sqrt(Square.apply(np.where(x > 0, x, 0.0))), 1.0)
    slope = dl.jacobian(f, mode)
    assert slope(np.array([-1.0, 3.0])).ravel().tolist() == [0.0, 1.0]


def test_where_there_is_no_forward_rule_the_mode_is_chosen_accordingly():
    f = dl.trace(lambda x: [Swish.apply(x), Swish.apply(2 * x), x], 1.0)
    expected = [swish_derivatives(0.7, 1), 2 * swish_derivatives(1.4, 1), 1.0]
    assert dl.jacobian(f)(0.7).ravel() == pytest.approx(expected, rel=1e-14)
    squared = dl.trace(lambda x: Swish.apply(x) ** 2, 1.0)
    value, first, second = (float(v) for v in (Swish.apply(0.7), *map(by_values, (1, 2))))
    bend = 2 * (first**2 + value * second)
    assert dl.hessian(squared)(0.7).item() == pytest.approx(bend, rel=1e-13)


def by_values(order):
    return swish_derivatives(0.7, order)


def test_the_comparison_has_a_row_for_every_method():
    g = dl.trace(lambda x, y: Swish.apply(x * y) ** 2, 1.0, 1.0)
    result = dl.compare(g, at={"x": 0.3, "y": 0.5}, timing=False)
    rows = {row.name: row for row in result.methods}
    assert rows["forward"].status == "unsupported"
    assert "Swish has no forward rule: use reverse mode, or give it" in rows["forward"].message
    assert {row.verdict for name, row in rows.items() if name != "forward"} == {"agree"}
    assert {row.status for name, row in rows.items() if name != "forward"} == {"ok"}
    second = dl.compare(
        g, at={"x": 0.3, "y": 0.5}, timing=False, order=2, methods=["forward", "reverse"]
    )
    forward, reverse = second.methods
    assert forward.status == "unsupported"
    assert reverse.verdict == "agree"


def test_a_rule_that_differs_is_declared_and_its_check_finds_it():
    class Wrong(Swish):
        @staticmethod
        def backward(ctx, y_bar):
            x, s = ctx.saved_tensors
            return y_bar * s * (1 - x * (1 - s))

    f = dl.trace(lambda x: Wrong.apply(x), 1.0)
    (row,) = dl.compare(f, at={"x": 0.7}, timing=False, methods=["reverse"]).methods
    assert row.verdict == "declared"
    assert row.message.startswith("differs from the derivative by the rule of Wrong: ")
    with pytest.raises(GradientMismatch):
        check_custom_function(Wrong, np.array(0.7))


def test_what_the_referee_cannot_evaluate_is_inconclusive_and_says_why():
    f = dl.trace(lambda x, y: Opaque.apply(x, y)[0], 1.0, 1.0)
    result = dl.compare(f, at={"x": 0.3, "y": 0.5}, timing=False)
    rows = {row.name: row for row in result.methods}
    assert rows["symbolic"].status == rows["complex-step"].status == "unsupported"
    assert rows["reverse"].verdict == "inconclusive"
    assert "Opaque cannot be recorded" in rows["reverse"].message
    assert np.ravel(rows["reverse"].jacobian) == pytest.approx([0.5 * math.cos(0.3), math.sin(0.3)])


def test_printing_shows_the_operations_or_the_name():
    from difflab.language.printers import text

    assert text(dl.trace(lambda x: Swish.apply(x), 1.0)) == "x*(1/(1 + exp(-x)))"
    assert text(dl.trace(lambda x, y: Opaque.apply(x, y)[0], 1.0, 1.0)) == "Opaque(x, y)[0]"


def test_opened_functions_have_the_same_values():
    f = dl.trace(lambda r, a: Polar.apply(r, a, 2)[1] * Swish.apply(r[0]), X, X)
    plain = opened(f)
    assert not any(row.name in ("Polar", "Swish") for row in plain.graph.primitives)
    assert plain(X, X) == pytest.approx(f(X, X), rel=1e-15)
    with pytest.raises(UnsupportedError, match="Opaque cannot be recorded"):
        opened(dl.trace(lambda x, y: Opaque.apply(x, y)[0], 1.0, 1.0))


def test_other_values_are_computed_by_the_recorded_operations():
    f = dl.trace(lambda x: Swish.apply(x), 1.0)
    with mpmath.workdps(40):
        (found,) = dl.evaluate(f, [mpmath.mpf("0.7")])
        assert abs(found - mpmath.mpf("0.7") / (1 + mpmath.exp(-mpmath.mpf("0.7")))) < 1e-38


def test_graphs_with_custom_functions_are_not_stored():
    with pytest.raises(UnsupportedError, match="custom function Swish cannot be stored"):
        pickle.dumps(dl.trace(lambda x: Swish.apply(x), 1.0))


def only_backward(result):
    class Bad(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, y_bar):
            return result(y_bar)

    return Bad


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (lambda b: b, InputError, "returned 1 cotangent, and forward takes 2 arguments"),
        (lambda b: (b, b, b), InputError, "returned 3 cotangents, and forward takes 2 arguments"),
        (
            lambda b: (b, np.ones(3)),
            ShapeError,
            r"shape \(3,\) for argument 2 of forward, whose shape is \(2,\)",
        ),
        (lambda b: (np.sum(b), b), ShapeError, r"shape \(\) for argument 1 of forward"),
    ],
)
def test_wrong_cotangents_are_named(result, kind, message):
    bad = only_backward(result)
    with pytest.raises(kind, match=f"Bad.backward .*{message}"):
        dl.grad(lambda x: np.sum(bad.apply(x, x)))(np.ones(2))


def test_wrong_tangents_are_named():
    class Bad(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: (x, x))
        jvp = staticmethod(lambda ctx, x_dot: x_dot)

    class Short(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: x)
        jvp = staticmethod(lambda ctx, x_dot: np.sum(x_dot))

    with pytest.raises(InputError, match=r"Bad.jvp returned 1 tangent, and forward returns 2"):
        dl.jvp(Bad.apply, (1.0,), (1.0,))
    with pytest.raises(
        ShapeError, match=r"Short.jvp returned a tangent of shape \(\) for output 1"
    ):
        dl.jvp(Short.apply, (X,), (X,))


def test_a_missing_reverse_rule_is_named():
    class Forward(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: 2 * x)
        jvp = staticmethod(lambda ctx, x_dot: 2 * x_dot)

    assert dl.jacfwd(Forward.apply)(1.0) == 2.0
    with pytest.raises(UnsupportedError, match="Forward has no reverse rule: use forward mode"):
        dl.grad(Forward.apply)(1.0)


def test_none_is_zero():
    class First(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x, y: (x + 0 * y, y + 0 * x))
        backward = staticmethod(lambda ctx, a, b: (a, None))
        jvp = staticmethod(lambda ctx, x_dot, y_dot: (x_dot, None))

    assert dl.grad(lambda x: sum(First.apply(x, x)))(1.0) == 1.0
    assert dl.jvp(lambda x: sum(First.apply(x, x)), (1.0,), (1.0,))[1] == 1.0


def test_what_forward_does_wrong_is_named():
    class Silent(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: x * 2)
        backward = staticmethod(lambda ctx, y_bar: y_bar * ctx.saved_tensors[0])

    class Text(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: "x")
        backward = staticmethod(lambda ctx, y_bar: y_bar)

    class Fails(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: math.log(-float(x)))
        backward = staticmethod(lambda ctx, y_bar: y_bar)

    with pytest.raises(InputError, match=r"Silent reads ctx.saved_tensors, and its forward has"):
        dl.grad(Silent.apply)(1.0)
    with pytest.raises(InputError, match=r"Text.forward returns str as output 1"):
        Text.apply(1.0)
    with pytest.raises(TraceError, match=r"Fails.forward can neither be recorded nor run on num"):
        dl.trace(lambda x: Fails.apply(x), 1.0)


def test_forward_cannot_change_what_it_is_given():
    class Grow(dl.CustomFunction):
        backward = staticmethod(lambda ctx, y_bar: y_bar)

        @staticmethod
        def forward(ctx, x):
            x += 1
            return x

    x = np.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        Grow.apply(x)
    assert x.tolist() == [1.0, 1.0]


def test_classes_without_rules_or_forward_are_refused():
    with pytest.raises(InputError, match="Nothing has a forward, and neither backward nor jvp"):
        type("Nothing", (dl.CustomFunction,), {"forward": staticmethod(lambda ctx, x: x)})
    with pytest.raises(InputError, match=r"Empty has no forward\(ctx, \*args\)"):
        type("Empty", (dl.CustomFunction,), {}).apply(1.0)


def test_traced_values_hidden_in_settings_are_refused():
    with pytest.raises(InputError, match="argument 3 of Polar contains traced values or tensors"):
        dl.grad(lambda x: Polar.apply(x, x, [x])[1])(1.0)


def test_a_long_loop_is_too_long_to_be_written_out() -> None:
    loop = dl.parse("iterate(y = x; 1000000 times; 4*y*(1 - y))")
    with pytest.raises(UnsupportedError, match="scan takes too many steps"):
        opened(loop)


def test_a_batch_is_computed_by_what_was_recorded() -> None:
    """The code does not run point by point, where it can be recorded."""
    runs: list[Any] = []

    class Squared(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            runs.append(x)
            return np.sum(x * x)

        @staticmethod
        def backward(ctx: Any, y_bar: Any) -> Any:
            return np.full(3, 0.5)

    f = dl.trace(lambda x: Squared.apply(x), np.ones(3))
    before = len(runs)
    points = np.arange(12.0).reshape(4, 3)
    assert f(points).tolist() == [5.0, 50.0, 149.0, 302.0]
    assert len(runs) == before
    # A reverse rule may return an array that is the same at all points.
    assert dl.gradient(f)(points).tolist() == [[0.5] * 3] * 4


# --- second derivatives without a forward rule ---------------------------------------------------


class Cube(dl.CustomFunction):
    """x³ with a reverse rule only."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * 3 * x**2


def cubes(x: Any) -> Any:
    return np.sum(Cube.apply(x) * x) + Cube.apply(x[0] * x[1])


def test_hessians_with_a_reverse_rule_only() -> None:
    # of x⁴ + y⁴ + x³y³
    x, y = point = np.array([1.5, -2.0])
    mixed = 9 * x**2 * y**2
    expected = [[12 * x**2 + 6 * x * y**3, mixed], [mixed, 12 * y**2 + 6 * x**3 * y]]
    direction = np.array([1.0, -0.5])
    for f in (cubes, dl.trace(cubes, point)):
        np.testing.assert_allclose(dl.hessian(f)(point), expected, rtol=1e-14)
    np.testing.assert_allclose(dl.hessian(dl.trace(cubes, point), 0)(point), expected, rtol=1e-14)
    product = dl.hvp(cubes, (point,), (direction,))
    np.testing.assert_allclose(product, expected @ direction, rtol=1e-14)
    function = dl.hvp(dl.trace(cubes, point))
    assert function.inputs == ("x", "x_dot")
    np.testing.assert_allclose(function(point, direction), expected @ direction, rtol=1e-14)


def test_products_with_hessians_of_two_arguments_and_trees() -> None:
    def f(a: Any, tree: Any) -> Any:
        return np.sum(Cube.apply(a * tree["b"][0]))

    a, b = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    found, tree = dl.hvp(f, (a, {"b": (b,)}), (np.ones(2), {"b": (np.zeros(2),)}))
    np.testing.assert_allclose(found, 6 * a * b**3, rtol=1e-14)
    np.testing.assert_allclose(tree["b"][0], 9 * a**2 * b**2, rtol=1e-14)
    with pytest.raises(InputError, match="the tangents of hvp"):
        dl.hvp(f, (a, {"b": (b,)}), (np.ones(3), {"b": (np.zeros(2),)}))
    with pytest.raises(UnsupportedError, match="Cube has no forward rule"):
        dl.jvp(cubes, (a,), (a,))
    function = dl.hvp(dl.trace(lambda a, b: np.sum(Cube.apply(a * b)), a, b))
    assert function.inputs == ("a", "b", "a_dot", "b_dot")
    expected = [*(6 * a * b**3), *(9 * a**2 * b**2)]
    np.testing.assert_allclose(function(a, b, np.ones(2), np.zeros(2)), expected, rtol=1e-14)


def in_a_branch(x: Any, bar: Any) -> Any:
    return dl.cond(np.sum(x) > 0, lambda g: 3 * g * x**2, lambda g: 3 * x**2 * g, bar)


def in_a_scan(x: Any, bar: Any) -> Any:
    return dl.scan(lambda c, k: (c * x * k, None), 3 * bar, np.ones(2))[0]


def in_a_counted_loop(x: Any, bar: Any) -> Any:
    return dl.fori_loop(0, 2, lambda i, c: c * x, 3 * bar)


def in_a_while_loop(x: Any, bar: Any) -> Any:
    return dl.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * x), (0.0, 3 * bar))[1]


@pytest.mark.parametrize("rule", [in_a_branch, in_a_scan, in_a_counted_loop, in_a_while_loop])
@pytest.mark.parametrize("forward", [False, True])
def test_rules_whose_loops_close_over_saved_values(rule: Any, forward: bool) -> None:
    class Closing(Cube):
        @staticmethod
        def backward(ctx: Any, y_bar: Any) -> Any:
            return rule(ctx.saved_tensors[0], y_bar)

    if forward:
        Closing.jvp = Closing.backward  # type: ignore[attr-defined]

    def f(x: Any) -> Any:
        return np.sum(Closing.apply(x) * x)

    x = np.array([1.0, -2.0, 2.5])
    slope, curve = 4 * x**3, np.diag(12 * x**2)
    np.testing.assert_allclose(dl.grad(f)(x), slope, rtol=1e-14)
    np.testing.assert_allclose(dl.jit(dl.grad(f))(x), slope, rtol=1e-14)
    np.testing.assert_allclose(dl.hessian(f)(x), curve, rtol=1e-14)
    np.testing.assert_allclose(dl.hessian(dl.trace(f, x))(x), curve, rtol=1e-14)
    np.testing.assert_allclose(dl.vmap(dl.grad(f))(np.stack([x, -x])), [slope, -slope], rtol=1e-14)
    if forward:
        np.testing.assert_allclose(dl.jvp(f, (x,), (np.ones(3),))[1], np.sum(slope), rtol=1e-14)
