"""``difflab bench NAME``: a subcommand for every benchmark of `difflab.bench.registry`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from difflab.bench.registry import BENCHMARKS, MOVED, Benchmark
from difflab.cli.bench.families import dimensions, memory, solvers, swell
from difflab.cli.bench.formulas import accuracy, peers, precision
from difflab.cli.bench.problems import problems
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


def standard_command(benchmark: Benchmark) -> Callable[..., None]:
    """Return the subcommand of a benchmark: options ``quick`` and, if it is timed, ``timeout``."""

    def command(
        quick: QuickOption = False, timeout: TimeoutOption = 10.0, *, to: Destination
    ) -> None:
        module = benchmark.load()
        limits = {"timeout": timeout} if benchmark.timed else {}
        run(benchmark.name, module, module.tasks(quick=quick, **limits), to)

    if benchmark.timed:
        return command

    def untimed(quick: QuickOption = False, *, to: Destination) -> None:
        command(quick, to=to)

    return untimed


_OWN_COMMANDS: Mapping[str, Callable[..., int | None]] = {
    "accuracy": accuracy,
    "dimensions": dimensions,
    "memory": memory,
    "peers": peers,
    "precision": precision,
    "problems": problems,
    "solvers": solvers,
    "swell": swell,
}
"""The subcommands with options of their own; those of the other benchmarks are alike."""

for _row in BENCHMARKS.values():
    _command = _OWN_COMMANDS.get(_row.name) or standard_command(_row)
    add(bench, writes(_command), name=_row.name, help=_row.summary)


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
