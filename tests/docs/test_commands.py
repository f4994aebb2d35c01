"""`docs/reference/commands.md` is the help of every command.

``python -m tests.docs.test_commands`` writes the page anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from benchmarks.commands import app as benchmarks
from difflab.cli.app import app
from tests.support.documents import ROOT

PAGE = ROOT / "docs" / "reference" / "commands.md"
HEAD = """# The command

`difflab` is also `python -m difflab`. Results go to standard output, progress and warnings to
standard error. Wherever a formula `EXPR` is taken, so are `@file`, `problem:SET/NAME` and Python
code as `module:function`. What measures difflab for its own documentation is a command of the
repository, `python -m benchmarks`.
"""
COMMANDS = {"difflab": app, "python -m benchmarks": benchmarks}


def names(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, part in getattr(command, "commands", {}).items():
        if not part.hidden:
            yield from names(part, (*path, name))


def help_of(command: str, path: tuple[str, ...]) -> str:
    of = COMMANDS[command]
    done = CliRunner().invoke(of, [*path, "--help"], prog_name=command, terminal_width=80)
    assert done.exit_code == 0
    return done.output.strip()


def page() -> str:
    sections = (
        f"\n## {' '.join([command, *path])}\n\n```text\n{help_of(command, path)}\n```\n"
        for command in COMMANDS
        for path in names(typer.main.get_command(COMMANDS[command]))
    )
    return HEAD + "".join(sections)


def test_the_page_is_the_help() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.docs.test_commands writes it anew"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
