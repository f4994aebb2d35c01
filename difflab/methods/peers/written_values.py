"""Values that write the code which computes them: kernels run on them, and their text results.

A kernel is one function for every array module. Run on these values with a module that writes
names, it gives its text in that module's functions, so that no row needs a second spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import PYTORCH
from difflab.errors import UnsupportedError
from difflab.graph.ir import Shape
from difflab.methods.peers.spelling import REAL

_LONGEST = 40
"""Characters of an operand beyond which it gets a line of its own."""
_ATOM, _POWER, _UNARY, _PRODUCT, _SUM, _AND, _OR, _COMPARED = 9, 8, 7, 6, 5, 4, 3, 2


class Lines:
    """The statements of a function body, and a source of fresh names."""

    def __init__(self, fresh: Callable[[], str]) -> None:
        self.fresh = fresh
        self.lines: list[str] = []

    def assigned(self, text: str) -> str:
        """Write a statement that gives an expression a name; return the name."""
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def named(self, text: str) -> str:
        """Return a name as it is, and of another expression a new name."""
        return text if text.isidentifier() else self.assigned(text)


class WrittenName(ModuleType):
    """A module, function or constant of a library, as text.

    Parameters
    ----------
    text : str
        Its name in the code.
    arrays : str
        The array module that it belongs to: ``np``, ``jnp`` or ``torch``.
    thing : object
        The object of that name: a name that the library lacks is refused.

    Examples
    --------
    >>> names = WrittenName("np", "np", np)
    >>> names.sin(names.pi).text
    'np.sin(np.pi)'
    """

    def __init__(self, text: str, arrays: str, thing: Any, **names: Any) -> None:
        super().__init__(f"text of {text}")
        self.__dict__.update(names)
        self.text = text
        self.arrays = arrays
        self.thing = thing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(self.thing, name):
            raise UnsupportedError(f"{self.text} has no function '{name}'")
        return WrittenName(f"{self.text}.{name}", self.arrays, getattr(self.thing, name))

    def __call__(self, *args: Any, **kwargs: Any) -> WrittenValue:
        """Return the call as a value."""
        given = [written_text(arg) for arg in args]
        given += [f"{name}={written_text(value)}" for name, value in kwargs.items()]
        lines = next(_lines_of([*args, *kwargs.values()]), None)
        return WrittenValue(f"{self.text}({', '.join(given)})", self.arrays, lines)


def _lines_of(args: Iterable[Any]) -> Iterator[Lines]:
    for arg in args:
        if isinstance(arg, WrittenValue) and arg.lines is not None:
            yield arg.lines
        elif isinstance(arg, tuple | list):
            yield from _lines_of(arg)


class NumpyNames(ModuleType):
    """A library under NumPy's names, `library`, whose results know their shapes by NumPy's."""

    def __init__(self, library: WrittenName) -> None:
        # Kernels ask for PyTorch by the name of its adapter.
        super().__init__(PYTORCH if library.arrays == "torch" else library.arrays)
        self._library = library

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in REAL:
            return REAL[name]
        member = getattr(self._library, name)
        computed = getattr(np, name, None)
        if not callable(computed) or isinstance(computed, type):  # a dtype is an argument
            return member
        kind = _WrittenUfunc if isinstance(computed, np.ufunc) else partial
        return kind(self._called, member, computed)

    def _called(self, operation: Any, computed: Any, *args: Any, **kwargs: Any) -> Any:
        value = operation(*args, **kwargs)
        if isinstance(value, WrittenValue):
            value.shaped = partial(_shape_of, computed, args, kwargs)
        return value


class _WrittenUfunc(partial[Any]):
    """A universal function, of which addition can be done at indices that may repeat."""

    def at(self, array: WrittenValue, where: Any, part: Any) -> None:
        """Write the statement that changes an array as ``numpy.add.at`` does."""
        if self.args[1] is not np.add:
            raise UnsupportedError("only sums are written at indices")
        array.add_at(where, part)


class WrittenValue:
    """An expression of the printed code.

    Attributes
    ----------
    text : str
        The expression.
    arrays : str
        The array module that computes it.
    lines : Lines or None
        The body that it is a part of, if it depends on an input.
    level : int
        How tightly its outermost operator binds.
    shaped : callable or None
        Returns its shape.
    """

    __array_ufunc__ = None  # NumPy's arrays leave operators to this class
    __hash__ = None  # type: ignore[assignment]  # == writes a comparison

    def __init__(
        self,
        text: str,
        arrays: str,
        lines: Lines | None = None,
        level: int = _ATOM,
        shaped: Callable[[], Shape] | None = None,
    ) -> None:
        self.text = text
        self.arrays = arrays
        self.lines = lines
        self.level = level
        self.shaped = shaped

    @property
    def shape(self) -> Shape:
        """The shape."""
        if self.shaped is None:
            raise UnsupportedError("the shape of a value is not known when its code is written")
        return self.shaped()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> WrittenName:
        """Every number is a float, of 64 bits unless JAX is set to fewer."""
        return WrittenName("float", self.arrays, float)

    def __bool__(self) -> bool:
        raise UnsupportedError("code that branches on a value cannot be written")

    def __getattr__(self, name: str) -> Any:
        # JAX's arrays are changed by `at`; those of other libraries are assigned to.
        lacked = {"np": "at", "torch": "at astype"}.get(self.arrays, "").split()
        if name.startswith("_") or name in lacked:
            raise AttributeError(name)
        return _WrittenAttribute(f"{self._atom()}.{name}", self.arrays, self.lines)

    @property
    def real(self) -> WrittenValue:
        """The real part of a complex value."""
        return WrittenValue(f"{self._atom()}.real", self.arrays, self.lines, shaped=self.shaped)

    @property
    def imag(self) -> WrittenValue:
        """The imaginary part of a complex value."""
        return WrittenValue(f"{self._atom()}.imag", self.arrays, self.lines, shaped=self.shaped)

    def operand(self) -> str:
        """Return the text as a part of another one; a long one gets a name, once."""
        if len(self.text) > _LONGEST and self.lines is not None:
            self.text, self.level = self.lines.assigned(self.text), _ATOM
        return self.text

    def _atom(self) -> str:
        self.operand()
        return self.text if self.level == _ATOM else f"({self.text})"

    def reshape(self, *shape: Any) -> WrittenValue:
        """Return the same elements in another shape."""
        to = ", ".join(map(written_text, shape))
        text = f"{self._atom()}.reshape({to})"
        if self.arrays in ("np", "jnp") and self.shaped is not None and not self.shape:
            to = to if isinstance(shape[0], tuple) else f"({to},)"
            text = f"{self.arrays}.reshape({self.operand()}, {to})"  # it may be a Python number
        shaped = partial(_shape_of, lambda x, *to: np.reshape(x, *to), (self, *shape), {})
        return WrittenValue(text, self.arrays, self.lines, shaped=shaped)

    def __getitem__(self, key: Any) -> WrittenValue:
        text = f"{self._atom()}[{_key_text(key)}]"
        shaped = partial(_shape_of, lambda x: x[key], (self,), {})
        return WrittenValue(text, self.arrays, self.lines, shaped=shaped)

    def __setitem__(self, key: Any, part: Any) -> None:
        lines = self._changing(part)
        lines.lines.append(f"{self.text}[{_key_text(key)}] = {written_text(part)}")

    def add_at(self, where: Any, part: Any) -> None:
        """Write the statement that adds parts to elements, of which an index may repeat."""
        lines, place, added = self._changing(part), written_text(where), written_text(part)
        lines.lines.append(
            f"{self.text}.index_put_(({place},), {added}, accumulate=True)"
            if self.arrays == "torch"
            else f"np.add.at({self.text}, {place}, {added})"
        )

    def _changing(self, part: Any) -> Lines:
        """Return the lines of a statement that changes the array, which has a name then."""
        lines = self.lines or next(_lines_of([part]))
        if not self.text.isidentifier():
            self.text, self.level, self.lines = lines.assigned(self.text), _ATOM, lines
        return lines

    def __neg__(self) -> WrittenValue:
        return operated("-{}", (self,), np.negative)

    def __invert__(self) -> WrittenValue:
        return operated("~{}", (self,), np.logical_not)


class _WrittenAttribute(WrittenName):
    """A method of a value, or ``x.at``, which an index follows."""

    def __init__(self, text: str, arrays: str, lines: Lines | None) -> None:
        super().__init__(text, arrays, None)
        self.lines = lines

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _WrittenAttribute(f"{self.text}.{name}", self.arrays, self.lines)

    def __getitem__(self, key: Any) -> _WrittenAttribute:
        return _WrittenAttribute(f"{self.text}[{_key_text(key)}]", self.arrays, self.lines)

    def __call__(self, *args: Any, **kwargs: Any) -> WrittenValue:
        value = super().__call__(*args, **kwargs)
        value.lines = value.lines or self.lines
        return value


_LEVELS = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARED),
    "|": _OR,
    "&": _AND,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "@": _PRODUCT,
    "%": _PRODUCT,
    "**": _POWER,
}
_METHODS = {
    "add": ("+", np.add),
    "sub": ("-", np.subtract),
    "mul": ("*", np.multiply),
    "truediv": ("/", np.divide),
    "matmul": ("@", np.matmul),
    "mod": ("%", np.mod),
    "pow": ("**", np.power),
    "and": ("&", np.logical_and),
    "or": ("|", np.logical_or),
    "lt": ("<", np.less),
    "le": ("<=", np.less_equal),
    "gt": (">", np.greater),
    "ge": (">=", np.greater_equal),
    "eq": ("==", np.equal),
    "ne": ("!=", np.not_equal),
}
"""Python's operators, and NumPy's functions for them."""


def _define(name: str, symbol: str, compute: Any) -> None:
    template = f"{{}} {symbol} {{}}"
    setattr(WrittenValue, f"__{name}__", lambda a, b: operated(template, (a, b), compute))
    if _LEVELS[symbol] > _COMPARED:
        setattr(WrittenValue, f"__r{name}__", lambda b, a: operated(template, (a, b), compute))


for _name, _definition in _METHODS.items():
    _define(_name, *_definition)


def operated(template: str, values: Sequence[Any], compute: Any) -> WrittenValue:
    """Return an operator's expression, with the brackets that its operands need.

    Parameters
    ----------
    template : str
        Such as ``"{} + {}"``.
    values : sequence
        The operands, one of them a `WrittenValue` at least.
    compute : callable
        NumPy's function, which gives the shape.

    Examples
    --------
    >>> x = WrittenValue("x", "np")
    >>> operated("{} * {}", (x, x + 1.0), np.multiply).text
    'x * (x + 1.0)'
    """
    symbol = template.replace("{}", "").strip()
    level = _LEVELS[symbol] if len(values) == 2 else _UNARY
    parts = []
    for position, value in enumerate(values):
        text = written_text(value)
        own = (
            value.level if isinstance(value, WrittenValue) else _UNARY if text[0] == "-" else _ATOM
        )
        # A power binds its base tightly, a comparison does not chain, a - (b - c) needs brackets.
        tight = level in (_POWER, _UNARY, _COMPARED) or position == 1
        parts.append(f"({text})" if own < level or (own == level and tight) else text)
    arrays = next(value.arrays for value in values if isinstance(value, WrittenValue))
    shaped = partial(_shape_of, compute, tuple(values), {})
    lines = next(_lines_of(values), None)
    return WrittenValue(template.format(*parts), arrays, lines, level, shaped)


def _shape_of(compute: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Shape:
    """Return the shape of NumPy's result for arrays of these shapes."""
    with np.errstate(all="ignore"):
        result = compute(
            *map(_sample, args), **{name: _sample(value) for name, value in kwargs.items()}
        )
    return np.shape(result)


