"""A visitor of a console, without a browser and without a socket."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx

from mqlake.console.app import create_app
from mqlake.console.options import ConsoleOptions
from mqlake.console.sql.statement import SqlLimits
from mqlake.console.state import Console
from tests.until import PATIENCE

_CSRF = re.compile(r'name="csrf" value="([^"]*)"')
_TAGS = re.compile(r"<[^>]*>")


class Site:
    """A visitor. Cookies are kept, redirects are followed.

    Attributes:
        console: the console that is visited.
        client: for requests of other kinds.
    """

    def __init__(self, console: Console, client: httpx.AsyncClient) -> None:
        self.console, self.client = console, client

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Open a page."""
        return await self.client.get(path, headers=headers)

    async def csrf(self) -> str:
        """Return the token of this visitor's session."""
        await self.client.get("/login")
        token = self.client.cookies[self.console.cookie]
        session = self.console.sessions.find(token)
        assert session is not None
        return session.csrf

    async def post(self, path: str, fields: Mapping[str, str] | None = None) -> httpx.Response:
        """Send a form with the token of this visitor's session, and see the page that follows."""
        form = {"csrf": await self.csrf(), **(fields or {})}
        return await self.client.post(path, data=form)

    async def log_in(self, user: str, password: str) -> httpx.Response:
        """Log in."""
        return await self.post("/login", {"user": user, "password": password})


def words(response: httpx.Response) -> str:
    """Return what a page says, without its elements."""
    text = re.sub(r"(?s)<(script|style).*?</\1>", " ", response.text)
    return " ".join(unescape(_TAGS.sub(" ", text)).split())


@asynccontextmanager
async def site(name_servers: str, **options: Any) -> AsyncIterator[Site]:
    """Yield a visitor of a console for a cluster."""
    console = Console(ConsoleOptions(name_servers=name_servers, **options))
    console.queries.limits = SqlLimits(seconds=PATIENCE)  # A busy machine imports for long.
    transport = httpx.ASGITransport(create_app(console), raise_app_exceptions=False)
    client = httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8280", follow_redirects=True
    )
    try:
        async with client:
            yield Site(console, client)
    finally:
        await console.close()
