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
from functools import cached_property, partial
from itertools import accumulate
from math import prod
from types import ModuleType
from typing import Any

from difflab.core.apply import apply, special_functions, with_scalars

Map = Callable[..., Any]
Params = tuple[tuple[str, Any], ...]
"""The static parameters of an operation, by name and in order."""
Shape = tuple[int, ...]
REMEMBERED = 4096
"""Kernels cached per row; beyond this, the cache is cleared."""


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One map ``(t, y, *args) -> t · ∂y/∂arg`` per argument; None where no derivative flows.

    The maps `of_exponent` are shorter where the last argument is a known number: (x²)′ = 2·x.
    """

    maps: tuple[Map | None, ...]
    of_exponent: bool = False


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
class LinearMap:
    """A linear primitive that moves and adds elements, its own tangent map.

    One that multiplies them by other factors, such as a Fourier transform, is a `Transpose`: sums
    of masks could cancel.

    ``transpose(t, position, shapes, **params)`` gives the cotangent of one argument, where
    `shapes` are the arguments' shapes. At elements that no result reads, arguments in `selects`
    are like a branch that is not selected: they contribute exactly zero. Where the transpose writes
    t into zeros, ``element(shapes, **params)`` gives the key, and the shape of the array.
    """

    transpose: Map
    selects: tuple[int, ...] = ()
    element: Map | None = None


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
    why, and what to do. A `selective` vjp also takes ``wanted``, a truth value for every
    argument: no other cotangent is needed.

    ``batched(size, args)`` gives the values of `size` examples along a new first axis, for each
    argument from a pair: a node, and whether it is such a stack. Without it, each example is
    computed on its own.
    """

    jvp: Map | str
    vjp: Map | str
    selective: bool = False
    batched: Map | None = None


DerivativeRule = Elementwise | Select | LinearMap | ByArgument | Custom


def elementwise(*maps: Map | None, of_exponent: bool = False) -> Elementwise:
    """State the rule of an elementwise primitive, a map ``(t, y, *args)`` per argument."""
    return Elementwise(maps, of_exponent)


def select(*conditions: Map | None) -> Select:
    """State the rule of a primitive that returns one of its arguments."""
    return Select(conditions)


def linear(transpose: Map, selects: tuple[int, ...] = ()) -> LinearMap:
    """State the rule of a linear primitive by its transpose."""
    return LinearMap(transpose, selects)


def bilinear(*transposes: Map) -> ByArgument:
    """State the rule of a primitive that is linear in each argument, by its transposes.

    ``transposes[k](t, *args, **params)`` is the cotangent of argument k.
    """
    return ByArgument(tuple(map(Transpose, transposes)))


def tangent(*entries: Map | Transpose | None) -> ByArgument:
    """State the rule of an array primitive by a tangent map ``(t, y, *args)`` per argument."""
    return ByArgument(entries)


def custom(
    jvp: Map | str, vjp: Map | str, *, selective: bool = False, batched: Map | None = None
) -> Custom:
    """State user-defined forward and reverse rules, or why there is none."""
    return Custom(jvp, vjp, selective, batched)


