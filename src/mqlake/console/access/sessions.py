"""Sessions of visitors, in memory: a restart of the console ends them."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from mqlake.console.access.roles import ConsoleRole
from mqlake.protocol.signature import Credentials

_MOST: Final = 1000
"""The maximum number of sessions without, and of sessions with a user."""
_MOST_OF_A_USER: Final = 50
_MOST_NOTICES: Final = 5


class ConsoleSession:
    """A visitor.

    Args:
        credentials: of the user who logged in; None if nobody did.
        now: seconds.

    Attributes:
        token: the value of the cookie.
        csrf: what each change must contain.
        notices: results of changes that the next page shows.
    """

    def __init__(self, role: ConsoleRole, credentials: Credentials | None, now: float) -> None:
        self.token = secrets.token_urlsafe(32)
        self.csrf = secrets.token_urlsafe(32)
        self.role, self.credentials = role, credentials
        self.begun = self.seen = now
        self.notices: deque[str] = deque(maxlen=_MOST_NOTICES)

    @property
    def user(self) -> str:
        """The name of the user, empty if nobody logged in."""
        return self.credentials.access_key if self.credentials else ""

    def has_csrf(self, text: str) -> bool:
        """Return whether a change was sent by a page of this session."""
        return hmac.compare_digest(self.csrf.encode(), text.encode("utf-8", "replace"))

    def touch(self, now: float) -> None:
        """Note that the visitor, not a page that refreshes itself, sent a request."""
        self.seen = now


class Sessions:
    """All sessions.

    Args:
        idle: seconds without a request after which a session ends.
        longest: seconds after its begin when a session ends.
        now: returns seconds.
        ended: called with each session of a user that has ended.
    """

    def __init__(
        self,
        idle: float,
        longest: float,
        now: Callable[[], float],
        ended: Callable[[ConsoleSession], None],
    ) -> None:
        self._idle, self._longest, self._now, self._ended = idle, longest, now, ended
        self._strangers: OrderedDict[str, ConsoleSession] = OrderedDict()
        self._users: OrderedDict[str, ConsoleSession] = OrderedDict()

    def find(self, token: str, *, by_visitor: bool = True) -> ConsoleSession | None:
        """Return a session that has not ended.

        Args:
            by_visitor: whether the visitor sent the request, not a page that refreshes itself.
        """
        table = self._users if token in self._users else self._strangers
        session = table.get(token)
        if session is None:
            return None
        now = self._now()
        if now - session.seen > self._idle or now - session.begun > self._longest:
            self.end(session)
            return None
        if by_visitor:
            session.touch(now)
        table.move_to_end(token)
        return session

    def begin(self, role: ConsoleRole, credentials: Credentials | None = None) -> ConsoleSession:
        """Return a new session. If there are too many, the one unused for longest ends."""
        session = ConsoleSession(role, credentials, self._now())
        table = self._strangers if credentials is None else self._users
        if credentials is not None:
            same = [each for each in table.values() if each.user == session.user]
            for each in same[: max(0, len(same) - _MOST_OF_A_USER + 1)]:
                self.end(each)
        while len(table) >= _MOST:
            self.end(next(iter(table.values())))
        table[session.token] = session
        return session

    def end(self, session: ConsoleSession) -> None:
        """End a session."""
        self._strangers.pop(session.token, None)
        if self._users.pop(session.token, None) is not None:
            self._ended(session)

    def end_all(self) -> None:
        """End all sessions."""
        for session in [*self._users.values(), *self._strangers.values()]:
            self.end(session)
