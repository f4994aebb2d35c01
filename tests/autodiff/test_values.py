"""Python's branches and loops on values, under every nesting of forward and reverse mode.

Expected values are by algebra, by differences of plain Python code, PyTorch's and JAX's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ShapeError, TraceError

X = np.array([3.0, 4.0])
Transform = Callable[..., Any]


def forward(f: Transform) -> Transform:
    """Return the gradient of a function of one array by forward mode, a direction at a time."""

    def gradient(x: Any) -> Any:
        if not x.shape:
            return dl.jvp(f, (x,), (1.0,))[1]
        parts = [dl.jvp(f, (x,), (unit,))[1] for unit in np.eye(x.size)]
        return np.stack(parts)

    return gradient


MODES: dict[str, Transform] = {"f": forward, "r": dl.grad}
PAIRS = ["".join(pair) for pair in product(MODES, repeat=2)]
each_pair = pytest.mark.parametrize("pair", PAIRS)
each_carrier = pytest.mark.parametrize("carrier", [np.asarray, dl.tensor])


def halved(x: Any) -> Any:
    """Halve until the square is at most 1: three times at (3, 4)."""
    y = x
    while np.sum(y * y) > 1:
        y = y / 2
    return np.sum(y**3)


def root(a: Any) -> Any:
    """Return the square root by Newton's iteration, until it stands still."""
    x = a
    while abs(x * x - a) > 1e-14 * a:
        x = (x + a / x) / 2
    return x


@each_carrier
def test_a_loop_whose_turns_depend_on_values(carrier: Any) -> None:
    x, third = carrier(X), 3 * X**2 / 512  # of Σ(x/8)³
    value, tangent = dl.jvp(halved, (x,), (carrier([1.0, 2.0]),))
    assert (float(value), float(tangent)) == (np.sum(X**3) / 512, third @ [1.0, 2.0])
    for slope in (dl.grad, dl.jacfwd, dl.jacrev):
        assert np.asarray(slope(halved)(x)).tolist() == third.tolist()
    assert np.asarray(dl.hvp(halved, (x,), (carrier([1.0, 0.0]),))) == pytest.approx(
        [6 * 3.0 / 512, 0.0], abs=1e-18
    )
    assert np.asarray(dl.hessian(halved)(x)) == pytest.approx(np.diag(6 * X / 512), abs=1e-18)
    value, pull = dl.vjp(halved, x)
    assert np.asarray(pull(2.0)[0]).tolist() == (2 * third).tolist()
    _, push = dl.linearize(halved, x)
    assert float(push(carrier([0.0, 1.0]))) == third[1]


@each_pair
@pytest.mark.parametrize("a", [0.3, 2.0, 49.0])
def test_an_iteration_that_stands_still_in_both_orders(pair: str, a: float) -> None:
    outer, inner = (MODES[mode] for mode in pair)
    a = np.float64(a)
    assert float(outer(root)(a)) == pytest.approx(0.5 / math.sqrt(a), rel=1e-12)
    assert float(outer(inner(root))(a)) == pytest.approx(-0.25 * a**-1.5, rel=1e-9)


def test_an_early_return_and_a_chain_of_conditions() -> None:
    def f(x: Any) -> Any:
        if x < 0:
            return x * 0.0
        return x**2 if 0 <= x <= 1 and x != 0.5 else 2 * x - 1

    found = [float(dl.grad(f)(x)) for x in (-1.0, 0.25, 0.5, 3.0)]
    assert found == [0.0, 0.5, 2.0, 2.0]
    with pytest.raises(ShapeError, match=r"truth value of a traced value of shape \(2,\)"):
        dl.grad(lambda x: np.sum(x) if x > 0 else 0.0)(X)


def test_a_branch_on_a_captured_value_and_on_a_truth_value() -> None:
    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            return x * y if x > y else y * y * x

        return dl.grad(g)(x / 2) + (x if np.any(x > 100) else 0.0)

    # x > x/2: the inner derivative is x.
    assert float(dl.grad(f)(3.0)) == 1.0
    # x < x/2: it is 2yx = x² at y = x/2.
    assert float(dl.grad(f)(-3.0)) == -6.0