DEFAULT: Any = "default"
"""The value of a column that follows from the others."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Primitive:
    """One row of the table. Calling it applies it: ``sin(x)`` is ``apply(sin, x)``.

    A row states what differs from the default. A *function of numbers* has neither `shape` nor
    `expansion`; its defaults are those of a function that every library has by the row's name.

    Attributes
    ----------
    name : str
        The row's name; graphs are stored by it.
    arity : int or None
        The number of arguments, by default those of `rule`; None for any number.
    kernel : str or callable
        A name on the array module (``"sin"``), on its special functions (``"special.erf"``),
        or a function ``(xp, *args, **params)``; by default `name`.
    ulps : float
        The documented error of the kernel in units in the last place of float64: 0 where nothing
        is rounded, a half for operations that IEEE 754 rounds correctly, 4 for other functions.
        Above that, it is that of a special function in the box of `samples`, or far from its zeros.
        Of rows that move data or give truth values it means nothing.
    ufunc : str
        The universal function with the same values, by which `native` and `cupy` spell the row; by
        default a `kernel` that is a name.
    rule : Elementwise, Select, LinearMap, ByArgument or Custom
        The derivative.
    names : tuple of str
        Spellings as a function of the language; by default `name`, but none for operators and
        rows that are no functions of numbers.
    reserved : bool
        Whether its names are the function's also where they are not called.
    infix : str
        The operator's symbol, where it is an operator.
    sympy, mpmath : str, callable or None
        The name on that library, or ``(library, *args)``; None where it has no such function
        and there is no `expansion`. By default `sympy` is `name` for functions of numbers, and
        `mpmath` is the same as `sympy`.
    flint : str, callable or None
        The name of a function of `difflab.balls`, or ``(elementary, *args)``, which computes with
        Taylor expansions of balls; by default the function there of the row's name, and where
        there is none, the same as `mpmath`.
    portable : callable or None
        The kernel ``(xp, *args)`` on real numbers, over universal functions of C99 and other rows,
        branches ``xp.cond`` and loops ``xp.while_loop``, where `kernel` calls a library or is a
        name: code in a language without the function defines what it records.
    latex : str
        The template in LaTeX; by default an upright name with the arguments.
    glyph : str
        The operation in pictures; by default its first spelling.
    notation : str
        The operation in evaluation traces: a template of an operator, or the name of a
        function; by default the `glyph` as one or the other, and the name of a function whose
        names are not `reserved`: its glyph may be an input's letter.
    brackets : callable or None
        ``(shape, **params) -> str`` gives the static parameters as the language writes them behind
        the arguments, for a result of that shape; empty where they are implied. By default the
        `axes`, unless they are all.
    located : callable or None
        ``(position, **params) -> (key, shape)``, where the language writes behind each argument
        the indices of its elements in an array of that shape; None where they are implied.
    roles : tuple of str
        The names of the arguments in pictures; by default they are numbered.
    zero_slope : str
        Why the derivative is zero: a template over the operands and ``{other}``, the other one.
    taylor : callable or None
        The recurrence ``(k, y, *args, **params)`` of its derivatives along a curve, see
        `difflab.primitives.recurrences`; without one they follow from `rule`.
    samples : tuple of (float, float)
        Sampling interval of each argument, inside the domain and away from kinks.
    defined : str
        The domain in words, such as ``"x > 0"``; empty if it is all reals.
    kinks : callable or None
        ``(*args)``: zero where the derivative jumps.
    convention : str
        The derivative there.
    analytic : bool
        Whether complex steps apply.
    whole_orders_analytic : bool
        Whether they apply where the first argument is a whole number.
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
    signs : tuple of int
        The sign of each argument, 1 or -1, of a row that adds them up.
    degrees : tuple of int
        The exponent of each argument, 1 for a factor and -1 for a divisor, of a row that multiplies
        them.
    polynomial : bool
        Whether the row is a polynomial of its first argument where the second one is a whole number
        that is not negative.
    in_order : bool
        Whether the result has all elements of the arguments, in their order.
    view : bool
        Whether NumPy's result is a view of the argument; a reshape of a transposed view copies.
    read_only : str
        Why NumPy does not write to such a view; empty if it does.
    shape : callable or None
        ``(shapes, **params) -> shape``; None for broadcasting.
    dtype : str
        The dtype of the results of traced code, where it is not that of the arguments.
    empty : float or None
        The value of a reduction over no elements, where it has one.
    arithmetic : callable or None
        ``(shapes, **params) -> int``, the scalar operations of a row of arrays; None for those
        that `difflab.graph.counts.Counts` states.
    unbatched : callable or None
        ``(xp, **params) -> kernel`` for values without batch axes, if there is a faster one.
    stacked : callable or None
        ``(size, args, **params) -> stack`` for a row of arrays that is not the same operation on a
        stack of examples, with one more axis in its parameters; `args` are pairs of an operand and
        whether it is a stack.
    holds : object or None
        The parts of a row that is made for one use, such as a loop and its body.
    workspace : callable or None
        Returns the bytes that the kernel of a row that evaluates functions holds at one point.
    holding : callable or None
        ``holding(other)`` returns a row of the same kind that holds something else.
    """

    name: str
    arity: int | None = DEFAULT
    kernel: str | Callable[..., Any] = DEFAULT
    ulps: float = 4.0
    ufunc: str = DEFAULT
    rule: DerivativeRule
    names: tuple[str, ...] = DEFAULT
    reserved: bool = True
    infix: str = ""
    sympy: str | Callable[..., Any] | None = DEFAULT
    mpmath: str | Callable[..., Any] | None = DEFAULT
    flint: str | Callable[..., Any] | None = DEFAULT
    portable: Callable[..., Any] | None = None
    latex: str = DEFAULT
    glyph: str = DEFAULT
    notation: str = DEFAULT
    brackets: Callable[..., str] | None = None
    located: Callable[..., tuple[Any, Shape] | None] | None = None
    roles: tuple[str, ...] = ()
    zero_slope: str = ""
    taylor: Callable[..., Any] | None = None
    samples: tuple[tuple[float, float], ...] = ()
    defined: str = ""
    kinks: Callable[..., Any] | None = None
    convention: str = ""
    analytic: bool = True
    whole_orders_analytic: bool = False
    boolean: bool = False
    truths: tuple[int, ...] = ()
    expansion: Callable[..., Any] | None = None
    structural: bool = False
    commutative: bool = False
    signs: tuple[int, ...] = ()
    degrees: tuple[int, ...] = ()
    polynomial: bool = False
    in_order: bool = False
    view: bool = False
    read_only: str = ""
    shape: Callable[..., Shape] | None = None
    dtype: str = ""
    empty: float | None = None
    arithmetic: Callable[..., int] | None = None
    unbatched: Callable[..., Callable[..., Any]] | None = None
    stacked: Callable[..., Any] | None = None
    holds: Any = None
    workspace: Callable[[], int] | None = None
    holding: Callable[[Any], Primitive] | None = None
    _computers: dict[Any, Callable[..., Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Set the columns that follow from the others."""
        name, of_numbers = self.name, self.shape is None and self.expansion is None
        self._default("arity", _arity(self.rule))
        operands = ", ".join(f"{{{position}}}" for position in range(self.arity or 0))
        upright = f"\\operatorname{{{{{name}}}}}\\left({operands}\\right)"
        self._default("kernel", name)
        self._default("ufunc", self.kernel.split(".")[-1] if isinstance(self.kernel, str) else "")
        self._default("names", (name,) if of_numbers and not self.infix else ())
        self._default("sympy", name if of_numbers else None)
        self._default("mpmath", self.sympy)
        self._default("flint", self.mpmath)
        self._default("latex", upright if of_numbers else "")
        self._default("glyph", self.names[0] if self.names else name)
        sign = f"{{0}} {self.glyph} {{1}}" if self.infix and self.arity == 2 else self.glyph
        self._default("notation", sign if self.reserved else self.names[0])

    def _default(self, column: str, value: Any) -> None:
        if getattr(self, column) is DEFAULT:
            object.__setattr__(self, column, value)

    __call__ = apply

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    @property
    def orders(self) -> int:
        """The number of first arguments that are orders: they have one sample."""
        return sum(low == high for low, high in self.samples)

    @property
    def is_piecewise_constant(self) -> bool:
        """Whether no derivative flows to any argument."""
        if isinstance(self.rule, Elementwise):
            return not any(self.rule.maps)
        return isinstance(self.rule, ByArgument) and not any(self.rule.entries)

    def computer(self, xp: ModuleType) -> Callable[..., Any]:
        """Return the kernel on the array module `xp`, as a function of the arguments."""
        kernel = self._computers.get(xp)
        if kernel is None:
            kernel = self._computers[xp] = self._bind(xp)
        return kernel

    def unbatched_computer(self, xp: ModuleType, params: Params) -> Callable[..., Any]:
        """Return the kernel for static parameters and values without batch axes."""
        if not params and self.unbatched is None:
            return self.computer(xp)
        kernel = self._computers.get((xp, params))
        if kernel is None:
            if len(self._computers) >= REMEMBERED:
                self._computers.clear()
            kernel = self._computers[xp, params] = self.at_point(xp, dict(params))
        return kernel

    def at_point(self, xp: ModuleType, params: dict[str, Any]) -> Callable[..., Any]:
        """Return the kernel as `unbatched_computer` does, not cached."""
        if self.unbatched is None:
            return partial(self.computer(xp), **params)
        return with_scalars(xp, self.unbatched(xp, **params))

    def _bind(self, xp: ModuleType) -> Callable[..., Any]:
        kernel = self.kernel
        if callable(kernel):
            return with_scalars(xp, partial(kernel, xp))
        *modules, name = kernel.split(".")
        home: Any = special_functions(xp) if modules else xp
        return with_scalars(xp, getattr(home, name))


def _arity(rule: DerivativeRule) -> int | None:
    """Return the number of arguments that a rule has entries for; a linear rule has one."""
    if isinstance(rule, Elementwise):
        return len(rule.maps)
    if isinstance(rule, Select):
        return len(rule.conditions)
    if isinstance(rule, ByArgument):
        return len(rule.entries)
    return 1 if isinstance(rule, LinearMap) else None
