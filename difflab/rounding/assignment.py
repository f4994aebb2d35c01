"""An assignment of dtypes: its record, its NumPy code, its evaluation, and its tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff import gradient, jacobian
from difflab.core.dtypes import DOUBLE, FORMATS, FloatFormat
from difflab.core.place import SourceLocation
from difflab.graph.builder import Builder
from difflab.graph.exactly import exact_elements
from difflab.graph.function import Function, inline
from difflab.methods.peers.array_code import NumpyCode
from difflab.methods.peers.written_values import WrittenValue
from difflab.rounding.sweeps import Array, computing_format, evaluated


def shares(errors: Any, allowed: Any) -> Array:
    """Return errors as fractions of the tolerance; infinite if one is nan.

    Examples
    --------
    >>> shares(np.array([1.0, 0.0, np.nan]), np.array([4.0, 0.0, 1.0])).tolist()
    [0.25, 0.0, inf]
    """
    with np.errstate(all="ignore"):
        fractions = np.where(errors == 0, 0.0, errors / allowed)
    return np.where(np.isnan(fractions), np.inf, fractions)


@dataclass(frozen=True, eq=False)
class Tolerance:
    """The error allowed relative to the size of a result, and to `floors` where it is smaller.

    The elements of a row of the Jacobian share the size of the largest.

    Attributes
    ----------
    relative : float
    groups : array of int
        For each number of the flattened value and Jacobian, the results whose size it shares.
    floors : array
        The least size of each group.
    """

    relative: float
    groups: NDArray[np.int64]
    floors: Array

    @classmethod
    def over(cls, relative: float, m: int, reference: Array, floor: float | None) -> Tolerance:
        """Return a tolerance over a domain.

        Parameters
        ----------
        relative : float
        m : int
            The number of values; the Jacobian follows them.
        reference : array (N, m + m n)
            The results at points of the domain.
        floor : float or None
            The least size; by default the median over the points.
        """
        n = reference.shape[1] // m - 1
        groups = np.array([*range(m), *np.repeat(np.arange(m, 2 * m), n)])
        sizes = _grouped(np.abs(reference), groups)
        fixed = np.full(2 * m, 0.0 if floor is None else floor)
        return cls(relative, groups, np.median(sizes, axis=0) if floor is None else fixed)

    def allowed(self, reference: Array) -> Array:
        """Return the error that is allowed for every number of results ``(N, m + m n)``."""
        sizes = np.maximum(_grouped(np.abs(reference), self.groups), self.floors)
        tolerances: Array = self.relative * sizes[:, self.groups]
        return tolerances

    def parts(self, results: Array, reference: Array) -> Array:
        """Return the error of every element as a fraction of its tolerance."""
        with np.errstate(invalid="ignore"):
            errors = np.where(results == reference, 0.0, np.abs(results - reference))
        return shares(errors, self.allowed(reference))


def _grouped(sizes: Array, groups: NDArray[np.int64]) -> Array:
    """Return the largest size of each group, at each point."""
    largest = np.zeros((int(groups[-1]) + 1, len(sizes)))
    np.maximum.at(largest, groups, sizes.T)
    return largest.T


# --- the record -------------------------------------------------------------------------------


@dataclass(frozen=True)
class OperationDtype:
    """The dtype of one operation or input, and the bits that it saves.

    Attributes
    ----------
    node : int
    operation : str
        The name of the primitive; "input" for an input.
    text : str
        Its source.
    site : SourceLocation
    dtype : str
    saved : int
        Bits that it saves at each point, against float64.
    error : float
        The bound on the error of its rounding, to first order, as a part of the tolerance.
    refused : str
        Why the next narrower dtype does not do.
    """

    node: int
    operation: str
    text: str
    site: SourceLocation
    dtype: str
    saved: int
    error: float
    refused: str


@dataclass(frozen=True, eq=False)
class DtypeAssignment:
    """Result of `difflab.cheapest_dtypes`.

    Attributes
    ----------
    function : Function
        Value and gradient (Jacobian) in one graph.
    original : Function
    tolerance, floor : float
    over : dict of str to (float, float)
    operations : tuple of OperationDtype
        In evaluation order.
    code : str
        NumPy code; empty where an operation has none.
    verified : float
        The largest error at the verified points, as a part of the tolerance.
    points : int
        Points at which the graph was run, and
    compared : int
        of them those that were compared with mpmath, the worst ones among them.
    worst : dict of str to value
        The point with the largest error.
    formats : tuple of FloatFormat or None
    """

    function: Function
    original: Function
    tolerance: float
    over: dict[str, tuple[float, float]]
    operations: tuple[OperationDtype, ...]
    code: str
    verified: float
    points: int
    compared: int
    worst: dict[str, Any]
    formats: tuple[FloatFormat | None, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of operations and inputs of each dtype."""
        names = [each.dtype for each in self.operations]
        return {name: names.count(name) for name in FORMATS if name in names}

    @property
    def bits(self) -> int:
        """The bits of all results, at one point."""
        return self.bits_of_double - sum(each.saved for each in self.operations)

    @property
    def bits_of_double(self) -> int:
        """The bits of all results in float64."""
        graph = self.function.graph
        return sum(64 * math.prod(graph.shape(each.node)) for each in self.operations)

    def values(self, points: Array) -> Array:
        """Return value and gradient at packed points ``(N, n)``, in the assigned dtypes."""
        return run(self.function, np.asarray(points, np.float64), self.formats)[1]


