"""``difflab serve``: the page of ``difflab explore`` with the formula editable."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from difflab.cli.options import parse_point
from difflab.cli.output import emit, say
from difflab.errors import PointError


def serve(
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    name: list[str] | None = None,
    timeout: Annotated[float, typer.Option(min=0.1)] = 30.0,
) -> int:
    """Serve the page of explore with an editable formula; it stores nothing.

    Without --host it is reached from this machine only.

    Parameters
    ----------
    host : ADDRESS
        The interface to listen on.
    port
        The port; 0 chooses a free one.
    name : HOST
        A name under which others reach it (repeatable).
    timeout : SECONDS
        The time of one request.

    Examples
    --------
    difflab serve
    difflab serve --host 0.0.0.0 --name class.example.org --port 8000
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
