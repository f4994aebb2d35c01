"""`dl.prove` and `difflab check --certificate`: proofs, planted faults, damaged certificates."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.autodiff import jacobian
from difflab.errors import InputError, UnsupportedError
from difflab.graph.function import Function
from difflab.proof import Certificate, certificate, proving
from difflab.proof.certificate import checked, leaves, read_certificate

TEXT = "exp(x)*y - sin(x*y)"
BOX = {"x": (0.5, 0.75), "y": (1, 1.125)}


@pytest.fixture(scope="module")
def proof() -> Certificate:
    found: Certificate = dl.prove(TEXT, BOX, width=0.01)
    return found


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("tanh(x)/(1 + x^2)", {"x": (0, 1)}),
        ("where(x > 0, sqrt(x), 0)", {"x": (0.5, 1)}),
        ("x: [2]; [max(x), x[0]*x[1]]", {"x": ([1, 2], [1.25, 2.25])}),
        ("exp2(x)*log2(x)", {"x": (1, 1.5)}),
    ],
)
def test_right_graphs_are_proved_and_the_proofs_hold_again(
    text: str, box: dict[str, Any], mode: str
) -> None:
    found = dl.prove(text, box, width=0.05, mode=mode)
    assert found.verdict == "proved"
    assert found.difference <= 0.05
    assert checked(found) == ""


def test_the_stated_bounds_hold_everywhere(proof: Certificate) -> None:
    slope = dl.gradient(dl.parse(TEXT))
    draw = np.random.default_rng(2)
    for (_, box), piece in zip(leaves(proof.box, proof.splits), proof.pieces, strict=True):
        x = [draw.uniform(low, high) for low, high in box]
        found = slope(*x)
        assert np.all(np.array(piece["lower"]) <= found + 1e-14)
        assert np.all(found - 1e-14 <= np.array(piece["upper"]))


def test_the_pieces_cover_the_box(proof: Certificate) -> None:
    pieces = [box for _, box in leaves(proof.box, proof.splits)]
    sizes = [np.prod([high - low for low, high in box]) for box in pieces]
    assert len(pieces) > 1
    assert sum(sizes) == pytest.approx(0.25 * 0.125, rel=1e-15)


def wrong_jacobian(function: Function, mode: str) -> Function:
    """Return the derivative of another function: one term has the wrong factor."""
    return jacobian(dl.parse("exp(x)*y - 1.1*sin(x*y)"), "reverse")


def test_a_wrong_derivative_is_refuted_at_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "jacobian", wrong_jacobian)
    found = dl.prove(TEXT, BOX, width=0.01)
    assert found.verdict == "refuted"
    right, wrong = jacobian(dl.parse(TEXT)), wrong_jacobian(dl.parse(TEXT), "")
    gap = np.max(np.abs(right(*found.point) - wrong(*found.point)))
    assert found.difference == pytest.approx(gap, rel=1e-12)
    assert "may differ by only" in checked(found)  # the right derivative does not differ there
    monkeypatch.setattr(certificate, "jacobian", wrong_jacobian)
    assert checked(found) == ""
    assert checked(replace(found, point=[9.0, 9.0])).startswith("point")
    assert checked(replace(found, difference=found.difference * 2)).startswith("difference")
    assert checked(replace(found, width=1.0)).startswith("verdict")
    assert checked(replace(found, splits={"": 0})).startswith("pieces")


def test_a_wrong_derivative_does_not_pass_the_check(
    proof: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "jacobian", wrong_jacobian)
    assert "the graph may differ by" in checked(proof)


def test_a_kink_in_the_box_is_undecided_and_named() -> None:
    found = dl.prove("2 + abs(x)", {"x": (-1, 2)})
    assert not found.proved
    assert found.verdict == "undecided"
    assert "kink in y: abs has a kink at 0" in found.reason
    assert "column 5" in found.reason
    assert "it proves nothing" in checked(found)


CHANGES = [
    ({"verdict": "refuted"}, "verdict"),
    ({"verdict": "refuted", "width": -1.0, "difference": 123.0}, "width"),
    ({"verdict": "undecided"}, "verdict"),
    ({"verdict": "certain"}, "verdict"),
    ({"text": "exp(x)*y - cos(x*y)"}, "pieces"),
    ({"text": "abs(x - 0.51)*y"}, "verdict: the function may not be smooth"),
    ({"text": "exp(x"}, "text"),
    ({"mode": "sideways"}, "mode"),
    ({"box": [(-2.0, 2.0), (1.0, 1.5)]}, "width"),
    ({"box": [(0.5, 0.75)]}, "box"),
    ({"box": [(0.5, 0.75), (1.0, math.nextafter(1.125, 2))]}, "pieces"),
    ({"width": 1e-9}, "width"),
    ({"width": 1.0}, "width"),
    ({"width": 0.0}, "width"),
    ({"width": math.nan}, "width"),
    ({"splits": {}}, "splits"),
    ({"pieces": []}, "splits"),
    ({"point": [0.5, 1.0]}, "point"),
    ({"difference": 123.0}, "difference"),
    ({"difference": 0.0}, "difference"),
    ({"reason": "so be it"}, "reason"),
    ({"bits": 53}, "bits"),
    ({"versions": {}}, "versions"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES)
def test_a_changed_field_does_not_hold_and_is_named(
    proof: Certificate, change: dict[str, Any], reason: str
) -> None:
    assert checked(replace(proof, **change)).startswith(reason)


def test_every_field_is_changed() -> None:
    fields = {name for change, _ in CHANGES for name in change}
    assert fields == {*Certificate.__dataclass_fields__} - {"schema"}


@pytest.mark.parametrize("end", ["lower", "upper", "difference"])
@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("direction", [-math.inf, math.inf])
def test_a_changed_bound_is_named(
    proof: Certificate, end: str, number: int, direction: float
) -> None:
    pieces = [{**piece} for piece in proof.pieces]
    known = pieces[number][end]
    pieces[number][end] = (
        math.nextafter(known, direction)
        if end == "difference"
        else [known[0], math.nextafter(known[1], direction)]
    )
    where = f"pieces[{number % len(pieces)}].{end}"
    assert checked(replace(proof, pieces=pieces)).startswith(where)


def test_bounds_narrowed_to_a_point_are_found(proof: Certificate) -> None:
    pieces = [{**piece, "lower": piece["upper"]} for piece in proof.pieces]
    assert checked(replace(proof, pieces=pieces)).startswith("pieces[0].lower[0]")
    assert checked(replace(proof, pieces=[{} for _ in pieces])).startswith("pieces[0]")


def test_other_versions_may_state_less_and_never_more(proof: Certificate) -> None:
    other = replace(proof, versions={**proof.versions, "FLINT": "3.0.0"})
    assert checked(other) == ""
    wider = [
        {
            "lower": [low - 1.0 for low in piece["lower"]],
            "upper": [high + 1.0 for high in piece["upper"]],
            "difference": piece["difference"],
        }
        for piece in proof.pieces
    ]
    assert checked(replace(other, pieces=wider)) == ""
    assert checked(replace(proof, pieces=wider)).startswith("pieces[0].lower[0]")
    narrow = [{**piece, "upper": piece["lower"]} for piece in proof.pieces]
    assert checked(replace(other, pieces=narrow)).startswith("pieces[0].upper[0]")
    assert checked(replace(other, difference=0.0)).startswith("difference")


def test_the_command_checks_a_file(proof: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    proof.save(path)
    assert read_certificate(path) == proof
    record = json.loads(path.read_text())
    assert record["schema"] == "difflab.certificate/1"
    assert set(record["versions"]) == {"difflab", "python-flint", "FLINT"}
    assert run(path) == (0, f"{TEXT}\n{proof}\n")
    path.write_text(json.dumps({**record, "text": "exp(x)*y - cos(x*y)"}))
    code, said = run(path)
    assert code == 1
    assert "it does not hold: pieces[0]" in said
    path.write_text("{}")
    assert run(path)[0] == 2


def run(path: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "difflab", "check", "--certificate", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "damage",
    [
        {"box": 3},
        {"box": [["a", 1]]},
        {"splits": {"": 7}},
        {"pieces": [1]},
        {"point": "p"},
        {"text": 3},
        {"mode": None},
        {"bits": "160"},
        {"versions": []},
        {"more": 1},
    ],
)
def test_a_damaged_certificate_is_refused(
    proof: Certificate, tmp_path: Path, damage: dict[str, Any]
) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps({**proof.to_dict(), **damage}))
    with pytest.raises(InputError, match="damaged certificate"):
        read_certificate(path)


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="width must be a positive number"):
        dl.prove("x", {"x": 1}, width=0)
    with pytest.raises(InputError, match="cannot read the certificate"):
        read_certificate(tmp_path / "none.json")
    with pytest.raises(UnsupportedError, match="cannot be written as a formula"):
        dl.prove(dl.trace(lambda x: Opaque.apply(np.sin(x)), 1.0), {"x": 3})


class ScaledExp(dl.CustomFunction):
    """exp, whose rule states another derivative."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return np.exp(x)

    @staticmethod
    def backward(ctx: Any, y_bar: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ScaledExp.factor * y_bar * np.exp(x)


class Opaque(dl.CustomFunction):
    """exp by code that cannot be recorded."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return np.float64(math.exp(float(x)))

    @staticmethod
    def backward(ctx: Any, y_bar: Any) -> Any:
        return y_bar


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (lambda x: np.sum(np.sin(np.array([[1.0, 2.0], [3.0, 5.0]]) @ x)), (np.ones(2),)),
        (lambda p: np.sum(p["a"] * p["b"] ** 2), ({"a": np.ones(2), "b": np.ones(2)},)),
        (lambda x: np.sum(dl.fori_loop(0, 4, lambda i, c: np.sin(c) * x, x)), (np.ones(2),)),
        (lambda x: dl.cond(x > 0.5, lambda v: v * v, lambda v: 2 * v, x), (1.0,)),
        (lambda x: ScaledExp.apply(x), (1.0,)),
    ],
)
def test_code_is_proved_and_its_text_certified(code: Any, arguments: Any) -> None:
    """The text reads as another graph: loops, branches, constants, trees and custom rules."""
    function = dl.trace(code, *arguments)
    assert dl.parse(str(function)) != function
    box = {
        name: (np.ones(shape), np.full(shape, 1.1))
        for name, shape in zip(function.inputs, function.input_shapes, strict=True)
    }
    found = dl.prove(function, box, width=0.05)
    assert found.verdict == "proved"
    assert found.text == str(function)
    assert checked(found) == ""


def test_a_refutation_that_the_text_does_not_show_is_no_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ScaledExp, "factor", 2.0)
    function = dl.trace(lambda x: ScaledExp.apply(x), 1.0)
    with pytest.raises(UnsupportedError, match="read from its text"):
        dl.prove(function, {"x": (1, 1.1)})
