"""Every kind of value at every door: right, or refused by name; never converted with a loss."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, InputError, PointError
from tests.support.entering import ALSO, DOORS, KINDS, MAKERS, POINT, Door, left_out


def _array(found: Any) -> Any:
    """Return a result as an array of NumPy."""
    if type(found).__name__ == "ComplexArray":
        return np.asarray(found.real) + 1j * np.asarray(found.imag)
    if type(found).__name__ == "ndarray" and hasattr(found, "get"):  # on the device
        return found.get()
    if hasattr(found, "detach"):  # of PyTorch
        found = found.detach().resolve_neg()
        found = found.float() if "bfloat16" in str(found.dtype) else found
    array = np.asarray(found)
    return array.astype(float) if array.dtype == object else array


def _outcome(door: Door, value: Any) -> tuple[Any, DifflabError | None]:
    """Return the result of a door, or its error; a warning is no error of difflab's."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # `jit` says so of every table, whose values it compares.
        warnings.filterwarnings("ignore", ".*the labels of a table are not watched")
        try:
            return door.enter(value), None
        except DifflabError as error:
            return None, error


def _fault(name: str, door: str) -> str:
    """Return what is wrong with a pair: a loss, a wrong result, an error of another kind."""
    kind, entered = KINDS[name], DOORS[door]
    try:
        found, refusal = _outcome(entered, kind.make if door in MAKERS else kind.make(POINT))
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    if refusal is not None:
        named = re.search(f"{kind.word}|{ALSO.get(door, kind.word)}", str(refusal))
        return "" if named and not kind.everywhere else f"refuses it: {refusal}"
    if kind.kept is None:
        return f"gives {found!r}"
    expected = entered.expected(kind.kept(POINT))
    if expected is None:
        return ""
    result = _array(found)
    if kind.half and result.dtype == np.float64 and door not in COMBINED:
        return "computes in float64"
    close = 1e-2 if kind.half else 1e-6 if "32" in str(result.dtype) else 1e-15
    same = np.shape(result) == np.shape(expected) and np.allclose(result, expected, close, 0.0)
    return "" if same else f"gives {result!r}, and NumPy {expected!r}"


@pytest.mark.parametrize("name", KINDS)
def test_a_value_is_right_or_refused_by_name_at_every_door(name: str) -> None:
    for package in KINDS[name].packages:
        pytest.importorskip(package)
    doors = [door for door in DOORS if not left_out(name, door)]
    faults = {door: fault for door in doors if (fault := _fault(name, door))}
    assert not faults, "\n".join(f"{door}: {fault}" for door, fault in faults.items())


def test_every_pair_but_a_few_is_tested() -> None:
    pairs = [(kind, door) for kind in KINDS for door in DOORS]
    packages = ("torch.wrap", "jax.wrap")
    assert len(pairs) > 2000
    assert sum(bool(left_out(*pair)) for pair in pairs if pair[1] not in packages) < 80


COMBINED = {"tensor * v", "v * tensor", "np.multiply(v, tensor)"}
"""Doors where the value is combined with a tensor of float64, whose dtype the result has."""
EMPTY = np.zeros(0)


@pytest.mark.parametrize(
    "compute",
    [
        dl.grad(np.sum),
        dl.jit(lambda x: 2.0 * x),
        lambda x: dl.tensor(x).numpy(),
        lambda x: dl.trace(lambda v: v * v, x)(x),
        dl.parse("x*x"),
        dl.compile(dl.parse("x*x")),
        lambda x: dl.vmap(lambda v: v * v)(x),
    ],
)
def test_arrays_without_elements_stay_so(compute: Any) -> None:
    assert np.shape(compute(EMPTY)) == (0,)


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**53 + 2, 2**60, 3])
def test_integers_that_float64_holds_are_numbers(number: int) -> None:
    assert float(dl.parse("2*x")(number)) == 2.0 * number
    assert dl.compile(dl.parse("2*x"))(number) == 2.0 * number
    assert float(dl.parse("2*x")(np.array(number))) == 2.0 * number


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**62 + 1, 10**400])
def test_integers_that_float64_rounds_are_refused(number: int) -> None:
    square = dl.parse("x*x")
    for call in (square, dl.compile(square), dl.compile(square, packed=True), dl.jit(lambda x: x)):
        given = [number] if call.__class__.__name__ == "PackedCompiled" else number
        with pytest.raises(DifflabError, match=r"rounds|too large|digits"):
            call(given)


def test_an_integer_of_the_code_is_within_the_range_of_float64() -> None:
    assert dl.grad(lambda x: x * (2**53 + 1))(1.0) == 2.0**53
    with pytest.raises(InputError, match="too large for a float64"):
        dl.grad(lambda x: x * 10**400)(1.0)
    with pytest.raises(InputError, match="too large for a float64"):
        dl.tensor(1.0) * 10**400


def test_values_in_lists_are_held_to_the_same_rule() -> None:
    square = dl.parse("x*x")
    assert square([1, 2.0]).tolist() == [1.0, 4.0]
    for part in (np.ma.array([1.0, 2.0], mask=[0, 1]), np.float16(1.0), None, "1", 2**53 + 1):
        with pytest.raises(PointError, match="an element of the value of 'x' is "):
            square([1.0, part] if np.ndim(part) == 0 else [part, part])


def test_the_message_names_the_line_and_says_what_to_do() -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(InputError, match=r"(?s)mask would be lost .*test_conv.*hint: .*filled"):
        dl.grad(lambda x: np.sum(x * masked))(3.0)
    with pytest.raises(InputError, match=r"(?s)float16, in .*hint: .*astype\(np.float32\)"):
        dl.jit(lambda x: x)(np.ones(2, np.float16))


def test_tensors_compute_in_float16_as_numpy_does() -> None:
    half, x = np.array([1.1, 2.3], np.float16), np.array([0.3, 0.7])
    t = dl.tensor(half, requires_grad=True)
    product = t * half
    assert product.dtype == np.float16
    assert np.array_equal(product.detach().numpy(), half * half)
    np.sum(product).backward()
    assert t.grad is not None
    assert t.grad.dtype == np.float16
    assert np.array_equal(t.grad.numpy(), half)
    assert (dl.tensor(x) * half).dtype == np.float64
    assert dl.tensor(np.float16(1.1)).dtype == np.float16
