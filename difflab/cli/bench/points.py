"""A formula at a point, as the benchmarks of one formula take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from difflab.cli.options import parse_point
from difflab.core.quantities import shape_text
from difflab.core.wording import names_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from difflab.graph.function import Function

__all__ = ["function_at", "point_key"]

_MOST_ELEMENTS = 16  # of an input written out in a row's key; a larger input is hashed


def function_at(
    text: str, at: Sequence[str], default: Mapping[str, float] | None
) -> tuple[Function, Mapping[str, Any], NDArray[np.float64]]:
    """Return the function, its point (from `at`, `default` or chosen), and the packed point."""
    from difflab.diagnose.point_check import checked_point, packed
    from difflab.lab.problems.library import problem
    from difflab.language import parse

    known = problem(text) if names_problem(text) else None
    function = parse(text) if known is None else known.function
    point = checked_point(function, parse_point(at) or (known.start if known else default))
    return function, point, packed(function, point)


def point_key(point: Mapping[str, Any]) -> str:
    """Return the text that identifies a point in the key of its rows."""
    import numpy as np

    return ", ".join(f"{name} = {_exact_text(np.asarray(value))}" for name, value in point.items())


def _exact_text(value: NDArray[np.float64]) -> str:
    """Return every digit of a small array; the shape and a hash of a large one."""
    if value.size <= _MOST_ELEMENTS:
        return str(value.tolist())
    digest = sha256(value.tobytes()).hexdigest()[:16]
    return f"{shape_text(value.shape)} numbers, SHA-256 {digest}…"
