"""What all requests to a console share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, cast

from starlette.requests import Request

from mqlake.console.access.attempts import LoginAttempts
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.access.sessions import ConsoleSession, Sessions
from mqlake.console.cluster.view import ClusterView
from mqlake.console.jobs import BackgroundJobs
from mqlake.console.options import ConsoleOptions
from mqlake.console.page_error import PageError
from mqlake.console.sql.queries import SqlQueries
from mqlake.console.stores.slow_values import SlowValues
from mqlake.protocol.signature import Credentials

_SWEEP: Final = 60.0
"""Seconds between searches for sessions and values that are over."""


class Console:
    """A console's sessions, and its connections to the cluster.

    Args:
        now: returns seconds.

    Attributes:
        options: what the console was started with.
        now: returns seconds.
        cookie: the name of the cookie with the session.
        sessions: the visitors.
        attempts: limits failed logins.
        jobs: long work that pages start.
        queries: SQL.
        files: what store directories, lake tables and archives show.
    """

    def __init__(self, options: ConsoleOptions, now: Callable[[], float] = time.monotonic) -> None:
        self.options, self.now = options, now
        # Cookies do not know ports: two consoles of one host need two names.
        prefix = "__Host-" if options.certificate else ""
        self.cookie = f"{prefix}mqlake_console_{options.port}"
        self._swept = now()
        self.sessions = Sessions(
            60.0 * options.idle_minutes,
            60.0 * options.session_minutes,
            ConsoleRole.STRANGER if options.login else ConsoleRole.ADMIN,
            now,
            self._session_ended,
        )
        self.attempts = LoginAttempts(now)
        self.jobs, self.queries = BackgroundJobs(), SqlQueries()
        self.files = SlowValues(now)
        self._views: dict[Credentials | None, ClusterView] = {}
        self._users: dict[Credentials, int] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End all sessions, jobs and queries, and close all connections."""
        self.sessions.end_all()
        await self.jobs.close()
        await self.queries.close()
        self.files.close()
        views, self._views = list(self._views.values()), {}
        for view in views:
            await view.close()
        await asyncio.gather(*self._closing)

    def sweep(self) -> None:
        """End sessions, and forget values, that are over; does nothing if it just did."""
        if self.now() - self._swept < _SWEEP:
            return
        self._swept = self.now()
        self.sessions.sweep()
        for view in self._views.values():
            view.kept.sweep()

    def logged_in(self, credentials: Credentials, role: ConsoleRole) -> ConsoleSession:
        """Return a session of a user whose credentials were checked."""
        # Counted first: beginning this session may end another one of the same user.
        self._users[credentials] = self._users.get(credentials, 0) + 1
        return self.sessions.begin(role, credentials)

    def view(self, credentials: Credentials | None) -> ClusterView:
        """Return the cluster as a user sees it. All sessions of a user share it."""
        view = self._views.get(credentials)
        if view is None:
            options = self.options
            if credentials is not None and credentials not in self._users:
                raise PageError("Your session has ended", "Log in again.", 403)
            view = ClusterView(
                options.name_servers,
                options.access,
                credentials,
                options.broker_seconds,
                self.now,
            )
            self._views[credentials] = view
        return view

    def _session_ended(self, session: ConsoleSession) -> None:
        credentials = session.credentials
        if credentials is None:
            return
        left = self._users.get(credentials, 1) - 1
        if left > 0:
            self._users[credentials] = left
            return
        self._users.pop(credentials, None)
        if view := self._views.pop(credentials, None):
            task = asyncio.ensure_future(view.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def console_of(request: Request) -> Console:
    """Return the console that serves a request."""
    return cast("Console", request.app.state.console)


def session_of(request: Request) -> ConsoleSession:
    """Return the session of a request."""
    return cast("ConsoleSession", request.state.session)


def cluster_of(request: Request) -> ClusterView:
    """Return the cluster as the visitor sees it."""
    return console_of(request).view(session_of(request).credentials)
