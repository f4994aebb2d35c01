"""``explain``: the operation that fails, and the first at which two methods differ."""

from __future__ import annotations

from typing import Any

import pytest


def test_the_operation_that_fails_is_named(difflab: Any) -> None:
    done = difflab("explain", "1 + log(x - 3)", "--at", "x=2")
    assert done.code == 1
    assert "log(-1) is nan" in done.out
    assert difflab("explain", "1 + log(x)", "--at", "x=2").code == 0


def test_the_conventions_of_jax_and_pytorch_at_a_kink(difflab: Any) -> None:
    """At 0, JAX's abs has the slope 1 and PyTorch's has 0."""
    pytest.importorskip("jax", reason="JAX is one of the two methods")
    done = difflab("explain", "relu(x) + x*abs(y)", "--between", "reverse,jax", "--at", "x=2,y=0")
    assert done.code == 1
    assert "reverse and jax differ at abs(0)" in done.out
    assert "reverse 0 and jax 1" in done.out
    assert "^~~~~~" in done.out


def test_methods_that_agree_say_so(difflab: Any) -> None:
    done = difflab("explain", "sin(x)*y", "--between", "reverse,symbolic")
    assert done.code == 0
    assert "reverse and symbolic agree" in done.out


@pytest.mark.parametrize(
    ("names", "complaint"),
    [("reverse", "takes two methods, not 1"), ("reverse,revers", "revers")],
)
def test_other_names_are_refused(difflab: Any, names: str, complaint: str) -> None:
    done = difflab("explain", "sin(x)", "--between", names)
    assert done.code == 2
    assert complaint in done.err
