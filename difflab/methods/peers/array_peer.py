"""Base classes of the peers that differentiate Python code over an array module, or its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.graph.ir import Shape, packed_slices
from difflab.graph.pytree import flatten
from difflab.methods.peers.peer import Array, CallAdapter, Peer, PeerCall
from difflab.methods.peers.spelling import LibrarySpelling, written
from difflab.methods.protocol import Estimate, Family, Problem

if TYPE_CHECKING:
    from difflab.graph.function import Function


class ArrayPeer(Peer):
    """A package with an array module: how its code is written, and its arrays converted.

    A subclass defines the `spelling` of its operations, and overrides the conversions from and
    to NumPy's arrays that are not NumPy's own.
    """

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """The package's operations under NumPy's names."""
        raise NotImplementedError

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian or the Hessian of the function in the package's operations."""
        return self.differentiated(self.packed(function), function.n, function.m, order)

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value, gradient or Hessian of `code`."""
        xp = self.spelling.xp
        flat = lambda x: xp.reshape(code(*[x[k] for k in range(n)]), (1,))  # noqa: E731
        return self.differentiated(flat, n, 1, order)

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return value, Jacobian or Hessian of `flat`, which maps arrays ``(n,)`` to ``(m,)``."""
        raise NotImplementedError

    def converted(self, values: Sequence[Any]) -> list[Any]:
        """Return NumPy's arrays as arrays of the package."""
        return [np.ascontiguousarray(v) if v.ndim else np.float64(v) for v in values]

    def array(self, value: Any) -> Array:
        """Return an array of the package as NumPy's."""
        return np.asarray(value)

    def written(self, function: Function) -> Callable[..., tuple[Any, ...]]:
        """Return the function as code that maps a value per input to a value per output."""
        return written(function, self.spelling)

    def packed(self, function: Function) -> Callable[[Any], Any]:
        """Return the function of the flattened inputs, its outputs flattened."""
        code = self.written(function)
        return self._flattened(lambda parts: code(*parts), function.input_shapes)

    def packed_code(self, problem: Problem) -> Callable[[Any], Any]:
        """Return Python code as a function of the flattened inputs, on arrays of the package.

        Raises
        ------
        UnsupportedError
            The values of the problem are not those of code.
        """
        code = getattr(problem.values, "code", None)
        if code is None:
            raise UnsupportedError(f"{self.title} needs a formula, and this is Python code")
        return self._flattened(lambda parts: flatten(code.called(parts))[0], code.shapes)

    def _flattened(
        self, code: Callable[[list[Any]], Sequence[Any]], shapes: Sequence[Shape]
    ) -> Callable[[Any], Any]:
        xp, cuts = self.spelling.xp, list(zip(packed_slices(shapes), shapes, strict=True))

        def flat(x: Any) -> Any:
            results = code([xp.reshape(x[part], shape) for part, shape in cuts])
            return xp.concatenate([xp.reshape(part, (-1,)) for part in results], 0)

        return flat

    def adapted(
        self, function: Function, points: int | None, call: Callable[..., Any], **how: Any
    ) -> CallAdapter:
        """Return the adapter of a `call` that returns the value and a gradient per input.

        A gradient of None is zero. `how` are further attributes of the adapter.
        """
        result = packed_gradient(function, points, self.array)
        return CallAdapter(call, lambda x: self.converted(function.split(x)), result, **how)


def packed_gradient(
    function: Function, points: int | None, array: Callable[[Any], Array]
) -> Callable[[Any], tuple[Array, Array]]:
    """Return the conversion of a value and a gradient per input, or None, to two NumPy arrays."""
    batch = () if points is None else (points,)

    def result(arrays: Any) -> tuple[Array, Array]:
        value, slopes = arrays
        flat = [
            np.zeros((*batch, math.prod(shape)))
            if slope is None
            else array(slope).reshape((*batch, -1))
            for slope, shape in zip(slopes, function.input_shapes, strict=True)
        ]
        return array(value), np.concatenate(flat, axis=-1)

    return result


def by_rows(pullback: Callable[[Array, Array], Any], rows: int) -> Callable[[Array], Array]:
    """Return the Jacobian as a function of ``(n,)``: a pullback of every unit cotangent.

    Parameters
    ----------
    pullback : callable
        Maps a point ``(n,)`` and a cotangent ``(rows,)`` to their product with the Jacobian,
        ``(n,)``.
    rows : int
        The number of rows of the Jacobian.

    Examples
    --------
    >>> by_rows(lambda x, v: v @ np.array([[1.0, 2.0], [3.0, 4.0]]), 2)(np.zeros(2))
    array([[1., 2.],
           [3., 4.]])
    """
    return lambda x: np.array([pullback(x, cotangent) for cotangent in np.eye(rows)])


class DifferencePeer(ArrayPeer):
    """A package that differentiates values of NumPy, one point at a time.

    A subclass defines `differences`, and `gradient` where the package has a function for it.
    """

    family = Family.NUMERIC
    vectorised = False
    columns = ("numpy",)

    def differences(
        self, f: Callable[[Array], Any], order: int
    ) -> Callable[[Array], tuple[Any, Any]]:
        """Return the derivative of `f` with its error estimate, as a function of ``(n,)``.

        `f` maps ``(n,)`` to ``(m,)`` for order 1, and to a number for order 2.
        """
        raise NotImplementedError

    def gradient(self, f: Callable[[Array], Any]) -> Callable[[Array], Any]:
        """Return the gradient of `f`, which maps ``(n,)`` to a number."""
        derivative = self.differences(f, 1)
        return lambda x: derivative(x)[0]

    def names(self) -> Mapping[str, Any]:
        """Return NumPy and SciPy's special functions."""
        from scipy import special

        return {"np": np, "special": special}

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value or derivatives of `code`, without NumPy's warnings."""
        call = np.errstate(all="ignore")(super().expressed(code, n, order))
        return lambda x: call(x)[0] if order else call(x)

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the package's Jacobian or Hessian, its error estimate, and the evaluations."""
        return self._counting(flat, order) if order else flat

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the same of the values of Python code."""
        values = problem.values
        return self._counting(lambda x: values(np.asarray(x, np.float64)[None])[0], problem.order)

    def _counting(self, flat: Callable[[Array], Any], order: int) -> PeerCall:
        counted = _CallCounter(flat)
        derivative = self.differences(counted if order == 1 else lambda x: counted(x)[0], order)

        def call(x: Array) -> Any:
            counted.evaluations = 0
            value, error = derivative(x)
            return value, error, counted.evaluations

        return call

    def estimated(self, result: Any, shape: tuple[int, int]) -> Estimate:
        """Return the derivative with the package's own error estimate."""
        value, error, evaluations = result
        value, error = (
            np.asarray(part, dtype=np.float64).reshape(shape) for part in (value, error)
        )
        return Estimate(value, np.abs(error), evaluations)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the value and the gradient, point by point."""
        flat = self.packed(function)

        def value(x: Array) -> Any:
            return flat(x)[0]

        gradient = self.gradient(value)
        return self.one_by_one(function, points, lambda x: (value(x), gradient(x)))

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """NumPy's operations."""
        return LibrarySpelling(np)

    def packed(self, function: Function) -> Callable[[Array], Array]:
        """Return the function of the flattened inputs, without NumPy's warnings."""
        return np.errstate(all="ignore")(super().packed(function))


class _CallCounter:
    """A function that counts its calls."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function
        self.evaluations = 0

    def __call__(self, x: Array) -> Array:
        self.evaluations += 1
        return self.function(x)
