"""Functions as Python code over NumPy, JAX and PyTorch.

The text is derived from the kernels that the peers run: NumPy's, and the functions that JAX and
PyTorch have for some of them.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn, cast

import numpy as np

from difflab.core.apply import special_functions
from difflab.core.optional import require
from difflab.core.primitive import Primitive
from difflab.errors import DifflabError, UnsupportedError
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT
from difflab.graph.names import FreshNames, check_function_name
from difflab.language.printers.view import PrintedGraph
from difflab.methods.peers.jax import jax_spelling
from difflab.methods.peers.spelling import LibrarySpelling, of_whole_order
from difflab.methods.peers.torch import torch_spelling
from difflab.methods.peers.written_values import (
    Lines,
    NumpyNames,
    WrittenName,
    WrittenValue,
    operated,
)
from difflab.primitives import argsort, linear_recurrence, power

_MODULE = re.compile(r"(?<![\w.])(np|jnp|jax\.lax|jax\.nn|jax\.scipy|special)\.")
_ROOTS = {"PyTorch": (0.5, -0.5)}
"""Exponents for which a library's operator computes a root, or its reciprocal."""
_RESERVED = frozenset({*keyword.kwlist, "np", "jnp", "jax", "torch", "special"})


def numpy_code(function: Function, name: str = "f") -> str:
    """Return the source of a Python function over NumPy that evaluates `function`.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the Python function.

    Returns
    -------
    str
        The source of a function whose arguments are the inputs in order, as scalars or arrays of
        their shapes. Several outputs are returned as a tuple. Where a function is undefined, the
        result is nan.

    Raises
    ------
    UnsupportedError
        An operation has no such code, such as a loop or a random number.

    Examples
    --------
    >>> import difflab as dl
    >>> print(numpy_code(dl.gradient(dl.parse("x1*x2 - sin(x2)"))))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(x1, x2):
        return np.stack((x2, x1 - np.cos(x2)))
    """
    heading = {"special": "from scipy import special"}
    return NumpyCode(function, name).source(["import numpy as np"], heading)


def jax_code(function: Function, name: str = "f") -> str:
    """Return the source of a Python function over JAX; otherwise as `numpy_code`.

    It computes in the precision of JAX, which is single unless ``jax_enable_x64`` is set.

    Examples
    --------
    >>> import difflab as dl
    >>> print(jax_code(dl.parse("sigmoid(x)*x")))
    import jax
    <BLANKLINE>
    <BLANKLINE>
    def f(x):
        return jax.nn.sigmoid(x) * x
    """
    heading = {
        "jax.lax": "import jax",
        "jax.nn": "import jax",
        "jax.scipy": "import jax.scipy.special",
        "jnp": "import jax.numpy as jnp",
        "np": "import numpy as np",
    }
    return _FunctionBody(function, name, "JAX", _jax()).source([], heading)


def torch_code(function: Function, name: str = "f") -> str:
    """Return the source of a Python function on PyTorch's tensors; otherwise as `numpy_code`.

    The arguments are tensors, of float64 where the result is to be as accurate as NumPy's.

    Examples
    --------
    >>> import difflab as dl
    >>> print(torch_code(dl.parse("max(x, y)^2")))
    import torch
    <BLANKLINE>
    <BLANKLINE>
    def f(x, y):
        return torch.maximum(x, y) ** 2
    """
    return _FunctionBody(function, name, "PyTorch", _torch()).source(
        ["import torch"], {"np": "import numpy as np"}
    )


@cache
def _numpy() -> LibrarySpelling:
    special = WrittenName("special", "np", special_functions(np))
    names = WrittenName("np", "np", np, special=special)

    def stable_order(x: WrittenValue, *, axes: tuple[int, ...], rank: int) -> WrittenValue:
        order: WrittenValue = names.argsort(x, axis=axes[0], kind="stable") * 1.0
        return order

    return _looping(LibrarySpelling(names, {argsort.name: stable_order}, names.float64))


