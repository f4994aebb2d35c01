"""Vertex elimination gives the Jacobian of the sweeps, with fewer products where paths meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import difflab as dl
from difflab.autodiff.engine.elimination import eliminate
from difflab.autodiff.engine.masked import resolved
from difflab.autodiff.engine.sweep import Sweep
from difflab.graph.function import Function
from difflab.testing.strategies import expressions, points

PLENTY = 1_000_000


def eliminated(function: Function, limit: int = PLENTY) -> Function | None:
    """Return every entry of the Jacobian as an output, by elimination alone."""
    sweep = Sweep(function)
    columns = {node: place for place, node in enumerate(function.input_nodes)}
    rows = eliminate(sweep, columns, function.outputs, limit)
    if rows is None:
        return None
    zero = sweep.builder.constant(0)
    numbers = [
        resolved(sweep.builder, row[column]) if column in row else zero
        for row in rows
        for column in columns.values()
    ]
    names = [f"entry{place}" for place in range(len(numbers))]
    return Function.build(sweep.builder, function.input_nodes, numbers, names)


@given(st.tuples(expressions(), expressions()), points())
def test_random_programs_agree_with_the_sweeps(
    texts: tuple[str, str], at: dict[str, float]
) -> None:
    program = f"u = {texts[0]}\n[u + x, ({texts[1]})*y*u, where(x < y, u*u, sin(u)), y]"
    function = dl.parse(program)
    point = [at[name] for name in function.inputs]
    found = eliminated(function)
    assert found is not None
    expected = dl.jacobian(function, "reverse")(*point).ravel()
    entries = np.array([float(entry) for entry in found(*point)])
    scale = max(1.0, float(np.max(np.abs(expected))))
    np.testing.assert_allclose(entries, expected, rtol=0, atol=1e-12 * scale)


def waist(n: int, m: int) -> Function:
    """Return m functions of one sum over n inputs: all paths lead through it."""
    terms = " + ".join(f"sin(x{i})*x{i}" for i in range(n))
    return dl.parse(f"w = {terms}\n[{', '.join(f'exp(w*{k + 2})*w' for k in range(m))}]")


@pytest.mark.parametrize(("n", "m"), [(6, 6), (12, 4), (4, 12)])
def test_paths_through_a_waist_are_multiplied_once(n: int, m: int) -> None:
    function = waist(n, m)
    # Beside the function's own: per input cos, a product and a sum; per output its slope in w
    # (a product and a sum, times exp's); and one product for each entry.
    bound = dl.count(function).operations + 3 * n + 4 * m + n * m
    assert dl.count(dl.jacobian(function)).operations <= bound
    for mode in ("forward", "reverse"):
        assert dl.count(dl.jacobian(function, mode)).operations > bound
    point = np.linspace(0.1, 0.4, n)
    np.testing.assert_allclose(
        dl.jacobian(function).values(point),
        dl.jacobian(function, "forward").values(point),
        rtol=1e-13,
    )


def test_elements_of_arrays_are_inputs() -> None:
    f = dl.parse("x: [3]\nw = x[0]*x[1]*x[-1] + x[2]\n[sin(w), exp(w), w*w, sqrt(w)]")
    x = [0.5, 2.0, 3.0]
    w, slope = 6.0, np.array([6.0, 1.5, 2.0])
    expected = np.outer([np.cos(w), np.exp(w), 2 * w, 0.5 / np.sqrt(w)], slope)
    np.testing.assert_allclose(dl.jacobian(f)(x), expected, rtol=1e-13)
    counts = [dl.count(dl.jacobian(f, mode)).operations for mode in ("auto", "forward", "reverse")]
    assert counts[0] < min(counts[1:])


def test_untaken_branches_are_zero() -> None:
    # sqrt has an infinite slope at 0; neither 0·∞ nor a sum with it may reach an entry.
    f = dl.parse("w = where(x > 0, sqrt(x), y) + max(sqrt(x), y)\n[w*y, sin(w), exp(w), w]")
    found = eliminated(f)
    assert found is not None
    entries = [float(entry) for entry in found(0.0, 2.0)]
    np.testing.assert_allclose(entries[::2], 0.0, atol=0)
    slopes = [4.0 + 2 * 2.0, 2 * np.cos(4.0), 2 * np.exp(4.0), 2.0]
    np.testing.assert_allclose(entries[1::2], slopes, rtol=1e-14)


def test_what_is_not_single_numbers_is_left_to_the_sweeps() -> None:
    f = dl.parse("x: [2]; y: []\nw = sum(x)*y\n[w, w*w, sin(w)]")
    assert eliminated(f) is None
    np.testing.assert_allclose(dl.jacobian(f)([1.0, 2.0], 3.0)[0], [3.0, 3.0, 3.0])


def test_it_gives_up_at_its_limit() -> None:
    function = waist(6, 6)
    assert eliminated(function, limit=len(function.graph) + 5) is None


def test_an_output_may_be_an_input_a_number_or_another_output_s_part() -> None:
    f = dl.parse("u = x*y\n[u, sin(u), x, 3, u]")
    found = eliminated(f)
    assert found is not None
    x, y = 2.0, 0.5
    expected = [y, x, y * np.cos(1.0), x * np.cos(1.0), 1, 0, 0, 0, y, x]
    np.testing.assert_allclose([float(v) for v in found(x, y)], expected, rtol=1e-15)


def test_a_hessian_shares_the_products_of_its_entries() -> None:
    n = 8
    function = dl.parse("*".join(f"x{i}" for i in range(n)))
    slope = dl.gradient(function)
    found = dl.count(dl.hessian(function)).operations
    assert found < 0.75 * dl.count(dl.jacobian(slope, "forward")).operations
    point = np.linspace(0.5, 2.0, n)
    expected = np.prod(point) / np.outer(point, point)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(dl.hessian(function).values(point).reshape(n, n), expected, 1e-14)
