"""Text and Python code in place of a function: the error says how to make one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import difflab as dl
from difflab.errors import InputError

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
