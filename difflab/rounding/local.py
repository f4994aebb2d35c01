"""The rounding error of one operation: a bound from its operands and its result.

A correctly rounded operation errs by at most half a unit in the last place, another function by the
documented units of its row, and a sum or product of n terms by γₙ = n u/(1 - n u) times that of
their absolute values, in any order (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., SIAM 2002, ch. 2-4). Operations that are exact at their operands, such as the difference
of numbers within a factor of 2 (Sterbenz), err by nothing. Operations without such a bound
(matrix factorizations, loops, special functions) are compared with ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.evaluation import PRECISIONS, BallInterpreter
from difflab.balls.jets import Jet, Undecided
from difflab.balls.library import Ball, arb, precision, upward
from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.core.primitive import ByArgument, Custom, LinearMap, Primitive
from difflab.errors import UnsupportedError
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph

Array = NDArray[Any]
SHARP = 2.0**-20
"""Radius of an enclosure relative to the error that it is to show."""
WIDER = 1 + 8 * SHARP
"""So that a measured error is a bound of what another enclosure shows of it."""

_exact = np.frompyfunc(lambda number: Jet(arb(number)), 1, 1)


def lifted(value: Any) -> Any:
    """Return elements as exact balls; truth values are unchanged."""
    array = np.asarray(value)
    if array.dtype == np.bool_:
        return value if array.ndim else bool(value)
    return _exact(array.astype(np.float64))


def jets(value: Any) -> list[Any]:
    """Return the elements of a value as a list."""
    return list(value.ravel().tolist()) if isinstance(value, np.ndarray) else [value]


def farthest(ball: Ball) -> float:
    """Return an upper bound of the absolute value of a ball; infinite if it is undefined."""
    size = upward(abs(arb(ball)))
    return math.inf if math.isnan(size) else size


def apart(numbers: Iterable[float], balls: Iterable[Ball]) -> tuple[Array, bool]:
    """Return bounds of the distances of elements from balls, and whether they are sharp."""
    errors = [arb(number) - arb(ball) for number, ball in zip(numbers, balls, strict=True)]
    distances = np.array(list(map(farthest, errors)))
    radii = np.array([float(error.rad()) for error in errors])
    return distances, bool(np.all(np.isfinite(distances) & (radii <= SHARP * distances)))


def _distances(
    row: Primitive, operands: Sequence[Any], result: Any, params: Mapping[str, Any]
) -> Array:
    """Return proved bounds of how far a result is from that of exact arithmetic.

    Raises
    ------
    UnsupportedError
        Ball arithmetic has no such operation, or a bound is infinite.

    Examples
    --------
    >>> from difflab.primitives import exp
    >>> bool(_distances(exp, [1.0], np.exp(1.0), {}) < 4.5e-16)
    True
    """
    numbers = np.asarray(result, np.float64)
    distances = np.full(numbers.size, math.inf)
    try:
        operation = BallInterpreter().operation(row)
        for bits in PRECISIONS[:4]:
            with precision(bits):
                exact = jets(operation(*map(lifted, operands), **params))
                distances, sharp = apart(numbers.ravel().tolist(), (jet.value for jet in exact))
            if sharp:
                break
    except (Undecided, UnsupportedError):
        pass
    if not np.all(np.isfinite(distances)):
        text = f"the rounding error of '{row.name}' is unknown: it cannot be bounded"
        raise UnsupportedError(text)
    return WIDER * distances.reshape(numbers.shape)


PRODUCTS = frozenset(("prod", "cumprod"))
DOCUMENTED = 4.0
"""Units up to which the documented error of a row is used; beyond them it is measured as well."""


def is_exact(row: Primitive) -> bool:
    """Whether a primitive returns its operands, integers or truth values."""
    return row.structural or row.boolean or row.ulps == 0


def is_sum(row: Primitive) -> bool:
    """Whether a primitive adds elements, or products of two operands' elements."""
    if isinstance(row.rule, LinearMap):
        return not row.structural
    return isinstance(row.rule, ByArgument) and row.rule.is_product and len(row.rule.entries) == 2


def constant_error(value: float, name: str | None, form: FloatFormat) -> float:
    """Return the error of a number of the graph; ``pi`` and ``e`` have one in float64 too."""
    named = float(form.spacing(value)) / 2 if name else 0.0
    return max(named, abs(float(value) - float(form.cast(np.float64(value)))))


def rounding_errors(
    graph: Graph, values: Sequence[Any], formats: Sequence[FloatFormat]
) -> list[Array]:
    """Return a bound of the rounding error of each node of a graph.

    Scalar operations are computed together, those of one row and one format at a time.
    """
    bounds: list[Array] = [np.zeros(())] * len(graph)
    together: dict[tuple[int, FloatFormat], list[int]] = {}
    for node, opcode in enumerate(graph.opcode.tolist()):
        if opcode == CONSTANT:
            bounds[node] = np.asarray(constant_error(*graph.constants[node], formats[node]))
        elif opcode != INPUT:
            row = graph.primitives[opcode - FIRST_ROW]
            if _of_numbers(row) and not is_exact(row) and graph.shape(node) == ():
                together.setdefault((opcode, formats[node]), []).append(node)
                continue
            operands = [values[arg] for arg in graph.arguments(node)]
            error = rounding_error(row, operands, values[node], graph.params(node), formats[node])
            bounds[node] = np.broadcast_to(error, graph.shape(node))
    for (opcode, form), nodes in together.items():
        arguments = zip(*(graph.arguments(node) for node in nodes), strict=True)
        operands = [np.array([values[arg] for arg in each], np.float64) for each in arguments]
        results = np.array([values[node] for node in nodes], np.float64)
        errors = rounding_error(graph.primitives[opcode - FIRST_ROW], operands, results, {}, form)
        for node, error in zip(nodes, errors, strict=True):
            bounds[node] = error
    return bounds


