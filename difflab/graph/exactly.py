"""The values of a function to many digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.graph.function import Function, evaluate
from difflab.graph.interpreters import MpmathInterpreter


def exact_elements(function: Function, point: NDArray[Any]) -> list[Any]:
    """Return the elements of the outputs at a packed point, at mpmath's working precision.

    Examples
    --------
    >>> import mpmath
    >>> import difflab as dl
    >>> with mpmath.workdps(30):
    ...     list(map(str, exact_elements(dl.parse("x: [2]; sqrt(x)"), np.array([2.0, 4.0]))))
    ['1.41421356237309504880168872421', '2.0']
    """
    import mpmath

    exactly = np.frompyfunc(lambda number: mpmath.mpf(float(number)), 1, 1)
    values = [np.asarray(exactly(part), object)[()] for part in function.split(point)]
    outputs = evaluate(function, values, MpmathInterpreter())
    whole = [
        np.broadcast_to(np.asarray(output, object), shape).ravel()
        for output, shape in zip(outputs, function.output_shapes, strict=True)
    ]
    return [element for part in whole for element in part.tolist()]
