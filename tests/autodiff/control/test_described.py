"""What loops and branches say of themselves, on random loops: their text and their turns."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import difflab as dl

OPERATIONS: dict[str, Any] = {
    "sin": lambda c, x, w: np.sin(c) * x,
    "affine": lambda c, x, w: w * c + x,
    "where": lambda c, x, w: np.where(c > x, c * w, x - c),
    "sum": lambda c, x, w: np.tanh(c + np.sum(c * w)) + x[::-1],
    "inner": lambda c, x, w: dl.fori_loop(0, 3, lambda i, y: np.cos(y) * i + w, c),
    "branch": lambda c, x, w: dl.cond(x[0] > 0.3, lambda c: c + 1, lambda c: c * x, c),
}
BODIES = st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(BODIES, st.integers(1, 4), st.booleans(), st.sampled_from(["value", "gradient", "jvp"]))
def test_a_short_loop_is_read_back(names: list[str], steps: int, keeps: bool, kind: str) -> None:
    rng = np.random.default_rng(len(names) + 10 * steps)
    point = {"c": rng.normal(size=2), "w": rng.normal(size=2), "xs": rng.normal(size=(steps, 2))}

    def body(c: Any, x: Any, w: Any) -> Any:
        for name in names:
            c = OPERATIONS[name](c, x, w)
        return c, (c * x if keeps else None)

    def loop(c: Any, w: Any, xs: Any) -> Any:
        last, ys = dl.scan(lambda c, x: body(c, x, w), c, xs)
        return np.sum(last * w) + (np.sum(ys * ys) if keeps else 0.0)

    f = dl.trace(loop, *point.values())
    asked = {"value": lambda: f, "gradient": lambda: dl.gradient(f), "jvp": lambda: dl.jacobian(f)}
    function = asked[kind]()
    again = dl.parse(str(function))
    assert again.output_shapes == function.output_shapes
    # A branch is written as `where`, and additions of zeros are left out: not every last bit.
    np.testing.assert_allclose(again(**point), function(**point), rtol=1e-12, atol=1e-12)
    formulas = [step.formula for step in f.trace(point).primal]
    turns = f"({steps} turn{'s' * (steps > 1)})"
    assert sum(formula.endswith(turns) for formula in formulas) == 1


def test_a_long_loop_says_its_step() -> None:
    function = dl.trace(lambda x: dl.fori_loop(0, 9999, lambda i, y: 0.5 * y * x, x), 1.0)
    assert str(function) == "iterate(x1 = 0.0, x2 = x; 9999 times; x1 + 1.0, 0.5*x2*x)[1]"
    assert dl.count(function).operations == 3 * 9999
