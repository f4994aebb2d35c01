"""Mixed partial derivatives of chosen entries: against SymPy, and without the other entries."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import difflab as dl
from difflab.errors import InputError
from tests.support.rows import for_each

TEXTS = [
    "sin(x*y)*exp(z*x)",
    "x^3*y^4*z^2 + ln(2 + x*y)",
    "sqrt(1 + x^2*y^2 + z)",
    "tanh(x + y*z)/(2 + x*x)",
]
CHOICES = [
    *(("x",), ("x", "y"), ("y", "x", "y"), ("x", "y", "y", "y"), ("z", "z", "z")),
    *(("x", "y", "z"), ("z", "y", "x", "x"), ("x", "x", "y", "y", "z")),
]
POINT = {"x": 0.7, "y": -0.4, "z": 0.3}


@pytest.mark.parametrize("text", TEXTS)
@for_each("chosen", CHOICES, ids="".join)
def test_mixed_derivatives_are_those_of_sympy(text: str, chosen: tuple[str, ...]) -> None:
    expression = sympy.sympify(text.replace("^", "**").replace("ln", "log"))
    exact = sympy.diff(expression, *map(sympy.Symbol, chosen)).subs(POINT).evalf(30)
    found = dl.partial(dl.parse(text), *chosen)(**POINT)
    assert float(found) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def test_one_entry_of_a_large_hessian_takes_few_operations() -> None:
    """The whole one has 10^10 entries."""
    function = dl.parse("x: [100000]; sum(x[1:]^2*x[:-1]^3)")
    entry = dl.partial(function, "x[7]", "x[8]")
    x = np.linspace(0.5, 1.5, 100_000)
    assert float(entry(x)) == pytest.approx(6 * x[7] ** 2 * x[8], rel=1e-14)
    apart = dl.partial(function, "x[7]", "x[9]")
    assert float(apart(x)) == 0.0


def test_fewest_operations_whatever_the_order_given() -> None:
    function = dl.parse("sin(x*y*y)*exp(y)")
    counts = {
        dl.count(dl.partial(function, *names)).operations
        for names in [("x", "y", "y"), ("y", "x", "y"), ("y", "y", "x")]
    }
    assert len(counts) == 1


def test_several_outputs_keep_their_names() -> None:
    found = dl.partial(dl.parse("u = x*y^2; v = x^2*y; [u, v]"), "x", "y")
    assert found(3.0, 5.0) == pytest.approx([10.0, 6.0])
    assert found.m == 2


def test_what_is_no_element_is_refused() -> None:
    function = dl.parse("w: [2]; x*w[0]")
    for names, says in [
        ((), "needs a variable"),
        (("y",), "unknown variable 'y'"),
        (("w",), r"'w' is not a single element of 'w', whose shape is \[2\]"),
        (("x", "w[2]"), r"'w\[2\]' is not a single element"),
        ((1,), "takes the names of variables, not 1"),
    ]:
        with pytest.raises(InputError, match=says):
            dl.partial(function, *names)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="partial takes a Function"):
        dl.partial(lambda x: x, "x")  # type: ignore[arg-type]
