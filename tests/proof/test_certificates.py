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
from difflab.autodiff.functions.transforms import jacobian
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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"width": 1e-9}, "the graph may differ by"),
        ({"text": "exp(x)*y - cos(x*y)"}, "bounds that exclude the derivative"),
        ({"box": [(-2.0, 2.0), (1.0, 1.5)]}, "the graph may differ by"),
        ({"box": [(0.5, 0.75)]}, "1 intervals for 2 inputs"),
        ({"text": "abs(x - 0.51)*y"}, "may not be smooth"),
        ({"text": "exp(x"}, "cannot be differentiated"),
        ({"splits": {}}, "pieces, and its box 1"),
    ],
)
def test_a_changed_certificate_does_not_hold(
    proof: Certificate, change: dict[str, Any], reason: str
) -> None:
    assert reason in checked(replace(proof, **change))


def test_changed_bounds_are_found(proof: Certificate) -> None:
    pieces = [{**piece, "lower": piece["upper"], "upper": [9.0, 9.0]} for piece in proof.pieces]
    pieces[0]["lower"] = [8.0, 8.0]
    assert "bounds that exclude" in checked(replace(proof, pieces=pieces))
    assert "bounds that exclude" in checked(replace(proof, pieces=[{} for _ in pieces]))


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
    assert "it does not hold: on " in said
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
    [{"box": 3}, {"splits": {"": 7}}, {"pieces": [1]}, {"more": 1}, {"box": [["a", 1]]}],
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
