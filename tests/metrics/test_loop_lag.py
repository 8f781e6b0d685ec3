"""The delay of an event loop's callbacks, by a clock of the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mqlake.metrics.loop_lag import INTERVAL, LoopLag


class Loop:
    """An event loop with one timer, which runs when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, function: Callable[[], None]) -> Callable[[], None]:
        self.due, self.function = when, function
        return function

    def run(self, delay: float) -> None:
        """Call the timer so many seconds after it was due."""
        self.now = self.due + delay
        self.function()


def test_take_returns_the_longest_delay_since_the_last_call() -> None:
    loop = Loop()
    lag = LoopLag(cast("Any", loop))
    assert lag.take() == 0
    for delay in (0.0, 1.5, 0.25):
        loop.run(delay)
    assert lag.take() == 1.5
    assert lag.take() == 0


def test_a_timer_that_is_late_now_counts() -> None:
    loop = Loop()
    lag = LoopLag(cast("Any", loop))
    loop.now = INTERVAL + 2
    assert lag.take() == 2
