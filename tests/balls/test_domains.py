"""Ball arithmetic at the edges of domains: nan outside, the documented values on them."""

from __future__ import annotations

import math

import pytest

import difflab as dl
from difflab.errors import DomainError

OUTSIDE = {
    "gammainc(a, x)": [(-1.0, 1.0), (-1.5, 1.0), (0.0, 1.0), (1.0, -1.0)],
    "gammaincc(a, x)": [(-1.5, 1.0), (0.0, 1.0), (1.5, -1.0)],
    "beta(a, b)": [(-1.5, 1.0), (0.0, 1.0), (1.0, -0.5)],
    "betaln(a, b)": [(-1.5, 1.0), (-1.5, -0.2), (1.0, -0.5)],
    "betainc(a, b, x)": [(-1.5, 1.0, 0.5), (1.5, -1.0, 0.5), (1.5, 1.0, -0.5), (1.5, 1.0, 1.5)],
    "zeta(a, x)": [(2.0, -1.5), (0.5, 1.5), (1.0, 1.5)],
}
ZERO = {
    "entr(x)": [(0.0,)],
    "xlogy(x, y)": [(0.0, 0.0), (0.0, -1.0), (0.0, 2.0)],
    "xlog1py(x, y)": [(0.0, -1.0), (0.0, -3.0), (0.0, 2.0)],
}
INSIDE = [
    ("gammainc(a, x)", (2.0, 0.0), 0.0),
    ("gammaincc(a, x)", (2.0, 0.0), 1.0),
    ("beta(a, b)", (2.0, 3.0), 1 / 12),
    ("betainc(a, b, x)", (2.0, 1.0, 1.0), 1.0),
    ("zeta(a, x)", (2.0, 1.0), math.pi**2 / 6),
]


@pytest.mark.parametrize(("text", "points"), OUTSIDE.items())
def test_values_outside_of_the_domain_are_nan(text: str, points: list[tuple[float, ...]]) -> None:
    function = dl.parse(text)
    for point in points:
        assert math.isnan(dl.compile(function, target="exact")(*point)), point
        found = dl.enclose(function, dict(zip(function.inputs, point, strict=True)))
        assert math.isnan(float(found.value.lower)), point
        assert not found.smooth


@pytest.mark.parametrize(("text", "points"), OUTSIDE.items())
def test_the_referee_does_not_continue_functions_there(
    text: str, points: list[tuple[float, ...]]
) -> None:
    function = dl.parse(text)
    for point in points:
        at = dict(zip(function.inputs, point, strict=True))
        with pytest.raises(DomainError, match="is undefined at the point"):
            dl.compare(function, at=at, methods=["forward"])


@pytest.mark.parametrize(("text", "points"), ZERO.items())
def test_products_with_a_logarithm_are_0_where_the_factor_is(
    text: str, points: list[tuple[float, ...]]
) -> None:
    function = dl.parse(text)
    for point in points:
        assert dl.compile(function, target="exact")(*point) == 0.0, point


@pytest.mark.parametrize(("text", "point", "value"), INSIDE)
def test_edges_that_belong_to_the_domain_have_values(
    text: str, point: tuple[float, ...], value: float
) -> None:
    assert dl.compile(dl.parse(text), target="exact")(*point) == pytest.approx(value, rel=1e-15)
