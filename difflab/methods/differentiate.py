"""`differentiate`: any method, on a `Function` or a Python callable, at one point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from difflab.core.conversions import host_numbers, host_reals
from difflab.differences.first import DifferenceRule
from difflab.errors import DifflabError, InputError, PointError
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.names import missing_values
from difflab.methods.numeric.compiled_stencil import Repeated
from difflab.methods.point_by_point import PointByPoint
from difflab.methods.protocol import Problem
from difflab.methods.registry import find

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PointDerivative:
    """A derivative at a point, an estimate of its error, and its cost.

    Attributes
    ----------
    value : float or ndarray
        The derivative; its shape is that of the function's value followed by that of x
        (for second derivatives, that of x twice).
    error : float, ndarray or None
        The method's elementwise estimate of ``|value - truth|``: inf where it found no
        derivative, None if the method gives no estimate.
    evaluations : int
        Number of points at which the function was evaluated.
    method : str
        The name of the method.
    """

    value: Any
    error: Any
    evaluations: int
    method: str


def differentiate(
    f: Function | Callable[[Any], Any],
    x: ArrayLike | Mapping[str, ArrayLike],
    method: str = "richardson",
    order: int = 1,
) -> PointDerivative:
    r"""Differentiate `f` at `x` by any method, with an estimate of the error.

    Parameters
    ----------
    f : Function or callable
        A `Function`, or Python code that takes one argument of the shape of `x` and returns
        a scalar or an array. A callable is not assumed to be vectorised: it is called once
        per point. ``ValueError`` and ``ArithmeticError`` that it raises near `x` mean that
        the point is outside its domain.
    x : scalar, array, or mapping
        The point. For a `Function` its inputs flattened into one array ``(n,)``, a scalar
        if there is one input, or a mapping from names to values.
    method : str, optional
        A name listed by `difflab.methods`.
    order : int, optional
        1 for first derivatives, 2 for the Hessian of a function with one output.

    Returns
    -------
    PointDerivative
        ``value`` and ``error`` have the shape ``shape(f(x)) + shape(x)``: a scalar
        function of a scalar gives a scalar, of ``(n,)`` the gradient ``(n,)``; ``(n,)`` to
        ``(m,)`` gives the Jacobian ``(m, n)``; order 2 gives the Hessian ``(n, n)``. The
        outputs of a `Function` are flattened, unless there is only one scalar; so are its inputs.

    Raises
    ------
    difflab.errors.InputError
        There is no such method, `x` is not a finite point, or `f` raises at `x`.
    difflab.errors.UnsupportedError
        The method cannot differentiate this function, or is not installed.

    Notes
    -----
    The default extrapolates central differences :math:`(f(x+h) - f(x-h))/2h` to
    :math:`h = 0`; see `difflab.methods.numeric.finite` for the mathematics and the sources,
    and `difflab.methods.numeric.finite` and `difflab.methods.numeric.complex_step` for the others.
    After a few hundred calls on the same `Function` the method is compiled for it: the
    derivative may then change by rounding, far less than ``error``.

    Examples
    --------
    >>> import math
    >>> import difflab as dl
    >>> derivative = dl.differentiate(math.exp, 1.0)
    >>> bool(abs(derivative.value - math.e) <= derivative.error < 1e-10)
    True
    >>> f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    >>> dl.differentiate(f, {"x1": 2, "x2": 5}, method="reverse").value
    array([5.5       , 1.71633781])
    """
    if not isinstance(method, str) or not isinstance(order, int):
        raise InputError(
            f"method is a name and order 1 or 2, not {type(method).__name__} and"
            f" {type(order).__name__}",
            hint="difflab.methods() has the names",
        )
    if order == 1 and isinstance(f, Function):
        compiled = _compiled_derivative(f, x, method)
        if compiled is not None:
            return compiled
    chosen = find(method)
    values, point, out, into, function = _posed(f, x)
    problem = Problem(values, point.size, math.prod(out), function, order)
    estimate = chosen.prepare(problem)(point)
    shape = out + into if order == 1 else into + into
    shape_calls = 0 if function is not None else 1
    return PointDerivative(
        _shaped(estimate.value, shape),
        None if estimate.error is None else _shaped(estimate.error, shape),
        estimate.evaluations + shape_calls,
        method,
    )


def _compiled_derivative(f: Function, x: Any, method: str) -> PointDerivative | None:
    """Return the derivative by code compiled for `f`, if `f` has been differentiated often."""
    repeated = f.derived_cache.get(method)
    if repeated is None:
        rule = getattr(find(method), "rule", None)
        repeated = f.derived_cache[method] = Repeated(
            f, rule if isinstance(rule, DifferenceRule) else None
        )
    compiled = repeated.compiled or repeated.count(f)
    if compiled is None:
        return None
    plain = type(x) is np.ndarray and x.shape == (f.n,)
    point, into = (x, x.shape) if plain else _placed(f, x)
    converged = compiled(point)
    if converged is None:
        return None
    value, error = converged
    if not plain or f.output_shapes != ((),):
        shape = _out(f) + into
        value, error = _shaped(value, shape), _shaped(error, shape)
    return PointDerivative(value, error, compiled.evaluations, method)


_Posed = tuple[Callable[[NDArray[Any]], NDArray[Any]], Array, Shape, Shape, "Function | None"]


def _posed(f: Any, x: Any) -> _Posed:
    """Return the function on packed points, the packed point, the shapes, and the graph if any."""
    if isinstance(f, Function):
        point, into = _placed(f, x)
        return f.values, point, _out(f), into, f
    if not callable(f):
        raise InputError(
            f"{type(f).__name__} is neither a Function nor callable",
            hint="parse text with dl.parse(...)",
        )
    if isinstance(x, Mapping):
        raise PointError("a Python callable takes a scalar or an array, not named values")
    point = _point(x)
    result = _learn(f, point)
    return PointByPoint(f, point.shape, result), point.ravel(), result, point.shape, None


def _placed(f: Function, x: Any) -> tuple[Array, Shape]:
    """Return the packed point of a Function, and the shape of `x`."""
    point = _pack(f, x) if isinstance(x, Mapping) else _point(x)
    if point.size != f.n:
        raise PointError(f"the function has {f.n} inputs, but the point has {point.size} elements")
    scalar = point.ndim == 0 and not isinstance(x, Mapping)
    return point.ravel(), () if scalar else (point.size,)


def _out(f: Function) -> Shape:
    return () if f.output_shapes == ((),) else (f.m,)


def _point(x: Any) -> Array:
    point = np.array(host_reals(x, "the point", PointError))
    if not point.size:
        raise PointError("the point is empty, so there is nothing to differentiate with respect to")
    if not np.isfinite(point).all():
        raise PointError("the point is not finite")
    return point


def _pack(f: Function, x: Mapping[str, Any]) -> Array:
    unknown = [str(name) for name in x if name not in f.inputs]
    if unknown:
        raise PointError(
            f"the function has no input '{unknown[0]}'", hint=f"it has {', '.join(f.inputs)}"
        )
    parts = []
    for name, shape in zip(f.inputs, f.input_shapes, strict=True):
        if name not in x:
            raise PointError(missing_values([name]))
        part = _point(x[name])
        if part.shape != shape:
            raise PointError(f"'{name}' has shape {shape}, but its value has {part.shape}")
        parts.append(part.ravel())
    return np.concatenate(parts)


def _learn(f: Callable[[Any], Any], point: Array) -> Shape:
    """Return the shape of the value of `f`, which is called once."""
    with np.errstate(all="ignore"):
        try:
            value = f(point[()] if point.ndim == 0 else point.copy())
        except DifflabError:
            raise
        except Exception as error:
            raise InputError(f"f raised {type(error).__name__} at the point: {error}") from error
    result = host_numbers(value, "the value of f")
    if result.dtype.kind not in "fiub":
        raise InputError(f"f does not return real numbers, but {result.dtype}")
    if not result.size:
        raise InputError("f returns an empty array, so there is nothing to differentiate")
    return result.shape


def _shaped(values: Array, shape: Shape) -> Any:
    return values.reshape(shape)[()]
