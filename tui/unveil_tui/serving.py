"""The cockpit in a browser: textual-serve behind a gate.

A browser enters with a token that works once and is then known by a cookie; every other request is refused, whatever
it asks for. Requests must name this very address (no rebinding of names), and a connection must come from its own
page. Cookies know no ports: a page that another user of this host serves at another port would be sent them, too; so
the page lies below a path that nobody can guess, and its cookie goes nowhere else. Each entry starts a process with a
cockpit of its own, so all that the cockpit refuses is refused there.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve.server import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

COOKIE = "unveil_session"
DOWNLOAD = "unveil_download"  # good for downloads only, which the page asks for outside of its path
MAX_OPEN = 8  # cockpits at a time: each is a process
_REFUSED = "no entry: open the link that `unveil tui --serve` printed; it works once\n"


class Gate:
    """Lets in who has a token or a cookie.

    Args:
        address: ``HOST:PORT`` as browsers name it.
        tell: is told each link, as soon as the one before was used.

    Attributes:
        folder: path that all pages but downloads lie below.
    """

    def __init__(self, address: str, tell: Callable[[str], object]) -> None:
        self._address = address
        self._tell = tell
        self.folder = f"/{secrets.token_urlsafe(16)}"
        self._token = ""
        self._sessions: set[tuple[str, str]] = set()
        self._open = 0
        self._renew()

    def _renew(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._tell(f"http://{self._address}{self.folder}/?token={self._token}")

    async def watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse, or hand on; used as middleware of the whole application."""
        if request.host != self._address:
            return _refusal()
        if request.path == f"{self.folder}/" and "token" in request.query:
            return self._enter(request.query["token"])
        cookie = COOKIE if request.path.startswith(f"{self.folder}/") else DOWNLOAD
        if not self._knows(cookie, request.cookies.get(cookie, "")):
            return _refusal()
        if request.path != f"{self.folder}/ws":
            return await handler(request)
        if request.headers.get("Origin") != f"http://{self._address}":
            return _refusal()
        if self._open >= MAX_OPEN:
            return _refusal(f"{MAX_OPEN} cockpits are open already\n", HTTPStatus.SERVICE_UNAVAILABLE)
        self._open += 1
        try:
            return await handler(request)
        finally:
            self._open -= 1

    async def protect(self, request: web.Request, response: web.StreamResponse) -> None:  # noqa: ARG002  # aiohttp's signature
        """Set the headers that keep the page to itself: nothing is loaded from elsewhere, framed or kept."""
        response.headers.update(
            {
                "Content-Security-Policy": (
                    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
                    f"img-src 'self' data:; connect-src 'self' ws://{self._address}; frame-ancestors 'none'"
                ),
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            }
        )

    def _enter(self, token: str) -> web.StreamResponse:
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return _refusal()
        self._renew()
        answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": f"{self.folder}/"})
        for cookie, path in ((COOKIE, f"{self.folder}/"), (DOWNLOAD, "/download/")):
            session = secrets.token_urlsafe(32)
            self._sessions.add((cookie, session))
            answer.set_cookie(cookie, session, httponly=True, samesite="Strict", path=path)
        return answer

    def _knows(self, cookie: str, session: str) -> bool:
        given = session.encode("utf-8", "surrogateescape")
        return any(hmac.compare_digest(given, known.encode()) for kind, known in self._sessions if kind == cookie)


def _refusal(text: str = _REFUSED, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> web.Response:
    return web.Response(status=status, text=text)


def application(command: str, address: str, tell: Callable[[str], object]) -> web.Application:
    """Return the web application that serves a command behind a gate.

    Args:
        command: a shell command that runs a Textual app.
        address: ``HOST:PORT`` as browsers name it.
        tell: is told each link.
    """
    host, _, port = address.rpartition(":")
    server = Server(command, host=host, port=int(port), title="unveil", public_url=f"http://{address}")
    gate = Gate(address, tell)

    @web.middleware
    async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await gate.watch(request, handler)

    app = web.Application(middlewares=[watch])
    app.on_response_prepare.append(gate.protect)
    aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(server.templates_path))
    app.add_routes(
        [
            web.get(f"{gate.folder}/", server.handle_index, name="index"),
            web.get(f"{gate.folder}/ws", server.handle_websocket, name="websocket"),
            web.get("/download/{key}", server.handle_download, name="download"),
            web.static(f"{gate.folder}/static", server.statics_path, name="static"),
        ]
    )
    return app


def serve(command: str, host: str, port: int, tell: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        OSError: the address cannot be listened at.
    """
    shown = f"[{host}]" if ":" in host else host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:  # a link is told only to who listens
        app = application(command, f"{shown}:{port}", tell)
        web.run_app(app, sock=listener, access_log=None, print=lambda *_: None)
