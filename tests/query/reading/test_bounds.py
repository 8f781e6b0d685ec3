"""Conditions from values of engines: what no condition expresses limits nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mqlake.query.reading.bounds import MESSAGES, any_of, between
from mqlake.query.reading.conditions import AnyNumber, Between

TIME = ("storeTimestamp",)
LAST = datetime.max  # noqa: DTZ901  as PySpark has times
LAST_MS = 253_402_300_799_999


@pytest.fixture(params=["America/New_York", "UTC", "Asia/Tokyo"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_zone")
def test_the_first_and_the_last_times_of_python_fail_no_query() -> None:
    """Queries use them for no limit; in UTC they may be outside of the years of Python."""
    for bound in (LAST, datetime.min):  # noqa: DTZ901  as PySpark has times
        above, below = between(MESSAGES, TIME, low=bound), between(MESSAGES, TIME, high=bound)
        assert above is None or isinstance(above, Between)
        assert below is None or isinstance(below, Between)
        equal = any_of(MESSAGES, TIME, [bound, datetime(2026, 1, 1, tzinfo=UTC)])
        assert equal is None or isinstance(equal, AnyNumber)


def test_a_time_after_the_last_one_in_utc_is_a_bound() -> None:
    late = LAST.replace(tzinfo=timezone(timedelta(hours=-5)))
    hours = 5 * 3_600_000
    assert between(MESSAGES, TIME, high=late) == Between(TIME[0], high=LAST_MS + hours)
    early = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
    assert between(MESSAGES, TIME, low=early) == Between(TIME[0], low=-62_135_596_800_000 - hours)
