"""The login: the cluster decides whether a user's password is right."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from mqlake.admin import users
from mqlake.admin.admin import Admin
from mqlake.client.access import ClientAccess
from mqlake.console.access.audit import audit
from mqlake.console.access.changes import Posted, client_address
from mqlake.console.access.forms import PostedForm
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.access.visits import LOGIN
from mqlake.console.page import page
from mqlake.console.page_error import PageError
from mqlake.console.state import console_of, session_of
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import Credentials

_SUPER = "super"


def routes() -> list[BaseRoute]:
    """Return the routes of the login."""
    return [
        Route(LOGIN, _form, methods=["GET"]),
        Route(LOGIN, Posted(_log_in, "", ConsoleRole.STRANGER).serve, methods=["POST"]),
        Route("/logout", Posted(_log_out, "", ConsoleRole.STRANGER).serve, methods=["POST"]),
    ]


async def _form(request: Request) -> Response:
    target = own_path(request.query_params.get("next", "/"))
    return page(request, "login.html", title="Log in", target=target, user="", failure="")


async def _log_in(request: Request, form: PostedForm) -> Response:
    console, address = console_of(request), client_address(request)
    user, secret = form.required("user", "User"), form.text("password")
    if not user.isprintable() or " " in user:  # Refusals contain the name between their words.
        raise PageError("A user's name has no spaces")
    credentials = Credentials(user, secret)
    try:
        with console.attempts.attempt(address):
            role = await role_of(console.options.name_servers, console.options.access, credentials)
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
    parts = urlsplit(text)
    is_own = (
        text.startswith("/")
        and not text.startswith(("//", "/\\"))
        and not parts.scheme
        and not parts.netloc
        and text.isprintable()
        and "\\" not in text
    )
    return text if is_own else "/"


async def role_of(name_servers: str, access: ClientAccess, credentials: Credentials) -> ConsoleRole:
    """Check a user's password, and return the role.

    Raises:
        RemotingError: NO_PERMISSION if the user or the password is wrong.
        PageError: the cluster checks nobody's password.
        MqlakeError: the cluster cannot be reached.
    """
    async with Admin(name_servers, tls=access.tls, credentials=credentials) as admin:
        broker = (await admin.brokers())[0].address
        if not await _is_known(admin, broker):
            raise RemotingError(ResponseCode.NO_PERMISSION, "wrong user or password")
        await _check_that_passwords_are_checked(name_servers, access, credentials, broker)
        try:
            found = await users.get(admin, credentials.access_key, None, broker)
        except MqlakeError:
            return ConsoleRole.OPERATOR  # Only super users may ask; RocketMQ 4 has no such request.
    types = {each.user_type.lower() for each in found}
    return ConsoleRole.ADMIN if _SUPER in types else ConsoleRole.OPERATOR


async def _is_known(admin: Admin, broker: str) -> bool:
    """Return whether a broker knows a user and the password, whatever the user may do."""
    try:
        await admin.ask(broker, RequestCode.GET_BROKER_RUNTIME_INFO)
    except RemotingError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
        return _is_about_rights(str(error))
    return True


def _is_about_rights(text: str) -> bool:
    """Return whether a refusal says that a known user has no permission."""
    lowered = text.lower()
    return "has no permission" in lowered or "no permission to access" in lowered


async def _check_that_passwords_are_checked(
    name_servers: str, access: ClientAccess, credentials: Credentials, broker: str
) -> None:
    """Check that the broker refuses a wrong password: otherwise anybody could log in."""
    wrong = Credentials(credentials.access_key, secrets.token_hex(16))
    async with Admin(name_servers, tls=access.tls, credentials=wrong) as admin:
        try:
            await admin.ask(broker, RequestCode.GET_BROKER_RUNTIME_INFO)
        except RemotingError as error:
            if error.code == ResponseCode.NO_PERMISSION:
                return
            raise
    raise PageError(
        "This cluster checks nobody's password, so a login would protect nothing",
        "Turn on authenticationEnabled or aclEnable in the brokers.",
        409,
    )
