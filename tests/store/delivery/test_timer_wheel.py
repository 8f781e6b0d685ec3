"""Counts of a timer wheel."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqlake.store.delivery.timer_wheel import TimerWheel

PRECISION = 10


@given(st.lists(st.integers(0, 500), max_size=60), st.integers(0, 60), st.integers(-10, 520))
def test_messages_before_a_time_are_counted(times: list[int], popped: int, before: int) -> None:
    wheel = TimerWheel(PRECISION)
    for offset, time in enumerate(times):
        wheel.add(time, offset)
    slots = sorted(time - time % PRECISION for time in times)
    for _ in range(min(popped, len(times))):
        wheel.pop()
        slots.pop(0)
    assert wheel.count_before(before) == sum(slot < before for slot in slots)
