"""The options of a comparison, declared once: signatures, defaults and the command follow.

`difflab.compare`, the comparisons of the lab and ``difflab compare`` take ``**options`` of a
declaration; `stated` gives them the signature that this stands for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypedDict, TypeVar, get_args, get_type_hints

from difflab.core.progress import Progress

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Option:
    """The default of an option, and its form in the command, which lacks those without a help."""

    default: Any
    help: str = ""
    metavar: str | None = None
    least: float | None = None
    most: float | None = None


_TARGETS = "How forward and reverse execute: auto, python, numpy, native, cupy, exact."
_VERIFY = "Do not run module:function to compare its values with its graph's."
_TIMEOUT = "The time limit of each method and of the referee."
_METHODS = "Only these of `difflab methods`; or peers, or all."
_DTYPE = "The dtypes in which methods compute: float64, float32, float16, bfloat16."
_POINTS = "How many, with --over; 10,000 by default."
_SCALE = "With --over: the points are even in the logarithm."


class _SharedOptions(TypedDict, total=False):
    methods: Annotated[Sequence[str] | None, Option(None, _METHODS, "a,b")]
    order: Annotated[int, Option(1, "2 compares Hessians.", least=1, most=2)]
    target: Annotated[str, Option("auto", _TARGETS, "NAME")]
    timeout: Annotated[float, Option(10.0, _TIMEOUT, "SECONDS", least=0.01)]
    seed: Annotated[int, Option(0, "Seed for choosing the point.", least=0)]
    dtype: Annotated[Sequence[str] | None, Option(None, _DTYPE, "a,b")]
    verify: Annotated[bool, Option(True, _VERIFY)]
    progress: Annotated[Progress | None, Option(None)]


class CompareOptions(_SharedOptions, total=False):
    """The optional arguments of a comparison at a point, as `difflab.compare` documents them."""

    timing: Annotated[bool, Option(True, "Judge only; do not time calls.")]


class DomainOptions(_SharedOptions, total=False):
    """The optional arguments of a comparison over a domain, as `difflab.compare` documents them."""

    points: Annotated[int, Option(10_000, _POINTS, "N", least=1)]
    scale: Annotated[Mapping[str, str] | None, Option(None, _SCALE, "x1=log")]
    resume: Annotated[str | Path | None, Option(None)]


def declared(*declarations: type) -> dict[str, tuple[Any, Option]]:
    """Return the type and the declaration of every option, by name.

    Examples
    --------
    >>> declared(CompareOptions)["order"][1].default
    1
    """
    hints = [get_type_hints(each, include_extras=True) for each in declarations]
    return {name: get_args(hint) for each in hints for name, hint in each.items()}


def chosen(options: Mapping[str, Any], declaration: type) -> Any:
    """Return the options of a declaration among some.

    Examples
    --------
    >>> chosen({"order": 2, "points": 20}, CompareOptions)
    {'order': 2}
    """
    return {name: options[name] for name in options if name in declaration.__annotations__}


def inserted(own: Signature, options: Iterable[Parameter]) -> Signature:
    """Return a signature with options in place of its ``**options``."""
    parameters = own.parameters.values()
    before = [each for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]
    after = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    return own.replace(parameters=[*before, *options, *after])


def stated(*declarations: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function with ``**options`` the signature and the defaults of declared options."""
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=each.default, annotation=kind)
        for name, (kind, each) in declared(*declarations).items()
    ]

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inserted(inspect.signature(function), options)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            bound.apply_defaults()
            return function(*bound.args, **bound.kwargs)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorated
