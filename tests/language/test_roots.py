"""``root(expression, x, start)``: read, printed back, differentiated, drawn, stepped, compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, ParseError, ShapeError, UnsupportedError

SYSTEM = "A: [2, 2]\nb: [2]\ny = root(A @ x + sin(x) - b, x, b)\nsum(y*y)"
NESTED = "root(t = x^2; t + t^3 - root(y^3 - a, y, 1), x, 1) + a"


def test_a_root_and_its_derivatives() -> None:
    f = dl.parse("root(x^2 - a, x, 1)")
    assert f.inputs == ("a",)
    assert f(2.0) == pytest.approx(np.sqrt(2), rel=1e-15)
    np.testing.assert_allclose(f(np.array([1.0, 4.0, 9.0])), [1, 2, 3], rtol=1e-14)
    assert str(dl.gradient(f)) == "gradient = [1/(2*root(x^2 - a, x, 1))]"
    assert dl.gradient(f, mode="forward")(4.0) == pytest.approx(0.25, rel=1e-15)
    assert dl.hessian(f)(4.0) == pytest.approx(-1 / 32, rel=1e-14)


def test_what_has_no_simple_root_is_nan() -> None:
    found = dl.parse("root(x^2 - a, x, 1)")(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(np.isnan(found), [True, True, False])


@pytest.mark.parametrize("text", ["root(x^2 - a, x, 1)", SYSTEM, NESTED, "root(x - a*x, x, a)"])
def test_text_is_printed_back(text: str) -> None:
    f = dl.parse(text)
    printed = str(f)
    assert str(dl.parse(printed)) == printed
    point = [2.0 + np.eye(2)[: len(s)][:, : s[-1] if s else 0].sum() * 0 + np.full(s, 0.5)
             + (np.eye(2) if s == (2, 2) else 0) for s in f.input_shapes]  # fmt: skip
    for g in (f, dl.gradient(f)):
        np.testing.assert_allclose(dl.parse(str(g))(*point), g(*point), rtol=1e-14)


def test_names_inside_are_local() -> None:
    f = dl.parse("x = 3*a; root(x^2 - a, x, 1) + x")
    assert f(4.0) == pytest.approx(2 + 12, rel=1e-15)
    assert dl.parse("root(x^2 - root, x, 1)")(4.0) == pytest.approx(2, rel=1e-15)


def test_a_system_by_its_linear_equations() -> None:
    a, b = np.array([[3.0, 1.0], [0.5, 4.0]]), np.array([1.0, 2.0])
    f = dl.parse("A: [2, 2]; b: [2]; root(A @ x - b, x, b)")
    np.testing.assert_allclose(f(a, b), np.linalg.solve(a, b), rtol=1e-14)
    found = dl.jacobian(f)(a, b)
    np.testing.assert_allclose(found[:, 4:], np.linalg.inv(a), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("root(x^2 - a, x)", "3 arguments, not 2"),
        ("root()", "3 arguments, not 0"),
        ("root(x^2 - a, 2, 1)", "name of the unknown"),
        ("root(x^2 - a, x, 1", "never closed"),
        ("root(x, x, [1, 2]", "never closed"),
        ("root(x^2 - a, pi, 1)", "constant"),
        ("root(x^2 - a; 3, x, 1)", "last definition of root"),
        ("root(x^2 - a, x, 1, 2)", "3 arguments, not 4"),
        ("root(x +, x, 1)", "expected"),
    ],
)
def test_mistakes_are_marked(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        dl.parse(text)
    assert caught.value.span is not None


def test_shapes_are_checked_and_depth_is_bounded() -> None:
    with pytest.raises(ShapeError, match="shape"):
        dl.parse("b: [2]; root(sum(x) - a, x, b)")
    deep = "1"
    for _ in range(60):
        deep = f"root(x - {deep}, x, 1)"
    with pytest.raises(DifflabError, match="inside one another"):
        dl.parse(deep)


def test_the_derivative_of_the_solution_is_proved() -> None:
    found = dl.enclose(dl.parse("root(x^2 - a, x, 1)"), at={"a": 2.0}, order=2)
    root = np.sqrt(2)
    assert found.smooth
    assert found.value.lower <= root <= found.value.upper
    np.testing.assert_allclose(found.jacobian.lower, [[0.5 / root]], rtol=1e-15)
    np.testing.assert_allclose(found.hessian.upper, [[-0.25 / root**3]], rtol=1e-15)
    box = dl.enclose(dl.parse("root(x^2 - a, x, 1)"), at={"a": (2.0, 2.1)})
    assert box.value.lower <= root
    assert box.value.upper >= np.sqrt(2.1)
    assert box.jacobian.lower[0, 0] <= 0.5 / np.sqrt(2.1)
    assert not dl.enclose(dl.parse("root(x^2 - a, x, 1)"), at={"a": 0.0}).smooth


def test_a_comparison_judges_the_solution() -> None:
    methods = ["forward", "reverse", "finite-central", "symbolic"]
    found = dl.compare("root(x^3 - a*x - 1, x, 2)", at={"a": 2.0}, methods=methods, timing=False)
    verdicts = {row.name: row.verdict for row in found.methods}
    assert verdicts["forward"] == verdicts["reverse"] == verdicts["finite-central"] == "agree"
    symbolic = next(row for row in found.methods if row.name == "symbolic")
    assert str(symbolic.status) == "unsupported"
    # x³ - a x - 1 = 0: x_a = x/(3x² - a) at the golden ratio.
    golden = (1 + np.sqrt(5)) / 2
    assert found.reference.jacobian[0][0] == pytest.approx(golden / (3 * golden**2 - 2), rel=1e-15)


def test_it_is_drawn_stepped_and_compiled() -> None:
    f = dl.parse("a*root(x^2 - a, x, 1)")
    assert "root" in f.draw().svg()
    assert "root" in str(f.trace({"a": 2.0}))
    for target in ("numpy", "native"):
        compiled = dl.compile(dl.gradient(f), target=target)
        np.testing.assert_allclose(compiled(4.0), [2 + 4 / 4], rtol=1e-14)


def test_c_takes_the_steps_and_gives_the_same(tmp_path: Path) -> None:
    from shutil import which

    from difflab.language.printers import c

    if which("cc") is None:
        pytest.skip("there is no C compiler")
    f = dl.parse("root(x^3 - a*x - 1, x, 2)")
    code: Any = c(dl.gradient(f))
    (tmp_path / "f.c").write_text(
        code + "\n#include <stdio.h>\nint main(void) { double x = 2, y; f(&x, &y);"
        ' printf("%.17g", y); return 0; }\n'
    )
    subprocess.run(["cc", "f.c", "-o", "f", "-lm"], cwd=tmp_path, check=True)
    run = subprocess.run([str(tmp_path / "f")], capture_output=True, text=True, check=True)
    assert float(run.stdout) == pytest.approx(dl.gradient(f)(2.0)[0], rel=1e-12)


def test_code_without_loops_says_so() -> None:
    from difflab.methods.peers.array_code import numpy_code

    with pytest.raises(UnsupportedError, match="no form of 'root'"):
        numpy_code(dl.parse("root(x^2 - a, x, 1)"))
