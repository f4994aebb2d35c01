"""Random loops: the node, unrolled code, compiled code and batches compute the same."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import difflab as dl

OPERATIONS: dict[str, Any] = {
    "sin": lambda c, x, w: np.sin(c) * x,
    "affine": lambda c, x, w: w * c + x,
    "where": lambda c, x, w: np.where(c > x, c * w, x - c),
    "square": lambda c, x, w: 0.5 * c * c - x * w,
    "sum": lambda c, x, w: np.tanh(c + np.sum(c * w)) + x,
    "constant": lambda c, x, w: 0.0 * c + x,
}
bodies = st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(bodies, st.integers(0, 4), st.booleans(), st.booleans(), st.integers(0, 1000))
def test_a_loop_is_its_steps(
    names: list[str], steps: int, reverse: bool, keeps: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    c, w, xs = rng.normal(size=2), rng.normal(size=2), rng.normal(size=(steps, 2))

    def body(c: Any, x: Any, w: Any) -> Any:
        for name in names:
            c = OPERATIONS[name](c, x, w)
        return c, (c * x if keeps else None)

    def node(c: Any, xs: Any, w: Any) -> Any:
        last, ys = dl.scan(lambda c, x: body(c, x, w), c, xs, reverse=reverse)
        return np.sum(last * w) + (np.sum(ys * ys) if keeps else 0.0)

    def counted(c: Any, xs: Any, w: Any) -> Any:
        def step(value: Any) -> Any:
            n, c, total = value
            c, y = body(c, n * w, w)
            return n + 1, c, total + (np.sum(y * y) if keeps else 0.0)

        _, last, total = dl.while_loop(lambda v: v[0] < steps, step, (0.0 * c[0], c, 0.0 * c[0]))
        return np.sum(last * w) + total + 0 * np.sum(xs)

    def unrolled(c: Any, xs: Any, w: Any, *, rows: Any = None) -> Any:
        total = 0.0
        order = range(steps) if rows is not None or not reverse else reversed(range(steps))
        for number in order:
            c, y = body(c, xs[number] if rows is None else number * w, w)
            total = total + (np.sum(y * y) if keeps else 0.0)
        return np.sum(c * w) + total + 0 * np.sum(xs)

    for loop, plain in ((node, unrolled), (counted, lambda *a: unrolled(*a, rows=True))):
        wanted = dl.value_and_gradient(dl.trace(plain, c, xs, w))
        function = dl.value_and_gradient(dl.trace(loop, c, xs, w))
        close(function(c, xs, w), wanted(c, xs, w))
        close(dl.compile(function, target="numpy")(c, xs, w), wanted(c, xs, w))
        batch = [np.stack([part, 2 * part, -part]) for part in (c, xs, w)]
        close(function(*batch), wanted(*batch))
        forward = dl.jacobian(dl.trace(loop, c, xs, w), mode="forward")(c, xs, w)
        close([forward.ravel()], [wanted(c, xs, w)[1]])


def close(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
