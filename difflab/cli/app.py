"""The command ``difflab`` with its subcommands, and the exit code of each exception.

The exit code is 2 for a fault of the input or the machine, 70 for one of difflab.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import CommandInfo, TyperInfo

from difflab.cli import INTERRUPTED
from difflab.cli.bench.commands import bench
from difflab.cli.check import check
from difflab.cli.compare import compare
from difflab.cli.derive import derive
from difflab.cli.documented import CommandGroup, add
from difflab.cli.evaluate import evaluate
from difflab.cli.explain import explain
from difflab.cli.fuzz import fuzz
from difflab.cli.listings import conventions, doctor, methods, problems
from difflab.cli.look import explore, graph, serve, trace
from difflab.cli.output import ReaderGone, discard_unwritten, emit, say
from difflab.cli.rounding import budget, dtypes
from difflab.cli.stored import diff, report, study
from difflab.cli.writing import write_test
from difflab.errors import DifflabError, InputError

BAD_INPUT = 2
INTERNAL = 70  # EX_SOFTWARE of sysexits.h

_ADVICE = {
    errno.ENOSPC: "make room on the disk, or write elsewhere with -o",
    errno.EDQUOT: "make room on the disk, or write elsewhere with -o",
    errno.EFBIG: "the limit on a file's size is the system's: see `ulimit -f`",
    errno.EROFS: "write elsewhere with -o",
    errno.EMFILE: "too many files are open: see `ulimit -n`",
    errno.ENFILE: "too many files are open on this machine",
    errno.EAGAIN: "too many processes are running: see `ulimit -u`",
    errno.ENOMEM: "close other programs, or raise the limit: see `ulimit -v`",
}


def explained(error: BaseException) -> tuple[str, int]:
    """Return the message for an exception that ended a command, and the exit code."""
    if isinstance(error, InputError):
        return f"difflab: {error.render()}", BAD_INPUT
    if isinstance(error, DifflabError):
        return f"difflab: {error}", BAD_INPUT
    refusal = _machine(error)
    message, code = (f"difflab: {refusal}", BAD_INPUT) if refusal else (_fault(error), INTERNAL)
    if os.environ.get("DIFFLAB_DEBUG"):
        message = f"{''.join(traceback.format_exception(error))}\n{message}"
    return message, code


def _machine(error: BaseException) -> str:
    """Return which resource the machine lacks or refuses; empty for any other error."""
    if isinstance(error, MemoryError):
        detail = _printable(str(error))
        return (
            f"there is not enough memory{f': {detail}' if detail else ''}\n"
            "hint: use fewer or smaller inputs, or raise the limit: see `ulimit -v`"
        )
    if isinstance(error, OSError) and error.errno is not None:
        file = f" at {str(error.filename)!r}" if error.filename else ""
        advice = _ADVICE.get(error.errno)
        reason = _printable(f"{(error.strerror or str(error)).lower()}{file}")
        return f"the system refused: {reason}" + (f"\nhint: {advice}" if advice else "")
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return (
            "the system refused to start another thread\n"
            "hint: too many processes are running, or too little memory is free: see `ulimit -a`"
        )
    return ""


def _fault(error: BaseException) -> str:
    """Return the message for an internal error of difflab."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    location = f"{Path(last.filename).name}:{last.lineno}"
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    return (
        f"difflab: internal error at {location}: {_printable(text)}\n"
        "This is a fault in difflab, not in your input. Please report it with the command you\n"
        "ran and what `difflab doctor` prints; DIFFLAB_DEBUG=1 adds the full traceback."
    )


def _printable(text: str) -> str:
    from difflab.report.terminal import clean, shorten

    return shorten(clean(text), 300)


BROKEN_PIPE = 141  # 128 + SIGPIPE

EPILOG = """\b
difflab compare "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5
difflab derive "x^2*sin(y)" --format latex

\b
Exit codes: 0 success, and the methods agree; 1 a method disagrees or a
check failed; 2 the input is invalid.
"""

