"""`from_fpcore`: values against Python's own arithmetic, gradients, places of errors."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ParseError
from tests.support.rows import for_each

X, Y = 1.7, 0.6
CORES = [
    ("(- (sqrt (+ x 1)) (sqrt x))", math.sqrt(X + 1) - math.sqrt(X)),
    ("(let ([a (* x y)] [x 2]) (+ a x))", X * Y + 2),
    ("(let* ([x (* x y)] [x (+ x 1)]) (/ x y))", (X * Y + 1) / Y),
    ("(+ (let ([x 5]) x) x)", 5 + X),
    ("(if (< 0 y x 2) (pow x y) (exp x))", X**Y),
    ("(if (and (> x 0) (or (== y 0) FALSE)) 1 (fma x y 3))", X * Y + 3),
    ("(+ (hypot x y) (atan2 y x) (fmax x y) (fdim y x))", math.hypot(X, Y) + math.atan2(Y, X) + X),
    ("(! :precision binary64 (* PI (cbrt x) (tgamma y)))",
     math.pi * math.cbrt(X) * math.gamma(Y)),
    ("(- (* 1/3 x) (* 0x1p-2 1e-3 LN2) (- y))", X / 3 - 0.25e-3 * math.log(2) + Y),
    ("(/ 1 x y 4)", 1 / X / Y / 4),
    ("(+ (fmod (* 9 x) (- y)) (remainder (* 9 x) y) (copysign x (- y)))",
     math.fmod(9 * X, -Y) + math.remainder(9 * X, Y) - X),
    ("(+ (round 2.5) (* 10 (round -2.5)) (* 100 (nearbyint 2.5)) (* 1000 (fmax NAN x)))",
     3 - 30 + 200 + 1000 * X),
    ("(if (and (!= x y 1) (not (!= x y x)) (isfinite x) (isinf (/ 1 0))) 1 2)", 1),
    ("(+ (trunc (- x)) (fabs (- y)) SQRT2)", -1 + Y + math.sqrt(2)),
    ("(log1p (expm1 (erf x)))", math.erf(X)),
]  # fmt: skip


@for_each(("body", "value"), CORES, ids=[body for body, _ in CORES])
def test_values(body: str, value: float) -> None:
    text = f'(FPCore name (x y) :name "a name" :pre (< 0 x) {body}) ; a comment'
    assert float(dl.from_fpcore(text)(X, Y)) == pytest.approx(value, rel=1e-14)


def _float32(x: float) -> float:
    return float(np.float32(x))


SINGLE = [
    ("(+ x y)", lambda x, y: x + y),
    ("(- x y (* x y))", lambda x, y: x - y - x * y),
    ("(/ x y 3)", lambda x, y: x / y / np.float32(3)),
    ("(* 0.1 (sqrt x))", lambda x, y: np.float32(0.1) * np.sqrt(x)),
    ("(let ([z (* x x)]) (- (! :precision binary64 (* x x)) z))",
     lambda x, y: np.float32(float(x) * float(x) - float(x * x))),
    ("(if (< x y) (- y) (fabs x))", lambda x, y: -y if x < y else abs(x)),
    ("(/ 1/3 x)", lambda x, y: np.float32(1 / 3) / x),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code"), SINGLE, ids=[body for body, _ in SINGLE])
def test_binary32_rounds_every_result(body: str, code: Any) -> None:
    function = dl.from_fpcore(f"(FPCore (x y) :precision binary32 {body})")
    rng = np.random.default_rng(5)
    for x, y in rng.uniform(0.1, 3.0, (200, 2)):
        found = float(function(x, y))
        assert found == float(code(np.float32(x), np.float32(y)))


def test_contexts_reach_as_far_as_their_brackets() -> None:
    x = 1 / 3
    texts = {
        "(FPCore (x) (+ (! :precision binary32 (* x x)) (* x x)))": _float32(x * x) + x * x,
        "(FPCore (x) (! :precision binary32 (cast x)))": _float32(x),
        "(FPCore (x) (! :precision binary32 x))": x,  # a variable is not rounded, only results
        "(FPCore ((! :precision binary32 x)) (* x x))": _float32(x) ** 2,
        "(FPCore (x) :type binary32 (! :precision binary64 (* x x)))": _float32(x) ** 2,
        "(FPCore (x) (! :precision binary32 :round nearestEven (* x (! :precision real x))))":
            _float32(x * x),
    }  # fmt: skip
    for text, value in texts.items():
        assert float(dl.from_fpcore(text)(x)) == value, text


def test_the_derivative_of_a_rounded_result_is_that_of_the_exact_one() -> None:
    function = dl.from_fpcore("(FPCore (x) :precision binary32 (* x x))")
    assert dl.gradient(function)(3.0).tolist() == [6.0]


@pytest.mark.parametrize("precision", ["binary32", "binary64"])
def test_fma_is_rounded_once(precision: str) -> None:
    """Against exact fractions, at products and sums that cancel, tie and differ in size."""
    function = dl.from_fpcore(f"(FPCore (x y z) :precision {precision} (fma x y z))")
    rng = np.random.default_rng(11)
    kind = np.float32 if precision == "binary32" else np.float64
    eps = float(np.finfo(kind).eps)
    x, y = (1 + rng.uniform(-1, 1, 1500) * 2.0 ** rng.integers(-30, 30, 1500) for _ in range(2))
    x, y = x.astype(kind).astype(float), y.astype(kind).astype(float)
    z = -x * y * (1 + eps * rng.integers(-2, 3, 1500)) * rng.choice([1, 1, 0.5, 1e-9], 1500)
    # Ties of the product, which the addend decides.
    x[:500], y[:500] = 1 + eps * rng.integers(0, 9, 500), 1 + eps / 2 ** rng.integers(0, 2, 500)
    y[:500] = y[:500].astype(kind)
    z[:500] = rng.choice([-1, 1], 500) * 2.0 ** rng.integers(-120, -40, 500)
    # The sum is beside a tie, by far less than a last place of what is added to it.
    signs = rng.choice([-1.0, 1.0], (4, 500))
    x[500:1000] = (1 + signs[0] * eps) * eps / 2 * signs[1]
    y[500:1000] = 1 - signs[0] * eps * signs[2]
    z[500:1000] = 1 + signs[3] * eps * rng.integers(0, 9, 500)
    z = z.astype(kind).astype(float)
    found = np.asarray(function(x, y, z))
    for k in range(len(x)):
        exact = Fraction(x[k]) * Fraction(y[k]) + Fraction(z[k])
        assert found[k] == nearest(exact, kind), (x[k], y[k], z[k])
    x, y, z = 1 + 2.0**-30, 1 - 2.0**-30, -1.0
    assert np.allclose(dl.gradient(function)(1.5, 2.5, 3.0), [2.5, 1.5, 1.0], rtol=1e-15)
    assert float(function(np.inf, 1.0, 1.0)) == np.inf
    assert float(dl.compile(function)(x, y, z)) == (0.0 if kind is np.float32 else -(2.0**-60))


def nearest(exact: Fraction, kind: Any) -> float:
    """Return the number of a kind nearest to a fraction, ties to even."""
    if kind is np.float64:
        return float(exact)
    around = np.float32(float(exact))
    candidates = [np.nextafter(around, np.float32(-np.inf)), around]
    candidates.append(np.nextafter(around, np.float32(np.inf)))
    odd = [int(c.view(np.int32)) & 1 for c in candidates]
    gaps = [abs(Fraction(float(c)) - exact) for c in candidates]
    return float(candidates[min(range(3), key=lambda k: (gaps[k], odd[k]))])


def test_arguments_keep_their_order_and_get_names_of_the_language() -> None:
    function = dl.from_fpcore("(FPCore (x2 (! :precision binary32 x-1)) (/ x2 x-1))")
    assert function.inputs == ("x2", "x_1")
    assert dl.gradient(function)(3.0, 2.0).tolist() == [0.5, -0.75]
    assert np.isnan(dl.from_fpcore("(FPCore () NAN)")())


def test_depth_and_length_are_only_longer_inputs() -> None:
    depth = 20_000
    function = dl.from_fpcore(f"(FPCore (x) {'(sin ' * depth}x{')' * depth})")
    assert len(function.graph) == depth + 1
    nested = "(let ([x (* x 1.5)]) " * depth
    assert len(dl.from_fpcore(f"(FPCore (x) {nested}x{')' * depth})").graph) == depth + 2


WRONG = [
    ("(FPCore (x) :precision binary16 x)", "binary16", "does not compute in this precision"),
    ("(FPCore (x) (! :precision (float 8 32) x))", "(float", "not compute in this precision"),
    ("(FPCore (x) (! :round toZero (+ x 1)))", "toZero", "computes with :round nearestEven"),
    ("(FPCore (x x) x)", "x) x)", "two arguments are called x"),
    ("(FPCore (x) (* x 1/0))", "1/0", "is no number of float64"),
    ("(FPCore ((!)) 1)", "(!)", "expected one expression"),
    ("(FPCore (()) 1)", "()", "arguments that are numbers"),
    ("(FPCore (x) (frob x))", "frob", "does not read FPCore's 'frob'"),
    ("(FPCore (x) (while (< x 1) ([x 0 (+ x 1)]) x))", "while", "does not read FPCore's 'while'"),
    ("(FPCore (x) (sin x y))", "y", "'y' is neither"),
    ("(FPCore (x) (sin x x))", "(sin", "'sin' does not take 2 operands"),
    ("(FPCore (x) (+ x 1)", "(FPCore", "not closed"),
    ("(FPCore (x) (+ x 1]))", "]", "closes nothing"),
    ("(FPCore (x) x x)", "(FPCore", "expected one expression"),
    ("(FPCore ((A 3)) A)", "(A", "arguments that are numbers"),
    ("(FPCore (x) (let ((x)) x))", "(x)", "expected [name value]"),
    ("(FPCore (x) ((x)))", "((x))", "an operator is expected"),
    ("x", "x", "expected (FPCore"),
    ("(FPCore (x) x) (FPCore (y) y)", "(FPCore (y)", "more than one"),
    ('(FPCore (x) :name "a x)', '"', "a string is not closed"),
]


@for_each(("text", "place", "message"), WRONG, ids=[text for text, *_ in WRONG])
def test_errors_name_the_place(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as told:
        dl.from_fpcore(text)
    start, _ = told.value.span or (-1, -1)
    assert message in told.value.message
    assert text[start:].startswith(place), (text, start)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="takes a text, not int"):
        dl.from_fpcore(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="holds no FPCore"):
        dl.from_fpcore("; nothing")