@each_pair
def test_perturbations_are_not_confused(pair: str) -> None:
    outer, inner = (MODES[mode] for mode in pair)

    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            total = x
            while total < 10:  # three turns at x = 2, y = 3
                total = total + y
            return total * x

        return x * inner(g)(np.float64(3.0) + 0.0 * x)

    # g' = 3x, so that f = 3x² and f' = 6x: no derivative of g by x enters.
    assert float(outer(f)(np.float64(2.0))) == 12.0


# --- nested optimisation: the saddle and particle examples of GradBench ---------------------------


def minimised(f: Transform, x: Any, gradient: Transform, slope_at_rest: float) -> Any:
    """Return where gradient descent with a line search stands still (after Pearlmutter, Siskind).

    The step is doubled after three downward steps and halved after an upward one.
    """
    slope, value, rate, turns = gradient(f)(x), f(x), 0.1, 0
    while True:
        if np.sum(slope * slope) < slope_at_rest**2:
            return x
        if turns == 3:
            rate, turns = rate * 2.0, 0
            continue
        other = x - rate * slope
        lower = f(other)
        if lower < value:
            x, value, slope, turns = other, lower, gradient(f)(other), turns + 1
        else:
            rate, turns = rate / 2.0, 0


@each_pair
def test_the_saddle(pair: str) -> None:
    outer, inner = (MODES[mode] for mode in pair)
    start = np.array([1.0, 1.0])

    def worst(x: Any) -> Any:
        def cost(y: Any) -> Any:
            return -(np.sum(x * x) - np.sum(y * y))

        return -cost(minimised(cost, 0.5 * start, inner, 1e-6))

    # max over y of |x|² - |y|² is |x|², whose least value is 0 at the origin.
    found = minimised(worst, start, outer, 1e-2)
    assert np.abs(found).max() < 0.5e-2
    assert MODES[pair[0]](worst)(start) == pytest.approx(2 * start, rel=1e-8)


def particle(w: Any, gradient: Transform) -> Any:
    """Return the squared place at which a charge hits the ground; it is pushed by four others."""
    charges = [np.stack([10.0 + 0.0 * w, 10.0 - w]), np.array([10.0, 0.0])]

    def potential(x: Any) -> Any:
        return sum(1.0 / np.sqrt(np.sum((x - charge) ** 2)) for charge in charges)

    x, speed, step = np.array([0.0, 8.0]) + 0.0 * w, np.array([0.75, -1.0]), 0.1
    while True:
        acceleration = -1.0 * gradient(potential)(x)
        following = x + step * speed
        if following[1] <= 0:
            rest = -x[1] / speed[1]
            final = x + rest * speed
            return final[0] ** 2
        x, speed = following, speed + step * acceleration


@each_pair
def test_the_particle(pair: str) -> None:
    outer, inner = (MODES[mode] for mode in pair)
    run = lambda w: particle(w, inner)  # noqa: E731
    w, h = np.float64(0.3), 1e-5
    expected = (float(run(w + h)) - float(run(w - h))) / (2 * h)  # no turn is added in between
    assert float(outer(run)(w)) == pytest.approx(expected, rel=1e-7)


def test_pytorch_agrees_on_the_particle() -> None:
    torch = pytest.importorskip("torch")

    def theirs(w: Any) -> Any:
        charges = [torch.stack([w * 0 + 10.0, 10.0 - w]), torch.stack([w * 0 + 10.0, w * 0])]
        x, speed = torch.stack([0 * w, 8 + 0 * w]), torch.stack([0.75 + 0 * w, 0 * w - 1])
        potential = lambda x: sum(1 / torch.sqrt(((x - c) ** 2).sum()) for c in charges)  # noqa: E731
        while True:
            inner = x if x.requires_grad else x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(potential(inner), inner, create_graph=True)
            following = x + 0.1 * speed
            if following[1] <= 0:
                return (x + -x[1] / speed[1] * speed)[0] ** 2
            x, speed = following, speed - 0.1 * slope

    w = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(theirs(w), w)
    found = dl.grad(lambda w: particle(w, dl.grad))(np.float64(0.3))
    assert float(found) == pytest.approx(expected.item(), rel=1e-10)


