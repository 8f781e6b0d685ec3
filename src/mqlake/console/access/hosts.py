"""Refuses requests under another host name than the console's.

A console without a login trusts whoever reaches the loopback address. A page of a stranger could
reach it, too, under a name of its own that it lets point there (DNS rebinding): such requests carry
that name.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mqlake.console.options import LOOPBACK


def host_name(text: str) -> str:
    """Return the host of a `Host` header, without the port and the brackets of IPv6."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


class OwnHostOnly:
    """Refuses what was not sent to this console by name.

    Args:
        any_host: whether any name is accepted: the console requires a login.
    """

    def __init__(self, app: ASGIApp, *, any_host: bool) -> None:
        self._app, self._any_host = app, any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and not self._any_host:
            host = host_name(Headers(scope=scope).get("host", ""))
            if host.lower() not in LOOPBACK:
                refusal = PlainTextResponse(
                    "This console is for http://127.0.0.1 and http://localhost only.\n", 421
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
