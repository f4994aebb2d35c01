"""No array function is left out of the comparison with the peers."""

from __future__ import annotations

from difflab import arrays
from tests.support.cases import CASES, WITHOUT_DERIVATIVE

TYPES = {"Axis", "ComplexArray"}


def test_every_array_function_is_compared() -> None:
    functions = set(arrays.__all__) - TYPES - WITHOUT_DERIVATIVE
    assert functions <= set(CASES)
