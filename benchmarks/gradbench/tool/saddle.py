"""saddle: min over x of max over y, a descent differentiated through a descent."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.gradbench.tool.descent import GRADIENTS, argmax, argmin
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "height"]


def height(x: Any, y: Any) -> Any:
    """Return the height of the surface."""
    return np.sum(x**2) - np.sum(y**2)


def _found(modes: str, question: Any) -> Prepared:
    outer, inner = (GRADIENTS[mode] for mode in modes)

    def saddle(start: Any) -> Any:
        def highest(x: Any) -> Any:
            return height(x, argmax(lambda y: height(x, y), start, inner))

        x = argmin(highest, start, outer)
        y = argmax(lambda y: height(x, y), start, outer)
        return np.concatenate([x, y])

    return compiled(saddle, np.array(question["start"]), output=np.ndarray.tolist)


FUNCTIONS: FunctionsByName = {modes: partial(_found, modes) for modes in ("rr", "ff", "fr", "rf")}
