"""What people type first: NumPy's names are read, other notations get a hint that helps."""

import math

import pytest

from difflab.errors import ParseError
from difflab.language import parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("np.sin(x)", math.sin(0.3)),
        ("math.exp(x) + 2*numpy.cos (x)", math.exp(0.3) + 2 * math.cos(0.3)),
        ("np.pi*x + math.e", math.pi * 0.3 + math.e),
        ("arcsin(x)", math.asin(0.3)),
        ("np.arctan2(x, 2)", math.atan2(0.3, 2)),
        ("np.arcsinh(x) + arccos(x)", math.asinh(0.3) + math.acos(0.3)),
        ("np.maximum(x, 0.5)", 0.5),
        ("absolute(-x)", 0.3),
    ],
)
def test_names_of_numpy_and_math_are_read(text: str, value: float) -> None:
    assert float(parse(text)(0.3)) == pytest.approx(value, rel=1e-15)


def test_a_module_is_a_variable_where_no_point_follows() -> None:
    assert parse("np*math").inputs == ("math", "np")
    with pytest.raises(ParseError):
        parse("np.x + 1")
    assert parse("arcsin*2").inputs == ("arcsin",)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("f(x) = x^2", "write the formula alone"),
        ("integral(x)", "no integrals"),
        ("x if x>0 else -x", "where(condition, a, b)"),
        ("power(x, 2)", "a^b"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert hint in str(caught.value)
