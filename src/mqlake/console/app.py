"""The ASGI application of the console."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from mqlake.admin.each_broker import PartialChangeError
from mqlake.console.access import login
from mqlake.console.access.changes import unchecked
from mqlake.console.access.headers import HEADERS, SecurityHeaders
from mqlake.console.access.hosts import OwnHostOnly
from mqlake.console.access.visits import Visits
from mqlake.console.cluster.aged import NO_ANSWER
from mqlake.console.page import page
from mqlake.console.page_error import PageError
from mqlake.console.pages import SECTIONS
from mqlake.console.state import Console, console_of, session_of
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import BodyError, FrameError, HeaderError, RemotingError

_STATIC: Final = Path(__file__).parent / "static"

_log: Final = logging.getLogger("mqlake.console")


def create_app(console: Console) -> Starlette:
    """Return the application. The caller closes the console after the last request."""
    routes: list[BaseRoute] = [
        Route("/", _home, methods=["GET"]),
        Mount("/static", StaticFiles(directory=_STATIC)),
        *login.routes(),
        *(route for section in SECTIONS for route in section.routes()),
    ]
    assert not unchecked(routes), f"without checks: {unchecked(routes)}"
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(OwnHostOnly, any_host=console.options.login),
            Middleware(Visits, console=console),
        ],
        exception_handlers={
            MqlakeError: _failed,
            HTTPException: _no_such_page,
            Exception: _unexpected,
        },
    )
    app.router.redirect_slashes = False  # It would redirect to a host that the request names.
    app.state.console = console
    app.state.sections = SECTIONS
    return app


async def _home(request: Request) -> Response:
    del request
    return RedirectResponse(SECTIONS[0].path, 303)


_MISSING: Final = frozenset(
    (
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.QUERY_NOT_FOUND,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
    )
)
_OF_CLUSTER: Final = (
    RemotingError,
    *NO_ANSWER,
    FrameError,
    HeaderError,
    BodyError,
    PartialChangeError,
)


async def _failed(request: Request, error: Exception) -> Response:
    """Show what a cluster, or this console, has refused."""
    advice, title, message = "", "", str(error)
    status = 502 if isinstance(error, _OF_CLUSTER) else 400
    if isinstance(error, PageError):
        advice, status = error.advice, error.status
    elif isinstance(error, NO_ANSWER):
        advice = _unreachable(request)
    elif isinstance(error, PartialChangeError) and error.changed:
        title = "Changed on some brokers only"
        message = message[:1].upper() + message[1:]
        advice = "You may send the form again once the other brokers answer."
    elif isinstance(error, RemotingError) and error.code in _MISSING:
        status = 404
    elif isinstance(error, RemotingError) and error.code == ResponseCode.NO_PERMISSION:
        status = 403
        if not session_of(request).user:
            advice = "The cluster checks who asks. Log in as one of its users."
    return _problem(request, message, advice, status, title)


def _unreachable(request: Request) -> str:
    """Return what to do if a server does not answer."""
    if request.method != "GET":
        return "It may or may not have done it. Look before you send the form again."
    names = console_of(request).options.name_servers
    return f"Reload the page. If that fails, too: do the name servers ({names}) and brokers run?"


async def _no_such_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(request, str(error.detail), "", error.status_code)


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("%s %r: failed", request.method, request.url.path, exc_info=error)
    advice = "The log of the console has the details."
    response = _problem(request, f"Unexpected {type(error).__name__}", advice, 500)
    response.headers.update(HEADERS)  # Starlette sends it around all middleware.
    return response


def _title(request: Request, status: int) -> str:
    if status == 404:
        return "Not found"
    if status == 403:
        return "Not allowed"
    if request.method == "GET":
        return "This page cannot be shown"
    return "This request was refused" if status < 500 else "This request failed"


def _problem(request: Request, message: str, advice: str, status: int, title: str = "") -> Response:
    if not hasattr(request.state, "session"):  # Refused before the visitor was known.
        return Response(f"{message}\n", status, media_type="text/plain")
    return page(
        request,
        "problem.html",
        title=title or _title(request, status),
        status=status,
        message=message,
        advice=advice,
    )
