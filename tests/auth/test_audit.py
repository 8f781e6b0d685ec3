"""The audit log is not filled by those who are refused."""

from __future__ import annotations

import logging
from collections.abc import Generator

import pytest

from mqlake.auth import audit
from mqlake.auth.audit import AUDIT, MOST, MOST_OF_ONE, WINDOW, log_refusal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Generator[list[float]]:
    """Return the time of all lines, which a test sets."""
    now = [1e9]
    make = logging.LogRecord.__init__

    def timed(record: logging.LogRecord, *args: object, **named: object) -> None:
        make(record, *args, **named)  # pyright: ignore[reportArgumentType]
        record.created = now[0]

    monkeypatch.setattr(logging.LogRecord, "__init__", timed)
    limit = audit._Refusals()
    AUDIT.removeFilter(audit._limit)
    AUDIT.addFilter(limit)
    yield now
    AUDIT.removeFilter(limit)
    AUDIT.addFilter(audit._limit)


def test_one_address_fills_only_its_share(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, AUDIT.name)
    for number in range(1000):
        log_refusal(f"1.2.3.4:{number}", "stranger %d", number)
    log_refusal("5.6.7.8:1", "other")
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [*(f"stranger {number}" for number in range(MOST_OF_ONE)), "other"]

    caplog.clear()
    clock[0] += WINDOW
    log_refusal("1.2.3.4:1", "later")
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"[AUDIT] {1000 - MOST_OF_ONE} more refused requests were not logged", "later"]


def test_many_addresses_fill_no_more_than_all_may(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, AUDIT.name)
    for number in range(10 * MOST):
        log_refusal(f"1.2.{number >> 8}.{number & 255}:1", "refused")
        log_refusal(f"[2001:db8::{number:x}]:1", "refused")
    assert len(caplog.records) == MOST
    clock[0] -= 1  # A clock that goes back begins another window.
    log_refusal("odd", "refused")
    assert len(caplog.records) == MOST + 2


def test_allowed_requests_are_not_limited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, AUDIT.name)
    for _ in range(1000):
        AUDIT.debug("allowed")
    assert len(caplog.records) == 1000
