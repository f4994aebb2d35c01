"""A formula at a point, as the benchmarks of one formula take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from difflab.cli.functions import Subject, code_digest, load_function
from difflab.cli.program_text import expression_key
from difflab.core.quantities import shape_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from difflab.graph.function import Function

__all__ = ["FormulaAtPoint", "formula_at_point", "point_key"]

_MOST_ELEMENTS = 16  # of an input written out in a row's key; a larger input is hashed


class FormulaAtPoint(NamedTuple):
    """A function and the packed point at which it is measured, with the texts of both."""

    function: Function
    x: NDArray[np.float64]
    text: str
    where: str


def formula_at_point(
    expression: str, at: Sequence[str] | None, default: tuple[str, Mapping[str, float]]
) -> FormulaAtPoint:
    """Return the function of an argument EXPR and its point, from ``--at`` or chosen.

    Parameters
    ----------
    expression : str
        A formula, a problem or ``module:function``; empty for the default.
    at : sequence of str or None
        The options ``--at``.
    default : (str, mapping)
        The formula and the point if none is given.
    """
    from difflab.diagnose.point_check import checked_point, packed

    subject = Subject.of(expression or default[0], at)
    usual = None if expression else default[1]
    point = checked_point(subject.function, subject.place or usual)
    key = expression_key(subject.text)
    if subject.traced is not None:
        key += f" ({code_digest(load_function(expression))})"
    return FormulaAtPoint(subject.function, packed(subject.function, point), key, point_key(point))


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
