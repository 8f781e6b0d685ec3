"""Arrivals that an event loop watches: all are delivered, whatever happens to one of them."""

from __future__ import annotations

import os
from collections.abc import Generator
from queue import Empty
from threading import Thread

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from kombu.asynchronous import Hub

from mqlake.kombu.arrivals import WatchedQueue

MANY = 5_000


@pytest.fixture
def hub() -> Generator[Hub]:
    """Give an event loop of kombu."""
    hub = Hub()
    # A loop without timers waits a second for the next event.
    hub.call_repeatedly(0.01, lambda: None)
    yield hub
    hub.close()


def turn(hub: Hub, count: int = 1) -> None:
    loop = hub.create_loop()
    for _ in range(count):
        next(loop)


def test_messages_of_other_threads_and_from_before_the_watch_are_delivered(hub: Hub) -> None:
    arrivals: WatchedQueue[int] = WatchedQueue()
    found: list[int] = []
    arrivals.put(0)
    arrivals.watch(hub, found.append)
    thread = Thread(target=lambda: [arrivals.put(number) for number in range(1, MANY)])
    thread.start()
    loop = hub.create_loop()
    while len(found) < MANY:
        next(loop)
    thread.join()
    assert found == list(range(MANY))
    arrivals.unwatch(is_own=True)


def test_an_error_leaves_the_others_for_the_next_turn(hub: Hub) -> None:
    arrivals: WatchedQueue[int] = WatchedQueue()
    found: list[int] = []

    def deliver(number: int) -> None:
        if number == 1:
            raise ConnectionError
        found.append(number)

    for number in range(4):
        arrivals.put(number)
    arrivals.watch(hub, deliver)
    with pytest.raises(ConnectionError):
        turn(hub)
    turn(hub)
    assert found == [0, 2, 3]
    arrivals.unwatch(is_own=True)


def test_nothing_is_delivered_after_the_watch_ends(hub: Hub) -> None:
    arrivals: WatchedQueue[int] = WatchedQueue()
    found: list[int] = []
    arrivals.watch(hub, found.append)
    arrivals.unwatch(is_own=True)
    arrivals.unwatch(is_own=True)
    assert not hub.readers
    arrivals.put(1)
    turn(hub, 2)
    assert (found, len(arrivals), arrivals.get(None)) == ([], 1, 1)
    with pytest.raises(Empty):
        arrivals.get(0.0)


def test_a_fork_that_leaves_takes_nothing_from_its_parent(hub: Hub) -> None:
    arrivals: WatchedQueue[int] = WatchedQueue()
    found: list[int] = []
    arrivals.watch(hub, found.append)
    child = os.fork()
    if child == 0:
        arrivals.unwatch(is_own=False)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    arrivals.put(1)
    turn(hub, 3)
    assert found == [1]
    arrivals.unwatch(is_own=True)
