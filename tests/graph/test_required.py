"""Text and Python code in place of a function: the error says how to make one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, PointError

TAKERS: dict[str, Callable[[Any], Any]] = {
    "count": dl.count,
    "explain": lambda f: dl.explain(f, {"x": 1.0}),
    "gradient": dl.gradient,
    "jacobian": dl.jacobian,
    "sparse_hessian": dl.sparse_hessian,
    "sparse_jacobian": dl.sparse_jacobian,
    "value_and_gradient": dl.value_and_gradient,
}


@pytest.mark.parametrize("name", TAKERS)
def test_text_is_to_be_parsed_and_code_to_be_traced(name: str) -> None:
    with pytest.raises(InputError, match=f"^{name} takes a Function, not str\nhint: .*dl.parse"):
        TAKERS[name]("x^2")
    if name == "jacobian":  # also of Python code
        return
    with pytest.raises(InputError, match=f"^{name} takes a Function, not function\nhint: .*trace"):
        TAKERS[name](lambda x: x**2)


def test_stabilise_takes_text_but_no_code() -> None:
    assert "logaddexp" in str(dl.stabilise("log(exp(x) + exp(y))"))
    with pytest.raises(InputError, match=r"^stabilise takes a Function, not function"):
        dl.stabilise(lambda x: x)


@pytest.mark.parametrize(
    ("name", "other"), [("gradient", "grad"), ("value_and_gradient", "value_and_grad")]
)
def test_code_has_a_transform_of_its_own(name: str, other: str) -> None:
    with pytest.raises(InputError, match=rf"or use dl\.{other}\(f, argnums\)"):
        TAKERS[name](lambda x: x**2)


@pytest.mark.parametrize("point", [np.array([1.0, 2.0]), [1.0, 2.0], (1.0, 2.0)])
def test_a_point_as_one_array_is_passed_input_by_input(point: Any) -> None:
    f = dl.parse("x^2*y + y^3")
    for function in (f, dl.gradient(f), dl.hessian(f)):
        with pytest.raises(PointError, match="the input y") as caught:
            function(point)
        assert caught.value.hint == "pass the inputs one by one: f(*point)"
        function(*point)
    with pytest.raises(PointError, match="the input y") as caught:
        f(np.ones(3))
    assert caught.value.hint is None
    with pytest.raises(PointError, match="the input y") as caught:
        dl.parse("x: [2]; sum(x)*y")(np.ones(2))
    assert caught.value.hint is None


def test_a_hessian_of_code_covers_the_first_argument_and_of_text_all() -> None:
    """x²y + y³ has the second derivatives 2y, 2x and 6y."""
    x, y = 3.0, 5.0
    whole = [[2 * y, 2 * x], [2 * x, 6 * y]]

    def g(x: Any, y: Any) -> Any:
        return x**2 * y + y**3

    assert dl.hessian(dl.parse("x^2*y + y^3"))(x, y).tolist() == whole
    assert dl.hessian(g)(x, y) == whole[0][0]
    assert np.array(dl.hessian(g, argnums=(0, 1))(x, y)).tolist() == whole
    with pytest.raises(InputError, match=r"argnums=\(0, 1\)"):
        dl.hessian(g, wrt="x")
