"""Methods in other formats than float64: every operation is rounded to the format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import FORMATS, FloatFormat
from difflab.errors import UnsupportedError
from difflab.methods.protocol import Estimate, Family, Method, Prepared, Problem

if TYPE_CHECKING:
    from difflab.graph.function import Function


COARSE = tuple(name for name in FORMATS if name != "float64")


@dataclass(frozen=True)
class InDtype:
    """A method that computes in a format.

    A method names the formats in ``dtypes``, or says why there are none in ``only_float64``.
    """

    method: Method
    dtype: FloatFormat

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.name

    @property
    def family(self) -> Family:
        """The family of the method."""
        return self.method.family

    @property
    def summary(self) -> str:
        """The summary of the method, and the format."""
        return f"{self.method.summary}, in {self.dtype}"

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders of the method."""
        return self.method.orders

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions of the method."""
        return getattr(self.method, "packages", ())

    def missing(self) -> str | None:
        """Return why the method cannot run."""
        return self.method.missing()

    def prepare(self, problem: Problem) -> Prepared:
        """Prepare the method in the format.

        Raises
        ------
        UnsupportedError
            It does not compute in it, or the function is Python code without a graph.
        """
        if problem.function is None:
            raise UnsupportedError(f"Python code has no graph to compute in {self.dtype}")
        if self.dtype.name not in getattr(self.method, "dtypes", ()):
            reason = getattr(self.method, "only_float64", "it computes in float64 here")
            raise UnsupportedError(f"not in {self.dtype}: {reason}")
        return self.method.prepare(replace(problem, dtype=self.dtype))


class RoundedDerivative:
    """The graph of a derivative, whose operations are rounded to a format one by one.

    In float32 it is compiled, as `difflab.compile` does.
    """

    def __init__(self, derivative: Function, dtype: FloatFormat, target: str) -> None:
        from difflab.execute import compile
        from difflab.graph.counts import count
        from difflab.graph.evaluate import RoundedInterpreter
        from difflab.methods.protocol import Size

        counts = count(derivative)
        self.operations = counts.operations
        self.size = Size(tree=counts.tree, dag=counts.dag)
        self.function = derivative
        self._on = RoundedInterpreter(dtype)
        self._fast: Any = None
        loops = any(row.holds is not None for row in derivative.graph.primitives)
        if dtype.name == "float32" and not loops:  # compiled, their steps are in float64
            self._fast = compile(derivative, target, packed=True, dtype=np.float32)

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`, a point of the format, or at the points ``(N, n)``."""
        (shape,) = self.function.output_shapes
        with np.errstate(all="ignore"):
            derivatives = self.function.values(x, self._on) if self._fast is None else self._fast(x)
        return Estimate(np.reshape(derivatives, x.shape[:-1] + shape).astype(float64), None, 0)

    def batch(self, points: NDArray[float64]) -> Estimate:
        """Return the derivatives at the points ``(N, n)``."""
        return self(points)


class RoundedValues:
    """The values of a function in a format, for methods that see only values.

    Attributes
    ----------
    dtype : FloatFormat
        The format; `difflab.differences.sampling.Sampler` moves the inputs within it.
    """

    def __init__(self, function: Function, dtype: FloatFormat) -> None:
        from difflab.graph.evaluate import RoundedInterpreter

        self.dtype = dtype
        self._function = function
        self._on = RoundedInterpreter(dtype)

    def __call__(self, points: NDArray[Any]) -> NDArray[Any]:
        """Return the values ``(N, m)`` at points of the format."""
        with np.errstate(all="ignore"):
            return self._function.values(self.dtype.rounded(points), self._on)
