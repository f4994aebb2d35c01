"""Subcommands: their order, and their options and helps from the docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperGroup
from typer.models import ParameterInfo

from difflab.cli.options import ExpressionCommand

_WHOLE = 10_000
"""More characters than any help text has: none is cut."""


class CommandGroup(TyperGroup):
    """A group whose help wraps the subcommands' sentences, where typer cuts them at the width."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each ``rich_help_panel``, in the order of the first command of it."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                heading = panel if isinstance(panel, str) else "Commands"
                row = (name, command.get_short_help_str(_WHOLE))
                panels.setdefault(heading, []).append(row)
        widest = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
        for heading, rows in panels.items():
            with formatter.section(heading):
                # The columns of all sections line up.
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])


_NAMES = {
    "destination": ("--output", "-o"),
    "form": ("--format",),
    "names": ("--peers",),
    "opened": ("--open",),
    "output": ("--output", "-o"),
    "sets": ("--set",),
}
"""The names of options that are not those of their parameters."""
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+)(?: : (.*))?\n((?: .*(?:\n|\Z))+)", re.MULTILINE)
_TEXTS = ("expression", "family")
"""Arguments that may begin with a minus."""


def add(
    app: typer.Typer,
    command: Callable[..., Any],
    panel: str | None = None,
    name: str | None = None,
    help: str | None = None,
) -> None:
    """Add a documented function as a command; the examples of its docstring end the help."""
    examples = _sections(command)[1].get("Examples")
    first = next(iter(inspect.signature(command).parameters), "")
    app.command(
        name or command.__name__.replace("_", "-"),
        cls=ExpressionCommand if first in _TEXTS else None,
        epilog=None if examples is None else f"\b\n{inspect.cleandoc(examples)}\n",
        help=help,
        rich_help_panel=panel,
    )(documented(command))


def documented(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose arguments and options typer reads from its signature."""
    summary, parts = _sections(command)
    described = {
        name: {"metavar": metavar or None, "help": " ".join(map(str.strip, text.splitlines()))}
        for name, metavar, text in _ENTRY.findall(parts.get("Parameters", ""))
    }
    own = inspect.signature(command, eval_str=True)
    parameters = list(own.parameters.values())
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]

    @wraps(command)
    def call(**arguments: Any) -> Any:
        first = [arguments.pop(name) for name in positional]
        return command(*first, **arguments)

    call.__doc__ = summary
    call.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[_shown(each, described.get(each.name, {})) for each in parameters]
    )
    return call


def _sections(command: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the text before the sections of a docstring, and the sections by their titles."""
    summary, *parts = _SECTION.split(inspect.getdoc(command) or "")
    return summary.strip(), dict(zip(parts[::2], parts[1::2], strict=True))


def _shown(parameter: Parameter, described: dict[str, str | None]) -> Parameter:
    """Return a parameter with its help; typer's attributes of its annotation are kept."""
    argument = parameter.kind is parameter.POSITIONAL_ONLY
    if not (argument or described):
        return parameter
    kind, declared = parameter.annotation, None
    if get_origin(kind) is Annotated:
        kind, *others = get_args(kind)
        declared = next((each for each in others if isinstance(each, ParameterInfo)), None)
    info = copy(declared) or (typer.Argument() if argument else typer.Option())
    vars(info).update(described)
    if not argument and not info.param_decls:
        flag = f"--{parameter.name.replace('_', '-')}"
        info.param_decls = _NAMES.get(parameter.name, (flag,))
    keyword = parameter.POSITIONAL_OR_KEYWORD if argument else parameter.kind
    known_kind: Any = (kind, info)
    return parameter.replace(kind=keyword, annotation=Annotated[known_kind])
