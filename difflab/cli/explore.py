"""``difflab explore`` and ``difflab serve``: pages that follow a derivative step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from difflab.cli.functions import Subject
from difflab.cli.options import ExpressionArgument, PointOption, parse_point
from difflab.cli.output import deliver, emit, say
from difflab.core.files import check_destination
from difflab.errors import PointError


def explore(
    expression: ExpressionArgument,
    /,
    destination: Annotated[Path, typer.Option(parser=check_destination)],
    at: PointOption = None,
) -> int:
    """Write a page that steps through EXPR and its derivative; it needs no network.

    Parameters
    ----------
    destination : FILE
        Write the page to this file.

    Examples
    --------
    difflab explore "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5 -o page.html
    difflab explore "where(x>0, sqrt(x), 0)" --at x=0 -o page.html
    difflab explore model:loss --at "w=[0.5,1],x=2" -o page.html
    """
    subject = Subject.of(expression, at)
    if subject.point_or_start is None and subject.function.inputs:
        say("no --at: a point inside the domain was chosen")
    deliver(subject.function.explore(subject.point_or_start).html(), destination)
    return 0


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
