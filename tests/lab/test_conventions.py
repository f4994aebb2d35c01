"""Values and derivatives at kinks in the packages' own functions, held to what others state."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from difflab.core.optional import installed
from difflab.errors import InputError
from difflab.lab.conventions.cases import FAMILIES, ConventionCase, PackageCode, cases, families
from difflab.lab.conventions.measure import CaseResult, Conventions, MeasuredPackage, measure
from difflab.methods.registry import peers
from difflab.report.conventions import csv, markdown, table

COLUMNS = {
    *("numpy", "jax", "torch", "autograd", "tensorflow", "pytensor", "tinygrad"),
    *("casadi", "symengine", "symforce", "difflab", "traced"),
}


def case(formula: str, *at: float) -> ConventionCase:
    (found,) = (each for each in cases() if each.formula == formula and each.at == at)
    return found


def answers(peer: str, *chosen: ConventionCase) -> list[Any]:
    pytest.importorskip(peer, exc_type=ImportError)
    found = measure([peer], chosen)
    return [result.answers for result in found.results if result.package == peer]


def test_every_case_has_code_for_known_packages() -> None:
    assert [family.name for family in families()] == list(FAMILIES)
    for each in cases():
        assert each.codes.keys() <= COLUMNS, each.formula
        assert 1 <= len(each.at) <= 2
    keys = [(each.formula, repr(each.at)) for each in cases()]
    assert len(keys) == len(set(keys))


def test_autograds_own_clip_has_slope_0_at_both_bounds() -> None:
    # `np.logical_and(ans != a_min, ans != a_max)`, autograd/numpy/numpy_vjps.py
    low, high = case("clip(x, 0, 1)", 0.0), case("clip(x, 0, 1)", 1.0)
    assert answers("autograd", low, high) == [((0.0,), (0.0,), (0.0,)), ((1.0,), (0.0,), (0.0,))]


def test_symengine_has_no_derivative_of_its_own_abs() -> None:
    ((value, first, second),) = answers("symengine", case("abs(x)", 0.0))
    assert value == (0.0,)
    assert first == second == "SymEngine has no derivative of abs(input0)"


def test_casadi_halves_a_tie() -> None:
    # CasADi's documentation of fmax: the derivative at a tie is that of both, halved.
    assert answers("casadi", case("max(x, y)", 0.0, 0.0))[0][1] == (0.5, 0.5)


def test_a_function_that_the_package_lacks_is_named() -> None:
    found = answers("autograd", case("entr(x)", 0.0), case("softplus(x)", -800.0))
    for each in found:
        assert all("autograd has no such function" in answer for answer in each)


def test_a_case_that_ends_the_process_is_a_reason_and_the_next_one_runs() -> None:
    pytest.importorskip("autograd", exc_type=ImportError)
    fatal = "__import__('os')._exit(3) if hasattr(x, 'vspace') or hasattr(x, '_node') else x"
    ends = ConventionCase(
        "kinks", "x", (2.0,), {"difflab": PackageCode("x"), "numpy": PackageCode(fatal)}
    )
    found = answers("autograd", ends, case("abs(x)", 0.0))
    assert found[0] == (
        (2.0,),
        "its process ended with exit code 3",
        "its process ended with exit code 3",
    )
    assert found[1] == ((0.0,), (0.0,), (0.0,))


def test_a_peer_that_is_missing_is_left_out_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("difflab.core.optional.installed", lambda _: False)
    monkeypatch.setattr("difflab.core.optional._distributed", lambda _: False)
    found = measure(None, [case("abs(x)", 0.0)])
    assert [package.name for package in found.packages] == ["difflab", "exact"]
    assert set(found.left_out) == set(peers())
    assert "pip install 'difflab[pytensor]'" in found.left_out["pytensor"]
    assert "left out: jax: jax is not installed; add it with:" in table(found, width=120)


def test_torch_compile_runs_only_where_it_is_named() -> None:
    if not installed("torch"):
        pytest.skip("needs torch")
    assert "compiled" in measure(None, []).left_out["torch-compile"]


def test_an_unknown_peer_is_an_error_that_names_a_similar_one() -> None:
    with pytest.raises(InputError, match="no peer 'torhc'") as caught:
        measure(["torhc"], [])
    assert caught.value.hint == "did you mean torch?"


def test_difflab_keeps_its_conventions() -> None:
    chosen = [case("clip(x, 0, 1)", 0.0), case("max(x, y)", 0.0, 0.0), case("sinc(x)", 0.0)]
    clip, tie, sinc = (result.answers for result in measure([], chosen).results)
    assert clip == ((0.0,), (1.0,), (0.0,))
    assert tie[1] == (0.0, 1.0)
    assert sinc[2] == pytest.approx((-(math.pi**2) / 3,))  # sinc = 1 - (pi x)^2/6 + ...


RECORD = Conventions(
    [
        MeasuredPackage("difflab", "difflab", "1"),
        MeasuredPackage("a", "A", "2"),
        MeasuredPackage("b", "B", "3"),
        MeasuredPackage("n", "N", "4", numeric=True),
    ],
    [
        CaseResult("difflab", "max(x, y)", (0.0, 0.0), "m", True, ((0.0,), (0.0, 1.0), (0.0,) * 4)),
        CaseResult("a", "max(x, y)", (0.0, 0.0), "f(x)", False, ((0.0,), (0.0, 1.0), (1e-17,) * 4)),
        CaseResult("b", "max(x, y)", (0.0, 0.0), "g", True, ((-0.0,), (0.5, math.nan), "no rule")),
        CaseResult("n", "max(x, y)", (0.0, 0.0), "h", True, ((0.0,), (1e-9, 1.00001), (0.0,) * 4)),
    ],
    {"c": "c is not installed"},
)


def test_packages_that_agree_share_a_row() -> None:
    lines = table(RECORD, width=80).splitlines()
    assert "max(x, y) at x = 0, y = 0" in lines
    assert "0      (0, 1)      0       difflab, A*, N" in lines
    assert "0      (0.5, nan)  -       B" in lines
    assert "* max(x, y) in A: f(x)" in lines
    assert "left out: c: c is not installed" in lines
    text = markdown(RECORD)
    assert "| max\\(x, y\\) at x = 0, y = 0 | 0 | \\(0, 1\\) | 0 | difflab, A\\*, N |" in text
    assert "|  | 0 | \\(0.5, nan\\) | - | B |" in text
    assert "b,3,True,g,-0.0,0.5 nan,no rule" in csv(RECORD)


def test_the_error_against_ball_arithmetic_is_shown() -> None:
    right, off = 1.2673772054237793, 1.2673772060383834  # trigamma(1.2), and PyTorch's
    digamma = case("digamma(x)", 1.2)
    results = [
        CaseResult(name, digamma.formula, digamma.at, "f", True, ("", (value,), ""))
        for name, value in (("exact", right), ("a", off), ("b", math.nextafter(right, 2)))
    ]
    text = markdown(replace(RECORD, results=results))
    assert "1.26738 \\(3e\\+06 ULP\\) | - | A |" in text
    assert "| 1.26738 | - | B |" in text


def test_a_record_is_read_back_and_merged() -> None:
    found = Conventions.from_dict(json.loads(RECORD.to_json()))
    assert repr(found) == repr(replace(RECORD, packages=list(found.packages)))
    fresh = Conventions(
        [MeasuredPackage("a", "A", "9")], [CaseResult("a", "abs(x)", (0.0,))], {"b": "gone"}
    )
    merged = fresh.merged(found)
    assert [(each.name, each.version) for each in merged.packages] == [
        ("a", "9"),
        ("difflab", "1"),
        ("b", "3"),
        ("n", "4"),
    ]
    assert [each.package for each in merged.results] == ["a", "difflab", "b", "n"]
    assert merged.left_out == {}
    with pytest.raises(InputError, match="not of the schema"):
        Conventions.from_dict({"schema": "difflab.comparison/1"})
