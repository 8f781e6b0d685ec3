"""Sessions of visitors: a restart of the console ends them."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from mqlake.console.access.roles import ConsoleRole
from mqlake.protocol.signature import Credentials

_MOST: Final = 1000
"""The maximum number of sessions of users, and of visitors for whom notices wait."""
_MOST_OF_A_USER: Final = 50
_MOST_NOTICES: Final = 5
_STRANGER: Final = "s."


class ConsoleSession:
    """A visitor.

    Attributes:
        token: the value of the cookie.
        csrf: what each change must contain; the same for all who have not logged in.
        credentials: of the user who logged in; None if nobody did.
        begun, seen, confirmed: seconds; the last one is when the cluster last stated the role.
    """

    def __init__(
        self,
        token: str,
        csrf: str,
        role: ConsoleRole,
        credentials: Credentials | None = None,
        now: float = 0.0,
    ) -> None:
        self.token, self.csrf = token, csrf
        self.role, self.credentials = role, credentials
        self.begun = self.seen = self.confirmed = now

    @property
    def user(self) -> str:
        """The name of the user, empty if nobody logged in."""
        return self.credentials.access_key if self.credentials else ""

    def has_csrf(self, text: str) -> bool:
        """Return whether a change was sent by a page of this session."""
        return hmac.compare_digest(self.csrf.encode(), text.encode("utf-8", "replace"))

    def confirm(self, role: ConsoleRole, now: float) -> None:
        """Note the role that the cluster states now. It never rises within a session."""
        self.role, self.confirmed = min(role, self.role), now

    def note_use(self, now: float) -> None:
        """Note that the visitor, not a page that refreshes itself, sent a request."""
        self.seen = now


class Sessions:
    """All sessions.

    Nothing is kept of visitors who have not logged in, so nobody can end other sessions by
    beginning very many: their cookie is signed. They share one token, so that forms work which a
    browser opens in two tabs at once, before it has a cookie; forms of other sites are refused by
    their origin.

    Args:
        idle: seconds without a request after which a user's session ends.
        longest: seconds after its begin when it ends.
        stranger: the role of visitors who have not logged in.
        now: returns seconds.
        ended: called with each session of a user that has ended.
    """

    def __init__(
        self,
        idle: float,
        longest: float,
        stranger: ConsoleRole,
        now: Callable[[], float],
        ended: Callable[[ConsoleSession], None],
    ) -> None:
        self._idle, self._longest, self._now, self._ended = idle, longest, now, ended
        self._stranger, self._key = stranger, secrets.token_bytes(32)
        self._users: OrderedDict[str, ConsoleSession] = OrderedDict()
        self._notices: OrderedDict[str, deque[str]] = OrderedDict()

    def find(self, token: str, *, by_visitor: bool = True) -> ConsoleSession | None:
        """Return a session that has not ended.

        Args:
            by_visitor: whether the visitor sent the request, not a page that refreshes itself.
        """
        if token.startswith(_STRANGER):
            return self._known_stranger(token)
        session = self._users.get(token)
        if session is None:
            return None
        now = self._now()
        if now - session.seen > self._idle or now - session.begun > self._longest:
            self.end(session)
            return None
        if by_visitor:
            session.note_use(now)
        self._users.move_to_end(token)
        return session

    def begin_stranger(self) -> ConsoleSession:
        """Return a session of a visitor who has not logged in."""
        name = secrets.token_urlsafe(24)
        return self._stranger_of(f"{_STRANGER}{name}.{self._signed('cookie', name)}")

    def begin(self, role: ConsoleRole, credentials: Credentials) -> ConsoleSession:
        """Return a new session of a user. If there are too many, the oldest ends.

        One user's new sessions end the user's own old ones first.
        """
        tokens = (secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        session = ConsoleSession(*tokens, role, credentials, self._now())
        same = [each for each in self._users.values() if each.user == session.user]
        for each in same[: max(0, len(same) - _MOST_OF_A_USER + 1)]:
            self.end(each)
        while len(self._users) >= _MOST:
            self.end(next(iter(self._users.values())))
        self._users[session.token] = session
        return session

    def end(self, session: ConsoleSession) -> None:
        """End a session."""
        self._notices.pop(session.token, None)
        if self._users.pop(session.token, None) is not None:
            self._ended(session)

    def sweep(self) -> None:
        """End the sessions that are over, whose visitors do not come back."""
        now = self._now()
        for session in [*self._users.values()]:
            if now - session.seen > self._idle or now - session.begun > self._longest:
                self.end(session)

    def end_all(self) -> None:
        """End all sessions."""
        for session in [*self._users.values()]:
            self.end(session)

    def add_notice(self, session: ConsoleSession, text: str) -> None:
        """Keep the result of a change for the next page."""
        self._notices.setdefault(session.token, deque(maxlen=_MOST_NOTICES)).append(text)
        while len(self._notices) > _MOST:
            self._notices.popitem(last=False)

    def take_notices(self, session: ConsoleSession) -> list[str]:
        """Return the results of changes that no page has shown."""
        return [*self._notices.pop(session.token, ())]

    def _known_stranger(self, token: str) -> ConsoleSession | None:
        name, _, signed = token.removeprefix(_STRANGER).partition(".")
        wanted = self._signed("cookie", name)
        is_ours = hmac.compare_digest(signed.encode("utf-8", "replace"), wanted.encode())
        return self._stranger_of(token) if is_ours else None

    def _stranger_of(self, token: str) -> ConsoleSession:
        return ConsoleSession(token, self._signed("csrf", ""), self._stranger)

    def _signed(self, purpose: str, name: str) -> str:
        text = f"{purpose}:{name}".encode("utf-8", "replace")
        return hmac.new(self._key, text, sha256).hexdigest()
