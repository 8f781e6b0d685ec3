"""Sessions end, and there are never too many."""

from __future__ import annotations

from mqlake.client import Credentials
from mqlake.console.access.attempts import LoginAttempts
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.access.sessions import ConsoleSession, Sessions

USER = Credentials("user", "user-password")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock, ended: list[ConsoleSession] | None = None) -> Sessions:
    noted: list[ConsoleSession] = [] if ended is None else ended
    return Sessions(60.0, 600.0, clock, noted.append)


def test_ends_when_the_visitor_is_idle() -> None:
    clock, ended = Clock(), list[ConsoleSession]()
    every = sessions(clock, ended)
    session = every.begin(ConsoleRole.OPERATOR, USER)
    for _ in range(5):
        clock.now += 50
        assert every.find(session.token) is session
    clock.now += 61
    assert every.find(session.token) is None
    assert ended == [session]


def test_a_page_that_refreshes_itself_keeps_no_session_alive() -> None:
    clock = Clock()
    every = sessions(clock)
    session = every.begin(ConsoleRole.OPERATOR, USER)
    for _ in range(6):
        clock.now += 9
        assert every.find(session.token, by_visitor=False) is session
    clock.now += 9
    assert every.find(session.token, by_visitor=False) is None


def test_ends_some_time_after_the_login_in_any_case() -> None:
    clock = Clock()
    every = sessions(clock)
    session = every.begin(ConsoleRole.OPERATOR, USER)
    for _ in range(12):
        clock.now += 50
        assert every.find(session.token) is session
    clock.now += 50
    assert every.find(session.token) is None


def test_strangers_do_not_end_the_sessions_of_users() -> None:
    every = sessions(Clock())
    user = every.begin(ConsoleRole.OPERATOR, USER)
    for _ in range(1500):
        every.begin(ConsoleRole.STRANGER)
    assert every.find(user.token) is user


def test_one_user_does_not_end_the_sessions_of_others() -> None:
    every = sessions(Clock())
    other = every.begin(ConsoleRole.OPERATOR, Credentials("other", "other-password"))
    first = every.begin(ConsoleRole.OPERATOR, USER)
    for _ in range(1500):
        last = every.begin(ConsoleRole.OPERATOR, USER)
    assert every.find(other.token) is other
    assert every.find(first.token) is None
    assert every.find(last.token) is last


def test_attempts_are_limited_by_address_and_time() -> None:
    clock = Clock()
    attempts = LoginAttempts(clock)
    for _ in range(10):
        assert attempts.may_try("1.2.3.4")
        attempts.failed("1.2.3.4")
    assert not attempts.may_try("1.2.3.4")
    assert attempts.may_try("1.2.3.5")
    clock.now += 60
    assert attempts.may_try("1.2.3.4")
