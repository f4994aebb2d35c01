"""C and Python: the printed functions run and give the function's values."""

import ctypes
import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.repetition import rolled
from difflab.language import parse
from difflab.language.printers import c, python
from difflab.primitives import by_spelling
from tests.support.languages import once
from tests.support.programs import programs
from tests.support.rows import failures, for_each
from tests.support.special_rows import FARTHER

COMPILER = shutil.which("cc")
NOT_THERE = FARTHER
PROGRAMS = [
    "ln(x1) + x1*x2 - sin(x2)",
    "a = x*x + y; a*a + sin(a)/a",
    "x^y - 2^-x + (-x)^2",
    "(x > y)*2 + where(not x < y and (y or x), 1, 2.5e-30)",
    "[-(-2) - -x, 1 - (2 - x), 8/(4/x), x > 0]",
    "min(x, y, 3)*max(x, -y)",
    "12345678901234567890*x + 1/3 + pi + e",
    "x: [3]; x[0] + x[-1]*x[1:][0] + sum(x[::-1])",
    "W: [4, 3]; x: [3]; W*x + 1 + sum(x)",
    "W: [4, 3]; [W[1], W[:, 1]*2, W[::-2, 1:], W]",
    "double*for_ + lambda + y - f*point",
    "θ + α1 + é",
    "[3, x]",
]
PLACES = np.random.default_rng(3).permutation(40).tolist()
REPEATED = [
    "x: [40]\n" + " + ".join(f"100*(x[{i + 1}] - x[{i}]^2)^2 + (1 - x[{i}])^2" for i in range(39)),
    " + ".join(f"x{i}*sin(x{place})*{i + 0.5}" for i, place in enumerate(PLACES)),
    "x: [40]\n"
    + " - ".join(f"where(x[{i}] > 0.6, sqrt(x[{p}]), x[{i}]^2)" for i, p in enumerate(PLACES)),
    "x: [8, 5]\n"
    + "\n".join(
        f"s{k} = " + " + ".join(f"{k + j / 7}*x[{k}, {j % 5}]^{1 + j % 3}" for j in range(35))
        for k in range(8)
    )
    + "\n"
    + " + ".join(f"sin(s{k})" for k in range(8)),
]
ARRAYS = [
    "x: [2, 3]; [transpose(x), diagonal(x[:, :2]), concatenate(x, x*2, [1])]",
    "x: [3]; [diag(x), take(x*x, [2, 0, 2]), concatenate(x, sin(x))]",
]
PRODUCTS = [
    "A: [2, 3]; B: [3, 4]; [A @ B, A[0] @ B, A @ B[:, 1], B[:, 0] @ B[:, 2]]",
    "W: [4, 3]; x: [3]; y: [4]; [dot(y, W @ tanh(x)), transpose(W) @ y, (W @ transpose(W)) @ y]",
    "W: [3, 3]; x: [3]; iterate(y = x; 5 times; tanh(W @ y + x))",
    "W: [3, 3]; x: [3]; iterate(y = x, u in W; z = W @ (u*y); sin(z), dot(z, u))",
    "W: [3, 3]; x: [3]; iterate(y = x; while dot(y, y) > 0.1; 0.2*W @ y)",
]
TABLE_CALLS = [
    f"{name}({', '.join('xyzw'[: row.arity])})"
    for name, row in by_spelling.items()
    if row.name not in NOT_THERE | {"sum"}
]
WITHOUT_SPELLING = "digamma"
"""The function whose derivative no language has."""


def functions() -> list[Function]:
    plain = [parse(program) for program in PROGRAMS + TABLE_CALLS]
    smooth = [f for f in plain if f.n and not (f.text or "").startswith(WITHOUT_SPELLING)]
    arrays = [parse(program) for program in ARRAYS]
    arrays += [dl.jacobian(f) for f in arrays]
    products = [parse(program) for program in PRODUCTS]
    stacks = (np.ones((2, 3, 4)), np.ones((2, 4, 2)), np.ones((4, 2)))
    products.append(dl.trace(lambda a, b, c: (a @ b, a @ c), *stacks))
    arrays += products + [dl.jacobian(f) for f in products]
    return plain + [dl.jacobian(f) for f in smooth] + arrays + repeated()


def repeated() -> list[Function]:
    """Return functions of many like terms, and their derivatives, on vectors of those terms."""
    vectors = [rolled(parse(program), least=0) for program in REPEATED]
    derivatives = [dl.value_and_gradient(f) for f in vectors] + [dl.hvp(vectors[0])]
    return vectors + derivatives


