"""What is read once is written where it is read: long sums are short code, without memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.function import Function
from difflab.graph.repetition import rolled
from difflab.language import parse
from difflab.language.printers import c, javascript, python
from tests.support.languages import LANGUAGES, C, Language

TERMS = 100_000


def as_an_array() -> Function:
    return parse(f"x: [{TERMS}]; sum(sin(x)*x)")


def term_by_term() -> Function:
    terms = " + ".join(f"sin(x[{k}])*x[{k}]" for k in range(1000))
    return rolled(parse(f"x: [1000]\n{terms}"), least=0)


@pytest.mark.parametrize("function", [as_an_array, term_by_term])
def test_a_hundred_thousand_terms_are_at_most_ten_lines_of_c(function: object) -> None:
    assert callable(function)
    f = function()
    for source in (c(f), c(dl.gradient(f))):
        assert source.count("\n") <= 11  # ten lines, one of them empty, and the comment
        assert source.count("for (") == 1
        assert "[1]" not in source
        assert "calloc" not in source


def test_what_is_read_twice_is_computed_once() -> None:
    source = c(dl.value_and_gradient(as_an_array()))
    assert source.count("sin(") == 1
    assert source.count("for (") == 4  # one of them where there is no memory


def test_an_element_that_is_read_often_is_computed_once() -> None:
    source = c(parse("x: [3]; W: [3, 3]; [W @ exp(x), outer(sin(x), x), take(cos(x), [0, 0, 1])]"))
    for name in ("exp", "sin", "cos"):
        assert f" = {name}(x[i]);" in source


def test_expressions_of_arrays_stay_short() -> None:
    program = "x: [5]; sum(" + "+".join(["sin(x)*x"] * 200) + ")"
    assert max(map(len, c(dl.value_and_gradient(parse(program))).splitlines())) < 400


@pytest.mark.skipif(not C.there, reason="needs gcc")
def test_loops_of_arrays_give_numpys_values(tmp_path: Path) -> None:
    """Sums along axes, parts, joins, copies and truth values, each of an expression."""

    def program(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        return [
            np.sum(np.exp(x) * x, axis=0),
            np.concatenate([np.sin(x[0]), -y, y[::-1] ** 2]),
            np.transpose(x + 1.0)[1:] * 2.0,
            np.where(x > y, x - (y - x), np.reshape(np.cos(x), (3, 2)).reshape((2, 3))),
            np.sum(x / y) - np.sum(y),
        ]

    point = np.random.default_rng(0).uniform(0.5, 2.0, 9)
    x, y = point[:6].reshape(2, 3), point[6:]
    function = dl.trace(program, x, y)
    (found,) = C.values([function], [point], tmp_path)
    wanted = np.concatenate([np.ravel(part) for part in program(x, y)])
    np.testing.assert_allclose(found[0], wanted, rtol=1e-14)


@pytest.mark.skipif(not C.there, reason="needs gcc")
def test_what_only_empty_arrays_read_is_not_written(tmp_path: Path) -> None:
    function = dl.trace(
        lambda x: [np.sum(np.sin(np.transpose(x)[:0, :0])), np.concatenate([x[0], x[0, 3:] * 2.0])],
        np.ones((3, 3)),
    )
    (found,) = C.values([function], [np.arange(9.0)], tmp_path)
    np.testing.assert_array_equal(found[0], [0.0, 0.0, 1.0, 2.0])


def empty_parts(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [x * 2.0, y + 1.0, dl.arrays.take(y, np.arange(0), 0)]


def test_outputs_without_elements_are_empty_lists() -> None:
    function = dl.trace(empty_parts, np.ones((2, 0)), np.ones(2))
    namespace: dict[str, Any] = {}
    exec(python(function), namespace)
    assert namespace["f"]([], [2.0, 3.0]) == ([], [3.0, 4.0], [])
    assert "return [[], t1, []];" in javascript(function)


@pytest.mark.parametrize("language", [C, *LANGUAGES], ids=lambda language: language.name)
def test_a_table_without_indices_is_not_written(language: Language, tmp_path: Path) -> None:
    if not language.there:
        pytest.skip(language.needed)
    function = dl.vjp(dl.trace(empty_parts, np.ones((2, 0)), np.ones(2)))
    (found,) = language.values([function], [[2.0, 3.0, 5.0, 7.0]], tmp_path)
    np.testing.assert_array_equal(found[0], [3.0, 4.0, 5.0, 7.0])


@pytest.mark.skipif(not C.there, reason="needs gcc")
def test_a_number_as_an_array_and_back_is_a_number(tmp_path: Path) -> None:
    function = dl.trace(lambda x: np.reshape(np.reshape(x**3, (1, 1)), ()) * 2.0, 1.5)
    (found,) = C.values(
        [
            function,
        ],
        [[1.5]],
        tmp_path,
    )
    assert found[0] == [6.75]
