"""LaTeX: what the text says, escaped; a LaTeX engine reads it where one is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import difflab as dl
from difflab.report.comparison.formats import view
from difflab.report.latex import literal
from difflab.report.trace.text import latex as trace_latex

DOCUMENT = r"\documentclass{article}\begin{document}" "\n%s\n" r"\end{document}" "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v̄₋₁ = v̄₂ × x_1", r"$\bar{v}_{-1}$ = $\bar{v}_{2}$ $\times$ x\_1"),
        ("ẋ² ∂y/∂x", r"$\dot{x}^{2}$ $\partial$y/$\partial$x"),
        ("a_b^2 & {50 %} #1 $", r"a\_b\textasciicircum{}2 \& \{50 \%\} \#1 \$"),
        (
            r"\input{x} ~ <b> --",
            r"\textbackslash{}input\{x\} \textasciitilde{} "
            r"\textless{}b\textgreater{} {-}{-}",
        ),
        ("3 µs, é", r"3 $\mu$s, é"),
        ("&²", r"\&$^{2}$"),
        ("", ""),
    ],
)
def test_text_is_escaped_and_notation_is_mathematics(text: str, expected: str) -> None:
    assert literal(text) == expected


def typeset(body: str, where: Path) -> None:
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("pdflatex is not installed")
    (where / "page.tex").write_text(DOCUMENT % body, encoding="utf-8")
    done = subprocess.run(
        [engine, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=where,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]


def test_a_comparison_of_hostile_text_is_typeset(hostile: dict[str, Any], tmp_path: Path) -> None:
    hostile["expression"]["text"] = r"\input{/etc/passwd} $ & % ~ # ^^M"
    written = view(hostile).latex()
    assert r"\input" not in written
    assert r"\textbackslash{}input\{/etc/passwd\} \$ \& \% \textasciitilde{} \#" in written
    typeset(written, tmp_path)


def test_a_trace_is_typeset(tmp_path: Path) -> None:
    f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    written = trace_latex(f.trace({"x1": 2, "x2": 5}))
    assert r"f$ & $\ln\left(x_{1}\right) + x_{1} x_{2} - \sin\left(x_{2}\right)$" in written
    assert r"$\bar{v}_{3} = \bar{v}_{5} \, \partial v_{5}/\partial v_{3}$" in written
    assert r"$\dot{v}_{1} = \dot{v}_{-1} / v_{-1}$" in written
    assert "1.7163378145367738" in written
    typeset(written, tmp_path)
