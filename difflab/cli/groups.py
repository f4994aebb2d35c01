"""The list of subcommands in a help text: whole sentences, under the headings of their panels."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

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
