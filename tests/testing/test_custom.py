"""The check of custom functions finds each kind of mistake, and passes what is right."""

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.testing import GradientMismatch, GradientUnjudged, check_custom_function, checked


class Product(dl.CustomFunction):
    """Two arguments, a setting, two outputs, both rules."""

    @staticmethod
    def forward(ctx, a, b, by):
        ctx.by = by
        ctx.save_for_backward(a, b)
        return np.sin(a) * b * by, np.sum(b**2)

    @staticmethod
    def backward(ctx, y_bar, s_bar):
        a, b = ctx.saved_tensors
        a_bar = np.sum(y_bar * np.cos(a) * b * ctx.by)
        return a_bar, y_bar * np.sin(a) * ctx.by + 2 * b * s_bar, None

    @staticmethod
    def jvp(ctx, a_dot, b_dot, by_dot):
        a, b = ctx.saved_tensors
        y_dot = (np.cos(a) * a_dot * b + np.sin(a) * b_dot) * ctx.by
        return y_dot, np.sum(2 * b * b_dot)


POINT = (0.7, np.array([1.0, -2.0, 0.5]), 3)


def test_right_rules_pass():
    check_custom_function(Product, *POINT)
    check_custom_function(Product, *POINT, seed=5, rtol=1e-9)


def test_a_wrong_backward_is_named_with_its_argument_and_numbers():
    class Wrong(Product):
        @staticmethod
        def backward(ctx, y_bar, s_bar):
            a_bar, b_bar, none = Product.backward(ctx, y_bar, s_bar)
            return a_bar, -b_bar, none

    with pytest.raises(GradientMismatch, match=r"Wrong.backward, argument 2: .* 3 of 3") as found:
        check_custom_function(Wrong, *POINT)
    assert "likely a sign error" in str(found.value)
    assert len(found.value.components) == 3


def test_a_wrong_jvp_is_named_with_its_output():
    class Wrong(Product):
        @staticmethod
        def jvp(ctx, a_dot, b_dot, by_dot):
            y_dot, s_dot = Product.jvp(ctx, a_dot, b_dot, by_dot)
            return y_dot, s_dot * 1.001

    with pytest.raises(GradientMismatch, match=r"Wrong.jvp, output 2, along a random direction"):
        check_custom_function(Wrong, *POINT)


def test_the_duality_sees_what_the_tolerance_of_the_values_lets_through():
    class Slightly(Product):
        @staticmethod
        def backward(ctx, y_bar, s_bar):
            a_bar, b_bar, none = Product.backward(ctx, y_bar, s_bar)
            return a_bar * (1 + 1e-5), b_bar, none

    with pytest.raises(GradientMismatch, match=r"Slightly: jvp and backward .* ⟨ȳ, Jẋ⟩ = -?\d"):
        check_custom_function(Slightly, *POINT, rtol=1e-3)


def test_one_rule_is_checked_alone():
    class Back(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: 3.0 * x)
        backward = staticmethod(lambda ctx, y_bar: 4.0 * y_bar)

    class Forth(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: 3.0 * x)
        jvp = staticmethod(lambda ctx, x_dot: 4.0 * x_dot)

    for function in (Back, Forth):
        with pytest.raises(GradientMismatch, match=f"{function.__name__}[.](backward|jvp)"):
            check_custom_function(function, 1.0)


def test_a_forgotten_derivative_counts_as_zero():
    class Forgot(Product):
        @staticmethod
        def backward(ctx, y_bar, s_bar):
            return None, Product.backward(ctx, y_bar, s_bar)[1], None

    with pytest.raises(GradientMismatch, match=r"Forgot.backward, argument 1"):
        check_custom_function(Forgot, *POINT)


def test_counts_and_shapes_are_checked():
    class Few(Product):
        backward = staticmethod(lambda ctx, y_bar, s_bar: (s_bar, y_bar))

    with pytest.raises(
        InputError, match=r"Few.backward returned 2 cotangents, and forward takes 3"
    ):
        check_custom_function(Few, *POINT)


def test_the_decorator_checks_at_the_definition():
    with pytest.raises(GradientMismatch, match=r"Bad.backward"):

        @checked(1.0)
        class Bad(dl.CustomFunction):
            forward = staticmethod(lambda ctx, x: x * x)
            backward = staticmethod(lambda ctx, y_bar: y_bar)

    @checked(1.0)
    class Good(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: 2.0 * x)
        backward = staticmethod(lambda ctx, y_bar: 2.0 * y_bar)

    assert Good.apply(2.0) == 4.0


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(InputError, match=r"is not a subclass of dl.CustomFunction"):
        check_custom_function(np.sin, 1.0)
    with pytest.raises(InputError, match="Product has no argument to differentiate"):
        check_custom_function(Product, 1, 2, 3)


def _rounded(offset, slope):
    class Rounded(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return np.round(x**3, 4) + offset

        @staticmethod
        def backward(ctx, y_bar):
            (x,) = ctx.saved_tensors
            return slope * x**2 * y_bar

    return Rounded


def test_a_forward_that_rounds_is_judged_by_what_it_rounds():
    check_custom_function(_rounded(0.0, 3.0), 1.5)
    with pytest.raises(GradientMismatch, match=r"Rounded.backward, argument 1: the gradient is"):
        check_custom_function(_rounded(0.0, 3.1), 1.5)


def test_a_rule_that_cannot_be_judged_is_said():
    where = r"Rounded.backward, argument 1: could not judge"
    with pytest.raises(GradientUnjudged, match=where) as found:
        check_custom_function(_rounded(1e17, 3.0), 1.5)
    assert len(found.value.unjudged) == 1
    check_custom_function(_rounded(1e17, 3.0), 1.5, atol=1e6)
