"""The pytest plug-in: the fixture `check_gradient`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["check_gradient"]


@pytest.fixture(name="check_gradient")
def check_gradient() -> Callable[..., None]:
    """Compare a gradient with numeric differentiation: ``check_gradient(f, gradient, x)``.

    See Also
    --------
    difflab.testing.check_gradient : the function that this fixture returns.
    """
    from difflab.testing import check_gradient as check

    return check
