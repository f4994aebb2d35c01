"""The server: its addresses, which requests it answers, and their computation.

A request is computed in a process that is stopped at its limits.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from difflab.diagnose.point_check import checked_point
from difflab.errors import DifflabError, InputError, MissingDependencyError
from difflab.explore.server.pool import Pool
from difflab.explore.shown import TIMEOUT, filled, page, refused, row_texts, verdicts
from difflab.graph.function import Function
from difflab.lab.compare import compare
from difflab.language import parse
from difflab.report.summary import point_text

if TYPE_CHECKING:
    from starlette.applications import Starlette

LONGEST = 10_000
"""Most characters of a formula or of a point."""
POLICY = "connect-src 'self'; form-action 'self'; base-uri 'none'"
EXAMPLE = ("ln(x1) + x1*x2 - sin(x2)", "x1=2,x2=5")
"""The formula and the point of a page that was asked for without one."""

Send = Callable[[dict[str, Any]], None]
PointReader = Callable[[str], dict[str, Any] | None]


@dataclass(frozen=True)
class Request:
    """A formula and a point, as text.

    Attributes
    ----------
    text, at : str
    read_point : callable
        Returns the values that a text such as ``x=2,y=[1,2]`` names; it must read no file.
    """

    text: str
    at: str
    read_point: PointReader

    def function(self) -> Function:
        """Return the function of the formula."""
        for name, content in (("formula", self.text), ("point", self.at)):
            if len(content) > LONGEST:
                raise InputError(
                    f"the {name} has {len(content):,} characters; the server takes {LONGEST:,}",
                    hint="difflab explore, on the command line, takes longer ones",
                )
        return parse(self.text)

    def point(self, function: Function) -> dict[str, Any]:
        """Return the values of the inputs; a point inside the domain if none is given."""
        point = self.read_point(self.at) if self.at.strip() else None
        return dict(checked_point(function, point, inside=False))


def page_of(request: Request, send: Send) -> None:
    """Send the page of a function, or the page that says why there is none."""
    form = _form(request)
    try:
        function = request.function()
        point = request.point(function)
        content = filled(function, point)
        if function.n:
            content.data["verdicts"] = {
                "at": point_text(point),
                "referee": "",
                "rows": [],
                "notes": [],
                "sentence": "judging …",
            }
        text = page(content, above=form, policy=POLICY, served=True)
        send({"status": 200, "page": text})
    except DifflabError as error:
        send({"status": 422, "page": refused(refusal(error), form, POLICY)})


def rows_of(request: Request, send: Send) -> None:
    """Send the row of each method as it is judged, then the whole."""
    try:
        function = request.function()
        point = request.point(function)
        comparison = compare(
            function,
            point,
            timing=False,
            timeout=TIMEOUT,
            reported=lambda row: send(row_texts(row)),
        )
    except DifflabError as error:
        send({"refused": refusal(error)})
        return
    send({"whole": verdicts(comparison)})


def refusal(error: Exception) -> str:
    """Return the message of the command line."""
    return f"difflab: {error.render() if isinstance(error, InputError) else error}"


def _form(request: Request) -> str:
    text, at = (escape(field[:LONGEST], quote=True) for field in (request.text, request.at))
    return (
        '<form class="asked" method="get" action="/">'
        f'<label>Formula<input name="f" value="{text}" placeholder="{EXAMPLE[0]}" required '
        'autocomplete="off" spellcheck="false"></label>'
        f'<label>Point<input name="at" value="{at}" placeholder="{EXAMPLE[1]}" '
        'autocomplete="off" spellcheck="false"></label><button>Show</button></form>'
    )


MEMORY = 3 << 30
PROCESSES = 2 * (os.cpu_count() or 1)
CLOSING = 2
"""Seconds for which requests may still run after Ctrl-C."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Settings:
    """How a server runs.

    Attributes
    ----------
    read_point : callable
        Reads the values of a point from a text; it must read no file.
    names : sequence of str
        The names under which it is reached, besides those of this machine's own interface.
    seconds : float
        The time limit of a request.
    memory, processes : int
        Bytes of one request, and how many are computed at the same time.
    """

    read_point: PointReader
    names: Sequence[str] = ()
    seconds: float = 30.0
    memory: int = MEMORY
    processes: int = PROCESSES


