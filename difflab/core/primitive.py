"""`Primitive`, one row of the table, and the kinds of derivative rules.

A derivative rule is stated once and serves both modes and every order. An elementwise
primitive y = φ(a, b, …) has a diagonal Jacobian, and a diagonal map is its own transpose:
the rule ``t ↦ t · ∂φ/∂a`` maps a tangent forward (t = ȧ) and a cotangent backward (t = ȳ).
A primitive that mixes an array's elements states its tangent map, and the engine transposes it.
Rules are written with difflab operations only, so the derivative of a graph is a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import accumulate
from math import prod
from types import ModuleType
from typing import Any

from difflab.core.apply import apply

__all__ = [
    "ByArgument",
    "Custom",
    "Elementwise",
    "Linear",
    "Params",
    "Primitive",
    "Rule",
    "Select",
    "Shape",
    "Shapes",
    "Transpose",
    "bilinear",
    "custom",
    "elementwise",
    "linear",
    "select",
    "tangent",
]

Map = Callable[..., Any]
SPECIAL = {
    "numpy": "scipy.special",
    "cupy": "cupyx.scipy.special",
    "jax.numpy": "jax.scipy.special",
}
"""The module of special functions for each array module; by default its own `special`."""
Params = tuple[tuple[str, Any], ...]
"""The static parameters of an operation, by name and in order."""
Shape = tuple[int, ...]
REMEMBERED = 4096
"""Kernels cached per row; beyond this, the cache is cleared."""


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One map ``(t, y, *args) -> t · ∂y/∂arg`` per argument; None where no derivative flows."""

    maps: tuple[Map | None, ...]


@dataclass(frozen=True, slots=True)
class Select:
    """One condition ``(*args) -> truth`` per argument: where it holds, y *is* that argument.

    An argument whose condition does not hold contributes exactly zero, whatever the
    derivatives inside it are. None marks an argument that is never passed on.
    """

    conditions: tuple[Map | None, ...]


