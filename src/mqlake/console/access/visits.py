"""Finds the session of each request, and leads visitors to the login."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mqlake.console.access.roles import ConsoleRole
from mqlake.console.access.sessions import ConsoleSession
from mqlake.console.cluster.aged import begin_noting_old_values
from mqlake.console.state import Console

LOGIN: Final = "/login"
REFRESH_HEADER: Final = "x-refresh"
"""What pages send when they refresh themselves: it does not keep a session alive."""


def to_login(request: Request) -> Response:
    """Return the response that leads to the login, and from there back."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    where = f"{LOGIN}?next={quote(path, safe='')}" if request.method == "GET" else LOGIN
    if "hx-request" in request.headers:  # A script asks, which would put the login into a table.
        return Response(status_code=401, headers={"HX-Redirect": where})
    return RedirectResponse(where, 303)


class Visits:
    """Gives each request its session.

    Args:
        console: has the sessions.
    """

    def __init__(self, app: ASGIApp, console: Console) -> None:
        self._app, self._console = app, console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or str(scope["path"]).startswith("/static/"):
            await self._app(scope, receive, send)
            return
        self._console.sweep()
        begin_noting_old_values()
        request = Request(scope)
        token = request.cookies.get(self._console.cookie, "")
        by_visitor = REFRESH_HEADER not in request.headers
        session = self._console.sessions.find(token, by_visitor=by_visitor)
        if session is None:
            session = self._console.sessions.begin_stranger()
        scope.setdefault("state", {})["session"] = session
        if session.role is ConsoleRole.STRANGER and scope["path"] != LOGIN:
            await to_login(request)(scope, receive, send)
            return

        async def send_with_cookie(message: Message) -> None:
            current: ConsoleSession = scope["state"]["session"]  # A login replaces it.
            if message["type"] == "http.response.start" and current.token != token:
                headers = MutableHeaders(scope=message)
                headers.append("Set-Cookie", self._cookie(current, scope["scheme"] == "https"))
            await send(message)

        await self._app(scope, receive, send_with_cookie)

    def _cookie(self, session: ConsoleSession, is_secure: bool) -> str:
        secure = "; Secure" if is_secure else ""
        return f"{self._console.cookie}={session.token}; Path=/; HttpOnly; SameSite=Lax{secure}"
