"""`from_fpcore`: values against Python's own arithmetic, gradients, places of errors."""

from __future__ import annotations

import math

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
    ("(- (* 1/3 x) (* 0x1p-2 1e-3 LN2) (- y))", None),
    ("(+ (trunc (- x)) (fabs (- y)) SQRT2)", -1 + Y + math.sqrt(2)),
    ("(log1p (expm1 (erf x)))", math.erf(X)),
]  # fmt: skip


@for_each(("body", "value"), CORES, ids=[body for body, _ in CORES])
def test_values(body: str, value: float | None) -> None:
    text = f'(FPCore name (x y) :name "a name" :pre (< 0 x) {body}) ; a comment'
    if value is None:
        with pytest.raises(ParseError, match="'-' does not take 3 operands"):
            dl.from_fpcore(text)
        return
    assert float(dl.from_fpcore(text)(X, Y)) == pytest.approx(value, rel=1e-14)


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
