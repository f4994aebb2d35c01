"""The derivatives of one value along a curve, and which rows state theirs themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from difflab.core.primitive import (
    ByArgument,
    Custom,
    Elementwise,
    LinearMap,
    Params,
    Primitive,
    Select,
)
from difflab.graph.source import NOWHERE


@dataclass(slots=True, eq=False)
class Series:
    """The derivatives of one value along a curve; None where one is zero.

    Attributes
    ----------
    row : Primitive or None
        The primitive that computes it from `args`; None for given terms and for a derivative.
    params : Params
        The row's static parameters.
    args : list of Series
        The arguments; of a derivative the series that it is the derivative of.
    varies : bool
        Whether any derivative may be other than zero.
    terms : list of int or None
        The nodes of the value and the derivatives computed so far.
    mask : int or None
        The condition under which the derivatives apply; zero elsewhere.
    rate : Series or None
        The series of y′.
    """

    row: Primitive | None
    params: Params
    args: list[Series]
    varies: bool
    terms: list[int | None] = field(default_factory=list)
    mask: int | None = None
    rate: Series | None = None
    span: int = NOWHERE

    @property
    def is_derivative(self) -> bool:
        """Whether it is the derivative of its only argument."""
        return self.row is None and bool(self.args)


def is_direct(row: Primitive) -> bool:
    """Whether a derivative follows from those of the arguments, without the derivative rule."""
    rule = row.rule
    bilinear = isinstance(rule, ByArgument) and rule.is_product and len(rule.entries) == 2
    return row.taylor is not None or isinstance(rule, Select | LinearMap) or bilinear


def varies(row: Primitive, args: Sequence[Series]) -> bool:
    """Whether the result of a row changes with its arguments, almost everywhere."""
    rule = row.rule
    if isinstance(rule, LinearMap | Custom):
        return any(arg.varies for arg in args)
    if isinstance(rule, Elementwise):
        entries: Sequence[Any] = rule.maps
    else:
        entries = rule.conditions if isinstance(rule, Select) else rule.entries
    return any(arg.varies and entry is not None for arg, entry in zip(args, entries, strict=True))