class Shapes(tuple[Shape, ...]):
    """The shapes of a row's arguments, of which there may be a hundred thousand.

    Examples
    --------
    >>> Shapes([(2, 3), (), (4,)]).starts
    [0, 6, 7, 11]
    """

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each argument's elements when all arguments are concatenated."""
        return list(accumulate(map(prod, self), initial=0))


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear primitive, its own tangent map.

    ``transpose(t, position, shapes, **params)`` gives the cotangent of one argument, where
    `shapes` are the arguments' shapes.
    """

    transpose: Map


@dataclass(frozen=True, slots=True)
class Transpose:
    """Marks an argument in which a primitive is linear: the primitive is its own tangent map.

    ``map(t, *args, **params)`` gives the argument's cotangent.
    """

    map: Map


@dataclass(frozen=True, slots=True)
class ByArgument:
    """One entry per argument, for primitives that mix the elements of arrays.

    An entry is a `Transpose`, or a tangent map ``(t, y, *args, **params) -> ẏ`` that is linear
    in t and uses only linear and elementwise operations on it: the engine finds its transpose
    by a reverse sweep over the operations that the map records. None where no derivative flows.
    """

    entries: tuple[Map | Transpose | None, ...]

    @property
    def is_product(self) -> bool:
        """Whether the primitive is linear in each argument, so that it keeps zeros."""
        return all(isinstance(entry, Transpose) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Custom:
    """User-defined rules, which take all arguments at once.

    ``jvp(dots, y, *args)`` gives ẏ, and ``vjp(y_bar, y, *args)`` a cotangent for every argument,
    None where no derivative flows. A missing rule is replaced by a message that says
    why, and what to do.
    """

    jvp: Map | str
    vjp: Map | str


Rule = Elementwise | Select | Linear | ByArgument | Custom


def elementwise(*maps: Map | None) -> Elementwise:
    """State the rule of an elementwise primitive, a map ``(t, y, *args)`` per argument."""
    return Elementwise(maps)


def select(*conditions: Map | None) -> Select:
    """State the rule of a primitive that returns one of its arguments."""
    return Select(conditions)


def linear(transpose: Map) -> Linear:
    """State the rule of a linear primitive by its transpose."""
    return Linear(transpose)


def bilinear(*transposes: Map) -> ByArgument:
    """State the rule of a primitive that is linear in each argument, by its transposes.

    ``transposes[k](t, *args, **params)`` is the cotangent of argument k.
    """
    return ByArgument(tuple(map(Transpose, transposes)))


def tangent(*entries: Map | Transpose | None) -> ByArgument:
    """State the rule of an array primitive by a tangent map ``(t, y, *args)`` per argument."""
    return ByArgument(entries)


def custom(jvp: Map | str, vjp: Map | str) -> Custom:
    """State user-defined forward and reverse rules, or why there is none."""
    return Custom(jvp, vjp)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Primitive:
    """One row of the table. Calling it applies it: ``sin(x)`` is ``apply(sin, x)``.

    Attributes
    ----------
    name : str
        The row's name; graphs are stored by it.
    arity : int or None
        The number of arguments; None for any number.
    kernel : str or callable
        A name on the array module (``"sin"``), on its special functions
        (``"special.erf"``), or a function ``(xp, *args, **params)``.
    rule : Elementwise, Select, Linear, ByArgument or Custom
        The derivative.
    names : tuple of str
        Spellings as a function of the language; empty when it has none.
    infix : str
        The operator's symbol, where it is an operator.
    sympy, mpmath : str, callable or None
        The name on that library, or ``(library, *args)``; None where it has no such function
        and there is no `expansion`.
    c, python, latex : str
        Templates over ``{0}``, ``{1}``, …; `python` and `c` call the functions of `math` and
        C99, and those of `difflab.primitives.helpers`.
    samples : tuple of (float, float)
        Sampling interval of each argument, inside the domain and away from kinks.
    defined : str
        The domain in words, such as ``"x > 0"``; empty if it is all reals.
    kinks : callable or None
        ``(*args)``: a value that is zero where the derivative jumps.
    convention : str
        The value of the derivative there.
    analytic : bool
        Whether the complex-step method applies.
    boolean : bool
        Whether the result is a truth value.
    truths : tuple of int
        The positions of the arguments that are used as truth values.
    expansion : callable or None
        The same function in basic operations, for rows that no other library has.
    structural : bool
        Whether it only moves data, which is not counted as an operation.
    commutative : bool
        Whether the order of the two arguments does not matter.
    shape : callable or None
        ``(shapes, **params) -> shape``; None for elementwise broadcasting.
    unbatched : callable or None
        ``(xp, **params) -> kernel`` for values without batch axes, if there is a faster one.
    """

    name: str
    arity: int | None
    kernel: str | Callable[..., Any]
    rule: Rule
    names: tuple[str, ...] = ()
    infix: str = ""
    sympy: str | Callable[..., Any] | None = None
    mpmath: str | Callable[..., Any] | None = None
    c: str = ""
    python: str = ""
    latex: str = ""
    samples: tuple[tuple[float, float], ...] = ()
    defined: str = ""
    kinks: Callable[..., Any] | None = None
    convention: str = ""
    analytic: bool = True
    boolean: bool = False
    truths: tuple[int, ...] = ()
    expansion: Callable[..., Any] | None = None
    structural: bool = False
    commutative: bool = False
    shape: Callable[..., Shape] | None = None
    unbatched: Callable[..., Callable[..., Any]] | None = None
    _computers: dict[Any, Callable[..., Any]] = field(default_factory=dict, repr=False)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive to scalars, arrays or carriers."""
        return apply(self, *args, **params)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def computer(self, xp: ModuleType) -> Callable[..., Any]:
        """Return the kernel on the array module `xp`, as a function of the arguments."""
        found = self._computers.get(xp)
        if found is None:
            found = self._computers[xp] = self._bind(xp)
        return found

    def unbatched_computer(self, xp: ModuleType, params: Params) -> Callable[..., Any]:
        """Return the kernel for static parameters and values without batch axes."""
        if not params and self.unbatched is None:
            return self.computer(xp)
        found = self._computers.get((xp, params))
        if found is None:
            if len(self._computers) >= REMEMBERED:
                self._computers.clear()
            kwargs = dict(params)
            found = (
                partial(self.computer(xp), **kwargs)
                if self.unbatched is None
                else self.unbatched(xp, **kwargs)
            )
            self._computers[xp, params] = found
        return found

    def _bind(self, xp: ModuleType) -> Callable[..., Any]:
        kernel = self.kernel
        if callable(kernel):
            return partial(kernel, xp)
        home: Any = xp
        *modules, name = kernel.split(".")
        if modules:
            home = special_functions(xp)
        found: Callable[..., Any] = getattr(home, name)
        return found


@cache
def special_functions(xp: ModuleType) -> ModuleType:
    """Return the special functions that belong to the array module `xp`."""
    owner = SPECIAL.get(xp.__name__)
    found: ModuleType = xp.special if owner is None else import_module(owner)
    return found