def _sample(value: Any) -> Any:
    """Return an array of the shape of a value."""
    if isinstance(value, WrittenValue):
        return np.broadcast_to(np.float64(1.0), value.shape)
    if isinstance(value, tuple | list):
        return type(value)(map(_sample, value))
    return value


def written_text(value: Any) -> str:
    """Return an argument as Python code.

    Examples
    --------
    >>> written_text((1, None)), written_text(np.float64(0.5)), written_text(slice(0, None, 2))
    ('(1, None)', '0.5', 'slice(0, None, 2)')
    """
    if isinstance(value, WrittenValue):
        return value.operand()
    if isinstance(value, WrittenName):
        return value.text
    if isinstance(value, FunctionType):
        names = list(signature(value).parameters)
        body = value(*[WrittenValue(name, "") for name in names])
        return f"lambda {', '.join(names)}: {written_text(body)}"
    if isinstance(value, type):  # a scalar type, such as np.int64
        return f"np.{value.__name__}"
    if isinstance(value, np.ndarray) and not value.size:  # a list has no shape
        return f"np.zeros({written_text(value.shape)}, np.{value.dtype})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})".replace("nan", "np.nan").replace("inf", "np.inf")
    if isinstance(value, tuple | list):
        inner = ", ".join(map(written_text, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, float | np.floating):
        text = repr(float(value))
        return text if text.lstrip("-")[0].isdigit() else f"float('{text}')"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _key_text(key: Any) -> str:
    entries = key if isinstance(key, tuple) else (key,)
    return ", ".join(map(_entry_text, entries))


def _entry_text(entry: Any) -> str:
    if isinstance(entry, slice):
        first, stop, step = (
            "" if part is None else str(part) for part in (entry.start, entry.stop, entry.step)
        )
        return f"{first}:{stop}" + (f":{step}" if step not in ("", "1") else "")
    return "..." if entry is Ellipsis else written_text(entry)
