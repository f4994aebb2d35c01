"""Functions of arrays as functions of numbers, against the arrays."""

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.explore.scalars import LARGEST, scalar_function
from difflab.graph.ir import FIRST_ROW
from difflab.language import parse


@pytest.mark.parametrize(
    "program",
    [
        "W: [4, 3]; x: [3]; sum(relu(W @ x))",
        "x: [4]; [sum(x[1:]*x[:-1]), mean(x), prod(x)]",
        "x: [2, 3]; [transpose(x)*2, cumsum(x[0]), x[1, ::-1]]",
        "iterate(y = x; 5 times; 4*y*(1 - y))",
        "x: [2]; layer_norm(x)",
        "[a*b, a > b, 3]",
    ],
)
def test_it_has_the_same_values_and_only_numbers(program: str) -> None:
    function = parse(program)
    scalars = scalar_function(function)
    point = np.random.default_rng(1).uniform(0.3, 0.9, function.n)
    np.testing.assert_array_equal(scalars.values(point), function.values(point))
    assert scalars.graph.element_count() == len(scalars.graph)
    assert all(row.shape is None for row in scalars.graph.primitives)
    assert scalars.n == function.n


def test_names_and_places_are_kept() -> None:
    scalars = scalar_function(parse("x: [2]\ns = x*x\ns[0] + s[1]"))
    assert sorted(scalars.graph.labels.values()) == ["s[0]", "s[1]"]
    assert str(scalars.graph.place(scalars.outputs[0])) == "line 3, column 1"
    assert scalars.inputs == ("x[0]", "x[1]")


def test_traced_code_works_as_well() -> None:
    function = dl.trace(lambda x: np.sum(np.sin(x) * x), np.ones(3))
    scalars = scalar_function(function)
    point = np.array([0.1, 0.2, 0.7])
    np.testing.assert_allclose(scalars.values(point), function.values(point), rtol=1e-15)


@pytest.mark.parametrize(
    ("program", "rows"),
    [
        ("x: [3]; max(x)", ["maximum", "maximum"]),
        ("x: [3]; norm(x)", ["hypot", "hypot"]),
        ("x: [1]; norm(x)", ["absolute"]),
        ("x: [3]; logsumexp(x)", ["logaddexp", "logaddexp"]),
        ("A: [2, 2]; det(A)", ["multiply", "multiply", "subtract"]),
        ("x: [2]; rfft(x)[1, 0]", ["subtract"]),
        ("x: [2]; sort(x)", ["less_equal", "not_equal", "logical_or", "where", "where"]),
        ("A: [1, 1]; cholesky(A)", ["add", "multiply", "sqrt"]),
    ],
)
def test_operations_on_arrays_are_written_as_in_a_textbook(program: str, rows: list[str]) -> None:
    graph = scalar_function(parse(program)).graph
    used = [graph.primitives[code - FIRST_ROW] for code in graph.opcode if code >= FIRST_ROW]
    assert [row.name for row in used] == rows


def test_no_minor_is_computed_twice() -> None:
    """A determinant of n rows by minors takes n·2ⁿ⁻¹ − n products or fewer: of 4 rows, 28."""
    graph = scalar_function(parse("A: [4, 4]; det(A)")).graph
    names = [graph.primitives[code - FIRST_ROW].name for code in graph.opcode if code >= FIRST_ROW]
    assert names.count("multiply") == 28


@pytest.mark.parametrize(
    ("program", "named"),
    [
        ("A: [2, 2]; sum(eigvalsh(A))", "'eigh' cannot"),
        ("A: [5, 5]; det(A)", "'det' is written out for up to 4 rows, not 5"),
        ("iterate(y = x; while y < 9; y*y + a)", "'while_loop'"),
    ],
)
def test_what_cannot_be_followed_is_named_with_its_place(program: str, named: str) -> None:
    with pytest.raises(InputError, match=named) as caught:
        scalar_function(parse(program))
    assert caught.value.span is not None
    assert "difflab trace" in str(caught.value)


def test_large_functions_are_refused() -> None:
    with pytest.raises(InputError, match=f"up to {LARGEST:,} operations"):
        scalar_function(parse("W: [200, 200]; x: [200]; sum(W @ x)"))
