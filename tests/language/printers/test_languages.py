"""Printed code of every language, run where its compiler is found and held to the evaluator.

Every row of the table at its edges, random formulas, arrays, loops and their derivatives: all
functions of one kind are compiled together.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.errors import InputError, UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.repetition import rolled
from difflab.language import parse, printers
from tests.language.printers.test_code import functions, in_python, point_of, repeated
from tests.language.printers.test_javascript import POINTS, ULPS, assert_close, formulas
from tests.language.printers.test_statements import derived, start
from tests.primitives.test_spellings import SPELLED, assert_spelled, points
from tests.support.languages import (
    JAVASCRIPT,
    LANGUAGES,
    LIBRARIES,
    STAN,
    C,
    Language,
    OnDevice,
    Printer,
)
from tests.support.special_rows import OF_ORDERS

RUN = [*LANGUAGES, STAN]
EACH = pytest.mark.parametrize("language", RUN, ids=lambda language: language.name)
PRINTERS = [language.printer for language in RUN]
PRINTED = pytest.mark.parametrize("printer", PRINTERS, ids=lambda printer: printer.__name__)
GPU_ULPS = 64
"""CUDA's functions err by up to 2 units, `tgamma` by 10; formulas cancel some of their digits."""
REFUSED = {"CUDA": 5, "CUDA on a GPU": 5, "Stan": 6}
"""How many programs need an array that grows, or the type float32, which Stan has not."""


@pytest.fixture
def runs(language: Language) -> Language:
    """Return the language, if its compiler or interpreter is installed."""
    if not language.there:
        pytest.skip(f"needs {language.needed}")
    return language


SINGULAR = "root(x^2 - a, x, 1) + root(x^3 + b, x, 0) + root((x - c)^2, x, c)"
"""At a = 0 a double root, at b = 1 a first value of slope 0, and a solution of slope 0."""


@pytest.mark.parametrize("language", [*RUN, C, JAVASCRIPT], ids=lambda language: language.name)
def test_a_root_at_a_slope_of_0_is_nan(runs: Language, tmp_path: Path) -> None:
    whole = parse(SINGULAR)
    kinds = [whole, dl.gradient(whole), parse("root(x^2 - a, x, 1)")]
    at = [np.array([[0.0, 1.0, 0.3]])] * 2 + [np.array([[0.0], [4.0]])]
    sources = [runs.printer(each, f"call{k}") for k, each in enumerate(kinds)]
    *undefined, roots = runs.run(sources, kinds, at, tmp_path)
    assert all(np.all(np.isnan(each)) for each in undefined)
    assert np.isnan(roots[0, 0])
    assert roots[1, 0] == pytest.approx(2, rel=1e-15)


def test_a_root_at_a_slope_of_0_is_nan_in_python() -> None:
    names: dict[str, Callable[..., float]] = {}
    exec(printers.python(parse(SINGULAR)), names)
    assert np.isnan(names["f"](0.0, 1.0, 0.3))
    assert np.isnan(names["f"](4.0, 1.0, 0.3))
    assert np.isnan(names["f"](4.0, 0.0, 0.3))


def function_of(row: Primitive) -> Function:
    builder = Builder()
    inputs = [builder.input(name) for name in "abcd"[: row.arity]]
    return Function.build(builder, inputs, [builder.emit(row, inputs)], ["y"])


@EACH
def test_every_row_gives_the_kernels_value_at_its_edges(runs: Language, tmp_path: Path) -> None:
    rows = [row for row in SPELLED.values() if runs.prints(function_of(row))]
    at = [points(row) for row in rows]
    found = runs.values([function_of(row) for row in rows], at, tmp_path)
    for row, each, values in zip(rows, at, found, strict=True):
        assert_spelled(row, each, values[:, 0].tolist(), runs.name)


@EACH
def test_two_hundred_formulas_are_within_four_ulp_of_python(runs: Language, tmp_path: Path) -> None:
    texts = [text for text in formulas() if runs.name != "Stan" or "float32" not in text]
    programs = [parse(text) for text in texts]
    at = [np.array(POINTS)[:, : function.n] for function in programs]
    found = runs.values(programs, at, tmp_path)
    for function, text, values in zip(programs, texts, found, strict=True):
        ulps = GPU_ULPS if isinstance(runs, OnDevice) else ULPS
        assert_close(values, [in_python(function, point) for point in POINTS], text, ulps)