def rounding_error(
    row: Primitive,
    operands: Sequence[Any],
    result: Any,
    params: Mapping[str, Any],
    form: FloatFormat,
) -> Array:
    """Return a bound of the rounding error of an operation, of the shape of its result.

    Parameters
    ----------
    row : Primitive
    operands : sequence of array
    result : array
        The result of the kernel.
    params : mapping
        The static parameters.
    form : FloatFormat
        In which the result is.

    Raises
    ------
    UnsupportedError
        No bound is known, and ball arithmetic has no such operation.

    Examples
    --------
    >>> from difflab.primitives import add, subtract
    >>> from difflab.core.dtypes import DOUBLE
    >>> float(rounding_error(add, [0.1, 0.2], 0.1 + 0.2, {}, DOUBLE)) == 2.0**-55
    True
    >>> float(rounding_error(subtract, [0.3, 0.2], 0.3 - 0.2, {}, DOUBLE))
    0.0
    """
    # Where a result is not finite, no output depends on it that is.
    y = np.nan_to_num(np.asarray(result, np.float64), posinf=form.largest, neginf=-form.largest)
    if is_exact(row):
        return np.zeros(y.shape)
    given = [np.asarray(each, np.float64) for each in operands]
    if is_sum(row) or row.name in PRODUCTS:
        return _accumulated(row, given, y, params, form)
    if _of_numbers(row) and row.ulps <= DOCUMENTED and row.portable is None:
        return _elementwise(row, given, y, form)

    measured = _distances(row, operands, y, params)
    return np.maximum(measured, row.ulps * form.spacing(y)) if _of_numbers(row) else measured


def _of_numbers(row: Primitive) -> bool:
    """Whether the documented error of a row is that of each element."""
    return row.shape is None and row.holds is None and not isinstance(row.rule, Custom)


def _elementwise(row: Primitive, given: Sequence[Array], y: Array, form: FloatFormat) -> Array:
    unit = form.spacing(y)
    half = np.where(_without_rounding(row, given, y, form), 0.0, unit / 2)
    if row.ulps <= 0.5:
        return half
    documented: Array = row.ulps * form.spacing(np.abs(y) + row.ulps * unit)
    if row.name != "power":
        return documented
    # A square that is the product, correctly rounded, has the error of a product.
    with np.errstate(all="ignore"):
        square = (given[1] == 2) & (form.cast(given[0] * given[0]) == y)
    return np.where(square, half, documented)


def _without_rounding(row: Primitive, given: Sequence[Array], y: Array, form: FloatFormat) -> Any:
    """Return where an operation that rounds correctly is exact."""
    with np.errstate(all="ignore"):
        if row.signs:
            a, b = given[0], row.signs[1] * given[1]
            part = y - a  # Knuth's two-sum
            return (a - (y - part)) + (b - part) == 0
        if row.degrees == (1, 1):
            return _exact_product(given[0], given[1], form) | (given[0] == 0) | (given[1] == 0)
        if row.degrees == (1, -1):
            return (y * given[1] == given[0]) & _exact_product(y, given[1], form)
        root, square = (y, given[0]) if row.name == "sqrt" else (given[0], y)
        return (root * root == square) & _exact_product(root, root, form)


def _exact_product(a: Array, b: Array, form: FloatFormat) -> Array:
    """Return where the product of two significands fits in that of a format."""
    first, second = _significant_bits(a), _significant_bits(b)
    fits = (first + second <= form.digits) | (first <= 1) | (second <= 1)
    exact: Array = fits & (np.abs(a * b) >= form.normal)
    return exact


def _significant_bits(x: Array) -> Array:
    """Return the bits of float64 from the first that is 1 to the last.

    Examples
    --------
    >>> _significant_bits(np.array([0.0, 1.0, 3.0, 10.0])).tolist()
    [0, 1, 2, 3]
    """
    whole = np.abs(np.ldexp(np.frexp(np.where(np.isfinite(x), x, 0.0))[0], DOUBLE.digits)).astype(
        np.int64
    )
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    bits: Array = np.where(whole == 0, 0, DOUBLE.digits - last)
    return bits


def _accumulated(
    row: Primitive, given: Sequence[Array], y: Array, params: Mapping[str, Any], form: FloatFormat
) -> Array:
    """Return γₙ times the result for absolute values: n elements are added or multiplied."""
    axes = params.get("axes", (-1,))
    terms = math.prod(given[0].shape[axis] for axis in axes) if given[0].ndim else 1
    if not isinstance(row.rule, ByArgument) or row.name in PRODUCTS:
        terms -= 1  # the first is only copied
    u = form.roundoff
    gamma = terms * u / (1 - terms * u) if terms * u < 0.5 else math.inf
    sizes = np.abs(y)
    if is_sum(row):
        sizes = np.asarray(row.computer(np)(*map(np.abs, given), **params))
        sizes = np.where(_whole(given, sizes, form), 0.0, sizes)
    bounds: Array = gamma * sizes + (form.spacing(0.0) * terms if row.name != "sum" else 0.0)
    return np.where(sizes == 0, 0.0, bounds)


def _whole(given: Sequence[Array], sizes: Array, form: FloatFormat) -> Any:
    """Return where sums are of integers that the format represents."""
    return all(np.all(x == np.rint(x)) for x in given) & (sizes <= 2.0**form.digits)
