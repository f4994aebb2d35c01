"""NumPy's functions on traced values: values against NumPy, derivatives by duality, places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import arrays
from difflab.errors import ShapeError, TraceError
from tests.support.rows import for_each

M = np.array([[1.5, -0.4, 2.2], [0.3, 3.1, -1.7]])
S = np.array([[3.0, 0.4, 0.2], [0.4, 2.5, -0.3], [0.2, -0.3, 4.0]])
B = np.arange(12.0).reshape(2, 2, 3) / 7 - 0.6

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (lambda a: np.sum(a, axis=0), (M,)),
    "sum of two axes": (lambda a: a.sum(axis=(0, 2)), (B,)),
    "mean": (lambda a: np.mean(a, 1, keepdims=True), (M,)),
    "method mean": (lambda a: a.mean(axis=1), (M,)),
    "prod": (lambda a: np.prod(a, axis=1), (M,)),
    "max": (lambda a: np.max(a, axis=0), (M,)),
    "min": (lambda a: np.min(a), (M,)),
    "argmax": (lambda a: np.argmax(a, axis=1) * a[:, 0], (M,)),
    "norm": (lambda a: np.linalg.norm(a), (M,)),
    "norm along": (lambda a: np.linalg.norm(a, axis=1, keepdims=True), (M,)),
    "cumsum": (lambda a: np.cumsum(a, axis=1), (M,)),
    "cumsum of all": (lambda a: np.cumsum(a), (M,)),
    "matmul": (lambda a, b: np.matmul(a, b), (M, S)),
    "array @ node": (lambda a: M @ a, (S,)),
    "node @ array": (lambda a: a @ S, (M,)),
    "stacks": (lambda a, b: a @ b, (B, S)),
    "stack and vector": (lambda a, b: a @ b, (B, S[0])),
    "vector and stack": (lambda a, b: a @ b, (S[0], np.swapaxes(B, 1, 2))),
    "dot": (lambda a, b: np.dot(a, b), (M, S[0])),
    "inner": (lambda a: np.inner(a[0], a[1]), (M,)),
    "outer": (lambda a: np.outer(a[0], a[1]), (M,)),
    "trace": (lambda a: np.trace(a), (S,)),
    "diag": (lambda a: np.diag(a), (S,)),
    "diag of a vector": (lambda a: np.diag(a[0]), (M,)),
    "diagonal": (lambda a: np.diagonal(a), (S,)),
    "solve": (lambda a, b: np.linalg.solve(a, b), (S, M.T)),
    "inv": (lambda a: np.linalg.inv(a), (S,)),
    "det": (lambda a: np.linalg.det(a), (S,)),
    "cholesky": (lambda a: np.linalg.cholesky(a), (S,)),
    "transpose": (lambda a: np.transpose(a, (2, 0, 1)), (B,)),
    "T": (lambda a: a.T * 2, (B,)),
    "swapaxes": (lambda a: np.swapaxes(a, 0, -1), (B,)),
    "reshape": (lambda a: np.reshape(a, (3, -1)), (M,)),
    "ravel": (lambda a: np.ravel(a), (M,)),
    "squeeze": (lambda a: np.squeeze(a[:, :1]), (M,)),
    "expand_dims": (lambda a: np.expand_dims(a, -1), (M,)),
    "broadcast_to": (lambda a: np.broadcast_to(a[0], (4, 3)), (M,)),
    "concatenate": (lambda a, b: np.concatenate([a, b], axis=0), (M, S)),
    "concatenate with an array": (lambda a: np.concatenate([a, M]), (S,)),
    "stack": (lambda a: np.stack([a[0], a[1]], axis=1), (M,)),
    "take": (lambda a: np.take(a, [1, 1, 0], axis=1), (M,)),
    "take of all": (lambda a: np.take(a, [5, 0]), (M,)),
    "pad": (lambda a: np.pad(a, ((1, 0), (2, 1))), (M,)),
    "pad alike": (lambda a: np.pad(a, 1), (M,)),
    "where with an array": (lambda a: np.where(a > 0, a, M * 10), (M,)),
    "constants": (lambda a: a * np.array([1, 2, 3]) - np.ones((2, 1)), (M,)),
    "new axes": (lambda a: a[:, None, 1:] * a[None, ..., None, 0], (M,)),
    "several places": (lambda a: a[[1, 0, 1]] * 2, (M,)),
    "bincount": (lambda a: np.bincount([0, 2, 2, 1, 0, 4], a, minlength=7), (M.ravel(),)),
    "einsum": (lambda a, b: np.einsum("ij,kj->ki", a, b), (M, S)),
    "einsum implicit": (lambda a, b: np.einsum("ij,jk", a, b), (M, S)),
    "einsum sum": (lambda a: np.einsum("ij->j", a), (M,)),
    "einsum batch": (lambda a, b: np.einsum("bij,bkj->bik", a, b), (B, B)),
    "einsum three": (lambda a, b, c: np.einsum("i,ij,j->", a, b, c), (M[:, 0], M, S[0])),
    "einsum outer": (lambda a, b: np.einsum("i,j->ji", a, b), (M[0], S[0])),
    "einsum trace": (lambda a: np.einsum("ii", a), (S,)),
    "einsum diagonal": (lambda a, b: np.einsum("ii,ij->ij", a, b), (S, S)),
    "einsum stacks": (lambda a, b: np.einsum("...ij,j", a, b), (B, M[0, : B.shape[-1]])),
    "einsum stacks of one": (lambda a, b: np.einsum("...ij,...kj->ki...", a, b), (B, B[:1])),
    "einsum in best order": (
        lambda a, b, c: np.einsum("i,ij,jk->k", a, b, c, optimize=True),
        (M[:, 0], M, S),
    ),
    "einsum lonely": (lambda a, b: np.einsum("ij,k->i", a, b), (M, S[0])),
}


@for_each("name", FUNCTIONS)
def test_traced_code_computes_what_numpy_does(name: str) -> None:
    code, examples = FUNCTIONS[name]
    function = dl.trace(code, *examples)
    expected = code(*examples)
    assert function.output_shapes == (np.shape(expected),)
    np.testing.assert_allclose(function(*examples), expected, rtol=1e-13, atol=1e-14)


@for_each("name", FUNCTIONS)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_its_derivative_agrees_with_complex_steps_or_differences(name: str, mode: str) -> None:
    code, examples = FUNCTIONS[name]
    function = dl.trace(code, *examples)
    point = np.concatenate([np.ravel(example) for example in examples])
    step = 1e-6
    expected = np.stack(
        [
            (function.values(point + step * unit) - function.values(point - step * unit))
            / (2 * step)
            for unit in np.eye(point.size)
        ],
        axis=-1,
    )
    found = dl.jacobian(function, mode)(*examples)
    np.testing.assert_allclose(found, expected, atol=1e-7 * max(1.0, np.abs(expected).max()))


NETWORK: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "conv2d": (
        lambda x, w, b: arrays.conv2d(x, w, b, stride=2, padding=1),
        (
            np.sin(np.arange(32.0)).reshape(2, 4, 4),
            np.cos(np.arange(18.0)).reshape(1, 2, 3, 3),
            M[0, :1],
        ),
    ),
    "max_pool": (lambda x: arrays.max_pool(x, 2, 1), (np.sin(np.arange(9.0)).reshape(3, 3),)),
    "layer_norm": (arrays.layer_norm, (M, S[0], S[1])),
    "batch_norm of images": (
        arrays.batch_norm,
        (np.sin(np.arange(24.0)).reshape(2, 3, 2, 2), S[0], S[1]),
    ),
    "cross_entropy": (lambda x: arrays.cross_entropy(x, [2, 0]), (M,)),
    "gelu": (arrays.gelu, (M,)),
    "leaky_relu": (lambda x: arrays.leaky_relu(x, 0.2), (M,)),
    "log_softmax": (lambda x: arrays.log_softmax(x, axis=(0, 1)), (M,)),
}


@for_each("name", NETWORK)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_layers_on_arrays_and_traced_agree_and_have_the_right_slopes(name: str, mode: str) -> None:
    code, examples = NETWORK[name]
    function = dl.trace(code, *examples)
    np.testing.assert_allclose(function(*examples), code(*examples), rtol=1e-14, atol=1e-15)
    point = np.concatenate([np.ravel(example) for example in examples])
    units = np.eye(point.size) * 1e-6
    expected = np.stack(
        [(function.values(point + u) - function.values(point - u)) / 2e-6 for u in units], axis=-1
    )
    np.testing.assert_allclose(dl.jacobian(function, mode)(*examples), expected, atol=1e-8)


def test_convolution_with_stride_and_padding_follows_its_definition() -> None:
    code, (x, w, b) = NETWORK["conv2d"]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    expected = [
        [np.sum(padded[:, p : p + 3, q : q + 3] * w[0]) + b[0] for q in (0, 2)] for p in (0, 2)
    ]
    np.testing.assert_allclose(code(x, w, b), [expected], rtol=1e-14)
    images = np.stack([x, 2 * x])
    np.testing.assert_allclose(code(images, w, b)[0], [expected], rtol=1e-14)


def test_windows_that_differ_along_each_axis_follow_their_definition() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(2, 3, 9, 8)), rng.normal(size=(4, 3, 2, 3))
    seen = np.lib.stride_tricks.sliding_window_view(x, (4, 5), axis=(2, 3))
    seen = seen[:, :, ::1, ::2, ::3, ::2]  # strides (1, 2), dilations (3, 2)
    expected = np.einsum("ncpqij,ocij->nopq", seen, w)
    settings: dict[str, Any] = {"stride": (1, 2), "dilation": (3, 2)}
    for array in (np.asarray, dl.tensor):
        found = np.asarray(arrays.conv2d(array(x), array(w), **settings))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(
        arrays.max_pool(x, (2, 3), (3, 2)),
        np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(2, 3))[:, :, ::3, ::2].max(
            (-1, -2)
        ),
    )


def test_a_window_takes_a_slice_for_each_row_and_column() -> None:
    graph = dl.trace(arrays.conv2d, np.ones((1, 9, 9)), np.ones((1, 1, 5, 4))).graph
    rows = [graph.primitive(node) for node in range(len(graph))]
    assert sum(row is not None and row.name == "index" for row in rows) == 5 + 4


def of_shapes(W: Any, x: Any) -> Any:  # as in a textbook
    return W @ x


def test_a_mismatch_names_the_line_of_python() -> None:
    with pytest.raises(ShapeError) as caught:
        dl.trace(of_shapes, np.ones((4, 3)), np.ones(4))
    error = caught.value
    line = of_shapes.__code__.co_firstlineno + 1
    assert error.message == (
        f"matmul cannot multiply the shapes (4, 3) and (4,) (test_functions.py, line {line})"
    )
    assert error.text is not None
    assert error.span is not None
    assert error.text[slice(*error.span)] == "W @ x"


def test_an_elementwise_mismatch_names_the_line_of_python() -> None:
    with pytest.raises(
        ShapeError, match=r"add cannot combine .*test_functions\.py, line"
    ) as caught:
        dl.trace(lambda a, b: 2 * (a + b), np.ones(3), np.ones(4))
    error = caught.value
    assert error.text is not None
    assert error.span is not None
    assert error.text[slice(*error.span)] == "a + b"


@pytest.mark.parametrize(
    "code",
    [
        lambda a: np.linalg.norm(a, ord=3),
        lambda a: np.linalg.norm(a, ord="l2"),
        lambda a: np.sum(a, dtype=np.float32),
        lambda a: np.sort(a, order="x"),
        lambda a: np.pad(a, 1, mode="mean"),
        lambda a: np.pad(a, 1, mode="reflect", reflect_type="odd"),
        lambda a: np.std(a, dtype=float),
    ],
)
def test_what_is_not_there_is_refused_rather_than_misread(code: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match="difflab has no"):
        dl.trace(code, M)


def test_array_constants_are_shared_and_survive_pickling() -> None:
    import pickle

    function = dl.trace(lambda a: np.sum(a * S[0]) + np.sum(a * S[0].copy()), M)
    rows = [row.name for row in function.graph.primitives]
    opcodes = function.graph.opcode.tolist()
    assert opcodes.count(2 + rows.index("constant_array")) == 1
    again = pickle.loads(pickle.dumps(function))
    assert again(M) == function(M)


@pytest.mark.parametrize(
    "subscripts",
    ["ii", "ij", "i...,j", "...i->i", "ij->k", "i1", "ij,jk", "ijkl...->i", "ij->ii"],
)
def test_subscripts_that_do_not_fit_are_refused_as_by_numpy(subscripts: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        np.einsum(subscripts, M[None])
    with pytest.raises(ShapeError, match="einsum cannot combine the shapes"):
        arrays.einsum(subscripts, M[None])


def test_an_order_of_products_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ShapeError, match="einsum cannot optimize by 'best'"):
        arrays.einsum("ij,jk,kl", M, S, S, optimize="best")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda x: np.bincount([0, -1, 2], x), "index -1 of bincount is negative"),
        (lambda x: np.bincount([0, 1], x), r"not the shapes \(2,\) and \(3,\)"),
        (lambda x: np.bincount([0.5, 1, 2], x), "needs integers"),
    ],
)
def test_indices_of_bins_are_checked(code: Callable[..., Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        dl.trace(code, np.ones(3))


def test_contractions_are_matrix_products() -> None:
    function = dl.trace(lambda a, b: np.einsum("bij,bkj->bik", a, b), B, B)
    names = {row.name for row in function.graph.primitives}
    assert "matmul" in names
    assert names <= {"matmul", "transpose", "reshape"}


def test_the_gradient_of_a_product_takes_a_constant_times_its_size() -> None:
    small, large = (
        dl.count(dl.gradient(dl.parse(f"x: [{size}]; prod(x)"))).operations for size in (8, 1024)
    )
    assert large - small <= 4 * 7


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (np.prod, np.prod),
        (np.linalg.norm, np.linalg.norm),
        (arrays.logsumexp, lambda x, **more: np.log(np.sum(np.exp(x), **more))),
    ],
)
@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ((0,), {}),
        ((0, 3), {"axis": 0}),
        ((2, 0), {"axis": 1}),
        ((2, 0), {"axis": 1, "keepdims": True}),
    ],
)
def test_reductions_of_nothing(ours: Any, numpys: Any, shape: Any, more: Any) -> None:
    x = np.zeros(shape)

    def f(x: Any) -> Any:
        return ours(x, **more)

    with np.errstate(divide="ignore"):
        expected = numpys(x, **more)
    for found in (dl.trace(f, x)(x), dl.compile(dl.trace(f, x))(x), dl.jit(f)(x)):
        assert np.array_equal(found, expected)
        assert np.shape(found) == np.shape(expected)
    value, slope = dl.value_and_grad(lambda x: np.sum(f(x)))(x)
    assert value == np.sum(expected)
    assert slope.shape == shape
    tensor = dl.tensor(x, requires_grad=True)
    np.sum(f(tensor)).backward()
    assert tensor.grad.shape == shape
