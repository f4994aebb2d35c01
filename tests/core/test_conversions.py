"""Every kind of value at every door: right, or refused by name; never converted with a loss."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

from difflab.errors import DifflabError
from tests.support.entering import ALSO, DOORS, KINDS, MAKERS, POINT, left_out


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


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", KINDS)
def test_a_value_is_right_or_refused_by_name(name: str, door: str) -> None:
    kind, entered = KINDS[name], DOORS[door]
    reason = left_out(name, door)
    if reason:
        pytest.skip(reason)
    for package in kind.packages:
        pytest.importorskip(package)
    value = kind.make if door in MAKERS else kind.make(POINT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = entered.enter(value)
        except DifflabError as error:
            assert not kind.everywhere, f"{door} refuses {name}: {error}"
            assert re.search(f"{kind.word}|{ALSO.get(door, kind.word)}", str(error)), str(error)
            return
    assert kind.kept is not None, f"{door} takes {name} and gives {found!r}"
    expected = entered.expected(kind.kept(POINT))
    if expected is None:
        return
    result = _array(found)
    assert not (kind.half and result.dtype == np.float64), f"{name} silently becomes float64"
    close = 1e-2 if kind.half else 1e-6 if "32" in str(result.dtype) else 1e-15
    np.testing.assert_allclose(result, expected, rtol=close)
