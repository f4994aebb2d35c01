"""The server: its addresses, and which requests it answers."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from difflab.errors import InputError, MissingDependencyError
from difflab.explore.server.pool import Pool
from difflab.explore.server.work import EXAMPLE, POLICY, PointReader, Request, page_of, rows_of
from difflab.explore.shown import refused

if TYPE_CHECKING:
    from starlette.applications import Starlette


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
        async with aclosing(pool.results(page_of, asked(http), http.is_disconnected)) as found:
            async for message in found:
                if "page" in message:
                    return HTMLResponse(message["page"], message["status"], HEADERS)
                stopped = refused(f"difflab: {message['stopped']}", "", POLICY)
                return HTMLResponse(stopped, 503, HEADERS)
        return HTMLResponse(refused("difflab: the request failed", "", POLICY), 500, HEADERS)

    async def lines(request: Request) -> AsyncIterator[str]:
        async with aclosing(pool.results(rows_of, request)) as found:
            async for message in found:
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
        given = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = given.get(b"host", "")
        if host.rpartition(":")[0] not in self.names and host not in self.names:
            return "this server does not answer for that host; --name adds one"
        origin = given.get(b"origin")
        if origin is not None and origin.partition("://")[2] != host:
            return "this server answers its own pages only"
        if given.get(b"sec-fetch-site") == "cross-site" and scope["path"] != "/":
            return "this server answers its own pages only"
        return ""