@cache
def _jax() -> LibrarySpelling:
    jax = WrittenName("jax", "jnp", require("jax"))
    special = WrittenName("jax.scipy.special", "jnp", require("jax.scipy.special"))
    names = WrittenName("jnp", "jnp", require("jax.numpy"), special=special)
    rows = {**jax_spelling(jax, names).rows, "besseli": _finite(names.clip, "JAX", special)}
    return LibrarySpelling(names, rows, lifted=names.asarray)


@cache
def _torch() -> LibrarySpelling:
    names = WrittenName("torch", "torch", require("torch"), is_tensor=_is_written)
    spelling, special = torch_spelling(names), names.special
    values = {  # without a derivative in PyTorch, which printed code does not ask for
        "airyai": special.airy_ai,
        "besseli": _finite(names.clamp, "PyTorch", special),
        "besselj": _inaccurate,
        "besselk": _whole("K", {0: special.modified_bessel_k0, 1: special.modified_bessel_k1}),
        "bessely": _inaccurate,
    }
    rows = {**spelling.rows, **values}
    return _looping(LibrarySpelling(spelling.xp, rows, spelling.lifted, spelling.operators))


def _whole(
    letter: str, functions: Mapping[int, Any], title: str = "PyTorch"
) -> Callable[[Any, Any], Any]:
    return of_whole_order(title, f"Bessel functions {letter}", functions)


def _inaccurate(order: Any, x: Any) -> NoReturn:
    raise UnsupportedError("PyTorch's Bessel functions J and Y have 6 digits near 5 in float64")


def _finite(clip: Callable[..., Any], title: str, special: Any) -> Callable[[Any, Any], Any]:
    """Return I of finite arguments: the library's is nan at infinity, and infinite from 714 on."""
    functions = {0: special.i0, 1: special.i1}
    bounded = {n: lambda x, f=f: f(clip(x, -1e3, 1e3)) for n, f in functions.items()}
    return _whole("I", bounded, title)


def _looping(spelling: LibrarySpelling) -> LibrarySpelling:
    """Return the spelling with recurrences as loops, which need no products of coefficients."""
    names = cast(WrittenName, spelling.xp)

    def recurrence(a: WrittenValue, b: WrittenValue, *, axes: tuple[int, ...], rank: int) -> Any:
        (axis,), size, lines = axes, b.shape[axes[0]], b.lines
        if size < 2 or lines is None:
            return b
        steps, terms = lines.named(a.text), lines.named(b.text)
        behind = ", :" * (-1 - axis)
        solution, place = lines.assigned(f"[{terms}[..., 0{behind}]]"), lines.fresh()
        step, term = f"{steps}[..., {place} - 1{behind}]", f"{terms}[..., {place}{behind}]"
        lines.lines += [
            f"for {place} in range(1, {size}):",
            f"    {solution}.append({step} * {solution}[-1] + {term})",
        ]
        text = f"{names.text}.stack({solution}, {axis})"
        return WrittenValue(text, names.arrays, lines, shaped=lambda: b.shape)

    rows = {**spelling.rows, linear_recurrence.name: recurrence}
    return LibrarySpelling(spelling.xp, rows, spelling.lifted, spelling.operators)


def _is_written(value: Any) -> bool:
    return isinstance(value, WrittenValue)


@cache
def _under_numpys_names(spelling: LibrarySpelling) -> NumpyNames:
    return NumpyNames(cast(WrittenName, spelling.xp))


