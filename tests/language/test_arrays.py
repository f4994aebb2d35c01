"""Functions of arrays in the language: what they compute, how they are printed, what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import difflab as dl
from difflab.arrays import random
from difflab.autodiff import gradient
from difflab.errors import ParseError, ShapeError, UnsupportedError
from difflab.language import parse
from difflab.language.calls import CALLS
from difflab.language.printers.c import c
from difflab.language.printers.latex import latex
from difflab.language.printers.text import text
from difflab.primitives import index
from tests.support.cases import recurrence
from tests.support.rows import for_each

DECLARED = "x: [3]; y: [3]; M: [2, 3]; A: [3, 3]; T: [1, 4, 4]; F: [2, 1, 3, 3]; v: [2]; "
RNG = np.random.default_rng(11)
VALUES = {
    "x": np.array([0.3, -1.2, 0.8]),
    "y": np.array([1.1, 0.4, -0.6]),
    "M": RNG.normal(size=(2, 3)),
    "A": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]]),
    "T": RNG.normal(size=(1, 4, 4)),
    "F": RNG.normal(size=(2, 1, 3, 3)),
    "v": np.array([0.2, 0.7]),
}


def normal(x: Any, axes: Any) -> Any:
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + 1e-5)


def parts(z: Any) -> Any:
    """Return the real and the imaginary part along a last axis."""
    return np.stack([z.real, z.imag], axis=-1)


def correlated(x: Any, w: Any) -> Any:
    """Convolve by the definition."""
    out = np.zeros((2, 2, 2))
    for o in range(2):
        for p in range(2):
            for q in range(2):
                out[o, p, q] = np.sum(x[:, p : p + 3, q : q + 3] * w[o])
    return out


def spread(M: Any, v: Any) -> Any:
    """Place two arrays into zeros."""
    out = np.zeros((2, 5))
    out[:, 1:4] += M
    out[1, ::4] += v
    return out


# Each word with what NumPy or SciPy says.
EXPECTED: list[tuple[str, Callable[..., Any]]] = [
    ("sum(M)", lambda M, **_: M.sum()),
    ("sum(M, [0])", lambda M, **_: M.sum(axis=0)),
    ("sum(M, [0, -1])", lambda M, **_: M.sum()),
    ("prod(M, [1])", lambda M, **_: M.prod(axis=1)),
    ("mean(M, [0])", lambda M, **_: M.mean(axis=0)),
    ("norm(x)", lambda x, **_: np.linalg.norm(x)),
    ("logsumexp(M, [1])", lambda M, **_: scipy.special.logsumexp(M, axis=1)),
    ("squeeze(T)", lambda T, **_: T[0]),
    ("max(M)", lambda M, **_: M.max()),
    ("max(M, [0])", lambda M, **_: M.max(axis=0)),
    ("max(x, y)", lambda x, y, **_: np.maximum(x, y)),
    ("min(M, [1])", lambda M, **_: M.min(axis=1)),
    ("min(x, y, 0)", lambda x, y, **_: np.minimum(np.minimum(x, y), 0)),
    ("argmax(M)", lambda M, **_: M.argmax()),
    ("argmax(M, [1])", lambda M, **_: M.argmax(axis=1)),
    ("cumprod(M)", lambda M, **_: M.cumprod()),
    ("cumprod(M, [1])", lambda M, **_: M.cumprod(axis=1)),
    ("argsort(M)", lambda M, **_: np.argsort(M)),
    ("argsort(M, [0])", lambda M, **_: np.argsort(M, axis=0)),
    ("sort(M, [0])", lambda M, **_: np.sort(M, axis=0)),
    ("take_along(M, argsort(-M))", lambda M, **_: -np.sort(-M)),
    ("take_along(M, argsort(M, [0]), [0])", lambda M, **_: np.sort(M, axis=0)),
    (
        "put_along(M, argsort(M), [1, 4])",
        lambda M, **_: np.pad(
            np.take_along_axis(M, np.argsort(np.argsort(M)), 1), ((0, 0), (0, 1))
        ),
    ),
    ("convolve(M[0], M[1])", lambda M, **_: np.convolve(M[0], M[1])),
    ("correlate(M[0], M[1, :2])", lambda M, **_: np.correlate(M[0], M[1, :2])),
    ("rfft(M)", lambda M, **_: parts(np.fft.rfft(M))),
    ("rfft(M, [0])", lambda M, **_: parts(np.fft.rfft(M, axis=0))),
    ("fft(rfft(M), [0])", lambda M, **_: parts(np.fft.fft(np.fft.rfft(M), axis=0))),
    ("irfft(rfft(x), [0, 3])", lambda x, **_: np.fft.irfft(np.fft.rfft(x), 3)),
    ("cumsum(M)", lambda M, **_: M.cumsum()),
    ("linear_recurrence(v[1:], v)", lambda v, **_: recurrence(np, v[1:], v)),
    ("linear_recurrence(M[1:], M, [0])", lambda M, **_: recurrence(np, M[1:], M)),
    ("cumsum(M, [1])", lambda M, **_: M.cumsum(axis=1)),
    ("softmax(M)", lambda M, **_: scipy.special.softmax(M, axis=1)),
    ("softmax(M, [0])", lambda M, **_: scipy.special.softmax(M, axis=0)),
    ("log_softmax(x)", lambda x, **_: scipy.special.log_softmax(x)),
    ("log_softmax(M)", lambda M, **_: scipy.special.log_softmax(M, axis=1)),
    ("dot(x, y)", lambda x, y, **_: x @ y),
    ("M @ x", lambda M, x, **_: M @ x),
    ("x @ A", lambda A, x, **_: x @ A),
    ("matmul(M, A)", lambda M, A, **_: M @ A),
    ("outer(x, v)", lambda x, v, **_: np.outer(x, v)),
    ("solve(A, x)", lambda A, x, **_: np.linalg.solve(A, x)),
    ("inv(A)", lambda A, **_: np.linalg.inv(A)),
    ("det(A)", lambda A, **_: np.linalg.det(A)),
    ("cofactor(A)", lambda A, **_: np.linalg.det(A) * np.linalg.inv(A).T),
    ("logdet(A)", lambda A, **_: np.linalg.slogdet(A)[1]),
    ("cholesky(A)", lambda A, **_: scipy.linalg.cholesky(A, lower=True)),
    ("expm(A)", lambda A, **_: scipy.linalg.expm(A)),
    (
        "expm_frechet(A/8, outer(x, y))",
        lambda A, x, y, **_: scipy.linalg.expm_frechet(A / 8, np.outer(x, y), compute_expm=False),
    ),
    ("eigh(A @ transpose(A))[0]", lambda A, **_: np.linalg.eigvalsh(A @ A.T)),
    ("eigvalsh(A + transpose(A))", lambda A, **_: np.linalg.eigvalsh(A + A.T)),
    (
        "eigh(A + transpose(A))[1:]^2",
        lambda A, **_: scipy.linalg.eigh(A + A.T)[1] ** 2,
    ),
    ("svd(M)[2]", lambda M, **_: scipy.linalg.svdvals(M)),
    ("svdvals(M)", lambda M, **_: scipy.linalg.svdvals(M)),
    ("singular_values(M, svd(M))", lambda M, **_: scipy.linalg.svdvals(M)),
    ("eigenvalues(A, eigh(A))", lambda A, **_: np.linalg.eigvalsh((A + A.T) / 2)),
    ("qr(A)[:3]^2", lambda A, **_: scipy.linalg.qr(A)[0] ** 2),
    ("slogdet(-A)", lambda A, **_: np.stack(np.linalg.slogdet(-A))),
    ("pinv(M)", lambda M, **_: scipy.linalg.pinv(M)),
    ("matrix_rank(M)", lambda M, **_: np.linalg.matrix_rank(M)),
    ("trace(A)", lambda A, **_: np.trace(A)),
    ("diag(x)", lambda x, **_: np.diag(x)),
    ("diag(A)", lambda A, **_: np.diag(A)),
    ("diagonal(A)", lambda A, **_: np.diag(A)),
    ("transpose(M)", lambda M, **_: M.T),
    ("transpose(F, [1, 0, 3, 2])", lambda F, **_: F.transpose(1, 0, 3, 2)),
    ("reshape(M, [3, -1])", lambda M, **_: M.reshape(3, 2)),
    ("broadcast(x, [2, 3])", lambda x, **_: np.broadcast_to(x, (2, 3))),
    ("take(x, [2, 0, 2, -1])", lambda x, **_: x[[2, 0, 2, -1]]),
    ("concatenate(x, v, y)", lambda x, v, y, **_: np.concatenate([x, v, y])),
    ("concatenate(M, M*2, [1])", lambda M, **_: np.concatenate([M, M * 2], axis=1)),
    ("stack(x, y)", lambda x, y, **_: np.stack([x, y])),
    ("stack(x, y, [1])", lambda x, y, **_: np.stack([x, y], axis=1)),
    ("leaky_relu(x)", lambda x, **_: np.where(x > 0, x, 0.01 * x)),
    ("gelu(x)", lambda x, **_: x * scipy.special.ndtr(x)),
    ("sec(x)", lambda x, **_: 1 / np.cos(x)),
    ("csc(x)", lambda x, **_: 1 / np.sin(x)),
    ("cot(x)", lambda x, **_: 1 / np.tan(x)),
    ("csch(x)", lambda x, **_: 1 / np.sinh(x)),
    ("coth(x)", lambda x, **_: 1 / np.tanh(x)),
    ("asec(2 + x*x)", lambda x, **_: np.arccos(1 / (2 + x * x))),
    ("acsc(2 + x*x)", lambda x, **_: np.arcsin(1 / (2 + x * x))),
    ("acot(x)", lambda x, **_: np.arctan(1 / x)),
    ("asech(1/(2 + x*x))", lambda x, **_: np.arccosh(2 + x * x)),
    ("acsch(x)", lambda x, **_: np.arcsinh(1 / x)),
    ("acoth(2 + x*x)", lambda x, **_: np.arctanh(1 / (2 + x * x))),
    ("mse(x, y)", lambda x, y, **_: np.mean((x - y) ** 2)),
    ("cross_entropy(x, [2])", lambda x, **_: -scipy.special.log_softmax(x)[2]),
    (
        "cross_entropy(M, [2, 0])",
        lambda M, **_: -np.mean(scipy.special.log_softmax(M, axis=1)[[0, 1], [2, 0]]),
    ),
    ("cross_entropy(x, y)", lambda x, y, **_: -y @ scipy.special.log_softmax(x)),
    ("layer_norm(M)", lambda M, **_: normal(M, 1)),
    ("layer_norm(M, x, y)", lambda M, x, y, **_: normal(M, 1) * x + y),
    ("batch_norm(M, x)", lambda M, x, **_: normal(M, 0) * x),
    ("conv2d(T, F)", lambda T, F, **_: correlated(T, F)),
    ("conv2d(T, F, v)", lambda T, F, v, **_: correlated(T, F) + v[:, None, None]),
    (
        "max_pool(T, [2])",
        lambda T, **_: T.reshape(1, 2, 2, 2, 2).max(axis=(2, 4)),
    ),
    ("take(M, [2, 0] along 1)", lambda M, **_: M[:, [2, 0]]),
    ("put(M, [3, 0, 3] along 1, [2, 5])", lambda M, **_: M @ np.eye(5)[[3, 0, 3]]),
    ("scatter(M at [:, 1:4], v at [1, ::4], [2, 5])", lambda M, v, **_: spread(M, v)),
    ("sum_in_order(x at [::2], v at [1:5:2])", lambda x, v, **_: x.sum() + v.sum()),
    ("is_maximum(M, [1])", lambda M, **_: np.arange(3) == M.argmax(axis=1)[:, None]),
    ("random_uniform(v)", lambda v, **_: random.uniform(0 * v)),
    ("random_uniform(v, [2, 3])", lambda v, **_: random.uniform(0 * v, (2, 3))),
    ("random_normal(v, [3])", lambda v, **_: random.normal(0 * v, 3)),
    ("random_keys(v, [3])", lambda v, **_: random.split(0 * v, 3)),
    ("x*[x[0], 2, v[1]]", lambda x, v, **_: np.array([x[0], 2, v[1]]) * x),
    ("([[1, 2], [v[0], 4], [5, 6]]) @ v", lambda v, **_: np.array([[1, 2], [v[0], 4], [5, 6]]) @ v),
    ("([x, 2*x, sin(x)])", lambda x, **_: np.stack([x, 2 * x, np.sin(x)])),
    ("relu(M @ x + v)", lambda M, x, v, **_: np.maximum(M @ x + v, 0)),
]
EACH = for_each(("program", "expected"), EXPECTED, ids=[e for e, _ in EXPECTED])


def test_every_word_is_tested() -> None:
    written = " ".join(program for program, _ in EXPECTED)
    assert all(f"{word}(" in written for word in CALLS)


@EACH
def test_a_word_computes_what_numpy_does(program: str, expected: Callable[..., Any]) -> None:
    function = parse(DECLARED + program)
    found = function(**VALUES)
    truth = expected(**VALUES)
    assert function.output_shapes == (np.shape(truth),) == (np.shape(found),)
    np.testing.assert_allclose(found, truth, rtol=1e-13, atol=1e-14)


@EACH
def test_printing_and_parsing_give_the_same_function(
    program: str, expected: Callable[..., Any]
) -> None:
    function = parse(DECLARED + program)
    assert parse(text(function)) == function
    assert latex(function)


@EACH
def test_the_place_of_every_operation_is_known(program: str, expected: Any) -> None:
    function = parse(DECLARED + program)
    graph = function.graph
    for node in range(len(graph)):
        if graph.primitive(node) is not None:
            span = graph.span(node)
            assert span is None or span[0] >= len(DECLARED)
    span = graph.span(function.outputs[0])
    assert span is not None
    assert graph.text is not None
    assert graph.text[slice(*span)] in program


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("2 * x @ y", "2*x @ y"),
        ("2 * (x @ y)", "2*(x @ y)"),
        ("x @ A @ y", "x @ A @ y"),
        ("x @ (A @ y)", "x @ (A @ y)"),
        ("x @ -y", "x @ -y"),
        ("-x @ y", "-x @ y"),
        ("(x + y) @ A", "(x + y) @ A"),
        ("x @ y ^ 2", "x @ y^2"),
    ],
)
def test_matmul_binds_as_a_product(written: str, printed: str) -> None:
    function = parse(DECLARED + written)
    assert text(function).splitlines()[-1] == printed
    expected = eval(printed.replace("^", "**"), {}, VALUES)
    np.testing.assert_allclose(function(**VALUES), expected, rtol=1e-14)


def test_words_before_no_parenthesis_are_variables() -> None:
    function = parse("mean = 2*det; mean + norm")
    assert function.inputs == ("det", "norm")
    assert function(3.0, 1.0) == 7.0


@for_each(
    ("program", "message", "marked"),
    [
        ("W: [4, 3]; x: [4]; W @ x", "matmul cannot multiply the shapes (4, 3) and (4,)", "W @ x"),
        ("x @ y", "matmul cannot multiply the shapes () and ()", "x @ y"),
        ("x: [3]; sum(x, [1])", "sum along axis 1 of the shape (3,)", "sum(x, [1])"),
        (
            "x: [3]; y: [4]; 1 + mse(x, y)",
            "subtract cannot combine the shapes (3,) and (4,)",
            "mse(x, y)",
        ),
        ("A: [2, 3]; inv(A)", "inv takes square matrices, not the shape (2, 3)", "inv(A)"),
        (
            "A: [2, 2]; b: [3]; solve(A, b)",
            "solve cannot combine the shapes (2, 2) and (3,)",
            "solve(A, b)",
        ),
        (
            "x: [2]; y: [2, 2]; concatenate(x, y)",
            "concatenate cannot join the shapes (2,) and (2, 2)",
            "concatenate(x, y)",
        ),
        ("x: [6]; reshape(x, [4, -1])", "reshape cannot turn the shape (6,) into (4, -1)", None),
        (
            "x: [3]; take(x, [3])",
            "index 3 of take is outside an axis of size 3",
            "take(x, [3])",
        ),
        (
            "x: [1, 4, 4]; F: [1, 2, 2, 2]; conv2d(x, F)",
            "conv2d cannot combine the shapes (1, 4, 4) and (1, 2, 2, 2)",
            "conv2d(x, F)",
        ),
    ],
)
def test_a_mismatch_names_operation_shapes_and_place(
    program: str, message: str, marked: str | None
) -> None:
    with pytest.raises(ShapeError) as caught:
        parse(program)
    error = caught.value
    assert error.message == message
    assert error.span is not None
    assert marked is None or program[slice(*error.span)] == marked
    assert "^" in str(error)


def test_latex_of_a_layer() -> None:
    function = parse("W: [4, 3]; x: [3]; b: [4]; W @ (x + 1) + b")
    assert latex(function) == "W \\left(x + 1\\right) + b"


def test_languages_without_a_function_of_matrices_say_so() -> None:
    with pytest.raises(UnsupportedError, match="det"):
        c(parse("W: [3, 3]; det(W)"))


@pytest.mark.parametrize("written", ["x[2]", "x[ 2 ]", "x[-1]", "x[02]", "x[2:][0]"])
def test_an_element_is_one_node_however_it_is_written(written: str) -> None:
    function = parse(f"x: [3]\n(x[2] - {written}) + x[2]")
    assert function(x=[1.0, 2.0, 5.0]) == 5.0
    if ":" not in written:
        assert len(function.graph) == len(parse("x: [3]\n(x[2] - x[2]) + x[2]").graph)


def test_an_element_knows_its_place() -> None:
    text = "x: [3]\nx[1] + x[0]"
    graph = parse(text).graph
    spans = [graph.span(node) for node in range(len(graph)) if graph.primitive(node)]
    assert [text[slice(*span)] for span in spans if span] == ["x[1]", "x[0]", "x[1] + x[0]"]


@pytest.mark.parametrize("place", ["[1]", "[-1]"])
def test_an_element_of_a_list_is_what_is_written_there(place: str) -> None:
    function = parse(f"t = [x, y]; f = [x*y, x*t{place}, (t[0] + t[1])*y]")
    assert str(function) == "f = [x*y, x*y, (x + y)*y]"
    assert index not in function.graph.primitives
    first, second, _ = function.graph.arguments(function.outputs[0])
    assert first == second


@pytest.mark.parametrize("wrong", ["x[3]", "y[0]", "x[0][0]", "W[2]", "W[0][2]"])
def test_an_element_that_is_not_there(wrong: str) -> None:
    with pytest.raises(ParseError):
        parse(f"x: [3]; W: [2, 2]\ny = x[0]\n{wrong}")


def test_elements_of_truths_are_numbers() -> None:
    function = parse("x: [3]\ny = x > 0\ny[0] + y[1] + y[0]")
    assert function(x=[1.0, 2.0, -1.0]) == 3.0


def test_the_derivative_of_a_determinant_holds_where_the_matrix_is_singular() -> None:
    written = text(parse("A: [2, 2]; cofactor(A)"))
    assert written == "A: [2, 2]\ncofactor(A)"
    assert "cofactor(A)" in text(gradient(parse("A: [2, 2]; det(A)")))
    singular = [[1.0, 2.0], [2.0, 4.0]]
    assert np.allclose(parse(written)(singular), [[4.0, -2.0], [-2.0, 1.0]])


def test_an_array_can_be_listed_inside_a_call() -> None:
    assert parse("det([[a, b], [c, d]])")(2.0, 3.0, 4.0, 7.0) == pytest.approx(2.0)
    y = parse("solve([[2, 0], [0, s]], [s, 2*s])")(0.5)
    assert y.tolist() == [0.25, 2.0]
    assert parse("norm([[a, b]])")(3.0, 4.0) == 5.0
    assert parse("max([x, y, z]) + sum([x, y])")(1.0, 2.0, 3.0) == 6.0
    assert parse("sum([[x, y], [1, 2]], [0])")(3.0, 4.0).tolist() == [4.0, 6.0]


@pytest.mark.parametrize(
    "code",
    [
        "A: [2, 2]; det(A)",
        "W: [2, 3]; x: [3]; logsumexp(W @ x)",
        "s: []; w: [3]; x: [2]; s*sum(w)*sum(x*x)",
        "x: [2]; w: [3]; sum(x)",
        "W: [2, 2]; sum(W)",
    ],
)
def test_a_gradient_by_arrays_is_text_that_the_language_reads(code: str) -> None:
    slope = gradient(parse(code))
    again = parse(text(slope))
    rng = np.random.default_rng(3)
    point = {
        name: rng.uniform(0.5, 2, shape)
        for name, shape in zip(slope.inputs, slope.input_shapes, strict=True)
    }
    assert np.allclose(again(**{name: point[name] for name in again.inputs}), slope(**point))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("fft(x)", "fft takes real and imaginary parts along the last axis"),
        ("rfft(x, [1])", "rfft along axis 1 of the shape"),
        ("rfft(x, [0, 2])", "rfft takes the axis, and 1 for the transposed map"),
        ("irfft(rfft(x))", "irfft takes the axis and the size"),
        ("irfft(rfft(x), [0, 8])", "irfft of 2 complex values gives 2 or 3 real ones, not 8"),
    ],
)
def test_wrong_integers_of_transforms_are_named(code: str, message: str) -> None:
    with pytest.raises((ParseError, ShapeError), match=message):
        parse(DECLARED + code)


def test_stacks_of_diagonal_matrices_are_read_back() -> None:
    """Of a matrix, `diag` is its diagonal; the gradient of a stack's trace makes matrices."""
    x = np.arange(8.0).reshape(2, 2, 2)
    f = dl.gradient(dl.trace(lambda x: np.sum(np.trace(x, 0, 1, 2) ** 2), x))
    assert dl.parse(str(f))(x).ravel().tolist() == [6.0, 0.0, 0.0, 6.0, 22.0, 0.0, 0.0, 22.0]
