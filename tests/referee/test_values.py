"""Values that are computed again only where an input moved are the values."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import difflab as dl
from difflab.graph.interpreters import MpmathInterpreter
from difflab.referee.forms import by_nodes, referee_program
from difflab.referee.referee import refer
from difflab.referee.values import ExactValues

mp = mpmath.mp
TEXT = "s = x*y + z\nt = exp(x)*s\n[t + where(y > 0, log(y), z), s*z, cos(z)]"


@given(st.sets(st.integers(0, 2)), st.integers(20, 200))
def test_moved_points_are_evaluated_as_fresh_ones(moved: set[int], digits: int) -> None:
    f = dl.parse(TEXT)
    base = [mp.mpf(value) for value in (0.5, 1.25, -2.0)]
    values = ExactValues(f)
    with mp.workdps(digits):
        values(base)
        point = [x + mp.mpf(2) ** -40 if i in moved else x for i, x in enumerate(base)]
        assert values(point) == ExactValues(f)(point)
        assert values(base) == ExactValues(f)(base)


def test_only_reached_nodes_are_computed_again() -> None:
    values = ExactValues(dl.parse(TEXT))
    assert values.reached(0) == [0, 1]
    assert values.reached(1) == [0, 1]
    assert values.reached(2) == [0, 1, 2]


def test_arrays_are_flattened_in_order() -> None:
    values = ExactValues(dl.parse("x: [3]; [sum(x), x]"))
    assert [float(v) for v in values([mp.mpf(k) for k in (1, 2, 4)])] == [7, 1, 2, 4]


def test_precision_changes_recompute_everything() -> None:
    values = ExactValues(dl.parse("sqrt(x) + pi"))
    point = [mp.mpf(2)]
    for digits in (20, 60, 40):
        with mp.workdps(digits):
            assert values(point)[0] == mp.sqrt(2) + mp.pi


def test_magnitude_is_that_of_intermediate_values() -> None:
    values = ExactValues(dl.parse("(x + 1000) - x"))
    values([mp.mpf(3)])
    assert values.magnitude() == 1003.0


def rosenbrock(n: int, declared: bool) -> str:
    x = "x[{}]" if declared else "x{}"
    terms = (
        f"100*({x.format(i + 1)} - {x.format(i)}^2)^2 + (1 - {x.format(i)})^2" for i in range(n - 1)
    )
    return (f"x: [{n}]\n" if declared else "") + " + ".join(terms)


@pytest.mark.parametrize("declared", [True, False], ids=["an array", "numbers"])
def test_a_number_moves_its_terms_and_a_few_additions(
    declared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The referee's work on n terms is n times a cone of one term, not of all of them."""
    done = 0
    plain = MpmathInterpreter.operation

    def counted(self: MpmathInterpreter, row: Any) -> Any:
        compute = plain(self, row)

        def computed(*args: Any, **params: Any) -> Any:
            nonlocal done
            done += 1
            return compute(*args, **params)

        return computed

    monkeypatch.setattr(MpmathInterpreter, "operation", counted)
    n = 150
    x = np.linspace(0.5, 1.5, n)
    found = refer(dl.parse(rosenbrock(n, declared)), x.tolist(), timeout=100.0)
    assert found.status == "smooth"
    assert done < 2 * n * 60  # of 2 n values, each 9 n operations on all terms
    d = x[1:] - x[:-1] ** 2
    expected = np.zeros(n)
    expected[1:] += 200 * d
    expected[:-1] += -400 * x[:-1] * d - 2 * (1 - x[:-1])
    np.testing.assert_allclose(found.jacobian[0], expected, rtol=1e-12, atol=1e-12)


def test_numbers_of_an_array_move_alone() -> None:
    values = ExactValues(dl.parse("x: [3]; [x[0]*x[1], sum(x)*x[2], sin(x[2])]"))
    assert values.reached(0) == [0, 1]
    assert values.reached(1) == [0, 1]
    assert values.reached(2) == [1, 2]
    base = [mp.mpf(k) for k in (1, 2, 4)]
    assert [float(v) for v in values(base)[:2]] == [2, 28]
    assert [float(v) for v in values([base[0], mp.mpf(3), base[2]])[:2]] == [3, 32]
    assert [float(v) for v in values([base[0], base[1], mp.mpf(5)])[:2]] == [2, 40]
    assert [float(v) for v in values(base)[:2]] == [2, 28]


