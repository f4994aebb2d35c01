"""``--latex``, and the formats of ``derive`` that are code over array modules and MathML."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("command", ["compare", "derive", "trace", "graph"])
def test_formulas_in_latex(difflab: Any, command: str) -> None:
    options = ["--no-timing", "--methods", "reverse"] if command == "compare" else []
    if command == "graph":
        options = ["--format", "dot"]
    result = difflab(command, "--latex", r"\frac{x_1}{2} \sin x_1", *options)
    assert result.code == 0, result.err
    assert "x1" in result.out


def test_errors_in_latex_mark_the_place(difflab: Any) -> None:
    result = difflab("compare", "--latex", r"\frac{x}{y} + \sin")
    assert result.code == 2
    assert r"\frac{x}{y} + \sin" in result.err
    assert "^~~~" in result.err


@pytest.mark.parametrize(
    ("form", "part"),
    [("numpy", "np.cos(x)"), ("jax", "jnp.cos(x)"), ("torch", "torch.cos(x)"), ("mathml", "<math")],
)
def test_formats(difflab: Any, form: str, part: str) -> None:
    pytest.importorskip({"mathml": "sympy"}.get(form, form))
    result = difflab("derive", "sin(x)*y", "--format", form)
    assert result.code == 0, result.err
    assert part in result.out