class _FunctionBody:
    """The body of one function.

    A subclass may change the operands and the result of an operation, by `operand` and `result`.
    """

    def __init__(
        self, function: Function, name: str, title: str, spelling: LibrarySpelling
    ) -> None:
        check_function_name(name, _RESERVED, "Python")
        self.name = name
        self.view = PrintedGraph(function, companions=True)
        self.function = self.view.function
        self.title = title
        self.arrays = spelling.xp.arrays
        names = FreshNames(reserved={*_RESERVED, name})
        self.inputs = [names.fresh(name) for name in self.function.inputs]
        self.lines = Lines(lambda: names.numbered("t"))
        self.spelling = spelling
        self.xp = _under_numpys_names(spelling)
        self.values: dict[int, Any] = {}

    def source(self, imports: Sequence[str], optional: Mapping[str, str]) -> str:
        """Return the code; an import of `optional` is written where its prefix is used."""
        results = ", ".join(self._array(self.values[node]).text for node in self._computed())
        body = [*self.lines.lines, f"return {results}"]
        heading = f"def {self.name}({', '.join(self.inputs)}):"
        text = "\n    ".join([heading, *body])
        modules = set(_MODULE.findall(text))
        used = [line for prefix, line in optional.items() if prefix in modules]
        return "\n".join([*imports, *dict.fromkeys(used), "", "", text]).lstrip("\n")

    def _computed(self) -> Sequence[int]:
        graph = self.function.graph
        for name, node in zip(self.inputs, self.function.input_nodes, strict=True):
            self.values[node] = self.result(node, self._value(name, node))
        for node in range(len(graph)):
            row = self.view.rows[node]
            if row is not None and self.view.uses[node]:
                self.values[node] = self._kept(node, self.result(node, self._row(node, row)))
            elif graph.opcode[node] == CONSTANT:
                self.values[node] = self.spelling.constant(*graph.constants[node])
        return self.function.outputs

    def operand(self, node: int, child: int) -> Any:
        """Return a value as a node takes it."""
        return self.values[child]

    def result(self, node: int, value: Any) -> Any:
        """Return a value as the code keeps it."""
        return value

    def _row(self, node: int, row: Primitive) -> Any:
        """Return the expression of an operation: an operator, or the code that its kernel emits."""
        children, params = self.view.children[node], self.function.graph.params(node)
        if row.holds is not None:
            raise UnsupportedError(f"{self.title} code has no form of '{row.name}'")
        operator = self.spelling.operators.get(row.name)
        plain = [self.operand(node, child) for child in children]
        written = any(isinstance(value, WrittenValue) for value in plain)
        known = not any(isinstance(value, WrittenValue) for value in plain[1:])
        if row is power and written and known and plain[1] in _ROOTS.get(self.title, (0.5,)):
            return row.computer(self.xp)(*plain)  # the operator is a root, nan at -inf
        if operator is not None and written:
            return operated(operator, plain, getattr(np, row.name))
        try:
            compute = self.spelling.rows.get(row.name) or row.computer(self.xp)
            values = [self._array(value, row) for value in plain]
            return compute(*values, **params)
        except (DifflabError, TypeError, AttributeError, ValueError) as error:
            raise UnsupportedError(
                f"{self.title} code has no form of '{row.name}': {error}"
            ) from error

    def _kept(self, node: int, value: Any) -> Any:
        """Return a value of the node's shape; one that is used again gets a name."""
        if not isinstance(value, WrittenValue):
            return value
        if self.view.uses[node] > 1 and not value.text.isidentifier():
            return self._value(self.lines.assigned(value.text), node)
        value.shaped = lambda: self.function.graph.shape(node)
        value.lines = self.lines  # of constants as well: arrays that parts are assigned to
        return value

    def _value(self, text: str, node: int) -> WrittenValue:
        shape = self.function.graph.shape(node)
        return WrittenValue(text, self.arrays, self.lines, shaped=lambda: shape)

    def _array(self, value: Any, row: Primitive | None = None) -> Any:
        """Return a value of the library, not a Python number, where `row` takes no such."""
        if isinstance(value, WrittenValue):
            return value
        if row is not None and row.shape is None and self.arrays != "torch":
            return WrittenValue(repr(value), self.arrays, self.lines, shaped=lambda: ())
        lifted = self.spelling.lifted(float(value))
        lifted.shaped, lifted.lines = lambda: (), self.lines
        return lifted


class NumpyCode(_FunctionBody):
    """The body of a function over NumPy."""

    def __init__(self, function: Function, name: str) -> None:
        super().__init__(function, name, "NumPy", _numpy())
