"""``difflab bench NAME``: a subcommand for every benchmark of `difflab.bench.registry`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from difflab.bench.registry import BENCHMARKS, MOVED, load
from difflab.cli.bench.families import dimensions, memory, problems, solvers, swell
from difflab.cli.bench.formulas import accuracy, peers, precision
from difflab.cli.bench.running import Destination, QuickOption, run, writes
from difflab.cli.documented import add
from difflab.cli.groups import CommandGroup
from difflab.cli.options import TimeoutOption
from difflab.errors import InputError

bench = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run a benchmark; print its table, or write its picture, rows or page.",
)


def standard_command(name: str, package: str = "difflab.bench") -> Callable[..., None]:
    """Return the subcommand of a benchmark without options of its own."""

    def command(
        quick: QuickOption = False, timeout: TimeoutOption = 10.0, *, to: Destination
    ) -> None:
        module = load(name, package)
        run(name, module, module.tasks(quick=quick, timeout=timeout), to)

    return command


_OWN_COMMANDS: Mapping[str, Callable[..., int | None]] = {
    command.__name__: command
    for command in (accuracy, dimensions, memory, peers, precision, problems, solvers, swell)
}
"""The subcommands with options of their own; those of the other benchmarks are alike."""

for _name, _summary in BENCHMARKS.items():
    _command = _OWN_COMMANDS.get(_name) or standard_command(_name)
    add(bench, writes(_command), name=_name, help=_summary)


def _moved(name: str) -> Callable[[], None]:
    """Return the subcommand of a benchmark that is no longer one: it says where it went."""

    def command() -> None:
        raise InputError(
            f"'difflab bench {name}' is 'python -m benchmarks {name}' now",
            hint="in a checkout of difflab's repository, with the same options",
        )

    return command


_ANY_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
for _name in MOVED:
    bench.command(_name, hidden=True, context_settings=_ANY_OPTIONS)(_moved(_name))
