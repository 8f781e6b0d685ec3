"""What a store directory tells about messages that wait, as a broker does."""

from __future__ import annotations

import asyncio
import time

from mqlake.client import Message
from mqlake.console.waiting.found import WaitingMessages, delayed
from mqlake.console.waiting.sources import DirectorySource
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS
from mqlake.testing.running_broker import RunningBroker
from tests.until import wait_until


def found(running: RunningBroker, most: int = 100) -> WaitingMessages:
    source = DirectorySource(running.store, "broker-a")
    try:
        now = int(time.time() * 1000)
        return asyncio.run(delayed(source, DEFAULT_DELAY_LEVELS, now, most))
    finally:
        source.close()


def test_a_directory_has_the_messages_that_wait(running: RunningBroker) -> None:
    due = int(time.time() * 1000) + 3_600_000
    with running.producer() as producer:
        for number in range(5):
            producer.send(Message(topic="T", body=b"x", keys=f"level-{number}", delay_level=18))
        producer.send(Message(topic="T", body=b"x", keys="timed", deliver_at=due))
        producer.send(Message(topic="T", body=b"x" * 100_000, keys="long", deliver_at=due))
    wait_until(lambda: len(found(running).messages) == 7)
    whole = found(running)
    assert whole.stopped == []
    assert {one.keys for one in whole.messages if one.handle} == {"timed", "long"}
    (timed,) = [one for one in whole.messages if one.keys == "timed"]
    assert timed.due is not None
    assert abs(timed.due - due) <= 1000
    few = found(running, most=2)
    assert any("3 messages after these were not read" in text for text in few.stopped)
