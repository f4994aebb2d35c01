r"""llsq: least squares, a polynomial fitted to the sign function.

.. math:: f(x) = \tfrac12 \sum_i \Bigl(\operatorname{sign} t_i - \sum_j x_j t_i^j\Bigr)^2

over n points tᵢ from -1 to 1. The polynomial is evaluated by Horner's scheme, at all points at
once: a loop of m steps on vectors, and so is its derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "loss"]


def loss(x: Any, t: Any) -> Any:
    """Return half the sum of squared residuals of the coefficients `x` at the points `t`."""
    polynomial = x[-1]
    for j in range(len(x) - 2, -1, -1):
        polynomial = polynomial * t + x[j]
    residuals = np.sign(t) - polynomial
    return 0.5 * np.sum(residuals**2)


def _arguments(question: Any) -> tuple[Any, Any]:
    return np.array(question["x"]), np.linspace(-1.0, 1.0, question["n"])


def _primal(question: Any) -> Prepared:
    return compiled(loss, *_arguments(question), output=float)


def _gradient(question: Any) -> Prepared:
    return compiled(dl.grad(loss), *_arguments(question), output=np.ndarray.tolist)


FUNCTIONS: FunctionsByName = {"primal": _primal, "gradient": _gradient}
