"""MathML: well-formed, with the structure that a browser draws."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.interop.formats.mathml import mathml

SPACE = "{http://www.w3.org/1998/Math/MathML}"


def words(text: str) -> list[str]:
    """Return the marks on the page, in order."""
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SPACE}math"
    return [part.text or "" for part in root.iter() if part.text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x/2", "x2"),
        ("sin(alpha)^2", "sin(α)2"),
        ("where(x < y, 1, x)", "{1x<yxotherwise"),
        ("x*y", "x\u2062y"),
    ],
)
def test_marks(text: str, expected: str) -> None:
    assert "".join(words(mathml(dl.parse(text)))) == expected


def test_arrays_are_matrices_and_outputs_are_rows() -> None:
    gradient = ElementTree.fromstring(mathml(dl.gradient(dl.parse("x^2*y"))))
    assert len(list(gradient.iter(f"{SPACE}mtr"))) == 2
    jacobian = ElementTree.fromstring(mathml(dl.jacobian(dl.parse("w: [2]; w*x"))))
    assert len(list(jacobian.iter(f"{SPACE}mtd"))) == 6
    several = mathml(dl.parse("a = x + 1; [a, x^2]"))
    assert several.count("<mo>=</mo>") == 2
    assert "&" not in mathml(dl.parse("x*y")).replace("&lt;", "")


@pytest.mark.parametrize("text", ["iterate(y = x; while y > 1; y/2)", "root(x^3 - a, x, 1)"])
def test_a_loop_of_unknown_length_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match="number of steps of a loop depends on a variable"):
        mathml(dl.parse(text), tidy=False)
    with pytest.raises(UnsupportedError):
        mathml(dl.parse(text))