def point_of(function: Function) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a point inside every domain of the table."""
    rows = " ".join(row.name for row in function.graph.primitives)
    shift = 1.0 if "acosh" in rows else -1.0 if "log1mexp" in rows else 0.0
    return np.random.default_rng(7).uniform(0.3, 0.9, function.n) + shift


def in_python(function: Function, point: Sequence[float]) -> list[float]:
    namespace: dict[str, Any] = {}
    exec(python(function), namespace)
    arguments, start = [], 0
    for shape in function.input_shapes:
        size = math.prod(shape)
        part = list(point[start : start + size])
        arguments.append(part if shape else part[0])
        start += size
    result = namespace["f"](*arguments)
    parts = result if len(function.outputs) > 1 else (result,)
    return [float(v) for part in parts for v in (part if isinstance(part, list) else [part])]


def test_python_runs_and_agrees() -> None:
    every = functions()
    with failures(len(every)) as noted:
        for function in every:
            with noted(f"{str(function.text)[:80]} {function.output_names[0]}"):
                point = point_of(function)
                found, expected = in_python(function, point.tolist()), function.values(point)
                np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


@given(programs())
def test_random_programs_agree_in_python(program: str) -> None:
    function = parse(program)
    point = point_of(function)
    expected = np.asarray(function.values(point), dtype=float)
    try:
        result = np.array(in_python(function, point.tolist()))
    except (ArithmeticError, ValueError):
        # `math` raises where an array module gives nan or inf on the way.
        return
    defined = np.isfinite(expected)
    np.testing.assert_allclose(result[defined], expected[defined], rtol=1e-9, atol=1e-12)


def compiled(functions: Sequence[Function], folder: Path) -> ctypes.CDLL:
    """Compile functions f0, f1, … into one library; what several define is defined once."""
    sources = [c(function) for function in functions]
    shared, sources = once(sources)
    bodies = [source.replace("void f(", f"void f{k}(") for k, source in enumerate(sources)]
    (folder / "f.c").write_text("\n".join([*shared, *bodies]), encoding="utf-8")
    command = f"{COMPILER} -std=c99 -Wall -Werror -O1 -fPIC -shared -o f.so f.c -lm"
    subprocess.run(command.split(), cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "f.so"))


def in_c(folder: Path, function: Function, point: Sequence[float]) -> list[float]:
    library = compiled([function], folder)
    result = (ctypes.c_double * function.m)()
    library.f0((ctypes.c_double * function.n)(*point), result)
    return list(result)


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler called cc")
def test_c_compiles_without_a_warning_and_agrees(tmp_path: Path) -> None:
    every = functions()
    library = compiled(every, tmp_path)
    for number, function in enumerate(every):
        point = point_of(function)
        packed = (ctypes.c_double * function.n)(*point)
        result = (ctypes.c_double * function.m)()
        getattr(library, f"f{number}")(packed, result)
        expected = function.values(point)
        message = f"{function.text}: {function.output_names}"
        np.testing.assert_allclose(list(result), expected, rtol=1e-13, atol=1e-15, err_msg=message)


@pytest.mark.parametrize("printer", [c, python])
@pytest.mark.parametrize("program", ["exp_remainder(k, 0, x)", "cos_remainder(1, j, x)"])
def test_what_the_language_has_not_is_said(program: str, printer: Any) -> None:
    with pytest.raises(UnsupportedError, match="has no function for"):
        printer(parse(program))


@pytest.mark.parametrize("printer", [c, python])
def test_expressions_stay_short_enough_for_any_compiler(printer: Any) -> None:
    for program in (
        "-" * 5000 + "x",
        "+".join(["x", "y"] * 5000),
        "exp(" * 5000 + "x" + ")" * 5000,
    ):
        assert max(map(len, printer(parse(program)).splitlines())) < 400


def test_companions_are_printed_as_they_are_computed() -> None:
    gradient = dl.gradient(parse("asin(x) + ln(y)"))
    assert "1.0 / sqrt((1.0 - x) * (1.0 + x))" in python(gradient)
    assert "nan if y < 0.0 else 1.0 / y" in python(gradient)
    assert "y < 0.0 ? NAN : 1.0 / y" in c(gradient)


EDGES = [
    ("sigmoid(x)", (-40.0,), "exp(x)/(1 + exp(x))"),
    ("max(x, y)", (1.0, math.nan), "nan"),
    ("min(x, y)", (1.0, math.nan), "nan"),
    ("clip(x, 0, 1)", (math.nan,), "nan"),
    ("relu(x)", (math.nan,), "nan"),
    ("sign(x)", (math.nan,), "nan"),
    ("heaviside(x)", (math.nan,), "nan"),
    ("logaddexp(x, y)", (math.inf, math.inf), "inf"),
    ("mod(x, y)", (1e300, 3.0), "mpf(10.0**300) % 3"),
    ("derivative of logaddexp(x, 40)", (1.0,), "1/(1 + exp(39))"),
    ("derivative of ln(x)", (-2.0,), "nan"),
    ("derivative of log2(x)", (-2.0,), "nan"),
    ("derivative of log1p(x)", (-2.0,), "nan"),
    ("derivative of atanh(x)", (2.0,), "nan"),
    ("derivative of log1mexp(x)", (2.0,), "nan"),
    ("derivative of hypot(x, 0)", (0.0,), "mpf(0)"),
    ("derivative of sigmoid(x)", (-40.0,), "exp(x)/(1 + exp(x))**2"),
]


def edge_function(program: str) -> Function:
    function = parse(program.removeprefix("derivative of "))
    return dl.gradient(function) if program.startswith("derivative") else function


def check_edge(found: float, point: tuple[float, ...], exact: str) -> None:
    with mpmath.workdps(40):
        names = {"x": mpmath.mpf(point[0]), "exp": mpmath.exp, "mpf": mpmath.mpf}
        expected = float(eval(exact, {**names, "nan": math.nan, "inf": math.inf}))
    assert found == pytest.approx(expected, rel=1e-15, abs=0.0, nan_ok=True)


@for_each(("program", "point", "exact"), EDGES)
def test_printed_python_keeps_digits_and_nan(
    program: str, point: tuple[float, ...], exact: str
) -> None:
    try:
        (found,) = in_python(edge_function(program), point)
    except ValueError:
        found = math.nan  # as Python says that a function is undefined
    check_edge(found, point, exact)


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler called cc")
def test_printed_c_keeps_digits_and_nan(tmp_path: Path) -> None:
    every = [edge_function(program) for program, _, _ in EDGES]
    library = compiled(every, tmp_path)
    with failures(len(EDGES)) as noted:
        for k, (program, point, exact) in enumerate(EDGES):
            with noted(program):
                result = (ctypes.c_double * every[k].m)()
                getattr(library, f"f{k}")((ctypes.c_double * every[k].n)(*point), result)
                assert len(result) == 1
                check_edge(result[0], point, exact)


def test_what_is_not_used_is_not_defined() -> None:
    assert "def " not in python(parse("exp(x)")).removesuffix("def f(x):\n    return exp(x)")
    assert c(parse("max(x, 1)")).count("static double") == 1
    assert "static" not in c(parse("exp(x)"))


def test_repetition_is_written_as_loops() -> None:
    """Each of these texts has sums in order, tables or constants; none is written term by term."""
    for function in repeated():
        rows = {row.name for row in function.graph.primitives}
        assert rows & {"sum_in_order", "take", "put", "constant_array", "concatenate"}
        for printer in (c, python):
            assert printer(function).count("for ") < 60


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler called cc")
def test_large_arrays_are_not_on_the_stack(tmp_path: Path) -> None:
    """Twelve arrays of two million numbers are more than any stack has room for."""
    n = 2_000_000
    function = dl.value_and_gradient(dl.trace(lambda x: np.sum(np.sin(x[1:]) * x[:-1]), np.ones(n)))
    source = c(function)
    assert "calloc" in source
    assert "free(work)" in source
    assert "calloc" not in c(dl.gradient(parse("x: [40]; sum(sin(x[1:])*x[:-1])")))
    (tmp_path / "f.c").write_text(source, encoding="utf-8")
    command = f"{COMPILER} -std=c99 -Wall -Werror -O1 -fPIC -shared -o f.so f.c -lm"
    subprocess.run(command.split(), cwd=tmp_path, check=True)
    x, result = np.linspace(0.0, 1.0, n), np.empty(n + 1)
    pointers = [array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in (x, result)]
    ctypes.CDLL(str(tmp_path / "f.so")).f(*pointers)
    expected = np.zeros(n)
    expected[:-1] += np.sin(x[1:])
    expected[1:] += np.cos(x[1:]) * x[:-1]
    np.testing.assert_allclose(result[1:], expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(result[0], np.sum(np.sin(x[1:]) * x[:-1]), rtol=1e-11)
