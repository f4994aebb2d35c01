"""Variables named like a constant or a function: declared, or given a value."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Collection
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ParseError
from difflab.language.printers import c, latex, python
from difflab.language.scope import CONSTANTS, RESERVED, given_names
from difflab.primitives import by_spelling
from tests.support.rows import for_each


def test_the_thermal_voltage_in_units_of_a_volt() -> None:
    """e·φ/(k·T) of 1 V at 300 K is 38.68 (the CODATA values of e and k)."""
    point = {"e": 1.602176634e-19, "phi": 1.0, "k": 1.380649e-23, "T": 300.0}
    f = dl.parse("e*phi/(k*T)", variables=point)
    assert f.inputs == ("T", "e", "k", "phi")
    assert f(**point) == pytest.approx(38.6817, abs=1e-4)
    assert dl.parse("e*phi").inputs == ("phi",)  # Euler's number


@for_each("name", sorted(RESERVED))
def test_every_reserved_name_can_be_a_variable(name: str) -> None:
    f = dl.parse(f"3*{name}^2 + x", [name])
    assert f(**{name: 2.0, "x": 1.0}) == 13.0
    assert f.text == f"{name}: []; 3*{name}^2 + x"
    assert dl.parse(f.text) == f
    again = dl.parse(str(dl.gradient(f)))
    assert set(again.inputs) == {name, "x"}
    slope = dict(zip(f.inputs, np.ravel(again(**{name: 2.0, "x": 1.0})), strict=True))
    assert slope == {name: 12.0, "x": 1.0}


def test_a_function_is_one_where_it_is_called() -> None:
    f = dl.parse("gamma*gamma(x) + gamma (gamma)", ["gamma"])
    assert f(gamma=3.0, x=5.0) == 3 * 24 + 2
    with_array = dl.parse("max: [2]; max*max(max)")
    assert with_array(np.array([1.0, 3.0])).tolist() == [3.0, 9.0]
    both = dl.parse("mean + mean(x)")  # no reserved name
    assert both(mean=1.0, x=2.0) == 3.0


def test_names_that_the_text_does_not_use_are_ignored() -> None:
    f = dl.parse("x + 1", ["e", "pi", "x", "nothing"])
    assert (f.inputs, f.text) == (("x",), "x + 1")
    assert dl.parse("pi*e", ["e"])(e=2.0) == 2 * math.pi


def test_declared_inputs_hide_constants_also_in_loops() -> None:
    f = dl.parse("e: [2]; a = e[0]*e[1]; iterate(y = x; 2 times; y*a + pi)")
    expected = (3.0 * 6.0 + math.pi) * 6.0 + math.pi
    assert f(e=np.array([2.0, 3.0]), x=3.0) == pytest.approx(expected, rel=1e-15)
    loop = dl.parse("e: []; iterate(y = x; 2 times; y*e)")
    assert dl.parse(str(loop)).inputs == ("e", "x")
    assert dl.parse(str(dl.gradient(loop)))(3.0, 2.0).tolist() == [12.0, 9.0]
    assert dl.parse("xᵉ", ["e"])(e=3.0, x=2.0) == 8.0


def test_a_constant_beside_a_variable_of_its_name_is_printed_as_a_number() -> None:
    builder = dl.parse("[e, exp(1)*x]")
    with_variable = dl.trace(lambda e, x: builder(x=x)[0] * e * x, 1.0, 1.0)
    written = str(with_variable)
    assert repr(math.e) in written or "2.718281828459045" in written
    again = dl.parse(written)
    assert again(e=2.0, x=3.0) == pytest.approx(6 * math.e, rel=1e-15)


def test_traced_inputs_keep_their_names() -> None:
    f = dl.trace(lambda e, sin, x: e * x + dl.trace(lambda t: t, 1.0)(sin), 1.0, 2.0, 3.0)
    assert str(f).splitlines()[:2] == ["e: []", "sin: []"]
    again = dl.parse(str(f))
    assert again(e=2.0, sin=3.0, x=4.0) == 11.0


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a = e*x; e: []; a*e", "'e' is used before it is defined", 4),
        ("a = iterate(y = x; 2 times; y*e); e: []; a*e", "'e' is used before it is defined", 30),
        ("e: []; e: []; e", "'e' is defined twice", 7),
        ("e: []; iterate(e = x; 2 times; e)", "'e' is the constant", 15),
        ("e: []; e = 2; e", "'e' is the constant", 7),
        ("gamma = 2; gamma", "'gamma' is a function", 0),
    ],
)
def test_refusals_name_the_place(text: str, message: str, place: int) -> None:
    with pytest.raises(ParseError, match=re.escape(message)) as caught:
        dl.parse(text, ["e"] if text.startswith("e: []; e = ") else ())
    assert caught.value.span is not None
    assert caught.value.span[0] == place


def test_an_error_marks_the_text_as_it_was_given() -> None:
    with pytest.raises(ParseError) as caught:
        dl.parse("e*x + )", ["e"])
    assert (caught.value.text, caught.value.span) == ("e*x + )", (6, 7))


@pytest.mark.parametrize("variables", ["e", 3, [1], None])
def test_variables_are_a_collection_of_names(variables: Any) -> None:
    with pytest.raises(InputError, match="a collection of names"):
        dl.parse("e*x", variables)


def test_given_names_are_those_of_mappings() -> None:
    points: Collection[object] = ({"e": 1.0, 3: 2.0}, None, [1.0], {"x": (0, 1)})
    assert given_names(*points) == ["e", "x"]


def test_a_value_given_in_python_declares() -> None:
    point = {"e": 1.5, "gamma": 2.0, "x": 3.0, "pi": 0.5}
    text = "e*x^gamma + pi*gamma(x)"
    result = dl.compare(text, at=point, methods=["symbolic", "forward", "reverse"], timing=False)
    assert result.agreed
    slope = 3.0 * 3 + 0.5 * 2 * float(mpmath.digamma(3))
    expected = [9.0, 1.5 * 9 * math.log(3), 2.0, slope]
    np.testing.assert_allclose(result.methods[0].jacobian, [expected], rtol=1e-14)
    assert dl.parse(result.expression.text).inputs == ("e", "gamma", "pi", "x")
    over = dl.compare("e*x", over={"e": (1, 2)}, at={"x": 3}, points=5, methods=["forward"])
    assert over.agreed
    box = dl.enclose("e*x", at={"e": (2, 3), "x": 2})
    assert (float(box.value.lower), float(box.value.upper)) == pytest.approx((4.0, 6.0))
    assert dl.prove("e*x", {"e": (1, 2), "x": (1, 2)}).proved
    assert dl.stabilise("log(exp(e) + exp(x))", at={"e": 1.0, "x": 2.0}).function.n == 2


def test_code_computes_with_variables_of_every_such_name(tmp_path: Any) -> None:
    names = ["e", "pi", "gamma", "exp", "sin"]
    function = dl.parse("e*exp(pi) + gamma*gamma(exp) - sin*sin(e)", names)
    point = dict(zip(names, (1.5, 0.25, 2.0, 3.0, 0.7), strict=True))
    expected = 1.5 * math.exp(0.25) + 2.0 * 2.0 - 0.7 * math.sin(1.5)
    assert function(**point) == pytest.approx(expected, rel=1e-15)
    written: dict[str, Any] = {}
    exec(python(function), written)
    ordered = [point[name] for name in function.inputs]
    assert written["f"](*ordered) == pytest.approx(expected, rel=1e-15)
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is missing")
    source = tmp_path / "f.c"
    source.write_text(c(function), encoding="utf-8")
    library = tmp_path / "f.so"
    command = [compiler, "-std=c99", "-fPIC", "-shared", "-o", str(library), str(source), "-lm"]
    subprocess.run(command, check=True)
    numbers, result = (ctypes.c_double * 5)(*ordered), ctypes.c_double()
    ctypes.CDLL(str(library)).f(numbers, ctypes.byref(result))
    assert result.value == pytest.approx(expected, rel=1e-15)


def test_latex_tells_the_variable_from_the_constant() -> None:
    euler = dl.parse("e*x")
    assert latex(euler) == "e x"
    both = dl.trace(lambda e, x: e * euler(x), 1.0, 1.0)
    assert latex(both) == r"e \left(\mathrm{e} x\right)"


def test_the_reserved_names_are_constants_and_functions() -> None:
    assert set(CONSTANTS) <= RESERVED <= {*CONSTANTS, *by_spelling}