@pytest.mark.parametrize("language", [C, JAVASCRIPT, *RUN], ids=lambda language: language.name)
def test_exponents_of_derivatives_are_not_rounded(runs: Language, tmp_path: Path) -> None:
    """The error of 1e-8 - 1 in float64 costs 85 ULP at 1e-160."""
    exponents, points = [0.1, 1e-8, 0.3, -0.1], [1e-160, 0.7, 1e300]
    slopes = [dl.gradient(parse(f"x^{c!r}")) for c in exponents]
    found = runs.values(slopes, [np.array(points)[:, None]] * len(slopes), tmp_path)
    with mp.workdps(40):
        for c, values in zip(exponents, found, strict=True):
            truths = [float(mp.mpf(c) * mp.mpf(x) ** (mp.mpf(c) - 1)) for x in points]
            np.testing.assert_allclose(values[:, 0], truths, rtol=2e-15, atol=0)


@EACH
def test_programs_arrays_loops_and_derivatives_agree(runs: Language, tmp_path: Path) -> None:
    cases = [(f, point_of(f)) for f in functions()] + [(f, np.array(start(f))) for f in derived()]
    printed = []
    for function, point in cases:
        if runs.prints(function):
            printed.append((function, point))
    assert len(cases) - len(printed) == REFUSED.get(runs.name, 0)
    found = runs.values([f for f, _ in printed], [point for _, point in printed], tmp_path)
    for (function, point), values in zip(printed, found, strict=True):
        message = f"{function.text}: {function.output_names}\n{runs.printer(function, 'f')}"
        np.testing.assert_allclose(
            values[0], function.values(point), rtol=1e-11, atol=1e-13, err_msg=message
        )


TRUTHS = (
    *("x > y", "x <= y", "x == y", "x != y", "[x > y, x*y, x < y]", "where(x > y, x < 0, y < 0)"),
    *("a: [3]; a > x", "a: [2,2]; [a == transpose(a), a > 0]"),
)
"""Functions whose outputs are truth values, at the points below."""
TRUTH_POINTS = np.array([0.5, -0.5, 0.5, 2.0, -0.5, 1.0]), np.array([0.25, 0.25, 1, -1, -1, 0.25])


def truths() -> list[Function]:
    def compared(x: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray, bool]:
        return np.logical_and(x > y, x < 1), np.logical_not(x == y), np.sum(x) > y

    return [*map(parse, TRUTHS), dl.trace(compared, np.ones(3), 1.0)]


ALSO = pytest.mark.parametrize(
    "language", [C, *RUN, JAVASCRIPT, *LIBRARIES], ids=lambda language: language.name
)


@ALSO
def test_truth_values_are_outputs(runs: Language, tmp_path: Path) -> None:
    programs = [function for function in truths() for _ in TRUTH_POINTS]
    at = [point[: function.n] for function in truths() for point in TRUTH_POINTS]
    found = runs.values(programs, at, tmp_path)
    for function, point, values in zip(programs, at, found, strict=True):
        assert values[0].tolist() == function.values(point).tolist(), str(function)


@ALSO
@pytest.mark.parametrize("text", ["x > y", "a: [3]; a > x"])
def test_the_code_of_one_comparison_is_complete(runs: Language, tmp_path: Path, text: str) -> None:
    function = parse(text)  # alone: nothing else defines what it calls
    point = TRUTH_POINTS[1][: function.n]
    (found,) = runs.values([function], [point], tmp_path)
    assert found[0].tolist() == function.values(point).tolist()


@EACH
def test_constants_that_are_not_finite_agree(runs: Language, tmp_path: Path) -> None:
    programs = [
        parse(text)
        for text in ("x + 1/0", "x*(0/0)", "max(x, -1/0)", "x + sqrt(2)", "x^0.5 + 2^0.5")
    ]
    masked = dl.trace(lambda x: np.sum(np.exp(x + np.array([0.0, -np.inf, 1.0]))), np.ones(3))
    every = [*programs, masked, dl.gradient(masked)]
    found = runs.values(every, [np.full(f.n, 0.3) for f in every], tmp_path)
    for function, values in zip(every, found, strict=True):
        expected = function.values(np.full(function.n, 0.3))
        np.testing.assert_allclose(values[0], expected, rtol=1e-14, err_msg=str(function))


