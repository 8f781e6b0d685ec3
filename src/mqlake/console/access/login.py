"""The login: the cluster decides whether a user's password is right."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from mqlake.console.access.accounts import role_of
from mqlake.console.access.audit import audit
from mqlake.console.access.changes import Posted, client_address
from mqlake.console.access.forms import PostedForm
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.access.visits import LOGIN
from mqlake.console.options import LOOPBACK
from mqlake.console.page import page
from mqlake.console.page_error import PageError
from mqlake.console.state import console_of, session_of
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import Credentials


def routes() -> list[BaseRoute]:
    """Return the routes of the login."""
    return [
        Route(LOGIN, _form, methods=["GET"]),
        Route(LOGIN, Posted(_log_in, "", ConsoleRole.STRANGER).serve, methods=["POST"]),
        Route("/logout", Posted(_log_out, "", ConsoleRole.STRANGER).serve, methods=["POST"]),
    ]


async def _form(request: Request) -> Response:
    target = own_path(request.query_params.get("next", "/"))
    return page(
        request,
        "login.html",
        title="Log in",
        target=target,
        user="",
        failure="",
        is_open=_is_open(request),
    )


def _is_open(request: Request) -> bool:
    """Return whether others in the network could read the password."""
    host = request.url.hostname or ""
    return request.url.scheme != "https" and host.lower() not in LOOPBACK


async def _log_in(request: Request, form: PostedForm) -> Response:
    console, address = console_of(request), client_address(request)
    user, secret = form.required("user", "User"), form.text("password")
    if not user.isprintable() or " " in user:  # Refusals contain the name as one of their words.
        raise PageError("A user's name has no spaces")
    credentials = Credentials(user, secret)
    options = console.options
    try:
        with console.attempts.attempt(address):
            role = await role_of(
                options.name_servers, options.access, credentials, options.broker_seconds
            )
    except RemotingError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
        audit(user, address, "login", PostedForm([]), "refused")
        return page(
            request,
            "login.html",
            status=401,
            title="Log in",
            target=own_path(form.text("next", "/")),
            user=user,
            failure="The cluster does not accept this user and password.",
            is_open=_is_open(request),
        )
    if user in console.options.viewers:
        role = ConsoleRole.VIEWER
    elif not console.options.login:
        role = ConsoleRole.ADMIN  # Whoever reaches this console may use it without a login, too.
    console.sessions.end(session_of(request))
    request.state.session = console.logged_in(credentials, role)
    audit(user, address, "login", PostedForm([]), "done")
    return RedirectResponse(own_path(form.text("next", "/")), 303)


async def _log_out(request: Request, form: PostedForm) -> Response:
    del form
    console, session = console_of(request), session_of(request)
    audit(session.user, client_address(request), "logout", PostedForm([]), "done")
    console.sessions.end(session)
    request.state.session = console.sessions.begin_stranger()
    return RedirectResponse(LOGIN, 303)


def own_path(text: str) -> str:
    """Return a path of this console; "/" for anything that leads elsewhere."""
    is_own = text.startswith("/") and not text.startswith("//")
    return text if is_own and text.isprintable() and "\\" not in text else "/"
