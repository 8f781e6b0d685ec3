"""Routes: who may open a page, and the checks of each change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from mqlake.admin.each_broker import PartialChangeError
from mqlake.console.access.accounts import role_of
from mqlake.console.access.audit import audit
from mqlake.console.access.forms import CSRF_FIELD, FORM_BYTES, PostedForm, read_form
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.page_error import PageError
from mqlake.console.state import cluster_of, console_of, session_of
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

Page = Callable[[Request], Awaitable[Response]]
FormHandler = Callable[[Request, PostedForm], Awaitable[Response]]

_READ_ONLY: Final = (
    "This console is read-only",
    "Start it without --read-only to change something.",
    403,
)


def client_address(request: Request) -> str:
    """Return the address that a request came from."""
    return request.client.host if request.client else "-"


class Posted:
    """Serves a POST: checks the session, the CSRF token and the role, then calls the handler.

    Attributes:
        action: the name in the audit line; empty if nothing is changed.
    """

    def __init__(
        self, handler: FormHandler, action: str, role: ConsoleRole, most: int = FORM_BYTES
    ) -> None:
        self._handler, self.action, self._role, self._most = handler, action, role, most

    async def serve(self, request: Request) -> Response:
        """Serve one request."""
        form = PostedForm([])
        try:
            if self._role is ConsoleRole.ADMIN:
                await confirm_role(request)
            self._check(request)  # Nobody else can make the console read a form.
            form = await read_form(request, self._most)
            self._check_token(request, form)
        except PageError as problem:
            self._note(request, form, f"refused: {problem}")
            raise
        try:
            response = await self._handler(request, form)
        except MqlakeError as error:
            is_partly = isinstance(error, PartialChangeError) and error.changed
            self._note(request, form, f"{'partly done' if is_partly else 'failed'}: {error}")
            raise
        except Exception as error:
            self._note(request, form, f"failed: {type(error).__name__}")
            raise
        finally:
            if self.action:
                cluster_of(request).kept.forget()  # Also a change that failed may have changed it.
        self._note(request, form, "done")
        return response

    def _check(self, request: Request) -> None:
        _check_origin(request)
        if self.action and console_of(request).options.read_only:
            raise PageError(*_READ_ONLY)
        check_role(request, self._role)

    def _check_token(self, request: Request, form: PostedForm) -> None:
        if not session_of(request).has_csrf(form.text(CSRF_FIELD)):
            raise PageError(
                "This form is too old, or was not made by this console",
                "Reload the page, and send the form again.",
                403,
            )

    def _note(self, request: Request, form: PostedForm, result: str) -> None:
        if self.action:
            user = session_of(request).user
            audit(user, client_address(request), self.action, form, result)


_CONFIRMED: Final = 300.0
"""Seconds for which a super user is believed to be one."""


async def confirm_role(request: Request) -> None:
    """Ask the cluster whether a super user still is one, if it was not asked lately.

    Stores and SQL have the console's own rights, so the cluster refuses nothing there.

    Raises:
        PageError: the cluster does not accept the user any more.
    """
    session, console = session_of(request), console_of(request)
    now = console.now()
    if session.credentials is None or now - session.confirmed < _CONFIRMED:
        return
    try:
        options = console.options
        role = await role_of(
            options.name_servers,
            options.access,
            session.credentials,
            options.broker_seconds,
            is_again=True,
        )
    except RemotingError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
        console.sessions.end(session)
        raise PageError(
            "The cluster does not accept this user any more", "Log in again.", 403
        ) from None
    session.confirm(role if options.login else session.role, now)


def check_role(request: Request, role: ConsoleRole) -> None:
    """Check that a visitor has a role.

    Raises:
        PageError: it is another visitor.
    """
    session = session_of(request)
    if session.role < role:
        what = "a super user" if role is ConsoleRole.ADMIN else "a user who is not only a viewer"
        who = f"{session.user} is not" if session.user else "You have not logged in as"
        raise PageError(f"{who} {what}, which this needs", status=403)


def _check_origin(request: Request) -> None:
    """Refuse forms of other sites, whatever they contain."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = request.headers.get("host", "")
    is_foreign = site not in ("same-origin", "none") or (
        origin is not None and origin.partition("://")[2] != own
    )
    if is_foreign:
        raise PageError("This form was sent by a page of another site", status=403)


def change(
    path: str,
    handler: FormHandler,
    action: str,
    role: ConsoleRole = ConsoleRole.OPERATOR,
    most: int = FORM_BYTES,
) -> Route:
    """Return the route of a change, which is audited and refused in a read-only console.

    Args:
        action: the name in the audit line, such as "topics.delete".
        most: bytes of the form.
    """
    return Route(path, Posted(handler, action, role, most).serve, methods=["POST"])


def reading(
    path: str,
    handler: FormHandler,
    role: ConsoleRole = ConsoleRole.VIEWER,
    most: int = FORM_BYTES,
) -> Route:
    """Return the route of a form that changes nothing, such as a search."""
    return Route(path, Posted(handler, "", role, most).serve, methods=["POST"])


def needs(role: ConsoleRole, handler: Page) -> Page:
    """Return a handler that serves a page only to visitors with a role."""

    async def checked(request: Request) -> Response:
        if role is ConsoleRole.ADMIN:
            await confirm_role(request)
        check_role(request, role)
        return await handler(request)

    return checked


def done(request: Request, path: str, notice: str) -> Response:
    """Return the response after a change: the page to see next, which shows the notice."""
    console_of(request).sessions.add_notice(session_of(request), notice)
    return RedirectResponse(path, 303)


def unchecked(routes: list[BaseRoute]) -> list[str]:
    """Return the paths of routes that serve other methods than GET without the checks."""
    found: list[str] = []
    for route in routes:
        if isinstance(route, Mount):
            found += unchecked(list(route.routes))
        elif isinstance(route, Route):
            is_reading = (route.methods or set()) <= {"GET", "HEAD"}
            if not is_reading and not isinstance(getattr(route.endpoint, "__self__", None), Posted):
                found.append(route.path)
    return found
