"""Array functions take lists of numbers where they take arrays, as NumPy's do."""

from __future__ import annotations

import numpy as np

from tests.support.cases import CASES
from tests.support.rows import for_each

# Python's own indexing and operators, not functions.
OPERATORS = {"index", "slice", "broadcasting", "where"}


@for_each("name", sorted(set(CASES) - OPERATORS))
def test_lists_are_arrays(name: str) -> None:
    case = CASES[name]
    found = case.ours(*(value.tolist() for value in case.values))
    np.testing.assert_array_equal(found, case.ours(*case.values))
