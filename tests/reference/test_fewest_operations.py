"""No derivative has more operations than CasADi's or FastDifferentiation.jl's.

An operation is counted as FastDifferentiation.jl counts it: a distinct node of the graph that is
neither an input nor a number, the function's own results that the derivative uses included. Its
ratios are printed to two or three digits, so a ratio passes when it rounds to what is printed or
less. The sizes behind the ratios are printed for the matrix function alone (2×2 to 20×20).
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import difflab as dl

DATA = json.loads((Path(__file__).parents[1] / "data" / "fewest_operations.json").read_text())
PUBLISHED, CASADI = DATA["fastdifferentiation"], DATA["casadi"]

TEXTS = {
    "seed": "ln(x1) + x1*x2 - sin(x2)",
    "wide": "exp(-x1^2/2)*sin(3*x2) + sqrt(x1*x1 + x2*x2 + 1)*log(1 + x1^2*x2^2)"
    " - tanh(x1*x2)/(2 + cos(x1 - x2)) + (x1 - x2)^3/(1 + x1^2)",
    "product of 40": "*".join(f"x{i}" for i in range(1, 41)),
    "logistic map, 8 times": "\n".join(
        ["l1 = x", *(f"l{i + 1} = 4*l{i}*(1 - l{i})" for i in range(1, 9)), "l9"]
    ),
    "nested sine, 40 times": "\n".join(
        ["v0 = x", *(f"v{i + 1} = sin(x + v{i})" for i in range(40)), "v40"]
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_gradients_take_no_more_than_casadi(case: str) -> None:
    assert dl.count(dl.gradient(dl.parse(TEXTS[case]))).operations <= CASADI[case]


def ratio(function: dl.Function) -> float:
    return dl.count(dl.jacobian(function)).operations / dl.count(function).operations


def rosenbrock(n: int) -> dl.Function:
    terms = (f"(1 - x[{i}])^2 + 100*(x[{i + 1}] - x[{i}]^2)^2" for i in range(n - 1))
    return dl.parse(f"x: [{n}]\n" + " + ".join(terms))


@pytest.mark.parametrize(("n", "place"), [(10, 0), (100, 1), (1000, 2)])
def test_rosenbrock(n: int, place: int) -> None:
    assert ratio(rosenbrock(n)) <= PUBLISHED["Rosenbrock"][place]


def matrices(n: int) -> dl.Function:
    """Return (A + B)(AB)ᵀ for n×n matrices, number by number."""
    square = [(i, j) for i in range(n) for j in range(n)]
    lines = [f"a: [{n}, {n}]", f"b: [{n}, {n}]"]
    for i, j in square:
        terms = " + ".join(f"a[{i}, {k}]*b[{k}, {j}]" for k in range(n))
        lines += [f"p{i}_{j} = {terms}", f"s{i}_{j} = a[{i}, {j}] + b[{i}, {j}]"]
    rows = (" + ".join(f"s{i}_{k}*p{j}_{k}" for k in range(n)) for i, j in square)
    return dl.parse("\n".join([*lines, f"[{', '.join(rows)}]"]))


@pytest.mark.parametrize(
    ("n", "place"), [(2, 0), (4, 1), (9, 2), pytest.param(20, 3, marks=pytest.mark.slow)]
)
def test_simple_matrix(n: int, place: int) -> None:
    assert ratio(matrices(n)) <= PUBLISHED["Simple matrix"][place]


def harmonics(order: int) -> dl.Function:
    """Return the real spherical harmonics of degrees below `order` by their recursions."""

    def function(x: object, y: object, z: object) -> tuple[object, ...]:
        sines, cosines = [0], [1]
        for _ in range(1, order):
            sine, cosine = sines[-1], cosines[-1]
            sines.append(x * cosine - y * sine)
            cosines.append(x * sine + y * cosine)
        legendre = {(0, 0): 1.0}
        found = []
        for degree in range(order):
            for m in range(degree + 1):
                if (degree, m) != (0, 0):
                    legendre[degree, m] = recursion(legendre, degree, m, z)
            for m in range(-degree, degree + 1):
                around = sines[-m] if m < 0 else cosines[m]
                found.append(norm(degree, abs(m)) * legendre[degree, abs(m)] * around)
        return tuple(found)

    return dl.trace(function, 0.1, 0.2, 0.3)


def recursion(legendre: dict[tuple[int, int], object], degree: int, m: int, z: object) -> object:
    if degree == m:
        return (1 - 2 * m) * legendre[m - 1, m - 1]
    if degree == m + 1:
        return (2 * m + 1) * z * legendre[m, m]
    left = (2 * degree - 1) / (degree - m) * z * legendre[degree - 1, m]
    return left - (degree + m - 1) / (degree - m) * legendre[degree - 2, m]


def norm(degree: int, m: int) -> float:
    if m == 0:
        return math.sqrt(2 * degree + 1 / (4 * math.pi))
    factorials = math.gamma(degree - m + 1) / math.gamma(degree + m + 1)
    return math.sqrt((2 * degree + 1) / 2 * math.pi * factorials)


@pytest.mark.parametrize(("order", "place", "digits"), [(5, 0, 1), (16, 1, 2), (51, 2, 1)])
def test_spherical_harmonics(order: int, place: int, digits: int) -> None:
    found = ratio(harmonics(order))
    assert round(found, digits) <= PUBLISHED["Spherical harmonics"][place]


def chebyshev(n: int) -> dl.Function:
    lines = ["t0 = 1", "t1 = x", *(f"t{i} = 2*x*t{i - 1} - t{i - 2}" for i in range(2, n + 1))]
    return dl.parse("\n".join([*lines, f"t{n}"]))


@pytest.mark.parametrize("n", [5, 10, 20, 30])
def test_chebyshev(n: int) -> None:
    """The orders of the published figures: 5 to 30."""
    assert round(ratio(chebyshev(n)), 1) <= PUBLISHED["Chebyshev"]


@pytest.mark.parametrize("n", [5, 30])
def test_the_derivative_of_chebyshev_polynomials(n: int) -> None:
    angle = np.linspace(0.3, 2.8, 7)
    expected = n * np.sin(n * angle) / np.sin(angle)  # Tₙ' = n Uₙ₋₁
    found = dl.jacobian(chebyshev(n))(np.cos(angle)).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
