"""What costs more than it brings is limited."""

from __future__ import annotations

import pytest

from mqlake.grpc.http2.frames import ErrorCode, Http2Error
from mqlake.grpc.http2.frequency import PERIOD, Frequency


def test_more_events_than_allowed_within_a_period_are_refused() -> None:
    frequency = Frequency(2, "resets")
    for _ in range(2):
        frequency.note(1.0)
    with pytest.raises(Http2Error, match="more than 2 resets within 10 s") as caught:
        frequency.note(2.0)
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM


def test_each_period_allows_as_many() -> None:
    frequency = Frequency(2, "resets")
    for period in range(5):
        for _ in range(2):
            frequency.note(period * PERIOD)


def test_what_is_useful_allows_more() -> None:
    frequency = Frequency(1, "resets")
    for _ in range(5):
        frequency.allow(1)
        frequency.note(0.0)
    frequency.note(0.0)
    with pytest.raises(Http2Error):
        frequency.note(0.0)
