"""Printed code of twenty formulas in every language, kept in files for reading.

After a change that is meant, ``python -m tests.language.printers.test_golden`` writes them anew:
read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import difflab as dl
from difflab.language import printers

FOLDER = Path(__file__).parent / "golden"
FORMULAS = [
    "x + y*exp(-x)/(1 + x^2)",
    "gradient of ln(x1) + x1*x2 - sin(x2)",
    "gradient of sqrt(x)*atan2(y, x)",
    "where(x > 0 and y < 1, x^y, relu(y - x))",
    "gradient of max(x, y)*min(x, 1)",
    "mod(x, y) + floor(x) - round(y)",
    "clip(x, -1, y)*sign(x)",
    "gradient of sigmoid(x)*softplus(y)",
    "logcosh(x)",
    "xlogy(x, y) + entr(x)",
    "erf(x)*gamma(y) + loggamma(x)",
    "digamma(x)",
    "e1(x)",
    "gradient of ndtr(x)",
    "erfinv(x)",
    "zeta(2, x)",
    "besselj(2, x) + besselk(0.5, x)",
    "gammainc(a, x)",
    "x: [3]; sum(tanh(x)*x)",
    "iterate(y = x; while y > 0.1; 0.5*y*cos(y))",
]
LANGUAGES = ["c", "cuda", "fortran", "javascript", "julia", "matlab", "python", "r", "rust", "stan"]


def printed(language: str) -> str:
    """Return the code of every formula, each behind a line that names it."""
    parts = []
    for text in FORMULAS:
        function = dl.parse(text.removeprefix("gradient of "))
        if text.startswith("gradient of "):
            function = dl.gradient(function)
        parts.append(f"==== {text}\n\n{getattr(printers, language)(function, 'f')}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_printed_code_is_what_was_read(language: str) -> None:
    assert printed(language) == (FOLDER / f"{language}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in LANGUAGES:
        (FOLDER / f"{name}.txt").write_text(printed(name), encoding="utf-8")