def test_magnitude_is_that_of_the_sums_as_they_are_written() -> None:
    """From the first to the last they reach 40,000; in pairs 2,000 and -2,000 cancel early."""
    values = ExactValues(dl.parse(" + ".join(["x*1000"] * 40) + "".join([" - x*1000"] * 40)))
    assert values([mp.mpf(1)]) == [0]
    assert values.magnitude() == 40_000.0


@pytest.mark.parametrize(
    "text",
    [
        "x: [4]; sum(sin(x)*x)",
        "x: [4]; prod(x) + mean(x)*pi - 0.1",
        "x: [4]; A: [2, 4]; B = A*2; B @ x",
        "x: [4]; [max(x), x[1:3], norm(x)]",
        "x: [4]; y = reshape(x, [2, 2]); y @ y",
        "x: [4]; softmax(x)",
        "x: [4]; where(x > 2, log(x), x)",
    ],
)
def test_arrays_taken_apart_have_the_values_of_the_arrays(text: str) -> None:
    """The same values in every place, at the point and with one input moved."""
    f = dl.parse(text)
    values = ExactValues(f)
    plain = ExactValues(f)
    plain._program = by_nodes(f)
    plain._arrays = True
    plain._inner = f
    plain._sizes = {
        place: plain._size(place, step.row) for place, step in plain._program.steps.items()
    }
    plain._code = {
        place: (plain._interpreter.operation(step.row), step.args, step.params)
        for place, step in plain._program.steps.items()
    }
    with mp.workdps(50):
        base = [mp.mpf(1.25) * k for k in range(1, f.n + 1)]
        close(values(base), plain(base))
        for i in range(f.n):
            point = [*base]
            point[i] += mp.mpf(2) ** -60
            close(values(point), plain(point))
        close(values(base), plain(base))


def close(found: list[Any], expected: list[Any]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert abs(a - b) <= mp.mpf(10) ** -45 * (1 + abs(b))


def test_a_term_of_a_thousand_costs_a_few_steps() -> None:
    steps = referee_program(dl.parse("x: [1000]; sum(sin(x)*x)"))
    assert max(len(steps.reach([i])) for i in range(1000)) <= 2 + 10  # log2(1000) additions
    assert not steps.shapes


def test_constants_of_a_program_on_numbers_are_exact() -> None:
    values = ExactValues(dl.parse("x: [2]; sum(x)/3 + pi + 0.1"))
    with mp.workdps(60):
        found = values([mp.mpf(1), mp.mpf(1)])[0]
        assert found == mp.mpf(2) / 3 + mp.pi + mp.mpf(0.1)


def test_a_thousand_inputs_are_judged_every_one() -> None:
    x = np.linspace(0.5, 1.5, 1000)
    found = refer(dl.parse("x: [1000]; sum(sin(x)*x)"), x.tolist(), timeout=1000.0)
    assert (found.judged, found.components, found.status) == (1000, 1000, "smooth")
    np.testing.assert_allclose(found.jacobian[0], np.sin(x) + x * np.cos(x), rtol=1e-15)
    assert found.evaluations < 2 * 1000 + 50
    assert found.linear.all()


def test_a_diagonal_of_many_is_zero_elsewhere() -> None:
    x = np.linspace(0.5, 1.5, 300)
    found = refer(dl.parse("x: [300]; sin(x)"), x.tolist(), timeout=1000.0)
    np.testing.assert_allclose(found.jacobian, np.diag(np.cos(x)), rtol=1e-15)
    assert (found.regularity == "smooth").all()


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("K = [[2, s], [s, 3]]; logdet(K)", -2 * 0.5 / 5.75),
        ("K = [[2, s], [s, 3]]; det(K)", -1.0),
        ("K = [[2, 0], [0, s]]; v = [s, 2*s]; y = solve(K, v); y[0]", 0.5),
    ],
)
def test_a_matrix_of_scalars_is_one_of_numbers(text: str, slope: float) -> None:
    found = refer(dl.parse(text), [0.5])
    assert found.jacobian[0][0] == pytest.approx(slope, rel=1e-15)
