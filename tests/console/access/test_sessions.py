"""Sessions end, and there are never too many."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from mqlake.client import Credentials
from mqlake.console.access.attempts import LoginAttempts
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.access.sessions import ConsoleSession, Sessions
from mqlake.console.page_error import PageError

USER = Credentials("user", "user-password")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock, ended: list[ConsoleSession] | None = None) -> Sessions:
    noted: list[ConsoleSession] = [] if ended is None else ended
    return Sessions(60.0, 600.0, ConsoleRole.STRANGER, clock, noted.append)


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


def test_nothing_is_kept_of_strangers() -> None:
    every, other = sessions(Clock()), sessions(Clock())
    stranger = every.begin_stranger()
    for _ in range(1500):
        every.begin_stranger()
    found = every.find(stranger.token)
    assert found is not None
    assert found.csrf == stranger.csrf
    assert found.role is ConsoleRole.STRANGER
    assert other.find(stranger.token) is None
    for forged in ("s.", "s..", stranger.token[:-1], "s.x." + "0" * 64, stranger.token + "é"):
        assert every.find(forged) is None


def test_notices_wait_for_the_next_page_of_their_visitor() -> None:
    every = sessions(Clock())
    one, two = every.begin_stranger(), every.begin_stranger()
    every.add_notice(one, "done")
    assert every.take_notices(two) == []
    assert every.take_notices(one) == ["done"]
    assert every.take_notices(one) == []


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
        with pytest.raises(ValueError, match="wrong"), attempts.attempt("1.2.3.4"):
            raise ValueError("wrong")
    with pytest.raises(PageError), attempts.attempt("1.2.3.4"):
        pass
    with attempts.attempt("1.2.3.5"):
        pass
    clock.now += 60
    with attempts.attempt("1.2.3.4"):
        pass


def test_attempts_count_from_their_begin() -> None:
    attempts = LoginAttempts(Clock())
    with ExitStack() as running:
        for _ in range(8):
            running.enter_context(attempts.attempt("1.2.3.4"))
        with pytest.raises(PageError):
            running.enter_context(attempts.attempt("1.2.3.5"))
    for _ in range(30):  # All of them succeeded.
        with attempts.attempt("1.2.3.4"):
            pass
