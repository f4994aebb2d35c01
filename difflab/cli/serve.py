"""``difflab serve``: the page of ``difflab explore`` with the formula editable."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from difflab.cli.options import parse_point
from difflab.cli.output import emit, say
from difflab.errors import PointError

__all__ = ["EXAMPLES", "serve"]

EXAMPLES = """\b
difflab serve
difflab serve --host 0.0.0.0 --name class.example.org --port 8000
"""

HostOption = Annotated[str, typer.Option(metavar="ADDRESS", help="The interface to listen on.")]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")]
NameOption = Annotated[
    list[str] | None,
    typer.Option(metavar="HOST", help="A name under which others reach it (repeatable)."),
]
LimitOption = Annotated[
    float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="The time of one request.")
]


def serve(
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    name: NameOption = None,
    timeout: LimitOption = 30.0,
) -> int:
    """Serve the page of explore with an editable formula; it stores nothing.

    Without --host it is reached from this machine only.
    """
    from difflab.explore.server.app import Settings, application
    from difflab.explore.server.app import serve as served

    settings = Settings(read_point, [*(name or ()), host], timeout)
    application(settings)

    def ready(address: str) -> None:
        emit(f"{address}\n")
        say("Ctrl-C stops the server")

    served(settings, host, port, ready)
    return 0


def read_point(text: str) -> dict[str, Any] | None:
    """Return the point that a text names, which may not name files.

    Raises
    ------
    PointError
        The text cannot be read.
    """
    if "@" in text:
        place = text.index("@")
        raise PointError(
            "the server reads no files",
            text=text,
            span=(place, place + 1),
            hint="give numbers, x=2, or arrays, x=[1,2]",
        )
    return parse_point([text])