app = typer.Typer(
    name="difflab",
    cls=CommandGroup,
    epilog=EPILOG,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
"""The command with all of its subcommands."""


def _version(requested: bool) -> None:
    if requested:
        from difflab import __version__

        emit(f"difflab {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Compare symbolic, numeric and automatic differentiation of one function."""


_GROUPS = {"bench": bench, "study": study}
_PANELS: Mapping[str, tuple[Callable[..., Any] | str, ...]] = {
    "Compare and judge": (compare, check, write_test, explain, budget, dtypes, fuzz),
    "Look": (trace, graph, explore, serve),
    "Print and evaluate": (derive, evaluate),
    "Measure": (diff, report, "bench", "study"),
    "Find out what there is": (problems, methods, conventions, doctor),
}
for _panel, _commands in _PANELS.items():
    for _command in _commands:
        if isinstance(_command, str):
            app.add_typer(_GROUPS[_command], name=_command, rich_help_panel=_panel)
        else:
            add(app, _command, _panel)


def run(arguments: Sequence[str] | None, command: typer.Typer = app, name: str = "difflab") -> int:
    """Run a command and return its exit code; report any exception on standard error."""
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        code = _reduced(command, words)(words, prog_name=name, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        discard_unwritten(sys.stdout)
        return BROKEN_PIPE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        return _failed(error)
    # Typer turns Ctrl-C into this code without a message.
    if code == INTERRUPTED:
        say("difflab: interrupted")
    return int(code or 0)


def _reduced(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """Return an application with the subcommand that the words begin with alone, if they do.

    typer reads the signatures of all subcommands, which takes longer than to run some of them. If
    the words begin with none, as ``--help``, the names and help of all are enough.
    """
    if words[:1] == ["--"]:  # a subcommand follows
        return app
    commands = [one for one in app.registered_commands if [_name(one)] == words[:1]]
    groups = [one for one in app.registered_groups if [one.name] == words[:1]]
    if not commands and not groups:
        commands = [_outlined(one) for one in app.registered_commands]
        groups = [_closed(one) for one in app.registered_groups]
    reduced = copy(app)
    reduced.registered_commands, reduced.registered_groups = commands, groups
    return reduced


def _outlined(command: CommandInfo) -> CommandInfo:
    """Return a command with its name and help alone."""

    def nothing() -> None:
        """Take no parameter."""

    outline = copy(command)
    outline.name, outline.help = _name(command), command.help or getdoc(command.callback)
    outline.callback = nothing
    return outline


def _closed(group: TyperInfo) -> TyperInfo:
    """Return a group without its subcommands."""
    closed = copy(group)
    closed.typer_instance = copy(group.typer_instance)
    if closed.typer_instance is not None:
        closed.typer_instance.registered_commands = []
    return closed


def _name(command: CommandInfo) -> str | None:
    return command.name or getattr(command.callback, "__name__", None)


def _failed(error: Exception) -> int:
    """Show a usage error with typer's message, any other with that of `failures`."""
    show = getattr(error, "show", None)
    if callable(show):
        # pydantic, which typer 0.29 uses, prefixes the message with the name of its exception.
        message = getattr(error, "message", None)
        if isinstance(message, str):
            setattr(error, "message", message.removeprefix("Value error, "))  # noqa: B010
        show()
        return int(getattr(error, "exit_code", BAD_INPUT))
    if _interrupted(error):
        say("difflab: interrupted")
        return INTERRUPTED
    if isinstance(error, typer.Abort) and isinstance(error.__cause__, EOFError):
        error = error.__cause__  # typer treats the end of any file as that of the terminal
    message, code = explained(error)
    say(message)
    discard_unwritten(sys.stdout)
    return code


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an exception, as while a class is created (Python 3.11)."""
    if isinstance(error, typer.Abort) and error.__cause__ is None:
        return True
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
