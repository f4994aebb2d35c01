"""The commands under one name, and what an exception means to the shell.

May import `difflab.cli` siblings and `difflab.errors`; typer is the only other package that
starting needs.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from difflab.cli import check as checked
from difflab.cli import compare as compared
from difflab.cli import derive as derived
from difflab.cli import graph as drawn
from difflab.cli import trace as traced
from difflab.cli.bench import bench
from difflab.cli.doctor import doctor
from difflab.cli.gpu import gpu
from difflab.cli.methods import methods
from difflab.cli.options import ExpressionCommand
from difflab.cli.output import ReaderGone, emit, say
from difflab.cli.report import report
from difflab.errors import DifflabError, InputError

__all__ = ["app", "main"]

# Exit codes beside 0 (done, and all agree) and 1 (a method disagrees, or a check failed).
BAD_INPUT = 2
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
BROKEN_PIPE = 141  # 128 + SIGPIPE

EPILOG = """\b
difflab compare "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5
difflab derive "x^2*sin(y)" --format latex

\b
Exit codes: 0 done, and the methods agree; 1 a method disagrees or a
check failed; 2 the input is at fault.
"""

app = typer.Typer(
    name="difflab",
    epilog=EPILOG,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


def _version(wanted: bool) -> None:
    if wanted:
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


app.command(cls=ExpressionCommand, epilog=compared.EXAMPLES)(compared.compare)
app.command(cls=ExpressionCommand, epilog=traced.EXAMPLES)(traced.trace)
app.command(cls=ExpressionCommand, epilog=drawn.EXAMPLES)(drawn.graph)
app.command(cls=ExpressionCommand, epilog=derived.EXAMPLES)(derived.derive)
app.command(epilog=checked.EXAMPLES)(checked.check)
bench.command()(gpu)
app.add_typer(bench, name="bench")
app.command()(report)
app.command()(methods)
app.command()(doctor)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``difflab``; by default what the process was started with.

    Raises
    ------
    SystemExit
        Always: 0, 1 or 2 as the contract has them, 130 after Ctrl-C, 70 for a fault of
        difflab's own.
    """
    sys.exit(_exit_code(arguments))


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        given = None if arguments is None else list(arguments)
        code = app(given, prog_name="difflab", standalone_mode=False)
        sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        # The reader has seen enough. What is left in the buffer must not raise at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except InputError as error:
        say(f"difflab: {error.render()}")
        return BAD_INPUT
    except DifflabError as error:
        say(f"difflab: {error}")
        return BAD_INPUT
    except Exception as error:
        return _other(error)
    # Typer turns Ctrl-C into this code without a word.
    if code == INTERRUPTED:
        say("difflab: interrupted")
    return int(code or 0)


def _other(error: Exception) -> int:
    """Show a usage error as typer words it; anything else is a fault of difflab's."""
    show = getattr(error, "show", None)
    if callable(show):
        # pydantic, which typer 0.29 asks, begins the message with the name of its exception.
        message = getattr(error, "message", None)
        if isinstance(message, str):
            setattr(error, "message", message.removeprefix("Value error, "))  # noqa: B010
        show()
        return int(getattr(error, "exit_code", BAD_INPUT))
    if isinstance(error, typer.Abort):
        say("difflab: interrupted")
        return INTERRUPTED
    if os.environ.get("DIFFLAB_DEBUG"):
        say(traceback.format_exc())
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    say(
        f"difflab: internal error at {place}: {_printable(text)}\n"
        "This is a fault in difflab, not in your input. Please report it with the command you\n"
        "ran and what `difflab doctor` prints; DIFFLAB_DEBUG=1 adds the full traceback."
    )
    return INTERNAL


def _printable(text: str) -> str:
    from difflab.report.style import clean, shorten

    return shorten(clean(text), 300)
