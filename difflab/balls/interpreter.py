"""What the rows of the table and the numbers of a graph are on expansions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.balls import (
    densities,
    distributions,
    elementary,
    fourier,
    hypergeometric,
    matrices,
    orders,
    piecewise,
    random,
    reductions,
    remainders,
    roots,
    special,
    structure,
)
from difflab.balls.jets import Jet, Undecided, constant
from difflab.balls.library import arb, exactly
from difflab.balls.limit import within
from difflab.core.primitive import Custom, Primitive
from difflab.errors import UnsupportedError
from difflab.graph.control import Solution
from difflab.graph.expansion import expansion_value, prepared_expansion
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import Number
from difflab.primitives import constant_array

__all__ = ["BallInterpreter"]

HOMES: tuple[ModuleType, ...] = (
    elementary,
    special,
    densities,
    distributions,
    remainders,
    piecewise,
    reductions,
    orders,
    matrices,
    fourier,
    hypergeometric,
    random,
    structure,
)


class BallInterpreter(ElementInterpreter):
    """Values are expansions whose coefficients are balls, and arrays of them.

    Parameters
    ----------
    exact : bool
        Whether numbers are fractions, so that rational operations are exact.

    Examples
    --------
    >>> from difflab.primitives import sin
    >>> BallInterpreter().operation(sin)(Jet(arb(0)))
    Jet(0, {}, None, None)
    """

    def __init__(self, exact: bool = False) -> None:
        super().__init__()
        self.exact = exact

    def constant(self, value: Number, name: str | None) -> Jet:
        """Return the number exactly: ``pi`` and ``e`` at the working precision."""
        if name:
            return Jet(arb.pi() if name == "pi" else arb.const_e())
        found = constant(value)
        return Jet(exactly(found.value)) if self.exact else found

    def _make(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.holds is not None:
            return partial(_controlled, self, primitive)
        if isinstance(primitive.rule, Custom):
            if primitive.expansion is None:
                raise UnsupportedError(
                    f"{primitive.name} cannot be recorded, so it can only be evaluated in float64"
                )
            return lambda *args: expansion_value(primitive, args, self)
        return super()._make(primitive)

    def _whole(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive is constant_array:
            return partial(_constants, self)
        return within(_form(primitive) or super()._whole(primitive))

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        form = _form(primitive)
        return within(form or prepared_expansion(primitive, self))


def _form(primitive: Primitive) -> Callable[..., Any] | None:
    """Return the function of balls by a row's name, or else what its column `flint` states."""
    stated = primitive.flint
    found = _own(primitive.name) or (_own(stated) if isinstance(stated, str) else None)
    if isinstance(stated, str) and found is None:
        raise UnsupportedError(f"FLINT has no function for '{primitive.name}'")
    return found or (partial(stated, elementary) if callable(stated) else None)


def _own(name: str) -> Callable[..., Any] | None:
    """Return the public function of that name of the modules of balls."""
    return next((getattr(home, name) for home in HOMES if name in home.__all__), None)


def _constants(on: BallInterpreter, *, shape: tuple[int, ...], values: bytes) -> Any:
    """Return an array of numbers."""
    numbers = np.frombuffer(values, dtype=np.float64).tolist()
    found = (on.constant(number, None) for number in numbers)
    return np.fromiter(found, dtype=object).reshape(shape)


def _controlled(on: BallInterpreter, primitive: Primitive, *args: Any) -> Any:
    """Compute a loop or a choice, whose predicates must be decided."""
    control = primitive.holds
    shapes = control.output_shapes
    try:
        if isinstance(control, Solution) and hasattr(control.rule, "equations"):
            results = roots.solved(on, control, args)
        else:
            results = control.run(on, args, ())
    except Undecided as found:
        unknown = Jet(arb.nan(), fault=found.fault)
        results = [np.full(shape, unknown, dtype=object)[()] for shape in shapes]
    if control.single:
        return results[0]
    return np.concatenate([np.asarray(result, dtype=object).ravel() for result in results])