# --- tensors --------------------------------------------------------------------------------------


def test_results_on_tensors_are_tensors_on_the_tape() -> None:
    x = dl.tensor(X, requires_grad=True)
    slope = dl.grad(lambda x: np.sum(x**3))(x)
    assert isinstance(slope, dl.Tensor)
    np.sum(slope).backward()
    assert x.grad.numpy().tolist() == (6 * X).tolist()
    assert not dl.grad(lambda x: np.sum(x**3))(dl.tensor(X)).requires_grad


def test_captured_tensors_get_their_gradient() -> None:
    w = dl.tensor([2.0, 3.0], requires_grad=True)
    for product_of in (lambda x: w * x, lambda x: x * w, lambda x: (w @ x) * np.ones(2)):
        w.zero_grad()
        _, tangent = dl.jvp(lambda x: np.sum(product_of(x)), (X,), (np.ones(2),))  # noqa: B023
        tangent.backward()
        assert w.grad.numpy()[0] in (1.0, 2.0)
    with pytest.raises(TraceError, match="cannot be written into a tensor"):
        dl.grad(lambda x: changed(dl.tensor(X), x))(X)


def changed(tensor: Any, x: Any) -> Any:
    tensor += x
    return np.sum(tensor)


def test_a_tensor_changed_between_two_uses_is_read_twice() -> None:
    def f(x: Any) -> Any:
        t = dl.tensor([1.0, 1.0])
        first = t * x
        t *= 5.0
        return np.sum(first + t * x)

    assert dl.grad(f)(X).numpy().tolist() == [6.0, 6.0]


def test_trees_of_tensors_and_a_map_over_them() -> None:
    model = {"w": dl.tensor(2.0), "b": [dl.tensor(X)]}
    slope = dl.grad(lambda m: np.sum(m["w"] * m["b"][0] ** 2))(model)
    assert slope["w"].item() == 25.0
    assert slope["b"][0].numpy().tolist() == (4 * X).tolist()
    stack = dl.tensor(np.stack([X, 2 * X]), requires_grad=True)
    squares = dl.vmap(lambda x: np.sum(x * x))(stack)
    assert squares.detach().numpy().tolist() == [25.0, 100.0]
    with pytest.raises(InputError, match="no derivative by integers"):
        dl.grad(lambda x: x)(dl.tensor(X > 0))


# --- where the point is not known -----------------------------------------------------------------


@pytest.mark.parametrize(
    "run",
    [
        lambda f: dl.jit(f)(X),
        lambda f: dl.jit(dl.grad(f))(X),
        lambda f: dl.vmap(dl.grad(f))(np.stack([X, X])),
        lambda f: dl.trace(f, X),
        lambda f: dl.grad(lambda x: dl.scan(lambda c, _: (f(c * x), None), 1.0, length=2)[0])(X),
    ],
)
def test_a_loop_is_refused_with_its_line_and_what_to_write(run: Any) -> None:
    with pytest.raises(TraceError) as caught:
        run(halved)
    text = str(caught.value)
    assert f"test_values.py, line {halved.__code__.co_firstlineno + 3}" in text
    assert "while np.sum(y * y) > 1" in text
    assert "dl.while_loop" in text
    assert "dl.scan" in text


def test_a_branch_is_refused_with_its_line_and_what_to_write() -> None:
    with pytest.raises(TraceError) as caught:
        dl.jit(lambda x: x if np.sum(x) > 0 else -x)(X)
    assert "dl.cond" in str(caught.value)
    assert "numpy.where" in str(caught.value)
    with pytest.raises(TraceError) as caught:
        dl.jit(lambda n: sum(range(n)))(3.0)
    assert "dl.while_loop" in str(caught.value)


def test_checkpoints_may_branch_where_the_point_is_known() -> None:
    found = dl.grad(lambda x: dl.checkpoint(halved, x))(X)
    assert found.tolist() == (3 * X**2 / 512).tolist()
