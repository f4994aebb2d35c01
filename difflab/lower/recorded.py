"""Rows as functions of basic rows, which code defines where its language lacks a function.

The portable kernel of a row, or its kernel where that is array code, runs once on nodes of a graph.
Printers write the graph as an expression or as a function of scalars.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.errors import DifflabError
from difflab.graph.builder import Builder
from difflab.graph.control import Branches, WhileLoop
from difflab.graph.function import Function
from difflab.graph.ir import Params
from difflab.graph.node import Node
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.graph.trace import trace
from difflab.primitives import TABLE

NO_WORD = r"\W+"
CONTROL = "control"
"""The name of rows that hold a branch or a loop of numbers."""


class _Special:
    """SciPy's functions: the rows with their values, which may be functions of printed code."""

    def __init__(self) -> None:
        self.rows = {row.ufunc: row for row in TABLE.values() if row.ufunc} | dict(TABLE)

    def rgamma(self, x: Any) -> Any:
        """Return 1/Γ(x)."""
        return 1.0 / self.rows["gamma"](x)

    def __getattr__(self, name: str) -> Primitive:
        try:
            return self.rows[name]
        except KeyError:
            raise AttributeError(name) from None


class _Recording(ModuleType):
    """The array module of kernels that are recorded: NumPy's functions, branches and loops."""

    special = _Special()

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def iscomplexobj(x: Any) -> bool:
        """Whether values are complex: those of printed code are real."""
        return False

    @staticmethod
    def cond(choice: Any, yes: Callable[..., Any], no: Callable[..., Any], *args: Any) -> Any:
        """Return one of two functions of the arguments; the other one is not computed."""
        if not isinstance(choice, Node):
            return (yes if choice else no)(*args)
        return _controlled(Branches(_of_numbers(yes, args), _of_numbers(no, args)), [choice, *args])

    @staticmethod
    def while_loop(
        test: Callable[..., Any], body: Callable[..., Any], state: Sequence[Any], *constants: Any
    ) -> Any:
        """Return the last state of ``while test(*state, *constants): state = body(...)``.

        Values are scalars; a state of one scalar is returned as such.
        """
        values = [*state, *constants]
        if any(isinstance(value, Node) for value in values):
            loop = WhileLoop(_of_numbers(test, values), _of_numbers(body, values))
            return _controlled(loop, values)
        while test(*values):
            after = body(*values)
            values[: len(state)] = after if isinstance(after, tuple) else [after]
        return tuple(values[: len(state)]) if len(state) > 1 else values[0]


RECORDING = _Recording("difflab.recording")


def _of_numbers(function: Callable[..., Any], args: Sequence[Any]) -> Function:
    return _simplified(trace(function, *(0.0 for _ in args)))


def _simplified(function: Function) -> Function:
    return rewritten(function, None, Builder(function.graph.source, simplify=True))


def _controlled(control: Branches | WhileLoop, values: Sequence[Any]) -> Any:
    """Return the outputs of a branch or a loop on scalars, as nodes."""
    count = len(control.output_shapes)
    row = Primitive(
        name=CONTROL,
        rule=elementwise(*[None] * len(values)),
        kernel=lambda xp, *args: xp.nan,
        shape=lambda shapes: (count,),
        holds=control,
        truths=(0,) if isinstance(control, Branches) else (),
    )
    packed = row(*values)
    return tuple(packed[k] for k in range(count)) if count > 1 else packed[0]


@cache
def recorded(row: Primitive) -> Function | None:
    """Return a row as a function of others; None if it is basic, or cannot be recorded.

    Examples
    --------
    >>> from difflab.primitives import relu, sin
    >>> str(recorded(relu)), recorded(sin)
    ('max(x, 0.0)', None)
    """
    kernel = row.portable or row.kernel
    if not callable(kernel):
        return None
    compute: Callable[..., Any] = partial(kernel, RECORDING)
    try:
        names = [each.name for each in inspect.signature(compute).parameters.values()]
        if len(names) != row.arity or any(each.startswith("_") for each in names):
            names = [f"x{k + 1}" for k in range(row.arity or 0)]
        with np.errstate(all="ignore"):
            function = trace(compute, *(0.0 for _ in range(row.arity or 0)))
    except (DifflabError, ArithmeticError, AttributeError, TypeError, ValueError):
        return None
    if row in function.graph.primitives:
        return None
    return _simplified(function)


@cache
def _of_order(row: Primitive, orders: tuple[float, ...]) -> Primitive:
    """Return a row with these constants bound to its first arguments."""
    kernel: Any = row.portable or row.kernel
    rest = (row.arity or 0) - len(orders)
    names = "x" if rest == 1 else "ab"
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in names]

    def compute(xp: Any, *args: Any) -> Any:
        return kernel(xp, *orders, *args)

    compute.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("xp", inspect.Parameter.POSITIONAL_ONLY), *parameters]
    )
    suffix = "_".join(f"{order:g}" for order in orders).replace("-", "minus_")
    return Primitive(
        name=f"{row.name}_{re.sub(NO_WORD, '_', suffix)}",
        kernel=lambda xp, *args: row.computer(xp)(*orders, *args),
        portable=compute if callable(kernel) else None,
        rule=elementwise(*[None] * rest),
        holds=(row, orders),
    )


def of_constant_orders(
    builder: Builder, node: int, row: Primitive, args: Args, params: Params
) -> int | None:
    """Return the function of one order, where that is a constant."""
    constants = [builder.number(arg) for arg in args[: row.orders]]
    orders = tuple([float(order) for order in constants if order is not None])
    if not orders or len(orders) < row.orders:
        return None
    return builder.emit(_of_order(row, orders), args[row.orders :])
