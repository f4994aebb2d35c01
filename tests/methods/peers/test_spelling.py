"""Straight-line code for a library, without any library but the standard one and NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from difflab.errors import UnsupportedError
from difflab.language import parse
from difflab.methods.peers.spelling import (
    LibrarySpelling,
    RenamedModule,
    diagonal_matrix,
    take_by_index,
    written,
)


@pytest.mark.parametrize(
    ("text", "x", "wanted"),
    [
        ("ln(x1) + x1*x2 - sin(x2)", (2.0, 5.0), math.log(2) + 10 - math.sin(5)),
        ("-x^2/3", (3.0,), -3.0),
        ("where(x >= y, max(x, 1), y)", (0.5, 0.25), 1.0),
        ("log(2) + 0*x", (1.0,), math.log(2)),
    ],
)
def test_numbers(text: str, x: tuple[float, ...], wanted: float) -> None:
    (found,) = written(parse(text), LibrarySpelling(np))(*x)
    assert found == pytest.approx(wanted, rel=1e-15)


def test_numbers_alone_are_computed_in_the_library() -> None:
    (found,) = written(parse("2^0.5"), LibrarySpelling(np))()
    assert type(found) is np.float64
    assert found == pytest.approx(math.sqrt(2), rel=1e-15)


def test_a_batch_of_arrays() -> None:
    (found,) = written(parse("A: [2, 2]; x: [2]; sum(A @ x)"), LibrarySpelling(np))(
        np.array([np.eye(2), 2 * np.eye(2)]), np.array([[1.0, 2.0], [3.0, 4.0]])
    )
    assert found.tolist() == [3.0, 14.0]


def test_a_constant_output_is_what_the_library_takes() -> None:
    spelling = LibrarySpelling(np, lifted=lambda value: ("lifted", value))
    assert written(parse("7"), spelling)() == (("lifted", 7.0),)


def test_a_row_of_the_librarys_own_goes_first() -> None:
    (found,) = written(parse("sin(x)"), LibrarySpelling(np, {"sin": lambda x: 42}))(1.0)
    assert found == 42


def test_a_name_that_is_not_there_is_told() -> None:
    xp = RenamedModule("Mathlib", math, {})
    with pytest.raises(UnsupportedError, match="Mathlib has no function 'rint'"):
        written(parse("round(x)"), LibrarySpelling(xp))
    assert not hasattr(xp, "__path__")


def test_moves_that_every_library_derives() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert take_by_index(x, places=(2, 0), axis=-1, rank=1).tolist() == [[2, 0], [5, 3]]
    assert take_by_index(x, places=(1,), axis=-2, rank=2).tolist() == [[3, 4, 5]]
    assert diagonal_matrix(np.array([2.0, 3.0])).tolist() == [[2, 0], [0, 3]]
