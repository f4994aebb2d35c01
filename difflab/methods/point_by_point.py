"""Python code as the values of a problem: it is called at one point after another."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_numbers
from difflab.errors import DifflabError, DomainError, InputError, UnsupportedError
from difflab.graph.ir import Shape
from difflab.methods.timer import Deadline


class PointByPoint:
    """A Python callable as a function on packed points, which it is called with one by one.

    ``ValueError`` and ``ArithmeticError`` mean that a point is outside of its domain.

    Parameters
    ----------
    f : callable
        The function of one number or array.
    into, out : Shape
        The shapes of its argument and of its result.

    Examples
    --------
    >>> PointByPoint(lambda x: x**2, (), ())(np.array([[1.0], [3.0]]))
    array([[1.],
           [9.]])
    """

    def __init__(self, f: Callable[[Any], Any], into: Shape, out: Shape) -> None:
        self.f = f
        self.into = into
        self.out = out

    def __call__(self, points: NDArray[Any], deadline: Deadline | None = None) -> NDArray[Any]:
        """Return the values ``(N, m)`` at packed points ``(N, n)``.

        Raises
        ------
        MethodTimeout
            The deadline passed between two calls.
        """
        into = self.into
        rows = points[:, 0] if into == () else points.reshape(len(points), *into)
        analytic = points.dtype.kind == "c"
        with warnings.catch_warnings():
            # NumPy only warns when code drops imaginary parts, as `math.sin` does.
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            results = [self._call(row, analytic, deadline) for row in rows]
        if self.out == ():
            values = np.array(results).reshape(-1, 1)
        else:
            values = np.array([np.ravel(result) for result in results])
        if values.dtype.kind == "c" and not analytic:
            # A complex value, such as (-1.0)**0.5 in Python: outside of the real domain.
            values = np.where(values.imag == 0, values.real, np.nan)
        return values if values.dtype.kind in "fc" else values.astype(np.float64)

    def _call(self, row: Any, analytic: bool, deadline: Deadline | None) -> Any:
        if deadline is not None:
            deadline.check()
        try:
            result = self.f(row)
        except (ArithmeticError, ValueError, DomainError):
            if not analytic:
                return np.nan if self.out == () else np.full(self.out, np.nan)
            raise UnsupportedError("f fails on complex numbers") from None
        except DifflabError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            if analytic:
                raise UnsupportedError(f"f does not accept complex numbers ({text})") from error
            raise InputError(f"f raised {text} near the point") from error
        if not isinstance(result, float | complex | np.ndarray):
            result = host_numbers(result, "the value of f")
        if np.shape(result) != self.out:
            raise InputError(
                f"f returns shape {self.out} at the point, but {np.shape(result)} near it"
            )
        return result
