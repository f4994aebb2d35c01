"""The common part of the readers: inputs, the function that is built, and its verification.

The graph and its source are evaluated at sampled points.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab import primitives as rows
from difflab.core.wording import counted, exact
from difflab.errors import DifflabError, GraphMismatchError, InputError
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function, evaluate
from difflab.graph.names import natural_order, output_names
from difflab.graph.node import Node
from difflab.graph.random_rounding import DRAWS, RandomRounding, told_apart
from difflab.language.lexer import is_name

EXACT = 2**53
"""Integers beyond it are rounded to float64."""


def checked_name(name: str, what: str) -> str:
    """Return a name that difflab's language can write.

    Raises
    ------
    InputError
        It contains anything other than letters, digits and ``_``.

    Examples
    --------
    >>> checked_name("x_1", "the symbol")
    'x_1'
    """
    if not is_name(name):
        raise InputError(
            f"{what} {name!r} is no name in difflab's language",
            hint="names contain letters, digits and _, and do not begin with a digit: rename it",
        )
    return name


def cleaned_name(name: str) -> str:
    """Return a name with ``_`` for each character that difflab's language does not allow.

    Examples
    --------
    >>> cleaned_name("layer.1/bias"), cleaned_name("2nd")
    ('layer_1_bias', 'x2nd')
    """
    cleaned = re.sub(r"\W", "_", name)
    return f"x{cleaned}" if not cleaned or cleaned[0].isdigit() else cleaned


def built(builder: Builder, outputs: Sequence[Node], names: Sequence[str] = ()) -> Function:
    """Return the function of all inputs of `builder`, in natural order.

    Parameters
    ----------
    builder : Builder
        Holds the inputs and the nodes.
    outputs : sequence of Node
        The values to return.
    names : sequence of str, optional
        The names of the outputs.
    """
    inputs = sorted(builder.names, key=lambda node: natural_order(builder.names[node]))
    labels = names or output_names([None] * len(outputs), builder.names.values())
    return Function.build(builder, inputs, [node.id for node in outputs], labels)


Array = NDArray[Any]

MOST_ELEMENTS = 4_000_000
MOST_OPERATIONS = 200_000
"""Elements of all values of a graph, and its operations, above which nothing is compared."""
SECONDS = 1.0
"""Time after which no further point is begun."""
FACTOR = 64.0
"""How far a difference may exceed the largest change that the random roundings make."""
ULPS = 64.0
"""Roundings of the largest element of a result that are allowed in any case."""
INACCURATE = 1e-6
"""Relative error that is allowed where a library approximates a special function."""
SMALLEST = 2.0**-100
"""Size below which results are not told apart: libraries may compute without subnormal numbers."""
SHOWN = 6
"""Elements of an array that a message shows."""
_SPECIAL = frozenset(
    name
    for module in (
        rows.airy,
        rows.bessel,
        rows.beta_functions,
        rows.integrals,
        rows.inverses,
        rows.normal,
        rows.special,
        rows.zeta_function,
    )
    for name in module.__all__
)


@dataclass(frozen=True)
class ReaderSource:
    """The source of a function, evaluated by the library that it comes from.

    Attributes
    ----------
    library : str
        What evaluates it, for messages.
    call : callable
        ``call(values)`` returns a value for each output, arrays in the shape of the output; one
        that cannot be computed there is None. It may raise anything where it cannot evaluate.
    dtypes : sequence of dtype
        The dtype of each input in the source; float64 for all if there are none.
    eps : float
        The rounding of the coarsest dtype in which the source computes.
    fixed : mapping of int to ndarray
        The inputs whose value is that of the source, such as weights of a model.
    most : int
        Operations above which nothing is compared.
    """

    library: str
    call: Callable[[list[Array]], Sequence[Any]]
    dtypes: Sequence[Any] = ()
    eps: float = 2.0**-52
    fixed: Mapping[int, Array] = field(default_factory=dict)
    most: int = MOST_OPERATIONS


def verified(function: Function, source: ReaderSource) -> Function:
    """Return the function, once it has the values of its source at sampled points.

    Parameters
    ----------
    function : Function
        The reading.
    source : ReaderSource
        Evaluates what was read.

    Raises
    ------
    GraphMismatchError
        A value differs beyond rounding; the message has both, and the point.

    Warns
    -----
    UserWarning
        The function is too large for that: nothing was compared.
    """
    operations, elements = len(function.graph), function.graph.element_count()
    if operations > source.most or elements > MOST_ELEMENTS:
        warnings.warn(
            f"what was read was not compared with {source.library}: it has"
            f" {counted(operations, 'operation')} on {counted(elements, 'element')};"
            " verify=False says that this is known",
            stacklevel=3,
        )
        return function
    begun = perf_counter()
    for values in _points(function, source):
        try:
            theirs = source.call(values)
        except Exception:  # what a library raises where it cannot evaluate has no common class
            continue
        _require_same(function, source, values, theirs)
        if perf_counter() - begun > SECONDS:
            break
    return function


def _points(function: Function, source: ReaderSource) -> Iterator[list[Array]]:
    """Yield values of the inputs: positive, of both signs, large, small integers and zeros."""
    draw = np.random.default_rng(0)
    ranges: list[Callable[[Any], Any]] = [
        lambda shape: draw.uniform(0.1, 0.9, shape),
        lambda shape: draw.uniform(-0.9, 0.9, shape),
        lambda shape: draw.uniform(1.1, 2.9, shape),
        lambda shape: draw.normal(0.0, 4.0, shape),
        lambda shape: draw.integers(-2, 4, shape).astype(float),
        np.zeros,
    ]
    if _is_special(function):  # libraries approximate them where their arguments are positive
        del ranges[3:], ranges[1]
    fixed = source.fixed
    dtypes = source.dtypes or [np.float64] * len(function.inputs)
    for sampled in ranges:
        values = []
        for k, (shape, dtype) in enumerate(zip(function.input_shapes, dtypes, strict=True)):
            drawn = np.asarray(sampled(shape))
            kind = np.dtype(dtype).kind
            if kind == "b":
                drawn = drawn > 0.5
            elif kind in "iu":
                drawn = np.abs(np.rint(drawn))
            values.append(np.asarray(fixed[k] if k in fixed else drawn.astype(dtype)))
        yield values


def _require_same(
    function: Function, source: ReaderSource, values: list[Array], theirs: Sequence[Any]
) -> None:
    """Raise an error if the graph has another value than its source at a point."""
    inputs = [np.asarray(value, dtype=np.float64) for value in values]
    ours = [np.asarray(value, dtype=np.float64) for value in _computed(function, inputs)]
    if len(theirs) != len(ours):
        raise GraphMismatchError(
            f"{source.library} returns {counted(len(theirs), 'output')}, the reading {len(ours)}"
        )
    pairs = [
        (k, actual, np.asarray(expected))
        for k, (actual, expected) in enumerate(zip(ours, theirs, strict=True))
        if expected is not None and np.asarray(expected).dtype.kind in "fiub"
    ]
    for k, actual, expected in pairs:
        if actual.shape != expected.shape:
            raise GraphMismatchError(
                f"the output {function.output_names[k]} has the shape {expected.shape} by"
                f" {source.library}, and {actual.shape} by the reading"
            )
    if all(
        _near(actual, expected, _margin(function, source, actual)).all()
        for _, actual, expected in pairs
    ):
        return
    moved = [_computed(function, inputs, RandomRounding(source.eps, seed)) for seed in range(DRAWS)]
    for k, actual, expected in pairs:
        with np.errstate(all="ignore"):
            spread = np.max([np.abs(run[k] - actual) for run in moved], axis=0)
        spread = np.where(np.isnan(spread), np.inf, spread)
        same = _near(actual, expected, _margin(function, source, actual) + FACTOR * spread)
        if not same.all():
            raise _difference(function, source, values, k, actual, expected, same)


def _computed(
    function: Function, values: Sequence[Array], interpreter: ArrayInterpreter | None = None
) -> list[Any]:
    rounding = interpreter if isinstance(interpreter, RandomRounding) else None
    inputs = values if rounding is None else [rounding.moved(value) for value in values]
    with np.errstate(all="ignore"):
        outputs = evaluate(function, inputs, interpreter or ArrayInterpreter())
    return [
        np.broadcast_to(value, shape)
        for value, shape in zip(outputs, function.output_shapes, strict=True)
    ]


def _margin(function: Function, source: ReaderSource, actual: Array) -> Any:
    """Return the difference that is allowed in any case."""
    relative = ULPS * source.eps
    if _is_special(function):
        relative = max(relative, INACCURATE)
    size = np.abs(actual[np.isfinite(actual)])
    return relative * max(float(size.max(initial=0.0)), SMALLEST)


def _is_special(function: Function) -> bool:
    return not _SPECIAL.isdisjoint(row.name for row in function.graph.primitives)


def _near(actual: Array, expected: Array, margin: Any) -> Any:
    expected = np.asarray(expected, dtype=np.float64)
    with np.errstate(all="ignore"):
        finite = np.isfinite(actual) & np.isfinite(expected)
        return ~finite | (np.abs(actual - expected) <= margin)


def _difference(
    function: Function,
    source: ReaderSource,
    values: Sequence[Array],
    output: int,
    actual: Array,
    expected: Array,
    same: Any,
) -> DifflabError:
    """Return the error that states both values of the first element that differs."""
    index = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    label = function.output_names[output]
    label += f"[{', '.join(map(str, index))}]" if index else ""
    theirs, ours = told_apart(float(expected[index]), float(actual[index]))
    point = ", ".join(
        f"{name} = {_shown(value)}"
        for name, value in list(zip(function.inputs, values, strict=True))[:SHOWN]
    )
    more = ", …" if len(values) > SHOWN else ""
    return GraphMismatchError(
        f"what was read is not the function of its source: at {point}{more} {source.library} gives"
        f" {label} = {theirs}, the graph {ours}",
        hint="please report it; verify=False reads it without the comparison",
    )


def _shown(value: Array) -> str:
    flat = [exact(float(number)) for number in value.reshape(-1)[:SHOWN]]
    if value.ndim == 0:
        return flat[0]
    return f"[{', '.join(flat)}{', …' if value.size > SHOWN else ''}]"
