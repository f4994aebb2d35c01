"""A function without its declared rules has the derivative of what it computes."""

import numpy as np
import pytest

import difflab as dl
from difflab.autodiff.functions.declared import declared_rules, undeclared
from difflab.errors import UnsupportedError


class Reversed(dl.CustomFunction):
    forward = staticmethod(lambda ctx, x: np.sin(x) * 1.0)
    backward = staticmethod(lambda ctx, y_bar: -y_bar)
    jvp = staticmethod(lambda ctx, x_dot: -x_dot)


class Opaque(dl.CustomFunction):
    forward = staticmethod(lambda ctx, x: np.asarray(float(x)))
    backward = staticmethod(lambda ctx, y_bar: y_bar)


def scanned(f):
    return lambda x: dl.scan(lambda c, _: (f(c) * x, None), x, length=3)[0]


def chosen(f):
    return lambda x: dl.cond(x > 0, lambda x: f(x) * x, lambda x: x, x)


def repeated(f):
    return lambda x: dl.while_loop(lambda z: z < 5, lambda z: f(z) + z + 2, x)


def kept(f):
    return lambda x: dl.checkpoint(lambda x: f(x) * x, x)


def nested(f):
    return scanned(chosen(kept(f)))


@pytest.mark.parametrize("rule", [dl.stop_gradient, Reversed.apply], ids=["stop", "custom"])
@pytest.mark.parametrize("around", [lambda f: f, scanned, chosen, repeated, kept, nested])
def test_in_loops_and_branches_too(around, rule):
    function = dl.trace(around(rule), 0.7)
    plain = undeclared(function)
    assert len(declared_rules(function)) == 1
    assert declared_rules(plain) == ()
    assert float(plain(0.7)) == pytest.approx(float(function(0.7)), rel=1e-14)
    numeric = dl.differentiate(function, 0.7).value  # of values only
    mode = "forward" if around is repeated else "reverse"
    assert float(dl.jacobian(plain, mode=mode)(0.7)[0, 0]) == pytest.approx(numeric, rel=1e-8)
    assert float(dl.jacobian(function, mode=mode)(0.7)[0, 0]) != pytest.approx(numeric, rel=1e-3)


@pytest.mark.parametrize("rule", [dl.stop_gradient, Reversed.apply], ids=["stop", "custom"])
def test_in_the_reverse_sweep_of_a_loop_too(rule):
    sweep = dl.trace(dl.grad(repeated(lambda x: rule(x) * x)), 0.7)
    assert any(row.name == "while_loop_vjp" for row in sweep.graph.primitives)
    plain = undeclared(sweep)
    assert len(declared_rules(sweep)) == 1
    assert declared_rules(plain) == ()
    assert float(plain(0.7)) == pytest.approx(float(sweep(0.7)), rel=1e-14)


def test_one_of_several_rules():
    function = dl.trace(lambda x: Reversed.apply(x) * dl.stop_gradient(x), 0.7)
    assert declared_rules(function) == ("Reversed", "stop_gradient")
    assert declared_rules(undeclared(function, ["Reversed"])) == ("stop_gradient",)


def test_a_function_without_rules_is_the_same():
    function = dl.parse("x*sin(x)")
    assert undeclared(function) is function


def test_a_forward_that_cannot_be_recorded():
    function = dl.trace(lambda x: Opaque.apply(x) * 2, 1.5)
    with pytest.raises(UnsupportedError, match="forward of Opaque cannot be recorded"):
        undeclared(function)
