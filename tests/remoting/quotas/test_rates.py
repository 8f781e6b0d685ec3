"""Rates, and the table of what owners use, by a clock that the test advances."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from mqlake.remoting.quotas.quota import Quota, QuotaKind
from mqlake.remoting.quotas.usage import Rate, Usage
from mqlake.remoting.quotas.usages import Usages


class Loop:
    """Stands for an event loop whose time the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._later: list[tuple[float, Callable[..., object], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., object], *given: Any) -> None:
        self._later.append((self.now + delay, callback, given))

    def forward(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self._later if each[0] <= self.now]
        self._later = [each for each in self._later if each[0] > self.now]
        for _, callback, given in due:
            callback(*given)


def test_a_second_holds_what_is_allowed_and_then_one_after_the_other() -> None:
    rate = Rate(5.0)
    for _ in range(8):
        assert not rate.is_exceeded(8, 5.0)
        rate.add(1)
    assert rate.is_exceeded(8, 5.0)
    assert rate.is_exceeded(8, 5.0)  # Refusals do not count.
    assert not rate.is_exceeded(8, 5.125)
    rate.add(1)
    assert rate.is_exceeded(8, 5.125)


def test_what_is_used_before_the_first_check_counts() -> None:
    rate = Rate(1000.0)
    rate.add(100)
    assert rate.is_exceeded(10, 1000.5)


@pytest.mark.parametrize("seed", range(20))
def test_no_long_time_sees_more_than_the_rate(seed: int) -> None:
    chance, rate = random.Random(seed), Rate(100.0)
    allowed, now, begin, used = chance.randrange(1, 50), 100.0, 100.0, 0
    for _ in range(2000):
        now += chance.expovariate(2 * allowed)
        if not rate.is_exceeded(allowed, now):
            rate.add(1)
            used += 1
    assert used <= allowed * (now - begin) + allowed + 1
    assert used >= 0.3 * allowed * (now - begin)


def test_what_was_too_much_is_repaid() -> None:
    rate = Rate(1.0)
    rate.add(1000)
    assert rate.is_exceeded(100, 9.0)
    assert not rate.is_exceeded(100, 10.5)


QUOTA = Quota(connections=2, requests=10, size=1000, in_flight=3)


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("IN_FLIGHT_QUOTA", "maxInFlightPerUser"),
        ("REQUEST_QUOTA", "maxRequestRatePerUser"),
        ("BYTE_QUOTA", "maxByteRatePerUser"),
    ],
)
def test_the_limit_is_named(reason: str, setting: str) -> None:
    usage = Usage(QuotaKind.USER, "alice", 1.0)
    assert usage.excess(QUOTA, 1.0) is None
    usage.in_flight = 4 if reason.startswith("IN") else 3
    usage.requests.add(10 if reason.startswith("R") else 0)
    usage.size.add(1000 if reason.startswith("B") else 0)
    found = usage.excess(QUOTA, 1.0)
    assert found is not None
    assert found.reason == reason
    assert "user alice" in found.text
    assert setting in found.text
    assert usage.excess(Quota(), 1.0) is None


def test_a_new_connection_does_not_forget() -> None:
    loop = Loop()
    usages = Usages(QuotaKind.ADDRESS, loop)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    usages.quota = QUOTA
    usage = usages.join("10.0.0.1", 0)
    assert usage.excess(QUOTA, loop.time()) is None
    usage.requests.add(10)
    usages.leave(usage, 0)
    again = usages.join("10.0.0.1", 0)
    assert again is usage
    assert again.excess(QUOTA, loop.time()) is not None
    usages.leave(again, 0)
    loop.forward(0.5)
    assert len(usages) == 1
    loop.forward(2)
    assert len(usages) == 0


def test_a_connection_that_is_there_again_is_not_forgotten() -> None:
    loop = Loop()
    usages = Usages(QuotaKind.ADDRESS, loop)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    usages.quota = QUOTA
    usage = usages.join("10.0.0.1", 2)
    assert usage.excess(QUOTA, loop.time()) is None
    usage.size.add(500)
    usages.leave(usage, 2)
    again = usages.join("10.0.0.1", 1)
    loop.forward(10)
    assert len(usages) == 1
    assert (again.connections, again.in_flight) == (1, 1)


def test_a_limit_that_is_set_later_counts_from_then_on() -> None:
    loop = Loop()
    usages = Usages(QuotaKind.ADDRESS, loop)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    usages.set(Quota(connections=5))
    usage = usages.join("127.0.0.1", 0)
    for _ in range(1000):
        usage.requests.add(5000)  # While there is no limit of requests, none leaks.
        loop.forward(1)
    quota = Quota(connections=5, requests=1000)
    usages.set(quota)
    assert usage.excess(quota, loop.now) is None
    usage.requests.add(1000)
    assert usage.excess(quota, loop.now) is not None
    usages.set(quota)  # Another setting has changed.
    assert usage.excess(quota, loop.now) is not None


def test_an_owner_that_comes_and_goes_has_one_timer() -> None:
    loop = Loop()
    usages = Usages(QuotaKind.ADDRESS, loop)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    usages.set(Quota(size=1000))
    usage = usages.join("127.0.0.1", 0)
    usage.size.add(4000)
    usages.leave(usage, 0)
    for _ in range(100):
        usages.leave(usages.join("127.0.0.1", 0), 0)
    assert len(loop._later) == 1
    again = usages.join("127.0.0.1", 0)
    loop.forward(5)
    assert len(usages) == 1
    usages.leave(again, 0)
    loop.forward(5)
    assert (len(usages), loop._later) == (0, [])
