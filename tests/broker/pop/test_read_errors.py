"""The disk refuses one read: popped messages are neither lost nor hidden from the group."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import DiskError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.store.port import Service
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.reads.live_reads import LiveReads
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.results import QueueRange, Status
from mqlake.testing.advanced_clock import AdvancedClock
from tests.broker.pop.popping import (
    GROUP,
    TOPIC,
    Popped,
    acknowledge,
    bodies,
    header,
    pop,
    run,
    send,
)
from tests.broker.running import PATIENCE, Running, running

INVISIBLE = 5000
"""Milliseconds; less than check points stay in memory."""


class FailingReads:
    """Counts the reads of the topic's consume queues, and makes some of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        self.count = 0
        self.failing: set[int] = set()
        real = OwnedQueues.entries

        def entries(
            queues: OwnedQueues, topic: str, queue_id: int, start: int, count: int
        ) -> bytes | memoryview:
            if topic == TOPIC:
                self.count += 1
                if self.count in self.failing:
                    raise error
            return real(queues, topic, queue_id, start, count)

        monkeypatch.setattr(OwnedQueues, "entries", entries)

    def fail(self, number: int) -> None:
        """Make a read fail; the next one is number 1."""
        self.count = 0
        self.failing = {number}


def look_of(broker: Running) -> Service:
    """Return the service that redelivers messages whose check points are in memory."""
    (found,) = [each for each in broker.runtime.repeating if each.name == "PopConsumption._look"]
    return found


def committed(broker: Running, queue_id: int) -> int | None:
    return broker.state.store.config.consumer_offsets.query(GROUP, TOPIC, queue_id)


async def redelivered(broker: Running, clock: AdvancedClock, count: int) -> list[Popped]:
    """Return messages of the retry topic, while time passes faster than the clock."""
    found: list[Popped] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            clock.advance(1)
            found += await pop(broker, poll_time=300)
    return found


async def pop_three(broker: Running) -> None:
    """Pop one message of each of three queues; only that of queue 2 is acknowledged."""
    for queue_id, body in enumerate("abc"):
        await send(broker, body, queue_id=queue_id)
        (popped,) = await pop(broker, invisible_time=INVISIBLE)
        if body == "c":
            await acknowledge(broker, popped)
    broker.state.store.sync.now()


def test_a_redelivery_that_the_disk_refuses_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reads = FailingReads(monkeypatch, DiskError("0/0: Too many open files", errno.EMFILE))

    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await pop_three(broker)
            clock.advance(INVISIBLE / 1000)
            reads.fail(1)
            # Nothing else reads meanwhile: this is a single call on the event loop.
            with caplog.at_level(logging.WARNING):
                look_of(broker).start()
            assert reads.count == 2, "the pop after the failed one is redelivered"
            assert committed(broker, 2) == 1, "offsets advance although a pop failed"
            assert "Too many open files" in caplog.text
            assert f"group {GROUP}" in caplog.text
            again = await redelivered(broker, clock, 2)
            assert bodies(again) == ["a", "b"]
            assert [each.record.reconsume_times for each in again] == [1, 1]
            await acknowledge(broker, *again)
            broker.state.store.sync.now()
            look_of(broker).start()
            assert [committed(broker, queue_id) for queue_id in range(3)] == [1, 1, 1]

    run(test())


def test_a_redelivery_that_fails_otherwise_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = FailingReads(monkeypatch, ValueError("unexpected"))

    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await pop_three(broker)
            clock.advance(INVISIBLE / 1000)
            reads.fail(1)
            with pytest.raises(ValueError, match="unexpected"):
                look_of(broker).start()
            assert bodies(await redelivered(broker, clock, 2)) == ["a", "b"]

    run(test())


@pytest.mark.parametrize("order", [False, True])
def test_a_pop_answers_what_it_took_before_the_disk_refused_a_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    order: bool,
) -> None:
    reads = FailingReads(monkeypatch, DiskError("1/0: Input/output error", errno.EIO))

    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            await send(broker, "b", queue_id=1)
            reads.fail(2)
            with caplog.at_level(logging.WARNING):
                (first,) = await pop(broker, order=order)
            assert "Input/output error" in caplog.text
            assert f"group {GROUP}" in caplog.text
            (second,) = await pop(broker, order=order)
            assert bodies([first, second]) == ["a", "b"]
            assert (second.times, second.record.reconsume_times) == (0, 0)
            await acknowledge(broker, first, second)
            assert await pop(broker, order=order) == []

    run(test())


def test_a_pop_that_took_nothing_answers_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = FailingReads(monkeypatch, DiskError("0/0: Input/output error", errno.EIO))

    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            reads.fail(1)
            answer = await broker.ask(RequestCode.POP_MESSAGE, header(queue_id=0))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "Input/output error" in (answer.remark or "")
            assert bodies(await pop(broker, queue_id=0)) == ["a"]

    run(test())


def test_a_gap_in_a_queue_does_not_acknowledge_what_is_popped_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the queue is missing: the next pop continues after it."""
    real, gap = LiveReads.get, range(1, 3)

    def get(
        reads: LiveReads, topic: str, queue_id: int, offset: int, count: int, **options: Any
    ) -> LiveGetResult:
        if topic == TOPIC and offset in gap:
            queue = QueueRange(0, 4)
            return LiveGetResult(Status.OFFSET_FOUND_NULL, gap.stop, queue)
        return real(reads, topic, queue_id, offset, count, **options)

    monkeypatch.setattr(LiveReads, "get", get)

    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await send(broker, "a", "b", "c", "d")
            await pop(broker, queue_id=0, max_msg_nums=1, invisible_time=INVISIBLE)
            (last,) = await pop(broker, queue_id=0, invisible_time=INVISIBLE)
            assert last.body == "d"
            await acknowledge(broker, last)
            broker.state.store.sync.now()
            look_of(broker).start()
            assert committed(broker, 0) == 0
            clock.advance(INVISIBLE / 1000)
            again = await redelivered(broker, clock, 1)
            assert bodies(again) == ["a"]
            await acknowledge(broker, *again)
            broker.state.store.sync.now()
            look_of(broker).start()
            assert committed(broker, 0) == 4

    run(test())
