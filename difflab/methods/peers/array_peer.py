"""Base class of the peers that differentiate Python code over an array module."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.graph.ir import packed_slices
from difflab.graph.pytree import flatten
from difflab.methods.peers.peer import Array, CallAdapter, Peer, PeerCall
from difflab.methods.peers.spelling import LibrarySpelling, written
from difflab.methods.protocol import Problem

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
        code, xp = self.written(function), self.spelling.xp
        shapes = function.input_shapes
        cuts = list(zip(packed_slices(shapes), shapes, strict=True))

        def flat(x: Any) -> Any:
            parts = [xp.reshape(x[part], shape) for part, shape in cuts]
            return xp.concatenate([xp.reshape(part, (-1,)) for part in code(*parts)], 0)

        return flat

    def packed_code(self, problem: Problem) -> Callable[[Any], Any]:
        """Return Python code as a function of the flattened inputs, on arrays of the package.

        Raises
        ------
        UnsupportedError
            The values of the problem are not those of code.
        """
        code, xp = getattr(problem.values, "code", None), self.spelling.xp
        if code is None:
            raise UnsupportedError(f"{self.title} needs a formula, and this is Python code")
        cuts = list(zip(packed_slices(code.shapes), code.shapes, strict=True))

        def flat(x: Any) -> Any:
            parts = [xp.reshape(x[part], shape) for part, shape in cuts]
            results = flatten(code.called(parts))[0]
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

    def result(found: Any) -> tuple[Array, Array]:
        value, slopes = found
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
