"""NumPy code of a function in which every operation has a dtype of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.graph.function import Function
from difflab.methods.peers.array_code import NumpyCode
from difflab.methods.peers.written_values import WrittenValue
from difflab.rounding.evaluation import computing_format

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

    def result(self, node: int, found: Any) -> Any:
        """Return a result in the format of the node."""
        own, row = self.formats[node], self.graph.primitive(node)
        if own is None or not isinstance(found, WrittenValue) or (row is not None and row.boolean):
            return found
        if row is None:
            return self._cast(found, own, named=True)
        native = row.name in NATIVE and self._computing(node) is own
        return found if native else self._cast(found, own)

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
        One for each node; None for what is computed from constants alone.

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
    found: Callable[..., Any] = names[name]
    return found
