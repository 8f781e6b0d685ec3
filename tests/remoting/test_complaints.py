"""A flood of bad connections does not flood the log."""

from __future__ import annotations

import pytest

from mqlake.remoting.complaints import MOST, WINDOW, Complaints


def test_what_is_too_much_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    complaints = Complaints(lambda: now)
    for number in range(MOST + 5):
        complaints.say("h:1", f"reason {number}")
    assert [record.getMessage() for record in caplog.records] == [
        f"h:1: closed: reason {number}" for number in range(MOST)
    ]
    caplog.clear()
    now = WINDOW
    for number in range(2):
        complaints.say("h:2", f"reason {number}")
    assert [record.getMessage() for record in caplog.records] == [
        "5 more connections were closed",
        "h:2: closed: reason 0",
        "h:2: closed: reason 1",
    ]
    caplog.clear()
    now = 2 * WINDOW
    complaints.say("h:3", "why")
    assert [record.getMessage() for record in caplog.records] == ["h:3: closed: why"]