# --- evaluation -------------------------------------------------------------------------------


def joint(function: Function) -> Function:
    """Return value and Jacobian as one function, equal operations once."""
    builder = Builder(function.graph.source)
    pairs = zip(function.inputs, function.input_shapes, strict=True)
    inputs = [builder.input(name, shape) for name, shape in pairs]
    value = inline(function, builder, inputs)
    derived = gradient(function) if function.m == 1 else jacobian(function)
    slopes = inline(derived, builder, inputs)
    names = [*function.output_names, *derived.output_names]
    return Function.build(builder, inputs, [*value, *slopes], names)


def run(
    function: Function, points: Array, formats: Sequence[FloatFormat | None]
) -> tuple[list[Any], Array]:
    """Return the values of all nodes, and the flattened outputs, at points ``(N, n)``."""
    known = dict(zip(function.input_nodes, function.split(points), strict=True))
    values = evaluated(function.graph, known, formats)
    batch = points.shape[:-1]
    flat = [
        np.broadcast_to(np.asarray(values[node], np.float64), (*batch, *shape)).reshape(*batch, -1)
        for node, shape in zip(function.outputs, function.output_shapes, strict=True)
    ]
    return values, np.concatenate(flat, axis=-1)


DIGITS = (40, 80, 160, 320)
"""Decimal digits of the truth, until two agree."""


def truth(function: Function, point: Array) -> list[float]:
    """Return the flattened outputs in mpmath, with digits that agree."""
    import mpmath

    before: list[Any] | None = None
    for digits in DIGITS:
        with mpmath.workdps(digits):
            flat = exact_elements(function, point)
            if before is not None and all(
                mpmath.almosteq(a, b, rel_eps=1e-20, abs_eps=1e-300)
                for a, b in zip(flat, before, strict=True)
            ):
                break
            before = flat
    return [float(number) for number in flat]


# --- code over NumPy --------------------------------------------------------------------------

NATIVE = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "negative", "sqrt", "exp", "log", "sin", "cos"),
        *("tan", "tanh", "absolute", "maximum", "minimum", "matmul", "sum"),
    )
)
"""Rows whose code gives the dtype of its operands."""


class _TypedCode(NumpyCode):
    """Code with the casts that an assignment of formats needs."""

    def __init__(
        self, function: Function, name: str, formats: Sequence[FloatFormat | None]
    ) -> None:
        super().__init__(function, name)
        self.formats = formats
        self.graph = function.graph
        self.casts: dict[tuple[int, str], Any] = {}

    def _computing(self, node: int) -> FloatFormat:
        own = self.formats[node]
        return computing_format(own, [self.formats[arg] for arg in self.graph.arguments(node)])

    def operand(self, node: int, child: int) -> Any:
        """Return an operand in the format in which the operation computes."""
        value = self.values[child]
        row = self.graph.primitive(child)
        if not isinstance(value, WrittenValue) or (row is not None and row.boolean):
            return value
        form, computing = self.formats[child] or DOUBLE, self._computing(node)
        if form is computing:
            return value
        key = child, computing.name
        if key not in self.casts:
            self.casts[key] = self._cast(value, computing)
        return self.casts[key]

    def result(self, node: int, value: Any) -> Any:
        """Return a result in the format of the node."""
        own, row = self.formats[node], self.graph.primitive(node)
        if own is None or not isinstance(value, WrittenValue) or (row is not None and row.boolean):
            return value
        if row is None:
            return self._cast(value, own, named=True)
        native = row.name in NATIVE and self._computing(node) is own
        return value if native else self._cast(value, own)

    def _cast(self, value: WrittenValue, form: FloatFormat, *, named: bool = False) -> WrittenValue:
        cast = f"np.{form.name}({value.text})"
        if form.name == "bfloat16":
            cast = f"np.asarray({value.text}, bfloat16)"
        text = self.lines.assigned(cast) if named else cast
        return WrittenValue(text, self.arrays, self.lines, shaped=value.shaped)


def dtype_code(function: Function, formats: Sequence[FloatFormat | None], name: str = "f") -> str:
    """Return NumPy code that computes each node in its format, with casts.

    Parameters
    ----------
    function : Function
        In the form `Function.in_floats`.
    formats : sequence of FloatFormat or None
        One for each node; None for nodes that depend on constants alone.

    Raises
    ------
    UnsupportedError
        An operation has no code over NumPy, such as a loop.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*y + x")
    >>> from difflab.core.dtypes import FORMATS
    >>> double, single = FORMATS["float64"], FORMATS["float32"]
    >>> print(dtype_code(f, [double, double, single, double]))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(x, y):
        t1 = np.float64(x)
        t2 = np.float64(y)
        return np.float64(np.float32(t1 * t2)) + t1
    """
    heading = {"special": "from scipy import special"}
    code = _TypedCode(function, name, formats).source(["import numpy as np"], heading)
    return f"from ml_dtypes import bfloat16\n{code}" if "bfloat16)" in code else code


def compiled(code: str, name: str = "f") -> Callable[..., Any]:
    """Return the function of printed code, whose names are those that the printer chose."""
    names: dict[str, Any] = {}
    exec(compile(code, "<difflab.rounding>", "exec"), names)  # noqa: S102 - printed code only
    function: Callable[..., Any] = names[name]
    return function
