"""Options of a command from the declared options of comparisons."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin

import typer

from difflab.cli.options import parse_names
from difflab.errors import InputError
from difflab.lab.options import CompareOptions, DomainOptions, Option, declared, inserted

_DECLARED = declared(CompareOptions, DomainOptions)
ONLY_OVER = _DECLARED.keys() - declared(CompareOptions).keys()
"""The options of a domain alone, which a command gets if they are given."""


def comparison_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command with ``**options`` those of a comparison, as `difflab.compare` takes them."""
    shown = [_parameter(name, *each) for name, each in _DECLARED.items() if each[1].help]

    @wraps(command)
    def call(*arguments: Any, **given: Any) -> int:
        for name in (each.name for each in shown):
            if given[name] is None and name in ONLY_OVER:
                del given[name]
            elif _DECLARED[name][0] is bool:
                given[name] = not given[name]
        return command(*arguments, **given)

    own = inspect.signature(command, eval_str=True)
    call.__signature__ = inserted(own, shown)  # type: ignore[attr-defined]
    return call


def _parameter(name: str, kind: Any, option: Option) -> Parameter:
    """Return the parameter of an option; a boolean one is ``--no-NAME``."""
    kinds = [get_origin(one) for one in get_args(kind)]
    parser = next((_PARSERS[one] for one in kinds if one in _PARSERS), None)
    form = typer.Option(
        *[f"--no-{name}"] * (kind is bool),
        help=option.help,
        metavar=option.metavar,
        min=option.least,
        max=option.most,
        parser=parser,
    )
    default = None if name in ONLY_OVER else kind is not bool and option.default
    plain: Any = str if parser else kind
    known: Any = (plain | None if default is None else plain, form)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[known])


def parse_scales(text: str) -> dict[str, str]:
    """Return the scales of ``--scale x1=log,x2=linear``.

    Raises
    ------
    InputError
        One is not written as ``name=log``.

    Examples
    --------
    >>> parse_scales("x1=log, x2=linear")
    {'x1': 'log', 'x2': 'linear'}
    """
    found: dict[str, str] = {}
    for item in parse_names(text) or []:
        name, equals, scale = item.partition("=")
        if not equals or not name.strip():
            raise InputError(f"a scale is written as name=log, not {item!r}", hint="--scale x1=log")
        found[name.strip()] = scale.strip()
    return found


_PARSERS: dict[Any, Callable[[str], Any]] = {Sequence: parse_names, Mapping: parse_scales}