@EACH
def test_large_arrays_are_computed(runs: Language, tmp_path: Path) -> None:
    n = 20_000
    function = dl.value_and_gradient(dl.trace(lambda x: np.sum(np.sin(x[1:]) * x[:-1]), np.ones(n)))
    if runs.name.startswith("CUDA"):
        with pytest.raises(UnsupportedError, match="a thread of CUDA"):
            runs.printer(function, "f")
        return
    x = np.linspace(0.0, 1.0, n)
    (found,) = runs.values([function], [x], tmp_path)
    expected = np.zeros(n)
    expected[:-1] += np.sin(x[1:])
    expected[1:] += np.cos(x[1:]) * x[:-1]
    np.testing.assert_allclose(found[0, 1:], expected, rtol=1e-13, atol=1e-15)


@EACH
def test_names_are_those_of_the_language(runs: Language, tmp_path: Path) -> None:
    function = parse("X + 2*x - θ*_a + end*do + for_*f0 + real*(sin_ + value)*i + y - t1/pi_ + é")
    point = np.arange(1.0, function.n + 1)
    (found,) = runs.values([function], [point], tmp_path)
    np.testing.assert_allclose(found[0], function.values(point), rtol=1e-14)


@PRINTED
def test_every_row_is_spelled(printer: Printer) -> None:
    for name, row in SPELLED.items():
        if name == "float32" and printer is printers.stan:  # Stan has one type of real numbers
            with pytest.raises(UnsupportedError, match="Stan has no function for 'float32'"):
                printer(function_of(row), "f")
        else:
            assert printer(function_of(row), "f")


@PRINTED
def test_a_row_without_a_spelling_is_refused(printer: Printer) -> None:
    assert "exp_remainder" in OF_ORDERS
    with pytest.raises(UnsupportedError, match="has no function for 'exp_remainder'"):
        printer(parse("exp_remainder(k, 0, x)"), "f")


@PRINTED
def test_the_function_has_the_name_that_is_given(printer: Printer) -> None:
    source = printer(parse("x*energy"), "energy")
    assert re.search(r"\benergy(\(| <- function\()", source)
    assert "energy_" in source  # the variable
    for name in ("a b", "1f", "_f", "", "f;", "exp"):
        with pytest.raises(InputError, match="cannot be the name of a function"):
            printer(parse("x"), name)


@PRINTED
def test_functions_are_defined_only_where_they_are_called(printer: Printer) -> None:
    assert len(printer(parse("exp(x)"), "f")) < len(printer(parse("logcosh(x)"), "f")) - 100
    source = printer(parse("sigmoid(x)"), "f")
    assert "sigmoid" in source
    assert "softplus" not in source


@PRINTED
def test_repetition_is_a_loop(printer: Printer) -> None:
    """A hundred thousand terms are as long as fifty thousand."""
    sizes = []
    for count in (50, 100):
        terms = " + ".join(f"sin(x[{k}])^2" for k in range(count))
        function = rolled(parse(f"x: [{count}]\n{terms}"), least=0)
        sizes.append(len(printer(function, "f").splitlines()))
    assert sizes[0] == sizes[1] < 40


def test_fortran_lines_are_short_enough() -> None:
    deep = "+".join(f"sin(x{k})*exp(y{k})*0.123456789012345{k}" for k in range(300))
    every = [parse(deep), dl.gradient(parse(deep)), *repeated(), *functions()]
    assert max(len(line) for f in every for line in printers.fortran(f).splitlines()) <= 132


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_kernel_is_one_of_cuda(tmp_path: Path) -> None:
    source = printers.cuda(dl.gradient(parse("log(x)*erf(y) + sigmoid(x*y)")), "f")
    (tmp_path / "f.cu").write_text(source, encoding="utf-8")
    subprocess.run(["nvcc", "-ptx", "f.cu"], cwd=tmp_path, check=True)
    assert ".entry" in (tmp_path / "f.ptx").read_text(encoding="utf-8")


def test_expressions_stay_short_enough_for_any_compiler() -> None:
    for program in (
        "-" * 5000 + "x",
        "+".join(["x", "y"] * 5000),
        "exp(" * 5000 + "x" + ")" * 5000,
    ):
        for printer in PRINTERS:
            source = printer(parse(program), "f")
            assert max(map(len, source.splitlines())) < 600


def test_stan_has_no_name_that_ends_in_two_underscores() -> None:
    source = printers.stan(
        parse("z = x*y; z_ = sin(z)*z; z__ = exp(z_)*z_; z__*cos(z__) + point*point_")
    )
    assert not re.search(r"\w__\b", source)


def test_functions_defined_for_stan_are_not_those_that_it_has() -> None:
    """Its compiler refuses a definition of ``digamma``, as of any function of its library."""
    source = printers.stan(parse("digamma(x) + logit(x)"))
    assert not re.search(r"real (digamma|logit)\(", source)
