r"""lse: the logarithm of a sum of exponentials, :math:`\log \sum_i e^{x_i}`.

`difflab.arrays.logsumexp` shifts by the maximum, which is constant in its derivative: the
gradient is softmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS"]


def _primal(question: Any) -> Prepared:
    return compiled(dl.arrays.logsumexp, np.array(question["x"]), output=float)


def _gradient(question: Any) -> Prepared:
    gradient = dl.grad(dl.arrays.logsumexp)
    return compiled(gradient, np.array(question["x"]), output=np.ndarray.tolist)


FUNCTIONS: FunctionsByName = {"primal": _primal, "gradient": _gradient}