def serve(settings: Settings, host: str, port: int, ready: Any) -> None:
    """Serve until it is interrupted.

    Parameters
    ----------
    settings : Settings
    host : str
        The interface to listen on.
    port : int
        0 chooses a free one.
    ready : callable
        Called with the address once the server listens.

    Raises
    ------
    InputError
        The interface or the port cannot be used.
    MissingDependencyError
        Starlette or uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise MissingDependencyError("uvicorn", extra="web") from error
    app = application(settings, lambda: server.should_exit)
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"cannot listen on {host}:{port}: {reason}", hint="choose another --port"
        ) from error
    ready(f"http://{host}:{listening.getsockname()[1]}/")
    config = uvicorn.Config(
        app,
        log_level="warning",
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=CLOSING,
    )
    server = uvicorn.Server(config)
    server.run(sockets=[listening])


def application(settings: Settings, closing: Callable[[], bool] = lambda: False) -> Starlette:
    """Return the application, whose requests are stopped when `closing` returns true.

    Raises
    ------
    MissingDependencyError
        Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.responses import HTMLResponse, StreamingResponse
        from starlette.routing import Route
    except ImportError as error:
        raise MissingDependencyError("starlette", extra="web") from error
    pool = Pool(settings.processes, settings.seconds, settings.memory, closing)

    def asked(http: Any) -> Request:
        values = http.query_params
        text, at = EXAMPLE if "f" not in values else (values["f"], values.get("at", ""))
        return Request(text, at, settings.read_point)

    async def shown(http: Any) -> Any:
        async with aclosing(pool.results(page_of, asked(http), http.is_disconnected)) as messages:
            async for message in messages:
                if "page" in message:
                    return HTMLResponse(message["page"], message["status"], HEADERS)
                stopped = refused(f"difflab: {message['stopped']}", "", POLICY)
                return HTMLResponse(stopped, 503, HEADERS)
        return HTMLResponse(refused("difflab: the request failed", "", POLICY), 500, HEADERS)

    async def lines(request: Request) -> AsyncIterator[str]:
        async with aclosing(pool.results(rows_of, request)) as messages:
            async for message in messages:
                yield json.dumps(message, allow_nan=False) + "\n"

    async def rows(http: Any) -> Any:
        return StreamingResponse(lines(asked(http)), 200, HEADERS, "application/x-ndjson")

    app = Starlette(routes=[Route("/", shown), Route("/rows", rows)])
    app.add_middleware(_OwnRequests, names=(*LOCAL, *settings.names))
    return app


class _OwnRequests:
    """Refuses requests for another host, and those that another site's page makes.

    A page of another site can make a browser call a local server; it then sends its own `Origin`,
    or, after its name was rebound to this address, its own `Host`.
    """

    def __init__(self, app: Any, names: Sequence[str]) -> None:
        self.app, self.names = app, names

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        reason = self._refusal(scope) if scope["type"] == "http" else ""
        if not reason:
            await self.app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        await PlainTextResponse(reason, 403, HEADERS)(scope, receive, send)

    def _refusal(self, scope: Any) -> str:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if host.rpartition(":")[0] not in self.names and host not in self.names:
            return "this server does not answer for that host; --name adds one"
        origin = headers.get(b"origin")
        if origin is not None and origin.partition("://")[2] != host:
            return "this server answers its own pages only"
        if headers.get(b"sec-fetch-site") == "cross-site" and scope["path"] != "/":
            return "this server answers its own pages only"
        return ""
