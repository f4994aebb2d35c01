"""`Function.to_sympy`, and the packages that are attributes once they are asked for."""

import subprocess
import sys

import pytest
import sympy

import difflab as dl
from difflab.errors import UnsupportedError


def test_the_formula_in_sympy() -> None:
    x, y = sympy.symbols("x y", real=True)
    assert dl.parse("x*sin(y)/2").to_sympy() == x * sympy.sin(y) / 2
    found = dl.gradient(dl.parse("x^2*y")).to_sympy()
    assert [sympy.simplify(a - b) for a, b in zip(found, [2 * x * y, x**2], strict=True)] == [0, 0]
    with pytest.raises(UnsupportedError, match="array"):
        dl.parse("x: [3]; sum(x)").to_sympy()


def test_packages_are_imported_when_used() -> None:
    code = "import difflab as dl; dl.interop.__name__; dl.testing.check_gradient"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
