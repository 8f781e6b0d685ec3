"""Offsets of a group at brokers that answer out of order."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.offsets import GroupOffsets
from mqlake.protocol.bodies.message_queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


class Broker:
    """Stores an offset; pulls that it has still to serve commit theirs after each commit."""

    def __init__(self, late: list[int]) -> None:
        self.late, self.stored, self.commits = late, 0, 0

    async def commit_offset(self, queue: MessageQueue, offset: int) -> None:
        assert queue == QUEUE
        self.commits += 1
        self.stored = self.late.pop(0) if self.late else offset

    async def offset_of_group(self, queue: MessageQueue) -> int | None:
        assert queue == QUEUE
        return self.stored


def settled(broker: Broker) -> int:
    offsets = GroupOffsets(cast("BrokerCalls", broker))
    asyncio.run(offsets.settle(QUEUE, 10))
    return broker.stored


def test_a_late_pull_does_not_take_an_offset_back() -> None:
    broker = Broker([])
    assert (settled(broker), broker.commits) == (10, 1)
    broker = Broker([4])
    assert (settled(broker), broker.commits) == (10, 2)


def test_somebody_else_who_commits_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker([4] * 100)
    assert (settled(broker), broker.commits) == (4, 3)
    assert "another client also commits offsets of this group" in caplog.text
