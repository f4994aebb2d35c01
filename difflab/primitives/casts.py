"""`float32`: the conversion of values to float32, for graphs that compute in float64.

Values of a graph have one dtype, that in which it is evaluated, so a cast is a rounding: the value
is the nearest float32, in the dtype of the argument.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.errors import UnsupportedError

__all__ = ["float32"]

Array = Any


class Rounding:
    """The universal function of a cast: NumPy has the loop, but no function of its own for it.

    Like NumPy's functions, it leaves the computation to operands of other types (NEP 13).

    Examples
    --------
    >>> ROUNDING(np.array([0.1, 1e39]))
    array([0.1, inf])
    >>> float(ROUNDING(0.1))
    0.10000000149011612
    """

    __name__ = "float32"
    nin = nout = 1
    signature = None

    def __call__(self, x: Any, out: Array = None) -> Any:
        """Return the nearest float32, ties to even, in the dtype of `x`."""
        if hasattr(x, "__array_ufunc__") and not isinstance(x, np.ndarray | np.generic):
            return x.__array_ufunc__(self, "__call__", x)
        if out is None:
            x = np.asarray(x)
            out = np.empty(x.shape, x.dtype if x.dtype.kind == "f" else np.float64)
        with np.errstate(over="ignore", under="ignore"):
            np.positive(x, out=out, dtype=np.float32, casting="same_kind")
        return out if out.ndim else out[()]


ROUNDING = Rounding()


def _rounded(xp: ModuleType, x: Array) -> Array:
    if xp is np:
        return ROUNDING(x)
    x = xp.asarray(x)
    return xp.astype(xp.astype(x, xp.float32), x.dtype)


def _refused(library: Any, x: Any) -> Any:
    raise UnsupportedError(
        "float32(x) is a staircase: its derivative 1 is a convention, which has no true value"
    )


float32: Primitive = Primitive(
    name="float32",
    kernel=_rounded,
    ufunc="float32",
    rule=elementwise(lambda t, y, x: t),
    sympy=None,
    mpmath=_refused,
    latex="\\operatorname{{float32}}\\left({0}\\right)",
    samples=((0.3, 2.7),),
    convention="derivative 1",
    analytic=False,
    structural=True,
    dtype="float32",
)
