"""The kernel of a row as universal functions of the C library, which give the same bits as `math`.

Code of target ``python`` is written from kernels (`scalar.py`), with functions of `math` for
universal functions. Machine code that calls the same functions of the C library computes the same
bits. Where an operation is undefined or overflows, `math` raises and the kernel is called instead,
which gives what IEEE 754 gives. A nan is a nan, whatever its sign.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from difflab.core.primitive import Primitive
from difflab.execute.lower.ops import NumpyProgram, Op
from difflab.execute.lower.scalar import EXACT, form_over

LIBRARY: dict[str, np.ufunc] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "pow": np.power,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
"""The functions of `math` that are the C library's; `hypot` and others are Python's own."""
_KNOWN = EXACT | {ufunc.__name__ for ufunc in LIBRARY.values()} | {"logaddexp"}


@lru_cache(maxsize=1024)
def expression_form(row: Primitive, kinds: tuple[str, ...]) -> NumpyProgram | None:
    """Return a row's kernel as universal functions with the bits of `math`; None if it has others.

    Parameters
    ----------
    row : Primitive
        The row.
    kinds : tuple of str
        For each argument ``"number"`` or ``"truth"``.

    Examples
    --------
    >>> from difflab.primitives import gamma, sigmoid
    >>> [op.name for op in expression_form(sigmoid, ("number",)).ops]
    ['less', 'negative', 'where', 'exp', 'where', 'add', 'divide']
    >>> expression_form(gamma, ("number",)) is None
    True
    """
    if row.shape is not None or any(kind not in ("number", "truth") for kind in kinds):
        return None
    if any(kind == "truth" and place not in row.truths for place, kind in enumerate(kinds)):
        return None  # Python computes with whole numbers then
    form = form_over(_KNOWN, row, kinds)
    if form is None or not all(form.truths.issuperset(op.reads) for op in form.ops if _joins(op)):
        return None  # Python gives one of the numbers
    return form


def _joins(op: Op) -> bool:
    """Whether an operation joins truth values."""
    return op.name in ("logical_and", "logical_or")
