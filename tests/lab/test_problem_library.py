"""The library of problems: its files against published numbers, mpmath and certified values."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.diagnose.point_check import checked_point, packed
from difflab.errors import InputError
from difflab.lab.problems.file import KINDS, Problem, element_names, read_header
from difflab.lab.problems.library import SETS, problem_sets
from difflab.referee.values import ExactValues
from tests.lab.problems.references import referenced
from tests.support.rows import for_each

MGH = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data" / "mgh.json").read_text())
}
EVERY = dl.problems()
NAMES = [one.name for one in EVERY]
SHARE = [one.name for one in EVERY if one.n <= 10][::12]
REFERENCE_DIGITS = 38  # of the 40 that the files state


def differences(one: Problem) -> list[list[mpmath.mpf]]:
    """Return the Jacobian at the start by central differences of mpmath values."""
    function = one.function
    values = ExactValues(function)
    point = packed(function, checked_point(function, one.start)).tolist()
    rows: list[list[mpmath.mpf]] = [[] for _ in range(one.m)]
    with mpmath.workdps(300):
        x = [mpmath.mpf(number) for number in point]
        for column, number in enumerate(x):
            step = mpmath.mpf(10) ** -80 * (abs(number) or 1)
            ahead = values([*x[:column], number + step, *x[column + 1 :]])
            behind = values([*x[:column], number - step, *x[column + 1 :]])
            for row in range(one.m):
                rows[row].append((ahead[row] - behind[row]) / (2 * step))
    return rows


@for_each("name", SHARE)
def test_references_are_those_of_mpmath_differences(name: str) -> None:
    one = dl.problem(name)
    elements = one.reference.elements
    for row, found in enumerate(differences(one), 1):
        with mpmath.workdps(60):
            scale = max(map(abs, found))
            for column, name in enumerate(element_names(one.function)):
                stated = elements.get((row, name), "0")
                if not stated[-1].isalpha():
                    error = abs(mpmath.mpf(stated) - found[column])
                    size = abs(found[column]) if stated != "0" else scale
                    assert error <= mpmath.mpf(10) ** -REFERENCE_DIGITS * size


def test_there_are_500_problems_and_each_states_its_terms() -> None:
    assert len(EVERY) >= 500
    assert len({one.formula for one in EVERY}) >= 400
    for one in EVERY:
        assert {"name", "source", "licence", "kind", "size", "start"} <= set(one.header), one.name
        assert one.kind in KINDS, one.name
        assert one.header["licence"] == problem_sets()[one.set].licence, one.name
        assert one.formula in NAMES, one.name
        assert re.fullmatch(r"[a-z0-9]+/[a-z0-9-]+", one.name)


def test_texts_differ() -> None:
    texts = [(re.sub(r"\s", "", one.text), str(one.start)) for one in EVERY]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("start", range(4))
def test_files_are_what_they_say(start: int) -> None:
    for one in EVERY[start::4]:
        function = one.function
        assert (function.n, function.m) == (one.n, one.m), one.name
        assert set(one.start) == set(function.inputs), one.name
        assert set(one.domain) <= set(function.inputs), one.name
        assert len(one.reference.value) == one.m, one.name
        assert {name for _, name in one.reference.elements} <= set(element_names(function))


@pytest.mark.parametrize("name", ["mgh/beale", "traps/abs", "ode/robertson", "nist/misra1a"])
def test_written_again_a_file_is_the_same(name: str) -> None:
    assert referenced(dl.problem(name)) == dl.problem(name).content


def test_moré_garbow_hillstrom_is_as_published() -> None:
    compared = 0
    for one in dl.problems(["mgh"]):
        number = int(re.search(r"problem (\d+)", one.header["source"])[1])
        case = MGH[f"mgh{number:02d}_x0"]
        if len(case["vars"]) != one.n:
            continue
        compared += 1
        truth = np.array([float(case["grad"][f"x{i}"]) for i in range(1, one.n + 1)])
        # Starts i/(n + 1) are rounded in several ways, and data are rounded to doubles.
        rtol = 2e-14 + 100 * float(case.get("const_rounding_sensitivity", 0.0))
        np.testing.assert_allclose(one.jacobian[0], truth, rtol=0, atol=rtol * abs(truth).max())
        assert float(one.reference.value[0]) == pytest.approx(float(case["value"]), rel=1e-13)
    assert compared == 35


@pytest.mark.parametrize("name", [one.name for one in dl.problems(["nist"])])
def test_nist_is_as_certified(name: str) -> None:
    """The certified parameters have 11 digits, so that their error is half of the last one."""
    one = dl.problem(name)
    function = one.function
    point = [one.certified[key] for key in function.inputs]
    values = ExactValues(function)
    with mpmath.workdps(60):
        found = values([mpmath.mpf(number) for number in point])[0]
    gradient = dl.gradient(function)(*point)
    hessian = dl.hessian(function)(*point)
    rounding = np.array([0.5 * 10.0 ** (np.floor(np.log10(abs(b))) - 10) for b in point])
    assert np.all(np.abs(gradient) <= np.abs(hessian) @ rounding)
    certified = Decimal(one.header["optimum"])
    last = Decimal("0.51") * Decimal(10) ** (certified.adjusted() - 10)
    moved = Decimal(float(rounding @ np.abs(hessian) @ rounding) / 2)
    assert abs(Decimal(mpmath.nstr(found, 30)) - certified) <= last + moved


def test_lanczos1_has_its_certified_residual() -> None:
    """With the decimal data taken exactly, and the parameters refined by Gauss and Newton."""
    one = dl.problem("nist/lanczos1")
    data = {name: re.search(rf"^{name} = \[(.*)\]", one.text, re.M)[1].split(", ") for name in "xy"}
    with mpmath.workdps(60):
        x, y = ([mpmath.mpf(text) for text in data[name]] for name in "xy")
        b = mpmath.matrix([one.certified[f"b{i}"] for i in range(1, 7)])

        def residual(b: mpmath.matrix) -> mpmath.matrix:
            terms = ((b[k], b[k + 1]) for k in (0, 2, 4))
            pairs = list(terms)
            return mpmath.matrix(
                [
                    v - sum(p * mpmath.exp(-q * u) for p, q in pairs)
                    for u, v in zip(x, y, strict=True)
                ]
            )

        for _ in range(4):
            columns = [
                part
                for k in (0, 2, 4)
                for part in (
                    [mpmath.exp(-b[k + 1] * u) for u in x],
                    [-b[k] * u * mpmath.exp(-b[k + 1] * u) for u in x],
                )
            ]
            J = mpmath.matrix(columns).T
            b += mpmath.lu_solve(J.T * J, J.T * residual(b))
        total = sum(value**2 for value in residual(b))
        assert mpmath.nstr(total, 8) == mpmath.nstr(mpmath.mpf(one.header["optimum"]), 8)


def test_solutions_have_the_stated_optimum() -> None:
    found = [one for one in EVERY if one.certified and one.set != "nist"]
    assert len(found) >= 8
    for one in found:
        value = float(one.function(**one.certified))
        assert value == pytest.approx(float(one.header["optimum"]), abs=1e-12), one.name


def test_no_value_is_below_the_stated_minimum() -> None:
    """Of functions of two inputs, on a grid over their ranges."""
    stated = [one for one in dl.problems(["global"], inputs=(2, 2)) if "optimum" in one.header]
    stated = [one for one in stated if one.domain]
    assert len(stated) >= 40
    for one in stated:
        axes = [np.linspace(*one.domain[name], 60) for name in one.function.inputs]
        values = one.function(*(side.ravel() for side in np.meshgrid(*axes)))
        optimum = float(one.header["optimum"])
        assert np.nanmin(values) >= optimum - 1e-6 * (1 + abs(optimum)), one.name


def test_filters() -> None:
    small = dl.problems(["mgh", "nist"], inputs=(2, 3))
    assert {one.set for one in small} == {"mgh", "nist"}
    assert {one.n for one in small} == {2, 3}
    assert {one.kind for one in dl.problems(kinds=["ode"])} == {"ode"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mgh/rosenbrok", "there is no problem 'mgh/rosenbrok'"),
        ("mgg/rosenbrock", "there is no set of problems 'mgg'"),
        ("../../secret", "there is no set of problems '..'"),
        ("mgh/../nist/misra1a", "there is no problem 'mgh/../nist/misra1a'"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        dl.problem(name)
    with pytest.raises(InputError, match="no kind of problem"):
        dl.problems(kinds=["odd"])


def test_a_list_reads_heads_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "content", property(lambda self: pytest.fail("read whole")))
    assert all(one.n and one.kind and one.title for one in dl.problems())


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mgh" / "beale.txt"
    path.parent.mkdir()
    path.write_text("# name: Beale\n# start: x1 = one\nx1^2\n", encoding="utf-8")
    one = Problem("mgh/beale", path, read_header(path))
    for what in ("start", "reference", "n"):
        with pytest.raises(InputError, match="mgh/beale"):
            getattr(one, what)


def test_compare_takes_a_name() -> None:
    result = dl.compare("problem:mgh/beale", methods=["reverse"], timing=False)
    assert result.agreed
    assert result.point == {"x1": 1.0, "x2": 1.0}
    np.testing.assert_allclose(result.methods[0].jacobian, dl.problem("mgh/beale").jacobian)


def test_sets_have_files_and_files_have_sets() -> None:
    folders = {path.name for path in SETS.iterdir() if path.is_dir()}
    assert folders == set(problem_sets())
